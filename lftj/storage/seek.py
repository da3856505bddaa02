"""Seeks: the least position in a sorted range whose key is at least k.

``gallop`` is the leapfrog seek of LFTJ section 3.1 (Veldhuizen): it costs
O(log of the distance moved), so a whole pass over a range of n keys in m seeks
costs O(m log(n / m)), which is what the join's worst-case bound needs.  Where keys are
dense, ``ranked`` is one load (a rank table: invariant 3 of :mod:`lftj.storage.trie`).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view32

MERGE_RATIO = 12
"""Two ranges are merged, and not galloped through, when the longer has at most so many times the keys of the
shorter."""


@part
def gallop(keys, start, end, key):
    """Least p in [start, end] with p == end or keys[p] >= key.

    keys: int64, increasing in [start, end).
    """
    if start >= end or keys[start] >= key:
        return start
    below = start  # keys[below] < key
    step = 1
    while below + step < end and keys[below + step] < key:
        below += step
        step <<= 1
    above = min(below + step, end)  # above == end or keys[above] >= key
    below += 1
    while below < above:
        middle = (below + above) >> 1
        if keys[middle] < key:
            below = middle + 1
        else:
            above = middle
    return below


@part
def ranked(ranks, base, spread, start, end, key):
    """Least p in [start, end] with p == end or keys[p] >= key, where the keys have a rank table.

    ranks: address of the table, int32 (spread + 1,), which begins with the rank of the least key, ``base``.
    """
    if key <= base:
        return start
    if (base < 0 and key > KEY_MAX + base) or key - base > spread:  # key - base may exceed int64
        return end
    return max(start, min(end, np.int64(view32(ranks, spread + 1)[np.uint64(key - base)])))


@part
def lower_bound(keys, start, end, key):
    """Least p in [start, end] with p == end or keys[p] >= key."""
    while start < end:
        middle = (start + end) >> 1
        if keys[middle] < key:
            start = middle + 1
        else:
            end = middle
    return start


@part
def from_end(keys, start, end, key):
    """:func:`lower_bound` where a key behind all others is likely: one load then."""
    if start < end and keys[end - 1] < key:
        return end
    return lower_bound(keys, start, end, key)


@part
def upper_bound(keys, start, end, key):
    """Least p in [start, end] with p == end or keys[p] > key."""
    while start < end:
        middle = (start + end) >> 1
        if keys[middle] <= key:
            start = middle + 1
        else:
            end = middle
    return start
