"""`check`: rows that a workspace keeps against DuckDB's answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_AS_ONE = {"decimal128": pa.float64(), "timestamp": pa.timestamp("us"), "int": pa.int64()}
"""By the beginning of a type's name, what both sides are compared as."""


def check(title: str, found: pa.Table, expected: pa.Table) -> None:
    """Compare the rows, in any order, columns by place: fractions within 1e-12, all else exactly.

    Raises:
        AssertionError: They differ.
    """
    mine, theirs = _sorted(found), _sorted(expected)
    if mine.num_rows != theirs.num_rows:
        raise AssertionError(f"{title}: {mine.num_rows} rows, DuckDB {theirs.num_rows}")
    for place in range(mine.num_columns):
        one, other = mine.column(place), theirs.column(place)
        if not _same(one, other):
            raise AssertionError(
                f"{title}: column {place}, {one.to_pylist()[:5]} ..., DuckDB {other.to_pylist()[:5]} ..."
            )


def _sorted(table: pa.Table) -> pa.Table:
    """Comparable columns; fractions come last in the order, as one that is rounded otherwise moves no row."""
    columns = []
    for column in table.columns:
        name = str(column.type)
        wanted = next((type_ for begin, type_ in _AS_ONE.items() if name.startswith(begin)), column.type)
        columns.append(column.cast(wanted).combine_chunks())
    names = [str(place) for place in range(len(columns))]
    comparable = pa.table(columns, names=names)
    by = sorted(names, key=lambda name: pa.types.is_floating(comparable.schema.field(name).type))
    return comparable.sort_by([(name, "ascending") for name in by])


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if one.type != other.type or not pa.types.is_floating(one.type):
        return bool(one.equals(other))
    if not one.is_null().equals(other.is_null()):
        return False
    mine, theirs = (pc.drop_null(side).to_numpy() for side in (one, other))
    return bool(np.allclose(mine, theirs, rtol=1e-12, atol=0))
