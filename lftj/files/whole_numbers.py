"""Floats that a reader may have made of integers, which float together from 2^53 on."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

EXACT = 2.0**53
"""Below it each integer is a float of its own."""


def may_merge(values: pa.ChunkedArray) -> bool:
    """Whether among these values are floats that stand for more than one integer.

    >>> may_merge(pa.chunked_array([[0.5, 1e15]])), may_merge(pa.chunked_array([[-1e16, None]]))
    (False, True)
    """
    if not pa.types.is_float64(values.type):
        return False
    bounds = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low is not None and (low <= -EXACT or high >= EXACT)


def is_exact(integer: str) -> bool:
    """Whether there is a float of an integer's value.

    >>> is_exact("9007199254740992"), is_exact("9007199254740993")
    (True, False)
    """
    return len(integer) < 300 and float(integer) == int(integer)
