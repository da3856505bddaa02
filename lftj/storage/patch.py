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
lists, and a bit per key of each level but the last.  The region machine reads versions
with runs as they are (docs/design/engine.md section 2); over a patched base the blocks and stages
of the base machine serve them too (``tests/storage/test_patch.py``; figures in ``docs/performance.md``).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part
from lftj.memory import address, view
from lftj.storage.branches import GROUP_FIELDS, child_offsets, find_groups, groups_above, level_keys
from lftj.storage.seek import lower_bound
from lftj.storage.trie import Trie, rank_table

# -- a level's row of the patch's memory -------------------------------------------
PA_KEYS = 0  # address of the listed keys of all its nodes
PA_STARTS = 1  # address of the nodes' starts among them, one more than nodes
PA_LINKS = 2  # address of a link per listed key
PA_BITS = 3  # address of a bit per key of the base level
PA_AT = 4  # address of the positions of the changed branches, and how many
PA_CHANGED = 5
PA_CHILD = 6  # address of the table's children
PA_COUNTS = 7  # address of the table's counts, PA_LEVELS per row
PA_LEVELS = 8
PATCH_FIELDS = 9

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

    def keys_at(self, level: int) -> tuple[int, int]:
        """Address and number of the listed keys of a level."""
        return int(self.memory[PATCH_FIELDS * level + PA_KEYS]), int(self._sizes[level, S_KEYS])

    @cached_property
    def root_ranks(self) -> np.ndarray | None:
        """The rank table of a root that is listed anew, where a base would have one."""
        return rank_table(self.levels[0].keys, self.n_tuples)

    @property
    def root_low(self) -> int:
        """The least key of a root that is listed anew."""
        return int(self._sizes[0, S_LOW])

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


@kernel(makes_arrays=True)
def _patch(base, rows, weights, list_root):
    """The arrays of a patch, one behind the other; a PA_* row per level; a S_* row per level; moved roots.

    base: T_* memory of a trie; rows: int64 (levels, m), sorted; weights: int64 (m,), 1 or -1; list_root:
    bool.  Moved roots: int64, the keys of level 0 that came or went, ascending.
    """
    levels, m = rows.shape
    sizes = np.zeros((levels, SIZE_FIELDS), np.int64)
    groups = np.zeros((GROUP_FIELDS, levels + 1, max(m, 1)), np.int64)
    of_rows, all_firsts, all_places, all_ahead = groups[0], groups[1], groups[2], groups[3]  # G_* fields
    all_present = np.ones((levels + 1, max(m, 1)), np.bool_)
    changes = np.zeros((levels + 1, m), np.int64)
    tables = np.zeros((levels + 1, m), np.int64)
    all_nodes = np.full((levels + 2, max(m, 1)), -1, np.int64)
    numbers = np.ones(levels + 1, np.int64)  # of groups
    for level in range(levels):
        keys = level_keys(base, level)
        children = child_offsets(base, level - 1)
        n = find_groups(base, rows, level, 0, m, 0, groups)
        numbers[level + 1] = n
        of_row, places = of_rows[level + 1], all_places[level + 1, :n]
        left = np.zeros(n, np.int64)
        for row in range(m):
            left[of_row[row]] += weights[row]
        changed = np.int64(0)
        for group in range(n):
            left[group] += _below(base, level, levels - 1, places[group])
            all_present[level + 1, group] = left[group] > 0
            changes[level + 1, group] = np.int64(left[group] > 0) - np.int64(places[group] >= 0)
            sizes[level, S_CAME] += changes[level + 1, group]
            if left[group] > 0 and places[group] >= 0:
                tables[level + 1, group] = changed
                changed += 1
        table_rows = changed
        for group in range(n):
            if left[group] > 0 and places[group] < 0:
                tables[level + 1, group] = table_rows
                table_rows += 1
        parents = groups_above(groups, level, n)
        if level == 0 and not list_root:
            all_present[0, 0] = False  # the root: as if it were gone, it is not listed
        nodes, n_nodes, size = _nodes(
            parents,
            all_places[level, : numbers[level]],
            all_present[level],
            changes[level + 1],
            children,
        )
        for number in range(len(nodes)):
            all_nodes[level, number] = nodes[number]
        sizes[level, S_KEYS], sizes[level, S_NODES] = size, n_nodes
        sizes[level, S_WORDS] = (len(keys) + 63) // 64 if level + 1 < levels else 0
        sizes[level, S_CHANGED], sizes[level, S_ROWS] = changed, table_rows
    total = np.int64(0)
    for level in range(levels):
        total += 2 * sizes[level, S_KEYS] + sizes[level, S_NODES] + 1 + sizes[level, S_WORDS]
        total += sizes[level, S_CHANGED] + sizes[level, S_ROWS] * (1 + levels)
    flat = np.zeros(total, np.int64)
    memory = np.zeros(levels * PATCH_FIELDS, np.int64)
    start = np.int64(0)
    for level in range(levels):
        keys = level_keys(base, level)
        children = child_offsets(base, level - 1)
        n, n_keys, n_rows = numbers[level + 1], sizes[level, S_KEYS], sizes[level, S_ROWS]
        places = all_places[level + 1, :n]
        listed = flat[start : start + n_keys]
        row = level * PATCH_FIELDS
        memory[row + PA_KEYS] = flat.ctypes.data + 8 * start
        start += n_keys
        starts = flat[start : start + sizes[level, S_NODES] + 1]
        memory[row + PA_STARTS] = flat.ctypes.data + 8 * start
        start += sizes[level, S_NODES] + 1
        links = flat[start : start + n_keys]
        memory[row + PA_LINKS] = flat.ctypes.data + 8 * start
        start += n_keys
        firsts = all_firsts[level + 1, :n]
        _list(
            all_nodes[level],
            groups_above(groups, level, n),
            all_places[level],
            rows[level],
            firsts,
            places,
            all_ahead[level + 1],
            all_present[level + 1],
            tables[level + 1],
            keys,
            children,
            (listed, starts, links),
        )
        bits = flat[start : start + sizes[level, S_WORDS]]
        memory[row + PA_BITS] = flat.ctypes.data + 8 * start
        start += sizes[level, S_WORDS]
        at = flat[start : start + sizes[level, S_CHANGED]]
        memory[row + PA_AT], memory[row + PA_CHANGED] = flat.ctypes.data + 8 * start, len(at)
        start += len(at)
        child = flat[start : start + n_rows]
        memory[row + PA_CHILD] = flat.ctypes.data + 8 * start
        start += n_rows
        counts = flat[start : start + n_rows * levels]
        memory[row + PA_COUNTS], memory[row + PA_LEVELS] = flat.ctypes.data + 8 * start, levels
        start += n_rows * levels
        for group in range(n):
            if not all_present[level + 1, group]:
                continue
            number = tables[level + 1, group]
            child[number] = all_nodes[level + 1, group]
            if places[group] >= 0:
                at[number] = places[group]
                if level + 1 < levels:
                    bits[places[group] >> 6] |= np.int64(1) << (places[group] & 63)
            for deeper in range(level + 1, levels):
                counts[number * levels + deeper] = _below(base, level, deeper, places[group])
        for deeper in range(level + 1, levels):
            for group in range(numbers[deeper + 1]):
                own = of_rows[level + 1, all_firsts[deeper + 1, group]]
                if all_present[level + 1, own]:
                    counts[tables[level + 1, own] * levels + deeper] += changes[deeper + 1, group]
        if n_keys > 0:
            sizes[level, S_LOW], sizes[level, S_HIGH] = listed[0], listed[0]
            for place in range(n_keys):
                sizes[level, S_LOW] = min(sizes[level, S_LOW], listed[place])
                sizes[level, S_HIGH] = max(sizes[level, S_HIGH], listed[place])
            for node in range(sizes[level, S_NODES]):
                sizes[level, S_FANOUT] = max(sizes[level, S_FANOUT], starts[node + 1] - starts[node])
    moved = np.empty(numbers[1], np.int64)
    n_moved = 0
    for group in range(numbers[1]):
        if changes[1, group] != 0:
            moved[n_moved] = rows[0, all_firsts[1, group]]
            n_moved += 1
    return flat, memory, sizes, moved[:n_moved].copy()


@part
def table_row(level, part, position):
    """The table's row of a branch, -1 where nothing below it changed, and its position in the base.

    level: PA_* row; part: 1 where ``position`` is among the listed keys, 0 in the base.
    """
    if part:
        link = view(level[PA_LINKS], position + 1)[position]
        if link < 0:
            return -1 - link, np.int64(-1)
        position = link
    word = view(level[PA_BITS], (position >> 6) + 1)[position >> 6]
    if (word >> (position & 63)) & 1:
        changed = level[PA_CHANGED]
        return lower_bound(view(level[PA_AT], changed), np.int64(0), changed, position), position
    return np.int64(-1), position
