"""One arithmetic operation on two Arrow columns: its types, and a kernel that refuses what does not fit.

``%`` is the remainder of a division that is truncated towards zero, with the sign of the dividend, as in SQL.
Integers compute in ``int64``, floats in ``float64``.  ``/`` is true division and
gives ``float64``, as in Python and DuckDB; of two integers the correctly rounded
quotient.  Decimals keep all digits; a result of ``decimal128`` columns that could
need more than 38 stays ``decimal128`` and is checked.  A date plus or minus days
is a date, the difference of two dates a number of days; timestamps and durations
combine as in Arrow, in the finer unit, and beside a duration a date is its midnight.

A kernel takes arrays of one length without NULLs, works row by row, and raises
``pa.ArrowInvalid`` when a row has no result.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import EvaluationError, TypeClashError
from lftj.values.kinds import (
    MAX_DIGITS,
    NUMERIC,
    decimal_type,
    digits_and_scale,
    finer_unit,
    kind,
    plain_array,
    plain_type,
    signed,
)

Kernel = Callable[..., pa.Array]


class Refused(pa.ArrowInvalid):
    """A row has no result, for the reason that the message says."""

    raised: type[EvaluationError] = EvaluationError
    """What the caller is told."""
    is_whole = False
    """Whether the message is all that there is to say."""


_CHECKED: dict[str, Kernel] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": pc.divide_checked,
}
_EXACT_INTEGERS = 2**53  # up to here an int64 is a float64
_WIDE = decimal.Context(prec=400)


def decimal_result(operator: str, left: Decimal, right: Decimal) -> Decimal:
    """``left operator right`` with all its digits; the operator is ``+ - *`` or ``%``.

    >>> decimal_result("*", Decimal("1.5"), Decimal("0.25"))
    Decimal('0.375')
    """
    if operator == "+":
        return _WIDE.add(left, right)
    if operator == "%":
        return _WIDE.remainder(left, right)
    return _WIDE.subtract(left, right) if operator == "-" else _WIDE.multiply(left, right)


class Signature(NamedTuple):
    """What operands are cast to, and the type of the result."""

    left: pa.DataType
    right: pa.DataType
    result: pa.DataType


def negated_type(operand: pa.DataType) -> pa.DataType:
    """Type of ``-x``.  Raises :class:`~lftj.errors.TypeClashError`.

    >>> str(negated_type(pa.uint8()))
    'int64'
    """
    name = kind(operand)
    if name == "integer":
        return pa.int64()
    if name == "float":
        return pa.float64()
    if name == "decimal":
        return decimal_type(*digits_and_scale(operand))
    if name == "duration":
        return plain_type(operand)
    raise TypeClashError(f"there is no - for type {plain_type(operand)}")


def negated(numbers: pa.Array) -> pa.Array:
    """``-x`` of an array of :func:`negated_type`; pyarrow's own lets the least duration wrap around."""
    if pa.types.is_duration(numbers.type):
        return pc.negate_checked(numbers.cast(pa.int64())).cast(numbers.type)
    return pc.negate_checked(numbers)


def signature(operator: str, left: pa.DataType, right: pa.DataType) -> Signature:
    """Types of ``left operator right``.  Raises :class:`~lftj.errors.TypeClashError`.

    >>> [str(t) for t in signature("-", pa.timestamp("s"), pa.timestamp("ms"))]
    ['timestamp[ms]', 'timestamp[ms]', 'duration[ms]']
    """
    kinds = (kind(left), kind(right))
    days, int64, float64 = pa.date32(), pa.int64(), pa.float64()
    if kinds[0] in NUMERIC and kinds[1] in NUMERIC:
        if operator == "/" and kinds == ("integer", "integer"):
            return Signature(int64, int64, float64)
        if operator == "/" or "float" in kinds:
            return Signature(float64, float64, float64)
        if "decimal" in kinds:
            return _decimal_signature(operator, left, right)
        return Signature(int64, int64, int64)
    if operator in ("+", "-") and kinds == ("date", "integer"):
        return Signature(days, int64, days)
    if operator == "+" and kinds == ("integer", "date"):
        return Signature(int64, days, days)
    if operator == "-" and kinds == ("date", "date"):
        return Signature(days, days, int64)
    temporal = _temporal_signature(operator, kinds, plain_type(left), plain_type(right))
    if temporal is None:
        raise TypeClashError(f"there is no {operator} for types {plain_type(left)} and {plain_type(right)}")
    return temporal


def _temporal_signature(
    operator: str, kinds: tuple[str, str], left: pa.DataType, right: pa.DataType
) -> Signature | None:
    int64 = pa.int64()
    if operator in ("+", "-") and sorted(kinds) == ["date", "duration"]:
        left, right = (pa.timestamp("s") if pa.types.is_date(side) else side for side in (left, right))
        kinds = kind(left), kind(right)
    if operator == "*" and kinds == ("duration", "integer"):
        return Signature(left, int64, left)
    if operator == "*" and kinds == ("integer", "duration"):
        return Signature(int64, right, right)
    if operator not in ("+", "-") or not set(kinds) <= {"timestamp", "duration"}:
        return None
    unit = finer_unit(left.unit, right.unit)
    span = pa.duration(unit)
    if kinds == ("duration", "duration"):
        return Signature(span, span, span)
    if kinds == ("timestamp", "duration"):
        instant = pa.timestamp(unit, left.tz)
        return Signature(instant, span, instant)
    if kinds == ("duration", "timestamp") and operator == "+":
        instant = pa.timestamp(unit, right.tz)
        return Signature(span, instant, instant)
    if kinds == ("timestamp", "timestamp") and operator == "-" and (left.tz is None) == (right.tz is None):
        return Signature(pa.timestamp(unit, left.tz), pa.timestamp(unit, right.tz), span)
    return None


def _decimal_signature(operator: str, left: pa.DataType, right: pa.DataType) -> Signature:
    (left_digits, left_scale), (right_digits, right_scale) = digits_and_scale(left), digits_and_scale(right)
    if operator == "*":
        scale, digits = left_scale + right_scale, left_digits + right_digits + 1
    else:
        scale = max(left_scale, right_scale)
        digits = max(left_digits - left_scale, right_digits - right_scale) + scale + (operator != "%")
    if scale > MAX_DIGITS:
        raise TypeClashError(f"{left} {operator} {right} needs {scale} digits behind the point")
    if digits > 38 and left_digits <= 38 and right_digits <= 38 and scale <= 38:
        digits = 38  # wider results are rare, and few programs read decimal256
    return Signature(
        decimal_type(left_digits, left_scale),
        decimal_type(right_digits, right_scale),
        decimal_type(min(digits, MAX_DIGITS), scale),
    )


def first_refused(operation: Kernel, arrays: list[pa.Array]) -> int:
    """The first row on which a row-by-row kernel fails, given that it fails on some: by bisection."""
    low, high = 0, len(arrays[0])  # rows before low pass, one of low..high-1 fails
    while high - low > 1:
        middle = (low + high) // 2
        try:
            operation(*[array.slice(low, middle - low) for array in arrays])
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def kernel(operator: str, signature: Signature) -> Kernel:
    """The kernel for operands that were cast to the signature's types.

    >>> kernel("/", signature("/", pa.int64(), pa.int64()))(pa.array([3]), pa.array([2])).to_pylist()
    [1.5]
    """
    if signature.result == pa.date32():
        return partial(_shift_date, operator)
    if signature.left == pa.date32():
        return lambda left, right: pc.subtract_checked(_days(left), _days(right))
    if operator == "%":
        remainders = _REMAINDERS[kind(signature.result)]
        return lambda left, right: remainders(left, right).cast(signature.result)
    if pa.types.is_decimal(signature.result):
        return partial(_decimal_operation, operator, signature)
    if operator == "/" and signature.left == pa.int64():
        return _divide_integers
    checked: Kernel = _CHECKED[operator]
    return checked


def _days(dates: pa.Array) -> pa.Array:
    return dates.cast(pa.int32()).cast(pa.int64())


def _shift_date(operator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    numbers = [_days(side) if side.type == pa.date32() else side for side in (left, right)]
    return _CHECKED[operator](*numbers).cast(pa.int32()).cast(pa.date32())


def _divide_integers(left: pa.Array, right: pa.Array) -> pa.Array:
    """Correctly rounded quotients: by float64 where both integers are floats, else by Python's division."""
    dividends, divisors = left.to_numpy(), right.to_numpy()
    if not divisors.all():
        raise pa.ArrowInvalid("divide by zero")
    quotients = dividends / divisors
    wide = _beyond_floats(dividends) | _beyond_floats(divisors)
    if wide.any():
        pairs = zip(dividends[wide].tolist(), divisors[wide].tolist(), strict=True)
        quotients[wide] = [dividend / divisor for dividend, divisor in pairs]
    return pa.array(quotients)


def _integer_remainders(left: pa.Array, right: pa.Array) -> pa.Array:
    dividends, divisors = left.to_numpy(), right.to_numpy()
    if not divisors.all():
        raise pa.ArrowInvalid("divide by zero")
    divisors = np.where(divisors == -1, 1, divisors)  # both leave nothing, and -1 overflows on the way
    return pa.array(np.fmod(dividends, divisors))


def _float_remainders(left: pa.Array, right: pa.Array) -> pa.Array:
    dividends, divisors = left.to_numpy(), right.to_numpy()
    if not divisors.all():
        raise pa.ArrowInvalid("divide by zero")
    with np.errstate(invalid="ignore"):  # an infinite dividend leaves NaN
        return pa.array(np.fmod(dividends, divisors))


def _decimal_remainders(left: pa.Array, right: pa.Array) -> pa.Array:
    rows = list(zip(left.to_pylist(), right.to_pylist(), strict=True))
    if not all(divisor for _, divisor in rows):
        raise pa.ArrowInvalid("divide by zero")
    return pa.array(
        [decimal_result("%", *row) for row in rows],
        pa.decimal256(MAX_DIGITS, max(left.type.scale, right.type.scale)),
    )


_REMAINDERS: dict[str, Kernel] = {
    "integer": _integer_remainders,
    "float": _float_remainders,
    "decimal": _decimal_remainders,
}


def _beyond_floats(integers: np.ndarray) -> np.ndarray:
    return (integers > _EXACT_INTEGERS) | (integers < -_EXACT_INTEGERS)


def _decimal_operation(operator: str, signature: Signature, left: pa.Array, right: pa.Array) -> pa.Array:
    digits = [signature.left.precision, signature.right.precision]
    scales = [signature.left.scale, signature.right.scale]
    if operator == "*":
        needed = sum(digits) + 1
    else:
        needed = max(d - s for d, s in zip(digits, scales, strict=True)) + max(scales) + 1
    if needed > MAX_DIGITS:  # beyond Arrow's kernels, whatever the values are
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([decimal_result(operator, a, b) for a, b in pairs], signature.result)
    if needed > 38:
        left, right = (
            side.cast(pa.decimal256(side.type.precision, side.type.scale)) for side in (left, right)
        )
    return _CHECKED[operator](left, right).cast(signature.result)


def cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array in the wanted type; numbers become the nearest ``float64``.

    >>> cast(pa.array(["a"]).dictionary_encode(), pa.string()).to_pylist()
    ['a']
    """
    array = plain_array(array)
    if wanted == pa.float64():
        return to_float64(array)
    return (signed(array) if pa.types.is_decimal(wanted) else array).cast(wanted)


def to_float64(array: pa.Array) -> pa.Array:
    """Numbers as the nearest ``float64``.

    >>> to_float64(pa.array([Decimal("0.3")])).to_pylist()
    [0.3]
    """
    if pa.types.is_decimal(array.type):
        # Arrow's own cast multiplies by a power of ten and is off by an ulp for one value in seven.
        return array.cast(pa.string()).cast(pa.float64())
    return array.cast(pa.float64(), safe=False)
