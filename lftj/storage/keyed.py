"""Tables with a key: relations of which no two rows agree in some columns.

    (7, "open", 3) upserted      =   -(7, "paid", 3) +(7, "open", 3)        where the key is the first column

Events are what a transaction says of such a relation, in its order.  An event is a row with a weight, as of
any relation, or it *resets* its key first: whatever row of the key is there by then goes.  An upsert is a
reset and a row of weight 1, an erasure by key a reset alone.

Invariants

1. A version holds at most one row of a key, so its base does, and each of its runs at most two.
2. What comes behind the last reset of a key adds up as a Z-set (docs/design/engine.md section 1), whatever
   its order; what stands before it does not count.
3. A row is found by its key in the index that begins with the key's columns, which every version has.

Cost: of m events over n rows one sort of the events, and O(log n) for each of their keys in the base and in
each run.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from indices.compiled import kernel, part
from lftj.memory import view
from lftj.storage.index_version import IndexVersion
from lftj.storage.second_rows import key_conflict
from lftj.storage.seek import lower_bound, upper_bound
from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.sorting import first_rows_of_equal
from lftj.storage.version_memory import INDEX, LEVEL, RUN, first_run, index_at, level_at, run_at
from lftj.storage.wide_columns import WideColumns
from lftj.values.schema import Schema


class Keyed(Protocol):
    """A version of a relation with a key."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def key_index(self) -> IndexVersion: ...


class Events(NamedTuple):
    """What happens to a relation with a key, in order.

    ``keys``: int64 (columns of the key, n).  ``rows``: int64 (columns that tell rows apart, n), any where the
    weight is 0.  ``weights``: int64 (n,).  ``resets``: bool (n,).
    """

    keys: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    resets: np.ndarray


class KeyedChange(NamedTuple):
    """``rows``: int64 (columns that tell rows apart, m), sorted, equal ones by ``times``; ``signs``: 1 or -1.

    ``no_changes``: events that left all as it was.
    """

    rows: np.ndarray
    times: np.ndarray
    signs: np.ndarray
    no_changes: int


def keys_of(name: str, schema: Schema, rows: Columns) -> np.ndarray:
    """The keys of rows: int64 (columns of the key, n).  ``rows``: of a wide relation their codes alone."""
    columns = WideColumns(name, schema, rows[0]) if schema.wide else rows
    return np.array([columns[number] for number in schema.key_numbers])


def keyed_change(version: Keyed, events: Events, times: np.ndarray | None = None) -> KeyedChange:
    """What events do to a version, time after time.

    ``times``: int64 (n,), when each happens, rising; None: all at once.
    Raises KeyConflictError where a key has two rows at the end of a time, which is the error's ``time``.
    """
    keys, rows, weights, resets = events
    if times is None:
        times = np.zeros(len(weights), np.int64)
    if not len(weights):
        return KeyedChange(rows, times, weights, 0)
    order = np.lexsort((times, *keys[::-1]))
    keys, rows, weights = keys.take(order, axis=1), rows.take(order, axis=1), weights[order]
    resets, times = resets[order], times[order]
    starts = first_rows_of_equal(list(keys), len(weights))
    of_key = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(weights))))
    steps = first_rows_of_equal([of_key, times], len(weights))  # a step: what happens to a key at a time
    sizes = np.diff(np.append(steps, len(weights)))
    of_step, places = np.repeat(np.arange(len(steps)), sizes), np.arange(len(weights))
    last = np.maximum.reduceat(np.where(resets, places, -1), steps)
    counted = places >= last[of_step]
    entries, sums = net_rows([of_step[counted], *rows[:, counted]], weights[counted])
    there, current = rows_of_keys(version, keys.take(starts, axis=1))
    n_steps = len(steps)
    changed = np.empty((len(rows), 2 * n_steps), np.int64)
    changed_in, signs = np.empty(2 * n_steps, np.int64), np.empty(2 * n_steps, np.int64)
    conflict = np.empty((len(rows), 2), np.int64)
    bounds = np.searchsorted(entries[0], np.arange(n_steps + 1))
    which = of_key[steps], last >= 0, bounds
    before = there, current
    outcome = changed, changed_in, signs, conflict
    found, wrong = _settle(*which, np.ascontiguousarray(entries[1:]), sums, *before, *outcome)
    if wrong >= 0:
        raise key_conflict(version.name, version.schema, conflict, int(times[steps[wrong]]))
    changed, changed_in, signs = changed[:, :found], changed_in[:found], signs[:found]
    no_changes = np.maximum(sizes - np.bincount(changed_in, minlength=n_steps), 0).sum()
    netted, signs = net_rows([*changed, times[steps[changed_in]]], signs)
    return KeyedChange(np.ascontiguousarray(netted[:-1]), netted[-1].copy(), signs, int(no_changes))


def rows_of_keys(version: Keyed, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row that a version has of each of different keys, int64 (columns of the key, n).

    Returns bool (n,), whether there is one; and int64 (columns that tell rows apart, n).
    """
    schema, index, n = version.schema, version.key_index, keys.shape[1]
    room = n * (1 + 2 * len(index.runs))
    found, weights = np.empty((1 + index.levels, room), np.int64), np.empty(room, np.int64)
    n_found = _rows_below(index.memory, keys, found, weights)
    present, _ = net_rows(found[:, :n_found], weights[:n_found])
    there, rows = np.zeros(n, bool), np.zeros((len(schema.identity), n), np.int64)
    there[present[0]] = True
    for column, number in enumerate(schema.identity):
        rows[column, present[0]] = present[1 + schema.key_levels.index(number)]
    return there, rows


@kernel(makes_arrays=True)
def _rows_below(memory, keys, rows, weights):
    """Write the tuples of base and runs that begin with each key, and their weights; returns how many.

    memory: that of a version; keys: int64 (levels of the key, n); rows: int64 (1 + levels, room), written:
    the number of the key, and the tuple; weights: int64 (room,), written.
    """
    where = memory.ctypes.data
    index = index_at(where)
    levels, depth, found = index.levels, keys.shape[0], 0
    for number in range(keys.shape[1]):
        start, end, is_there = np.int64(0), level_at(where + INDEX).length, True
        for level in range(depth):
            its = level_at(where + INDEX + level * LEVEL)
            among = view(its.keys, end)
            place = lower_bound(among, start, end, keys[level, number])
            if place == end or among[place] != keys[level, number]:
                is_there = False
                break
            rows[1 + level, found] = keys[level, number]
            if level + 1 < levels:
                children = view(its.children, place + 2)
                start, end = children[place], children[place + 1]
        if is_there:
            for level in range(depth, levels):
                its = level_at(where + INDEX + level * LEVEL)
                rows[1 + level, found] = view(its.keys, start + 1)[start]
                if level + 1 < levels:
                    start = view(its.children, start + 1)[start]
            rows[0, found], weights[found] = number, 1
            found += 1
    for number_of_run in range(index.runs):
        run = run_at(first_run(where) + number_of_run * RUN)
        flat = view(run.rows, (levels + 1) * run.length + 1)
        sums = flat[levels * run.length :]
        for number in range(keys.shape[1]):
            start, end = np.int64(0), run.length
            for level in range(depth):
                column = flat[level * run.length : (level + 1) * run.length]
                end = upper_bound(column, start, end, keys[level, number])
                start = lower_bound(column, start, end, keys[level, number])
            for place in range(start, end):
                rows[0, found], weights[found] = number, sums[place + 1] - sums[place]
                for level in range(levels):
                    rows[1 + level, found] = flat[level * run.length + place]
                found += 1
    return found


@kernel(makes_arrays=True)
def _settle(of_key, resets, bounds, entries, weights, there, current, changed, changed_in, signs, conflict):
    """Go through the steps of each key; returns how many rows changed, and the step with two rows, or -1.

    of_key: int64 (steps,), the number of each one's key, rising; resets: bool (steps,); bounds: int64
    (steps + 1,), where each one's entries begin: rows, int64 (w, entries), and int64 weights, none 0.  there:
    bool (keys,), and current: int64 (w, keys), the row of each key before; both are written.  changed: int64
    (w, 2 steps), changed_in: int64 (2 steps,), the step, and signs: int64 (2 steps,), written.  conflict:
    int64 (w, 2), written where there are two rows.
    """
    found = 0
    for step in range(len(of_key)):
        key = of_key[step]
        stays, came = there[key] and not resets[step], -1
        for entry in range(bounds[step], bounds[step + 1]):
            is_current = there[key]
            for column in range(entries.shape[0]):
                is_current = is_current and entries[column, entry] == current[column, key]
            if is_current:
                stays = weights[entry] > 0
            elif weights[entry] > 0:
                if came >= 0:
                    _copy_row(entries, came, conflict, 0)
                    _copy_row(entries, entry, conflict, 1)
                    return found, step
                came = entry
        if stays and came >= 0:
            _copy_row(current, key, conflict, 0)
            _copy_row(entries, came, conflict, 1)
            return found, step
        if there[key] and not stays:
            _copy_row(current, key, changed, found)
            changed_in[found], signs[found] = step, -1
            found += 1
        if came >= 0:
            _copy_row(entries, came, changed, found)
            _copy_row(entries, came, current, key)
            changed_in[found], signs[found] = step, 1
            found += 1
        there[key] = stays or came >= 0
    return found, -1


@part
def _copy_row(source, its, target, at):
    """Write a row as target[:, at]."""
    for column in range(len(source)):
        target[column, at] = source[column, its]
