"""Numbers rounded to some digits behind the point, a half away from zero, as in DuckDB.

``digits`` below 0 count before the point: 25 to -1 is 30.  A float is multiplied by a power of ten, rounded
and divided.  Whether it is a half is asked of the exact product: 2.675 to 2 is 2.67, for it is a little less
than it is written.

Cost: whole-array operations; row by row decimals of more than 37 digits.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.kinds import MAX_DIGITS, cast_decimal, decimal_type, digits_and_scale

_MODES = {
    "half_towards_infinity": decimal.ROUND_HALF_UP,
    "down": decimal.ROUND_FLOOR,
    "up": decimal.ROUND_CEILING,
    "towards_zero": decimal.ROUND_DOWN,
}
_EXACT = decimal.Context(prec=2 * MAX_DIGITS)
_EXACT_POWER = 22  # the last power of ten that is a float
_LARGEST_POWER = 308


def rounded_type(type_: pa.DataType, digits: int) -> pa.DataType:
    """Of decimals that are rounded: DuckDB's, with one more digit where those before the point fill it.

    >>> str(rounded_type(pa.decimal128(9, 3), 1)), str(rounded_type(pa.decimal128(3, 0), -1))
    ('decimal128(9, 1)', 'decimal128(4, 0)')
    """
    width, scale = digits_and_scale(type_)
    if digits >= scale:
        return decimal_type(width, scale)
    return decimal_type(min(width + (scale == 0), MAX_DIGITS), max(digits, 0))


def round_decimals(
    numbers: pa.Array, digits: int, wanted: pa.DataType, mode: str = "half_towards_infinity"
) -> pa.Array:
    """Decimals rounded, as ``wanted``; ``mode``: by its name in pyarrow, another for whole numbers only.

    Raises ``pa.ArrowInvalid`` where ``wanted`` has no room.

    >>> round_decimals(pa.array([Decimal("2.345"), Decimal("-0.005")]), 2, pa.decimal128(4, 2)).to_pylist()
    [Decimal('2.35'), Decimal('-0.01')]
    """
    width, scale = digits_and_scale(numbers.type)
    if digits >= scale:
        return cast_decimal(numbers, wanted)
    if -digits > width - scale:
        return pa.array(np.zeros(len(numbers), np.int64)).cast(pa.decimal128(19, 0)).cast(wanted)
    if width < 38:  # pyarrow (26.0) rounds decimal256 wrong, and what has no digit to spare
        wide = numbers.cast(pa.decimal128(width + 1, scale))
        return cast_decimal(pc.round(wide, ndigits=digits, round_mode=mode), wanted)
    unit = Decimal(1).scaleb(-digits)
    found = [one.quantize(unit, _MODES[mode], _EXACT) for one in numbers.to_pylist()]
    return cast_decimal(pa.array(found, pa.decimal256(MAX_DIGITS, max(digits, 0))), wanted)


def round_integers(numbers: pa.Array, digits: int) -> pa.Array:
    """Raises ``pa.ArrowInvalid`` beyond ``int64``.

    >>> round_integers(pa.array([25, -24]), -1).to_pylist()
    [30, -20]
    """
    if digits >= 0:
        return numbers
    wide = numbers.cast(pa.decimal128(19, 0))
    return round_decimals(wide, digits, pa.decimal128(20, 0)).cast(pa.int64())


def round_floats(numbers: pa.Array, digits: int) -> pa.Array:
    """``float64`` rounded; infinities and NaN stay, and what has no room for the digits.

    >>> round_floats(pa.array([2.675, 0.125, -15.0]), 2).to_pylist()
    [2.67, 0.13, -15.0]
    >>> round_floats(pa.array([2.675, 0.125, -15.0]), -1).to_pylist()
    [0.0, 0.0, -20.0]
    """
    values = numbers.to_numpy(zero_copy_only=False)
    if abs(digits) > _LARGEST_POWER:
        return pa.array(values if digits > 0 else np.where(np.isfinite(values), 0.0, values))
    power = 10.0 ** abs(digits)
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power if digits > 0 else np.abs(values) / power
        whole = np.floor(scaled)
        past = scaled - whole
        up = past >= 0.5
        if 0 < digits <= _EXACT_POWER:
            is_half = np.flatnonzero(past == 0.5)
            up[is_half] = _product_error(np.abs(values[is_half]), power, scaled[is_half]) >= 0
        whole += up
        found = np.copysign(whole / power if digits > 0 else whole * power, values)
    return pa.array(np.where(np.isfinite(scaled) & np.isfinite(found), found, values))


def _product_error(left: np.ndarray, right: float, product: np.ndarray) -> np.ndarray:
    """``left * right - product``, exactly (T. J. Dekker, A floating-point technique, 1971, section 5)."""
    high, other = _high_half(left), float(_high_half(np.float64(right)))
    low, rest = left - high, right - other
    return ((high * other - product) + high * rest + low * other) + low * rest


def _high_half(numbers: np.ndarray | np.float64) -> np.ndarray:
    shifted = numbers * (2.0**27 + 1)
    return np.asarray(shifted - (shifted - numbers))
