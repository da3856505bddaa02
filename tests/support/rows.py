"""The rows of tables as tuples."""

from __future__ import annotations

import pyarrow as pa

from support.reference import Row


def rows_of(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """In the table's order."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
