"""Rows with a time, of one partition: those of streams, which leave, and those of a head, which close.

    came:  +(t=70) -(t=15)      bound 20      goes on:  +(t=70) -(t=13) -(t=17)

Where the bounds are, a *tick* says, the same in all partitions (:mod:`spark_bridge.stages.clock_stage`).
What comes or is erased goes on as it is, for cells hold sets too; what is before the bound does not come,
and goes where it was there.
A row of a head that goes so has closed: it is a row of the result, and stays.

Invariants

1. Behind a step no row is before its bound, nor has one come that is.
2. Before a bound nothing comes to streams, for it would be late; of heads it is about rows that have closed.
3. A row of a head closes once.

Cost: O(log n) for each row that comes or leaves; in memory are the rows of the partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.storage.codes_table import table_of_codes
from lftj.storage.relation import Relation
from lftj.values.streams import Stream
from maintenance.workspace.workspace import Workspace
from spark_bridge.cells.signed_tables import signed, with_weight
from spark_bridge.placing.head_rule import cell_name
from spark_bridge.placing.packets import CellAddress, CellInput, packed

ADDRESS = CellAddress(0, 0, ())
TICK = "tick"
"""The label of a packet that says where the bounds are."""

Bounds = Mapping[str, Sequence[int | None]]
"""By relation: before the batch and behind it, the time before which nothing is there; None: anything is."""


class TimedRows:
    """Relations with a time."""

    def __init__(self, schemas: Mapping[str, pa.Schema], times: Mapping[str, str]) -> None:
        """``schemas``: without weights; ``times``: of each the column of its time."""
        self._schemas = schemas
        self._workspace = Workspace()
        for name, schema in schemas.items():
            none, domains = schema.empty_table(), self._workspace.domains
            empty = Relation.from_table(cell_name(name), none, domains, "keep")
            self._workspace.add(empty.with_stream(Stream(times[name])))

    def took(self, name: str, rows: pa.Table, low: int | None) -> pa.Table:
        """Take signed rows in, but for those before ``low``; returns those that are not."""
        if low is not None:
            rows = rows.filter(pa.array(self._times(name, rows) >= low))
        self._apply(name, rows)
        return rows

    def left(self, name: str, bound: int | None) -> pa.Table:
        """Let go the rows before a bound; returns them."""
        version = self._workspace.base_version(cell_name(name))
        if bound is None:
            return self._schemas[name].empty_table()
        codes = version.rows_between(None, bound)
        gone = table_of_codes(version.schema, list(codes)).cast(self._schemas[name])
        self._apply(name, with_weight(gone, -1))
        return gone

    def before(self, name: str, rows: pa.Table, bound: int | None) -> np.ndarray:
        """Which rows are before a bound: bool (n,)."""
        return np.zeros(rows.num_rows, bool) if bound is None else self._times(name, rows) < bound

    def table(self, name: str) -> pa.Table:
        return self._workspace[cell_name(name)].table.cast(self._schemas[name])

    def count(self, name: str) -> int:
        return self._workspace[cell_name(name)].count

    def _times(self, name: str, rows: pa.Table) -> np.ndarray:
        schema = self._workspace.base_version(cell_name(name)).schema
        column = schema.columns[schema.time_number]
        return np.asarray(column.type.encode(rows.column(column.name)))

    def _apply(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            with self._workspace.transaction() as transaction:
                transaction.tell({})  # who is late and what leaves has been told
                transaction.apply(cell_name(name), rows)


class StreamEngine:
    """One partition of all streams, and of recent rows of theirs.

    ``expired``: of the last step, the rows that left, by stream.
    """

    def __init__(
        self, schemas: Mapping[str, pa.Schema], times: Mapping[str, str], of: Mapping[str, str]
    ) -> None:
        """``of``: by relation that rules read, the stream whose rows it has."""
        self._rows = TimedRows(schemas, times)
        self._schemas = schemas
        self._of = of
        self.taken = 0
        self.expired: dict[str, int] = {}

    def step(self, inputs: Sequence[CellInput]) -> dict[str, pa.Table]:
        """Apply changes and a tick; returns by relation the rows that come and go, with weights.

        Afterwards ``taken`` is the number of rows that came or left.  Raises the engine's errors; then it is
        of no more use.
        """
        bounds = bounds_of(inputs)
        found = {}
        self.taken, self.expired = 0, {}
        for name, stream in self._of.items():
            schema = signed(self._schemas[name])
            given = pa.concat_tables(
                [cell.table(label, schema) for cell in inputs for label in (stream, held(name))]
            )
            low, bound = bounds.get(name, (None, None))
            given = self._rows.took(name, given, low)
            gone = self._rows.left(name, bound)
            erases = given.column(given.num_columns - 1).to_numpy() < 0
            goes_on = given.filter(pa.array(erases | ~self._rows.before(name, given, bound)))
            found[name] = pa.concat_tables([goes_on, with_weight(gone, -1).cast(schema)])
            self.taken += given.num_rows + gone.num_rows
            if name == stream and gone.num_rows:
                self.expired[stream] = gone.num_rows
        return found

    def snapshot(self) -> Iterator[tuple[CellAddress, str, bytes]]:
        """All rows, as packets from which :meth:`step` makes them again."""
        for name in self._of:
            for packet in packed(with_weight(self._rows.table(name))):
                yield ADDRESS, held(name), packet

    @property
    def rows(self) -> int:
        return sum(self._rows.count(name) for name in self._of)


class CloseEngine:
    """One partition of a head whose rows close: those that have not, and the result, those that have."""

    def __init__(self, head: str, schema: pa.Schema, time: str) -> None:
        self._head = head
        self._schema = schema
        self._open = TimedRows({head: schema}, {head: time})
        self._closed: list[pa.Table] = []
        self.taken = 0

    def step(self, inputs: Sequence[CellInput]) -> pa.Table:
        """Apply changes of the head and a tick; returns the rows that close, with weights."""
        schema = signed(self._schema)
        low, bound = bounds_of(inputs).get(self._head, (None, None))
        changes = pa.concat_tables([cell.table(self._head, schema) for cell in inputs])
        changes = self._open.took(self._head, changes, low)
        closing = self._open.left(self._head, bound)
        before = [cell.table(held(self._head), schema) for cell in inputs]
        self._closed += [table.select(self._schema.names) for table in (*before, closing) if table.num_rows]
        self.taken = changes.num_rows + closing.num_rows + sum(table.num_rows for table in before)
        return with_weight(closing).cast(schema)

    def snapshot(self) -> Iterator[tuple[CellAddress, str, bytes]]:
        """All rows, as packets from which :meth:`step` makes them again."""
        for label, table in ((self._head, self._open.table(self._head)), (held(self._head), self.head())):
            for packet in packed(with_weight(table)):
                yield ADDRESS, label, packet

    def head(self) -> pa.Table:
        """The rows that have closed."""
        self._closed = [pa.concat_tables([self._schema.empty_table(), *self._closed]).combine_chunks()]
        return self._closed[0]

    @property
    def rows(self) -> int:
        return self._open.count(self._head) + sum(table.num_rows for table in self._closed)


def held(name: str) -> str:
    """The label of rows that were taken in before, or have closed: no tick of their step is about them."""
    return f"held {name}"


def bounds_of(inputs: Sequence[CellInput]) -> Bounds:
    """What the tick of a step says; of none, where there is none."""
    for cell in inputs:
        for packet in cell.packets.get(TICK, ()):
            return dict(json.loads(packet.to_pybytes()))
    return {}
