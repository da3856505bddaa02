"""Rows of a table as what happens to its relation: those of a snapshot, and those of changes.

A value that PostgreSQL has set apart (TOAST) and an update has not touched is not sent again: it is that of
the row as it was, in the same update where the table's identity is FULL, else in the changes before, else in
the workspace.

Cost: a cast of each column; for values that were not sent one look-up of their rows.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from lftj.storage.keyed import rows_of_keys
from maintenance.changes.changes import change_table, encode_keys
from maintenance.changes.labels import op_label, weight_label
from maintenance.sources.cursor import Place
from maintenance.sources.pgoutput import INSERT, NEW, OLD, UNCHANGED, Changes, Tuples
from maintenance.sources.postgres_connection import connected
from maintenance.sources.postgres_tables import Table
from maintenance.sources.postgres_types import reader_of
from maintenance.sources.source import Rejected
from maintenance.sources.typed_text import typed
from maintenance.workspace.workspace import Workspace

if TYPE_CHECKING:
    from psycopg import Connection

Key = tuple[Any, ...]

_PIECE_BYTES = 8 << 20
"""Of a snapshot, so many bytes of text are in memory at a time, but for a row that is longer."""


class TableRows(NamedTuple):
    """Of a table: its changes, int64 (n,) of which message each is, and what a refused message is."""

    changes: pa.Table
    numbers: np.ndarray
    origin: Callable[[int, str], Rejected]


def rows_of(
    workspace: Workspace, table: Table, changes: Changes, part: str, rejected: list[Rejected]
) -> TableRows:
    """The changes of a table, with a last column ``op``, or of one without a key ``weight``.

    Rows that can't be taken are added to ``rejected``.
    """
    schema = workspace.base_version(table.relation).schema
    tuples = changes.tuples(table.source.oid, len(table.source.columns))
    texts = [tuples.texts(column) for column in range(len(table.schema))]
    counts = np.ones(len(tuples.sides), bool) if not table.key else tuples.sides == NEW
    values, faults = _values(table, texts, counts)
    if (tuples.sizes == UNCHANGED).any():
        values = _filled(workspace, table, tuples, values, faults)
    if table.key:
        words = np.where(tuples.sides != NEW, 2, np.where(tuples.kinds == INSERT, 0, 1))
        last = pa.DictionaryArray.from_arrays(words.astype(np.int8), ["I", "U", "D"]).cast(pa.string())
        names = [*table.schema.names, op_label(schema)]
    else:
        last = pa.array(np.where(tuples.sides == NEW, 1, -1))
        names = [*table.schema.names, weight_label(schema)]
    found = pa.Table.from_arrays([*values, last], names)

    def origin(message: int, reason: str, row: int | None = None) -> Rejected:
        row = int(np.flatnonzero(tuples.messages == message)[-1]) if row is None else row
        said = f"table {table.label}, {reason}"
        return Rejected(part, changes.place(message), 0, said, _shown(texts, row))

    if not faults:
        return TableRows(found, tuples.messages, origin)
    for row, reason in sorted(faults.items()):
        rejected.append(origin(int(tuples.messages[row]), reason, row))
    kept = _without(faults, len(tuples.sides))
    return TableRows(found.filter(kept), tuples.messages[kept.to_numpy(zero_copy_only=False)], origin)


def snapshot_rows(
    dsn: str, snapshot: str, table: Table, place: Place, rejected: list[Rejected]
) -> Iterator[pa.Table]:
    """All rows of a table as a snapshot has them, in pieces; ``place``: the slot's, with its name.

    Rows that can't be taken are added to ``rejected``.
    """
    with connected(dsn) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        n_before = 0
        for texts in _copied(connection, table):
            n = len(texts[0])
            values, faults = _values(table, texts, np.ones(n, bool))
            for row, reason in sorted(faults.items()):
                said = f"table {table.label}, {reason}"
                text = _shown(texts, row)
                rejected.append(Rejected(place.mark, place.position, n_before + row, said, text))
            rows = pa.Table.from_arrays(values, table.schema.names)
            yield rows.filter(_without(faults, n)) if faults else rows
            n_before += n


def _copied(connection: Connection[Any], table: Table) -> Iterator[list[pa.Array]]:
    """The columns of a table as texts, some rows at a time."""
    from psycopg import sql

    names = [column.name for column in table.source.columns]
    query = sql.SQL("COPY (SELECT {} FROM {} {}.{} WHERE {}) TO STDOUT (FORMAT csv)").format(
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL("" if table.is_parted else "ONLY"),
        sql.Identifier(table.source.schema),
        sql.Identifier(table.source.name),
        sql.SQL(table.filter or "true"),
    )
    text = io.BytesIO()
    with connection.cursor().copy(query) as copy:
        for row in copy:  # the protocol has one in each message
            if text.tell() >= _PIECE_BYTES:
                yield _texts(text, len(names))
                text = io.BytesIO()
            text.write(row)
    if text.tell():
        yield _texts(text, len(names))


def _texts(lines: io.BytesIO, n_columns: int) -> list[pa.Array]:
    from pyarrow import csv

    lines.seek(0)
    places = [str(place) for place in range(n_columns)]
    rows = csv.read_csv(
        lines,
        csv.ReadOptions(column_names=places, block_size=max(1 << 20, _longest(lines.getbuffer()))),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return [column.combine_chunks() for column in rows.columns]


def _longest(text: memoryview) -> int:
    """Bytes that hold any row: a block has to."""
    return min(len(text) + 1, 1 << 30)


def _values(
    table: Table, texts: Sequence[pa.Array], counts: np.ndarray
) -> tuple[list[pa.Array], dict[int, str]]:
    """Texts in the columns' types, and what is wrong with rows.

    ``counts``: bool (n,), in which rows all columns count, and not the key alone.
    """
    values, faults = [], dict[int, str]()
    for column, given in zip(table.schema, texts, strict=True):
        array, wrong = typed(given, column.type, reader_of(column.type))
        for row in wrong:
            if counts[row] or column.name in table.key:
                text = given[row].as_py()
                faults.setdefault(row, f"column {column.name!r}: {text[:60]!r} is not {column.type}")
        values.append(array)
    return values, faults


def _without(faults: Iterable[int], n: int) -> pa.Array:
    kept = np.ones(n, bool)
    kept[list(faults)] = False
    return pa.array(kept)


def _shown(texts: Sequence[pa.Array], row: int) -> str:
    return ", ".join("NULL" if (text := each[row].as_py()) is None else text for each in texts)


# -- values that were not sent -------------------------------------------------------------------


def _filled(
    workspace: Workspace, table: Table, tuples: Tuples, values: list[pa.Array], faults: dict[int, str]
) -> list[pa.Array]:
    """The values, with those that were not sent; a row whose old one is not there is a fault."""
    missing = np.flatnonzero((tuples.sizes == UNCHANGED).any(axis=1))
    sources = _sources(table, tuples, values)
    away = {key for source in sources.values() if isinstance(source, tuple) for key in [source]}
    there = _rows_there(workspace, table, sorted(away, key=repr))
    columns = {int(column): values[column].to_pylist() for column in missing}
    for row, source in sources.items():
        for column, its in columns.items():
            if tuples.sizes[column, row] != UNCHANGED:
                continue
            if isinstance(source, int):
                its[row] = its[source]
            elif source in there:
                its[row] = there[source][column]
            else:
                name = table.schema.names[column]
                faults.setdefault(row, f"column {name!r} was not sent, and its row is not here")
    filled = list(values)
    for column, its in columns.items():
        filled[column] = pa.array(its, values[column].type)
    return filled


def _sources(table: Table, tuples: Tuples, values: Sequence[pa.Array]) -> dict[int, int | Key]:
    """For each row with a value that was not sent the row that has it: an earlier one, or by key one here."""
    numbers = [table.schema.names.index(name) for name in table.key]
    keys: list[Key] = list(zip(*(values[number].to_pylist() for number in numbers), strict=True))
    lacks = (tuples.sizes == UNCHANGED).any(axis=0).tolist()
    sides, messages = tuples.sides.tolist(), tuples.messages.tolist()
    found: dict[int, int | Key] = {}
    latest: dict[Key, int] = {}
    for row, side in enumerate(sides):
        if side != NEW:
            continue
        before = row - 1 if row and messages[row - 1] == messages[row] else None
        if lacks[row]:
            if before is not None and sides[before] == OLD:
                found[row] = before
            else:
                key = keys[row if before is None else before]
                found[row] = latest.get(key, key)
        if keys:
            latest[keys[row]] = row
    return found


def _rows_there(workspace: Workspace, table: Table, keys: Sequence[Key]) -> Mapping[Key, tuple[Any, ...]]:
    """The workspace's rows of keys."""
    if not keys:
        return {}
    version = workspace.base_version(table.relation)
    lease = workspace.domains.collector.lease()
    try:
        types = [table.schema.field(name) for name in table.key]
        columns = [
            pa.array(its, field.type) for its, field in zip(zip(*keys, strict=True), types, strict=True)
        ]
        asked = pa.Table.from_arrays(columns, list(table.key))
        codes = encode_keys(table.relation, version.schema, asked, workspace.domains).keys
        assert codes is not None
        there, rows = rows_of_keys(version, codes)
        found = change_table(version.schema, list(rows[:, there]), np.ones(there.sum(), np.int64))
    finally:
        del lease
    known = [key for key, is_there in zip(keys, there, strict=True) if is_there]
    rows_there = zip(*(column.to_pylist() for column in found.columns), strict=True)
    return dict(zip(known, rows_there, strict=True))
