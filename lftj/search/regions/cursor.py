"""Cursors over versions of an index: open, land, and the records they leave.

A cursor is one participant of one node: a range of base keys and, under
prefixes that later runs touch, a range of every run.  A seek lands on the
least *present* key (docs/design/engine.md section 2).  Where no run has a tuple under the
prefix (``P_ACTIVE`` is 0) only the base is looked at, so runs cost nothing
where nothing changed.

Records (docs/design/engine.md section 4): ``extend`` joins the interval of an operation to
the cursor's growing record when they touch.  It departs from ILFTJ in one point,
which is sound because any superset of the records is: a seek that moves on by at
most H_GAP keys counts as that many steps of an iterator, so the record goes on.
On power-law graphs this saves nine records in ten, and a record then covers at
most H_GAP times the keys that it has to.  Where H_GAP is 0 the records are the
trace's own (ILFTJ 4.1).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.layout import (
    CURSOR_RUN_FIELDS,
    D_LOG,
    D_NODE,
    D_STREAM,
    D_STREAMS,
    H_KEYS,
    I_CURSOR,
    I_INDEX,
    I_LEVEL,
    I_PARENT,
    I_STREAM,
    L_CAPACITY,
    L_COUNT,
    L_DEPTH,
    L_HI,
    L_LO,
    L_NODES,
    N_LOGGED,
    P_ACTIVE,
    P_AT,
    P_END,
    P_FROM,
    P_KEY,
    P_LIST,
    P_MOVED,
    P_PENDING,
    P_POSITION,
    P_RUNS,
    P_TO,
)
from lftj.storage.seek import gallop, lower_bound, ranked, upper_bound
from lftj.storage.version_memory import (
    X_BASE,
    X_HEADER,
    X_LEVEL_FIELDS,
    X_LEVELS,
    X_RANKS,
    X_RUN_FIELDS,
    X_RUNS,
    X_SPREAD,
    XL_CHILDREN,
    XL_KEYS,
    XL_LEAVES,
    XL_LENGTH,
    XR_LENGTH,
    XR_ROWS,
)

DESCRIPTION = 1 << 10  # more fields than a description of an index has


@part(forceinline=True)
def open_cursor(plan, state, indexes, participant):
    """Set the cursor on all keys below its parent's key; it has not landed yet."""
    cursor = plan[participant + I_CURSOR]
    index = view(indexes[plan[participant + I_INDEX]], DESCRIPTION)
    level = plan[participant + I_LEVEL]
    fields = X_HEADER + level * X_LEVEL_FIELDS
    parent = plan[participant + I_PARENT]
    state[cursor + P_LIST] = index[fields + XL_KEYS]
    state[cursor + P_PENDING] = 0
    state[cursor + P_AT] = -1
    active = np.int64(0)
    if parent < 0:
        state[cursor + P_POSITION] = 0
        state[cursor + P_END] = index[fields + XL_LENGTH]
        run = X_HEADER + index[X_LEVELS] * X_LEVEL_FIELDS
        slot = cursor + P_RUNS
        for _ in range(index[X_RUNS]):
            state[slot] = 0
            state[slot + 1] = index[run + XR_LENGTH]
            state[slot + 2] = 0
            active += 1
            slot += CURSOR_RUN_FIELDS
            run += X_RUN_FIELDS
    else:
        above = plan[parent + I_CURSOR]
        at = state[above + P_AT]
        if at >= 0:
            children = view(index[fields - X_LEVEL_FIELDS + XL_CHILDREN], at + 2)
            state[cursor + P_POSITION] = children[at]
            state[cursor + P_END] = children[at + 1]
        else:
            state[cursor + P_POSITION] = 0
            state[cursor + P_END] = 0
        if state[above + P_ACTIVE]:
            slot, source = cursor + P_RUNS, above + P_RUNS
            for _ in range(index[X_RUNS]):
                state[slot] = state[source]
                state[slot + 1] = state[source + 2]
                state[slot + 2] = state[source]
                active += state[source] < state[source + 2]
                slot += CURSOR_RUN_FIELDS
                source += CURSOR_RUN_FIELDS
    state[cursor + P_ACTIVE] = active


@part(forceinline=True)
def open_base(plan, state, indexes, participant):
    """:func:`open_cursor` below a key that the base holds, under a prefix where no run has tuples."""
    cursor = plan[participant + I_CURSOR]
    index = view(indexes[plan[participant + I_INDEX]], DESCRIPTION)
    fields = X_HEADER + plan[participant + I_LEVEL] * X_LEVEL_FIELDS
    at = state[plan[plan[participant + I_PARENT] + I_CURSOR] + P_AT]
    children = view(index[fields - X_LEVEL_FIELDS + XL_CHILDREN], at + 2)
    state[cursor + P_LIST] = index[fields + XL_KEYS]
    state[cursor + P_POSITION] = children[at]
    state[cursor + P_END] = children[at + 1]
    state[cursor + P_ACTIVE] = 0


@part(forceinline=True)
def land(plan, state, indexes, participant, key, gap):
    """Move to the least present key >= ``key``, never backwards; False: there is none."""
    cursor = plan[participant + I_CURSOR]
    end = state[cursor + P_END]
    keys = view(state[cursor + P_LIST], end)
    position = before = state[cursor + P_POSITION]
    if position < end and keys[position] < key:
        position += 1
        stop = min(end, position + gap)
        while position < stop and keys[position] < key:
            position += 1
        if position < end and keys[position] < key:
            position = beyond(plan, indexes, participant, keys, position, end, key)
    state[cursor + P_POSITION] = position
    state[cursor + P_MOVED] = max(np.int64(1), position - before)
    if state[cursor + P_ACTIVE]:
        return land_in_runs(plan, state, indexes, participant, key, False)
    state[cursor + P_AT] = position
    if position == end:
        state[cursor + P_KEY] = KEY_MAX
        return False
    state[cursor + P_KEY] = keys[position]
    return True


@part
def beyond(plan, indexes, participant, keys, position, end, key):
    """Least position in [position, end] that is the end or holds a key >= ``key``: a look-up or a gallop."""
    if plan[participant + I_LEVEL] == 0:
        index = view(indexes[plan[participant + I_INDEX]], DESCRIPTION)
        if index[X_RANKS]:
            return ranked(index[X_RANKS], index[X_BASE], index[X_SPREAD], position, end, key)
    return gallop(keys, position, end, key)


@part
def holds(plan, state, indexes, participant, key):
    """Whether the key is present; if so the cursor has landed on it.  Never moves backwards."""
    cursor = plan[participant + I_CURSOR]
    end = state[cursor + P_END]
    keys = view(state[cursor + P_LIST], end)
    position = state[cursor + P_POSITION]
    if position < end and keys[position] < key:
        position = beyond(plan, indexes, participant, keys, position, end, key)
        state[cursor + P_POSITION] = position
    if state[cursor + P_ACTIVE]:
        return land_in_runs(plan, state, indexes, participant, key, True)
    state[cursor + P_AT] = position
    state[cursor + P_KEY] = key
    return position < end and keys[position] == key


@part
def land_in_runs(plan, state, indexes, participant, key, exact):
    """:func:`land`, where runs have tuples under the prefix; the base stands at its least key >= ``key``.

    ``exact``: land on the key itself or not at all.
    """
    cursor = plan[participant + I_CURSOR]
    index = view(indexes[plan[participant + I_INDEX]], DESCRIPTION)
    level, levels = plan[participant + I_LEVEL], index[X_LEVELS]
    end = state[cursor + P_END]
    keys = view(state[cursor + P_LIST], end)
    first = X_HEADER + levels * X_LEVEL_FIELDS
    while True:
        position = state[cursor + P_POSITION]
        held = position < end
        least = keys[position] if held else KEY_MAX
        run, slot = first, cursor + P_RUNS
        for _ in range(index[X_RUNS]):
            start, stop = state[slot], state[slot + 1]
            if start < stop:
                length = index[run + XR_LENGTH]
                column = view(index[run + XR_ROWS] + 8 * level * length, length)
                start = lower_bound(column, start, stop, key)
                state[slot] = start
                if start < stop and (not held or column[start] < least):
                    least = column[start]
                    held = True
            run += X_RUN_FIELDS
            slot += CURSOR_RUN_FIELDS
        if not held or (exact and least != key):
            state[cursor + P_AT] = -1
            state[cursor + P_KEY] = KEY_MAX
            return False
        weight = np.int64(0)
        at = np.int64(-1)
        if position < end and keys[position] == least:
            at = position
            if level + 1 == levels:
                weight = np.int64(1)
            else:
                where = index[X_HEADER + level * X_LEVEL_FIELDS + XL_LEAVES]
                leaves = view(where, position + 2)
                weight = leaves[position + 1] - leaves[position]
        run, slot = first, cursor + P_RUNS
        for _ in range(index[X_RUNS]):
            start, stop = state[slot], state[slot + 1]
            state[slot + 2] = start
            if start < stop:
                length = index[run + XR_LENGTH]
                column = view(index[run + XR_ROWS] + 8 * level * length, length)
                if column[start] == least:
                    stop = upper_bound(column, start, stop, least)
                    sums = view(index[run + XR_ROWS] + 8 * levels * length, length + 1)
                    weight += sums[stop] - sums[start]
                    state[slot + 2] = stop
            run += X_RUN_FIELDS
            slot += CURSOR_RUN_FIELDS
        if weight > 0:
            state[cursor + P_AT] = at
            state[cursor + P_KEY] = least
            return True
        if exact or least == KEY_MAX:
            state[cursor + P_AT] = -1
            state[cursor + P_KEY] = KEY_MAX
            return False
        key = least + 1
        if at >= 0:
            state[cursor + P_POSITION] = position + 1


@part
def hide_branch(plan, state, indexes, participant):
    """The cursor has not landed on the key asked for: let everything that is opened below it be empty."""
    cursor = plan[participant + I_CURSOR]
    state[cursor + P_AT] = -1
    if state[cursor + P_ACTIVE]:
        slot = cursor + P_RUNS
        for _ in range(view(indexes[plan[participant + I_INDEX]], DESCRIPTION)[X_RUNS]):
            state[slot + 2] = state[slot]
            slot += CURSOR_RUN_FIELDS


# -- records ---------------------------------------------------------------------------


@part
def flush(plan, state, log, row, participant):
    """Write the cursor's growing record, and the node's binding if it is the first one of the node."""
    cursor = plan[participant + I_CURSOR]
    if not state[cursor + P_PENDING]:
        return
    state[cursor + P_PENDING] = 0
    node = plan[row + D_NODE]
    if not state[node + N_LOGGED]:
        state[node + N_LOGGED] = 1
        log_node(plan, state, log, row)
    stream = plan[participant + I_STREAM]
    count = log[stream + L_COUNT]
    view(log[stream + L_LO], count + 1)[count] = state[cursor + P_FROM]
    view(log[stream + L_HI], count + 1)[count] = state[cursor + P_TO]
    log[stream + L_COUNT] = count + 1


@part
def log_node(plan, state, log, row):
    """Write the binding above the node, and how many records each of its streams has so far."""
    nodes = plan[row + D_LOG]
    place, capacity = log[nodes + L_COUNT], log[nodes + L_CAPACITY]
    depth = log[nodes + L_DEPTH]
    streams = plan[row + D_STREAMS]
    table = view(log[nodes + L_NODES], (depth + streams) * capacity)
    for bound in range(depth):
        table[bound * capacity + place] = state[plan[H_KEYS] + bound]
    for number in range(streams):
        stream = plan[plan[plan[row + D_STREAM] + number] + I_STREAM]
        table[(depth + number) * capacity + place] = log[stream + L_COUNT]
    log[nodes + L_COUNT] = place + 1


@part(forceinline=True)
def extend(plan, state, log, row, participant, low, high, joined):
    """The trace depends on the keys in [low, high]; ``joined``: and on those since the last record."""
    if plan[participant + I_STREAM] < 0:
        return
    cursor = plan[participant + I_CURSOR]
    if state[cursor + P_PENDING]:
        to = state[cursor + P_TO]
        if joined or low <= to or low - 1 == to:
            state[cursor + P_TO] = max(to, high)
            return
        flush(plan, state, log, row, participant)
    state[cursor + P_PENDING] = 1
    state[cursor + P_FROM] = low
    state[cursor + P_TO] = high
