"""The float domain: IEEE doubles by the bit map that keeps their order.

A double's bits, read as an integer, grow with its magnitude.  Flipping all but
the sign bit of negative numbers makes them grow with the value.  Narrower
floats are widened first, which is exact: ``float32(0.1)`` and ``float64(0.1)``
are different numbers and don't meet.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import cast

import numpy as np
import pyarrow as pa

from lftj.values.domain import EMPTY_INTERVAL, NAN_CODE, ArrowColumn, Domain, chunks_of, joined
from lftj.values.literals import Value
from lftj.values.whole import interval_around

_MAGNITUDE_BITS = np.int64(2**63 - 1)


def float_codes(values: np.ndarray) -> np.ndarray:
    """Codes of float64 ``values``, in a new array.

    >>> float_codes(np.array([-1.5, -0.0, 0.0, 2.0, np.nan])).argsort(kind="stable").tolist()
    [0, 1, 2, 3, 4]
    """
    bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    codes = np.bitwise_xor(bits, (bits >> 63) & _MAGNITUDE_BITS, out=bits)
    codes[np.isnan(values)] = NAN_CODE
    return cast(np.ndarray, codes)


def floats_of_codes(codes: np.ndarray) -> np.ndarray:
    """Inverse of :func:`float_codes`.

    >>> floats_of_codes(float_codes(np.array([-1.5, 2.0]))).tolist()
    [-1.5, 2.0]
    """
    return cast(np.ndarray, (codes ^ ((codes >> 63) & _MAGNITUDE_BITS)).view(np.float64))


class FloatDomain(Domain):
    name = "float"

    def encode_constant(self, value: Value) -> int | None:
        low, high = self.interval("=", value)
        return low if low <= high else None

    def interval(self, operator: str, value: Value) -> tuple[int, int]:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise self._clash(value)
        floor, ceiling = _neighbours(value)
        if math.isnan(floor):
            return EMPTY_INTERVAL
        return interval_around(operator, _code(floor), _code(ceiling), _code(-math.inf), _code(math.inf))

    def _encode_plain(self, column: ArrowColumn) -> np.ndarray:
        parts = [chunk.to_numpy(zero_copy_only=False) for chunk in chunks_of(column)]
        return float_codes(joined(parts, np.float64).astype(np.float64, copy=False))

    def _decode_plain(self, codes: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
        # Values of a column fit its type; computed ones become infinite in a narrower one, as in C.
        with np.errstate(over="ignore"):
            return pa.array(floats_of_codes(codes).astype(arrow_type.to_pandas_dtype()), arrow_type)


def _code(value: float) -> int:
    return int(float_codes(np.array([value]))[0])


def _neighbours(value: int | float | Decimal) -> tuple[float, float]:
    """Greatest float <= value and least float >= value: the same float, when there is one that equals it.

    A Decimal counts as the float nearest to it: ``x = 0.1`` finds what a file's 0.1 was read as.
    """
    if isinstance(value, float):
        return value, value
    try:
        near = float(value)
    except OverflowError:  # an int beyond all floats
        near = math.inf if value > 0 else -math.inf
    if math.isinf(near):
        largest = math.copysign(sys.float_info.max, near)
        return min(near, largest), max(near, largest)
    if isinstance(value, Decimal) or near == value:
        return near, near
    if near < value:
        return near, math.nextafter(near, math.inf)
    return math.nextafter(near, -math.inf), near
