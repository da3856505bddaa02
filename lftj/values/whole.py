"""Domains of whole numbers: integer, boolean, date, time, timestamp, duration.

A value is a whole number of some unit, and that number is its code.  A literal
of a rule is an exact fraction of the same unit: ``2.5`` lies between two
integers, ``10:00:00.5`` between two timestamps in seconds.  So comparisons are
never rounded, whatever the unit.
"""

from __future__ import annotations

import datetime
import math
import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.errors import RangeError
from lftj.values.domain import EMPTY_INTERVAL, NULL_CODE, ArrowColumn, Domain, chunks_of, joined
from lftj.values.literals import Value

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MICROSECONDS_PER_DAY = 86_400 * 10**6
_MILLISECONDS_PER_DAY = 86_400 * 10**3
_MICROSECOND = datetime.timedelta(microseconds=1)

_claiming = threading.Lock()
"""Of two threads, one that loads NULLs and one the least value, one is refused."""


def new_domain(name: str, arrow_type: Any) -> Domain:
    """The domain of ``name``; a unit and a zone are read from ``arrow_type``.

    >>> new_domain("date", pa.date32()).encode_constant(datetime.date(1970, 1, 2))
    1
    """
    if name == "integer":
        return _IntegerDomain(name)
    if name == "boolean":
        return _BooleanDomain(name, integral=False)
    if name == "date":
        return _DateDomain(name)
    if name.startswith("timestamp"):
        return _TimestampDomain(name, arrow_type.unit, arrow_type.tz is not None)
    if name.startswith("duration"):
        return _DurationDomain(name, arrow_type.unit)
    return WholeDomain(name)


class WholeDomain(Domain):
    """Values stored as whole numbers.  Itself for time: rules have no literals of it.

    The least 64-bit number has the code of NULL: there is the one or the other.
    """

    _has_least = False

    def __init__(self, name: str, integral: bool = True) -> None:
        self.name = name
        self.integral = integral

    def encode(self, column: ArrowColumn) -> np.ndarray:
        codes = super().encode(column)
        self.claim(codes)
        return codes

    def keep_null(self) -> None:
        with _claiming:
            if self._has_least:
                raise RangeError(
                    f"there is, or was, the value {INT64_MIN} of type {self.name} elsewhere in this"
                    ' database, which has the code of NULL: load this relation with nulls="drop", or a new'
                    " database without that value"
                )
            self.keeps_null = True

    def claim(self, codes: np.ndarray) -> None:
        if not len(codes) or codes.min() != NULL_CODE:
            return
        with _claiming:
            if self.keeps_null:
                raise RangeError(
                    f"the value {INT64_MIN} of type {self.name} has the code of NULL, and a relation of this"
                    ' database was loaded with nulls="keep"'
                )
            self._has_least = True

    def encode_constant(self, value: Value) -> int | None:
        low, high = self.interval("=", value)
        return low if low <= high else None

    def interval(self, operator: str, value: Value) -> tuple[int, int]:
        exact = self._exact(value)
        if isinstance(exact, float):
            if math.isnan(exact):
                return EMPTY_INTERVAL
            beyond = INT64_MAX + 1 if exact > 0 else INT64_MIN - 1
            return interval_around(operator, beyond, beyond, INT64_MIN, INT64_MAX)
        return interval_around(operator, math.floor(exact), math.ceil(exact), INT64_MIN, INT64_MAX)

    def _exact(self, value: Value) -> Fraction | float:
        """The literal in this domain's unit: a fraction, or an infinite or NaN float."""
        raise self._clash(value)

    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        if column.type.bit_width == 32 and not pa.types.is_integer(column.type):
            column = column.cast(pa.int32())  # date32 and time32 have no cast to int64
        # A cast imports pyarrow.compute, even one to the same type.
        is_int64 = column.type == pa.int64()
        return joined(
            [_int64s(chunk if is_int64 else chunk.cast(pa.int64())) for chunk in chunks_of(column)], np.int64
        )

    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        # from_buffers and not pa.array: that would import pandas, where there is one, to look at the type.
        codes = np.ascontiguousarray(codes, dtype=np.int64)
        array = pa.Array.from_buffers(pa.int64(), len(codes), [None, pa.py_buffer(codes)])
        if arrow_type.bit_width == 32 and not pa.types.is_integer(arrow_type):
            array = array.cast(pa.int32())
        return array if arrow_type == pa.int64() else array.cast(arrow_type)


def _int64s(array: pa.Array) -> np.ndarray:
    """The values of an int64 array without NULL, not copied (``to_numpy`` would import pandas)."""
    if not len(array):
        return np.empty(0, dtype=np.int64)
    return np.frombuffer(array.buffers()[1], dtype=np.int64, count=len(array), offset=8 * array.offset)


class _IntegerDomain(WholeDomain):
    def _exact(self, value: Value) -> Fraction | float:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise self._clash(value)
        if isinstance(value, float) and not math.isfinite(value):
            return value
        return Fraction(value)

    def steps(self, value: Value) -> int | None:
        return value if type(value) is int else None

    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        try:
            return super()._encode_plain(column)
        except pa.ArrowInvalid:
            values = joined([chunk.to_numpy() for chunk in chunks_of(column)], np.uint64)
            first = values[values > INT64_MAX][0]
            raise RangeError(
                f"the uint64 value {first} is above 2**63 - 1, the largest key;"
                " cast the column to decimal128(20, 0) or to string"
            ) from None


class _BooleanDomain(WholeDomain):
    def interval(self, operator: str, value: Value) -> tuple[int, int]:
        if not isinstance(value, bool):
            raise self._clash(value)
        return interval_around(operator, int(value), int(value), 0, 1)

    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        return super()._encode_plain(column.cast(pa.int8()))

    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        return pa.array(codes.astype(bool), arrow_type)


class _DateDomain(WholeDomain):
    """Days since 1970-01-01.  Against a timestamp literal a date counts as its midnight."""

    def steps(self, value: Value) -> int | None:
        return value if type(value) is int else None

    def _exact(self, value: Value) -> Fraction | float:
        if isinstance(value, datetime.datetime) and value.tzinfo is None:
            return Fraction(_microseconds(value), _MICROSECONDS_PER_DAY)
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return Fraction((value - datetime.date(1970, 1, 1)).days)
        raise self._clash(value)

    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        codes = super()._encode_plain(column)
        return codes // _MILLISECONDS_PER_DAY if pa.types.is_date64(column.type) else codes

    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        if pa.types.is_date64(arrow_type):
            codes = codes * _MILLISECONDS_PER_DAY
        return super()._decode_plain(codes, arrow_type)


class _TimestampDomain(WholeDomain):
    """Units since 1970-01-01T00:00, of UTC when aware.  For naive columns a date literal is its midnight."""

    def __init__(self, name: str, unit: str, aware: bool) -> None:
        super().__init__(name)
        self._units_per_second = _UNITS_PER_SECOND[unit]
        self._aware = aware

    def steps(self, value: Value) -> int | None:
        return _steps(value, self._units_per_second)

    def _exact(self, value: Value) -> Fraction | float:
        if isinstance(value, datetime.datetime):
            if (value.tzinfo is not None) != self._aware:
                raise self._clash(value)
        elif isinstance(value, datetime.date) and not self._aware:
            value = datetime.datetime(value.year, value.month, value.day)
        else:
            raise self._clash(value)
        return Fraction(_microseconds(value) * self._units_per_second, 10**6)


class _DurationDomain(WholeDomain):
    def __init__(self, name: str, unit: str) -> None:
        super().__init__(name)
        self._units_per_second = _UNITS_PER_SECOND[unit]

    def _exact(self, value: Value) -> Fraction:
        if not isinstance(value, datetime.timedelta):
            raise self._clash(value)
        return _units(value, self._units_per_second)

    def steps(self, value: Value) -> int | None:
        return _steps(value, self._units_per_second)


def _units(span: datetime.timedelta, per_second: int) -> Fraction:
    return Fraction(span // _MICROSECOND * per_second, 10**6)


def _steps(value: Value, per_second: int) -> int | None:
    """Of durations that are whole units."""
    exact = _units(value, per_second) if isinstance(value, datetime.timedelta) else Fraction(1, 2)
    return exact.numerator if exact.denominator == 1 else None


def _microseconds(value: datetime.datetime) -> int:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else datetime.UTC)
    return (value - epoch) // _MICROSECOND


def interval_around(operator: str, floor: int, ceiling: int, least: int, most: int) -> tuple[int, int]:
    """The codes of ``[least, most]`` with ``code operator value``, as a closed interval.

    ``floor`` and ``ceiling`` are the codes next to the value, both its own code when it has one.

    >>> interval_around("<", 2, 3, 0, 9), interval_around("=", 2, 3, 0, 9), interval_around(">=", 3, 3, 0, 9)
    ((0, 2), (0, -1), (3, 9))
    """
    if operator == "<":
        low, high = least, ceiling - 1
    elif operator == "<=":
        low, high = least, floor
    elif operator == ">":
        low, high = floor + 1, most
    elif operator == ">=":
        low, high = ceiling, most
    elif operator == "=":
        low, high = ceiling, floor
    else:
        raise ValueError(f"the codes with operator {operator!r} are no interval")
    low, high = max(low, least), min(high, most)
    return (low, high) if low <= high else EMPTY_INTERVAL
