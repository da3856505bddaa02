"""Many keys sought at once in the arrays of a base trie.

At the first level a key is one load of the rank table, where there is one.  Below it each key has a node of
its own: all nodes are halved in step and without branches, so that no key waits for what another one loads,
nor for a wrong guess.  Of a thousand keys in a base that the nearest caches don't hold that takes 0.6 as
long as one bisection after the other.

Cost: O(log n) for each key at a root without rank table, O(log of the distance) where keys ascend; below it
per key the logarithm of the widest node.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.storage.seek import gallop, lower_bound, ranked
from lftj.storage.version_memory import INDEX, index_at, level_at

BLOCK = 1 << 10
"""So many keys are best sought together: what is known of them stays in the nearest cache."""


@part
def seek_root(where, wanted, starts, spans):
    """Seek keys at a base's first level.

    where: address of the Index; wanted: int64 (n,); starts, spans: int64 with room for n, written: where a
    key stands or would, and 1, or 0 where that is behind the last key.
    """
    index, its = index_at(where), level_at(where + INDEX)
    end = its.length
    keys = view(its.keys, end)
    for row in range(len(wanted)):
        key = wanted[row]
        if index.ranks != 0:
            place = ranked(index.ranks, index.first_key, index.spread, np.int64(0), end, key)
        elif row > 0 and key >= wanted[row - 1]:
            place = gallop(keys, starts[row - 1], end, key)
        else:
            place = lower_bound(keys, np.int64(0), end, key)
        starts[row], spans[row] = place, np.int64(place < end)


@part
def halve(keys, wanted, starts, spans):
    """Narrow each of some ranges of keys to one: the last that is at most the wanted one, else the first.

    keys: int64, increasing in each range; wanted: int64 (n,); starts, spans: int64 with room for n, where
    ranges begin and how many keys they have, written.  An empty one begins at 0.
    """
    widest = np.int64(0)
    for row in range(len(wanted)):
        widest = max(widest, spans[row])
    while widest > 1:
        for row in range(np.uint64(len(wanted))):
            start, half = starts[row], spans[row] >> 1
            starts[row] = start + half * np.int64(keys[np.uint64(start + half)] <= wanted[row])
            spans[row] -= half
        widest -= widest >> 1
