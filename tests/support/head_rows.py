"""Rows of a head, and what a change makes of them."""

from __future__ import annotations

import pyarrow as pa

Rows = set[tuple[int, ...]]


def applied(rows: Rows, table: pa.Table) -> Rows:
    """Rows after a change, which has to be one of these rows."""
    *columns, weights = (column.to_pylist() for column in table.columns)
    result = set(rows)
    for row, weight in zip(zip(*columns, strict=True), weights, strict=True):
        assert (row in result) == (weight == -1)
        result ^= {row}
    return result
