"""One node of the region search: open it, align its participants, step, with records (LFTJ section 3).

Invariants

1. ``open_node`` leaves every participant landed on its first key, or says that the
   node has no match; ``align`` goes on from where they have landed, so a node can
   be left for want of room and resumed.
2. What a participant did since its last record was written is its growing record.
3. D_RING lists the participants by the keys that they landed on when the node was opened, those that
   landed on one key in the order of D_FIRST.  They take turns in this order (LFTJ 3.1): the one whose
   turn it is has the least key, the one before it the greatest.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.search.conditions import filters_hold
from lftj.search.layout import (
    D_CONDITION,
    D_CONDITIONS,
    D_FILTERS,
    D_FIRST,
    D_LOG,
    D_NEGATION,
    D_NEGATIONS,
    D_NODE,
    D_PARTICIPANTS,
    D_RING,
    D_STREAM,
    D_STREAMS,
    H_DEPTHS,
    H_GAP,
    H_KEYS,
    H_LISTED,
    I_CURSOR,
    I_LAST,
    I_STREAM,
    L_CAPACITY,
    L_COUNT,
    N_APART,
    N_HIGH,
    N_LEADER,
    N_LOGGED,
    N_TURN,
    NEXTS,
    OPENS,
    P_KEY,
    P_MOVED,
    P_PENDING,
    R_COUNTERS,
    R_ROWS,
    R_WEIGHT,
    R_WORK,
    ROOM,
    SEEKS,
)
from lftj.search.regions.cursor import extend, flush, hide_branch, holds, land, open_cursor

ALIGN_MATCH = 1
ALIGN_END = 0
ALIGN_LOG_FULL = 2


@part(forceinline=True)
def has_room(plan, log, row):
    """Whether the depth's logs take one more step."""
    if plan[row + D_LOG] < 0:
        return True
    nodes = plan[row + D_LOG]
    if log[nodes + L_COUNT] + ROOM > log[nodes + L_CAPACITY]:
        return False
    first = plan[row + D_STREAM]
    for place in range(first, first + plan[row + D_STREAMS]):
        stream = plan[plan[place] + I_STREAM]
        if log[stream + L_COUNT] + ROOM > log[stream + L_CAPACITY]:
            return False
    return True


@part(forceinline=True)
def close_node(plan, state, log, row):
    """Write the records that are still growing."""
    first = plan[row + D_STREAM]
    for place in range(first, first + plan[row + D_STREAMS]):
        flush(plan, state, log, row, plan[place])


@part(forceinline=True)
def open_node(plan, state, indexes, log, row, low, high):
    """Open all participants and land them on their first key >= low; False: the node has no match."""
    node = plan[row + D_NODE]
    state[node + N_HIGH] = high
    state[node + N_LOGGED] = 0
    state[node + N_LEADER] = -1
    state[node + N_APART] = 0
    first = plan[row + D_STREAM]
    for place in range(first, first + plan[row + D_STREAMS]):
        state[plan[plan[place] + I_CURSOR] + P_PENDING] = 0
    if low > high:
        return False
    state[node + N_TURN] = 0
    first, ring = plan[row + D_FIRST], plan[row + D_RING]
    for number in range(plan[row + D_PARTICIPANTS]):
        participant = plan[first + number]
        open_cursor(plan, state, indexes, participant)
        state[R_COUNTERS + OPENS] += 1
        landed = land(plan, state, indexes, participant, low, np.int64(0))
        key = state[plan[participant + I_CURSOR] + P_KEY]
        extend(plan, state, log, row, participant, low, key, False)
        if not landed:
            return False
        to = ring + number
        while to > ring and state[plan[state[to - 1] + I_CURSOR] + P_KEY] > key:
            state[to] = state[to - 1]
            to -= 1
        state[to] = participant
    open_negations(plan, state, indexes, row)
    return True


@part
def open_negations(plan, state, indexes, row):
    """Open the depth's negated atoms, for :func:`accept`."""
    first = plan[row + D_NEGATION]
    for place in range(first, first + plan[row + D_NEGATIONS]):
        open_cursor(plan, state, indexes, plan[place])


@part(forceinline=True)
def align(plan, state, indexes, log, row):
    """Leapfrog search (LFTJ section 3.1) from the keys landed on: an ALIGN_*; at a match all have one key."""
    gap, ring, count = plan[H_GAP], plan[row + D_RING], plan[row + D_PARTICIPANTS]
    node = plan[row + D_NODE]
    high, turn = state[node + N_HIGH], state[node + N_TURN]
    before = turn - 1 if turn > 0 else count - 1
    greatest = state[plan[state[ring + before] + I_CURSOR] + P_KEY]
    found = ALIGN_END
    while greatest <= high:
        participant = state[ring + turn]
        cursor = plan[participant + I_CURSOR]
        if state[cursor + P_KEY] == greatest:
            found = ALIGN_MATCH
            break
        if not has_room(plan, log, row):
            found = ALIGN_LOG_FULL
            break
        state[R_COUNTERS + SEEKS] += 1
        state[R_WORK] += 1
        landed = land(plan, state, indexes, participant, greatest, gap)
        key = state[cursor + P_KEY]
        extend(plan, state, log, row, participant, greatest, key, state[cursor + P_MOVED] <= gap)
        if not landed:
            break
        greatest = key
        turn = turn + 1 if turn + 1 < count else np.int64(0)
    state[node + N_TURN] = turn
    return found


@part
def accept(plan, state, indexes, log, row, key):
    """Whether the conditions and the negated atoms that are complete here let the key pass.

    Negated atoms with deeper levels are bound on the way.
    """
    if plan[row + D_FILTERS]:
        condition, count = plan[row + D_CONDITION], plan[row + D_CONDITIONS]
        if not filters_hold(plan, state, plan[H_KEYS], condition, count, key):
            return False
    first = plan[row + D_NEGATION]
    for place in range(first, first + plan[row + D_NEGATIONS]):
        negation = plan[place]
        state[R_COUNTERS + SEEKS] += 1
        held = holds(plan, state, indexes, negation, key)
        if plan[negation + I_LAST]:
            extend(plan, state, log, row, negation, key, key, False)
            if held:
                return False
        elif not held:
            hide_branch(plan, state, indexes, negation)
    return True


@part(forceinline=True)
def step(plan, state, indexes, log, row):
    """After a match, move the participant on whose turn it is; False: it has no further key."""
    count = plan[row + D_PARTICIPANTS]
    if count == 0:
        return False
    node = plan[row + D_NODE]
    turn = state[node + N_TURN]
    participant = state[plan[row + D_RING] + turn]
    state[node + N_TURN] = turn + 1 if turn + 1 < count else 0
    cursor = plan[participant + I_CURSOR]
    key = state[cursor + P_KEY]
    state[R_COUNTERS + NEXTS] += 1
    state[R_WORK] += 1
    if key >= state[node + N_HIGH]:
        return False
    landed = land(plan, state, indexes, participant, key + 1, np.int64(0))
    extend(plan, state, log, row, participant, key + 1, state[cursor + P_KEY], False)
    return landed


@part(forceinline=True)
def repeat_prefix(plan, state, rows, start, count):
    """Write the keys above the last depth beside ``count`` of its keys, which stand from row ``start`` on.

    Where not all depths are listed the matches are counted, and their rows are free again.
    """
    if plan[H_LISTED] < plan[H_DEPTHS]:
        state[R_WEIGHT] += count
        return
    for depth in range(plan[H_DEPTHS] - 1):
        key = state[plan[H_KEYS] + depth]
        column = rows[depth]
        for place in range(start, start + count):
            column[place] = key
    state[R_ROWS] = start + count


@part(forceinline=True)
def emit(plan, state, rows):
    """Write the whole binding as a row, or count it; the caller sees to room."""
    if plan[H_LISTED] < plan[H_DEPTHS]:
        state[R_WEIGHT] += 1
        return
    at = state[R_ROWS]
    for depth in range(plan[H_DEPTHS]):
        rows[depth, at] = state[plan[H_KEYS] + depth]
    state[R_ROWS] = at + 1


@part(forceinline=True)
def emit_counted(plan, state, rows):
    """Write the listed part of the binding with the assignments counted below it; the caller sees to room."""
    listed = plan[H_LISTED]
    if listed == plan[H_DEPTHS] or state[R_WEIGHT] == 0:
        return
    at = state[R_ROWS]
    for depth in range(listed):
        rows[depth, at] = state[plan[H_KEYS] + depth]
    rows[listed, at] = state[R_WEIGHT]
    state[R_WEIGHT] = 0
    state[R_ROWS] = at + 1
