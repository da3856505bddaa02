"""The rows of a head as SQL's answer: its names, types and order.

NULLs stand where SQL puts them, NaN comes after all numbers, and rows that agree in what is asked for are in
the order of the other columns: an answer depends on the data alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import RangeError
from lftj.sql.translation.translated import Translated
from lftj.sql.types import digits, kind

_ARROW = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "NULL": pa.int32(),
}


def answer(rows: pa.Table, of: Translated) -> pa.Table:
    """The rows of the head as the statement asked for them."""
    if of.order or of.limit is not None or of.offset:
        rows = _sorted(rows, of.order).slice(of.offset, of.limit)
    columns = [_typed(rows[name], type_) for name, type_ in zip(of.columns, of.types, strict=True)]
    return pa.Table.from_arrays(columns, names=list(of.names))


def _typed(column: pa.ChunkedArray, type_: str) -> pa.ChunkedArray:
    wanted = arrow_type(type_)
    try:
        return column if wanted is None or wanted == column.type else column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise RangeError(f"a result of type {type_}: {error}") from None


def arrow_type(type_: str) -> pa.DataType | None:
    """What SQL's type is in an answer, where that is not what the engine has."""
    if kind(type_) == "decimal":
        return pa.decimal128(*digits(type_))
    return _ARROW.get(type_)


def _sorted(rows: pa.Table, order: Sequence[tuple[str, bool, bool]]) -> pa.Table:
    keys: list[tuple[str, str]] = []
    columns: list[pa.ChunkedArray] = []
    asked = [name for name, _, _ in order]
    for name, descending, nulls_first in (
        *order,
        *((n, False, False) for n in rows.column_names if n not in asked),
    ):
        column = rows[name]
        parts = [(column.is_null(), nulls_first)]
        if pa.types.is_floating(column.type):
            parts.append((pc.is_nan(column), descending))
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            continue  # in no order of Arrow's
        for values, down in (*parts, (column, descending)):
            keys.append((str(len(columns)), "descending" if down else "ascending"))
            columns.append(values)
    if not keys:
        return rows
    sortable = pa.Table.from_arrays(columns, names=[str(number) for number in range(len(columns))])
    return rows.take(pc.sort_indices(sortable, sort_keys=keys))
