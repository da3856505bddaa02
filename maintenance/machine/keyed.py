"""NET of relations with a key: plain changes, upserts and erasures by key, as :mod:`lftj.storage.keyed`.

Each row that is staged says what it is: 1 an insertion and -1 an erasure of itself, ``UPSERTED`` one in
place of what its key has, ``KEY_ERASED`` a key whose row goes, of which other columns say nothing.

Invariant: rows and signs are those of :func:`lftj.storage.keyed.keyed_change`.  A key that would have two
rows is left to it, which tells of them; so is a wide row that goes and was not staged, of which nothing but
its code is known here.

Cost: as there.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.storage.keyed import _rows_below, _settle
from lftj.storage.signed_rows import _net, _order, first_rows
from lftj.storage.version_memory import index_at
from maintenance.machine.collecting import take
from maintenance.machine.layers import memory_of
from maintenance.machine.records import LEFT, layered_at

UPSERTED, KEY_ERASED = 2, 0
"""What is staged, other than 1 and -1."""


@part(makes_arrays=True)
def net_keyed(relation, rows, kinds):
    """Let the relation's change be what comes of the rows that are staged; a status.

    rows: int64 (columns, n); kinds: int64 (n,).
    """
    index = layered_at(relation.key)
    n_key, depth, n = relation.n_key, relation.path, len(kinds)
    columns = view(index.order, index.levels)
    keys = np.empty((n_key, n), np.int64)
    for level in range(n_key):
        for row in range(n):
            keys[level, row] = rows[columns[level], row]
    order = _order(keys)
    starts = starts_of_equal(keys, order)
    n_keys = len(starts) - 1
    resets = np.zeros(n_keys, np.bool_)
    distinct = np.empty((n_key, n_keys), np.int64)
    entries, weights, n_entries = np.empty((1 + depth, n), np.int64), np.empty(n, np.int64), 0
    for key in range(n_keys):
        first = starts[key]
        for level in range(n_key):
            distinct[level, key] = keys[level, order[first]]
        for place in range(starts[key], starts[key + 1]):
            if kinds[order[place]] in (UPSERTED, KEY_ERASED):
                first, resets[key] = place, True
        for place in range(first, starts[key + 1]):
            row = order[place]
            if kinds[row] == KEY_ERASED:
                continue
            entries[0, n_entries] = key
            for column in range(depth):
                entries[1 + column, n_entries] = rows[column, row]
            weights[n_entries] = 1 if kinds[row] == UPSERTED else kinds[row]
            n_entries += 1
    entries, weights = _net(first_rows(entries, n_entries), weights[:n_entries].copy())
    bounds = np.zeros(n_keys + 1, np.int64)
    for entry in range(len(weights)):
        bounds[entries[0, entry] + 1] += 1
    for key in range(n_keys):
        bounds[key + 1] += bounds[key]
    there, current = rows_of_keys(index, distinct, depth)
    changed, changed_in = np.empty((depth, 2 * n_keys), np.int64), np.empty(2 * n_keys, np.int64)
    signs, conflict = np.empty(2 * n_keys, np.int64), np.empty((depth, 2), np.int64)
    found, wrong = _settle(
        np.arange(n_keys),
        resets,
        bounds,
        entries[1:].copy(),
        weights,
        there,
        current,
        changed,
        changed_in,
        signs,
        conflict,
    )
    if wrong >= 0:
        return LEFT
    relation.staged = found + without_change(starts, changed_in[:found])
    changed, signs = _net(first_rows(changed, found), signs[:found].copy())
    if depth == relation.arity:
        return take(relation, changed, signs)
    wide, is_known = whole_rows(rows, kinds, changed)
    return take(relation, wide, signs) if is_known else LEFT


@part(makes_arrays=True)
def whole_rows(rows, kinds, codes):
    """All columns of wide rows by code, int64 (1, n), as they were staged; and whether all of them were."""
    found, are_known = np.empty((rows.shape[0], codes.shape[1]), np.int64), True
    for place in range(codes.shape[1]):
        is_known = False
        for row in range(len(kinds)):
            if kinds[row] != KEY_ERASED and rows[0, row] == codes[0, place]:
                is_known = True
                for column in range(rows.shape[0]):
                    found[column, place] = rows[column, row]
        are_known = are_known and is_known
    return found, are_known


@part(makes_arrays=True)
def starts_of_equal(keys, order):
    """Where each key begins in an order of all, int64 (distinct keys + 1,); the last is behind them."""
    n = len(order)
    starts, found = np.empty(n + 1, np.int64), 0
    for place in range(n):
        is_new = place == 0
        for level in range(keys.shape[0]):
            is_new = is_new or keys[level, order[place]] != keys[level, order[place - 1]]
        if is_new:
            starts[found] = place
            found += 1
    starts[found] = n
    return starts[: found + 1].copy()


@part(makes_arrays=True)
def rows_of_keys(index, keys, depth):
    """As :func:`lftj.storage.keyed.rows_of_keys`, of what is published.

    keys: int64 (columns of the key, n); depth: how many columns tell rows apart, the relation's first ones.
    """
    levels, n, memory = index.levels, keys.shape[1], view(memory_of(index, index.is_b), 1)
    room = n * (1 + 2 * index_at(memory_of(index, index.is_b)).runs)
    found, weights = np.empty((1 + levels, room), np.int64), np.empty(room, np.int64)
    n_found = _rows_below(memory, keys, found, weights)
    present, _ = _net(first_rows(found, n_found), weights[:n_found].copy())
    columns = view(index.order, levels)
    there, rows = np.zeros(n, np.bool_), np.zeros((depth, n), np.int64)
    for place in range(present.shape[1]):
        key = present[0, place]
        there[key] = True
        for level in range(levels):
            if columns[level] < depth:
                rows[columns[level], key] = present[1 + level, place]
    return there, rows


@part(makes_arrays=True)
def without_change(starts, changed_in):
    """How many of the rows that were staged left all as it was.  changed_in: keys of what changed, rising."""
    n, at = np.int64(0), 0
    for key in range(len(starts) - 1):
        size = starts[key + 1] - starts[key]
        while at < len(changed_in) and changed_in[at] == key:
            size -= 1
            at += 1
        n += max(size, np.int64(0))
    return n
