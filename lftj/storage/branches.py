"""The branches of a base trie that changed tuples pass, level by level.

The distinct prefixes of sorted tuples are *groups*, numbered per level in the order
of the tuples.  A group stands in the base, or ahead of what comes after it there.

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
from lftj.memory import view
from lftj.storage.seek import gallop, lower_bound
from lftj.storage.trie import T_CHILDREN, T_HEADER, T_KEYS, T_LENGTH, T_LEVEL_FIELDS


@part
def level_keys(base, level):
    """The keys of a level of a base trie, by its T_* memory."""
    fields = T_HEADER + level * T_LEVEL_FIELDS
    return view(base[fields + T_KEYS], base[fields + T_LENGTH])


@part
def child_offsets(base, level):
    """The offsets of the children of a level that is not the last, by T_* memory."""
    fields = T_HEADER + level * T_LEVEL_FIELDS
    return view(base[fields + T_CHILDREN], base[fields + T_LENGTH] + 1)


@part
def groups(rows, level, parents, places, before, keys, children):
    """The groups of one level: the distinct prefixes of ``level + 1`` keys.

    rows: int64 (levels, m), sorted.  parents: int64 (m,), the group of each row one level up; places, before:
    int64, of each such group its position in the base, -1 where the base has none, and the position that it
    has or is ahead of.  keys, children: int64, of the base: the level's keys, and the offsets of them by
    position one level up.  Returns the group of each row; each group's first row; its position in the base
    or -1; and the position that it has or is ahead of.
    """
    m = rows.shape[1]
    of_row = np.empty(m, np.int64)
    firsts = np.empty(m, np.int64)
    found = np.empty(m, np.int64)
    ahead = np.empty(m, np.int64)
    n = np.int64(0)
    for row in range(m):
        key, parent = rows[level, row], parents[row]
        is_first = row == 0 or parent != parents[row - 1]
        if not is_first and key == rows[level, row - 1]:
            of_row[row] = n - 1
            continue
        found[n], ahead[n] = -1, children[before[parent]]
        if places[parent] >= 0:
            end = children[places[parent] + 1]
            place = (
                lower_bound(keys, ahead[n], end, key) if is_first else gallop(keys, ahead[n - 1], end, key)
            )
            ahead[n] = place
            if place < end and keys[place] == key:
                found[n] = place
        of_row[row] = n
        firsts[n] = row
        n += 1
    return of_row, firsts[:n].copy(), found[:n].copy(), ahead[:n].copy()


@part
def groups_above(of_row, firsts):
    """The group one level up of each group: that of its first row.  of_row: of each row, one level up."""
    found = np.empty(len(firsts), np.int64)
    for group in range(len(firsts)):
        found[group] = of_row[firsts[group]]
    return found
