"""Decimals as whole numbers: the *unscaled values* of a column, in units of its last digit.

A dictionary has a decimal in 256 bits (:mod:`lftj.values.dictionary`).  Nearly all columns do with 64: the
number of a value is found once for each code and scale, and a column of codes is decoded by one look-up for
each row.

Invariants

1. What a table has at a code is the number of the code's value, exactly; or that it has none: it needs more
   digits behind the point, or 64 bits; or that nobody has asked yet.
2. A table has no entry of a code that is free (:class:`~lftj.values.dictionary.CodeTable`).
3. Operations on numbers are exact: where bounds say that a result may need more than 64 bits there is none.

Cost: a table takes 8 bytes for each code of its dictionary; a number is found in some 50 operations.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.values.byte_words import view8
from lftj.values.interner import Interner, read_only

VALUE_BYTES = 32
"""Of a decimal in a dictionary."""

SCALE = 38
"""Digits behind the point of a decimal in a dictionary."""

SCALES = range(-19, SCALE + 1)
"""Of these scales each number of 64 bits is a value that a dictionary holds."""

_UNKNOWN = KEY_MIN
NO_NUMBER = KEY_MIN + 1
"""Of a value with more digits behind the point, or of more bits."""

VALUE_WORDS = VALUE_BYTES // 4
_WORD = (1 << 32) - 1
_STEP = 9  # 10**9 < 2**32


class Numbers(NamedTuple):
    """Whole numbers in units of ``10**-scale``: int64 (rows,), or one that stands for all rows.

    ``least``, ``most``: bounds, perhaps not the closest ones; ``-(2**63)`` is below them.
    """

    values: np.ndarray
    scale: int
    least: int
    most: int

    def at_scale(self, scale: int) -> Numbers | None:
        """The same in smaller units.

        >>> numbers_of(np.array([15, -2]), 1).at_scale(3).values.tolist()
        [1500, -200]
        """
        if scale == self.scale:
            return self
        factor = 10 ** (scale - self.scale)
        if factor > KEY_MAX or not _fits(self.least * factor, self.most * factor):
            return None
        return Numbers(self.values * np.int64(factor), scale, self.least * factor, self.most * factor)

    def negated(self) -> Numbers | None:
        if not _fits(-self.most, -self.least):
            return None
        return Numbers(-self.values, self.scale, -self.most, -self.least)

    def plus(self, other: Numbers, sign: int = 1) -> Numbers | None:
        """The sums, or the differences where ``sign`` is -1."""
        scale = max(self.scale, other.scale)
        left, right = self.at_scale(scale), other.at_scale(scale)
        if left is None or right is None:
            return None
        ends = (right.least, right.most) if sign > 0 else (-right.most, -right.least)
        least, most = left.least + ends[0], left.most + ends[1]
        if not _fits(least, most):
            return None
        return Numbers(
            left.values + right.values if sign > 0 else left.values - right.values, scale, least, most
        )

    def times(self, other: Numbers) -> Numbers | None:
        corners = [one * by for one in (self.least, self.most) for by in (other.least, other.most)]
        least, most = min(corners), max(corners)
        if not _fits(least, most):
            return None
        return Numbers(self.values * other.values, self.scale + other.scale, least, most)

    def fits(self, digits: int) -> bool:
        """Whether bounds say that no number has more digits."""
        return max(-self.least, self.most) < 10**digits

    def array(self, arrow_type: pa.DataType) -> pa.Array:
        """As decimals of this scale and enough digits.

        >>> numbers_of(np.array([15, -2]), 1).array(pa.decimal128(4, 1)).to_pylist()
        [Decimal('1.5'), Decimal('-0.2')]
        """
        values = self.values
        if arrow_type.bit_width == 32:
            values = values.astype(np.int32)
        elif arrow_type.bit_width > 64:
            values = np.empty((len(self.values), arrow_type.bit_width // 64), np.int64)
            values[:, 0] = self.values
            values[:, 1:] = (self.values >> 63)[:, np.newaxis]
        data = pa.py_buffer(np.ascontiguousarray(values))
        return pa.Array.from_buffers(arrow_type, len(self.values), [None, data])


def numbers_of(values: np.ndarray, scale: int) -> Numbers:
    """Of int64 (rows,), with the closest bounds."""
    if not len(values):
        return Numbers(values, scale, 0, 0)
    return Numbers(values, scale, int(values.min()), int(values.max()))


def numbers_of_array(array: pa.Array) -> Numbers | None:
    """The numbers of an array of decimals without NULL; None where one needs more than 64 bits.

    Also None for a scale that is none of :data:`SCALES`.

    >>> from decimal import Decimal
    >>> numbers_of_array(pa.array([Decimal("1.5")], pa.decimal128(4, 1))).values.tolist()
    [15]
    """
    arrow = array.type
    if arrow.scale not in SCALES:
        return None
    n_words = max(1, arrow.bit_width // 64)
    word = np.int32 if arrow.bit_width == 32 else np.int64
    data = array.buffers()[1] if len(array) else b""
    words = np.frombuffer(data, word, n_words * len(array), array.offset * arrow.bit_width // 8)
    values, ends = np.empty(len(array), np.int64), np.zeros(2, np.int64)
    if not _lowest_words(read_only(words.astype(np.int64, copy=False)), n_words, values, ends):
        return None
    return Numbers(values, arrow.scale, *ends.tolist())


def _fits(least: int, most: int) -> bool:
    return least > KEY_MIN and most <= KEY_MAX


class UnscaledTable:
    """The numbers of a dictionary's decimals at one scale, by code; made as they are asked for.

    Any thread may ask, for codes that it holds.
    """

    def __init__(self, scale: int, lock: threading.Lock) -> None:
        """``scale``: one of :data:`SCALES`.  ``lock``: the dictionary's."""
        self._scale = scale
        self._lock = lock
        self._numbers = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        return self._numbers.nbytes

    def forget(self, kept: np.ndarray) -> None:
        """See :class:`~lftj.values.dictionary.CodeTable`; under the lock."""
        known = self._numbers[: len(kept)]
        known[~kept[: len(known)]] = _UNKNOWN
        self._numbers[len(kept) :] = _UNKNOWN

    def of(self, codes: np.ndarray, interner: Interner) -> Numbers | None:
        """The numbers of int64 codes; None where one has none, or is NULL.

        Raises IndexError for what is no code.
        """
        codes = np.require(codes, np.int64, ("C", "W"))
        found, ends = np.empty(len(codes), np.int64), np.array([KEY_MAX, KEY_MIN])
        row, numbers = 0, self._numbers
        while True:
            row = int(_look_up(codes, row, numbers, found, ends))
            if row == len(codes):
                break
            if codes[row] < 0:
                return None
            numbers = self._with_room(interner, int(codes[row]))
            if numbers[codes[row]] == _UNKNOWN:
                words = np.empty(VALUE_WORDS, np.int64)
                _find(interner.table, codes, row, SCALE - self._scale, words, numbers)
            if numbers[codes[row]] <= NO_NUMBER:
                return None
        least, most = ends.tolist() if len(codes) else (0, 0)
        return Numbers(found, self._scale, least, most)

    def _with_room(self, interner: Interner, code: int) -> np.ndarray:
        with self._lock:
            numbers = self._numbers
            if code >= len(numbers):
                n_codes = interner.n_codes
                if code >= n_codes:
                    raise IndexError("a code is beyond all that there are")
                self._numbers = np.full(n_codes + n_codes // 4, _UNKNOWN, np.int64)
                self._numbers[: len(numbers)] = numbers
            return self._numbers


def value_bytes(numbers: Numbers) -> np.ndarray:
    """The values as a dictionary has them: uint8, ``VALUE_BYTES`` each.  The scale is in :data:`SCALES`."""
    data = np.empty(VALUE_BYTES * len(numbers.values), np.uint8)
    values = np.require(numbers.values, np.int64, ("C", "W"))
    _write(values, SCALE - numbers.scale, np.empty(VALUE_WORDS, np.int64), data)
    return data


@kernel
def _lowest_words(words, n_words, values, ends):
    """Write the lowest word of each value; returns whether all others only repeat its sign, and it is no
    ``KEY_MIN``.

    words: int64 (n * n_words,), read-only; values: int64 (n,), written; ends: int64 (2,), written: the least
    and the most.
    """
    least, most = (KEY_MAX, KEY_MIN) if len(values) else (0, 0)
    fits = True
    for row in range(len(values)):
        value = words[row * n_words]
        for place in range(1, n_words):
            fits &= words[row * n_words + place] == value >> 63
        values[row] = value
        least = min(least, value)
        most = max(most, value)
    ends[0], ends[1] = least, most
    return fits and least > KEY_MIN


@kernel
def _look_up(codes, first, numbers, found, ends):
    """Write the number of each code from row ``first`` on; returns the first row without one, or n.

    codes, found: int64 (n,), found written; numbers: int64, by code; ends: int64 (2,), the least and the most
    so far, written.
    """
    least, most = ends[0], ends[1]
    row = first
    while row < len(codes):
        code = codes[row]
        if code < 0 or code >= len(numbers):
            break
        number = numbers[code]
        if number <= NO_NUMBER:
            break
        found[row] = number
        least = min(least, number)
        most = max(most, number)
        row += 1
    ends[0], ends[1] = least, most
    return row


@part
def number_at(value, drop, words):
    """The number of a dictionary's value at an address, less its last digits; NO_NUMBER for none.

    drop: how many digits, which must be 0; words: int64 (VALUE_WORDS,), of this alone.
    """
    its = view8(value, VALUE_BYTES)
    for word in range(VALUE_WORDS):
        words[word] = 0
        for byte in range(4):
            words[word] |= np.int64(its[4 * word + byte]) << (8 * byte)
    is_negative = words[VALUE_WORDS - 1] >> 31 != 0
    if is_negative:
        carry = np.int64(1)
        for word in range(VALUE_WORDS):
            carry += _WORD - words[word]
            words[word] = carry & _WORD
            carry >>= 32
    rest, left = np.int64(0), drop
    while left > 0 and rest == 0:
        divisor = np.int64(10) ** min(left, _STEP)
        for word in range(VALUE_WORDS - 1, -1, -1):
            dividend = (rest << 32) | words[word]
            words[word] = dividend // divisor
            rest = dividend - words[word] * divisor
        left -= _STEP
    for word in range(2, VALUE_WORDS):
        rest |= words[word]
    if rest != 0 or words[1] >> 31 != 0:
        return np.int64(NO_NUMBER)
    number = (words[1] << 32) | words[0]
    return -number if is_negative else number


@part
def write_value(number, rise, words, value):
    """Write a number with so many zeros behind it at an address, as a dictionary has it.

    In two's complement, the lowest byte first.  words: int64 (VALUE_WORDS,), of this alone.
    """
    its = view8(value, VALUE_BYTES)
    is_negative = number < 0
    magnitude = -number if is_negative else number
    words[:] = 0
    words[0], words[1] = magnitude & _WORD, magnitude >> 32
    left = rise
    while left > 0:
        factor = np.int64(10) ** min(left, _STEP)
        carry = np.int64(0)
        for word in range(VALUE_WORDS):
            carry += words[word] * factor
            words[word] = carry & _WORD
            carry >>= 32
        left -= _STEP
    carry = np.int64(1)
    for word in range(VALUE_WORDS):
        half = words[word]
        if is_negative:
            carry += _WORD - half
            half = carry & _WORD
            carry >>= 32
        for byte in range(4):
            its[4 * word + byte] = (half >> (8 * byte)) & 0xFF


@kernel
def _find(table, codes, first, drop, words, numbers):
    """Write what numbers are unknown of codes from row ``first`` on: the values less their last digits.

    table: of the interner, read; codes: int64 (n,); drop: how many digits, which must be 0; words: int64
    (VALUE_WORDS,), of this alone; numbers: int64, by code, written.
    """
    for row in range(first, len(codes)):
        code = codes[row]
        if code < 0 or code >= len(numbers) or numbers[code] != _UNKNOWN or table.starts[code] == 0:
            continue
        numbers[code] = number_at(table.data.ctypes.data + table.starts[code] - 1, drop, words)


@kernel
def _write(numbers, rise, words, data):
    """Write each number with so many zeros behind it.

    numbers: int64 (n,); words: int64 (VALUE_WORDS,), of this alone; data: uint8 (n * VALUE_BYTES,), written.
    """
    for row in range(len(numbers)):
        write_value(numbers[row], rise, words, data.ctypes.data + VALUE_BYTES * row)
