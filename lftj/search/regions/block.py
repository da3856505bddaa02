"""A node before the last depth in blocks: only the base has tuples there, and nothing is recorded.

A bounded number of the *leader's* keys, those of the shortest range, is intersected with each other
participant in turn; the matches wait in the depth's list.  They are those that
:mod:`lftj.search.regions.node` gives one by one, and the two agree on what a cursor says of a bound key.

Invariants

1. P_POSITION of no participant is beyond the next match: a participant that something hangs below is
   led on to a match when that is bound.
2. N_POSITION is the first of the leader's keys that is not tried yet.
3. Blocks begin small and grow, so a node of which little is needed costs little.

Cost of a node: the shortest range, times the logarithm of the others' lengths at most.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view, view32
from lftj.search.layout import (
    D_FIRST,
    D_NODE,
    D_PARTICIPANTS,
    D_SLOT,
    D_STREAMS,
    I_CURSOR,
    I_INDEX,
    I_LAST,
    I_LEVEL,
    I_PARENT,
    N_BLOCK,
    N_LEADER,
    N_LOGGED,
    N_MATCHES,
    N_NEXT,
    N_POSITION,
    OPENS,
    P_ACTIVE,
    P_AT,
    P_END,
    P_LIST,
    P_POSITION,
    R_COUNTERS,
    R_WORK,
    SEEKS,
    SHORT_BLOCK,
)
from lftj.search.regions.cursor import DESCRIPTION, beyond, open_cursor
from lftj.search.regions.node import open_negations
from lftj.search.regions.plain import intersect
from lftj.storage.seek import gallop
from lftj.storage.version_memory import X_BASE, X_RANKS, X_RUNS, X_SPREAD

FIRST_BLOCK = 8
"""Leader keys that a node tries first."""


@part(forceinline=True)
def may_block(plan, state, indexes, row):
    """Whether a node that is to be opened can go in blocks."""
    if plan[row + D_SLOT] == 0 or plan[row + D_STREAMS]:
        return False
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        parent = plan[plan[place] + I_PARENT]
        if parent < 0:
            if view(indexes[plan[plan[place] + I_INDEX]], DESCRIPTION)[X_RUNS]:
                return False
        else:
            above = plan[parent + I_CURSOR]
            if state[above + P_ACTIVE] or state[above + P_AT] < 0:
                return False
    return True


@part(forceinline=True)
def goes_in_blocks(plan, state, row):
    """Whether the open node does."""
    return plan[row + D_SLOT] != 0 and state[plan[row + D_NODE] + N_LEADER] >= 0


@part(forceinline=True)
def open_block(plan, state, indexes, row, low, high):
    """Open all participants on their keys in [low, high] and choose the leader; False: there is no match."""
    node = plan[row + D_NODE]
    state[node + N_LOGGED] = 0
    state[node + N_MATCHES] = 0
    state[node + N_NEXT] = 0
    state[node + N_BLOCK] = FIRST_BLOCK
    if low > high:
        return False
    length = KEY_MAX
    first, count = plan[row + D_FIRST], plan[row + D_PARTICIPANTS]
    for place in range(first, first + count):
        participant = plan[place]
        open_cursor(plan, state, indexes, participant)
        cursor = plan[participant + I_CURSOR]
        start, end = state[cursor + P_POSITION], state[cursor + P_END]
        keys = view(state[cursor + P_LIST], end)
        if low != KEY_MIN:
            start = beyond(plan, indexes, participant, keys, start, end, low)
            state[cursor + P_POSITION] = start
        if high != KEY_MAX:
            end = beyond(plan, indexes, participant, keys, start, end, high + 1)
            state[cursor + P_END] = end
        if end - start < length:
            length = end - start
            state[node + N_LEADER] = participant
            state[node + N_POSITION] = start
    state[R_COUNTERS + OPENS] += count
    open_negations(plan, state, indexes, row)
    return length > 0


@part(forceinline=True)
def has_match(plan, state, row):
    """Whether a match waits in the depth's list."""
    node = plan[row + D_NODE]
    return state[node + N_NEXT] < state[node + N_MATCHES]


@part(forceinline=True)
def has_keys(plan, state, row):
    """Whether the leader has keys that are not tried yet."""
    node = plan[row + D_NODE]
    return state[node + N_POSITION] < state[plan[state[node + N_LEADER] + I_CURSOR] + P_END]


@part(forceinline=True)
def bind_match(plan, state, indexes, row):
    """Land what has branches below on the next match, which is returned."""
    node = plan[row + D_NODE]
    match = state[node + N_NEXT]
    state[node + N_NEXT] = match + 1
    key = state[plan[row + D_SLOT] + match]
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        participant = plan[place]
        if plan[participant + I_LAST] == 0:
            state[plan[participant + I_CURSOR] + P_AT] = led_to(plan, state, indexes, participant, key)
    return key


@part(forceinline=True)
def led_to(plan, state, indexes, participant, key):
    """Lead a participant, which is at a key, on to its first that is not below ``key``; its position."""
    cursor = plan[participant + I_CURSOR]
    position, end = state[cursor + P_POSITION], state[cursor + P_END]
    keys = view(state[cursor + P_LIST], end)
    if keys[position] < key:
        position = beyond(plan, indexes, participant, keys, position, end, key)
        state[cursor + P_POSITION] = position
    return position


@part
def lead_on(plan, state, indexes, row):
    """Move all others to the leader's next key, and it to theirs; False: there is no match left."""
    node = plan[row + D_NODE]
    leader = state[node + N_LEADER]
    start, end = state[node + N_POSITION], state[plan[leader + I_CURSOR] + P_END]
    keys = view(state[plan[leader + I_CURSOR] + P_LIST], end)
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        participant = plan[place]
        if participant != leader:
            cursor = plan[participant + I_CURSOR]
            position, stop = led_to(plan, state, indexes, participant, keys[start]), state[cursor + P_END]
            if position == stop:
                return False
            key = view(state[cursor + P_LIST], stop)[position]
            if key > keys[start]:
                start = gallop(keys, start + 1, end, key)
                if start == end:
                    return False
    state[node + N_POSITION] = start
    return True


@part
def fill_block(plan, state, indexes, row):
    """Try up to N_BLOCK of the leader's keys; the matches go to the depth's list."""
    node = plan[row + D_NODE]
    leader = state[node + N_LEADER]
    cursor = plan[leader + I_CURSOR]
    end = state[cursor + P_END]
    state[node + N_NEXT] = 0
    state[node + N_MATCHES] = 0
    if not lead_on(plan, state, indexes, row):
        state[node + N_POSITION] = end
        return
    start = state[node + N_POSITION]
    stop = min(end, start + state[node + N_BLOCK])
    state[node + N_BLOCK] = min(4 * state[node + N_BLOCK], SHORT_BLOCK)
    state[node + N_POSITION] = stop
    state[cursor + P_POSITION] = start
    keys = view(state[cursor + P_LIST], end)
    highest = keys[stop - 1]
    work = stop - start
    slot = plan[row + D_SLOT]
    low, to = start, stop
    first, count = plan[row + D_FIRST], plan[row + D_PARTICIPANTS]
    if count == 1:
        for place in range(start, stop):
            state[slot + place - start] = keys[place]
        low, to = slot, slot + work
    for place in range(first, first + count):
        participant = plan[place]
        if participant != leader and low < to:
            index = view(indexes[plan[participant + I_INDEX]], DESCRIPTION)
            other = plan[participant + I_CURSOR]
            position, other_end = state[other + P_POSITION], state[other + P_END]
            others = view(state[other + P_LIST], other_end)
            if plan[participant + I_LEVEL] == 0 and index[X_RANKS]:
                work += to - low
                found = intersect_ranked(
                    keys, low, to, index[X_RANKS], index[X_BASE], index[X_SPREAD], state, slot
                )
            else:
                if others[other_end - 1] > highest:
                    other_end = gallop(others, position, other_end, highest + 1)
                work += min(to - low, other_end - position)
                found = intersect(keys, low, to, others, position, other_end, state, slot)
            keys, low, to = state, slot, slot + found
    state[node + N_MATCHES] = to - low
    state[R_COUNTERS + SEEKS] += work
    state[R_WORK] += work


@part
def intersect_ranked(keys, start, end, ranks, base, spread, out, at):
    """List those of keys[start:end] that a level with a rank table has at ``out[at:]``; return how many.

    ``keys[start:end]`` may be ``out[at:]`` itself: it is never written ahead of what is read.
    """
    table = view32(ranks, spread + 1)
    found = at
    for place in range(start, end):
        key = keys[place]
        out[found] = key
        if base <= key and np.uint64(key) - np.uint64(base) < np.uint64(spread):
            rank = np.uint64(key) - np.uint64(base)
            found += table[rank + np.uint64(1)] > table[rank]
    return found - at
