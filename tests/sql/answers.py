"""`difference`: two answers to one SELECT as bags of rows, or as lists where the text asks for an order.

Integers, decimals, texts, dates and booleans agree exactly, whatever the width or scale of their types;
doubles to 1e-12 of the greater, which sums in another order take.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]
TOLERANCE = 1e-12


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table, whose columns may have equal names."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def same(left: Any, right: Any) -> bool:
    """
    >>> same(1, Decimal("1.00")), same(0.1 + 0.2, 0.3), same(None, 0), same(True, 1)
    (True, True, False, False)
    """
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, float) or isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(float(left), float(right), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _place(value: Any) -> tuple[Any, ...]:
    """Orders values of one column: close doubles and equal numbers of other types come together."""
    if value is None:
        return (0,)
    if isinstance(value, (bool, int, float, Decimal)):
        return (1, float(f"{float(value):.9g}"), value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return (2, value.isoformat())
    return (3, str(value))


def difference(
    mine: Sequence[Row], theirs: Sequence[Row], ordered: tuple[int, ...] | None = None
) -> str | None:
    """None, or what differs.

    Args:
        ordered: None: in any order.  Else the columns, from 0, that come in one order (empty: all of them).

    >>> difference([(1, None), (2, 0.3)], [(2, 0.1 + 0.2), (1, None)])
    >>> difference([(1,)], [(1,), (1,)])
    '1 rows, where 2 are right: missing (1,)'
    >>> difference([(1,), (2,)], [(2,), (1,)], ())
    'row 0 in order is (1,), where (2,) is right'
    """
    if ordered is not None and len(mine) == len(theirs):
        for number, (left, right) in enumerate(zip(mine, theirs, strict=True)):
            columns = ordered or range(len(right))
            if not all(same(left[c], right[c]) for c in columns):
                return f"row {number} in order is {left}, where {right} is right"
    one, other = (sorted(rows, key=lambda row: tuple(map(_place, row))) for rows in (mine, theirs))
    if len(one) == len(other) and all(
        len(left) == len(right) and all(map(same, left, right))
        for left, right in zip(one, other, strict=True)
    ):
        return None
    return f"{len(mine)} rows, where {len(theirs)} are right: {_first_difference(one, other)}"


def _first_difference(mine: list[Row], theirs: list[Row]) -> str:
    """Of two sorted lists."""
    for number, right in enumerate(theirs):
        if number >= len(mine) or _before(right, mine[number]):
            return f"missing {right}"
        if not (len(mine[number]) == len(right) and all(map(same, mine[number], right))):
            return f"{mine[number]} is too much, the next right one is {right}"
    return f"{mine[len(theirs)]} is too much"


def _before(left: Row, right: Row) -> bool:
    return tuple(map(_place, left)) < tuple(map(_place, right)) and not all(map(same, left, right))
