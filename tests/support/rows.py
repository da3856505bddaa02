"""The rows of tables as tuples."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from support.kinds import Listed
from support.reference import Row


def rows_of(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """In the table's order."""
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
    return list(map(hashable, values)) if pa.types.is_nested(column.type) else values


def hashable(value: Any) -> Any:
    """A value of Python's, of a list one that has an order and a hash."""
    return Listed(map(hashable, value)) if isinstance(value, list) else value
