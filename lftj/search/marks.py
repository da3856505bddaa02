"""Marks: a bit map of a sorted list of keys, so that testing a key is one load.

Marks are the words of an int64 array; the first bit stands for the key ``base``.  They are made where keys
are dense (:func:`mark_words`).

Invariant: every key that is set, cleared or tested lies within the bit map's range.

Cost: a load per key, and none of it depends on what the load brings, so that the
processor foresees the loop.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices.compiled import part

MARKS_MAX_BITS = 1 << 27
"""Longest bit map, in keys: 16 MiB."""

MARKS_MAX_SPREAD = 64
"""A bit map has at most this many bits per key of the largest participant."""

MARKS_SMALL = 1 << 16
"""... or at most this many, whatever the number of keys."""

SIX = np.uint64(6)  # unsigned indices spare numba's test for negative ones
SIXTY_THREE = np.uint64(63)
ONE = np.int64(1)


def mark_words(ranges: Sequence[tuple[int, int]], largest: int) -> tuple[int, int]:
    """Least key of a bit map and its number of words, 0 where keys are too sparse for one.

    ``ranges``: least and largest key of every participant; ``largest``: most keys of one of them.

    >>> mark_words([(5, 100), (70, 133)], 80), mark_words([(0, 1 << 30)], 80)
    ((5, 3), (0, 0))
    """
    base = min(low for low, _ in ranges)
    spread = max(high for _, high in ranges) - base + 1
    dense = spread <= min(MARKS_MAX_BITS, max(MARKS_SMALL, MARKS_MAX_SPREAD * largest))
    return base, (spread + 63) // 64 if dense else 0


@part
def marked(marks, base, key):
    """1 where the key's bit is set, else 0."""
    bit = np.uint64(key - base)
    return (marks[bit >> SIX] >> np.int64(bit & SIXTY_THREE)) & ONE


@part
def set_marks(marks, base, keys, start, end):
    """Set the bits of keys[start:end]."""
    for place in range(start, end):
        bit = np.uint64(keys[place] - base)
        marks[bit >> SIX] |= ONE << np.int64(bit & SIXTY_THREE)


@part
def clear_marks(marks, base, keys, start, end):
    """Clear the words that hold the bits of keys[start:end]; no other bits are set in them."""
    for place in range(start, end):
        bit = np.uint64(keys[place] - base)
        marks[bit >> SIX] = 0
