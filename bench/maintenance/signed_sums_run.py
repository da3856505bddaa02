"""Exact sums under signed changes, in lftj and in DuckDB: what a child of the harness runs.

Invariant: lftj's sums are, bit for bit, ``math.fsum`` of each group, or there are no figures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.maintenance.signed_sums import exact_sums
from bench.report.repetition import Times, repeated
from bench.workload import Workload
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from lftj.storage.signed_rows import Columns
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from maintenance.groups.accumulator import GroupRows
from maintenance.groups.grouped import GroupedAggregate, accumulator_for

KERNEL_RUNS = 5


class MaintainedSums:
    """A maintained ``sum`` of floats by group."""

    def __init__(self, workload: Workload, tables: Mapping[str, pa.Table]) -> None:
        self._table = tables["summands"]
        self._kernel_seconds = math.inf

    def load(self) -> None:
        domains = Domains()
        integer, number = (ColumnType(domains.of(t), t) for t in (pa.int64(), pa.float64()))
        schema = Schema((Column("g", integer), Column("sum", number)), functional=True)
        self._head = CheckedHead("total", ("g",), Aggregate("sum", (Variable("v"),)), schema, (0, 0))
        self._types = {"g": integer, "v": number}
        self._columns = [integer.domain.encode(self._table["g"]), number.domain.encode(self._table["v"])]
        self._weights = self._table["w"].to_numpy()

    def _staged(self) -> tuple[Columns, np.ndarray]:
        aggregate = GroupedAggregate(self._head, self._types, accumulator_for(self._head, self._types))
        return aggregate.stage(self._columns, self._weights)

    def first(self) -> int:
        (groups, codes), weights = self._staged()
        sums = self._types["v"].domain.decode(codes, pa.float64()).to_numpy()
        exact = exact_sums(self._table)[groups]
        assert (weights == 1).all() and (sums.view(np.int64) == exact.view(np.int64)).all(), "not exact"
        return len(groups)

    def times(self, least: int, spend: float) -> Iterator[Times]:
        yield from repeated(self._staged, least, spend)
        self._kernel_seconds = min(self._kernel_run() for _ in range(KERNEL_RUNS))

    def _kernel_run(self) -> float:
        """Seconds of the accumulators over rows that are sorted by group."""
        order = np.argsort(self._columns[0], kind="stable")
        group, value, weights = (a[order] for a in (*self._columns, self._weights))
        keys, starts = np.unique(group, return_index=True)
        counts = np.add.reduceat(weights, starts)
        offsets = np.append(starts, len(group))
        accumulator = accumulator_for(self._head, self._types)
        assert accumulator is not None
        rows = GroupRows([keys], np.arange(len(keys)), counts, offsets, [value], weights, len(keys))
        started = time.perf_counter()
        accumulator.stage(rows)
        taken = time.perf_counter() - started
        accumulator.keep()
        self._bytes = accumulator.nbytes / len(keys)
        return taken

    def figures(self) -> dict[str, float]:
        rate = len(self._weights) / self._kernel_seconds
        return {"summands/s": rate, "bytes/group": self._bytes, "inexact groups": 0}


class DuckSums:
    """The same table in DuckDB."""

    def __init__(self, workload: Workload, tables: Mapping[str, pa.Table]) -> None:
        self._workload = workload
        self._table = tables["summands"]

    def load(self) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": self._workload.threads})
        self._connection.register("arrow", self._table)
        self._connection.execute("CREATE TABLE summands AS SELECT * FROM arrow")

    def _run(self) -> Any:
        return self._connection.execute(self._workload.queries["duckdb"]).fetchnumpy()

    def first(self) -> int:
        found = self._run()
        exact = exact_sums(self._table)[found["g"]]
        self._inexact = int((found["v"] != exact).sum())
        return len(found["g"])

    def times(self, least: int, spend: float) -> Iterator[Times]:
        yield from repeated(self._run, least, spend)

    def figures(self) -> dict[str, float]:
        return {"inexact groups": self._inexact}
