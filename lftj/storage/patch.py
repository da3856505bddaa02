"""A patch: what the runs of an index version change of its base trie, laid out for a search.

A search over a base trie walks nodes: ranges of one level's key array.  Runs of few
tuples change few nodes.  A patch lists the keys of each node that gained or lost one
anew, and says which branches of the base lead to such a node.  So a search over a
version with runs is one over its base, with a turn where a patched branch is entered:
nothing is merged, and below all other branches nothing is different.

Per level ``l`` a patch has

* *nodes*: lists of keys, one behind the other; node j is ``[starts[j], starts[j + 1])``.
  The root, if it is listed anew, is node 0 of level 0.  It is large, so it is left out
  (:attr:`Patch.rooted` has it) where only keys are sought there that neither came nor went;
* per listed key a *link*: its position in the base level, or ``-1 - r`` where row r of
  the table is meant: a key that the base has not;
* a *table*: a row per branch of the base that has changes below it (they come first,
  sorted by position; ``bits`` has a bit set for each), then one per branch that is new.
  ``child[r]``: the node of level l + 1 that the branch leads to, -1 where its keys are
  those that the base has; ``counts[r, t]``: branches of level t below it.

Invariants (see :meth:`Patch.check_invariants`)

1. What is walked from the root of a patched base, by a rooted patch, is exactly the version's branches.
2. A node that has the keys that the base has is not listed; nor is the root of a patch that is not rooted.
3. A patch never changes; it goes with its version.

Cost: O(m L log n) for m tuples in runs and L levels, the keys of the nodes that it
lists, and a bit per key of each level but the last.  Searches that record read versions
with runs as they are (docs/design/engine.md section 2); over a patched base blocks and stages
serve them too (``tests/storage/test_patch.py``; figures in ``docs/performance.md``).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part
from indices.records import Record, record_at
from lftj.memory import address, view
from lftj.storage.branches import (
    G_AHEAD,
    G_FIRST,
    G_OF_ROW,
    G_PLACE,
    GROUP_FIELDS,
    find_groups,
    groups_above,
)
from lftj.storage.seek import lower_bound
from lftj.storage.trie import Trie, rank_table
from lftj.storage.version_memory import Index, Level, child_offsets, level_keys


class PatchPlaces(Record):
    """Of one level of a patch, for kernels: the addresses of its arrays (see the module header)."""

    keys: int  # the listed keys of all its nodes
    starts: int  # the nodes' starts among them, one more than nodes
    links: int  # a link per listed key
    bits: int  # a bit per key of the base level
    at: int  # the positions of the changed branches, and how many
    changed: int
    child: int  # the table's children
    counts: int  # the table's counts, `levels` per row
    levels: int


patch_places_at = record_at(PatchPlaces)
PATCH_PLACES = PatchPlaces.BYTES

# -- what the builder says of a level: sizes, and figures for planning ---------------
S_KEYS = 0  # listed keys, nodes, words of bits, changed branches, rows of the table
S_NODES = 1
S_WORDS = 2
S_CHANGED = 3
S_ROWS = 4
S_CAME = 5  # branches that came less those that went
S_FANOUT = 6  # most keys of a listed node
S_LOW = 7  # least and largest listed key
S_HIGH = 8
SIZE_FIELDS = 9


class PatchLevel(NamedTuple):
    """One level of a patch; see the module header."""

    keys: np.ndarray
    starts: np.ndarray
    links: np.ndarray
    bits: np.ndarray
    at: np.ndarray
    child: np.ndarray
    counts: np.ndarray


class Patch:
    """The patch of a base trie by changes.

    >>> base = Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])])
    >>> patch = Patch(base, np.array([[1, 4], [4, 9]]), np.array([1, 1]))
    >>> patch.levels[1].keys.tolist(), patch.levels[1].starts.tolist(), patch.levels[0].keys.tolist()
    ([3, 4, 5, 2, 9], [0, 3, 5], [])
    """

    def __init__(self, base: Trie, rows: np.ndarray, weights: np.ndarray, list_root: bool = True) -> None:
        """``rows``: int64 (levels, m), sorted distinct tuples, m > 0.

        ``weights``: int64 (m,), +1 where the base lacks the tuple, -1 where it has it.  ``list_root``:
        whether the patch is rooted.
        """
        self.base = base
        self._change = rows, weights
        self._flat, self.memory, self._sizes, self.moved_roots = _patch(base.memory, rows, weights, list_root)
        sizes = self._sizes.tolist()
        self.n_tuples = base.n_tuples + sizes[-1][S_CAME]
        self.came = tuple(size[S_CAME] for size in sizes)
        self.relists_root = sizes[0][S_NODES] > 0
        self.is_rooted = list_root or not len(self.moved_roots)
        self.max_fanouts = tuple(
            max(most, size[S_FANOUT]) for most, size in zip(base.max_fanouts, sizes, strict=True)
        )
        self.key_ranges = tuple(
            _range_with(known, size) for known, size in zip(base.key_ranges, sizes, strict=True)
        )

    @property
    def rooted(self) -> Patch:
        """The patch with the root, if that has other keys than the base's."""
        return self if self.is_rooted else self._with_root

    @cached_property
    def _with_root(self) -> Patch:
        # Not cached as `rooted`: a patch that has itself as an attribute is a circle, and the base's arrays
        # stay until Python's collector comes by, which counts objects and not their bytes.
        return Patch(self.base, *self._change)

    def moves_root(self, key: int) -> bool:
        """Whether a key of the root came or went."""
        place = bisect_left(self.moved_roots, key)
        return place < len(self.moved_roots) and self.moved_roots[place] == key

    @property
    def nbytes(self) -> int:
        return self._flat.nbytes

    @cached_property
    def address(self) -> int:
        """Where the rows of its levels begin."""
        return address(self.memory)

    @cached_property
    def patched_base(self) -> np.ndarray:
        """The patched base as kernels see it: int64 (:mod:`lftj.storage.version_memory`)."""
        memory = self._without_ranks
        if not self.relists_root or self._root_ranks is None:
            return memory
        memory, ranks = memory.copy(), self._root_ranks
        index = Index.view(memory)
        index.ranks, index.first_key, index.spread = address(ranks), self._sizes[0, S_LOW], len(ranks) - 1
        return memory

    @property
    def pinned_base(self) -> np.ndarray:
        """:attr:`patched_base` where single keys of the root are sought: its ranks would not pay."""
        return self._without_ranks if self.relists_root else self.patched_base

    @cached_property
    def _without_ranks(self) -> np.ndarray:
        memory = self.base.memory.copy()
        levels = [
            Level.view(memory, Index.LENGTH + level * Level.LENGTH) for level in range(self.base.n_levels)
        ]
        for number, level in enumerate(levels):
            level.patch = self.address + PATCH_PLACES * number
        if self.relists_root:
            index = Index.view(memory)
            index.in_patch, index.ranks = 1, 0
            levels[0].keys = PatchPlaces.view(self.memory).keys
            levels[0].length = self._sizes[0, S_KEYS]
        return memory

    @cached_property
    def _root_ranks(self) -> np.ndarray | None:
        """The rank table of a root that is listed anew, where a base would have one."""
        return rank_table(self.levels[0].keys, self.n_tuples)

    @property
    def levels(self) -> list[PatchLevel]:
        """All arrays, level by level."""
        found, start = [], 0
        for size in self._sizes.tolist():
            n_levels = len(self._sizes)
            lengths = [size[S_KEYS], size[S_NODES] + 1, size[S_KEYS], size[S_WORDS], size[S_CHANGED]]
            lengths += [size[S_ROWS], size[S_ROWS] * n_levels]
            parts = []
            for length in lengths:
                parts.append(self._flat[start : start + length])
                start += length
            keys, starts, links, bits, at, child, counts = parts
            found.append(PatchLevel(keys, starts, links, bits, at, child, counts.reshape(-1, n_levels)))
        return found

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        for level, own in enumerate(self.levels):
            keys = self.base.keys[level]
            assert len(own.links) == len(own.keys) == own.starts[-1]
            assert (own.at[1:] > own.at[:-1]).all() and len(own.child) == len(own.counts) >= len(own.at)
            from_base = own.links >= 0
            assert (keys[own.links[from_base]] == own.keys[from_base]).all()
            fresh = -1 - own.links[~from_base]
            assert sorted(fresh.tolist()) == list(range(len(own.at), len(own.child)))
            for start, end in zip(own.starts[:-1], own.starts[1:], strict=True):
                listed = own.keys[start:end]
                assert (listed[1:] > listed[:-1]).all(), "a node's keys increase"
            if level + 1 < len(self._sizes):
                bits = (own.bits[:, None] >> np.arange(64) & 1).ravel()
                assert np.flatnonzero(bits).tolist() == own.at.tolist()


def _range_with(known: tuple[int, int], size: list[int]) -> tuple[int, int]:
    """The least and the largest of a level's keys and of listed ones; (0, -1) where there are none."""
    if not size[S_KEYS]:
        return known
    low, high = size[S_LOW], size[S_HIGH]
    return (low, high) if known == (0, -1) else (min(low, known[0]), max(high, known[1]))


@part(makes_arrays=True)
def _nodes(parents, parent_places, parent_present, changes, children):
    """The nodes of one level that gained or lost a key; by group one level up its node or -1.

    parents: int64, by group of the level: its group one level up.  changes: 1 it came, -1 it went.
    parent_places, parent_present: by group one level up.  Returns nodes, how many, and keys of all of them.
    """
    nodes = np.full(len(parent_places), -1, np.int64)
    size = np.int64(0)
    n_nodes = np.int64(0)
    first = 0
    while first < len(parents):
        last = first
        differs = False
        came = np.int64(0)
        while last < len(parents) and parents[last] == parents[first]:
            differs = differs or changes[last] != 0
            came += changes[last]
            last += 1
        parent = parents[first]
        if differs and parent_present[parent]:
            nodes[parent] = n_nodes
            n_nodes += 1
            place = parent_places[parent]
            size += came
            if place >= 0:
                size += children[place + 1] - children[place]
        first = last
    return nodes, n_nodes, size


@part
def _list(nodes, parents, parent_places, row, firsts, places, ahead, present, table, base, children, out):
    """Write the keys, starts and links of one level's nodes.

    row: int64, the tuples' keys at the level.  By group of the level: parents, firsts, places, ahead, present
    and table, its row there.  base, children: of the base level.  out: keys, starts and links, written.
    """
    keys, starts, links = out
    at = np.int64(0)
    starts[0] = 0
    first = 0
    while first < len(parents):
        last = first
        while last < len(parents) and parents[last] == parents[first]:
            last += 1
        parent = parents[first]
        if nodes[parent] >= 0:
            position, end = np.int64(0), np.int64(0)
            if parent_places[parent] >= 0:
                position, end = children[parent_places[parent]], children[parent_places[parent] + 1]
            for group in range(first, last):
                stop = ahead[group] if parent_places[parent] >= 0 else position
                while position < stop:
                    keys[at], links[at] = base[position], position
                    position += 1
                    at += 1
                if places[group] >= 0:
                    position += 1
                if present[group]:
                    keys[at] = row[firsts[group]]
                    links[at] = places[group] if places[group] >= 0 else -1 - table[group]
                    at += 1
            while position < end:
                keys[at], links[at] = base[position], position
                position += 1
                at += 1
            starts[nodes[parent] + 1] = at
        first = last


@part(makes_arrays=True)
def _below(base, level, deeper, place):
    """Branches of a deeper level of the base below a position of a level; 0 for a position of -1."""
    if place < 0:
        return np.int64(0)
    start, end = place, place + 1
    for above in range(level, deeper):
        children = child_offsets(base, above)
        start, end = children[start], children[end]
    return end - start


@part(makes_arrays=True)
def _group_level(base, rows, weights, level, groups, numbers, present, changes, tables, size):
    """Group the tuples by their branches of a level: what came, what went, and its row of the table.

    numbers: of groups, by level from 1 on; present, changes, tables: by level from 1 on and group.  All
    these, groups and the level's sizes are written.
    """
    levels, m = rows.shape
    n = find_groups(base, rows, level, 0, m, 0, groups)
    numbers[level + 1] = n
    of_row, places = groups[G_OF_ROW, level + 1], groups[G_PLACE, level + 1, :n]
    left = np.zeros(n, np.int64)
    for row in range(m):
        left[of_row[row]] += weights[row]
    changed = np.int64(0)
    for group in range(n):
        left[group] += _below(base, level, levels - 1, places[group])
        present[level + 1, group] = left[group] > 0
        changes[level + 1, group] = np.int64(left[group] > 0) - np.int64(places[group] >= 0)
        size[S_CAME] += changes[level + 1, group]
        if left[group] > 0 and places[group] >= 0:
            tables[level + 1, group] = changed
            changed += 1
    table_rows = changed
    for group in range(n):
        if left[group] > 0 and places[group] < 0:
            tables[level + 1, group] = table_rows
            table_rows += 1
    size[S_WORDS] = (len(level_keys(base, level)) + 63) // 64 if level + 1 < levels else 0
    size[S_CHANGED], size[S_ROWS] = changed, table_rows


@part(makes_arrays=True)
def _take_places(sizes):
    """Room for all arrays of a patch: int64, one behind the other, and a PatchPlaces per level."""
    levels = len(sizes)
    memory = np.zeros(levels * PATCH_PLACES // 8, np.int64)
    total = np.int64(0)
    for level in range(levels):
        size = sizes[level]
        total += 2 * size[S_KEYS] + size[S_NODES] + 1 + size[S_WORDS] + size[S_CHANGED]
        total += size[S_ROWS] * (1 + levels)
    flat = np.zeros(total, np.int64)
    start = np.int64(flat.ctypes.data)
    for level in range(levels):
        size = sizes[level]
        places = patch_places_at(memory.ctypes.data + level * PATCH_PLACES)
        places.keys = start
        places.starts = places.keys + 8 * size[S_KEYS]
        places.links = places.starts + 8 * (size[S_NODES] + 1)
        places.bits = places.links + 8 * size[S_KEYS]
        places.at = places.bits + 8 * size[S_WORDS]
        places.changed = size[S_CHANGED]
        places.child = places.at + 8 * size[S_CHANGED]
        places.counts = places.child + 8 * size[S_ROWS]
        places.levels = levels
        start = places.counts + 8 * size[S_ROWS] * levels
    return flat, memory


@part(makes_arrays=True)
def _write_table(base, level, groups, numbers, present, changes, tables, nodes, places, size):
    """Write a level's table, and which branches of the base are in it.  Arguments as of :func:`_group_level`.

    nodes: of the level below, by group.
    """
    levels, n = places.levels, numbers[level + 1]
    child, bits = view(places.child, size[S_ROWS]), view(places.bits, size[S_WORDS])
    at, counts = view(places.at, size[S_CHANGED]), view(places.counts, size[S_ROWS] * levels)
    own = groups[G_PLACE, level + 1]  # places in the base
    for group in range(n):
        if not present[level + 1, group]:
            continue
        number = tables[level + 1, group]
        child[number] = nodes[group]
        if own[group] >= 0:
            at[number] = own[group]
            if level + 1 < levels:
                bits[own[group] >> 6] |= np.int64(1) << (own[group] & 63)
        for deeper in range(level + 1, levels):
            counts[number * levels + deeper] = _below(base, level, deeper, own[group])
    for deeper in range(level + 1, levels):
        for group in range(numbers[deeper + 1]):
            above = groups[G_OF_ROW, level + 1, groups[G_FIRST, deeper + 1, group]]  # of its first tuple
            if present[level + 1, above]:
                counts[tables[level + 1, above] * levels + deeper] += changes[deeper + 1, group]


@part
def _measure(places, size):
    """Write the figures for planning of a level's listed keys."""
    n_keys = size[S_KEYS]
    if n_keys == 0:
        return
    listed, starts = view(places.keys, n_keys), view(places.starts, size[S_NODES] + 1)
    low, high, fanout = listed[0], listed[0], np.int64(0)
    for place in range(n_keys):
        low, high = min(low, listed[place]), max(high, listed[place])
    for node in range(size[S_NODES]):
        fanout = max(fanout, starts[node + 1] - starts[node])
    size[S_LOW], size[S_HIGH], size[S_FANOUT] = low, high, fanout


@part(makes_arrays=True)
def _moved_roots(rows, groups, numbers, changes):
    """The keys of level 0 that came or went, ascending."""
    moved = np.empty(numbers[1], np.int64)
    n_moved = 0
    for group in range(numbers[1]):
        if changes[1, group] != 0:
            moved[n_moved] = rows[0, groups[G_FIRST, 1, group]]
            n_moved += 1
    return moved[:n_moved].copy()


@kernel(makes_arrays=True)
def _patch(base, rows, weights, list_root):
    """The arrays of a patch, one behind the other; a PatchPlaces per level; a S_* row per level; moved roots.

    base: memory of a trie; rows: int64 (levels, m), sorted; weights: int64 (m,), 1 or -1; list_root:
    bool.  Moved roots: int64, the keys of level 0 that came or went, ascending.
    """
    levels, m = rows.shape
    sizes = np.zeros((levels, SIZE_FIELDS), np.int64)
    groups = np.zeros((GROUP_FIELDS, levels + 1, max(m, 1)), np.int64)
    present = np.ones((levels + 1, max(m, 1)), np.bool_)
    changes = np.zeros((levels + 1, m), np.int64)
    tables = np.zeros((levels + 1, m), np.int64)
    nodes = np.full((levels + 2, max(m, 1)), -1, np.int64)
    numbers = np.ones(levels + 1, np.int64)  # of groups
    for level in range(levels):
        size = sizes[level]
        _group_level(base, rows, weights, level, groups, numbers, present, changes, tables, size)
        if level == 0 and not list_root:
            present[0, 0] = False  # the root: as if it were gone, it is not listed
        found, size[S_NODES], size[S_KEYS] = _nodes(
            groups_above(groups, level, numbers[level + 1]),
            groups[G_PLACE, level, : numbers[level]],
            present[level],
            changes[level + 1],
            child_offsets(base, level - 1),
        )
        nodes[level, : len(found)] = found
    flat, memory = _take_places(sizes)
    for level in range(levels):
        size, places = sizes[level], patch_places_at(memory.ctypes.data + level * PATCH_PLACES)
        n, n_keys = numbers[level + 1], size[S_KEYS]
        _list(
            nodes[level],
            groups_above(groups, level, n),
            groups[G_PLACE, level],
            rows[level],
            groups[G_FIRST, level + 1, :n],
            groups[G_PLACE, level + 1, :n],
            groups[G_AHEAD, level + 1],
            present[level + 1],
            tables[level + 1],
            level_keys(base, level),
            child_offsets(base, level - 1),
            (view(places.keys, n_keys), view(places.starts, size[S_NODES] + 1), view(places.links, n_keys)),
        )
        below = nodes[level + 1]
        _write_table(base, level, groups, numbers, present, changes, tables, below, places, size)
        _measure(places, size)
    return flat, memory, sizes, _moved_roots(rows, groups, numbers, changes)


@part
def table_row(places, part, position):
    """The table's row of a branch, -1 where nothing below it changed, and its position in the base.

    places: the level's PatchPlaces; part: 1 where ``position`` is among the listed keys, 0 in the base.
    """
    if part:
        link = view(places.links, position + 1)[position]
        if link < 0:
            return -1 - link, np.int64(-1)
        position = link
    word = view(places.bits, (position >> 6) + 1)[position >> 6]
    if (word >> (position & 63)) & 1:
        changed = places.changed
        return lower_bound(view(places.at, changed), np.int64(0), changed, position), position
    return np.int64(-1), position
