"""``python -m bench.tpch_views``: TPC-H queries kept up to date while orders come and go, beside DuckDB.

    python -m bench.tpch_views                 into bench/results/tpch-views.md
    python -m bench.tpch_views --only Q3,Q5    these alone, printed

TPC-H at scale 0.01: Q1, Q3, Q5, Q6, Q10, Q12, Q14 and Q19 as rules (:mod:`bench.tpch`).  A batch erases
orders with their line items and brings back as many that were erased before, as TPC-H's refreshes do.  Each
strategy keeps the heads of one query; DuckDB takes the same changes, which are not timed, and computes the
query anew.  After every batch all heads are DuckDB's, or there are no figures.  Times are processor time, one
thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from bench import datasets
from bench.report.machine import describe
from bench.report.markdown import number, table
from bench.report.options import HOME
from bench.tpch import QUERIES, Changes, Query, Row, Sql, tables
from maintenance import Workspace
from maintenance.workspace.budget import view_bytes

STRATEGIES = ("auto", "delta", "views", "trace", "recompute")
BATCHES = {1: 12, 15: 8, 150: 6}
"""By orders of a batch, how many batches are timed.  15 are a thousandth of all: a refresh of TPC-H."""

HEADS = ["query", "orders a batch", "kept by", "operations per changed row", "CPU ms a batch: median (range)"]
HEADS += ["views, bytes", "all memory, MB"]


class Refreshes:
    """Batches of orders with their line items: so many go, and those that went before come back."""

    def __init__(self, loaded: dict[str, pa.Table], seed: int) -> None:
        self._orders: dict[Any, Row] = {row[0]: row for row in _rows(loaded["orders"])}
        self._items: dict[Any, list[Row]] = {}
        for row in _rows(loaded["lineitem"]):
            self._items.setdefault(row[0], []).append(row)
        self._here: deque[Any] = deque(np.random.default_rng(seed).permutation(list(self._orders)).tolist())
        self._gone: list[Any] = []

    def batch(self, size: int) -> Changes:
        """``size`` orders go, and those of the batch before come back."""
        going, coming = [self._here.popleft() for _ in range(size)], self._gone
        self._here.extend(coming)
        self._gone = going
        return {
            "orders": ([self._orders[key] for key in going], [self._orders[key] for key in coming]),
            "lineitem": (self._items_of(going), self._items_of(coming)),
        }

    def _items_of(self, orders: list[Any]) -> list[Row]:
        return [row for key in orders for row in self._items.get(key, ())]


@dataclass
class Kept:
    """A workspace that keeps the heads of a query by one strategy, and what its batches took."""

    workspace: Workspace
    query: Query
    seconds: list[float] = field(default_factory=list)
    operations: list[float] = field(default_factory=list)

    @classmethod
    def by(cls, strategy: str, query: Query, loaded: dict[str, pa.Table]) -> Kept:
        workspace = Workspace()
        for name, rows in loaded.items():
            workspace.load(name, rows)
        workspace.install(query.rules, strategy=strategy, threads=1)
        return cls(workspace, query)

    def commit(self, changes: Changes, sql: Sql) -> None:
        """One batch, of which the tables are made beforehand."""
        made = {
            name: (sql.table(name, erased), sql.table(name, inserted))
            for name, (erased, inserted) in changes.items()
        }
        started = time.process_time()
        with self.workspace.transaction() as transaction:
            for name, (erased, inserted) in made.items():
                transaction.erase(name, erased)
                transaction.insert(name, inserted)
        self.seconds.append(time.process_time() - started)
        n_rows = sum(erased.num_rows + inserted.num_rows for erased, inserted in made.values())
        operations = sum(figures.operations for figures in transaction.stats.rules.values())
        self.operations.append(operations / n_rows)

    def check(self, answers: dict[str, dict[Row, Any]]) -> None:
        """Raises AssertionError where a head is not what DuckDB computes."""
        for name in self.query.heads:
            columns = [column.to_pylist() for column in self.workspace[name].columns]
            found = {row[:-1]: row[-1] for row in zip(*columns, strict=True)}
            if found != answers[name]:
                raise AssertionError(f"{name} is not DuckDB's")

    @property
    def views(self) -> int:
        """Memory of the views."""
        state = self.workspace._state
        return view_bytes(state.heads, state.versions, list(state.heads))

    def row(self, title: str, size: int, strategy: str) -> list[str]:
        everything = sum(self.workspace.stats.memory_bytes.values())
        return [
            title,
            str(size),
            strategy,
            number(statistics.median(self.operations)),
            spread(self.seconds),
            f"{self.views:,}",
            number(everything / 1e6),
        ]


def _rows(loaded: pa.Table) -> Iterator[Row]:
    return zip(*(column.to_pylist() for column in loaded.columns), strict=True)


def spread(seconds: list[float]) -> str:
    """Median and range in milliseconds."""
    median, least, most = statistics.median(seconds), min(seconds), max(seconds)
    return f"{1e3 * median:.2f} ({1e3 * least:.2f} - {1e3 * most:.2f})"


def measure(
    title: str, loaded: dict[str, pa.Table], strategies: tuple[str, ...] = STRATEGIES
) -> Iterator[list[str]]:
    """Rows of the table for a query.  Raises AssertionError where an answer is wrong."""
    query = QUERIES[title]
    sql = Sql(loaded)
    sql.one_thread()
    kept = {strategy: Kept.by(strategy, query, loaded) for strategy in strategies}
    refreshes = Refreshes(loaded, seed=1)
    for size, wanted in BATCHES.items():
        anew = []
        for turn in range(2 + wanted):
            changes = refreshes.batch(size)
            sql.apply(changes)
            started = time.process_time()
            answers = sql.answers(query)
            anew.append(time.process_time() - started)
            for strategy in strategies if turn % 2 else strategies[::-1]:
                kept[strategy].commit(changes, sql)
                kept[strategy].check(answers)
        for strategy, one in kept.items():
            one.seconds, one.operations = one.seconds[2:], one.operations[2:]  # the first load kernels
            yield one.row(title, size, strategy)
            one.seconds, one.operations = [], []
        yield [title, str(size), "DuckDB, anew", "-", spread(anew[2:]), "-", "-"]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tpch_views", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", default="", help="queries, such as Q3,Q5; the table is printed alone")
    chosen = parser.parse_args().only
    loaded = tables(datasets.data_folder())
    rows: list[list[str]] = []
    for title in chosen.split(",") if chosen else QUERIES:
        print(title, file=sys.stderr)
        rows += measure(title, loaded)
    text = table(HEADS, rows)
    print(text)
    if not chosen:
        HOME.mkdir(parents=True, exist_ok=True)
        machine = describe()
        heading = (
            f"# TPC-H queries kept up to date\n\n{machine['processor']}, {machine['cores']} cores,"
            f" {machine['date']}; load at the start {machine['load']}. Scale 0.01, orders that go and come"
            " back with their line items; processor time.\n\n"
        )
        (HOME / "tpch-views.md").write_text(heading + text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
