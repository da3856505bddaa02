"""The base run of an index: a trie in flat arrays (docs/design/engine.md section 2).

Level l holds the distinct keys at that level, in index order, and for every
node the offset of its first child in level l+1::

    tuples (1,3) (1,5) (4,2)      level 0 keys  1 4      children 0 2 3
                                  level 1 keys  3 5 2

Invariants (see :meth:`Trie.check_invariants`)

1. Below one parent keys increase strictly; level 0 has one (virtual) parent.
2. ``children[l]`` has one item more than ``keys[l]``, starts at 0, increases
   strictly and ends at the length of level l+1.  The last level has none.
3. Where level 0 is dense enough, ``ranks[k - base]`` is the least position
   whose key is >= k, for base <= k <= largest key + 1: a seek in one look-up.
4. Arrays are read-only once built: readers share them without locks.

The leaf offset of a node is the composition of the children arrays below it:
:meth:`Trie.leaf_offsets`.  Later runs with weights, which the maintained
engine adds beside this base, refer to the same levels.

Cost: one pass over the sorted columns per level, 8 bytes a key and 8 a child
offset; the rank table takes 4 bytes per value of the key range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lftj.process import debug
from lftj.storage.sorting import mark_changes, sort_rows

RANKS_MAX_SPREAD = 8
"""A rank table is made when the key range is at most this many times the number of tuples."""

RANKS_SMALL = 1 << 16
"""... or when the range is at most this, whatever the number of tuples."""


@dataclass(frozen=True, eq=False)
class Trie:
    """``keys[l]``: int64 (n_l,); ``children[l]``: int64 (n_l + 1,), one fewer levels than keys."""

    keys: tuple[np.ndarray, ...]
    children: tuple[np.ndarray, ...]
    ranks: np.ndarray | None  # int32 (largest - base + 2,), or None where level 0 is too sparse
    max_fanouts: tuple[int, ...]  # per level: most keys below one parent
    key_ranges: tuple[tuple[int, int], ...]  # per level: least and largest key; (0, -1) when empty
    _offsets: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, repr=False)
    """What :meth:`offsets` gave."""

    @classmethod
    def from_sorted(cls, columns: Sequence[np.ndarray]) -> Trie:
        """Build from int64 columns whose rows are distinct and sorted lexicographically.

        >>> trie = Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])])
        >>> [level.tolist() for level in trie.keys], trie.children[0].tolist()
        ([[1, 4], [3, 5, 2]], [0, 2, 3])
        """
        if debug.enabled:
            debug.check_rows(columns, "a trie's rows")
        n_rows = len(columns[0])
        last = len(columns) - 1
        keys: list[np.ndarray] = []
        children: list[np.ndarray] = []
        changed = np.zeros(n_rows, dtype=bool)
        changed[:1] = True
        n_above = n_below = 0  # nodes of the level above, and of this one
        starts = np.empty(0, np.int64)  # rows at which the nodes of the level above start
        for level, column in enumerate(columns):
            column = np.ascontiguousarray(column, dtype=np.int64)
            n_above, above = n_below, starts
            if level < last and n_above < n_rows:
                first = changed.copy() if level else changed
                mark_changes(changed, column)
                starts = np.flatnonzero(changed)
                n_below = len(starts)
            else:  # a node for each row, here and below
                n_below = n_rows
            keys.append(column if n_below == n_rows else column[starts])
            if level:
                if n_above == n_rows:
                    offsets = np.arange(n_rows + 1)
                elif n_below == n_rows:
                    offsets = np.append(above, n_rows)
                else:
                    offsets = np.append(np.flatnonzero(first[starts]), n_below)
                children.append(offsets)
        for array in (*keys, *children):
            array.setflags(write=False)
        fanouts = [len(keys[0])]
        for offsets, below in zip(children, keys[1:], strict=True):
            each_one = len(offsets) - 1 == len(below)
            fanouts.append(min(1, len(below)) if each_one else int(np.diff(offsets).max(initial=0)))
        ranges = [(int(k.min()), int(k.max())) if len(k) else (0, -1) for k in keys]
        ranks = rank_table(keys[0], n_rows)
        return cls(tuple(keys), tuple(children), ranks, tuple(fanouts), tuple(ranges))

    @classmethod
    def of_rows(cls, columns: Sequence[np.ndarray], n_rows: int) -> Trie:
        """Of rows in any order, which may be equal: behind their columns, if any, a level numbers them.

        >>> trie = Trie.of_rows([np.array([4, 1, 4])], 3)
        >>> [level.tolist() for level in trie.keys], trie.children[0].tolist()
        ([[1, 4], [0, 1, 2]], [0, 1, 3])
        """
        return cls.from_sorted([*(sort_rows(columns) if columns else ()), np.arange(n_rows)])

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): less addresses, and what is made again."""
        return {**{name: self.__dict__[name] for name in self.__dataclass_fields__}, "_offsets": {}}

    @cached_property
    def memory(self) -> np.ndarray:
        """The trie as kernels see it: int64 (:mod:`lftj.storage.version_memory`)."""
        from lftj.storage.version_memory import base_fields  # it brings the compiler

        return np.array(base_fields(self), np.int64)

    @cached_property
    def ranks_place(self) -> int:
        """Address of the rank table, 0 where there is none."""
        return 0 if self.ranks is None else int(self.ranks.ctypes.data)

    @property
    def n_levels(self) -> int:
        return len(self.keys)

    @property
    def n_tuples(self) -> int:
        return len(self.keys[-1])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays())

    def arrays(self) -> list[np.ndarray]:
        """All that it consists of, each array once."""
        made = [*self.keys, *self.children, *self._offsets.values()]
        if self.ranks is not None:
            made.append(self.ranks)
        return list({id(array): array for array in made}.values())

    def leaf_offsets(self, level: int) -> np.ndarray:
        """Offsets of each node's first tuple, one item more than nodes.

        >>> Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])]).leaf_offsets(0).tolist()
        [0, 2, 3]
        """
        return self.offsets(level, self.n_levels - 1)

    def offsets(self, level: int, deeper: int) -> np.ndarray:
        """Offsets of each node's first branch of a level that is as deep or deeper; made once, read-only.

        >>> Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])]).offsets(0, 0).tolist()
        [0, 1, 2]
        """
        found = self._offsets.get((level, deeper))
        if found is None:
            if level == deeper:
                found = np.arange(len(self.keys[level]) + 1)
            else:
                found = self.children[level]
                for children in self.children[level + 1 : deeper]:
                    found = children[found]
            found.setflags(write=False)
            self._offsets[level, deeper] = found  # of two threads that make it, both make the same
        return found

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        assert _rises(self.keys[0]).all(), "level 0 increases strictly"
        assert len(self.children) == len(self.keys) - 1
        assert self.max_fanouts[0] == len(self.keys[0])
        for level, children in enumerate(self.children):
            below = self.keys[level + 1]
            assert len(children) == len(self.keys[level]) + 1
            assert children[0] == 0 and children[-1] == len(below)
            assert _rises(children).all(), "every node has a child"
            falls = np.flatnonzero(~_rises(below)) + 1
            assert np.isin(falls, children).all(), "keys increase strictly below one parent"
            assert self.max_fanouts[level + 1] == np.diff(children).max(initial=0)
        for keys, (least, largest) in zip(self.keys, self.key_ranges, strict=True):
            assert (least, largest) == ((keys.min(), keys.max()) if len(keys) else (0, -1))
        if self.ranks is not None:
            base, largest = self.key_ranges[0]
            expected = np.searchsorted(self.keys[0] - base, np.arange(largest - base + 2))
            assert np.array_equal(self.ranks, expected)
        for array in (*self.keys, *self.children, self.ranks):
            assert array is None or not array.flags.writeable


def _rises(keys: np.ndarray) -> np.ndarray:
    """Where the next item is greater; their difference may exceed int64."""
    return keys[1:] > keys[:-1]


def rank_table(keys: np.ndarray, n_tuples: int) -> np.ndarray | None:
    """Invariant 3's table, or None where it would be too large for what it saves.

    >>> rank_table(np.array([3, 5]), 2).tolist()
    [0, 1, 1, 2]
    """
    spread = rank_spread(keys, n_tuples)
    if not spread:
        return None
    present = np.zeros(spread + 1, dtype=np.int32)
    present[keys - keys[0] + 1] = 1
    ranks = np.cumsum(present, dtype=np.int32)
    ranks.setflags(write=False)
    return ranks


def rank_spread(keys: np.ndarray, n_tuples: int) -> int:
    """One less than the length of :func:`rank_table`; 0 where there is to be none."""
    if not len(keys):
        return 0
    spread = int(keys[-1]) - int(keys[0]) + 1
    return 0 if spread > max(RANKS_SMALL, RANKS_MAX_SPREAD * n_tuples) or len(keys) >= 1 << 31 else spread
