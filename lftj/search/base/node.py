"""One node of the search: open it and bind its matches; :mod:`lftj.search.base.block` finds them.

A node (docs/design/engine.md section 1) is the leapfrog join of its participants.  It works
in blocks: a bounded number of the *leader's* keys is tried against all others
and the matches, with the positions that deeper levels need, go to the depth's
lists.  So the inner loops are tight, the search can stop between any two
blocks, and an existence test can start with blocks of one key.

The leader is the shortest range, so a node costs O(shortest * log) as the
worst-case bound needs (LFTJ section 3).  Participants that stay fixed while the
depth before varies are a *stage* (:mod:`lftj.search.base.stage`), intersected once.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels are typed by numba from their arguments; lftj.search.base.layout gives every field.

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.base.block import filter_matches
from lftj.search.base.iterators import child_range, find
from lftj.search.base.layout import (
    D_BLOCK,
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
    D_STAGES,
    F_COLUMN,
    F_INNER,
    F_OFFSETS,
    F_PARENT,
    FACTOR_FIELDS,
    H_DEPTHS,
    H_FACTORS,
    H_KEYS,
    H_N_FACTORS,
    H_SPLIT,
    I_CURSOR,
    I_LAST,
    I_PATCH,
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
    N_STAMP,
    N_WEIGHT,
    OPENS,
    P_AT,
    P_END,
    P_LIST,
    P_PART,
    P_POSITION,
    R_HIGH,
    R_LOW,
    R_STAMP,
    R_WORK,
    S_COVERED,
    S_MARKS,
    S_STATE,
    SEEKS,
    T_FROM,
    T_LIST,
    T_TO,
)
from lftj.search.base.stage import MARKS_RATIO, current_stage, rent_stage
from lftj.search.conditions import condition_bounds
from lftj.storage.patch import PA_COUNTS, PA_LEVELS, PATCH_FIELDS, table_row
from lftj.storage.seek import gallop


@part(forceinline=True)
def bounds(plan, state, depth, row):
    """Closed range of keys that the conditions and the thread's share allow; (1, 0) when empty."""
    first, count = plan.ctypes.data + 8 * plan[row + D_CONDITION], plan[row + D_CONDITIONS]
    keys = state.ctypes.data + 8 * plan[H_KEYS]
    if plan[H_SPLIT] == depth:
        return condition_bounds(keys, first, count, state[R_LOW], state[R_HIGH])
    return condition_bounds(keys, first, count, KEY_MIN, KEY_MAX)


@part(forceinline=True)
def open_node(plan, state, depth, row):
    """Set the cursors of all participants below the present binding and choose the leader."""
    node = plan[row + D_NODE]
    state[node + N_MATCHES] = 0
    state[node + N_NEXT] = 0
    state[node + N_POSITION] = 0
    state[node + N_END] = 0
    state[node + N_BLOCK] = plan[row + D_BLOCK]
    if depth + 1 == plan[H_DEPTHS]:
        state[node + N_WEIGHT] = outer_weight(plan, state)
    low, high = bounds(plan, state, depth, row)
    if low > high:
        return
    first = plan[row + D_FIRST]
    count = plan[row + D_PARTICIPANTS]
    if count == 0:  # bound by an equality alone
        if low == high:
            state[plan[row + D_SLOT]] = low
            state[node + N_MATCHES] = 1
            filter_matches(plan, state, row)
        return
    limited = low != KEY_MIN or high != KEY_MAX
    stages = plan[row + D_STAGES]
    stage = current_stage(plan, state, row) if stages else np.int64(-1)
    while True:
        covered = plan[stage + S_COVERED] if stage >= 0 else np.int64(0)
        leader = np.int64(-1)
        length = KEY_MAX
        for place in range(first + covered, first + count):
            iterator = plan[place]
            start, end = child_range(plan, state, iterator)
            if limited:
                keys = view(state[plan[iterator + I_CURSOR] + P_LIST], end)
                if low != KEY_MIN:
                    start = find(plan, iterator, keys, start, end, low)
                if high != KEY_MAX:
                    end = find(plan, iterator, keys, start, end, high + 1)
            cursor = plan[iterator + I_CURSOR]
            state[cursor + P_POSITION] = start
            state[cursor + P_END] = end
            if end - start < length:
                length = end - start
                leader = iterator
        if stages == 0 or leader < 0 or length == 0:
            break
        renewed = rent_stage(plan, state, row, stage, length)
        if renewed == stage:
            break
        stage = renewed
    opened = count - covered
    state[node + N_STAGE] = stage
    if stage >= 0:
        opened += 1
        cached = plan[stage + S_STATE]
        start, end = state[cached + T_FROM], state[cached + T_TO]
        if limited:
            keys = view(state[cached + T_LIST], end)
            if low != KEY_MIN:
                start = gallop(keys, start, end, low)
            if high != KEY_MAX:
                end = gallop(keys, start, end, high + 1)
        state[node + N_STAGE_POSITION] = start
        ratio = MARKS_RATIO if plan[stage + S_MARKS] >= 0 else 1
        if leader < 0 or (end - start) * ratio < length:
            leader = np.int64(-1)
            state[node + N_LIST] = state[cached + T_LIST]
            state[node + N_POSITION] = start
            state[node + N_END] = end
        if end == start:  # nothing below: no block will be tried
            length = 0
    if leader >= 0:
        cursor = plan[leader + I_CURSOR]
        state[node + N_LIST] = state[cursor + P_LIST]
        state[node + N_POSITION] = state[cursor + P_POSITION]
        state[node + N_END] = state[cursor + P_END] if length > 0 else state[cursor + P_POSITION]
    state[node + N_LEADER] = leader
    counters = plan[row + D_COUNTERS]
    state[counters + OPENS] += opened
    if limited:
        state[counters + SEEKS] += opened
    state[R_WORK] += opened


@part(forceinline=True)
def all_match(plan, state, row):
    """Whether every key that the node has left is a match: one participant, nothing that drops matches."""
    node = plan[row + D_NODE]
    return (
        plan[row + D_PARTICIPANTS] == 1
        and plan[row + D_FILTERS] == 0
        and state[node + N_LEADER] >= 0
        and plan[state[node + N_LEADER] + I_SLOT] < 0
    )


@part(forceinline=True)
def outer_weight(plan, state):
    """Product of the multiplicities that are bound before the last walked depth; -1: overflow."""
    weight = np.int64(1)
    factor = plan[H_FACTORS]
    for _ in range(plan[H_N_FACTORS]):
        if plan[factor + F_INNER] == 0:
            cursor = plan[plan[factor + F_PARENT] + I_CURSOR]
            weight = times_multiplicity(plan, state, factor, state[cursor + P_AT], weight)
        factor += FACTOR_FIELDS
    return weight


@part
def patched_rows(plan, state, factor, position):
    """Rows at ``position`` of a factor's parent whose index has a patch."""
    parent = plan[factor + F_PARENT]
    level = view(plan[parent + I_PATCH], PATCH_FIELDS)
    row, position = table_row(level, state[plan[parent + I_CURSOR] + P_PART], position)
    if row >= 0:
        place = row * level[PA_LEVELS] + plan[factor + F_COLUMN]
        return view(level[PA_COUNTS], place + 1)[place]
    offsets = view(plan[factor + F_OFFSETS], position + 2)
    return offsets[position + 1] - offsets[position]


@part
def times_multiplicity(plan, state, factor, position, weight):
    """``weight`` times the rows at ``position`` of the factor's parent; -1 for overflow, which stays."""
    if plan[plan[factor + F_PARENT] + I_PATCH]:
        rows = patched_rows(plan, state, factor, position)
    else:
        offsets = view(plan[factor + F_OFFSETS], position + 2)
        rows = offsets[position + 1] - offsets[position]
    if weight < 0 or weight > KEY_MAX // rows:
        return np.int64(-1)
    return weight * rows


@part(forceinline=True)
def bind(plan, state, depth, row):
    """Bind the node's next match: its key, its participants' positions, its negations' branches."""
    node = plan[row + D_NODE]
    match = state[node + N_NEXT]
    state[node + N_NEXT] = match + 1
    key = state[plan[row + D_SLOT] + match]
    state[plan[H_KEYS] + depth] = key
    state[R_STAMP] += 1
    state[node + N_STAMP] = state[R_STAMP]
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        iterator = plan[place]
        if plan[iterator + I_SLOT] >= 0:
            state[plan[iterator + I_CURSOR] + P_AT] = state[plan[iterator + I_SLOT] + match]
    first = plan[row + D_NEGATION]
    for place in range(first, first + plan[row + D_NEGATIONS]):
        iterator = plan[place]
        if not plan[iterator + I_LAST]:
            start, end = child_range(plan, state, iterator)
            keys = view(state[plan[iterator + I_CURSOR] + P_LIST], end)
            position = find(plan, iterator, keys, start, end, key)
            state[plan[row + D_COUNTERS] + SEEKS] += 1
            held = position < end and keys[position] == key
            state[plan[iterator + I_CURSOR] + P_AT] = position if held else np.int64(-1)
