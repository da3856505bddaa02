"""`Digest`: weight and checksum of heads, kept from their changes: how sides that keep one view are compared.

Invariants

1. ``weight`` is the number of tuples, ``checksum`` the sum of their hashes modulo 2^64; a tuple with a
   weight counts as often.  Both are sums, so they do not depend on any order, and changes add theirs.
2. The hash of a tuple is that of ``bench/peers/differential/src/hash.rs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)


@dataclass
class Digest:
    """The sums over everything that was added.

    >>> digest = Digest()
    >>> digest.add([np.array([1, 2])])
    >>> digest.add([np.array([2, 1])], np.array([-1, -1]))
    >>> digest
    Digest(weight=0, checksum=0)
    """

    weight: int = 0
    checksum: int = 0

    def add(
        self, columns: Sequence[np.ndarray], weights: np.ndarray | None = None, head_number: int = 0
    ) -> None:
        """Add tuples of a head: columns of int64 or float64 of one length, and int64 weights, else all 1."""
        hashes = np.full(len(columns[0]), head_number, np.uint64)
        for column in columns:
            hashes = (hashes ^ np.ascontiguousarray(column).view(np.uint64)) * _FACTOR
            hashes ^= hashes >> _HALF
        if weights is not None:
            hashes *= weights.astype(np.int64).view(np.uint64)
        self.weight += len(hashes) if weights is None else int(weights.sum())
        self.checksum = (self.checksum + int(hashes.sum())) % (1 << 64)

    def add_table(self, table: pa.Table, head_number: int = 0) -> None:
        """Add a head, or its changes, which have a column ``weight`` at the end."""
        columns = [column.to_numpy() for column in table.columns]
        if table.column_names and table.column_names[-1] == "weight":
            self.add(columns[:-1], columns[-1], head_number)
        else:
            self.add(columns, None, head_number)

    @property
    def sums(self) -> tuple[int, int]:
        """Weight and checksum."""
        return self.weight, self.checksum
