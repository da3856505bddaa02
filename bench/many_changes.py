"""Many changes in a row: the slowest of a million small commits, and views installed before any row came.

    python -m bench.many_changes [--quick]

writes ``results.md`` into ``bench/results/many_changes/`` (``--quick``: small data, only printed).

A million commits of one row each to a relation of three million, which come and go at random, with the
degree of each vertex kept: folds, merges and collections are among them.  The system's time, by which pages
of memory are handed out, is shown apart.  Then five finance views that were installed on empty tables take
a replayed order book in transactions of 1,000, by `auto` and by `views`, the best of the fixed strategies.
Processor time; heads are verified in the end, or compared with one another.  One thread.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bench.grid import views
from bench.grid.changes import Stream
from bench.grid.view import View
from bench.report.machine import describe
from bench.report.markdown import number, table
from bench.report.page import is_quick, show
from bench.single_changes import stream_of
from maintenance import Workspace

DEGREES = "degree[a] = count() <- edge(a, b)."
SIZE = 1_000
WARM_UP = 2_000
"""Commits, among which kernels may be loaded."""

STRATEGIES = ("views", "auto")
"""The other fixed ones list pairs of rows whenever a bar moves, which takes minutes."""


def worst(n_rows: int, n_commits: int) -> list[str]:
    """A row of the table.  Raises where the head is not what it should be."""
    generator = np.random.default_rng(1)
    n_vertices = n_rows // 8
    edges = np.unique(generator.integers(0, n_vertices, (n_rows, 2)), axis=0)
    workspace = Workspace()
    workspace.load("edge", pa.table({"a": edges[:, 0], "b": edges[:, 1]}))
    workspace.install(DEGREES, "delta")
    every = n_commits + WARM_UP
    held = list(map(tuple, generator.permutation(edges)[:every].tolist()))
    new = list(map(tuple, generator.integers(n_vertices, 2 * n_vertices, (every, 2)).tolist()))
    erases = generator.random(every) < 0.5
    took, of_system = np.empty(every), np.empty(every)
    gc.collect()
    for place in range(every):
        began, started = resource.getrusage(resource.RUSAGE_SELF).ru_stime, time.process_time_ns()
        with workspace.transaction() as transaction:
            if erases[place]:
                transaction.erase("edge", [held[place]])
            else:
                transaction.insert("edge", [new[place]])
        took[place] = (time.process_time_ns() - started) / 1e3
        of_system[place] = 1e6 * (resource.getrusage(resource.RUSAGE_SELF).ru_stime - began)
    workspace.verify()
    took, of_system = took[WARM_UP:], of_system[WARM_UP:]
    own = np.maximum(took - of_system, 0)
    median = float(np.median(took))
    shares = [float(np.percentile(took, share)) for share in (99, 99.9, 99.99)]
    return [
        f"{len(edges):,}",
        f"{n_commits:,}",
        *(number(one) for one in (median, *shares, took.max(), own.max())),
        f"{shares[1] / median:.1f}",
        f"{own.max() / median:,.0f}",
    ]


def batches(view: View, stream: Stream) -> Iterator[dict[tuple[str, int], pa.Table]]:
    """All that the tables are loaded with and all that comes after, in transactions; by relation and sign."""
    rows = [(name, row, 1) for name, loaded in stream.tables.items() for row in loaded.tolist()]
    rows.sort(key=lambda one: one[1][1])  # as it was numbered
    for transaction in stream.transactions:
        rows += [
            (name, row[:-1], row[-1]) for name, changes in transaction.items() for row in changes.tolist()
        ]
    for first in range(0, len(rows), SIZE):
        parts: dict[tuple[str, int], list[Sequence[int]]] = {}
        for name, row, weight in rows[first : first + SIZE]:
            parts.setdefault((name, weight), []).append(row)
        yield {
            part: pa.table(dict(zip(view.columns[part[0]], np.array(its).T, strict=True)))
            for part, its in parts.items()
        }


def on_empty_tables(table_name: str, count: int) -> list[list[str]]:
    """A row by strategy.  Raises AssertionError where heads differ."""
    view = views.five(table_name)
    transactions = list(batches(view, stream_of(view, count)))
    seconds: dict[str, list[float]] = {}
    answers: list[dict[str, pa.Table]] = []
    for strategy in STRATEGIES:
        workspace = Workspace()
        for name, columns in view.columns.items():
            workspace.load(name, pa.table({column: pa.array([], pa.int64()) for column in columns}))
        workspace.install(view.rules, strategy)
        seconds[strategy] = []
        for parts in transactions:
            started = time.process_time()
            with workspace.transaction() as transaction:
                for (name, weight), rows in parts.items():
                    (transaction.insert if weight > 0 else transaction.erase)(name, rows)
            seconds[strategy].append(time.process_time() - started)
        answers.append({head: workspace[head].to_arrow() for head in view.heads})
    if any(answer != answers[0] for answer in answers):
        raise AssertionError(f"{view.title}: strategies differ")
    totals = {strategy: sum(its) for strategy, its in seconds.items()}
    best = min(total for strategy, total in totals.items() if strategy != "auto")
    return [
        [
            f"`{strategy}`",
            f"{len(transactions)}",
            f"{totals[strategy]:.2f}",
            f"{1e3 * float(np.median(its)):.1f}",
            f"{1e3 * max(its):.0f}",
            f"{best / totals[strategy]:.2f}",
        ]
        for strategy, its in seconds.items()
    ]


def report(quick: bool) -> str:
    """Both tables."""
    machine = describe()
    n_rows, n_commits = (100_000, 5_000) if quick else (3_000_000, 1_000_000)
    rows = worst(n_rows, n_commits)
    print("worst:", " | ".join(rows), file=sys.stderr)
    empty = on_empty_tables("order-book-4000" if quick else "order-book", 4_000 if quick else 100_000)
    kept = ["strategy", "transactions", "all, s", "median, ms", "most, ms", "best fixed over it"]
    heads = ["rows", "commits", "p50, us", "p99", "p99.9", "p99.99", "worst", "worst, without the system's"]
    return "\n\n".join(
        [
            "# Many changes",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']};"
            f" one thread. Load at the start {machine['load']}.",
            "Commits of one row each, the degree of each vertex kept; processor time.",
            table([*heads, "p99.9 over p50", "worst without the system's over p50"], [rows]),
            f"Five finance views installed on empty tables, transactions of {SIZE:,}.",
            table(kept, empty),
        ]
    )


def main() -> None:
    show(report(is_quick()), "many_changes/results.md")


if __name__ == "__main__":
    main()
