"""The innermost node in one loop, under a prefix where only the base has tuples.

A node is *plain* if it is one of the last depth, no participant has tuples of runs and nothing
drops matches.  One participant is listed.  Where none records, any number is intersected; where
one does, two are merged (:mod:`lftj.search.regions.pair`).  The matches are those that
:mod:`lftj.search.regions.node` gives, and records cover at least as much.

Cost of a node: the shortest range, times the logarithm of the others' lengths at most.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.layout import (
    D_FIRST,
    D_MERGES,
    D_NODE,
    D_PARTICIPANTS,
    D_STREAMS,
    H_DEPTHS,
    I_CURSOR,
    I_DEPTH,
    I_PARENT,
    I_STREAM,
    N_HIGH,
    N_LOGGED,
    N_TURN,
    NEXTS,
    OPENS,
    P_ACTIVE,
    P_AT,
    P_END,
    P_FROM,
    P_KEY,
    P_LIST,
    P_MARKED,
    P_PENDING,
    P_POSITION,
    P_STOP,
    P_TO,
    R_COUNTERS,
    R_MARKED,
    R_MARKED_FROM,
    R_MARKED_TO,
    R_MARKS,
    R_MARKS_BASE,
    R_MARKS_WORDS,
    R_ROWS,
    R_WORK,
    SEEKS,
    STATUS_DONE,
    STATUS_FULL,
)
from lftj.search.marks import clear_marks, intersect_marked, set_marks
from lftj.search.regions.cursor import open_base
from lftj.search.regions.node import repeat_prefix
from lftj.search.regions.pair import merge_pair
from lftj.storage.seek import MERGE_RATIO, gallop, upper_bound


@part(forceinline=True)
def may_be_plain(plan, row):
    """Whether the depth's nodes are plain where no participant has tuples of runs."""
    if not plan[row + D_MERGES]:
        return False
    return plan[row + D_PARTICIPANTS] <= 2 or plan[row + D_STREAMS] == 0


@part(forceinline=True)
def is_plain(plan, state, row):
    """Whether the node, all of whose participants are open, is plain."""
    if not may_be_plain(plan, row):
        return False
    first = plan[row + D_FIRST]
    active = np.int64(0)
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        active += state[plan[plan[place] + I_CURSOR] + P_ACTIVE]
    return active == 0


@part(forceinline=True)
def open_plain(plan, state, indexes, row):
    """Open a plain node without bounds below others; False, and nothing done, if it is none."""
    if not may_be_plain(plan, row):
        return False
    first = plan[row + D_FIRST]
    last = first + plan[row + D_PARTICIPANTS]
    for place in range(first, last):
        parent = plan[plan[place] + I_PARENT]
        if parent < 0:
            return False
        above = plan[parent + I_CURSOR]
        if state[above + P_ACTIVE] or state[above + P_AT] < 0:
            return False
    for place in range(first, last):
        open_base(plan, state, indexes, plan[place])
        cursor = plan[plan[place] + I_CURSOR]
        state[cursor + P_FROM] = KEY_MIN
        state[cursor + P_PENDING] = plan[plan[place] + I_STREAM] >= 0
    node = plan[row + D_NODE]
    state[node + N_HIGH] = KEY_MAX
    state[node + N_LOGGED] = 0
    state[node + N_TURN] = 0
    state[R_COUNTERS + OPENS] += last - first
    return True


@part(forceinline=True)
def list_plain(plan, state, log, row, rows):
    """Write the matches of a plain node, from where its participants stand; a STATUS_*."""
    if plan[row + D_PARTICIPANTS] == 2 and plan[row + D_STREAMS]:
        return merge_pair(plan, state, log, row, rows)
    if plan[row + D_PARTICIPANTS] == 1:
        return list_one(plan, state, row, rows)
    return list_common(plan, state, row, rows)


@part
def range_below(state, cursor, high):
    """Half-open range of the keys up to ``high`` that are ahead of a cursor."""
    start, end = state[cursor + P_POSITION], state[cursor + P_END]
    if high != KEY_MAX:
        end = upper_bound(view(state[cursor + P_LIST], end), start, end, high)
    return start, end


@part
def list_one(plan, state, row, rows):
    """:func:`list_plain` for one participant: its keys."""
    participant = plan[plan[row + D_FIRST]]
    cursor = plan[participant + I_CURSOR]
    start, end = range_below(state, cursor, state[plan[row + D_NODE] + N_HIGH])
    keys = view(state[cursor + P_LIST], state[cursor + P_END])
    at = state[R_ROWS]
    count = min(end - start, rows.shape[1] - at)
    out = rows[plan[H_DEPTHS] - 1]
    for match in range(count):
        out[at + match] = keys[start + match]
    repeat_prefix(plan, state, rows, at, count)
    stop = start + count
    state[cursor + P_POSITION] = stop
    state[cursor + P_KEY] = keys[stop] if stop < state[cursor + P_END] else KEY_MAX
    if state[cursor + P_PENDING]:
        state[cursor + P_TO] = state[cursor + P_KEY]
    state[R_COUNTERS + NEXTS] += count
    state[R_WORK] += count
    return STATUS_DONE if stop == end else STATUS_FULL


@part
def list_common(plan, state, row, rows):
    """:func:`list_plain` where nothing is recorded: the keys of the shortest range that all others hold.

    Each of the others is intersected with what is left, in the rows' last column; those that stay while
    the depth above varies are marked together, where there is a bit map.
    """
    first = plan[row + D_FIRST]
    last = first + plan[row + D_PARTICIPANTS]
    high = state[plan[row + D_NODE] + N_HIGH]
    use_marks = state[R_MARKS] != 0 and mark_fixed(plan, state, row, rows)
    if use_marks and state[R_MARKED] == 0:
        return STATUS_DONE
    leader = np.int64(-1)
    for place in range(first, last):
        if not (use_marks and is_fixed(plan, plan[place])):
            cursor = plan[plan[place] + I_CURSOR]
            start, end = range_below(state, cursor, high)
            state[cursor + P_STOP] = end
            if leader < 0 or end - start < state[leader + P_STOP] - state[leader + P_POSITION]:
                leader = cursor
    return list_shared(plan, state, row, rows, leader, use_marks)


@part
def list_shared(plan, state, row, rows, leader, use_marks):
    """Write the leader's keys up to its P_STOP that all others have up to theirs; a STATUS_*.

    leader: cursor row of the shortest of the ranges.  use_marks: what is fixed is marked instead.
    """
    at = state[R_ROWS]
    start, end = state[leader + P_POSITION], state[leader + P_STOP]
    stop = min(end, start + rows.shape[1] - at)
    out = rows[plan[H_DEPTHS] - 1]
    keys = view(state[leader + P_LIST], end)
    work = stop - start
    state[leader + P_POSITION] = stop
    low, to = start, stop
    if use_marks:
        marks = view(state[R_MARKS], state[R_MARKS_WORDS])
        found = intersect_marked(keys, low, to, marks, np.int64(0), state[R_MARKS_BASE], out, at)
        keys, low, to = out, at, at + found
    first = plan[row + D_FIRST]
    alone = not use_marks
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        other = plan[plan[place] + I_CURSOR]
        if other != leader and not (use_marks and is_fixed(plan, plan[place])):
            other_low, other_to = state[other + P_POSITION], state[other + P_STOP]
            others = view(state[other + P_LIST], other_to)
            work += min(to - low, other_to - other_low)
            found = intersect(keys, low, to, others, other_low, other_to, out, at)
            keys, low, to = out, at, at + found
            alone = False
    if alone:
        for match in range(to - low):
            out[at + match] = keys[low + match]
    repeat_prefix(plan, state, rows, at, to - low)
    state[R_COUNTERS + SEEKS] += work
    state[R_WORK] += work
    return STATUS_DONE if stop == end else STATUS_FULL


@part(forceinline=True)
def is_fixed(plan, participant):
    """Whether a participant of the last depth stays while the depth above varies."""
    parent = plan[participant + I_PARENT]
    return parent < 0 or plan[parent + I_DEPTH] < plan[H_DEPTHS] - 2


@part
def mark_fixed(plan, state, row, rows):
    """Let the bit map hold the keys that all fixed participants share; False: it would not pay."""
    first = plan[row + D_FIRST]
    last = first + plan[row + D_PARTICIPANTS]
    one, shortest = np.int64(-1), np.int64(-1)
    length, others = KEY_MAX, KEY_MAX
    held = state[R_MARKED] >= 0
    for place in range(first, last):
        cursor = plan[plan[place] + I_CURSOR]
        start, end = state[cursor + P_POSITION], state[cursor + P_END]
        if is_fixed(plan, plan[place]):
            one = np.int64(place) if one < 0 else one
            if end - start < length:
                shortest, length = np.int64(place), end - start
            held = held and state[cursor + P_MARKED] == start + 1
        else:
            others = min(others, end - start)
    at = state[R_ROWS]
    if one < 0 or others == KEY_MAX or rows.shape[1] - at < length:
        return False
    if held:
        return state[R_MARKED] == 0 or others <= MERGE_RATIO * state[R_MARKED]
    if others > MERGE_RATIO * length:
        return False
    out = rows[plan[H_DEPTHS] - 1]
    marks, base = view(state[R_MARKS], state[R_MARKS_WORDS]), state[R_MARKS_BASE]
    cursor = plan[plan[one] + I_CURSOR]
    keys = view(state[cursor + P_LIST], state[R_MARKED_TO])
    clear_marks(marks, np.int64(0), base, keys, state[R_MARKED_FROM], state[R_MARKED_TO])
    state[R_MARKED_FROM], state[R_MARKED_TO] = state[cursor + P_POSITION], state[cursor + P_END]
    cursor = plan[plan[shortest] + I_CURSOR]
    low, to = state[cursor + P_POSITION], state[cursor + P_END]
    state[cursor + P_MARKED] = low + 1
    keys = view(state[cursor + P_LIST], to)
    work = to - low
    for place in range(first, last):
        if place != shortest and is_fixed(plan, plan[place]):
            other = plan[plan[place] + I_CURSOR]
            start, end = state[other + P_POSITION], state[other + P_END]
            state[other + P_MARKED] = start + 1
            others_keys = view(state[other + P_LIST], end)
            work += min(to - low, end - start)
            found = intersect(keys, low, to, others_keys, start, end, out, at)
            keys, low, to = out, at, at + found
    set_marks(marks, np.int64(0), base, keys, low, to)
    state[R_MARKED] = to - low
    state[R_WORK] += work
    state[R_COUNTERS + SEEKS] += work
    return state[R_MARKED] == 0 or others <= MERGE_RATIO * state[R_MARKED]


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
