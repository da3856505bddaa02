"""Replaying an order book's changes, in lftj and in DuckDB: what a child of the harness runs.

Invariants

1. Both sides get the same batches: the changes in their order, cut every
   ``batch`` changes and at every checkpoint.
2. The heads' tuples are read at each checkpoint, outside of the times; the
   checksum over all of them is that of the first run, which the harness has
   compared with the expected one, or the replay fails.
3. What turns changes into Arrow tables or rows is not timed on either side.
"""

from __future__ import annotations

import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.maintenance.order_book import COLUMNS, HEADS, RELATIONS, RULES, SAMPLE, SQL, checksum
from bench.report.repetition import Times, percentiles
from bench.workload import Workload
from maintenance import Workspace

WARM_UP_BATCHES = 100

Heads = dict[str, list[tuple[int, float]]]
Batch = dict[str, pa.Table]
"""Relation to its changes: its columns and ``weight``, each tuple once, its weight not 0."""


class Replay(ABC):
    """One side; ``load``, ``first``, ``times``, ``figures`` are called in this order."""

    sampled = False
    """Only :data:`SAMPLE` batches are timed, where there are more."""

    def __init__(self, workload: Workload, tables: Mapping[str, pa.Table]) -> None:
        self.workload = workload
        self.batch = workload.batch
        self.changes = tables["changes"]
        n_changes = self.changes.num_rows
        self.step = max(100, n_changes // 1_000 * 100)
        self.checkpoints = {*range(self.step, n_changes, self.step), n_changes}
        self._seconds = np.empty(0)
        self._expected = 0

    @abstractmethod
    def load(self) -> None:
        """Begin with an empty order book."""

    @abstractmethod
    def prepare(self, batch: Batch) -> Any:
        """A batch in the form that ``apply`` takes."""

    @abstractmethod
    def apply(self, prepared: Any) -> object:
        """Take a batch in; afterwards the heads are known."""

    def skip(self, prepared: Any) -> None:
        """Take a batch in that is not timed."""
        self.apply(prepared)

    @abstractmethod
    def heads(self) -> Heads:
        """Key and value of every tuple of every head."""

    def cuts(self, size: int) -> list[int]:
        """Ends of the batches of ``size`` changes each."""
        return sorted({*range(size, self.changes.num_rows, size), *self.checkpoints})

    def batches(self, cuts: list[int]) -> Iterator[tuple[int, Batch]]:
        """Number of changes so far, and the batch."""
        start = 0
        for end in cuts:
            part = self.changes.slice(start, end - start)
            yield end, {name: found for name in RELATIONS if (found := _net(part, name)).num_rows}
            start = end

    def first(self) -> int:
        """The checksum of a replay with one batch per checkpoint."""
        found = 0
        for _, batch in self.batches(sorted(self.checkpoints)):
            self.apply(self.prepare(batch))
            found = checksum(self.heads(), found)
        self._expected = found
        return found

    def times(self, least: int, spend: float) -> Iterator[Times]:
        cuts = self.cuts(self.batch)
        self.load()
        for _, batch in self.batches(cuts[:WARM_UP_BATCHES]):
            self.apply(self.prepare(batch))
        self.load()
        gc.collect()
        every = max(1, len(cuts) // SAMPLE) if self.sampled else 1
        timed = set(cuts[every - 1 :: every])
        if every > 1:  # what comes between two timed batches is one batch
            before = [cuts[place - 1] for place in range(every - 1, len(cuts), every)]
            cuts = sorted({*timed, *before, *self.checkpoints})
        seconds, found = [], 0
        for end, batch in self.batches(cuts):
            prepared = self.prepare(batch)
            if end not in timed:
                self.skip(prepared)
            else:
                started, busy = time.perf_counter(), time.process_time()
                self.apply(prepared)
                taken = time.perf_counter() - started, time.process_time() - busy
                seconds.append(taken[0])
                yield taken
            if end in self.checkpoints:
                found = checksum(self.heads(), found)
        assert found == self._expected, "the heads at the checkpoints are not those of the first run"
        self._seconds = np.array(seconds)

    def figures(self) -> dict[str, float]:
        total = float(self._seconds.mean()) * len(self.cuts(self.batch))
        return {
            **percentiles(self._seconds),
            "timed batches": len(self._seconds),
            "total s": total,
            "changes/s": self.changes.num_rows / total,
        }


def _net(changes: pa.Table, relation: str) -> pa.Table:
    """The changes of a relation in a batch, added up."""
    found = changes.filter(pa.compute.equal(changes["relation"], RELATIONS[relation]))
    found = found.select([*COLUMNS, "weight"])
    if found.num_rows < 2:
        return found
    summed = found.group_by(list(COLUMNS), use_threads=False).aggregate([("weight", "sum")])
    summed = summed.filter(pa.compute.not_equal(summed["weight_sum"], 0))
    return summed.rename_columns([*COLUMNS, "weight"])


class LftjReplay(Replay):
    """All heads installed in one workspace; a batch is a transaction."""

    def load(self) -> None:
        self.workspace = Workspace()
        empty = pa.table({name: pa.array([], pa.int64()) for name in COLUMNS})
        for relation in RELATIONS:
            self.workspace.load(relation, empty)
        self.workspace.install(RULES)

    def prepare(self, batch: Batch) -> Batch:
        return batch

    def apply(self, prepared: Batch) -> object:
        with self.workspace.transaction() as transaction:
            for relation, changes in prepared.items():
                transaction.apply(relation, changes)
        return transaction

    def heads(self) -> Heads:
        return {head: list(zip(*self.workspace[head].to_pydict().values(), strict=True)) for head in HEADS}

    def times(self, least: int, spend: float) -> Iterator[Times]:
        yield from super().times(least, spend)
        self.workspace.verify()

    def figures(self) -> dict[str, float]:
        strategies = [self.workspace.strategy_of(head) for head in HEADS]
        return {**super().figures(), "heads recomputed": strategies.count("recompute")}


class DuckReplay(Replay):
    """Tables that take each batch in one transaction, and the queries of all heads."""

    def __init__(self, workload: Workload, tables: Mapping[str, pa.Table]) -> None:
        super().__init__(workload, tables)
        self.sampled = workload.batch == 1

    def load(self) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": self.workload.threads})
        for relation in RELATIONS:
            columns = ", ".join(f"{name} BIGINT" for name in COLUMNS)
            self._connection.execute(f"CREATE TABLE {relation} ({columns})")
        for number, statement in enumerate(SQL.values()):
            self._connection.execute(f"PREPARE heads_{number} AS {statement}")

    def prepare(self, batch: Batch) -> list[tuple[str, Any]]:
        """Statements with their parameters, or with the table that they read as ``part``."""
        found: list[tuple[str, Any]] = []
        for relation, changes in batch.items():
            for sign in (-1, 1):
                part = changes.filter(pa.compute.equal(changes["weight"], sign)).select(list(COLUMNS))
                one = part.num_rows == 1
                if not part.num_rows:
                    continue
                if sign > 0:
                    source = "VALUES (?, ?, ?, ?, ?)" if one else "SELECT * FROM part"
                    statement = f"INSERT INTO {relation} {source}"
                else:
                    equal = [f"{relation}.{name} = {'?' if one else f'part.{name}'}" for name in COLUMNS]
                    using = "" if one else "USING part "
                    statement = f"DELETE FROM {relation} {using}WHERE {' AND '.join(equal)}"
                found.append((statement, list(part.to_pylist()[0].values()) if one else part))
        return found

    def skip(self, prepared: list[tuple[str, Any]]) -> None:
        self._connection.execute("BEGIN")
        for statement, given in prepared:
            if isinstance(given, pa.Table):
                self._connection.register("part", given)
                self._connection.execute(statement)
                self._connection.unregister("part")
            else:
                self._connection.execute(statement, given)
        self._connection.execute("COMMIT")

    def apply(self, prepared: list[tuple[str, Any]]) -> list[list[tuple[Any, ...]]]:
        self.skip(prepared)
        return self._answers()

    def _answers(self) -> list[list[tuple[Any, ...]]]:
        """The rows of each statement.  Prepared and fetched as rows is DuckDB's quickest way to so few."""
        return [self._connection.execute(f"EXECUTE heads_{number}").fetchall() for number in range(len(SQL))]

    def heads(self) -> Heads:
        found: Heads = {}
        for heads, rows in zip(SQL, self._answers(), strict=True):
            for place, head in enumerate(heads, start=1):
                found[head] = [(row[0], row[place]) for row in rows if row[place] is not None]
        return found


def replay(workload: Workload, engine: str, tables: Mapping[str, pa.Table]) -> Replay:
    """What is timed for an engine on a workload; nothing is loaded yet."""
    kinds: dict[str, type[Replay]] = {"lftj": LftjReplay, "duckdb": DuckReplay}
    return kinds[engine](workload, tables)
