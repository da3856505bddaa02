"""A base trie with a change merged in: a new trie, made from the arrays of the old one.

Level by level, the branches that came and went cut the old arrays into stretches.  Keys
of a stretch are copied as they are; child offsets move by what came and went below the
stretches before.  Nothing is sorted or compared but the changed tuples' own branches::

    base  (1,3) (1,5) (4,2)       keys  1 4    children 0 2 3      keys  3 5 2
    +(1,4) +(3,9) -(4,2)                1 3             0 3 4            3 4 5 9

Invariants

1. What :func:`merged` gives is, bit for bit, ``Trie.from_sorted`` of the tuples.
2. The base stays as it is; the new trie shares no array with it.

Cost: O(m L log n) for m changed tuples and L levels to find the branches
(:mod:`lftj.storage.branches`), and one copy of the base's arrays.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel
from lftj.storage.branches import child_offsets, groups, groups_above, level_keys
from lftj.storage.trie import Trie

# -- an edit: what happens at one place of a level --------------------------------------
ED_AHEAD = 0  # the position in the base that the branch has or is ahead of
ED_HELD = 1  # 1 where the base has it, and 1 where it is there afterwards
ED_STAYS = 2
ED_KEY = 3
ED_GROWS = 4  # branches one level down that came below it, less those that went
EDIT_FIELDS = 5


def merged(base: Trie, rows: np.ndarray, weights: np.ndarray) -> Trie:
    """The trie of the base's tuples after a change.

    ``rows``: int64 (levels, m), sorted distinct tuples; ``weights``: int64 (m,), +1 where the base lacks
    the tuple, -1 where it has it.

    >>> base = Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])])
    >>> trie = merged(base, np.array([[1, 3, 4], [4, 9, 2]]), np.array([1, 1, -1]))
    >>> [level.tolist() for level in trie.keys], trie.children[0].tolist()
    ([[1, 3], [3, 4, 5, 9]], [0, 3, 4])
    """
    edits, numbers, grown = _edits(base.memory, rows, weights)
    lengths = [len(keys) + more for keys, more in zip(base.keys, grown.tolist(), strict=True)]
    keys = [np.empty(length, np.int64) for length in lengths]
    children = [np.empty(length + 1, np.int64) for length in lengths[:-1]]
    for level, number in enumerate(numbers.tolist()):
        own = edits[level, :, :number]
        _merge_keys(base.memory, level, own, keys[level])
        if level < len(children):
            _merge_children(base.memory, level, own, children[level])
    return Trie.of_levels(keys, children)


@kernel
def _edits(base, rows, weights):
    """The ED_* fields of every group, (levels, EDIT_FIELDS, m); per level, how many groups and new keys.

    base: T_* memory of a trie; rows: int64 (levels, m), sorted; weights: int64 (m,), 1 or -1.
    """
    levels, m = rows.shape
    edits = np.empty((levels, EDIT_FIELDS, m), np.int64)
    above = np.zeros((levels, m), np.int64)  # the group one level up of each group
    numbers, grown = np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    of_row = np.zeros(m, np.int64)
    places = before = np.zeros(1, np.int64)  # of the root
    children = np.array([0, len(level_keys(base, 0))])
    for level in range(levels):
        keys = level_keys(base, level)
        own_rows, firsts, places, before = groups(rows, level, of_row, places, before, keys, children)
        n = len(firsts)
        numbers[level] = n
        above[level, :n] = groups_above(of_row, firsts)
        edits[level, ED_AHEAD, :n] = before
        for group in range(n):
            edits[level, ED_HELD, group] = places[group] >= 0
            edits[level, ED_KEY, group] = rows[level, firsts[group]]
            edits[level, ED_GROWS, group] = 0
        of_row = own_rows
        if level + 1 < levels:
            children = child_offsets(base, level)
    for level in range(levels - 1, -1, -1):
        for group in range(numbers[level]):
            held = edits[level, ED_HELD, group]
            if level + 1 == levels:  # a group is one tuple
                stays = np.int64(weights[group] > 0)
            else:
                below = edits[level, ED_GROWS, group]
                if held:
                    children, place = child_offsets(base, level), edits[level, ED_AHEAD, group]
                    below += children[place + 1] - children[place]
                stays = np.int64(below > 0)
            edits[level, ED_STAYS, group] = stays
            grown[level] += stays - held
            if level > 0:
                edits[level - 1, ED_GROWS, above[level, group]] += stays - held
    return edits, numbers, grown


@kernel
def _merge_keys(base, level, edits, out):
    """Write the keys of a level.  base: T_* memory; edits: ED_* fields (EDIT_FIELDS, n); out: int64."""
    keys = level_keys(base, level)
    position, at = np.int64(0), np.int64(0)  # of the base's keys and of the new ones: done before
    for edit in range(edits.shape[1]):
        stop = edits[ED_AHEAD, edit]
        while position < stop:
            out[at] = keys[position]
            position += 1
            at += 1
        if edits[ED_STAYS, edit]:
            out[at] = edits[ED_KEY, edit]
            at += 1
        position += edits[ED_HELD, edit]
    while position < len(keys):
        out[at] = keys[position]
        position += 1
        at += 1


@kernel
def _merge_children(base, level, edits, out):
    """Write the child offsets of a level that is not the last.  Arguments as for :func:`_merge_keys`."""
    children = child_offsets(base, level)
    position, at = np.int64(0), np.int64(0)
    grown = np.int64(0)  # keys of the next level below what is done: more than in the base
    for edit in range(edits.shape[1]):
        stop = edits[ED_AHEAD, edit]
        while position < stop:
            out[at] = children[position] + grown
            position += 1
            at += 1
        if edits[ED_STAYS, edit]:
            out[at] = children[stop] + grown
            at += 1
        position += edits[ED_HELD, edit]
        grown += edits[ED_GROWS, edit]
    while position < len(children):
        out[at] = children[position] + grown
        position += 1
        at += 1
