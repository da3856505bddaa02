"""Intersections of sorted lists of keys: the innermost loops of every search.

A list is a range of an int64 array whose keys increase there.  What two of them share is written one key
after the other; a key that is refused is written too, where the next one is to stand, so that the processor
foresees the loops.

Cost: of :func:`intersect` the shorter list times the logarithm of the longer one's length at most; of the
others one load per key (:mod:`lftj.search.marks`, rank tables of :mod:`lftj.storage.trie`).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view32
from lftj.search.marks import marked
from lftj.storage.seek import MERGE_RATIO, gallop


@part
def intersect(keys, start, end, others, other, other_end, out, at):
    """List what keys[start:end] and others[other:other_end] share at ``out[at:]``; return how many.

    ``keys[start:end]`` may be ``out[at:]`` itself: it is never written ahead of what is read.
    """
    found = at
    if other_end - other <= MERGE_RATIO * (end - start):
        while start < end and other < other_end:
            key, landed = keys[start], others[other]
            out[found] = key
            found += key == landed
            start += key <= landed
            other += landed <= key
        return found - at
    while start < end:
        key = keys[start]
        other = gallop(others, other, other_end, key)
        if other == other_end:
            break
        out[found] = key
        found += others[other] == key
        start += 1
    return found - at


@part(forceinline=True)
def in_table(table, base, spread, key):
    """Whether a rank table, of ``spread`` keys from ``base`` on, has a key."""
    if key < base or np.uint64(key) - np.uint64(base) >= np.uint64(spread):
        return False
    rank = np.uint64(key) - np.uint64(base)
    return table[rank + np.uint64(1)] > table[rank]


@part
def intersect_ranked(keys, start, end, index, out, at):
    """:func:`intersect` with level 0 of an Index that has a rank table."""
    base, spread = index.first_key, index.spread
    table = view32(index.ranks, spread + 1)
    found = at
    for place in range(start, end):
        key = keys[place]
        out[found] = key
        found += in_table(table, base, spread, key)
    return found - at


@part(forceinline=True)
def intersect_marked(keys, start, end, marks, base, out, at):
    """:func:`intersect` with the keys of a bit map, whose first bit stands for the key ``base``."""
    found = np.uint64(at)
    for place in range(start, end):
        key = keys[np.uint64(place)]
        out[found] = key
        found += np.uint64(marked(marks, base, key))
    return np.int64(found) - at


@part(forceinline=True)
def count_marked(keys, start, end, marks, base):
    """How many of keys[start:end] a bit map has, whose first bit stands for the key ``base``."""
    found = np.int64(0)
    for place in range(start, end):
        found += marked(marks, base, keys[np.uint64(place)])
    return found


@part
def subtract_range(keys, start, end, others, other, other_end):
    """Keep those of keys[start:end] that others[other:other_end] lacks; return how many."""
    kept = first = start
    if other_end - other <= MERGE_RATIO * (end - start):
        while start < end and other < other_end:
            key, landed = keys[start], others[other]
            keys[kept] = key
            kept += key < landed
            start += key <= landed
            other += landed <= key
    else:
        while start < end:
            key = keys[start]
            other = gallop(others, other, other_end, key)
            if other == other_end:
                break
            keys[kept] = key
            kept += others[other] != key
            start += 1
    while start < end:
        keys[kept] = keys[start]
        kept += 1
        start += 1
    return kept - first


@part
def subtract_ranked(keys, start, end, index):
    """:func:`subtract_range` of level 0 of an Index that has a rank table."""
    base, spread = index.first_key, index.spread
    table = view32(index.ranks, spread + 1)
    kept = start
    for place in range(start, end):
        key = keys[place]
        keys[kept] = key
        kept += not in_table(table, base, spread, key)
    return kept - start
