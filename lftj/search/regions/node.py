"""One node of the region search: open it, align its participants, step, with records (LFTJ section 3).

Invariants

1. ``open_node`` leaves every participant landed on its first key, or says that the
   node has no match; ``align`` goes on from where they have landed, so a node can
   be left for want of room and resumed.
2. What a participant did since its last record was written is its growing record.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MIN
from lftj.search.conditions import filters_hold
from lftj.search.regions.cursor import extend, flush, hide_branch, holds, land, open_cursor
from lftj.search.regions.layout import (
    C_KEY,
    C_PENDING,
    C_SKIPPED,
    E_CONDITION,
    E_CONDITIONS,
    E_FILTERS,
    E_FIRST,
    E_LOG,
    E_NEGATION,
    E_NEGATIONS,
    E_NODE,
    E_PARTICIPANTS,
    E_STREAM,
    E_STREAMS,
    G_DEPTHS,
    G_GAP,
    G_KEYS,
    L_CAPACITY,
    L_COUNT,
    N_HIGH,
    N_LOGGED,
    P_CURSOR,
    P_LAST,
    P_STREAM,
    Q_NEXTS,
    Q_OPENS,
    Q_ROWS,
    Q_SEEKS,
    Q_WORK,
    ROOM,
    S_CAPACITY,
    S_COUNT,
)

ALIGN_MATCH = 1
ALIGN_END = 0
ALIGN_LOG_FULL = 2


@part(_nrt=False, forceinline=True)
def has_room(plan, log, row):
    """Whether the depth's logs take one more step."""
    if plan[row + E_LOG] < 0:
        return True
    nodes = plan[row + E_LOG]
    if log[nodes + L_COUNT] + ROOM > log[nodes + L_CAPACITY]:
        return False
    first = plan[row + E_STREAM]
    for place in range(first, first + plan[row + E_STREAMS]):
        stream = plan[plan[place] + P_STREAM]
        if log[stream + S_COUNT] + ROOM > log[stream + S_CAPACITY]:
            return False
    return True


@part(_nrt=False, forceinline=True)
def close_node(plan, state, log, row):
    """Write the records that are still growing."""
    first = plan[row + E_STREAM]
    for place in range(first, first + plan[row + E_STREAMS]):
        flush(plan, state, log, row, plan[place])


@part(_nrt=False, forceinline=True)
def open_node(plan, state, indexes, log, row, low, high):
    """Open all participants and land them on their first key >= low; False: the node has no match."""
    node = plan[row + E_NODE]
    state[node + N_HIGH] = high
    state[node + N_LOGGED] = 0
    first = plan[row + E_STREAM]
    for place in range(first, first + plan[row + E_STREAMS]):
        state[plan[plan[place] + P_CURSOR] + C_PENDING] = 0
    if low > high:
        return False
    first = plan[row + E_FIRST]
    for place in range(first, first + plan[row + E_PARTICIPANTS]):
        participant = plan[place]
        open_cursor(plan, state, indexes, participant)
        state[Q_OPENS] += 1
        landed = land(plan, state, indexes, participant, low, np.int64(0))
        extend(plan, state, log, row, participant, low, state[plan[participant + P_CURSOR] + C_KEY], False)
        if not landed:
            return False
    first = plan[row + E_NEGATION]
    for place in range(first, first + plan[row + E_NEGATIONS]):
        open_cursor(plan, state, indexes, plan[place])
    return True


@part(_nrt=False, forceinline=True)
def align(plan, state, indexes, log, row):
    """Leapfrog search (LFTJ section 3.1) from the keys landed on: an ALIGN_*; at a match all have one key."""
    gap = plan[G_GAP]
    first = plan[row + E_FIRST]
    last = first + plan[row + E_PARTICIPANTS]
    high = state[plan[row + E_NODE] + N_HIGH]
    greatest = KEY_MIN
    for place in range(first, last):
        greatest = max(greatest, state[plan[plan[place] + P_CURSOR] + C_KEY])
    agreed = False
    while not agreed:
        agreed = True
        for place in range(first, last):
            participant = plan[place]
            cursor = plan[participant + P_CURSOR]
            if greatest > high:
                return ALIGN_END
            if state[cursor + C_KEY] < greatest:
                if not has_room(plan, log, row):
                    return ALIGN_LOG_FULL
                state[Q_SEEKS] += 1
                state[Q_WORK] += 1
                landed = land(plan, state, indexes, participant, greatest, gap)
                near = state[cursor + C_SKIPPED] <= gap
                key = state[cursor + C_KEY]
                extend(plan, state, log, row, participant, greatest, key, near)
                if not landed:
                    return ALIGN_END
                if key > greatest:
                    greatest = key
                    agreed = False
    return ALIGN_MATCH if greatest <= high else ALIGN_END


@part(_nrt=False)
def accept(plan, state, indexes, log, row, key):
    """Whether the conditions and the negated atoms that are complete here let the key pass.

    Negated atoms with deeper levels are bound on the way.
    """
    if plan[row + E_FILTERS]:
        condition, count = plan[row + E_CONDITION], plan[row + E_CONDITIONS]
        if not filters_hold(plan, state, plan[G_KEYS], condition, count, key):
            return False
    first = plan[row + E_NEGATION]
    for place in range(first, first + plan[row + E_NEGATIONS]):
        negation = plan[place]
        state[Q_SEEKS] += 1
        held = holds(plan, state, indexes, negation, key)
        if plan[negation + P_LAST]:
            extend(plan, state, log, row, negation, key, key, False)
            if held:
                return False
        elif not held:
            hide_branch(plan, state, indexes, negation)
    return True


@part(_nrt=False, forceinline=True)
def step(plan, state, indexes, log, row):
    """After a match, move the first participant on; False: it has no further key."""
    if plan[row + E_PARTICIPANTS] == 0:
        return False
    participant = plan[plan[row + E_FIRST]]
    cursor = plan[participant + P_CURSOR]
    key = state[cursor + C_KEY]
    state[Q_NEXTS] += 1
    state[Q_WORK] += 1
    if key >= state[plan[row + E_NODE] + N_HIGH]:
        return False
    landed = land(plan, state, indexes, participant, key + 1, np.int64(0))
    extend(plan, state, log, row, participant, key + 1, state[cursor + C_KEY], False)
    return landed


@part(_nrt=False, forceinline=True)
def emit(plan, state, rows):
    """Write the whole binding as a row; the caller sees to room."""
    at = state[Q_ROWS]
    for depth in range(plan[G_DEPTHS]):
        rows[depth, at] = state[plan[G_KEYS] + depth]
    state[Q_ROWS] = at + 1
