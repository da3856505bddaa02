"""`cast(x, "int64")`: the same value in another type, or a refusal.

A cast gives what stands for the value exactly, and refuses the row otherwise: ``2.5`` is no integer
(``floor``, ``ceil`` and ``round`` give one), ``300`` no ``int8``, ``1.25`` no ``decimal(4, 1)``.  What is
nearest is taken only where the type can't be exact: numbers become the nearest float, floats the nearest
decimal.

Text is read and written as Arrow does: ``2026-01-31``, ``2026-01-31 10:00:00``, ``true``; floats as Python
writes them, dates beyond the years 1 to 9999 as DuckDB does.  A timestamp with a zone gives its local time.

The integer of a date, a timestamp or a duration is its number of units, days for a date, since 1970 (in UTC),
and back: that of a ``timestamp[ms]`` is in milliseconds.

Cost: whole-array operations.
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import TypeClashError
from lftj.values.arithmetic import Kernel, to_float64
from lftj.values.calendar import dates_of, local_times, read_text, written
from lftj.values.kinds import NUMERIC, cast_decimal, decimal_type, digits_and_scale, kind, plain_type, signed

_TYPES: dict[str, pa.DataType] = {
    **{
        f"{sign}int{width}": pa.type_for_alias(f"{sign}int{width}")
        for sign in ("", "u")
        for width in (8, 16, 32, 64)
    },
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"duration[{unit}]": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
}
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")

_FROM: dict[str, tuple[str, ...]] = {
    "integer": (*NUMERIC, "boolean", "string", "date", "timestamp", "duration"),
    "float": (*NUMERIC, "boolean", "string"),
    "decimal": (*NUMERIC, "string"),
    "boolean": ("boolean", "integer", "string"),
    "string": (*NUMERIC, "boolean", "string", "date", "time", "timestamp"),
    "date": ("date", "timestamp", "string", "integer"),
    "timestamp": ("date", "timestamp", "string", "integer"),
    "duration": ("duration", "integer"),
}
"""What can become a type of a kind."""


def named_type(name: str) -> pa.DataType:
    """The type that a rule calls so.  Raises :class:`~lftj.errors.TypeClashError`.

    >>> str(named_type("decimal(18, 2)")), str(named_type("timestamp[ms]"))
    ('decimal128(18, 2)', 'timestamp[ms]')
    """
    if name in _TYPES:
        return _TYPES[name]
    numbers = _DECIMAL.fullmatch(name)
    if numbers is None:
        raise TypeClashError(f"no type '{name}' to cast to; there are {', '.join(_TYPES)} and decimal(18, 2)")
    digits, scale = (int(number) for number in numbers.groups())
    if not 0 < digits or scale > digits:
        raise TypeClashError(
            f"there is no {name}: a decimal has at least a digit, and not more behind the point"
        )
    return decimal_type(digits, scale)


def type_name_reached(source: pa.DataType, wanted: pa.DataType) -> str | None:
    """By what name values of a type are cast to those of another; None where they can't be.

    >>> type_name_reached(pa.int64(), pa.large_string()), type_name_reached(pa.date32(), pa.decimal128(5, 2))
    ('string', None)
    """
    source, wanted = plain_type(source), plain_type(wanted)
    if kind(source) not in _FROM.get(kind(wanted), ()) or getattr(wanted, "tz", None) is not None:
        return None
    if kind(wanted) in ("string", "date"):
        return kind(wanted)
    if pa.types.is_decimal(wanted):
        return f"decimal({wanted.precision}, {wanted.scale})"
    return next((name for name, type_ in _TYPES.items() if type_ == wanted and name != "timestamp"), None)


def cast_kernel(source: pa.DataType, wanted: pa.DataType) -> Kernel:
    """What casts arrays of the plain type ``source``.  Raises :class:`~lftj.errors.TypeClashError`.

    >>> cast_kernel(pa.string(), pa.int64())(pa.array(["12"])).to_pylist()
    [12]
    >>> cast_kernel(pa.float64(), pa.string())(pa.array([1.0, 1e20])).to_pylist()
    ['1.0', '1e+20']
    """
    source = plain_type(source)
    before, after = kind(source), kind(wanted)
    if before not in _FROM[after]:
        raise TypeClashError(f"there is no cast from type {source} to {wanted}")
    if after == "float" and before in NUMERIC:
        return partial(_to_float, wanted=wanted)
    if after == "decimal" and before in ("decimal", "integer"):
        return partial(_to_decimal, wanted=wanted)
    if after == "string" and before in ("float", "decimal"):
        return _written_floats if before == "float" else _written_decimals
    if (before, after) in _MOMENTS:
        return partial(_MOMENTS[before, after], wanted=wanted)
    return lambda values: values.cast(wanted)


_COUNTED = ("timestamp", "duration")

_MOMENTS: dict[tuple[str, str], Kernel] = {
    ("string", "date"): read_text,
    ("string", "timestamp"): read_text,
    ("timestamp", "date"): lambda moments, wanted: dates_of(moments),
    ("timestamp", "timestamp"): lambda moments, wanted: local_times(moments).cast(wanted),
    ("date", "integer"): lambda dates, wanted: dates.cast(pa.date32()).cast(pa.int32()).cast(wanted),
    **{(name, "integer"): lambda moments, wanted: moments.cast(pa.int64()).cast(wanted) for name in _COUNTED},
    ("integer", "date"): lambda numbers, wanted: numbers.cast(pa.int32()).cast(wanted),
    **{("integer", name): lambda numbers, wanted: numbers.cast(pa.int64()).cast(wanted) for name in _COUNTED},
    ("date", "string"): lambda dates, wanted: written(dates.cast(pa.date32())),
    ("timestamp", "string"): lambda moments, wanted: written(moments),
}
"""What pyarrow's own casts would wrap around, or give an error's text for."""


def _to_float(numbers: pa.Array, wanted: pa.DataType) -> pa.Array:
    if numbers.type == wanted:
        return numbers
    floats = to_float64(numbers)
    if wanted == pa.float64():
        return floats
    narrow = floats.cast(wanted)
    if pc.any(pc.and_(pc.is_inf(narrow), pc.invert(pc.is_inf(floats)))).as_py():
        raise pa.ArrowInvalid("beyond the range of float32")
    return narrow


def _to_decimal(numbers: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_integer(numbers.type):
        numbers = signed(numbers).cast(decimal_type(*digits_and_scale(numbers.type)))
    return cast_decimal(numbers, wanted)


def _written_floats(floats: pa.Array) -> pa.Array:
    texts = pa.array(floats.to_numpy(zero_copy_only=False).astype(np.str_), pa.string())
    if floats.type == pa.float64():
        return texts
    return pa.array([repr(float(text)) for text in texts.to_pylist()], pa.string())  # its shortest digits


def _written_decimals(decimals: pa.Array) -> pa.Array:
    texts = decimals.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return pa.array([f"{number:f}" for number in decimals.to_pylist()], pa.string())
