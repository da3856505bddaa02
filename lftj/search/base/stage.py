"""Stages: the part of a node's intersection that stays while the depth before varies.

In ``tri(a, b, c)`` with the order a, b, c the children of a in e(a, c) are the
same for every b.  A stage lists such a fixed intersection once, and marks its
keys in a bit map where keys are dense: testing a key is then one load.  Stages
of a depth build on each other, one per earlier depth that fixes participants;
a clique's innermost node then only tests the keys of its newest participant.
(LFTJ has no such thing; the intersection cache of Mhedhbi and Salihoglu, VLDB
2019, is the same idea without marks.)

A stage is built only after as many leader keys were tried without it as it has
to list (ski rental), so it costs at most twice what it could have saved.

Invariants

1. A stage is up to date when its T_STAMP is the N_STAMP of the depth that binds
   the last of its parents; stamps are never given out twice.
2. Outside :func:`build_stage` the bit map holds exactly the keys of the list
   that T_LIST, T_FROM and T_TO name, also of a stale stage: they are what is
   to be cleared.
3. Every key of every participant of the depth lies within the bit map's range.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.base.iterators import child_range
from lftj.search.base.layout import (
    D_COUNTERS,
    D_FIRST,
    D_STAGE,
    D_STAGES,
    I_CURSOR,
    N_STAMP,
    NEXTS,
    P_LIST,
    R_WORK,
    S_BASE,
    S_BOUND_AT,
    S_COVERED,
    S_LIST,
    S_MARKS,
    S_STATE,
    STAGE_FIELDS,
    T_FROM,
    T_LIST,
    T_SPENT,
    T_SPENT_STAMP,
    T_STAMP,
    T_TO,
)
from lftj.search.marks import clear_marks, intersect_marked, set_marks
from lftj.storage.seek import gallop

MARKS_RATIO = 12
"""A marked stage leads only when it has this many times fewer keys than the shortest other range."""


@part
def intersect_galloping(keys, start, end, others, other_start, other_end, state, out):
    """List what keys[start:end] and others[other_start:other_end] share at ``state[out:]``; return how many.

    ``keys`` may be that list itself: it is never written ahead of what is read.
    """
    found = out
    position = other_start
    while start < end:
        key = keys[start]
        position = gallop(others, position, other_end, key)
        if position == other_end:
            break
        if others[position] == key:
            state[found] = key
            found += 1
            start += 1
        else:
            start = gallop(keys, start + 1, end, others[position])
    return found - out


@part(forceinline=True)
def current_stage(plan, state, row):
    """Last stage of a depth that is up to date together with all before it; -1: none."""
    stage = plan[row + D_STAGE]
    current = np.int64(-1)
    for _ in range(plan[row + D_STAGES]):
        if state[plan[stage + S_STATE] + T_STAMP] != state[plan[stage + S_BOUND_AT] + N_STAMP]:
            break
        current = stage
        stage += STAGE_FIELDS
    return current


@part(forceinline=True)
def rent_stage(plan, state, row, current, length):
    """Count ``length`` leader keys against the first stale stage; build it once that has cost enough.

    Returns the last stage that is up to date now.
    """
    stage = plan[row + D_STAGE] if current < 0 else current + STAGE_FIELDS
    if stage >= plan[row + D_STAGE] + plan[row + D_STAGES] * STAGE_FIELDS:
        return current
    cached = plan[stage + S_STATE]
    stamp = state[plan[stage + S_BOUND_AT] + N_STAMP]
    if state[cached + T_SPENT_STAMP] != stamp:
        state[cached + T_SPENT_STAMP] = stamp
        state[cached + T_SPENT] = 0
    price = KEY_MAX
    covered = np.int64(0)
    if current >= 0:
        previous = plan[current + S_STATE]
        price = state[previous + T_TO] - state[previous + T_FROM]
        covered = plan[current + S_COVERED]
    first = plan[row + D_FIRST]
    for place in range(first + covered, first + plan[stage + S_COVERED]):
        low, high = child_range(plan, state, plan[place])
        price = min(price, high - low)
    if state[cached + T_SPENT] >= price:
        build_stage(plan, state, row, stage)
        return stage
    state[cached + T_SPENT] += length
    return current


@part
def build_stage(plan, state, row, stage):
    """Intersect the stage's participants with the stage before it; list and mark the result.

    Precondition: the stage before, if it is one of the same depth, is up to date.
    """
    cached = plan[stage + S_STATE]
    marks, base = plan[stage + S_MARKS], plan[stage + S_BASE]
    if marks >= 0 and state[cached + T_STAMP] != 0:
        old = view(state[cached + T_LIST], state[cached + T_TO])
        clear_marks(state, marks, base, old, state[cached + T_FROM], state[cached + T_TO])
    first = plan[row + D_FIRST]
    out = plan[stage + S_LIST]
    own = state.ctypes.data + 8 * out
    before = stage - STAGE_FIELDS if stage > plan[row + D_STAGE] else np.int64(-1)
    if before >= 0:
        covered = plan[before + S_COVERED]
        where = state[plan[before + S_STATE] + T_LIST]
        start, end = state[plan[before + S_STATE] + T_FROM], state[plan[before + S_STATE] + T_TO]
    else:
        covered = np.int64(1)
        start, end = child_range(plan, state, plan[first])
        where = state[plan[plan[first] + I_CURSOR] + P_LIST]
    work = end - start
    for place in range(first + covered, first + plan[stage + S_COVERED]):
        iterator = plan[place]
        low, high = child_range(plan, state, iterator)
        keys = view(where, end)
        others = view(state[plan[iterator + I_CURSOR] + P_LIST], high)
        work += min(high - low, end - start)
        use_marks = before >= 0 and place == first + covered and plan[before + S_MARKS] >= 0
        if use_marks and high - low <= MARKS_RATIO * (end - start):
            found = intersect_marked(
                others, low, high, state, plan[before + S_MARKS], plan[before + S_BASE], state, out
            )
        elif high - low < end - start and where != own:
            found = intersect_galloping(others, low, high, keys, start, end, state, out)
        else:
            found = intersect_galloping(keys, start, end, others, low, high, state, out)
        where, start, end = own, np.int64(0), found
    state[cached + T_LIST] = where
    state[cached + T_FROM] = start
    state[cached + T_TO] = end
    state[cached + T_STAMP] = state[plan[stage + S_BOUND_AT] + N_STAMP]
    if marks >= 0:
        set_marks(state, marks, base, view(where, end), start, end)
        work += end - start
    state[plan[row + D_COUNTERS] + NEXTS] += work
    state[R_WORK] += work
