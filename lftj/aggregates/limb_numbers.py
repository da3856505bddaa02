"""Exact sums in sparse form, and what is read of them: doubles and words.

A number is its limbs in use, uint32 in two's complement, as :mod:`lftj.aggregates.limb_pool`
keeps them and gives them out.

Invariant: reading never writes to the numbers, and never rounds but in :func:`rounded_quotients`, once.

Cost: O(limbs in use).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from indices.compiled import kernel, part
from lftj.aggregates.superaccumulator import (
    _GUARD,
    _HALF,
    _LIMBS,
    _MASK,
    _UNIT,
    _finish,
    _with_specials,
    _writable,
)

UNIT_BITS = _UNIT
"""The ``lowest_bit`` of whole numbers that :func:`rounded_quotients` is to see as such."""


class Numbers(NamedTuple):
    """Number i is ``limbs[starts[i] : starts[i] + lengths[i]]``, the first of them limb ``lows[i]``."""

    starts: np.ndarray  # int64
    lows: np.ndarray  # uint8, 0 for zero
    lengths: np.ndarray  # uint8
    limbs: np.ndarray  # uint32

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self)


@part
def load_number(numbers, number, limbs):  # type: ignore[no-untyped-def]
    """Write a number into ``limbs``: (_LIMBS,) int64, all zero.  Returns its ``low`` and ``high``."""
    length = np.int64(numbers.lengths[number])
    if length == 0:
        return _LIMBS, 0
    low = np.int64(numbers.lows[number])
    start = numbers.starts[number]
    for place in range(length):
        limbs[low + place] = np.int64(numbers.limbs[start + place])
    high = low + length - 1
    if limbs[high] >= _HALF:
        limbs[high] -= _MASK + 1
    return low, high


@kernel(makes_arrays=True)
def _round_numbers(numbers, specials, divisors, out):  # type: ignore[no-untyped-def]
    """``out``: (numbers,) int64, written: bits of the double nearest to number / divisor, or a special."""
    limbs = np.zeros(_LIMBS, np.int64)
    for number in range(len(out)):
        low, high = load_number(numbers, number, limbs)
        out[number] = _with_specials(_finish(limbs, low, high, divisors[number]), specials[number])


@kernel
def _read_words(numbers, out):  # type: ignore[no-untyped-def]
    """``out``: (numbers, k) uint32, written: two's complement, lowest word first, of numbers that fit."""
    for number in range(len(out)):
        length, start = np.int64(numbers.lengths[number]), numbers.starts[number]
        low = np.int64(numbers.lows[number]) - _GUARD
        extension = 0
        if length > 0 and numbers.limbs[start + length - 1] >= _HALF:
            extension = _MASK
        for word in range(out.shape[1]):
            if length == 0 or word < low:
                out[number, word] = 0
            elif word < low + length:
                out[number, word] = numbers.limbs[start + word - low]
            else:
                out[number, word] = extension


def plain(array: np.ndarray) -> np.ndarray:
    """What :func:`_writable` gives, without its cost where that is the array itself."""
    return array if array.flags.carray else _writable(array)


def without_numbers(numbers: Numbers, gone: np.ndarray) -> Numbers:
    """``numbers`` with zero in place of those of the mask ``gone``."""
    keep = (~gone).astype(np.uint8)
    return numbers._replace(lows=numbers.lows * keep, lengths=numbers.lengths * keep)


def whole_number(numbers: Numbers, number: int) -> int:
    """A number in units of its lowest bit, that of doubles in units of ``2**-UNIT_BITS``."""
    start, length = int(numbers.starts[number]), int(numbers.lengths[number])
    limbs = numbers.limbs[start : start + length].astype("<u4").tobytes()
    return int.from_bytes(limbs, "little", signed=True) << 32 * max(int(numbers.lows[number]) - _GUARD, 0)


def rounded_quotients(numbers: Numbers, specials: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    """The double nearest to each number divided by its divisor (int64, 1 or less: not divided).

    ``specials``: as :meth:`LimbPool.add_floats` leaves them.  O(limbs in use).
    """
    out = np.empty(len(divisors), np.int64)
    _round_numbers(numbers, plain(specials), plain(divisors), out)
    return cast(np.ndarray, out.view(np.float64))


def whole_words(numbers: Numbers, n_words: int) -> np.ndarray:
    """Numbers that were added with ``lowest_bit`` 0, as ``n_words`` words each; they have to fit."""
    out = np.empty((len(numbers.starts), n_words), np.uint32)
    _read_words(numbers, out)
    return out
