"""`to_postgres`: a head as a table of a PostgreSQL, its rows and its version in one transaction there.

    lftj_sinks    sink              workspace   version
                  public.revenue    5c0f...     8812

Invariant: what the table holds is the head as of the version, for whoever reads both in one transaction.

Cost: a change is copied in at once; rows that go are looked for by the columns of ``key``, or by all.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import SinkAwayError, SinkError
from maintenance.changes.labels import label_beside
from maintenance.sinks.sink import Sink, operations_of
from maintenance.sources.cursor import Cursor
from maintenance.sources.postgres_connection import connected
from maintenance.workspace.follower import HeadChange
from maintenance.workspace.workspace import Workspace

if TYPE_CHECKING:
    from psycopg import Connection, sql
    from psycopg import Cursor as DatabaseCursor

_VERSIONS = "lftj_sinks"

_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20)",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
    pa.date32(): "date",
}


def to_postgres(
    dsn: str,
    head: str,
    table: str | None = None,
    *,
    key: Sequence[str] | None = None,
    schema: str = "public",
    name: str | None = None,
) -> PostgresSink:
    """A head as a table.

    Args:
        dsn: As psycopg takes it.  It is shown nowhere.
        head: Which head of the workspace.
        table: Which is made where it is not there; by default of the head's name.
        key: Columns that tell the head's rows apart; by default the groups of an aggregate with one value.
            The table has an index on them.
        schema: In which the table is, and the table of versions, ``lftj_sinks``.
        name: Of the sink; by default ``<head>_to_postgres``.

    Needs the package psycopg, the extra ``lftj[postgres]``.
    """
    return PostgresSink(dsn, head, head if table is None else table, key, schema, name)


class PostgresSink(Sink):
    """Made by `to_postgres`."""

    begins_anew = True

    def __init__(
        self, dsn: str, head: str, table: str, key: Sequence[str] | None, schema: str, name: str | None
    ) -> None:
        super().__init__(head, f"{head}_to_postgres" if name is None else name)
        self.table, self.schema = table, schema
        self._dsn, self._key = dsn, key

    def __repr__(self) -> str:
        return f"<{self.head!r} to PostgreSQL's {self.schema}.{self.table}>"

    @property
    def _way_out(self) -> str:
        return f"drop the table, and its row of {_VERSIONS}, and it is written anew"

    @contextmanager
    def _opened(self, workspace: Workspace, identifier: str, cursor: Cursor) -> Generator[_Table]:
        try:
            from psycopg import Error, InterfaceError, OperationalError
        except ImportError:
            raise ImportError(
                "to_postgres() needs the package psycopg: pip install 'lftj[postgres]'"
            ) from None
        versions = workspace.snapshot().versions
        rows = workspace[self.head].schema
        key = self._key
        if key is None:
            key = rows.names[:-1] if versions[self.head].schema.functional else []
        try:
            with connected(self._dsn) as connection:
                connection.autocommit = True
                yield _Table(self, connection, rows, list(key), identifier)
        except Error as error:
            text = str(error).strip() or type(error).__name__
            kind = SinkAwayError if isinstance(error, OperationalError | InterfaceError) else SinkError
            raise kind(
                f"sink {self.name!r}: the server says: {text}: push again, it goes on behind what is written"
            ) from None


class _Table:
    """The table, on a connection."""

    def __init__(
        self,
        sink: PostgresSink,
        connection: Connection[Any],
        rows: pa.Schema,
        key: list[str],
        identifier: str,
    ) -> None:
        from psycopg import sql

        self._sink, self._connection, self._rows, self._key = sink, connection, rows, key
        self._identifier = identifier
        self._name = sql.Identifier(sink.schema, sink.table)
        self._versions = sql.Identifier(sink.schema, _VERSIONS)
        self._row = f"{sink.schema}.{sink.table}"
        if missing := [label for label in key if label not in rows.names]:
            raise SinkError(
                f"sink {sink.name!r}: key= names {missing[0]!r}, and {sink.head!r} has no such column"
            )
        self._make()
        self.version = self._held()

    def _make(self) -> None:
        """Make the tables where they are not there."""
        from psycopg import sql

        columns = [
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(self._type_of(field)))
            for field in self._rows
        ]
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('lftj_sinks'))")
            self._run(
                "CREATE TABLE IF NOT EXISTS {} (sink text PRIMARY KEY, workspace text NOT NULL,"
                " version bigint NOT NULL)",
                self._versions,
            )
            found = self._connection.execute(
                "SELECT to_regclass(%s)", [self._name.as_string(self._connection)]
            )
            row = found.fetchone()
            if row is None or row[0] is None:
                self._run("CREATE TABLE {} ({})", self._name, sql.SQL(", ").join(columns))
                if self._key:
                    self._run("CREATE INDEX ON {} ({})", self._name, _list(self._key))

    def _held(self) -> int | None:
        """The version that the table holds.  Raises SinkError for another workspace's."""
        found = self._run(
            "SELECT workspace, version FROM {} WHERE sink = %s", self._versions, values=[self._row]
        ).fetchone()
        if found is None:
            if self._run("SELECT 1 FROM {} LIMIT 1", self._name).fetchone() is not None:
                raise SinkError(
                    f"sink {self._sink.name!r}: table {self._row} has rows, and no workspace has written"
                    " them: empty it, or take another table"
                )
            return None
        if found[0] != self._identifier:
            raise SinkError(
                f"sink {self._sink.name!r}: table {self._row} holds what another workspace wrote: take"
                f" another table, or {self._sink._way_out}"
            )
        return int(found[1])

    def begin(self, all_rows: HeadChange) -> None:
        version = all_rows.version
        with self._connection.transaction():
            self._run("DELETE FROM {}", self._name)
            self._copy(self._name, all_rows.table.select(self._rows.names))
            self._run(
                "INSERT INTO {} VALUES (%s, %s, %s)"
                " ON CONFLICT (sink) DO UPDATE SET version = excluded.version",
                self._versions,
                values=[self._row, self._identifier, version],
            )
        self.version = version

    def add(self, change: HeadChange) -> None:
        rows = operations_of(change.table)
        goes = pc.equal(rows.column(rows.num_columns - 1), "D")
        gone, come = (rows.filter(which).select(self._rows.names) for which in (goes, pc.invert(goes)))
        with self._connection.transaction():
            moved = self._run(
                "UPDATE {} SET version = %s WHERE sink = %s AND workspace = %s AND version = %s",
                self._versions,
                values=[change.version, self._row, self._identifier, self.version],
            )
            if moved.rowcount != 1:
                raise SinkError(f"sink {self._sink.name!r}: another process pushes to {self._row}, too")
            if gone.num_rows:
                self._erase(gone)
            self._copy(self._name, come)
        self.version = change.version

    def _erase(self, gone: pa.Table) -> None:
        """Delete as many rows as there are in ``gone``.  Raises SinkError where they are not there."""
        from psycopg import sql

        place = sql.Identifier("lftj_gone")
        labels = self._key or self._rows.names
        fields = [self._rows.field(label) for label in labels]
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(self._type_of(field)))
            for field in fields
        ]
        self._run("CREATE TEMP TABLE {} ({}) ON COMMIT DROP", place, sql.SQL(", ").join(columns))
        self._copy(place, gone.select(labels))
        same = sql.SQL(" AND ").join(
            sql.SQL("t.{0} {1} g.{0}").format(
                sql.Identifier(label), sql.SQL("IS NOT DISTINCT FROM" if gone[label].null_count else "=")
            )
            for label in labels
        )
        # Of rows that are equal as many go as are said, whichever.
        deleted = self._run(
            "DELETE FROM {0} WHERE ctid IN (SELECT ctid FROM ("
            "SELECT t.ctid, g.{5} AS n, row_number() OVER (PARTITION BY {1}) AS place FROM {0} t"
            " JOIN (SELECT {2}, count(*) AS {5} FROM {3} GROUP BY {2}) g ON {4}) AS found WHERE place <= n)",
            self._name,
            sql.SQL(", ").join(sql.SQL("t.{}").format(sql.Identifier(label)) for label in labels),
            _list(labels),
            place,
            same,
            sql.Identifier(label_beside("n", labels)),
        )
        if deleted.rowcount != gone.num_rows:
            raise SinkError(
                f"sink {self._sink.name!r}: table {self._row} was changed by another: {gone.num_rows} rows"
                f" are to go, and {deleted.rowcount} of them are there: {self._sink._way_out}"
            )

    def _copy(self, to: sql.Identifier, rows: pa.Table) -> None:
        """Rows into a table whose columns are those."""
        from psycopg import sql
        from pyarrow import csv

        if not rows.num_rows:
            return
        text = io.BytesIO()
        csv.write_csv(_plain(rows), text, csv.WriteOptions(include_header=False))
        query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(to, _list(rows.column_names))
        with self._connection.cursor().copy(query) as copy:
            copy.write(text.getbuffer())

    def _type_of(self, field: pa.Field) -> str:
        type_ = field.type
        if pa.types.is_decimal(type_):
            return f"numeric({type_.precision}, {type_.scale})"
        if pa.types.is_timestamp(type_):
            return "timestamp" if type_.tz is None else "timestamptz"
        if type_ not in _TYPES:
            raise SinkError(
                f"sink {self._sink.name!r}: column {field.name!r} of {self._sink.head!r} is of type {type_},"
                " for which PostgreSQL's table has none: leave it out by another head"
            )
        return _TYPES[type_]

    def _run(self, query: str, *parts: Any, values: Sequence[Any] | None = None) -> DatabaseCursor[Any]:
        from psycopg import sql

        return self._connection.execute(sql.SQL(query).format(*parts), values)


def _list(labels: Sequence[str]) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, labels))


def _plain(rows: pa.Table) -> pa.Table:
    """With what CSV has no text for as PostgreSQL's."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            texts = [None if each is None else f"\\x{each.hex()}" for each in rows.column(place).to_pylist()]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            moments = rows.column(place).cast(pa.timestamp(field.type.unit, "UTC"))
            rows = rows.set_column(place, field.name, moments)
    return rows
