"""One node of the search: open it, find its matches block by block, bind one.

A node (ENGINE.md section 1) is the leapfrog join of its participants.  It works
in blocks: a bounded number of the *leader's* keys is tried against all others
and the matches, with the positions that deeper levels need, go to the depth's
lists.  So the inner loops are tight, the search can stop between any two
blocks, and an existence test can start with blocks of one key.

How a block is intersected is chosen per node:

* the leader is the shortest range, so a node costs O(shortest * log) as the
  worst-case bound needs (LFTJ section 3);
* participants that stay fixed while the depth before varies are a *stage*
  (:mod:`lftj.stage`): a listed, marked intersection that is made once;
* a seek on level 0 is one look-up where the trie has a rank table;
* two ranges of similar length are merged, others galloped.

Invariants: lists hold matches in increasing key order; a cursor never moves
back within a node; ranges are half-open.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels are typed by numba from their arguments; layout.py gives every field.

from __future__ import annotations

import numpy as np

from lftj.compiled import kernel
from lftj.layout import (
    C_OFFSET,
    C_OPERATOR,
    C_OTHER,
    C_TABLE,
    C_TABLE_LENGTH,
    CONDITION_FIELDS,
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
    F_INNER,
    F_OFFSETS,
    F_PARENT,
    FACTOR_FIELDS,
    FILTERS_KEYS,
    H_DEPTHS,
    H_FACTORS,
    H_KEYS,
    H_N_FACTORS,
    H_SPLIT,
    I_CHILDREN,
    I_CURSOR,
    I_KEYS,
    I_LENGTH,
    I_RANKS,
    I_SLOT,
    KEY_MAX,
    KEY_MIN,
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
    NEXTS,
    OP_AT_LEAST,
    OP_AT_MOST,
    OP_DIFFERS,
    OP_TABLE_AT_MOST,
    OP_TABLE_GREATER,
    OP_TABLE_LESS,
    OPENS,
    P_BOUND,
    P_CURSOR,
    P_END,
    R_SPLIT_HI,
    R_SPLIT_LO,
    R_STAMP,
    R_WORK,
    S_BASE,
    S_COVERED,
    S_MARKS,
    S_STATE,
    SEEKS,
    T_FROM,
    T_LIST,
    T_TO,
)
from lftj.memory import view
from lftj.seek import child_range, find, gallop
from lftj.stage import MARKS_RATIO, current_stage, intersect_marked, marked, rent_stage

BLOCK = 1024
"""Most leader keys tried in one block, and the length of every list of matches."""

MERGE_RATIO = 12
"""Two ranges are merged when the longer has at most this many times the keys of the shorter."""


@kernel(_nrt=False, forceinline=True)
def bounds(plan, state, depth, row):
    """Closed range of keys that the conditions and the thread's share allow; (1, 0) when empty."""
    low, high = KEY_MIN, KEY_MAX
    if plan[H_SPLIT] == depth:
        low, high = state[R_SPLIT_LO], state[R_SPLIT_HI]
    condition = plan[row + D_CONDITION]
    for _ in range(plan[row + D_CONDITIONS]):
        operator = plan[condition + C_OPERATOR]
        if operator <= OP_AT_MOST:
            other = plan[condition + C_OTHER]
            key = state[plan[H_KEYS] + other] if other >= 0 else np.int64(0)
            offset = plan[condition + C_OFFSET]
            limit = key + offset
            if (offset > 0 and key > KEY_MAX - offset) or (offset < 0 and key < KEY_MIN - offset):
                # beyond every key: the bound holds for all of them, or for none
                if (operator == OP_AT_LEAST) == (offset > 0):
                    return np.int64(1), np.int64(0)
            elif operator == OP_AT_LEAST:
                low = max(low, limit)
            else:
                high = min(high, limit)
        condition += CONDITION_FIELDS
    return low, high


@kernel(_nrt=False, forceinline=True)
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
                keys = view(plan[iterator + I_KEYS], end)
                if low != KEY_MIN:
                    start = find(plan, iterator, keys, start, end, low)
                if high != KEY_MAX:
                    end = find(plan, iterator, keys, start, end, high + 1)
            cursor = plan[iterator + I_CURSOR]
            state[cursor + P_CURSOR] = start
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
        state[node + N_LIST] = plan[leader + I_KEYS]
        state[node + N_POSITION] = state[cursor + P_CURSOR]
        state[node + N_END] = state[cursor + P_END] if length > 0 else state[cursor + P_CURSOR]
    state[node + N_LEADER] = leader
    counters = plan[row + D_COUNTERS]
    state[counters + OPENS] += opened
    if limited:
        state[counters + SEEKS] += opened
    state[R_WORK] += opened


@kernel(_nrt=False, forceinline=True)
def all_match(plan, state, row):
    """Whether every key that the node has left is a match: one participant, nothing that drops matches."""
    node = plan[row + D_NODE]
    return (
        plan[row + D_PARTICIPANTS] == 1
        and plan[row + D_FILTERS] == 0
        and state[node + N_LEADER] >= 0
        and plan[state[node + N_LEADER] + I_SLOT] < 0
    )


@kernel(_nrt=False, forceinline=True)
def outer_weight(plan, state):
    """Product of the multiplicities that are bound before the last walked depth; -1: overflow."""
    weight = np.int64(1)
    factor = plan[H_FACTORS]
    for _ in range(plan[H_N_FACTORS]):
        if plan[factor + F_INNER] == 0:
            cursor = plan[plan[factor + F_PARENT] + I_CURSOR]
            weight = times_multiplicity(plan, factor, state[cursor + P_BOUND], weight)
        factor += FACTOR_FIELDS
    return weight


@kernel(_nrt=False)
def times_multiplicity(plan, factor, position, weight):
    """``weight`` times the rows at ``position`` of the factor's parent; -1 for overflow, which stays."""
    offsets = view(plan[factor + F_OFFSETS], plan[plan[factor + F_PARENT] + I_LENGTH] + 1)
    rows = offsets[position + 1] - offsets[position]
    if weight < 0 or weight > KEY_MAX // rows:
        return np.int64(-1)
    return weight * rows


@kernel(_nrt=False, forceinline=True)
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
        found = intersect_marked(keys, start, stop, state, plan[stage + S_MARKS], plan[stage + S_BASE], slot)
        seeks = stop - start
        reached = stop
    else:
        other = merged_with(plan, state, first, last, leader, end - start) if positions < 0 else np.int64(-1)
        if other >= 0 and not test_stage:
            cursor = plan[other + I_CURSOR]
            before = state[cursor + P_CURSOR]
            found, reached = merge_block(plan, state, keys, start, stop, other, slot)
            seeks = state[cursor + P_CURSOR] - before
            if state[cursor + P_CURSOR] == state[cursor + P_END]:
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


@kernel(_nrt=False, forceinline=True)
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
    if state[cursor + P_END] - state[cursor + P_CURSOR] > MERGE_RATIO * length:
        return np.int64(-1)
    return other


@kernel(_nrt=False)
def merge_block(plan, state, keys, start, stop, other, slot):
    """Merge keys[start:stop] with the range of one other participant, whose cursor moves.

    Returns the number of matches, and the first leader key that was not passed.
    """
    cursor = plan[other + I_CURSOR]
    position, end = state[cursor + P_CURSOR], state[cursor + P_END]
    others = view(plan[other + I_KEYS], end)
    found = slot
    while start < stop and position < end:
        key, landed = keys[start], others[position]
        state[found] = key
        found += key == landed
        start += key <= landed
        position += landed <= key
    state[cursor + P_CURSOR] = position
    return found - slot, start


@kernel(_nrt=False)
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
            others = view(plan[iterator + I_KEYS], other_end)
            position = find(plan, iterator, others, state[cursor + P_CURSOR], other_end, key)
            state[cursor + P_CURSOR] = position
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


@kernel(_nrt=False)
def filter_matches(plan, state, row):
    """Drop the matches that a condition or a negated atom, fully bound here, refuses."""
    condition = plan[row + D_CONDITION]
    for _ in range(plan[row + D_CONDITIONS]):
        if plan[condition + C_OPERATOR] > OP_AT_MOST:
            filter_condition(plan, state, row, condition)
        condition += CONDITION_FIELDS
    first = plan[row + D_NEGATION]
    for place in range(first, first + plan[row + D_NEGATIONS]):
        if plan[plan[place] + I_CHILDREN] == 0:
            filter_negation(plan, state, row, plan[place])


@kernel(_nrt=False)
def keep_match(plan, state, row, source, target):
    """Move a match, with its positions, to an earlier place of the lists."""
    slot = plan[row + D_SLOT]
    state[slot + target] = state[slot + source]
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        slot = plan[plan[place] + I_SLOT]
        if slot >= 0:
            state[slot + target] = state[slot + source]


@kernel(_nrt=False)
def condition_holds(plan, state, condition, key):
    """Whether one filter condition holds for a key of its depth."""
    operator = plan[condition + C_OPERATOR]
    other = plan[condition + C_OTHER]
    right = (state[plan[H_KEYS] + other] if other >= 0 else np.int64(0)) + plan[condition + C_OFFSET]
    if operator == OP_DIFFERS:
        return key != right
    table = view(plan[condition + C_TABLE], plan[condition + C_TABLE_LENGTH])
    if operator == OP_TABLE_LESS:
        return table[key] < table[right]
    if operator == OP_TABLE_AT_MOST:
        return table[key] <= table[right]
    if operator == OP_TABLE_GREATER:
        return table[key] > table[right]
    return table[key] >= table[right]


@kernel(_nrt=False)
def filter_condition(plan, state, row, condition):
    """Keep the matches for which one filter condition holds."""
    node = plan[row + D_NODE]
    slot = plan[row + D_SLOT]
    matches = state[node + N_MATCHES]
    kept = np.int64(0)
    if plan[condition + C_OPERATOR] == OP_DIFFERS and plan[row + D_FILTERS] == FILTERS_KEYS:
        other = plan[condition + C_OTHER]
        refused = (state[plan[H_KEYS] + other] if other >= 0 else np.int64(0)) + plan[condition + C_OFFSET]
        for match in range(matches):
            key = state[slot + match]
            state[slot + kept] = key
            kept += key != refused
    else:
        for match in range(matches):
            if condition_holds(plan, state, condition, state[slot + match]):
                if kept != match:
                    keep_match(plan, state, row, match, kept)
                kept += 1
    state[node + N_MATCHES] = kept


@kernel(_nrt=False)
def filter_negation(plan, state, row, iterator):
    """Drop the matches that a negated atom holds, whose last variable is bound here."""
    start, end = child_range(plan, state, iterator)
    if start == end:
        return
    others = view(plan[iterator + I_KEYS], end)
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


@kernel(_nrt=False, forceinline=True)
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
            state[plan[iterator + I_CURSOR] + P_BOUND] = state[plan[iterator + I_SLOT] + match]
    first = plan[row + D_NEGATION]
    for place in range(first, first + plan[row + D_NEGATIONS]):
        iterator = plan[place]
        if plan[iterator + I_CHILDREN]:
            start, end = child_range(plan, state, iterator)
            keys = view(plan[iterator + I_KEYS], end)
            position = find(plan, iterator, keys, start, end, key)
            state[plan[row + D_COUNTERS] + SEEKS] += 1
            held = position < end and keys[position] == key
            state[plan[iterator + I_CURSOR] + P_BOUND] = position if held else np.int64(-1)
