"""Texts as values of a type, a column at once; of what can't be read the rows are said, and the rest stands.

Cost: one cast of the column; where it fails, O(log n) more for each row that is wrong.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Reader = Callable[[pa.Array], pa.Array]
"""Takes texts, and gives their values; raises ``pa.ArrowInvalid`` where one has none."""


def typed(texts: pa.Array, wanted: pa.DataType, read: Reader | None = None) -> tuple[pa.Array, list[int]]:
    """The values of texts, NULL where they have none, and the rows of which that is so by mistake.

    ``read``: how; by default as CSV and JSON have the type.

    >>> values, wrong = typed(pa.array(["1", None, "x", "3"]), pa.int64())
    >>> values.to_pylist(), wrong
    ([1, None, None, 3], [2])
    """
    convert = read or reader(wanted)
    try:
        return convert(texts), []
    except pa.ArrowInvalid:
        wrong = _refused(convert, texts, 0, len(texts))
    mask = np.zeros(len(texts), bool)
    mask[wrong] = True
    known = pc.if_else(pa.array(mask), pa.scalar(None, texts.type), texts)
    return convert(known), wrong


def reader(wanted: pa.DataType) -> Reader:
    """What reads texts as CSV and JSON have them: binary as base64, timestamps and dates as ISO 8601."""
    if pa.types.is_string(wanted) or pa.types.is_large_string(wanted):
        return lambda texts: texts.cast(wanted)
    if pa.types.is_binary(wanted) or pa.types.is_large_binary(wanted):
        return lambda texts: each(texts, wanted, lambda text: base64.b64decode(text, validate=True))
    if pa.types.is_time(wanted):
        return lambda texts: _times(texts, wanted)
    return lambda texts: pc.cast(texts, wanted)


def each(texts: pa.Array, wanted: pa.DataType, value_of: Callable[[str], object]) -> pa.Array:
    """The values one by one, where Arrow has no way; ``value_of`` raises ValueError."""
    try:
        return pa.array([None if text is None else value_of(text) for text in texts.to_pylist()], wanted)
    except (ValueError, binascii.Error) as error:
        raise pa.ArrowInvalid(str(error)) from None


def _times(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Times of a day are those of the first day of all."""
    moments = pc.binary_join_element_wise(
        pa.scalar("1970-01-01", texts.type), texts, pa.scalar(" ", texts.type)
    )
    return moments.cast(pa.timestamp(wanted.unit)).cast(wanted)


def _refused(convert: Reader, texts: pa.Array, low: int, high: int) -> list[int]:
    """The rows from low to high, one of them at least, that can't be read."""
    if high - low == 1:
        return [low]
    middle, found = (low + high) // 2, []
    for start, end in ((low, middle), (middle, high)):
        try:
            convert(texts.slice(start, end - start))
        except pa.ArrowInvalid:
            found += _refused(convert, texts, start, end)
    return found
