"""Placing: a task's rows of the inputs to packets for the cells (:mod:`spark_bridge.placing.grids`).

Cost: per row one hash per cut column and one sort of small numbers per placement; a
record batch is written once for all cells that it is copied to.  In memory are a slice of
rows, twice while it is put in order, and for each placer a batch of packets
(:mod:`spark_bridge.placing.slices`): the same for two partitions and for ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import DataError, NullError
from lftj.storage.sorting import first_rows_of_equal
from lftj.values.domains import Domains
from spark_bridge.placing.grids import Grid, HeadGrids
from spark_bridge.placing.head_plan import HeadPlan
from spark_bridge.placing.head_rule import CUT, HEAVY, LIGHT, Placement
from spark_bridge.placing.packets import CellAddress, PacketWriter, packed
from spark_bridge.placing.slices import gathered, slices
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.placing.value_hash import hashes_of, parts, row_hashes

InputNulls = Literal["refuse", "drop", "keep"]


@dataclass
class Placer:
    """Places rows of the relations that a head reads."""

    plan: HeadPlan
    grids: HeadGrids
    nulls: InputNulls = "refuse"
    stage: int = 0  # that the packets are for
    keyed: frozenset[str] = frozenset()  # relations whose rows come by way of another stage
    _writer: PacketWriter = field(default_factory=PacketWriter)

    def packets(self, reader: TagReader, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Packets of everything that comes."""
        tables = (
            (name, without_nulls(name, rows, rows.schema, self.nulls))
            for batch in batches
            for name, rows in reader.tables(batch)
        )
        return placed(tables, [self])

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.plan.reads) - self.keyed

    def place(self, name: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Take in rows of a relation; gives packets whenever there are enough of them."""
        hashes = _Hashes(name, rows, Domains())  # of these rows alone: dictionaries never shrink
        for grid in self.grids.grids:
            for placement in self.plan.rules[grid.rule].placements(grid.marks):
                if placement.relation == name:
                    yield from self._sent(rows, hashes, grid, placement)

    def rest(self) -> list[pa.RecordBatch]:
        """The packets that are left."""
        return self._writer.rest()

    def _sent(
        self, rows: pa.Table, hashes: _Hashes, grid: Grid, placement: Placement
    ) -> Iterator[pa.RecordBatch]:
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
            place = [int(number) for number in np.unravel_index(part, shares)] if shares else []
            cells = grid.cells_of(placement, place)
            for packet in packed(some):
                for cell in cells:
                    pid = self.grids.partition_of(cell)
                    yield from self._writer.add(pid, cell, grid_text, placement.label, packet, self.stage)


@dataclass
class KeyPlacer:
    """Places changes of relations with a key by its hash, each in one of some partitions.

    ``keys``: by relation, the columns of its key by place.
    """

    keys: Mapping[str, Sequence[int]]
    partitions: int
    stage: int
    _writer: PacketWriter = field(default_factory=PacketWriter)

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.keys)

    def place(self, name: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        hashes = _Hashes(name, rows, Domains())
        of_keys = row_hashes([hashes.of(column) for column in self.keys[name]])
        grid_text = CellAddress(0, 0, ()).grid_text()
        for pid, some in split(rows, parts(of_keys, "key", self.partitions)):
            for packet in packed(some):
                yield from self._writer.add(pid, 0, grid_text, name, packet, self.stage)

    def rest(self) -> list[pa.RecordBatch]:
        return self._writer.rest()


def placed(
    tables: Iterable[tuple[str, pa.Table]], placers: Sequence[Placer | KeyPlacer]
) -> Iterator[pa.RecordBatch]:
    """Packets of rows of relations from every placer that reads them."""
    for name, rows in gathered(tables):
        reading = [placer for placer in placers if name in placer.reads]
        for piece in slices(rows):
            if piece.num_rows:
                for placer in reading:
                    yield from placer.place(name, piece)
    for placer in placers:
        yield from placer.rest()


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
    if nulls not in ("refuse", "drop", "keep"):
        raise ValueError(f"nulls is {nulls!r}; it can be 'refuse', 'drop' or 'keep'")


def without_nulls(name: str, rows: pa.Table, schema: pa.Schema, nulls: InputNulls) -> pa.Table:
    """The rows without NULL where ``schema`` has none; the first one raises NullError, but for "drop"."""
    refusing = [field.name for field in schema if not field.nullable]
    having = [label for label in refusing if rows.column(label).null_count]
    if having and nulls != "drop":
        raise NullError(null_refused(name, having[0], nulls))
    return (
        rows.filter(reduce(pc.and_, (rows.column(label).is_valid() for label in having))) if having else rows
    )


def null_refused(relation: str, column: str, nulls: InputNulls) -> str:
    """What is to be said of a NULL that a relation may not hold."""
    why = 'pass nulls="drop" to leave such rows out, or nulls="keep"'
    if nulls == "keep":
        why = "its schema has it NOT NULL; give a DataFrame in which it may be NULL"
    return f"relation {relation!r}, column {column!r}: NULL, and it holds none: {why}"


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
