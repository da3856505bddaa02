"""What is timed of a rule that lftj keeps up to date: commits, installing, bulk loading.

A :class:`Subject` is one variant of one workload of :mod:`bench.maintenance.workloads` in
one process.  It is loaded, gives its first answer, and is timed.  Heads that
went through transactions are verified before the figures are told.
"""

from __future__ import annotations

import gc
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

import lftj
from bench.maintenance.edge_stream import EdgeStream, rmat_stream
from bench.maintenance.workloads import BATCHES, CHURNED, COMMITS, IN_FLIGHT, WARM_UP_COMMITS
from bench.report.repetition import Times, percentiles, repeated
from bench.workload import Workload
from maintenance import Transaction, Workspace


class Subject(ABC):
    """One variant of a workload; ``load``, ``first``, ``times``, ``figures`` are called in this order."""

    def __init__(
        self,
        workload: Workload,
        tables: Mapping[str, pa.Table],
        strategy: str = "auto",
        record_gap: int | None = None,
    ) -> None:
        self.rule = workload.queries["lftj"]
        self.head = self.rule.partition("(")[0]
        self.tables = tables
        self.strategy = strategy
        self.record_gap = record_gap
        self.workspace = self.fresh()

    def fresh(self) -> Workspace:
        """An empty workspace."""
        return Workspace() if self.record_gap is None else Workspace(record_gap=self.record_gap)

    def load(self) -> None:
        for name, table in self.tables.items():
            self.workspace.load(name, table)

    @abstractmethod
    def first(self) -> int:
        """The number of tuples of the head, computed for the first time."""

    @abstractmethod
    def times(self, least: int, spend: float) -> Iterator[Times]:
        """Times of the runs after the first."""

    def figures(self) -> dict[str, float]:
        """The records of the workspace as it is now."""
        head = self.workspace._heads[self.head]
        if not head.n_records:
            return {}
        return {
            "records": head.n_records,
            "sensitivity MiB": self.workspace.sensitivity_bytes / 2**20,
            "bytes/record": self.workspace.sensitivity_bytes / head.n_records,
        }


class Commits(Subject):
    """Single-edge transactions on an installed rule."""

    def first(self) -> int:
        self.workspace.install(self.rule, self.strategy)
        return self.workspace[self.head].count

    def times(self, least: int, spend: float) -> Iterator[Times]:
        edge = self.tables["edge"]
        columns = [column.to_numpy() for column in edge.columns]
        stream = rmat_stream(columns[0], columns[1], scale=int(columns[1].max()).bit_length())
        for _ in range(WARM_UP_COMMITS):
            self._commit(stream)
        gc.collect()
        seconds = []
        for _ in range(COMMITS):
            taken = self._commit(stream)
            seconds.append(taken[0])
            yield taken
        self._seconds = np.array(seconds)
        self.workspace.verify()

    def _commit(self, stream: EdgeStream) -> Times:
        weight, edge = next(stream)
        return timed_change(self.workspace, "edge", edge, weight)[1]

    def figures(self) -> dict[str, float]:
        return {**percentiles(self._seconds), **super().figures()}


class PutBack(Commits):
    """Single-edge transactions on an installed rule: an edge goes, and then it comes back."""

    def times(self, least: int, spend: float) -> Iterator[Times]:
        edges = np.array([column.to_numpy() for column in self.tables["edge"].columns]).T
        drawn = np.random.default_rng(1).integers(0, len(edges), 1 + CHURNED)
        seconds = []
        for number, edge in enumerate(edges[drawn].tolist()):
            for sign in (-1, 1):
                _, taken = timed_change(self.workspace, "edge", tuple(edge), sign)
                if number:  # the first erasure of a recursion counts all that there is
                    seconds.append(taken[0])
                    yield taken
        self._seconds = np.array(seconds)
        self.workspace.verify()

    def figures(self) -> dict[str, float]:
        return {"changes/s": len(self._seconds) / float(self._seconds.sum()), **super().figures()}


class Batches(Commits):
    """Many single-edge transactions on an installed rule, all of them in one call."""

    def times(self, least: int, spend: float) -> Iterator[Times]:
        edge = self.tables["edge"]
        columns = [column.to_numpy() for column in edge.columns]
        stream = rmat_stream(columns[0], columns[1], scale=int(columns[1].max()).bit_length())
        seconds = []
        for number in range(BATCHES + 1):
            signs, edges = zip(*itertools.islice(stream, IN_FLIGHT), strict=True)
            rows = dict(zip(edge.column_names, np.array(edges).T, strict=True))
            batch = pa.table({**rows, "weight": np.array(signs), "txn": np.arange(IN_FLIGHT)})
            gc.collect()
            started, busy = time.perf_counter(), time.process_time()
            self._apply(batch)
            taken = time.perf_counter() - started, time.process_time() - busy
            if number:  # the first one plans
                seconds.append(taken[0])
                yield taken
        self._seconds = np.array(seconds)
        self.workspace.verify()

    def _apply(self, batch: pa.Table) -> None:
        applied = self.workspace.apply_many({"edge": batch})
        assert len(applied) == IN_FLIGHT and not applied.stats.one_by_one


class OneByOne(Batches):
    """The same, a commit each."""

    def _apply(self, batch: pa.Table) -> None:
        *columns, weights, _ = (column.to_pylist() for column in batch.columns)
        for *row, weight in zip(*columns, weights, strict=True):
            with self.workspace.transaction() as transaction:
                (transaction.insert if weight > 0 else transaction.erase)("edge", [tuple(row)])


class Installing(Subject):
    """Installing a rule over relations that are loaded and indexed."""

    def first(self) -> int:
        self.workspace.install(self.rule, self.strategy)
        return self.workspace[self.head].count

    def times(self, least: int, spend: float) -> Iterator[Times]:
        versions = self.workspace._state.versions
        indices = [(name, key) for name in self.tables for key in versions[name].index_keys]

        def prepare() -> None:
            self.workspace = self.fresh()
            self.load()
            for name, key in indices:
                self.workspace.base_version(name).index_at(key)

        def install() -> None:
            self.workspace.install(self.rule, self.strategy)

        yield from repeated(install, least, spend, prepare=prepare)


class Evaluating(Subject):
    """The rule evaluated whole: what commits save, and what recording adds to."""

    def load(self) -> None:
        self.database = lftj.Database()
        for name, table in self.tables.items():
            self.database.load(name, table)

    def first(self) -> int:
        return self.database.query(self.rule, threads=1).num_rows

    def times(self, least: int, spend: float) -> Iterator[Times]:
        yield from repeated(self.first, least, spend)

    def figures(self) -> dict[str, float]:
        return {}


class BulkLoading(Subject):
    """Load the relation, then install the rule."""

    def first(self) -> int:
        self.workspace = self.fresh()
        self.load()
        self.workspace.install(self.rule, self.strategy)
        return self.workspace[self.head].count

    def times(self, least: int, spend: float) -> Iterator[Times]:
        yield from repeated(self.first, least, spend)
        self.workspace.verify()


class OneTransaction(BulkLoading):
    """Install the rule over empty relations, then insert everything in one transaction."""

    def first(self) -> int:
        self.workspace = self.fresh()
        for name, table in self.tables.items():
            self.workspace.load(name, table.schema.empty_table())
        self.workspace.install(self.rule, self.strategy)
        with self.workspace.transaction() as transaction:
            for name, table in self.tables.items():
                transaction.insert(name, table)
        return self.workspace[self.head].count


_SUBJECTS: Mapping[tuple[str, str], tuple[type[Subject], str, int | None]] = {
    ("commit", ""): (Commits, "auto", None),
    ("commit", "trace"): (Commits, "trace", None),
    ("commit", "exact records"): (Commits, "trace", 0),
    ("commit", "recompute"): (Evaluating, "", None),
    ("put back", ""): (PutBack, "stages", None),
    ("put back", "recompute"): (Evaluating, "", None),
    ("batch", ""): (Batches, "auto", None),
    ("batch", "one by one"): (OneByOne, "auto", None),
    ("install", ""): (Installing, "trace", None),
    ("install", "exact records"): (Installing, "trace", 0),
    ("install", "without records"): (Installing, "delta", None),
    ("install", "plain evaluation"): (Evaluating, "", None),
    ("bulk load", ""): (BulkLoading, "auto", None),
    ("bulk load", "one transaction"): (OneTransaction, "auto", None),
}
"""By task and variant: what is timed, the strategy, the gap of records."""


def subject(workload: Workload, variant: str, tables: Mapping[str, pa.Table]) -> Subject:
    """What is timed for a variant of lftj on a workload; nothing is loaded yet."""
    kind, strategy, record_gap = _SUBJECTS[workload.task, variant]
    return kind(workload, tables, strategy, record_gap)


def timed_change(
    workspace: Workspace, relation: str, row: tuple[int, ...], sign: int
) -> tuple[Transaction, Times]:
    """A transaction that inserts or erases one row, which has to change the relation, and its times."""
    rows = [row]
    started, busy = time.perf_counter(), time.process_time()
    with workspace.transaction() as transaction:
        if sign > 0:
            transaction.insert(relation, rows)
        else:
            transaction.erase(relation, rows)
    taken = time.perf_counter() - started, time.process_time() - busy
    assert sum(transaction.stats.no_changes.values()) == 0
    return transaction, taken
