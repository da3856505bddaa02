"""Single changes: one row or one event a transaction, each committed and every head kept after it.

    python -m bench.single_changes [--quick]

writes ``results.md`` into ``bench/results/single_changes/`` (``--quick``: small data, only printed).

Rows go in and out as tuples, which come in the transactions of :mod:`bench.grid`.  Per workload: changes a
second by the median, and what a commit takes, processor time, less what reading the clock takes: that is a
call of the system, a tenth of the smallest commit.  Calls are those of Python functions, of the commits at
the end, counted apart from the times.  Where the program of differential dataflow is built it keeps the same
view through the same transactions; weights and checksums of both are compared in the end, and what has no
peer is verified by evaluating it anew; of the ratio both sides have their clocks.  In a folder commits are
not waited for (``durability="interval"``).  Of batches a row has what one of their transactions takes.  One
thread.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa

from bench.digest import Digest
from bench.grid import views
from bench.grid.changes import Kind, Stream
from bench.grid.keepers import Kept
from bench.grid.view import Setting, View
from bench.peers.differential_engine import PROGRAM, Batches, Commit, Differential, Loaded
from bench.report.machine import describe
from bench.report.markdown import number, table
from bench.report.page import is_quick, show
from maintenance import Workspace
from maintenance.workspace.workspace import SingleChanges

WARM_UP = 100
COUNTED = 50
"""Transactions at the end, whose calls are counted."""

Staged = list[tuple[str, list[tuple[int, ...]], int]]
"""Of a transaction: a relation, rows and the weight of each."""


@dataclass(frozen=True)
class Singles(Setting):
    """So many transactions of one change."""

    transactions: int = 0

    @property
    def count(self) -> int:
        return self.transactions


@dataclass(frozen=True)
class Workload:
    """``rules``: False for the relations alone.  ``machine``: by the commit machine."""

    title: str
    view: View
    strategy: str = "delta"
    rules: bool = True
    in_folder: bool = False
    machine: bool = False

    @property
    def way(self) -> SingleChanges:
        return "machine" if self.machine else "general"


def workloads(quick: bool) -> list[Workload]:
    edges, sums = (12, 10) if quick else (17, 14)
    books = "order-book-4000" if quick else "order-book"
    graph, paths = views.triangles(edges), views.two_path_sums(sums)
    plain = [
        Workload(f"bare relation, RMAT {edges}/8", graph, rules=False),
        Workload(views.degrees(edges).title, views.degrees(edges)),
        Workload(views.choices(edges).title, views.choices(edges)),
        Workload(graph.title, graph),
        Workload(paths.title, paths),
        Workload(f"{paths.title}, `views`", paths, "views"),
        Workload(f"{graph.title}, `auto`", graph, "auto"),
    ]
    kept = [
        Workload(f"bare relation, RMAT {edges}/8, in a folder", graph, rules=False, in_folder=True),
        Workload(f"{graph.title}, in a folder", graph, in_folder=True),
    ]
    finance = Workload("five finance views", views.five(books), "views")
    return [
        *plain,
        *by_machine(plain),
        finance,
        *by_machine([finance]),
        *kept,
        *by_machine(kept),
    ]


def by_machine(workloads: Sequence[Workload]) -> list[Workload]:
    return [replace(one, title=f"{one.title}, by the machine", machine=True) for one in workloads]


def stream_of(view: View, count: int) -> Stream:
    kind: Kind = "replay" if len(view.columns) > 1 else "mixed"
    return view.stream(Singles(kind, 1, transactions=count))


def as_tuples(stream: Stream) -> list[Staged]:
    """The transactions, as a program would stage them."""
    staged = []
    for transaction in stream.transactions:
        parts = [(name, rows[rows[:, -1] == w], w) for name, rows in transaction.items() for w in (-1, 1)]
        staged.append(
            [(name, list(map(tuple, rows[:, :-1].tolist())), w) for name, rows, w in parts if len(rows)]
        )
    return staged


def commit(workspace: Workspace, staged: Staged) -> None:
    with workspace.transaction() as transaction:
        for relation, rows, weight in staged:
            (transaction.insert if weight > 0 else transaction.erase)(relation, rows)


def of_the_clock(times: int = 10_000) -> float:
    """Seconds between two readings with nothing between them, the median."""
    read = [time.process_time_ns() for _ in range(times)]
    return float(np.median(np.diff(read))) / 1e9


def gathered(view: View, size: int, batches: int = 6) -> list[str]:
    """A row of transactions that `apply_many` gets ``size`` at a time, the first batch apart; verified."""
    stream, keeper = stream_of(view, size * batches), Kept(view, "views")
    keeper.load(stream)
    starts = range(0, len(stream.transactions), size)
    first, *others = [keeper.prepare(stream.transactions[start : start + size]) for start in starts]
    keeper.commit(first)
    gc.collect()
    seconds = []
    for batch in others:
        started = time.process_time_ns()
        keeper.commit(batch)
        seconds.append((time.process_time_ns() - started) / 1e9 / size)
    keeper.workspace.verify()
    p50, worst = 1e6 * float(np.median(seconds)), 1e6 * max(seconds)
    title = f"five finance views, `apply_many` of {size:,}"
    return [title, f"{1e6 / p50:,.0f}", number(p50), "", number(worst), "", "", ""]


def n_calls(workspace: Workspace, transactions: Sequence[Staged]) -> float:
    """Calls of Python functions, of a commit."""
    found = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        for staged in transactions:
            commit(workspace, staged)
    finally:
        sys.setprofile(None)
    return found / len(transactions)


def measured(workload: Workload, count: int, folder: Path) -> list[str]:
    """A row of the table.  Raises AssertionError where the peer's result is another."""
    view, stream = workload.view, stream_of(workload.view, count)
    if workload.in_folder:
        workspace = Workspace.open(folder / "ws", durability="interval", single_changes=workload.way)
    else:
        workspace = Workspace(single_changes=workload.way)
    for name, rows in stream.tables.items():
        workspace.load(name, pa.table(dict(zip(view.columns[name], rows.T, strict=True))))
    if workload.rules:
        workspace.install(view.rules, workload.strategy)
    transactions = as_tuples(stream)
    timed = transactions[WARM_UP:-COUNTED]
    for staged in transactions[:WARM_UP]:
        commit(workspace, staged)
    gc.collect()
    seconds, clock = np.empty(len(timed)), of_the_clock()
    for place, staged in enumerate(timed):
        started = time.process_time_ns()
        commit(workspace, staged)
        seconds[place] = (time.process_time_ns() - started) / 1e9
    calls = n_calls(workspace, transactions[-COUNTED:])
    beside = ["", ""]
    if workload.rules and not workload.in_folder:
        if view.differential and PROGRAM.is_built():
            beside = _beside(workspace, view, stream, float(np.median(seconds)))
        else:
            workspace.verify()
    workspace.close()
    p50, p99, worst = (1e6 * float(np.percentile(seconds - clock, share)) for share in (50, 99, 100))
    figures = [f"{1e6 / p50:,.0f}", number(p50), number(p99), number(worst), f"{calls:,.0f}"]
    return [workload.title, *figures, *beside]


def _beside(workspace: Workspace, view: View, stream: Stream, ours: float) -> list[str]:
    """What differential dataflow does a second, by the median, and ours over that."""
    ((relation, edges),) = stream.tables.items()
    peer = Differential(threads=1)
    peer.load({relation: pa.table({"src": edges[:, 0], "dst": edges[:, 1]})}, {})
    changes = [transaction[relation] for transaction in stream.transactions]
    seconds, result = [], (0, 0)
    for event in peer.keep(view.differential, Batches(changes, 1, 1e6)):
        if isinstance(event, Loaded | Commit):
            result = event.weight, event.checksum
        if isinstance(event, Commit):
            seconds.append(event.processor)
    digest = Digest()
    for place, head in enumerate(view.heads):
        digest.add_table(workspace[head].table, place)
    if digest.sums != result:
        raise AssertionError(f"{view.title}: {digest.sums}, differential dataflow {result}")
    theirs = float(np.median(seconds[WARM_UP:-COUNTED]))
    return [f"{1 / theirs:,.0f}", f"{theirs / ours:.2f}"]


def report(quick: bool) -> str:
    """The table."""
    machine, version = describe(), PROGRAM.version()
    count = 400 if quick else 3_000
    rows = []
    for workload in workloads(quick):
        with tempfile.TemporaryDirectory(prefix="lftj-single-changes-") as folder:
            rows.append(measured(workload, count, Path(folder)))
    books = views.five("order-book-4000" if quick else "order-book")
    rows += [gathered(books, size) for size in ((50,) if quick else (100, 1_000))]
    heads = [
        "workload",
        "a second",
        "p50, us",
        "p99, us",
        "worst, us",
        "calls",
        "differential, a second",
        "ratio",
    ]
    return "\n\n".join(
        [
            "# Single changes",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']};"
            f" one thread. Load at the start {machine['load']}.",
            f"{count - WARM_UP - COUNTED:,} transactions of one change, or of an event of the order book;"
            f" every head is kept after each. Processor time, less the {1e6 * of_the_clock():.2f} µs that"
            " reading the clock takes, which the ratio has on our side. Beside it differential dataflow"
            f" {version or '(not built)'}, results compared; a ratio above 1: we are ahead.",
            table(heads, rows),
        ]
    )


def main() -> None:
    show(report(is_quick()), "single_changes/results.md")


if __name__ == "__main__":
    main()
