"""`sql_cast(x, "int64")`: a value in another type as SQL's CAST has it, by DuckDB's rules.

What the type can't hold exactly is rounded to it: decimals half away from zero, floats to whole numbers half
to even and to decimals half away after they are multiplied, timestamps to the nearest of a coarser unit.
Numbers become booleans, false where they are 0.  Text is read without the spaces around it, numbers with
exponents and dates with single digits, too; a fraction of a second is written without zeros behind it.  What
is beyond the type is refused.

Cost: whole-array operations; text that Arrow does not read is read row by row.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel
from lftj.values.calendar import local_times, nearest, read_text
from lftj.values.casts import cast_kernel
from lftj.values.kinds import MAX_DIGITS, NANOSECONDS, NUMERIC, cast_decimal, kind, plain_type
from lftj.values.rounding import round_decimals

_BOOLEANS = dict.fromkeys(("t", "true", "1", "y", "yes"), True)
_BOOLEANS |= dict.fromkeys(("f", "false", "0", "n", "no"), False)
_HALF_UP = decimal.Context(prec=2 * MAX_DIGITS, rounding=decimal.ROUND_HALF_UP)
_MOMENT = re.compile(
    r"(?P<year>[0-9]{4,})[-/](?P<month>[0-9]{1,2})[-/](?P<day>[0-9]{1,2})"
    r"(?:[T ]\s*(?P<clock>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
    r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


def sql_kernel(source: pa.DataType, wanted: pa.DataType) -> Kernel:
    """What casts arrays of the plain type ``source``.  Raises :class:`~lftj.errors.TypeClashError`.

    >>> sql_kernel(pa.float64(), pa.int64())(pa.array([2.5, 3.5])).to_pylist()
    [2, 4]
    >>> sql_kernel(pa.string(), pa.int64())(pa.array([" 2.5", "1e3"])).to_pylist()
    [3, 1000]
    """
    source = plain_type(source)
    before, after = kind(source), kind(wanted)
    own = _OWN.get((before, after))
    return cast_kernel(source, wanted) if own is None else partial(own, wanted=wanted)


def tried(kernel: Kernel, result: pa.DataType, values: pa.Array) -> pa.Array:
    """What the kernel gives, NULL where it refuses a row.

    >>> tried(sql_kernel(pa.string(), pa.int8()), pa.int8(), pa.array(["1", "x", "300"])).to_pylist()
    [1, None, None]
    """
    try:
        return kernel(values)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, result)
        half = len(values) // 2
        return pa.concat_arrays([tried(kernel, result, part) for part in (values[:half], values[half:])])


def _float_to_integer(floats: pa.Array, wanted: pa.DataType) -> pa.Array:
    whole = np.rint(floats.to_numpy(zero_copy_only=False).astype(np.float64))
    if not np.isfinite(whole).all():
        raise pa.ArrowInvalid("no number")
    return pa.array(whole).cast(wanted)


def _float_to_decimal(floats: pa.Array, wanted: pa.DataType) -> pa.Array:
    with np.errstate(over="ignore"):
        scaled = floats.to_numpy(zero_copy_only=False).astype(np.float64) * 10.0**wanted.scale
    if not (np.abs(scaled) < 10.0**wanted.precision).all():
        raise pa.ArrowInvalid("beyond the digits")
    whole = np.trunc(scaled)
    whole += np.where(np.abs(scaled - whole) >= 0.5, np.copysign(1.0, scaled), 0.0)
    numbers = [Decimal(number).scaleb(-wanted.scale, _HALF_UP) for number in whole.tolist()]
    return pa.array(numbers, wanted)


def _decimal_to_integer(decimals: pa.Array, wanted: pa.DataType) -> pa.Array:
    whole = round_decimals(decimals, 0, pa.decimal256(MAX_DIGITS, 0))
    return cast_decimal(whole, pa.decimal128(38, 0)).cast(wanted)


def _decimal_to_decimal(decimals: pa.Array, wanted: pa.DataType) -> pa.Array:
    return round_decimals(decimals, wanted.scale, wanted)


def _number_to_boolean(numbers: pa.Array, wanted: pa.DataType) -> pa.Array:
    return pc.not_equal(pc.sign(numbers), 0)


def _boolean_to_decimal(booleans: pa.Array, wanted: pa.DataType) -> pa.Array:
    return cast_decimal(booleans.cast(pa.int64()).cast(pa.decimal128(19, 0)), wanted)


def _nearest_moment(moments: pa.Array, wanted: pa.DataType) -> pa.Array:
    moments = local_times(moments)
    step = NANOSECONDS[wanted.unit] // NANOSECONDS[moments.type.unit]
    if step <= 1:
        return moments.cast(wanted)
    return pa.array(nearest(moments.cast(pa.int64()).to_numpy(), step)).cast(wanted)


def _without_zeros(moments: pa.Array, wanted: pa.DataType) -> pa.Array:
    written = cast_kernel(moments.type, wanted)(moments)
    return pc.replace_substring_regex(written, r"(:[0-9]{2})(?:\.0+|(\.[0-9]*[1-9])0+)\b", r"\1\2")


# -- text ---------------------------------------------------------------------------------


def _read(
    by_array: Callable[[pa.Array, pa.DataType], pa.Array],
    by_row: Callable[[str, pa.DataType], Any],
    texts: pa.Array,
    wanted: pa.DataType,
) -> pa.Array:
    stripped = pc.utf8_trim(texts, " \t\n\v\f\r")
    try:
        return by_array(stripped, wanted)
    except pa.ArrowInvalid:
        pass
    try:
        return pa.array([by_row(text, wanted) for text in stripped.to_pylist()], wanted)
    except (ArithmeticError, ValueError) as error:  # pa.ArrowInvalid among the latter
        raise pa.ArrowInvalid(str(error)) from None


def _number(text: str, scale: int) -> Decimal:
    number = _HALF_UP.create_decimal(text)
    if number.adjusted() > MAX_DIGITS:
        raise pa.ArrowInvalid("beyond the digits")
    return number.quantize(Decimal(1).scaleb(-scale), context=_HALF_UP)


def _to_moment(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_date(wanted):
        return read_text(texts, wanted)
    return _nearest_moment(read_text(texts, _fine(wanted)), wanted)


def _fine(wanted: pa.DataType) -> pa.DataType:
    """What text is read as before it is rounded."""
    return pa.timestamp("ns" if wanted == pa.timestamp("ns") else "us")


def _moment(text: str, wanted: pa.DataType) -> Any:
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        raise pa.ArrowInvalid("no moment")
    clock = parts["clock"] or "00:00:00"
    clock = f"{clock:0>8}" if clock.count(":") == 2 else f"{clock:0>5}:00"
    written = pa.array([f"{parts['year']}-{parts['month']:0>2}-{parts['day']:0>2} {clock}"])
    read = read_text(written, _fine(wanted))
    return sql_kernel(read.type, wanted)(read)[0].as_py()


def _to_boolean(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    found = [_BOOLEANS.get(text.lower()) for text in texts.to_pylist()]
    if None in found:
        raise pa.ArrowInvalid("no boolean")
    return pa.array(found, wanted)


def _by_arrow(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    return texts.cast(wanted)


_OWN: dict[tuple[str, str], Kernel] = {
    ("float", "integer"): _float_to_integer,
    ("float", "decimal"): _float_to_decimal,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "decimal"): _decimal_to_decimal,
    **{(before, "boolean"): _number_to_boolean for before in NUMERIC},
    ("boolean", "decimal"): _boolean_to_decimal,
    ("timestamp", "timestamp"): _nearest_moment,
    ("timestamp", "string"): _without_zeros,
    ("time", "string"): _without_zeros,
    ("string", "integer"): partial(_read, _by_arrow, lambda text, _: int(_number(text, 0))),
    ("string", "float"): partial(_read, _by_arrow, lambda text, _: float(text)),
    ("string", "decimal"): partial(_read, _by_arrow, lambda text, wanted: _number(text, wanted.scale)),
    ("string", "boolean"): _to_boolean,
    ("string", "date"): partial(_read, _to_moment, _moment),
    ("string", "timestamp"): partial(_read, _to_moment, _moment),
}
"""Where SQL's cast is another one than :mod:`lftj.values.casts` has."""
