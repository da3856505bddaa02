"""Marks: the states of windows at some places of a large partition, so that none is found from its beginning.

Invariants

1. The keys ascend; the first is below all rows' (:func:`least_key`).  The state of a mark is that behind all
   rows whose keys are less, of :mod:`lftj.aggregates.windows`; ``end`` is that behind all rows.
2. Marks are laid :func:`spacing` rows apart; one that stood there before goes when less than a quarter of
   that is left before it.  So there are O(sqrt n) in a partition of n rows, and O(sqrt n) rows between two.
3. Marks never change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.aggregates.windows import States

Key = tuple[int, ...]
"""What rows are sorted by, the partition first."""

SPACING = 256
LARGE = 4
"""A partition of fewer times as many rows has no marks: it is read whole."""


def is_large(n_rows: np.ndarray) -> np.ndarray:
    """Which partitions of so many rows are.

    >>> is_large(np.array([100, 10_000])).tolist()
    [False, True]
    """
    return n_rows >= LARGE * SPACING


def spacing(n_rows: int) -> int:
    """How far apart marks are laid in a partition of so many rows."""
    return max(SPACING, isqrt(n_rows))


def least_key(part: Key, n_sorted: int) -> Key:
    """Before all rows of a partition."""
    return part + (KEY_MIN,) * (n_sorted - len(part))


def greatest_key(part: Key, n_sorted: int) -> Key:
    """Behind all rows of a partition."""
    return part + (KEY_MAX,) * (n_sorted - len(part))


@dataclass(frozen=True)
class Marks:
    """Those of one partition."""

    keys: Sequence[Key]
    states: Sequence[States]
    end: States

    def at(self, key: Key) -> int:
        """The number of the last mark that is not behind a key."""
        return bisect_right(self.keys, key) - 1

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant that can be seen here."""
        assert list(self.keys) == sorted(set(self.keys))
        assert len(self.keys) == len(self.states)


def laid(boundaries: np.ndarray, begin: int, apart: int) -> list[int]:
    """Places for marks, ``apart`` from each other or a little farther.

    ``boundaries``: places where one may stand, ascending; ``begin``: where there is one.

    >>> laid(np.array([3, 4, 9, 12]), 0, 4)
    [4, 9]
    """
    found = []
    while (number := int(np.searchsorted(boundaries, begin + apart))) < len(boundaries):
        begin = int(boundaries[number])
        found.append(begin)
    return found
