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

Cost: per group a bisection of the keys below its parent, where it is the first of
them; where not, O(log of the distance) from the one before.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.storage.seek import gallop, lower_bound
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
    keys, children = level_keys(base, level), child_offsets(base, level - 1)
    parents, places, before = groups[G_OF_ROW, level], groups[G_PLACE, level], groups[G_AHEAD, level]
    of_row, firsts = groups[G_OF_ROW, level + 1], groups[G_FIRST, level + 1]
    found, ahead = groups[G_PLACE, level + 1], groups[G_AHEAD, level + 1]
    for row in range(first, last):
        key, parent = rows[level, row], parents[row]
        is_first = row == 0 or parent != parents[row - 1]
        if not is_first and key == rows[level, row - 1]:
            of_row[row] = n - 1
            continue
        found[n], ahead[n] = -1, children[before[parent]]
        if places[parent] >= 0:
            end = children[places[parent] + 1]
            if is_first:
                place = lower_bound(keys, ahead[n], end, key)
            else:
                place = gallop(keys, ahead[n - 1], end, key)
            ahead[n] = place
            if place < end and keys[place] == key:
                found[n] = place
        of_row[row] = n
        firsts[n] = row
        n += 1
    return n


@part(makes_arrays=True)
def groups_above(groups, level, n):
    """The group one level up of each of a level's ``n`` groups."""
    found = np.empty(n, np.int64)
    for group in range(n):
        found[group] = groups[G_OF_ROW, level, groups[G_FIRST, level + 1, group]]
    return found
