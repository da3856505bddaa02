"""`postgres`: tables of a PostgreSQL server as relations, by logical replication, each change once.

The one part of the cursor is the replication slot, its position the end of the last transaction that is in
the workspace, in the server's log (LSN); the mark names the server, its database and the slot.

    first      a mark that says "begun", the slot with a snapshot, the rows of the snapshot and where it is
    then       transactions from the cursor on, by a replication connection; the slot hears what is committed

Invariants

1. The slot never stands behind what is on disk here: it is told a position when that is committed.  A slot
   that is further than the cursor, or gone, has lost changes, and so has a server that is behind the cursor:
   the pull stops by name.
2. A transaction that ends at the cursor or before is passed over.
3. A kill before the snapshot's rows are committed leaves "begun": the next pull drops the slot, which is then
   known to be its own, and begins again.
4. TRUNCATE, a table that changed its columns or is new in the publication, stop the pull behind the last
   transaction before it.

Cost: of a transaction one pass over its bytes, for all of its rows at once.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial

import pyarrow as pa

from lftj.errors import SourceError
from lftj.values.names import nearest_usable
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.patience import Patience
from maintenance.sources.pgoutput import Changes
from maintenance.sources.postgres_rows import TableRows, rows_of, snapshot_rows
from maintenance.sources.postgres_slot import IDLE_BYTES, Slot, Stream, closing_connections, lsn_text
from maintenance.sources.postgres_tables import Table, published_tables
from maintenance.sources.source import BATCH_ROWS, Batch, OnError, Pieces, Rejected, Source, make_relation
from maintenance.workspace.workspace import Workspace

_BEGUN = -1
"""The position of a slot whose snapshot is not in the workspace yet."""


def postgres(
    dsn: str,
    publication: str,
    *,
    slot: str | None = None,
    relations: Mapping[str, str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    on_error: OnError = "stop",
    batch_rows: int = BATCH_ROWS,
    name: str | None = None,
) -> PostgresSource:
    """The tables of a publication as relations.

    Args:
        dsn: As psycopg takes it; the user needs the right to replicate.  It is shown nowhere.
        publication: Of which tables.  Their keys are the relations' keys; one without is a bag, if its
            REPLICA IDENTITY is FULL.
        slot: The replication slot, which is made; by default ``lftj_`` and the name.  One source has it.
        relations: Names by table, ``{"public.orders": "orders"}``; by default the table's own.
        types: What columns are read as, ``{"orders.total": pa.decimal128(20, 4)}``.
        on_error: Of values that can't be taken (`maintenance.sources.source.Source`).
        batch_rows: Where so many rows wait they are committed; a transaction of the server is not split.
        name: Of the cursor; by default the publication's.

    Needs the package psycopg, the extra ``lftj[postgres]``.
    """
    return PostgresSource(dsn, publication, slot, relations or {}, types or {}, on_error, batch_rows, name)


class PostgresSource(Source):
    """Made by `postgres`."""

    def __init__(
        self,
        dsn: str,
        publication: str,
        slot: str | None,
        relations: Mapping[str, str],
        types: Mapping[str, pa.DataType],
        on_error: OnError,
        batch_rows: int,
        name: str | None,
    ) -> None:
        super().__init__(nearest_usable(publication) if name is None else name, on_error)
        self.publication = publication
        self.slot = f"lftj_{self.name}".lower() if slot is None else slot
        self._dsn, self._relations, self._types = dsn, relations, types
        self._batch_rows = batch_rows
        self._stream: Stream | None = None

    def __repr__(self) -> str:
        return f"<postgres publication {self.publication!r} by slot {self.slot!r}>"

    def backlog(self) -> int | None:
        stream = self._stream
        return None if stream is None else stream.backlog

    def restart(self, workspace: Workspace) -> None:
        """Let the next pull begin anew: by a new snapshot, in one commit that has what is different.

        The slot is dropped by then.  It is the way out where changes were lost, or a table was truncated; of
        a table that changed its columns the relation is to be loaded anew, empty, before.
        """
        cursor = Cursor(workspace, self.name)
        with closing_connections(self._dsn, self.name) as slot_of:
            mark = slot_of(self.slot).mark
        with workspace.transaction() as transaction:
            cursor.stage(transaction, {**dict.fromkeys(cursor.places), self.slot: Place(_BEGUN, mark)})

    def _batches(self, workspace: Workspace, cursor: Cursor, patience: Patience) -> Generator[Batch]:
        with closing_connections(self._dsn, self.name) as slot_of:
            slot = slot_of(self.slot)
            try:
                tables = published_tables(slot.connection, self.publication, self._types, self._relations)
            except SourceError as error:
                raise SourceError(f"source {self.name!r}: {error}") from None
            place = self._checked(cursor, slot)
            if place is None or place.position == _BEGUN:
                yield from self._snapshot(workspace, cursor, slot, tables)
            for table in tables:
                self._check_relation(workspace, table)
            yield from self._changes(workspace, cursor, slot, tables, patience)

    def _checked(self, cursor: Cursor, slot: Slot) -> Place | None:
        """The cursor.  Raises SourceError where it is not of this slot, or changes are lost."""
        label, anew = f"source {self.name!r}", "restart() begins anew"
        for part, place in cursor.places.items():
            if part != self.slot or place.mark != slot.mark:
                raise SourceError(
                    f"{label}: its cursor is of {place.mark}, and this is {slot.mark}: read that one, take"
                    f" another name=, or {anew}"
                )
        there = slot.confirmed()
        if self.slot not in cursor.places:
            if there is not None:
                raise SourceError(
                    f"{label}: slot {self.slot!r} is there, and is not this workspace's: take another slot=,"
                    " or drop it"
                )
            return None
        place = cursor.places[self.slot]
        if place.position == _BEGUN:
            return place
        if there is None:
            raise SourceError(f"{label}: slot {self.slot!r} is gone, and changes with it: {anew}")
        if there > place.position:
            raise SourceError(
                f"{label}: slot {self.slot!r} is at {lsn_text(there)}, the cursor at"
                f" {lsn_text(place.position)}: what is between was given to another, or this is an old"
                f" copy of the workspace: {anew}"
            )
        if slot.written() < place.position:
            raise SourceError(
                f"{label}: the server is at {lsn_text(slot.written())}, and the cursor at"
                f" {lsn_text(place.position)} already: the server was put back from a copy: {anew}"
            )
        return place

    def _snapshot(
        self, workspace: Workspace, cursor: Cursor, slot: Slot, tables: list[Table]
    ) -> Generator[Batch]:
        """All rows of the tables, as they are where the slot begins."""
        is_new = self.slot not in cursor.places
        for table in tables:
            make_relation(workspace, table.relation, table.schema, table.key, "keep", bag=not table.key)
            self._check_relation(workspace, table)
            if is_new and workspace[table.relation].count:
                raise SourceError(
                    f"source {self.name!r}: relation {table.relation!r} has rows already, and no cursor says"
                    " where they are from: restart() takes what the table has in their place"
                )
        if is_new:
            yield Batch({}, {self.slot: Place(_BEGUN, slot.mark)})
        slot.drop()
        start, snapshot = slot.made()
        rejected: list[Rejected] = []
        place = Place(start, self.slot)
        readers = {
            table.relation: partial(snapshot_rows, self._dsn, snapshot, table, place, rejected)
            for table in tables
        }
        rows = {relation: Pieces(read(), read) for relation, read in readers.items()}
        yield Batch(rows, {self.slot: Place(start, slot.mark)}, rejected, begins=True)

    def _check_relation(self, workspace: Workspace, table: Table) -> None:
        """Raise SourceError where a relation is not such as the table's rows need."""
        label = f"source {self.name!r}: table {table.label}"
        if table.relation not in workspace:
            raise SourceError(f"{label} is new in the publication: restart() begins anew, with it")
        schema = workspace.base_version(table.relation).schema
        found = pa.schema([(column.name, column.type.arrow) for column in schema.shown.columns])
        if found.names != table.schema.names or found.types != table.schema.types:
            raise SourceError(
                f"{label} has columns ({_shown(table.schema)}), and relation {table.relation!r} has"
                f" ({_shown(found)}): load it anew, empty, and restart()"
            )
        if set(schema.key) != set(table.key) or (not table.key and not schema.bag):
            wanted = f"key={list(table.key)}" if table.key else "bag=True"
            raise SourceError(
                f"{label}: relation {table.relation!r} is to be loaded anew, empty, with {wanted}, and"
                " restart()"
            )

    def _changes(
        self,
        workspace: Workspace,
        cursor: Cursor,
        slot: Slot,
        tables: list[Table],
        patience: Patience,
    ) -> Generator[Batch]:
        by_oid = {table.source.oid: table for table in tables}
        with Stream(slot, self.publication, cursor.places[self.slot].position, self._batch_rows) as stream:
            self._stream = stream
            try:
                while not patience.is_stopped:
                    messages, reached = stream.transactions(by_oid, patience)
                    if messages or reached > cursor.places[self.slot].position + IDLE_BYTES:
                        yield self._batch(workspace, messages, by_oid, slot.mark, stream, reached)
                    if stream.trouble is not None:
                        raise SourceError(f"source {self.name!r}: {stream.trouble}")
                    if messages:
                        patience.renew()
                    elif patience.is_over and stream.has_all:
                        return
            finally:
                self._stream = None

    def _batch(
        self,
        workspace: Workspace,
        messages: list[bytes],
        by_oid: Mapping[int, Table],
        mark: str,
        stream: Stream,
        reached: int,
    ) -> Batch:
        found, rejected = Changes(messages), list[Rejected]()
        tables: dict[str, TableRows] = {}
        for oid in found.oids if messages else ():
            table = by_oid[oid]
            rows = rows_of(workspace, table, found, self.slot, rejected)
            if rows.changes.num_rows:
                tables[table.relation] = rows
        return Batch(
            {relation: rows.changes for relation, rows in tables.items()},
            {self.slot: Place(reached, mark)},
            rejected,
            acknowledge=lambda: stream.acknowledge(reached),
            numbers={relation: rows.numbers for relation, rows in tables.items()},
            origin=lambda relation, number, reason: tables[relation].origin(number, reason),
        )


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
