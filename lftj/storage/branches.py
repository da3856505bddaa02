"""The branches of a base trie that changed tuples pass, level by level.

The distinct prefixes of sorted tuples are *groups*, numbered per level in the order
of the tuples.  A group stands in the base, or ahead of what comes after it there.
What is known of them is one array, int64 (fields, levels + 1, at least 1 and as many
as tuples): the G_* fields of the root, which is the one group of row 0, and of the
groups of level l in row l + 1.

Invariants

1. Groups and where they stand ascend together: their order is that of the base.
2. A group that the base has not stands ahead of the place where it would be; so
   do the groups below it, ahead of the children of what comes after it.

Cost: per group a bisection of the keys below its parent (:mod:`lftj.storage.seek_many`).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.storage.seek_many import BLOCK, halve, seek_root
from lftj.storage.version_memory import child_offsets, level_keys

G_OF_ROW = 0  # by tuple: its group
G_FIRST = 1  # by group: its first tuple
G_PLACE = 2  # its position in the base, -1 where the base has none
G_AHEAD = 3  # the position that it has or is ahead of
GROUP_FIELDS = 4


@part(makes_arrays=True)
def find_groups(base, rows, level, first, last, n, groups):
    """Number the groups of a level that begin in [first, last) of the tuples; returns how many there are now.

    base: its memory; rows: int64 (levels, m), sorted; n: groups of the level before ``first``; groups: G_*
    fields, those of the level above known, those of the level written; of the root they are 0.
    """
    parents, places, before = groups[G_OF_ROW, level], groups[G_PLACE, level], groups[G_AHEAD, level]
    of_row, firsts = groups[G_OF_ROW, level + 1], groups[G_FIRST, level + 1]
    keys, children = level_keys(base, level), child_offsets(base, level - 1)
    found, ahead = groups[G_PLACE, level + 1], groups[G_AHEAD, level + 1]
    room = min(last - first, BLOCK)
    wanted, starts, spans = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    row = first
    while row < last:
        known = n  # groups of the blocks before
        while row < last and n - known < room:
            key, parent = rows[level, row], parents[row]
            if row == 0 or parent != parents[row - 1] or key != rows[level, row - 1]:
                firsts[n], found[n], ahead[n] = row, -1, children[before[parent]]
                span = children[places[parent] + 1] - ahead[n] if places[parent] >= 0 else 0
                wanted[n - known], spans[n - known] = key, span
                starts[n - known] = ahead[n] if span > 0 else 0
                n += 1
            of_row[row] = n - 1
            row += 1
        if level == 0 and len(keys) > 0:
            seek_root(base.ctypes.data, wanted[: n - known], starts, spans)
        else:
            halve(keys, wanted[: n - known], starts, spans)
        for group in range(known, n):
            place, key = starts[group - known], wanted[group - known]
            if spans[group - known] > 0:
                ahead[group] = place + (keys[place] < key)
                if keys[place] == key:
                    found[group] = place
            elif level == 0:
                ahead[group] = len(keys)
    return n


@part(makes_arrays=True)
def groups_above(groups, level, n):
    """The group one level up of each of a level's ``n`` groups."""
    found = np.empty(n, np.int64)
    for group in range(n):
        found[group] = groups[G_OF_ROW, level, groups[G_FIRST, level + 1, group]]
    return found
