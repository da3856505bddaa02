"""From the codes of summands to their numbers, and from exact sums to the values of a head.

A whole number (of an integer, a duration, a decimal's unscaled value) is a row
of words here: uint32, two's complement, the lowest word first.  Sums come in
more words than any declared type has.

Invariants

1. :func:`values_of_sums` gives the exact sum or an error that names the group:
   never a wrap, never a rounding.
2. :func:`quotients` are rounded once.

Cost: whole-array operations; a Python integer for each decimal sum within a
thousandth of its type's limit and each quotient of operands beyond 53 bits.
"""

from __future__ import annotations

from decimal import Decimal
from typing import cast

import numpy as np
import pyarrow as pa

from lftj.aggregates.group_names import GroupNames
from lftj.errors import RangeError
from lftj.values.dictionary import DecimalDomain
from lftj.values.kinds import plain_type
from lftj.values.schema import ColumnType
from lftj.values.unscaled import SCALES, Numbers

_EXACT_INTEGER = 2**53  # whole numbers up to here are doubles


# -- summands ---------------------------------------------------------------


def doubles(codes: np.ndarray, type_: ColumnType) -> np.ndarray:
    """The float64 values of a float column's codes; float32 values become the doubles that they stand for.

    >>> from lftj.values.domains import Domains
    >>> float_ = ColumnType(Domains().of(pa.float64()), pa.float64())
    >>> doubles(float_.domain.encode(pa.array([0.5, -2.0])), float_).tolist()
    [0.5, -2.0]
    """
    return cast(np.ndarray, type_.domain.decode(codes, pa.float64()).to_numpy())


def n_summand_words(type_: ColumnType) -> int:
    """How many words :func:`words` gives for each value of a type.

    >>> from lftj.values.domains import Domains
    >>> n_summand_words(ColumnType(Domains().of(pa.decimal128(9, 2)), pa.decimal128(9, 2)))
    4
    """
    return cast(int, plain_type(type_.arrow).bit_width // 32) if type_.domain.name == "decimal" else 2


def words(codes: np.ndarray, type_: ColumnType) -> np.ndarray:
    """The whole numbers of the codes of an integer, duration or decimal column, shape (rows, words).

    A decimal counts units of its last digit.  The array may be read-only.

    >>> from lftj.values.domains import Domains
    >>> words(np.array([1, -1]), ColumnType(Domains().of(pa.int64()), pa.int64())).tolist()
    [[1, 0], [4294967295, 4294967295]]
    """
    if type_.domain.name != "decimal":
        return words_of_integers(codes)
    n_words = n_summand_words(type_)
    array = type_.domain.decode(codes, plain_type(type_.arrow))
    flat = np.frombuffer(array.buffers()[1], np.uint32, len(array) * n_words, array.offset * n_words * 4)
    return flat.reshape(len(array), n_words)


def words_of_integers(numbers: np.ndarray) -> np.ndarray:
    """The words of int64 numbers, shape (rows, 2)."""
    return np.ascontiguousarray(numbers).view(np.uint32).reshape(len(numbers), 2)


def decimal_scale(type_: ColumnType) -> int:
    """Digits after a decimal type's point, of other types 0.

    >>> from lftj.values.domains import Domains
    >>> decimal_scale(ColumnType(Domains().of(pa.decimal128(9, 2)), pa.decimal128(9, 2)))
    2
    """
    return cast(int, plain_type(type_.arrow).scale) if type_.domain.name == "decimal" else 0


# -- values -----------------------------------------------------------------


def values_of_floats(groups: GroupNames, results: np.ndarray) -> pa.Array:
    """Float sums, or averages, as values of the declared type; shared with ``results`` where it can be."""
    return pa.array(results, groups.declared.arrow)


def values_of_sums(groups: GroupNames, sums: np.ndarray, type_: ColumnType) -> pa.Array:
    """Values of the declared type; ``sums``: (groups, words) of what :func:`words` gives for ``type_``.

    Whole numbers may be declared as decimals without a scale, and the other way round: partial sums of
    128 bits (:mod:`lftj.rewriting.view_tree`).  Raises :class:`~lftj.errors.RangeError`, naming head and
    group, for a sum that the declared type does not hold, and for one that has the code of NULL.
    """
    declared = groups.declared
    scale = decimal_scale(type_)
    if scale != decimal_scale(declared):
        raise ValueError(f"a sum of numbers of scale {scale} was declared as {declared.arrow}")
    if declared.domain.name == "decimal":
        return _decimals(groups, sums)
    _refuse_wide(groups, sums, 2)
    numbers = _low_int64(sums)
    declared.domain.claim(numbers)
    return declared.domain.decode(numbers, declared.arrow)


def codes_of_decimals(groups: GroupNames, sums: np.ndarray) -> np.ndarray | None:
    """The codes of what :func:`values_of_sums` gives, decimals; None where it takes more than 18 digits.

    ``sums``: (groups, words), in units of the declared type's last digit.
    """
    declared = groups.declared
    domain, arrow = declared.domain, declared.arrow
    if not isinstance(domain, DecimalDomain) or arrow.scale not in SCALES:
        return None
    low = _low_int64(sums)
    least, most = (int(low.min()), int(low.max())) if len(low) else (0, 0)
    limit = 10 ** min(arrow.precision, 18)
    if not (-limit < least and most < limit and _fits(sums, 2).all()):
        return None
    return domain.encode_unscaled(Numbers(low, arrow.scale, least, most))


def encoded(groups: GroupNames, values: pa.Array) -> np.ndarray:
    """The codes of groups' values; a decimal may fit its type and still have too many digits for a code.

    Raises :class:`~lftj.errors.RangeError`, naming head and group.
    """
    domain = groups.declared.domain
    try:
        return domain.encode(values)
    except RangeError as error:
        first, end = 0, len(values)  # the first value without a code is among [first, end)
        while end - first > 1:
            middle = (first + end) // 2
            try:
                domain.encode(values[first:middle])
                first = middle
            except RangeError:
                end = middle
        raise RangeError(f"{groups.name(first)} = {groups.call()} is {values[first]}: {error}") from None


def quotients(sums: np.ndarray, counts: np.ndarray, scale: int) -> np.ndarray:
    """Correctly rounded ``sum / (count * 10**scale)``, float64; counts are positive.

    >>> quotients(np.array([[5, 0, 0]], np.uint32), np.array([4]), 1).tolist()
    [0.125]
    """
    # A division of two doubles is correctly rounded when both operands are exact; Python's division of
    # integers always is.
    numerator, denominator = 10 ** max(-scale, 0), 10 ** max(scale, 0)
    results = np.empty(len(sums))
    exact = np.zeros(len(sums), dtype=bool)
    if max(numerator, denominator) <= _EXACT_INTEGER:
        low = _low_int64(sums)
        limit = _EXACT_INTEGER // numerator
        exact = _fits(sums, 2) & (-limit <= low) & (low <= limit) & (counts <= _EXACT_INTEGER // denominator)
        results[exact] = (low[exact] * numerator) / (counts[exact] * denominator)
    for group in np.flatnonzero(~exact).tolist():
        results[group] = _integer(sums[group]) * numerator / (int(counts[group]) * denominator)
    return results


def _decimals(groups: GroupNames, sums: np.ndarray) -> pa.Array:
    arrow = groups.declared.arrow
    n_words = arrow.bit_width // 32
    _refuse_wide(groups, sums, n_words)
    # All sums fit the type's bits; the few near its number of digits are looked at one by one.
    magnitudes = np.abs(_approximate(sums))
    for group in np.flatnonzero(magnitudes > 0.999 * 10.0**arrow.precision).tolist():
        if abs(_integer(sums[group])) >= 10**arrow.precision:
            raise _overflow(groups, group, sums)
    data = pa.py_buffer(np.ascontiguousarray(sums[:, :n_words]).tobytes())
    return pa.Array.from_buffers(arrow, len(sums), [None, data])


def _fits(sums: np.ndarray, n_words: int) -> np.ndarray:
    """Whether the words beyond the first ``n_words`` only repeat their sign."""
    extension = np.where(sums[:, n_words - 1] >> 31, np.uint32(2**32 - 1), np.uint32(0))
    return cast(np.ndarray, (sums[:, n_words:] == extension[:, np.newaxis]).all(axis=1))


def _approximate(sums: np.ndarray) -> np.ndarray:
    """The integers as doubles, with a relative error far below 0.001."""
    values = sums[:, -1].astype(np.int32).astype(np.float64)
    for word in reversed(range(sums.shape[1] - 1)):
        values = values * 2.0**32 + sums[:, word]
    return values


def _low_int64(sums: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(sums[:, :2]).view(np.int64)[:, 0]


def _integer(row: np.ndarray) -> int:
    return int.from_bytes(row.tobytes(), "little", signed=True)


def _refuse_wide(groups: GroupNames, sums: np.ndarray, n_words: int) -> None:
    wide = ~_fits(sums, n_words)
    if wide.any():
        raise _overflow(groups, int(wide.argmax()), sums)


def _overflow(groups: GroupNames, group: int, sums: np.ndarray) -> RangeError:
    arrow = groups.declared.arrow
    shown, way_out = str(_integer(sums[group])), ""
    if pa.types.is_decimal(arrow):
        shown, way_out = f"{Decimal(f'{shown}e{-arrow.scale}'):f}", "a column of float64"
    elif pa.types.is_integer(arrow):
        way_out = "a column of decimal128(38, 0) or float64"
    message = f"{groups.name(group)} = {groups.call()} is {shown}, which does not fit {arrow}"
    return RangeError(f"{message}; {way_out} can have larger sums" if way_out else message)
