"""A base trie with a change merged in: a new trie, made from the arrays of the old one, piece by piece.

Level by level, the branches that came and went cut the old arrays into stretches.  Keys
of a stretch are copied as they are; child offsets move by what came and went below the
stretches before.  Nothing is sorted or compared but the changed tuples' own branches::

    base  (1,3) (1,5) (4,2)       keys  1 4    children 0 2 3      keys  3 5 2
    +(1,4) +(3,9) -(4,2)                1 3             0 3 4            3 4 5 9

Invariants

1. What comes out is, bit for bit, ``Trie.from_sorted`` of the tuples.
2. The base stays as it is; the new trie shares no array with it.
3. How far a merge is depends on nothing but the base, the change and the pieces made: whoever
   holds it may make the next one.  A piece that was interrupted makes the merge begin anew.

Cost: O(m L log n) for m changed tuples and L levels to find the branches
(:mod:`lftj.storage.branches`), and one copy of the base's arrays.  A piece is at most
``PIECE`` keys, offsets or ranks, or ``PIECE // TUPLE_COST`` of the changed tuples.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from indices.compiled import kernel, part
from indices.housekeeping import housekeeping
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view32
from lftj.storage.branches import (
    G_AHEAD,
    G_FIRST,
    G_OF_ROW,
    G_PLACE,
    GROUP_FIELDS,
    find_groups,
)
from lftj.storage.seek import lower_bound
from lftj.storage.trie import Trie, rank_spread
from lftj.storage.version_memory import child_offsets, index_at, level_keys

PIECE = 1 << 12
TUPLE_COST = 8
"""To find a changed tuple's branches takes about as long as to copy so many keys."""

WHOLE = 1 << 62
"""The size of a piece that is the whole merge, more or less."""

# -- a merge's own fields of a group, behind those of lftj.storage.branches ------------------
M_STAYS = GROUP_FIELDS  # 1 where it is there afterwards
M_GROWS = GROUP_FIELDS + 1  # branches one level down that came below it, less those that went
M_FIELDS = GROUP_FIELDS + 2

# -- how far one array is -------------------------------------------------------------------
C_GROUPS = 0  # of the level
C_GROUP = 1  # groups, and items of the base and of the new array, that are done
C_POSITION = 2
C_AT = 3
C_GROWN = 4  # by how much child offsets have moved
C_LOW = 5  # least and largest key; or, of offsets, most children of one node
C_HIGH = 6
CURSOR_FIELDS = 7


class TrieMerge:
    """A base trie and a change of its tuples on the way to being one trie.

    >>> base = Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])])
    >>> merge = TrieMerge(base, np.array([[1, 3, 4], [4, 9, 2]]), np.array([1, 1, -1]))
    >>> merge.advance(1) is None
    True
    >>> [level.tolist() for level in merge.advance(100).keys]
    [[1, 3], [3, 4, 5, 9]]
    """

    def __init__(
        self, base: Trie, rows: np.ndarray, weights: np.ndarray, piece: int = PIECE, tuples: int = WHOLE
    ) -> None:
        """``rows``: int64 (levels, m), sorted distinct tuples; ``weights``: int64 (m,).

        A weight is +1 where the base lacks the tuple, -1 where it has it.  ``tuples``: changes of so many
        may come until it has to be complete.
        """
        self._base, self._rows, self._weights = base, rows, weights
        self._piece, self._few = piece, piece // TUPLE_COST
        self._most = min(piece, base.n_tuples + len(weights))  # what a piece may come to
        self._tuples = max(1, tuples)
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._making = _Making(self._base, self._rows, self._weights, self._piece)
        self._pieces = self._making.pieces()

    @property
    def nbytes(self) -> int:
        """Of the arrays that there are of the new trie."""
        return self._making.nbytes

    @cached_property
    def most_pieces(self) -> int:
        """How many pieces it takes, or some more."""
        levels, m = self._rows.shape
        copies = [3] * (levels - 2) + [2] * (levels > 1) + [1]  # keys, child offsets, offsets of leaves
        n_items = sum(n * (len(keys) + m + 1) for n, keys in zip(copies, self._base.keys, strict=True))
        n_items += 0 if self._base.ranks is None else len(self._base.ranks) + m
        return n_items // self._piece + 3 * levels + 2 * levels * (1 + m // self._few)

    def pieces_for(self, n_tuples: int, piece_rows: int) -> int:
        """Pieces with a change: one, and one per ``piece_rows``; or as many as it has to make meanwhile."""
        return max(1 + n_tuples // piece_rows, -(-n_tuples * self.most_pieces // self._tuples))

    def advance(self, n_pieces: int) -> Trie | None:
        """Make some more pieces; the trie, if it is complete with them."""
        with self._lock:
            if self._making.trie is None:
                try:
                    self._making.wanted = n_pieces
                    while self._making.wanted > 0 and (n_made := next(self._pieces, None)) is not None:
                        housekeeping.rows += n_made * self._most
                        self._making.wanted -= n_made
                except BaseException:
                    self._begin()
                    raise
            return self._making.trie


class _Making:
    """How far a merge is.

    It does not know the generator of its pieces, or whoever asks for them: a merge that is given up amid them
    is gone with the last who holds it, and nothing has to be found by the collector of cycles.
    """

    def __init__(self, base: Trie, rows: np.ndarray, weights: np.ndarray, piece: int) -> None:
        self._base, self._rows, self._weights = base, rows, weights
        self._piece, self._few = piece, piece // TUPLE_COST
        self.nbytes = 0
        self.wanted = 0
        """Pieces that are to be made now."""
        self.trie: Trie | None = None

    def _stretches(self, n_items: int, piece: int) -> Iterator[tuple[int, int, int]]:
        """Items in stretches of as many pieces as are wanted: where each begins and ends, and its pieces."""
        first = 0
        while first < n_items:
            last = min(first + piece * self.wanted, n_items)
            yield first, last, -(-(last - first) // piece)
            first = last

    def _copied(
        self, level: int, are_offsets: bool, groups: np.ndarray, cursor: np.ndarray, out: np.ndarray
    ) -> Iterator[int]:
        """Writes a level's keys or offsets; comes back after some pieces, with their number."""
        memory, rows, done = self._base.memory, self._rows, False
        while not done:
            before = int(cursor[C_AT])
            most = min(self._piece * self.wanted, WHOLE)
            done = _merge(memory, rows, level, are_offsets, groups, cursor, most, out)
            yield max(1, -(-(int(cursor[C_AT]) - before) // self._piece))

    def pieces(self) -> Iterator[int]:
        """Makes the trie; comes back after some pieces, at most as many as are wanted, with their number."""
        base, memory, rows, few = self._base, self._base.memory, self._rows, self._few
        levels, m = rows.shape
        groups = self._new(np.zeros((M_FIELDS, levels + 1, max(m, 1)), np.int64))
        numbers = [0] * levels
        for level in range(levels):
            for first, last, n_pieces in self._stretches(m, few):
                numbers[level] = _find(memory, rows, level, first, last, numbers[level], groups)
                yield n_pieces
        lengths = [len(keys) for keys in base.keys]
        for level in range(levels - 1, -1, -1):
            for first, last, n_pieces in self._stretches(numbers[level], few):
                lengths[level] += _settle(memory, self._weights, level, first, last, groups)
                yield n_pieces
        keys, children, fanouts, ranges = [], [], lengths[:1], []
        for level in range(levels):
            cursor = np.array([numbers[level], 0, 0, 0, 0, KEY_MAX, KEY_MIN])
            keys.append(self._new(np.empty(lengths[level], np.int64)))
            yield from self._copied(level, False, groups, cursor, keys[-1])
            ranges.append((int(cursor[C_LOW]), int(cursor[C_HIGH])) if lengths[level] else (0, -1))
        for level in range(levels - 1):
            cursor = np.array([numbers[level], 0, 0, 0, 0, 0, 0])
            children.append(self._new(np.empty(lengths[level] + 1, np.int64)))
            yield from self._copied(level, True, groups, cursor, children[-1])
            fanouts.append(int(cursor[C_HIGH]))
        ranks = None
        spread = rank_spread(keys[0], lengths[-1])
        if spread:
            ranks = self._new(np.empty(spread + 1, np.int32))
            cursor = np.array([numbers[0], 0, 0, 0, 0, 0, 0])
            are_moved = base.ranks is not None and base.key_ranges[0][0] == ranges[0][0]
            for first, last, n_pieces in self._stretches(spread + 1, self._piece):
                if are_moved:
                    _move_ranks(memory, rows, groups, cursor, last, ranks)
                else:
                    _rank(keys[0], first, last, ranks)
                yield n_pieces
            ranks.setflags(write=False)
        leaves: dict[tuple[int, int], np.ndarray] = {}
        for level in range(levels - 3, -1, -1):
            deeper = leaves.get((level + 1, levels - 1), children[level + 1])
            offsets = leaves[level, levels - 1] = self._new(np.empty(lengths[level] + 1, np.int64))
            for first, last, n_pieces in self._stretches(len(offsets), self._piece):
                deeper.take(children[level][first:last], out=offsets[first:last], mode="clip")
                yield n_pieces
        for array in (*keys, *children, *leaves.values()):
            array.setflags(write=False)
        self.trie = Trie(tuple(keys), tuple(children), ranks, tuple(fanouts), tuple(ranges), leaves)

    def _new(self, array: np.ndarray) -> np.ndarray:
        self.nbytes += array.nbytes
        return array


def merged(base: Trie, rows: np.ndarray, weights: np.ndarray) -> Trie:
    """The trie of the base's tuples after a change, at once; arguments as for :class:`TrieMerge`.

    >>> base = Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])])
    >>> trie = merged(base, np.array([[1, 3, 4], [4, 9, 2]]), np.array([1, 1, -1]))
    >>> [level.tolist() for level in trie.keys], trie.children[0].tolist()
    ([[1, 3], [3, 4, 5, 9]], [0, 3, 4])
    """
    trie = TrieMerge(base, rows, weights, WHOLE).advance(WHOLE)
    assert trie is not None
    return trie


@kernel(makes_arrays=True)
def _find(base, rows, level, first, last, n, groups):
    """:func:`~lftj.storage.branches.find_groups`, for Python code to call."""
    return find_groups(base, rows, level, first, last, n, groups)


@kernel(makes_arrays=True)
def _settle(base, weights, level, first, last, groups):
    """Whether the groups [first, last) of a level stay; how many more of them there are than before.

    base: memory of a trie; weights: int64 (m,), 1 or -1; groups: M_* fields, those of the level below
    settled.
    """
    is_deepest = level + 1 == groups.shape[1] - 1
    places, grows = groups[G_PLACE, level + 1], groups[M_GROWS, level + 1]
    more = np.int64(0)
    for group in range(first, last):
        held = np.int64(places[group] >= 0)
        if is_deepest:  # a group is one tuple
            below = weights[group]
        else:
            below = grows[group]
            if held:
                children = child_offsets(base, level)
                below += children[places[group] + 1] - children[places[group]]
        stays = np.int64(below > 0)
        groups[M_STAYS, level + 1, group] = stays
        groups[M_GROWS, level, groups[G_OF_ROW, level, groups[G_FIRST, level + 1, group]]] += stays - held
        more += stays - held
    return more


@part
def _copy(old, position, length, grown, are_keys, low, high, out, at):
    """Write some items of an array, moved by ``grown``, into ``out`` from ``at`` on.

    Returns ``low`` and ``high``, which of keys, while they are at hand, become the least and the largest one.
    """
    first, shift = np.uint64(position), np.uint64(at)
    if are_keys:
        for i in range(np.uint64(length)):
            key = old[first + i]
            out[shift + i] = key
            low, high = min(low, key), max(high, key)
    else:
        for i in range(np.uint64(length)):
            out[shift + i] = old[first + i] + grown
    return low, high


@kernel(makes_arrays=True)
def _merge(base, rows, level, are_offsets, groups, cursor, most, out):
    """Write at most ``most`` items more of a level's keys or child offsets; whether these are all.

    base: memory; rows: int64 (levels, m); groups: M_* fields, settled; cursor: C_* fields, written; out:
    int64, as long as the keys or offsets will be.
    """
    old = child_offsets(base, level) if are_offsets else level_keys(base, level)
    ahead, places = groups[G_AHEAD, level + 1], groups[G_PLACE, level + 1]
    stays, grows = groups[M_STAYS, level + 1], groups[M_GROWS, level + 1]
    n, group, position, at = cursor[C_GROUPS], cursor[C_GROUP], cursor[C_POSITION], cursor[C_AT]
    grown, low, high = cursor[C_GROWN], cursor[C_LOW], cursor[C_HIGH]
    began = at
    left = most
    while left > 0:
        stop = ahead[group] if group < n else len(old)
        length = min(stop - position, left)
        low, high = _copy(old, position, length, grown, not are_offsets, low, high, out, at)
        position, at, left = position + length, at + length, left - length
        if position < stop or group == n or left == 0:
            break
        if stays[group]:
            out[at] = old[stop] + grown if are_offsets else rows[level, groups[G_FIRST, level + 1, group]]
            if not are_offsets:
                low, high = min(low, out[at]), max(high, out[at])
            at += 1
        position += places[group] >= 0
        if are_offsets:
            grown += grows[group]
        group += 1
        left -= 1
    if are_offsets:
        for i in range(np.uint64(max(began, 1)), np.uint64(at)):
            high = max(high, out[i] - out[i - np.uint64(1)])
    cursor[C_GROUP], cursor[C_POSITION], cursor[C_AT], cursor[C_GROWN] = group, position, at, grown
    cursor[C_LOW], cursor[C_HIGH] = low, high
    return group == n and position == len(old)


@kernel(makes_arrays=True)
def _move_ranks(base, rows, groups, cursor, last, ranks):
    """Write items of a rank table up to ``last`` by the base's, where both have the same first key.

    base: memory, with a rank table; rows, groups: as of :func:`_merge`; cursor: C_* fields, written; ranks:
    int32, written.
    """
    index = index_at(base.ctypes.data)
    old, n_old = view32(index.ranks, index.spread + 1), index.spread + 1
    places, stays, firsts = groups[G_PLACE, 1], groups[M_STAYS, 1], groups[G_FIRST, 1]
    n, group, at, grown = cursor[C_GROUPS], cursor[C_GROUP], cursor[C_AT], cursor[C_GROWN]
    while at < last:
        while group < n and stays[group] == np.int64(places[group] >= 0):
            group += 1
        stop = last
        if group < n:
            stop = min(last, rows[0, firsts[group]] - index.first_key + 1)
        known = max(at, min(stop, n_old))
        for item in range(np.uint64(at), np.uint64(known)):
            ranks[item] = old[item] + np.int32(grown)
        ranks[known:stop] = old[n_old - 1] + np.int32(grown)
        at = stop
        if at < last:  # one key more or less from here on
            grown += 1 if stays[group] else -1
            group += 1
    cursor[C_GROUP], cursor[C_AT], cursor[C_GROWN] = group, at, grown


@kernel
def _rank(keys, first, last, ranks):
    """Write the items [first, last) of the rank table of some keys (invariant 3 of :mod:`lftj.storage.trie`).

    keys: int64, increasing; ranks: int32.
    """
    place = lower_bound(keys, np.int64(0), np.int64(len(keys)), keys[0] + max(first - 1, 0))
    if place < len(keys) and keys[place] - keys[0] < first:
        place += 1
    rank = np.int32(place)
    ranks[first:last] = 0
    while place < len(keys) and keys[place] - keys[0] + 1 < last:
        ranks[keys[place] - keys[0] + 1] = 1  # one more from here on
        place += 1
    for item in range(first, last):
        rank += ranks[item]
        ranks[item] = rank
