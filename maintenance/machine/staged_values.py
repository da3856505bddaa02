"""Values of columns as numbers: what a program has in Python, the machine's codes, an entry's bytes.

Invariant: a value that is taken has the code that its domain gives it (:mod:`lftj.values.whole`,
:mod:`lftj.values.floating`), and an entry the bytes that Arrow has; what is not of the column's own type is
left to the general way, which converts or refuses.

Cost: of a value a call; of int64 less, for they are looked at where they are staged.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.values.domain import NULL_CODE
from lftj.values.floating import floats_of_codes
from lftj.values.schema import ColumnType, Schema
from maintenance.machine.interned_values import interning_of

LARGEST = (1 << 63) - 1
"""The least of 64 bits may stand for NULL."""

Staging = Callable[[Any], int | None]
"""The code of a value, None where it is not taken."""

_BITS, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}


def staging_of(type_: ColumnType) -> Staging | None:
    """How values of a column are staged; None where they are not."""
    staging = number_staging(type_.arrow) or interning_of(type_)
    return partial(_or_null, staging) if staging is not None and type_.nullable else staging


def _or_null(staging: Staging, value: Any) -> int | None:
    return NULL_CODE if value is None else staging(value)


def number_staging(arrow: Any) -> Staging | None:
    """The same of a column of whole numbers or floats, without NULL."""
    if pa.types.is_integer(arrow) and arrow != pa.uint64():
        least, most = _range_of(arrow)
        return partial(_integer, max(least, -LARGEST), most)
    if pa.types.is_boolean(arrow):
        return _boolean
    if pa.types.is_date32(arrow):
        return _date
    if pa.types.is_timestamp(arrow) and arrow.tz is None and arrow.unit in _MICROSECONDS:
        return partial(_timestamp, _MICROSECONDS[arrow.unit])
    return _float if pa.types.is_float64(arrow) else None


def _range_of(arrow: Any) -> tuple[int, int]:
    info = np.iinfo(arrow.to_pandas_dtype())
    return int(info.min), int(info.max)


def _integer(least: int, most: int, value: Any) -> int | None:
    return value if type(value) is int and least <= value <= most else None


def _boolean(value: Any) -> int | None:
    return int(value) if type(value) is bool else None


def _date(value: Any) -> int | None:
    return value.toordinal() - _EPOCH if type(value) is datetime.date else None


def _timestamp(microseconds: int, value: Any) -> int | None:
    """``microseconds``: of the column's unit; what lies between two is not taken."""
    if type(value) is not datetime.datetime or value.tzinfo is not None:
        return None
    seconds = (value.toordinal() - _EPOCH) * 86_400 + value.hour * 3_600 + value.minute * 60 + value.second
    code, rest = divmod(seconds * 10**6 + value.microsecond, microseconds)
    return None if rest else code


def _float(value: Any) -> int | None:
    """As :func:`lftj.values.floating.float_codes`; NaN, which may be refused, is not taken."""
    if type(value) is not float or value != value:
        return None
    (bits,) = _BITS.unpack(_DOUBLE.pack(value + 0.0))  # -0.0 + 0.0 is 0.0
    return int(bits ^ ((bits >> 63) & LARGEST))


def has_fixed_width(schema: Schema) -> bool:
    """Whether what Arrow has for rows of columns that are staged depends on their number alone."""
    return not (schema.keeps_null or schema.dictionaries or schema.bag)


def bytes_of(type_: ColumnType) -> Callable[[np.ndarray], bytes] | None:
    """What Arrow has for codes of a column that is staged, of fixed width; None: the codes as they are."""
    arrow = type_.arrow
    if pa.types.is_boolean(arrow):
        return _bits
    if pa.types.is_float64(arrow):
        return _doubles
    if arrow.bit_width == 64:
        return None
    return partial(_narrowed, np.int32 if pa.types.is_date32(arrow) else arrow.to_pandas_dtype())


def _bits(codes: np.ndarray) -> bytes:
    return np.packbits(codes.astype(np.uint8), bitorder="little").tobytes()


def _doubles(codes: np.ndarray) -> bytes:
    return floats_of_codes(codes).tobytes()


def _narrowed(dtype: Any, codes: np.ndarray) -> bytes:
    return codes.astype(dtype).tobytes()
