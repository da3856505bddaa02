"""Kinds of Arrow types: which values may meet in arithmetic, comparisons and unions of heads.

A *kind* is coarser than a domain: timestamps of all units are of one kind.  A
*plain* type is one that is neither dictionary-encoded nor an extension.

:func:`cast_decimal` stands in for pyarrow's cast between decimals.  That cast (26.0)
refuses some exact quotients, as just below multiples of ``2**64``, multiplies without
a check for overflow, and cuts off the upper bits on the way to ``decimal32``.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import TypeClashError
from lftj.values.literals import NULL, TypedValue, Value

NUMERIC = ("integer", "float", "decimal")
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
MAX_DIGITS = 76
"""Of the widest decimal type, ``decimal256``."""

_DIGITS_OF_A_WORD = 9  # 10**9 < 2**32

INT64_RANGE = range(-(2**63), 2**63)

_KINDS = {
    arrow_type.id: name
    for name, arrow_types in {
        "integer": (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        ),
        "float": (pa.float16(), pa.float32(), pa.float64()),
        "decimal": (pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)),
        "boolean": (pa.bool_(),),
        "date": (pa.date32(), pa.date64()),
        "time": (pa.time32("s"), pa.time64("us")),
        "timestamp": (pa.timestamp("s"),),
        "duration": (pa.duration("s"),),
        "string": (pa.string(), pa.large_string(), pa.string_view()),
        "binary": (pa.binary(), pa.binary(1), pa.large_binary(), pa.binary_view()),
        "list": (pa.list_(pa.null()), pa.large_list(pa.null())),
    }.items()
    for arrow_type in arrow_types
}
"""By the number of a plain type; all others are ``other``."""


def plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type of the values behind dictionary encoding and extension types.

    >>> str(plain_type(pa.dictionary(pa.int8(), pa.string())))
    'string'
    """
    while arrow_type.id not in _KINDS:
        if isinstance(arrow_type, pa.BaseExtensionType):
            arrow_type = arrow_type.storage_type
        elif pa.types.is_dictionary(arrow_type):
            arrow_type = arrow_type.value_type
        else:
            break
    return arrow_type


def plain_array(array: pa.Array) -> pa.Array:
    """The same values as an array of :func:`plain_type`."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        else:
            return array


def typed_array(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Inverse of :func:`plain_array`: an array of plain values as one of a type whose values they are.

    >>> typed_array(pa.array(["a", "b", "a"]), pa.dictionary(pa.int8(), pa.string())).indices.to_pylist()
    [0, 1, 0]
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        return arrow_type.wrap_array(typed_array(array, arrow_type.storage_type))
    if pa.types.is_dictionary(arrow_type):
        encoded = array.cast(plain_type(arrow_type)).dictionary_encode()
        values = typed_array(encoded.dictionary, arrow_type.value_type)
        indices = encoded.indices.cast(arrow_type.index_type)
        return pa.DictionaryArray.from_arrays(indices, values, ordered=arrow_type.ordered)
    return array if array.type == arrow_type else array.cast(arrow_type)


def kind(arrow_type: pa.DataType) -> str:
    """``integer float decimal boolean string binary date time timestamp duration list`` or ``other``.

    >>> kind(pa.uint8()), kind(pa.large_string()), kind(pa.timestamp("ms", "UTC"))
    ('integer', 'string', 'timestamp')
    """
    return _KINDS.get(plain_type(arrow_type).id, "other")


def literal_type(value: Value) -> pa.DataType:
    """The Arrow type that a rule's literal has of its own.

    ``1.2`` is a decimal here; where it meets an integer or a float in arithmetic it becomes a float
    (:mod:`lftj.language.expressions`).  A duration is of the coarsest unit that holds it, so that it leaves a
    timestamp beside it in the timestamp's own.

    >>> str(literal_type(5)), str(literal_type(Decimal("1.20"))), str(literal_type("a"))
    ('int64', 'decimal128(3, 2)', 'string')
    >>> str(literal_type(datetime.timedelta(seconds=10))), str(literal_type(datetime.timedelta(seconds=1.5)))
    ('duration[s]', 'duration[ms]')
    """
    if value is NULL:
        return pa.null()
    if isinstance(value, TypedValue):
        return value.arrow
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if value in INT64_RANGE else decimal_type(len(str(abs(value))), 0)
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        return decimal_type(max(len(digits) + max(exponent, 0), -exponent, 1), max(-exponent, 0))
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, bytes):
        return pa.binary()
    if isinstance(value, datetime.datetime):
        return pa.timestamp("us", None if value.tzinfo is None else "UTC")
    if isinstance(value, datetime.timedelta):
        return pa.duration("us" if value.microseconds % 1000 else "ms" if value.microseconds else "s")
    return pa.date32()


def digits_and_scale(arrow_type: pa.DataType) -> tuple[int, int]:
    """Of a decimal, or of an integer read as one: digits in all and digits behind the point.

    A negative scale becomes 0, with more digits before the point.

    >>> digits_and_scale(pa.decimal128(5, 2)), digits_and_scale(pa.decimal128(5, -2))
    ((5, 2), (7, 0))
    """
    if kind(arrow_type) == "integer":
        return 19, 0
    plain = plain_type(arrow_type)
    return plain.precision - min(plain.scale, 0), max(plain.scale, 0)


def decimal_type(digits: int, scale: int) -> pa.DataType:
    """The narrowest of ``decimal128`` and ``decimal256`` with ``digits`` digits, ``scale`` behind the point.

    Raises :class:`~lftj.errors.TypeClashError` when there is none.
    """
    if digits > MAX_DIGITS:
        raise TypeClashError(f"a number of {digits} digits: decimals have at most {MAX_DIGITS}")
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def signed(numbers: pa.Array) -> pa.Array:
    """``uint64`` as ``int64``, for a cast to decimals of 19 digits: no number here is above 2**63 - 1.

    >>> signed(pa.array([7], pa.uint64())).cast(pa.decimal128(19, 0)).to_pylist()
    [Decimal('7')]
    """
    return numbers.cast(pa.int64()) if numbers.type == pa.uint64() else numbers


def cast_decimal(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Decimals of any width as decimals of another, exact.

    Raises ``pa.ArrowInvalid`` when a value has more digits before or behind the point than ``wanted``.

    >>> cast_decimal(pa.array([Decimal("184467440737095516.15000000000")]), pa.decimal128(38, 2)).to_pylist()
    [Decimal('184467440737095516.15')]
    """
    if array.type.scale > wanted.scale:
        array = _with_lower_scale(array, wanted.scale)
    while array.type.scale < wanted.scale:
        rise = min(wanted.scale - array.type.scale, MAX_DIGITS - 1)
        if array.type.precision + rise > MAX_DIGITS:
            # Refuses what the larger scale leaves no room for: the product would wrap around.
            array = array.cast(pa.decimal256(MAX_DIGITS - rise, array.type.scale))
        array = array.cast(pa.decimal256(MAX_DIGITS, array.type.scale + rise))
    # Of one scale now: the width last, as the casts to decimal32 and decimal64 don't check it.
    array = array.cast(pa.decimal256(MAX_DIGITS, wanted.scale))
    if wanted.bit_width < 128:
        array = array.cast(pa.decimal128(wanted.precision, wanted.scale))
    return array.cast(wanted)


def _with_lower_scale(array: pa.Array, scale: int) -> pa.Array:
    """Multiplied back, each quotient must give its dividend; where it does not, the scale falls in steps.

    A wrong quotient of pyarrow's is too small, never too large: the product does not wrap around.
    """
    wide = array.cast(pa.decimal256(MAX_DIGITS, array.type.scale))
    if wide.type.scale < 0 or wide.type.scale - scale >= MAX_DIGITS:
        return _in_steps(wide, scale)  # pyarrow has no such comparison, no such power of ten
    low = wide.cast(pa.decimal256(MAX_DIGITS, scale), safe=False)
    wrong = pc.not_equal(low.cast(wide.type, safe=False), wide)
    return pc.replace_with_mask(low, wrong, _in_steps(wide.filter(wrong), scale))


def _in_steps(wide: pa.Array, scale: int) -> pa.Array:
    """With a lower scale, by divisors of one word of 32 bits: by them pyarrow divides correctly."""
    while wide.type.scale > scale:
        lower = max(scale, wide.type.scale - _DIGITS_OF_A_WORD)
        wide = wide.cast(pa.decimal256(MAX_DIGITS, lower))
    return wide


def finer_unit(first: str, second: str) -> str:
    """The finer of two time units.

    >>> finer_unit("ms", "ns")
    'ns'
    """
    return min(first, second, key=NANOSECONDS.__getitem__)


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """The type of a column that takes values of both types, which have one domain.

    Integers and floats: the widest.  Decimals: enough digits before and behind
    the point.  Strings, binary and lists: large if one is.  Dictionary encoding stays
    when both agree.  Timestamps of two zones: the first zone.

    >>> str(common_type(pa.int16(), pa.uint16())), str(common_type(pa.decimal128(5, 2), pa.decimal128(9, 0)))
    ('int32', 'decimal128(11, 2)')
    """
    if first == second:
        return first
    first, second = plain_type(first), plain_type(second)
    if first == second:
        return first
    types = pa.types
    name = kind(first)
    if name == "integer":
        return _common_integer(first, second)
    if name == "float":
        return max(first, second, key=lambda t: t.bit_width)
    if name == "decimal":
        first_digits, first_scale = digits_and_scale(first)
        second_digits, second_scale = digits_and_scale(second)
        scale = max(first_scale, second_scale)
        return decimal_type(max(first_digits - first_scale, second_digits - second_scale) + scale, scale)
    if name in ("string", "binary"):
        large = any(types.is_large_string(t) or types.is_large_binary(t) for t in (first, second))
        if name == "string":
            return pa.large_string() if large else pa.string()
        return pa.large_binary() if large else pa.binary()
    if name == "date":
        return pa.date32()
    if name == "list":
        element = common_type(first.value_type, second.value_type)
        large = types.is_large_list(first) or types.is_large_list(second)
        return pa.large_list(element) if large else pa.list_(element)
    return first  # timestamps of one unit that differ in their zone


def _common_integer(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Codes are int64, so ``uint64`` beside a signed type needs no more than ``int64``."""
    signed = [t for t in (first, second) if pa.types.is_signed_integer(t)]
    width = max(first.bit_width, second.bit_width)
    if len(signed) == 1:
        unsigned = second if signed[0] is first else first
        width = min(64, max(signed[0].bit_width, 2 * unsigned.bit_width))
    return pa.type_for_alias(f"{'int' if signed else 'uint'}{width}")
