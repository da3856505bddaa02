"""Placing: a task's rows of the inputs to packets for the cells (:mod:`spark_bridge.placing.grids`).

Cost: per row one hash per cut column and one sort of small numbers per placement; a
record batch is written once for all cells that it is copied to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from lftj.errors import DataError, NullError
from lftj.storage.sorting import first_rows_of_equal
from lftj.values.domains import Domains
from spark_bridge.placing.grids import Grid, HeadGrids
from spark_bridge.placing.head_plan import CUT, HEAVY, LIGHT, HeadPlan, Placement
from spark_bridge.placing.packets import CellAddress, PacketWriter
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.placing.value_hash import hashes_of, parts

BUFFERED_ROWS = 1 << 19
"""Rows that a task gathers before it sends them: packets are the larger for it."""

Nulls = Literal["refuse", "drop"]


@dataclass
class Placer:
    """Places rows of the relations that a head reads."""

    plan: HeadPlan
    grids: HeadGrids
    nulls: Nulls = "refuse"
    stage: int = 0  # that the packets are for
    _writer: PacketWriter = field(default_factory=PacketWriter)

    def packets(self, reader: TagReader, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Packets of everything that comes."""
        waiting: dict[str, list[pa.Table]] = {}
        n_waiting = 0
        for batch in batches:
            for name, rows in reader.tables(batch):
                waiting.setdefault(name, []).append(rows)
                n_waiting += rows.num_rows
            if n_waiting >= BUFFERED_ROWS:
                yield from self._placed(waiting)
                waiting, n_waiting = {}, 0
        yield from self._placed(waiting)
        yield from self.rest()

    def _placed(self, waiting: dict[str, list[pa.Table]]) -> Iterator[pa.RecordBatch]:
        for name, tables in waiting.items():
            rows = without_nulls(name, pa.concat_tables(tables).combine_chunks(), self.nulls)
            yield from self.placed(name, rows)

    def placed(self, name: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Take in rows of a relation, without NULL; gives packets when there are enough of them."""
        if rows.num_rows:
            self._place(name, rows)
            yield from self._writer.full()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The packets that are left."""
        yield from self._writer.rest()

    def _place(self, name: str, rows: pa.Table) -> None:
        hashes = _Hashes(name, rows, Domains())  # of these rows alone: dictionaries never shrink
        for grid in self.grids.grids:
            for placement in self.plan.rules[grid.rule].placements(grid.marks):
                if placement.relation == name:
                    self._send(rows, hashes, grid, placement)

    def _send(self, rows: pa.Table, hashes: _Hashes, grid: Grid, placement: Placement) -> None:
        chosen: np.ndarray | None = None  # which rows the placement takes; None for all
        key = np.zeros(rows.num_rows, np.int64)
        shares = []
        cut = dict(grid.shares)
        for column, axis, mark in placement.axes:
            heavy = self.grids.heavy[grid.rule].get(axis)
            if heavy and (mark != CUT or axis in grid.light):
                wanted = hashes.among(column, heavy) == (mark == HEAVY)
                assert mark in (CUT, HEAVY, LIGHT)
                chosen = wanted if chosen is None else chosen & wanted
            if mark == CUT:
                shares.append(cut[axis])
                key = key * cut[axis] + parts(hashes.of(column), axis, cut[axis])
        if chosen is not None:
            taken = np.flatnonzero(chosen)
            rows, key = rows.take(pa.array(taken)), key[taken]
        grid_text = CellAddress(0, grid.rule, tuple(grid.marks.items())).grid_text()
        for part, some in split(rows, key):
            packet = packed(some)
            place = [int(number) for number in np.unravel_index(part, shares)] if shares else []
            for cell in grid.cells_of(placement, place):
                pid = self.grids.partition_of(cell)
                self._writer.add(pid, cell, grid_text, placement.label, packet, self.stage)


class _Hashes:
    """Hashes of the columns of some rows, each when first asked for."""

    def __init__(self, name: str, rows: pa.Table, domains: Domains) -> None:
        self._name, self._rows, self._domains = name, rows, domains
        self._by_column: dict[int, np.ndarray] = {}

    def of(self, column: int) -> np.ndarray:
        if column not in self._by_column:
            try:
                self._by_column[column] = hashes_of(self._rows.column(column), self._domains)
            except DataError as error:
                label = self._rows.column_names[column]
                raise type(error)(f"relation {self._name!r}, column {label!r}: {error}") from None
        return self._by_column[column]

    def among(self, column: int, values: tuple[int, ...]) -> np.ndarray:
        return np.isin(self.of(column), np.array(values, np.uint64))


def check_nulls(nulls: str) -> None:
    """Raise ValueError for what ``nulls=`` can't be."""
    if nulls not in ("refuse", "drop"):
        raise ValueError(f"nulls is {nulls!r}; it can be 'refuse' or 'drop'")


def without_nulls(name: str, rows: pa.Table, nulls: Nulls) -> pa.Table:
    """The rows that have no NULL; with "refuse" the first one raises NullError."""
    for label, column in zip(rows.column_names, rows.columns, strict=True):
        if column.null_count and nulls == "refuse":
            raise NullError(
                f"relation {name!r}, column {label!r}: NULL; relations hold no NULL:"
                ' pass nulls="drop" to leave such rows out'
            )
    return rows.drop_null() if any(column.null_count for column in rows.columns) else rows


def split(rows: pa.Table, key: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """The rows by key, keys ascending; rows keep their order."""
    if not len(key):
        return
    if key[0] == key[-1] and (key == key[0]).all():
        yield int(key[0]), rows
        return
    small = key.astype(np.uint16) if key.max() < 1 << 16 else key  # numpy sorts these by radix
    order = np.argsort(small, kind="stable")
    ordered = key[order]
    starts = first_rows_of_equal([ordered], len(ordered))
    rows = rows.take(pa.array(order))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        yield int(ordered[start]), rows.slice(start, end - start)


def packed(rows: pa.Table) -> bytes:
    """A table as one record batch without its schema."""
    batches = rows.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)
    return bytes(batch.serialize())
