"""Cursors over versions of an index: open, next and seek (LFTJ section 3.1), and the records they leave.

A cursor is one participant of one node: a range of base keys and, under
prefixes that later runs touch, a range of every run.  Or there are no runs, and a patch
(:mod:`lftj.storage.patch`) lists what is otherwise than in the base.  A seek lands on the
least *present* key (docs/design/engine.md section 2).  Where no run has a tuple under the
prefix (``active`` is 0) only the base is looked at, so runs cost nothing
where nothing changed.

Records (docs/design/engine.md section 4): ``extend`` joins the interval of an operation to
the cursor's growing record when they touch.  It departs from ILFTJ in one point,
which is sound because any superset of the records is: a seek that moves on by at
most ``gap`` keys counts as that many steps of an iterator, so the record goes on.
On power-law graphs this saves nine records in ten, and a record then covers at
most ``gap`` times the keys that it has to.  Where ``gap`` is 0 the records are the
trace's own (ILFTJ 4.1).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.records import (
    CURSOR,
    RANGE,
    cursor_at,
    node_log_at,
    range_at,
    stream_at,
)
from lftj.storage.patch import patch_places_at, table_row
from lftj.storage.runs import first_key_from
from lftj.storage.seek import gallop, lower_bound, ranked
from lftj.storage.version_memory import INDEX, LEVEL, RUN, first_run, index_at, level_at, run_at, run_column


@part
def bind_indexes(search, indexes):
    """Let all cursors read these versions: int64, the address of the memory of each, by number."""
    search.runs = 0
    for number in range(search.n_cursors):
        cursor = cursor_at(search.cursors + number * CURSOR)
        index = indexes[cursor.number]
        cursor.index = index
        cursor.level = index + INDEX + cursor.level_number * LEVEL
        level = level_at(cursor.level)
        cursor.keys, cursor.children, cursor.patch = level.keys, level.children, level.patch
        cursor.in_patch = index_at(index).in_patch if cursor.level_number == 0 else 0
        if index_at(index).runs:
            search.runs = 1


@part(forceinline=True)
def child_range(cursor):
    """Half-open range of a cursor's base keys below the key that its parent landed on."""
    if cursor.parent == 0:
        return np.int64(0), level_at(cursor.level).length
    above = cursor_at(cursor.parent)
    at = above.at
    if at < 0:  # the base lacks it
        return np.int64(0), np.int64(0)
    if above.patch:
        return patched_range(cursor, above)
    children = view(above.children, at + 2)
    return children[at], children[at + 1]


@part
def patched_range(cursor, above):
    """:func:`child_range` where the index has a patch: the keys may be such as the patch lists."""
    changed = patch_places_at(above.patch)
    row, at = table_row(changed, above.in_patch, above.at)
    if row >= 0:
        listed = view(changed.child, row + 1)[row]
        if listed >= 0:
            own = patch_places_at(cursor.patch)
            starts = view(own.starts, listed + 2)
            cursor.keys = own.keys
            cursor.in_patch = 1
            return starts[listed], starts[listed + 1]
    cursor.keys = level_at(cursor.level).keys
    cursor.in_patch = 0
    children = view(above.children, at + 2)
    return children[at], children[at + 1]


@part(forceinline=True)
def open_cursor(cursor):
    """Set the cursor on all keys below its parent's key; it has not landed yet."""
    cursor.recording = 0
    cursor.at = -1
    cursor.position, cursor.end = child_range(cursor)
    active = np.int64(0)
    runs = index_at(cursor.index).runs
    if cursor.parent == 0:
        run = first_run(cursor.index)
        for number in range(runs):
            ahead = range_at(cursor.ranges + number * RANGE)
            ahead.start = 0
            ahead.stop = run_at(run + number * RUN).length
            ahead.end = 0
            active += 1
    else:
        above = cursor_at(cursor.parent)
        if above.active:
            for number in range(runs):
                landed = range_at(above.ranges + number * RANGE)
                start, end = landed.start, landed.end
                ahead = range_at(cursor.ranges + number * RANGE)
                ahead.start = start
                ahead.stop = end
                ahead.end = start
                active += start < end
    cursor.active = active


@part(forceinline=True)
def next_key(cursor):
    """Move to the next present key; False: there is none."""
    return seek(cursor, cursor.key + 1, np.int64(0))


@part(forceinline=True)
def seek(cursor, key, gap):
    """Move to the least present key >= ``key``, never backwards; False: there is none.

    gap: how many keys to try one after the other before searching.
    """
    end = cursor.end
    keys = view(cursor.keys, end)
    position = before = cursor.position
    if position < end and keys[position] < key:
        position += 1
        stop = min(end, position + gap)
        while position < stop and keys[position] < key:
            position += 1
        if position < end and keys[position] < key:
            position = beyond(cursor, keys, position, end, key)
    cursor.position = position
    cursor.moved = max(np.int64(1), position - before)
    if cursor.active:
        return land_in_runs(cursor, key, False)
    cursor.at = position
    if position == end:
        cursor.key = KEY_MAX
        return False
    cursor.key = keys[position]
    return True


@part
def beyond(cursor, keys, position, end, key):
    """Least position in [position, end] that is the end or holds a key >= ``key``: a look-up or a gallop."""
    if cursor.parent == 0:
        index = index_at(cursor.index)
        if index.ranks:
            return ranked(index.ranks, index.first_key, index.spread, position, end, key)
    return gallop(keys, position, end, key)


@part(forceinline=True)
def led_to(cursor, key):
    """Lead a participant, which is at a key, on to its first that is not below ``key``; its position."""
    position, end = cursor.position, cursor.end
    keys = view(cursor.keys, end)
    if keys[position] < key:
        position += 1
        if position < end and keys[position] < key:
            position = beyond(cursor, keys, position, end, key)
        cursor.position = position
    return position


@part
def holds(cursor, key):
    """Whether the key is present; if so the cursor has landed on it.  Never moves backwards."""
    end = cursor.end
    keys = view(cursor.keys, end)
    position = cursor.position
    if position < end and keys[position] < key:
        position = beyond(cursor, keys, position, end, key)
        cursor.position = position
    if cursor.active:
        return land_in_runs(cursor, key, True)
    cursor.at = position
    cursor.key = key
    return position < end and keys[position] == key


@part
def land_in_runs(cursor, key, exact):
    """:func:`seek`, where runs have tuples under the prefix; the base stands at its least key >= ``key``.

    ``exact``: land on the key itself or not at all.
    """
    end = cursor.end
    keys = view(cursor.keys, end)
    while True:
        position = cursor.position
        held = position < end
        least = keys[position] if held else KEY_MAX
        some, least_of_runs = seek_runs(cursor, key)
        if some and (not held or least_of_runs < least):
            held, least = True, least_of_runs
        if not held or (exact and least != key):
            break
        at = position if position < end and keys[position] == least else np.int64(-1)
        if weight_at(cursor, at, least) > 0:
            cursor.at = at
            cursor.key = least
            return True
        if exact or least == KEY_MAX:
            break
        key = least + 1
        if at >= 0:
            cursor.position = position + 1
    cursor.at = -1
    cursor.key = KEY_MAX
    return False


@part
def seek_runs(cursor, key):
    """Lead each run on to its least key >= ``key``: whether one has such a key, and the least of them."""
    some, least = False, KEY_MAX
    run, level = first_run(cursor.index), cursor.level_number
    for number in range(index_at(cursor.index).runs):
        ahead = range_at(cursor.ranges + number * RANGE)
        start, stop = ahead.start, ahead.stop
        if start < stop:
            its = run_at(run + number * RUN)
            column = view(run_column(its, level), stop)
            if its.first_keys > 0 and cursor.parent == 0:
                directory = view(its.directory, 2 * its.first_keys + 2)
                start = directory[2 * first_key_from(directory, np.int64(0), key) + 1]
            else:
                start = lower_bound(column, start, stop, key)
            ahead.start = start
            if start < stop and (not some or column[start] < least):
                some, least = True, column[start]
    return some, least


@part
def weight_at(cursor, at, key):
    """Net weight of the branch at a key that nothing before is ahead of: where its tuples end is noted.

    ``at``: its position in the base, -1 if that lacks it.
    """
    weight = np.int64(0)
    index = index_at(cursor.index)
    levels, level = index.levels, cursor.level_number
    if at >= 0:
        if level + 1 == levels:
            weight = np.int64(1)
        else:
            leaves = view(level_at(cursor.level).leaves, at + 2)
            weight = leaves[at + 1] - leaves[at]
    run = first_run(cursor.index)
    for number in range(index.runs):
        ahead = range_at(cursor.ranges + number * RANGE)
        start, stop = ahead.start, ahead.stop
        ahead.end = start
        if start < stop:
            its = run_at(run + number * RUN)
            column = view(run_column(its, level), stop)
            if column[start] == key:
                stop = gallop(column, start, stop, key + 1) if key < KEY_MAX else stop
                sums = view(run_column(its, levels), stop + 1)
                weight += sums[stop] - sums[start]
                ahead.end = stop
    return weight


@part
def hide_branch(cursor):
    """The cursor has not landed on the key asked for: let everything that is opened below it be empty."""
    cursor.at = -1
    if cursor.active:
        for number in range(index_at(cursor.index).runs):
            ahead = range_at(cursor.ranges + number * RANGE)
            ahead.end = ahead.start


# -- records ---------------------------------------------------------------------------


@part
def flush(search, node, cursor):
    """Write the cursor's growing record, and the node's binding if it is the first one of the node."""
    if not cursor.recording:
        return
    cursor.recording = 0
    if not node.logged:
        node.logged = 1
        log_node(search, node)
    stream = stream_at(cursor.stream)
    count = stream.count
    view(stream.lows, count + 1)[count] = cursor.record_low
    view(stream.highs, count + 1)[count] = cursor.record_high
    stream.count = count + 1


@part
def log_node(search, node):
    """Write the binding above the node, and how many records each of its streams has so far."""
    log = node_log_at(node.log)
    entry, capacity = log.count, log.capacity
    row = np.int64(0)
    keys = view(search.keys, log.bound)
    for depth in range(log.bound):
        view(log.bindings + 8 * row * capacity, capacity)[entry] = keys[depth]
        row += 1
    for where in range(node.participants, node.end, CURSOR):
        stream = cursor_at(where).stream
        if stream:
            view(log.bindings + 8 * row * capacity, capacity)[entry] = stream_at(stream).count
            row += 1
    log.count = entry + 1


@part(forceinline=True)
def extend(search, node, cursor, low, high, joined):
    """The trace depends on the keys in [low, high]; ``joined``: and on those since the last record."""
    if not cursor.stream:
        return
    if cursor.recording:
        to = cursor.record_high
        if joined or low <= to or low - 1 == to:
            cursor.record_high = max(to, high)
            return
        flush(search, node, cursor)
    cursor.recording = 1
    cursor.record_low = low
    cursor.record_high = high
