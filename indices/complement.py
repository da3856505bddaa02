"""The complement of a set of integers, listed by counting.

A set of integers is held as a scan of counts: a :class:`~indices.scan_tree.ScanTree`
over COUNT with one key column.  The missing ones of an interval are found without
walking the set: the difference between a key and its rank never falls from one
record to the next, and rises exactly where something is missing.  So the end of a
run of consecutive keys is found on one way down the tree, however long the run is.

Invariants of the search (``rank`` is the number of smaller keys in the set)

1. At the start of a step all missing integers less than ``value`` are out, and ``rank`` is the
   rank of ``value``.
2. ``key - rank of key`` is non-decreasing in key order, so the records for which it is at most
   ``value - rank`` are those before ``value`` and the run of present keys that begins at ``value``.

Cost: one way down for the first rank, one per gap: O(missing * log n) for all,
whatever the interval's length and the number of keys in it.

Source: ILFTJ 3.1.2.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from indices.compiled import kernel, part
from indices.errors import KeyOrderError, MonoidError
from indices.node_pool import slots_below
from indices.scan_climb import HEIGHT, ROOT, TOUCHED
from indices.scan_tree import ScanTree

_FIRST_BATCH = 16
_LARGEST_BATCH = 2**16


@part
def _rank(leaves, inners, state, key):
    """How many keys are less than ``key``, (1,) int64."""
    node = state[ROOT]
    rank = 0
    for _ in range(state[HEIGHT]):
        slot = max(slots_below(inners, node, key, 1) - 1, 0)
        for before in range(slot):
            rank += inners.values[node, before]
        node = inners.children[node, slot]
    state[TOUCHED] += state[HEIGHT] + 1
    return rank + slots_below(leaves, node, key, 0)


@part
def _run_end(leaves, inners, state, shift):
    """The records with ``key - rank <= shift``: how many, and whether and which key follows them."""
    node = state[ROOT]
    rank = 0
    follows = False
    following = 0
    for level in range(state[HEIGHT], -1, -1):
        pool = inners if level > 0 else leaves
        slot = 0
        # ``rank`` is that of the key in ``slot``; all slots before are in.
        while slot < pool.lengths[node] and pool.keys[node, slot, 0] - rank <= shift:
            rank += pool.values[node, slot]
            slot += 1
        if slot < pool.lengths[node]:
            follows = True
            following = pool.keys[node, slot, 0]
        state[TOUCHED] += 1
        if level > 0:
            if slot == 0:
                break
            rank -= pool.values[node, slot - 1]
            node = pool.children[node, slot - 1]
    return rank, follows, following


@kernel
def _list_missing(leaves, inners, state, low, high, out):
    """Write integers of ``[low, high]`` that are no keys to ``out``, in order; returns how many.

    ``low``: (1,) int64.  ``out``: (any,) int64; where it is full there may be more.
    """
    count = 0
    value = low[0]
    rank = _rank(leaves, inners, state, low)
    while True:
        end, follows, following = _run_end(leaves, inners, state, value - rank)
        if end > rank:
            value += end - rank - 1  # the last of the run, so this can't overflow
            if value >= high:
                return count
            value += 1
        # ``value`` is missing, and all up to ``following``.
        last = following - 1 if follows and following <= high else high
        while count < len(out):
            out[count] = value
            count += 1
            if value == last:
                break
            value += 1
        if count == len(out) or last == high:
            return count
        value = following
        rank = end


def missing(tree: ScanTree, low: int, high: int) -> Iterator[int]:
    """The integers of the closed interval ``[low, high]`` that are no keys of ``tree``, in order.

    ``tree`` is a scan of counts with one key column.  It may change meanwhile: what comes next is
    looked up in batches, in the tree as it is then.  Raises :class:`~indices.errors.MonoidError` and
    :class:`~indices.errors.KeyOrderError` for a tree of another kind or ends beyond 64 bits.

    >>> from indices.monoid import COUNT
    >>> list(missing(ScanTree.from_sorted([2, 3, 5], None, COUNT), 1, 7))
    [1, 4, 6, 7]
    """
    if not tree.monoid.counts:
        raise MonoidError(f"a complement needs a scan of counts, not of monoid {tree.monoid.name}")
    if tree.columns != 1:
        raise KeyOrderError(f"a complement is of integers, not of keys of {tree.columns} columns")
    limits = np.iinfo(np.int64)
    if not (limits.min <= low <= limits.max and limits.min <= high <= limits.max):
        raise KeyOrderError(f"[{low}, {high}] is not an interval of 64-bit integers")
    return _batches(tree, low, high)


def _batches(tree: ScanTree, low: int, high: int) -> Iterator[int]:
    size = _FIRST_BATCH
    while low <= high:
        out = np.empty(size, np.int64)
        count = _list_missing(*tree.arrays, np.array([low], np.int64), np.int64(high), out)
        yield from out[:count].tolist()
        if count < size:
            return
        low = int(out[-1]) + 1
        size = min(2 * size, _LARGEST_BATCH)
