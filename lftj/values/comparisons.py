"""Comparing two Arrow columns by value, whatever their widths, units and encodings.

Invariants

1. Integers, integers with floats, decimals with integers, dates and timestamps
   of different units are compared exactly: nothing is rounded or overflows.
   Only a decimal beside a float column becomes the nearest float first, as in SQL.
2. NaN is in no order and equals nothing, as in IEEE 754 and in
   :meth:`lftj.values.domains.Domain.interval`.
3. Strings are ordered by code points, binary strings by bytes, false before true.  Lists are ordered and
   equal as :mod:`lftj.values.lists` says: NULL equals NULL in them, and NaN NaN.

Cost: whole-array operations; decimals that have no common type of 76 digits go
through Python numbers.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indices.keys import KEY_MAX, KEY_MIN
from lftj.values.arithmetic import to_float64
from lftj.values.domains import domain_name
from lftj.values.kinds import (
    MAX_DIGITS,
    NANOSECONDS,
    NUMERIC,
    decimal_type,
    digits_and_scale,
    kind,
    plain_array,
    plain_type,
    signed,
)

_ARROW: dict[str, Callable[..., pa.Array]] = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "=": pc.equal,
    "!=": pc.not_equal,
}
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
    "=": python.eq,
    "!=": python.ne,
}
_NANOSECONDS_PER_DAY = 86_400 * 10**9
_COMPARED = (pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def comparable(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether values of the two types can be compared.

    >>> comparable(pa.int8(), pa.float64()), comparable(pa.int8(), pa.string())
    (True, False)
    >>> comparable(pa.date32(), pa.timestamp("s")), comparable(pa.timestamp("s"), pa.timestamp("s", "UTC"))
    (True, False)
    """
    left, right = plain_type(left), plain_type(right)
    kinds = {kind(left), kind(right)}
    if kinds <= set(NUMERIC):
        return True
    if kinds <= {"date", "timestamp"}:
        zones = [type_.tz if kind(type_) == "timestamp" else None for type_ in (left, right)]
        return (zones[0] is None) == (zones[1] is None)
    if kinds == {"list"}:
        return domain_name(left) == domain_name(right)
    return len(kinds) == 1 and kinds != {"other"}


def compare_arrays(operator: str, left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    """Row by row ``left operator right``, NULL where one of them is.

    The types are :func:`comparable`, the arrays of one length.

    >>> compare_arrays("<", pa.array([2**53, None]), pa.array([2.0**53, 1.0])).to_pylist()
    [False, None]
    """
    left, right = plain_array(left), plain_array(right)
    if left.null_count or right.null_count:
        known = pc.and_(left.is_valid(), right.is_valid())
        found = compare_arrays(operator, left.filter(known), right.filter(known))
        return pc.replace_with_mask(pa.nulls(len(left), pa.bool_()), known, found)
    if left.type == right.type and _compares(left.type):
        return _ARROW[operator](left, right)
    kinds = (kind(left.type), kind(right.type))
    if kinds == ("integer", "float"):
        return _by_sign(operator, _signs_beside_floats(left, right), pc.is_nan(right))
    if kinds == ("float", "integer"):
        return _by_sign(operator, -_signs_beside_floats(right, left), pc.is_nan(left))
    if "float" in kinds:
        return _ARROW[operator](to_float64(left), to_float64(right))
    if "decimal" in kinds:
        return _compare_decimals(operator, left, right)
    if kinds[0] in ("date", "time", "timestamp", "duration"):
        return _compare_temporal(operator, left, right)
    if kinds[0] == "integer":
        left, right = left.cast(pa.int64()), right.cast(pa.int64())
    elif kinds[0] == "string":
        left, right = left.cast(pa.large_string()), right.cast(pa.large_string())
    elif kinds[0] == "list":
        from lftj.values.lists import packed  # with the compiler

        left, right = packed(left), packed(right)
    elif kinds[0] == "binary":
        left, right = left.cast(pa.large_binary()), right.cast(pa.large_binary())
    return _ARROW[operator](left, right)


def looked_up(constants: Sequence[object], type_: pa.DataType) -> pa.Array | None:
    """Strings or integers, to find values of a type among them (:func:`is_among`); None of others.

    >>> looked_up([1, 5], pa.int8()).type, looked_up([1, 2.5], pa.int8())
    (DataType(int64), None)
    """
    name = kind(plain_type(type_))
    if name == "string" and all(type(constant) is str for constant in constants):
        return pa.array(constants, pa.large_string())
    if name != "integer" or plain_type(type_) == pa.uint64():
        return None
    if not all(type(constant) is int and KEY_MIN <= constant <= KEY_MAX for constant in constants):
        return None
    return pa.array(constants, pa.int64())


def is_among(values: pa.Array, constants: pa.Array) -> pa.BooleanArray:
    """Row by row whether a value is one of the constants, NULL where it is NULL.

    >>> is_among(pa.array([5, 2, None], pa.int8()), looked_up([1, 5], pa.int8())).to_pylist()
    [True, False, None]
    """
    values = plain_array(values).cast(constants.type)
    found = pc.is_in(values, value_set=constants)
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_())) if values.null_count else found


def _compares(type_: pa.DataType) -> bool:
    """Whether Arrow compares values of one plain type, and as they are compared here."""
    is_counted = pa.types.is_integer(type_) or pa.types.is_temporal(type_)
    return (is_counted and type_ != pa.date64()) or type_ in _COMPARED  # date64 may be amid a day


def _by_sign(operator: str, signs: np.ndarray, unordered: pa.BooleanArray) -> pa.BooleanArray:
    """The comparison, given the sign of left - right; NaN rows satisfy ``!=`` alone."""
    holds = _PYTHON[operator](signs, 0)
    holds[unordered.to_numpy(zero_copy_only=False)] = operator == "!="
    return pa.array(holds)


def _signs_beside_floats(integers: pa.Array, floats: pa.Array) -> np.ndarray:
    """Signs of integer - float (int8), exact; of NaN rows meaningless."""
    numbers = integers.cast(pa.int64()).to_numpy()
    values = to_float64(floats).to_numpy()
    floors = np.floor(values)
    too_large, too_small = floors >= 2.0**63, floors < -(2.0**63)
    inside = ~(too_large | too_small | np.isnan(values))
    wholes = np.where(inside, floors, 0.0).astype(np.int64)
    signs = (numbers > wholes).astype(np.int8) - (numbers < wholes).astype(np.int8)
    signs[(signs == 0) & (values > floors)] = -1
    signs[too_large] = -1
    signs[too_small] = 1
    return signs


def _compare_decimals(operator: str, left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    """Decimals, or a decimal and an integer, in a type that holds both."""
    (left_digits, left_scale), (right_digits, right_scale) = (
        digits_and_scale(left.type),
        digits_and_scale(right.type),
    )
    scale = max(left_scale, right_scale)
    digits = max(left_digits - left_scale, right_digits - right_scale) + scale
    if digits <= MAX_DIGITS:
        common = decimal_type(digits, scale)
        return _ARROW[operator](_as_decimal(left, common), _as_decimal(right, common))
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([_PYTHON[operator](a, b) for a, b in pairs], pa.bool_())


def _as_decimal(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_integer(array.type):
        array = signed(array).cast(pa.decimal128(19, 0))
    return array.cast(wanted)


def _compare_temporal(operator: str, left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    """Counts of units as (wholes, rest) of the coarser unit, so that no count has to be multiplied."""
    (left_counts, left_unit), (right_counts, right_unit) = _counts(left), _counts(right)
    coarse = max(left_unit, right_unit)
    parts = []
    for counts, unit in ((left_counts, left_unit), (right_counts, right_unit)):
        ratio = coarse // unit
        parts.append((counts, np.zeros_like(counts)) if ratio == 1 else np.divmod(counts, ratio))
    (left_wholes, left_rest), (right_wholes, right_rest) = parts
    signs = (left_wholes > right_wholes).astype(np.int8) - (left_wholes < right_wholes).astype(np.int8)
    by_rest = (left_rest > right_rest).astype(np.int8) - (left_rest < right_rest).astype(np.int8)
    signs = np.where(signs == 0, by_rest, signs)
    return pa.array(_PYTHON[operator](signs, 0))


def _counts(array: pa.Array) -> tuple[np.ndarray, int]:
    """Numbers of units as int64, and the unit in nanoseconds."""
    name = kind(array.type)
    if name == "date":
        days = array.cast(pa.date32()).cast(pa.int32()).to_numpy()
        return days.astype(np.int64), _NANOSECONDS_PER_DAY
    whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return array.cast(whole).to_numpy().astype(np.int64), NANOSECONDS[array.type.unit]
