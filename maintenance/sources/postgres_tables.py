"""The tables of a publication: which rows and columns it sends, and which relations take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lftj.errors import SourceError
from lftj.values.names import nearest_usable, usable_names
from maintenance.sources.pgoutput import Column, Relation
from maintenance.sources.postgres_types import MOST_DIGITS, arrow_type

if TYPE_CHECKING:
    from psycopg import Connection

_PUBLICATION = "SELECT pubinsert AND pubupdate AND pubdelete FROM pg_publication WHERE pubname = %s"

_TABLES = """
    SELECT c.oid, n.nspname, c.relname, c.relreplident, c.relkind, {filter}, {columns}
    FROM pg_publication_tables p
    JOIN pg_namespace n ON n.nspname = p.schemaname
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
    WHERE p.pubname = %s ORDER BY 2, 3
"""

_COLUMNS = """
    SELECT a.attname, a.atttypid, a.atttypmod, t.typname, t.typtype, format_type(a.atttypid, a.atttypmod),
           a.attnotnull, a.attnum = ANY (
               SELECT unnest(i.indkey) FROM pg_index i WHERE i.indrelid = a.attrelid
               AND CASE WHEN %(identity)s = 'i' THEN i.indisreplident ELSE i.indisprimary END)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY a.attnum
"""


@dataclass(frozen=True)
class Table:
    """A table of the upstream and the relation that takes its rows.

    ``filter``: the publication's condition on rows, as SQL; None where there is none.  ``is_parted``: whether
    its rows stand in others.
    """

    source: Relation
    relation: str
    schema: pa.Schema
    key: tuple[str, ...]
    filter: str | None
    is_parted: bool

    @property
    def label(self) -> str:
        return f"{self.source.schema}.{self.source.name}"

    def other(self, now: Relation) -> str | None:
        """How a table is another than it was, in words; None where it is not."""
        before = {column.name: column for column in self.source.columns}
        after = {column.name: column for column in now.columns}
        for name in before.keys() - after.keys():
            return f"its column {name!r} is gone"
        for name in after.keys() - before.keys():
            return f"it has a new column {name!r}"
        for name, column in after.items():
            if before[name][:-1] != column[:-1]:
                return f"its column {name!r} is of another type"
        if before != after:
            return "its key, or its REPLICA IDENTITY, is another"
        return None if self.source == now else "its columns stand in another order, or its name is another"


def published_tables(
    connection: Connection[Any],
    publication: str,
    types: Mapping[str, pa.DataType],
    relations: Mapping[str, str],
) -> list[Table]:
    """The tables of a publication.  Raises SourceError for one that can't be followed.

    ``types``: of columns, by ``schema.table.column``, ``table.column`` or ``column``; ``relations``: names by
    ``schema.table`` or ``table``.
    """
    found = connection.execute(_PUBLICATION, [publication]).fetchone()
    if found is None:
        raise SourceError(
            f"there is no publication {publication!r}: CREATE PUBLICATION {publication} FOR TABLE ..."
        )
    if not found[0]:
        raise SourceError(
            f"publication {publication!r} does not publish all of insert, update and delete: rows would be"
            " lost, or stay"
        )
    new = connection.info.server_version >= 150000
    query = _TABLES.format(filter="p.rowfilter" if new else "NULL", columns="p.attnames" if new else "NULL")
    tables = [
        _table(connection, row, types, relations)
        for row in connection.execute(query, [publication]).fetchall()
    ]
    if not tables:
        raise SourceError(f"publication {publication!r} has no tables: ALTER PUBLICATION ... ADD TABLE")
    names = [table.relation for table in tables]
    for table in tables:
        if names.count(table.relation) > 1:
            raise SourceError(
                f"two tables would be relation {table.relation!r}: name one otherwise, as in"
                f" relations={{{table.label!r}: 'another'}}"
            )
    return tables


def _table(
    connection: Connection[Any],
    row: tuple[Any, ...],
    types: Mapping[str, pa.DataType],
    relations: Mapping[str, str],
) -> Table:
    oid, schema, name, identity, kind, condition, published = row
    label = f"{schema}.{name}"
    columns, fields, key = [], [], []
    rows = connection.execute(_COLUMNS, {"oid": oid, "identity": identity}).fetchall()
    rows = [each for each in rows if published is None or each[0] in published]
    names = usable_names([each[0] for each in rows])
    for usable, (column, type_oid, modifier, type_name, type_kind, shown, required, in_key) in zip(
        names, rows, strict=True
    ):
        said = [types[each] for each in (f"{label}.{column}", f"{name}.{column}", column) if each in types]
        wanted = said[0] if said else arrow_type(type_name, type_kind, modifier)
        if wanted is None:
            hint = (
                f"as decimal128 with at most {MOST_DIGITS} digits" if type_name == "numeric" else "as string"
            )
            raise SourceError(
                f"table {label}, column {column!r} is of type {shown}, which no relation holds as it is: say"
                f" what it is read as, types={{'{name}.{column}': ...}}, {hint}, or leave it out of the"
                " publication"
            )
        columns.append(Column(column, type_oid, modifier, in_key or identity == "f"))
        fields.append(pa.field(usable, wanted, nullable=not (required or in_key)))
        if in_key:
            key.append(usable)
    if identity == "n" or (not key and identity != "f"):
        raise SourceError(
            f"table {label} has no key that its changes would name: give it a primary key, or ALTER TABLE"
            f" {label} REPLICA IDENTITY FULL"
        )
    relation = relations.get(label, relations.get(name, nearest_usable(name)))
    source = Relation(oid, schema, name, tuple(columns))
    return Table(source, relation, pa.schema(fields), tuple(key), condition, kind == "p")
