"""Superaccumulators: sums per group that are exact until one final rounding.

A sum is kept as a fixed-point number long enough for every finite double: limb
i holds 32 bits of weight ``2**(32*i)``, as a signed ``int64``.  A summand is
added to at most three limbs and carries wait: a limb has 31 bits to spare, so
they are propagated once in ``carry_rows`` rows and before rounding.  Nothing is
lost on the way, so the order of summands does not matter, and taking a summand
back (a negative weight) leaves exactly the sum of the others.

Invariants

1. The limbs' value is the exact sum of ``weight * value`` over the finite rows
   of the group seen so far.
2. Limbs outside ``[low, high]`` are zero; between groups all are.
3. After :func:`_carry` the limbs below ``high`` lie in ``[0, 2**32)`` and limb
   ``high`` carries the sign (two's complement).
4. NaN, +inf and -inf are counted by weight beside the limbs, so they too can be
   taken back: what decides is which of them have a count other than zero.

Rounding: to nearest, ties to even, subnormals included; beyond the largest
double it is an infinity, but only when the exact result is (``1e308 + 1e308 -
1e308`` is ``1e308``).  A zero sum is ``+0.0``.

Cost: O(1) per row, three limb updates; per group O(limbs between its smallest
and largest summand).  Memory: one accumulator of 5/8 KiB, reused from group to
group.

Sums that are *maintained* are kept apart in :mod:`lftj.aggregates.limb_pool`, which adds summands by the
same ``_add_doubles`` and ``_add_words`` and rounds by the same ``_finish``: the results are the same
bit for bit.  Sums of a whole query, but for those of whole numbers (:mod:`lftj.aggregates.running_sums`), are
rounded here group by group, and never written down as numbers in between.  Of 10 million doubles this makes
no difference in up to 10,000 groups (76 million a second, both ways); in a million groups a pool takes twice
as long (30 for 72 million a second), in five million four times (6 for 24).  The loop over a group's numbers
is written out in each kernel: as a function of its own it makes groups of two rows a third slower.

Source: ILFTJ 2.3.4.  It stores segments of 52 bits of S + C, where C's
alternating bits stop carries from rippling; signed limbs serve the same end
with an addition in place of its case analysis.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from indices.compiled import kernel, part

_LIMB_BITS = 32
_MASK = 2**32 - 1
_HALF = 2**31
_GUARD = 2  # limbs below the unit: where a quotient's digits go that only rounding needs
_LIMBS = 80  # doubles take 66; weights and numbers of rows of 63 bits each, and the guard, fit too
_UNIT = 1074  # the unit of float sums is 2**-1074, the smallest double
_FRACTION_BITS = 52
_FRACTION = 2**_FRACTION_BITS - 1
_SPECIAL = 0x7FF  # exponent field of NaN and infinities
_WEIGHT_BITS = 10  # 53 bits of magnitude times 10 bits of weight fit an int64
_WEIGHT_LIMIT = 2**_WEIGHT_BITS
_CARRY_ROWS = 2**22  # a row adds less than 2**39 to a limb: a limb stays below 2**62
_POSITIVE_INFINITY = _SPECIAL << _FRACTION_BITS
_NAN = _POSITIVE_INFINITY | 1 << (_FRACTION_BITS - 1)


# -- kernels ----------------------------------------------------------------


@part
def _add_scaled(limbs, position, magnitude, sign, weight):  # type: ignore[no-untyped-def]
    """Add ``sign * weight * magnitude * 2**position``; ``0 <= magnitude < 2**53``, sign is 1 or -1.

    Weights of more than 10 bits are taken in pieces of 10.  Returns the highest limb touched.
    """
    while True:
        last = -_WEIGHT_LIMIT < weight < _WEIGHT_LIMIT
        if last:
            product = magnitude * abs(weight)
            if weight < 0:
                sign = -sign
        else:
            product = magnitude * (weight & (_WEIGHT_LIMIT - 1))
        index = (position >> 5) + _GUARD
        shift = position & 31
        lower = (product & _MASK) << shift
        upper = (product >> 32) << shift
        limbs[index] += sign * (lower & _MASK)
        limbs[index + 1] += sign * ((lower >> 32) + (upper & _MASK))
        limbs[index + 2] += sign * (upper >> 32)
        if last:
            return index + 2
        weight >>= _WEIGHT_BITS
        position += _WEIGHT_BITS


@part
def _carry(limbs, low, high):  # type: ignore[no-untyped-def]
    """Propagate carries (invariant 3).  Returns the new ``high``."""
    carry = 0
    for index in range(low, high):
        total = limbs[index] + carry
        limbs[index] = total & _MASK
        carry = total >> 32
    total = limbs[high] + carry
    if -_HALF <= total < _HALF:
        limbs[high] = total
        return high
    limbs[high] = total & _MASK
    limbs[high + 1] = total >> 32
    return high + 1


@part
def _make_magnitude(limbs, low, high):  # type: ignore[no-untyped-def]
    """Replace the value by its absolute value, carried.  Returns (new ``high``, 1 or -1)."""
    high = _carry(limbs, low, high)
    if limbs[high] >= 0:
        return high, 1
    for index in range(low, high + 1):
        limbs[index] = -limbs[index]
    return _carry(limbs, low, high), -1


@part
def _divide(limbs, low, high, divisor):  # type: ignore[no-untyped-def]
    """Divide a carried magnitude by ``divisor > 0``, to at least 65 significant bits or to the last limb.

    Returns (new ``low``, whether a remainder was dropped).
    """
    remainder = 0
    quotient_limbs = 0  # from the first that is not zero
    index = high
    while index >= 0 and quotient_limbs < 3:
        limb = limbs[index]
        digit = 0
        if divisor <= _HALF:
            dividend = (remainder << 32) | limb
            digit = dividend // divisor
            remainder = dividend - digit * divisor
        else:  # 2 * remainder may not fit 64 bits: compare before doubling
            for place in range(31, -1, -1):
                bit = (limb >> place) & 1
                missing = divisor - remainder - bit
                digit <<= 1
                if remainder >= missing:
                    remainder -= missing
                    digit |= 1
                else:
                    remainder += remainder + bit
        limbs[index] = digit
        if digit != 0 or quotient_limbs > 0:
            quotient_limbs += 1
        index -= 1
    inexact = remainder != 0
    for rest in range(low, index + 1):
        if limbs[rest] != 0:
            inexact = True
            limbs[rest] = 0
    return min(low, index + 1), inexact


@part
def _round(limbs, low, high, inexact):  # type: ignore[no-untyped-def]
    """Bits of the double nearest to a carried magnitude; ``inexact``: it is a bit more than the limbs say."""
    top = high
    while top >= low and limbs[top] == 0:
        top -= 1
    if top < low:
        return 0
    length = _LIMB_BITS * top + math.frexp(float(limbs[top]))[1]
    # The last bit kept: 53 significant ones, but none below the unit.
    shift = max(length - (_FRACTION_BITS + 1), _LIMB_BITS * _GUARD)
    exponent = shift - _LIMB_BITS * _GUARD
    if exponent >= _SPECIAL - 1:
        return _POSITIVE_INFINITY
    index = shift >> 5
    place = shift & 31
    significand = (limbs[index] >> place) | (limbs[index + 1] << (32 - place))
    if place > 11:
        significand |= limbs[index + 2] << (64 - place)
    # A significand of 53 bits has its leading one added into the exponent field; so has a
    # rounding up to 54 bits, and one beyond the largest double gives the bits of infinity.
    bits = (exponent << _FRACTION_BITS) + significand
    index = (shift - 1) >> 5
    place = (shift - 1) & 31
    if (limbs[index] >> place) & 1:
        above_half = inexact or (limbs[index] & ((1 << place) - 1)) != 0
        while not above_half and index > low:
            index -= 1
            above_half = limbs[index] != 0
        if above_half or (significand & 1):
            bits += 1
    return bits


@part
def _finish(limbs, low, high, divisor):  # type: ignore[no-untyped-def]
    """Bits of the double nearest to value / divisor; leaves the limbs zero for the next group."""
    if high < low:
        return 0
    high, sign = _make_magnitude(limbs, low, high)
    inexact = False
    if divisor > 1:
        low, inexact = _divide(limbs, low, high, divisor)
    bits = _round(limbs, low, high, inexact)
    limbs[low : high + 1] = 0
    if sign < 0 and bits != 0:
        bits |= np.int64(-(2**63))
    return bits


@part
def _add_doubles(limbs, low, high, bits, weights, begin, end, carry_rows, specials):  # type: ignore[no-untyped-def]
    """Add ``weights[row]`` times the double of ``bits[row]``, for rows ``[begin, end)``.

    ``limbs`` hold a carried value within ``[low, high]`` (zero: ``_LIMBS, 0``).  ``specials``: (3,) int64,
    the weights of NaN, +inf and -inf are added to it.  Returns the new ``low`` and ``high``.
    """
    uncarried = 0
    for row in range(begin, end):
        word = bits[row]
        position = (word >> _FRACTION_BITS) & _SPECIAL
        magnitude = word & _FRACTION
        if position == _SPECIAL:
            specials[0 if magnitude != 0 else 1 if word > 0 else 2] += weights[row]
            continue
        if position != 0:
            magnitude |= _FRACTION + 1
            position -= 1
        if magnitude == 0:
            continue
        sign = -1 if word < 0 else 1
        low = min(low, (position >> 5) + _GUARD)
        high = max(high, _add_scaled(limbs, position, magnitude, sign, weights[row]))
        uncarried += 1
        if uncarried == carry_rows:
            high = _carry(limbs, low, high)
            uncarried = 0
    return low, high


@part
def _with_specials(bits, specials):  # type: ignore[no-untyped-def]
    """What a sum is, its finite summands' being the double of ``bits`` (invariant 4)."""
    if specials[0] != 0 or (specials[1] != 0 and specials[2] != 0):
        return _NAN
    if specials[1] != 0:
        return _POSITIVE_INFINITY
    if specials[2] != 0:
        return np.int64(-(2**63)) | _POSITIVE_INFINITY
    return bits


@kernel(makes_arrays=True)
def _float_groups(bits, weights, offsets, average, carry_rows, out):  # type: ignore[no-untyped-def]
    """Sums or averages of doubles.

    ``bits``: (rows,) int64, the doubles' bits.  ``weights``: (rows,) int64.
    ``offsets``: (groups + 1,) int64, group g is rows ``[offsets[g], offsets[g + 1])``.
    ``out``: (groups,) int64, written: the results' bits.
    """
    limbs = np.zeros(_LIMBS, np.int64)
    specials = np.zeros(3, np.int64)
    for group in range(len(offsets) - 1):
        begin, end = offsets[group], offsets[group + 1]
        specials[:] = 0
        low, high = _add_doubles(limbs, _LIMBS, 0, bits, weights, begin, end, carry_rows, specials)
        count = weights[begin:end].sum() if average else 1
        result = _finish(limbs, low, high, count)
        out[group] = _with_specials(result, specials) if count > 0 else _NAN


@part
def _add_words(limbs, words, row, weight, base):  # type: ignore[no-untyped-def]
    """Add ``weight`` times the integer in ``words[row]``, its lowest bit at ``base``.

    Returns the highest limb touched.
    """
    high = 0
    top = words.shape[1] - 1
    for word_number in range(top + 1):
        magnitude = np.int64(words[row, word_number])
        sign = 1
        if word_number == top and magnitude >= _HALF:
            magnitude = _MASK + 1 - magnitude
            sign = -1
        position = base + _LIMB_BITS * word_number
        if magnitude != 0:
            high = max(high, _add_scaled(limbs, position, magnitude, sign, weight))
    return high


@kernel(makes_arrays=True)
def _integer_sums(words, weights, offsets, carry_rows, out):  # type: ignore[no-untyped-def]
    """Exact sums of integers.

    ``words``: (rows, k) uint32, two's complement, lowest word first.  ``weights`` and ``offsets`` as
    for :func:`_float_groups`.  ``out``: (groups, k + 4) uint32, written: the sums, alike.
    """
    limbs = np.zeros(_LIMBS, np.int64)
    for group in range(len(offsets) - 1):
        low, high = _GUARD, _GUARD
        uncarried = 0
        for row in range(offsets[group], offsets[group + 1]):
            high = max(high, _add_words(limbs, words, row, weights[row], 0))
            uncarried += 1
            if uncarried == carry_rows:
                high = _carry(limbs, low, high)
                uncarried = 0
        high = _carry(limbs, low, high)
        extension = _MASK if limbs[high] < 0 else 0
        for word_number in range(out.shape[1]):
            index = low + word_number
            out[group, word_number] = (limbs[index] & _MASK) if index <= high else extension
        limbs[low : high + 1] = 0


# -- the functions that others call -----------------------------------------


def sum_floats(values: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The correctly rounded sum of ``weights[i] * values[i]`` over each group.

    ``values``: float64.  ``weights``: int64, may be negative.  ``offsets``: int64, group g is the
    rows ``[offsets[g], offsets[g + 1])``; an empty group's sum is 0.0.  NaN, or infinities of both
    signs, make NaN.  O(rows).

    >>> sum_floats(np.array([1e308, 1e308, -1e308, 0.5]), np.ones(4, np.int64), np.array([0, 3, 4])).tolist()
    [1e+308, 0.5]
    """
    return _floats(values, weights, offsets, False)


def average_floats(values: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The correctly rounded quotient of each group's exact sum and its sum of weights.

    Arguments as for :func:`sum_floats`, but a group's weights add up to less than ``2**63``; where
    they add up to 0 or less the quotient is NaN.  O(rows).

    >>> average_floats(np.array([1e308, 1e308]), np.array([1, 2]), np.array([0, 2])).tolist()
    [1e+308]
    """
    return _floats(values, weights, offsets, True)


def sum_integers(words: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The exact sum of ``weights[i] * integer i`` over each group, in four more words than the summands.

    ``words``: shape (rows, k), uint32; a row is an integer in two's complement, lowest word first.
    The result is of shape (groups, k + 4) and never overflows.  O(rows * k).

    >>> ints = np.array([2**62, 2**62, -1])
    >>> sums = sum_integers(ints.view(np.uint32).reshape(3, 2), np.array([4, 4, 1]), np.array([0, 2, 3]))
    >>> [int.from_bytes(row.tobytes(), "little", signed=True) for row in sums] == [2**65, -1]
    True
    """
    out = np.empty((len(offsets) - 1, words.shape[1] + 4), np.uint32)
    _integer_sums(_writable(words), _writable(weights), _writable(offsets), _CARRY_ROWS, out)
    return out


def _floats(values: np.ndarray, weights: np.ndarray, offsets: np.ndarray, average: bool) -> np.ndarray:
    out = np.empty(len(offsets) - 1, np.int64)
    bits = _writable(values).view(np.int64)
    _float_groups(bits, _writable(weights), _writable(offsets), average, _CARRY_ROWS, out)
    return cast(np.ndarray, out.view(np.float64))


def _writable(array: np.ndarray) -> np.ndarray:
    """The array itself, or a copy of one that is read-only or strided: for such numba would compile anew."""
    return np.require(array, requirements=["C", "W"])
