"""Sets of codes, to tell which rows of a column are among them: the filter of a semi-join.

Invariant: codes in a range of at most ``SPREAD`` items, or of ``DENSE`` items a code, are a table of flags;
others are sorted.

Cost: one pass over the codes, or a sort; of a code that is looked for one access, or O(log n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lftj.storage.sorting import first_of_equal

SPREAD = 1 << 20
DENSE = 8


@dataclass(frozen=True, eq=False)
class KeySet:
    """``flags``: of the codes from ``base`` on, between two that are not set; or increasing ``keys``."""

    n_keys: int
    base: int
    flags: np.ndarray | None
    keys: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray) -> KeySet:
        """The distinct ones of int64 codes.

        >>> few = KeySet.of(np.array([7, 2, 7]))
        >>> few.n_keys, few.holds(np.array([2, 3, 7, 8])).tolist()
        (2, [True, False, True, False])
        """
        if not len(codes):
            return cls(0, 0, None, codes)
        low, high = int(codes.min()), int(codes.max())
        if high - low < max(SPREAD, DENSE * len(codes)):
            flags = np.zeros(high - low + 3, dtype=bool)
            flags[codes - low + 1] = True
            return cls(int(np.count_nonzero(flags)), low, flags, codes[:0])
        keys = np.sort(codes)
        keys = keys[first_of_equal([keys])]
        return cls(len(keys), low, None, keys)

    @property
    def codes(self) -> np.ndarray:
        """The distinct codes, increasing.

        >>> KeySet.of(np.array([7, 2, 7])).codes.tolist()
        [2, 7]
        """
        return self.keys if self.flags is None else np.flatnonzero(self.flags[1:]) + self.base

    def holds(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are among them: bool (n,)."""
        if self.flags is not None:
            # A difference beyond int64 wraps to one outside of the flags.
            return self.flags.take((codes - np.int64(self.base)) + np.int64(1), mode="clip")
        if not self.n_keys:
            return np.zeros(len(codes), dtype=bool)
        places = np.minimum(np.searchsorted(self.keys, codes), self.n_keys - 1)
        return self.keys[places] == codes
