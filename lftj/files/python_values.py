"""Python's own values, as they stand in tuples, as Arrow arrays.

pyarrow takes the type of the first value for that of all: a time of day is lost behind a date, a zone behind
a timestamp without one, and nanoseconds everywhere.  Here the values of a column are of one kind, and come
back out of the array as they went in.

Cost: one pass over the values' types; over the values where there are several types, or times.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "boolean"),
    ((int, float, Decimal, np.integer, np.floating), "number"),
    ((str,), "string"),
    ((bytes, bytearray, memoryview), "binary string"),
    ((datetime.datetime,), "timestamp"),
    ((datetime.date,), "date"),
    ((datetime.time,), "time"),
    ((datetime.timedelta,), "duration"),
)
_WITH_ZONES = (datetime.datetime, datetime.time)
_PLAIN = {int, float, bool, str, bytes, Decimal, datetime.datetime, datetime.date, datetime.time}
_PLAIN |= {datetime.timedelta, type(None)}
"""Types whose values pyarrow takes as they are, or refuses."""


def array_of_objects(values: Sequence[Any]) -> pa.Array | pa.ChunkedArray:
    """An array of the values.  Raises TypeError, ValueError, OverflowError and pyarrow's errors.

    >>> array_of_objects([Decimal("0.5"), 12]).to_pylist()
    [Decimal('0.5'), Decimal('12.0')]
    >>> array_of_objects([datetime.date(2026, 1, 31), datetime.datetime(2026, 2, 1, 12)])
    Traceback (most recent call last):
    ValueError: row 1 (counting from 0) is a timestamp without zone, ..., and row 0 a date: the values ...
    """
    types = check_kinds(values)
    if types == {Decimal, int}:
        values = [Decimal(value) if type(value) is int else value for value in values]
    array = pa.array(values)
    if not types <= _PLAIN:
        _check_exact(values, array)
    return array


def check_kinds(values: Iterable[Any]) -> set[type]:
    """The types of the values but None's.  Raises ValueError where they are not of one kind."""
    types = set(map(type, values)) - {type(None)}
    if len(types) <= 1 and not any(issubclass(type_, _WITH_ZONES) for type_ in types):
        return types
    first: tuple[int, str] | None = None
    for row, value in enumerate(values):
        kind = _kind(value)
        if kind == "time with zone":
            raise ValueError(f"row {row} (counting from 0) is {value!r}: a time of day has no zone in Arrow")
        if first is None and kind is not None:
            first = row, kind
        if kind is not None and first is not None and kind != first[1]:
            raise ValueError(
                f"row {row} (counting from 0) is a {kind}, {value!r}, and row {first[0]} a {first[1]}:"
                " the values of a column are of one kind"
            )
    return types


def _kind(value: Any) -> str | None:
    """None: of NULL, and of what pyarrow is left to judge."""
    has_zone = getattr(value, "tzinfo", None) is not None
    for types, name in _KINDS:
        if isinstance(value, types):
            if isinstance(value, float | np.floating | datetime.datetime) and value != value:
                return None  # NaN, and what pandas has for NULL among times
            if name == "timestamp":
                return f"{name} with{'' if has_zone else 'out'} zone"
            return "time with zone" if name == "time" and has_zone else name
    return None


def _check_exact(values: Sequence[Any], array: pa.Array | pa.ChunkedArray) -> None:
    """Raise ValueError where a value of numpy's or pandas' own types is another one in the array."""
    suspects = (np.number, np.bool_, datetime.datetime, datetime.timedelta)
    if not any(isinstance(value, suspects) for value in values):
        return
    for row, (value, taken) in enumerate(zip(values, array.to_pylist(), strict=True)):
        suspect = isinstance(value, suspects) and not isinstance(value, np.timedelta64)
        if suspect and value == value and value != taken:
            raise ValueError(
                f"row {row} (counting from 0) is {value!r}, which type {array.type} does not hold exactly"
            )
