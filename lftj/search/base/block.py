"""One block of a node: a bounded number of the leader's keys, tried against all other participants.

How a block is intersected is chosen per node:

* a stage that is marked (:mod:`lftj.search.base.stage`) and nothing else: one load per key;
* two ranges of similar length are merged;
* everything else is a leapfrog that the leader leads: others are galloped, or
  looked up where level 0 has a rank table.

Then conditions and negated atoms that are complete here drop matches.

Invariants: lists hold matches in increasing key order; a cursor never moves
back within a node; ranges are half-open.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.search.base.iterators import child_range, find
from lftj.search.base.layout import (
    BLOCK,
    D_CONDITION,
    D_CONDITIONS,
    D_COUNTERS,
    D_FILTERS,
    D_FIRST,
    D_NEGATION,
    D_NEGATIONS,
    D_NODE,
    D_PARTICIPANTS,
    D_SLOT,
    FILTERS_KEYS,
    H_KEYS,
    I_CURSOR,
    I_LAST,
    I_RANKS,
    I_SLOT,
    N_BLOCK,
    N_END,
    N_LEADER,
    N_LIST,
    N_MATCHES,
    N_NEXT,
    N_POSITION,
    N_STAGE,
    N_STAGE_POSITION,
    NEXTS,
    P_END,
    P_LIST,
    P_POSITION,
    R_WORK,
    S_BASE,
    S_COVERED,
    S_MARKS,
    S_STATE,
    SEEKS,
    T_LIST,
    T_TO,
)
from lftj.search.conditions import (
    CONDITION,
    OP_AT_MOST,
    OP_DIFFERS,
    compared_with,
    condition_at,
    filter_holds,
)
from lftj.search.marks import intersect_marked, marked
from lftj.storage.seek import MERGE_RATIO, gallop


@part(forceinline=True)
def fill_block(plan, state, row):
    """Try up to N_BLOCK leader keys; put the matches into the depth's lists, N_MATCHES of them.

    Moves N_POSITION; the node is exhausted when N_POSITION == N_END.
    """
    node = plan[row + D_NODE]
    block = state[node + N_BLOCK]
    state[node + N_BLOCK] = min(4 * block, BLOCK)
    leader, stage = state[node + N_LEADER], state[node + N_STAGE]
    start, end = state[node + N_POSITION], state[node + N_END]
    stop = min(end, start + block)
    keys = view(state[node + N_LIST], end)
    slot = plan[row + D_SLOT]
    first = plan[row + D_FIRST] + (plan[stage + S_COVERED] if stage >= 0 else 0)
    last = plan[row + D_FIRST] + plan[row + D_PARTICIPANTS]
    others = last - first - (1 if leader >= 0 else 0)
    test_stage = stage >= 0 and leader >= 0
    positions = plan[leader + I_SLOT] if leader >= 0 else np.int64(-1)
    found = np.int64(0)
    seeks = np.int64(0)
    if others == 0 and not test_stage:
        found = stop - start
        for match in range(found):
            state[slot + match] = keys[start + match]
        if positions >= 0:
            for match in range(found):
                state[positions + match] = start + match
        reached = stop
    elif others == 0 and positions < 0 and plan[stage + S_MARKS] >= 0:
        marks, base = plan[stage + S_MARKS], plan[stage + S_BASE]
        found = intersect_marked(keys, start, stop, state, marks, base, state, slot)
        seeks = stop - start
        reached = stop
    else:
        other = merged_with(plan, state, first, last, leader, end - start) if positions < 0 else np.int64(-1)
        if other >= 0 and not test_stage:
            cursor = plan[other + I_CURSOR]
            before = state[cursor + P_POSITION]
            found, reached = merge_block(plan, state, keys, start, stop, other, slot)
            seeks = state[cursor + P_POSITION] - before
            if state[cursor + P_POSITION] == state[cursor + P_END]:
                state[node + N_END] = reached
        else:
            found, reached, seeks = leapfrog_block(plan, state, row, start, stop, first, last)
    state[node + N_POSITION] = reached
    state[node + N_NEXT] = 0
    state[node + N_MATCHES] = found
    counters = plan[row + D_COUNTERS]
    state[counters + NEXTS] += reached - start
    state[counters + SEEKS] += seeks
    state[R_WORK] += reached - start + seeks
    if found and plan[row + D_FILTERS]:
        filter_matches(plan, state, row)


@part(forceinline=True)
def merged_with(plan, state, first, last, leader, length):
    """The one other participant when merging with it pays, else -1."""
    other = np.int64(-1)
    for place in range(first, last):
        if plan[place] != leader:
            if other >= 0:
                return np.int64(-1)
            other = plan[place]
    if other < 0 or plan[other + I_SLOT] >= 0 or plan[other + I_RANKS] != 0:
        return np.int64(-1)
    cursor = plan[other + I_CURSOR]
    if state[cursor + P_END] - state[cursor + P_POSITION] > MERGE_RATIO * length:
        return np.int64(-1)
    return other


@part
def merge_block(plan, state, keys, start, stop, other, slot):
    """Merge keys[start:stop] with the range of one other participant, whose cursor moves.

    Returns the number of matches, and the first leader key that was not passed.
    """
    cursor = plan[other + I_CURSOR]
    position, end = state[cursor + P_POSITION], state[cursor + P_END]
    others = view(state[cursor + P_LIST], end)
    found = slot
    while start < stop and position < end:
        key, landed = keys[start], others[position]
        state[found] = key
        found += key == landed
        start += key <= landed
        position += landed <= key
    state[cursor + P_POSITION] = position
    return found - slot, start


@part
def leapfrog_block(plan, state, row, start, stop, first, last):
    """Leapfrog search (LFTJ section 3.1) led by one list, for any number and kind of participants.

    ``first`` .. ``last``: the places in the plan of the participants that take part beside the stage.
    Returns matches, the next leader position (N_END when some participant ended), and seeks.
    """
    node = plan[row + D_NODE]
    slot = plan[row + D_SLOT]
    leader, stage = state[node + N_LEADER], state[node + N_STAGE]
    end = state[node + N_END]
    keys = view(state[node + N_LIST], end)
    positions = plan[leader + I_SLOT] if leader >= 0 else np.int64(-1)
    test_stage = stage >= 0 and leader >= 0
    marks = plan[stage + S_MARKS] if test_stage else np.int64(-1)
    base = plan[stage + S_BASE] if test_stage else np.int64(0)
    found = np.int64(0)
    seeks = np.int64(0)
    while start < stop:
        key = keys[start]
        agreed = True
        if test_stage:
            seeks += 1
            if marks >= 0:
                if not marked(state, marks, base, key):
                    start += 1
                    continue
            else:
                cached = plan[stage + S_STATE]
                stage_end = state[cached + T_TO]
                stage_keys = view(state[cached + T_LIST], stage_end)
                position = gallop(stage_keys, state[node + N_STAGE_POSITION], stage_end, key)
                state[node + N_STAGE_POSITION] = position
                if position == stage_end:
                    return found, end, seeks
                if stage_keys[position] != key:
                    start = gallop(keys, start + 1, end, stage_keys[position])
                    continue
        for place in range(first, last):
            iterator = plan[place]
            if iterator == leader:
                continue
            seeks += 1
            cursor = plan[iterator + I_CURSOR]
            other_end = state[cursor + P_END]
            others = view(state[cursor + P_LIST], other_end)
            position = find(plan, iterator, others, state[cursor + P_POSITION], other_end, key)
            state[cursor + P_POSITION] = position
            if position == other_end:
                return found, end, seeks
            if others[position] != key:
                start = gallop(keys, start + 1, end, others[position])
                agreed = False
                break
            if plan[iterator + I_SLOT] >= 0:
                state[plan[iterator + I_SLOT] + found] = position
        if agreed:
            state[slot + found] = key
            if positions >= 0:
                state[positions + found] = start
            found += 1
            start += 1
    return found, start, seeks


@part
def filter_matches(plan, state, row):
    """Drop the matches that a condition or a negated atom, fully bound here, refuses."""
    for number in range(plan[row + D_CONDITIONS]):
        condition = condition_at(plan.ctypes.data + 8 * plan[row + D_CONDITION] + number * CONDITION)
        if condition.operator > OP_AT_MOST:
            filter_condition(plan, state, row, condition)
    first = plan[row + D_NEGATION]
    for place in range(first, first + plan[row + D_NEGATIONS]):
        if plan[plan[place] + I_LAST]:
            filter_negation(plan, state, row, plan[place])


@part
def keep_match(plan, state, row, source, target):
    """Move a match, with its positions, to an earlier place of the lists."""
    slot = plan[row + D_SLOT]
    state[slot + target] = state[slot + source]
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        slot = plan[plan[place] + I_SLOT]
        if slot >= 0:
            state[slot + target] = state[slot + source]


@part
def filter_condition(plan, state, row, condition):
    """Keep the matches for which one filter condition holds."""
    node = plan[row + D_NODE]
    slot = plan[row + D_SLOT]
    matches = state[node + N_MATCHES]
    kept = np.int64(0)
    keys = state.ctypes.data + 8 * plan[H_KEYS]
    if condition.operator == OP_DIFFERS and plan[row + D_FILTERS] == FILTERS_KEYS:
        refused = compared_with(keys, condition)
        for match in range(matches):
            key = state[slot + match]
            state[slot + kept] = key
            kept += key != refused
    else:
        for match in range(matches):
            if filter_holds(keys, condition, state[slot + match]):
                if kept != match:
                    keep_match(plan, state, row, match, kept)
                kept += 1
    state[node + N_MATCHES] = kept


@part
def filter_negation(plan, state, row, iterator):
    """Drop the matches that a negated atom holds, whose last variable is bound here."""
    start, end = child_range(plan, state, iterator)
    if start == end:
        return
    others = view(state[plan[iterator + I_CURSOR] + P_LIST], end)
    node = plan[row + D_NODE]
    slot = plan[row + D_SLOT]
    matches = state[node + N_MATCHES]
    state[plan[row + D_COUNTERS] + SEEKS] += matches
    state[R_WORK] += matches
    kept = np.int64(0)
    only_keys = plan[row + D_FILTERS] == FILTERS_KEYS
    for match in range(matches):
        key = state[slot + match]
        start = find(plan, iterator, others, start, end, key)
        if only_keys:
            state[slot + kept] = key
            kept += start == end or others[start] != key
        elif start == end or others[start] != key:
            if kept != match:
                keep_match(plan, state, row, match, kept)
            kept += 1
    state[node + N_MATCHES] = kept
