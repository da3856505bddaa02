"""Seeks: the least position in a sorted range whose key is at least k.

``gallop`` is the leapfrog seek of LFTJ section 3.1 (Veldhuizen): it costs
O(log of the distance moved), so a whole pass over a range of n keys in m seeks
costs O(m log(n / m)), which is what the join's worst-case bound needs.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.layout import (
    I_BASE,
    I_CHILDREN,
    I_CURSOR,
    I_LENGTH,
    I_PARENT,
    I_RANKS,
    I_SPREAD,
    P_BOUND,
)
from lftj.memory import view, view32


@part(_nrt=False)
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


@part(_nrt=False)
def lower_bound(keys, start, end, key):
    """Least p in [start, end] with p == end or keys[p] >= key."""
    while start < end:
        middle = (start + end) >> 1
        if keys[middle] < key:
            start = middle + 1
        else:
            end = middle
    return start


@part(_nrt=False)
def upper_bound(keys, start, end, key):
    """Least p in [start, end] with p == end or keys[p] > key."""
    while start < end:
        middle = (start + end) >> 1
        if keys[middle] <= key:
            start = middle + 1
        else:
            end = middle
    return start


@part(_nrt=False)
def find(plan, iterator, keys, start, end, key):
    """Like :func:`gallop` on an iterator's keys; one look-up where its level has a rank table."""
    if plan[iterator + I_RANKS]:
        base = plan[iterator + I_BASE]
        if key <= base:
            return start
        spread = plan[iterator + I_SPREAD]
        offset = np.uint64(key) - np.uint64(base)  # key - base may exceed int64
        if offset > np.uint64(spread):
            return end
        return max(start, min(end, np.int64(view32(plan[iterator + I_RANKS], spread + 1)[offset])))
    return gallop(keys, start, end, key)


@part(_nrt=False, forceinline=True)
def child_range(plan, state, iterator):
    """Half-open range of the keys of ``iterator`` below its parent's bound key."""
    parent = plan[iterator + I_PARENT]
    if parent < 0:
        return np.int64(0), plan[iterator + I_LENGTH]
    bound = state[plan[parent + I_CURSOR] + P_BOUND]
    if bound < 0:  # a negation whose branch is not there
        return np.int64(0), np.int64(0)
    children = view(plan[parent + I_CHILDREN], plan[parent + I_LENGTH] + 1)
    return children[bound], children[bound + 1]
