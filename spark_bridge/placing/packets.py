"""Packets: rows of one placement on their way to one cell, as one row of the shuffle.

A shuffle of rows costs by the row; here the rows of a task that go the same way are one
Arrow record batch in a binary column, and what is copied to several cells is packed once
(``docs/spark.md`` has the figures).

A packet is a row of (``pid``, ``cell``, ``grid``, ``read``, ``rows``, ``stage``): the Spark
partition, the number of the cell, what its grid is like as JSON, the label of the placement,
the record batch without its schema, which both sides know, and, where several stages follow
each other in one query (:mod:`spark_bridge.stages.stages`), the one that it is for.

Invariant: a packet has at most MOST_BYTES, and so has a batch of packets, unless a single row has more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from spark_bridge.placing.slices import slices

SCHEMA = pa.schema(
    [
        ("pid", pa.int32()),
        ("cell", pa.int32()),
        ("grid", pa.string()),
        ("read", pa.string()),
        ("rows", pa.binary()),
        ("stage", pa.int32()),
    ]
)
SPARK_SCHEMA = from_arrow_schema(SCHEMA)

MOST_BYTES = 16 << 20
"""Of a packet, and of a batch of packets."""

_BESIDE_COLUMNS = 64  # bytes of a packet's numbers, and of what Python keeps for its entries in the lists
_PER_COLUMN = 128  # bytes of a record batch's own for a column: its place, and what rounds its buffers up


@dataclass(frozen=True)
class CellAddress:
    """A cell, and what is to be evaluated there: a rule, under what its grid does with the axes."""

    number: int
    rule: int
    marks: tuple[tuple[str, str], ...]

    def grid_text(self) -> str:
        return json.dumps([self.rule, self.marks], separators=(",", ":"))

    @classmethod
    def of(cls, number: int, grid_text: str) -> CellAddress:
        rule, marks = json.loads(grid_text)
        return cls(number, rule, tuple((axis, mark) for axis, mark in marks))


class PacketWriter:
    """Gathers packets; gives batches of a bounded size."""

    def __init__(self) -> None:
        self._columns: list[list[object]] = [[] for _ in SCHEMA]
        self._bytes = 0

    def add(
        self, pid: int, cell: int, grid: str, read: str, rows: bytes, stage: int = 0
    ) -> list[pa.RecordBatch]:
        """Take a packet in; gives what was there before, if both are too much for one batch."""
        size = len(rows) + len(grid) + len(read) + _BESIDE_COLUMNS
        full = self.rest() if self._bytes + size > MOST_BYTES else []
        for column, value in zip(self._columns, (pid, cell, grid, read, rows, stage), strict=True):
            column.append(value)
        self._bytes += size
        return full

    def rest(self) -> list[pa.RecordBatch]:
        """What has been gathered: a batch, or none."""
        columns, self._columns, self._bytes = self._columns, [[] for _ in SCHEMA], 0
        if not columns[0]:
            return []
        arrays = [pa.array(v, f.type) for v, f in zip(columns, SCHEMA, strict=True)]
        return [pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)]


def packed(rows: pa.Table) -> Iterator[bytes]:
    """A table as what packets carry: record batches without their schema; of no rows, one of no rows."""
    most = MOST_BYTES - _BESIDE_COLUMNS - _PER_COLUMN * (2 + rows.num_columns)
    for piece in slices(rows, most_bytes=max(most, MOST_BYTES // 2)):
        batches = piece.combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)
        yield bytes(batch.serialize())


@dataclass
class CellInput:
    """The packets of one cell, by the label of what they belong to."""

    address: CellAddress
    packets: dict[str, list[pa.Buffer]] = field(default_factory=dict)

    def table(self, read: str, schema: pa.Schema) -> pa.Table:
        """All rows of a placement; none where no packet came."""
        batches = [pa.ipc.read_record_batch(packet, schema) for packet in self.packets.get(read, ())]
        return pa.Table.from_batches(batches, schema)


def cell_inputs(batches: Iterator[pa.RecordBatch]) -> list[CellInput]:
    """All packets of a Spark partition by cell, in the order of cells."""
    cells: dict[int, CellInput] = {}
    for batch in batches:
        numbers, grids, reads = (batch.column(n).to_pylist() for n in (1, 2, 3))
        for number, grid, read, rows in zip(numbers, grids, reads, batch.column(4), strict=True):
            cell = cells.get(number)
            if cell is None:
                cell = cells[number] = CellInput(CellAddress.of(number, grid))
            cell.packets.setdefault(read, []).append(rows.as_buffer())
    return [cells[number] for number in sorted(cells)]
