"""Radix sort of 64-bit words, with or without something carried along.

Least significant digit first, 8 bits a digit: each pass is stable, so words that
are already in order by their low bits need passes over the high bits only.
Digits that are the same in all words are skipped.

Cost: O(n) per digit.  Ten million words of 48 bits take 0.17 s where
``numpy.sort`` takes 0.64 s and ``numpy.argsort`` 1.4 s (AMD EPYC, one thread).
The second array that it needs is the caller's.
"""

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part

_DIGIT_BITS = 8
_BUCKETS = 1 << _DIGIT_BITS


@part(makes_arrays=True)
def _starts_of_buckets(words, low_bit, high_bit):  # type: ignore[no-untyped-def]
    """int64 (digits, buckets): where each bucket starts; -1 first if all words share the digit."""
    digits = (high_bit - low_bit + _DIGIT_BITS - 1) // _DIGIT_BITS
    starts = np.zeros((digits, _BUCKETS), dtype=np.int64)
    for row in range(len(words)):
        rest = words[row] >> np.uint64(low_bit)
        for digit in range(digits):
            starts[digit, rest & np.uint64(_BUCKETS - 1)] += 1
            rest = rest >> np.uint64(_DIGIT_BITS)
    for digit in range(digits):
        before = 0
        one_bucket = False
        for bucket in range(_BUCKETS):
            count = starts[digit, bucket]
            one_bucket = one_bucket or count == len(words)
            starts[digit, bucket] = before
            before += count
        if one_bucket:
            starts[digit, 0] = -1
    return starts


@kernel(makes_arrays=True)
def sort_words(words, spare, low_bit, high_bit):  # type: ignore[no-untyped-def]
    """Sort by the bits [low_bit, high_bit); return whether the result stands in ``spare``.

    words, spare: uint64 (n,), both written.  Bits from ``high_bit`` on are equal in all words.
    """
    starts = _starts_of_buckets(words, low_bit, high_bit)
    swapped = False
    for digit in range(len(starts)):
        if starts[digit, 0] < 0:
            continue
        shift = np.uint64(low_bit + digit * _DIGIT_BITS)
        places = starts[digit]
        for row in range(len(words)):
            word = words[row]
            bucket = (word >> shift) & np.uint64(_BUCKETS - 1)
            place = places[bucket]
            places[bucket] = place + 1
            spare[place] = word
        words, spare = spare, words
        swapped = not swapped
    return swapped


@kernel(makes_arrays=True)
def sort_words_carrying(words, spare, cargo, spare_cargo, low_bit, high_bit):  # type: ignore[no-untyped-def]
    """Like :func:`sort_words`; ``cargo`` and ``spare_cargo``, int64 (n,), follow ``words`` and ``spare``."""
    starts = _starts_of_buckets(words, low_bit, high_bit)
    swapped = False
    for digit in range(len(starts)):
        if starts[digit, 0] < 0:
            continue
        shift = np.uint64(low_bit + digit * _DIGIT_BITS)
        places = starts[digit]
        for row in range(len(words)):
            word = words[row]
            bucket = (word >> shift) & np.uint64(_BUCKETS - 1)
            place = places[bucket]
            places[bucket] = place + 1
            spare[place] = word
            spare_cargo[place] = cargo[row]
        words, spare = spare, words
        cargo, spare_cargo = spare_cargo, cargo
        swapped = not swapped
    return swapped
