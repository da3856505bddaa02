"""The innermost node in one loop, under a prefix where runs have tuples and nothing is recorded.

The keys that runs have stand *apart*: each is looked up in every participant, base and runs.  Between two of
them only the bases count, and there ranges are intersected as those of a plain node are
(:mod:`lftj.search.regions.plain`).  The matches are those that :mod:`lftj.search.regions.node` gives.

Invariant: what is ahead of a cursor, in its base from P_POSITION on and in its runs, is beyond every key
that was tried.

Cost of a node: the shortest range and the keys of the runs, of which there are no more, times the logarithm
of the others' lengths at most.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.layout import (
    CURSOR_RUN_FIELDS,
    D_FIRST,
    D_MERGES,
    D_NODE,
    D_PARTICIPANTS,
    D_STREAMS,
    H_DEPTHS,
    I_CURSOR,
    I_INDEX,
    I_LEVEL,
    N_HIGH,
    P_ACTIVE,
    P_END,
    P_LIST,
    P_POSITION,
    P_RUNS,
    P_STOP,
    R_COUNTERS,
    R_ROWS,
    R_WORK,
    SEEKS,
    STATUS_DONE,
    STATUS_FULL,
)
from lftj.search.regions.cursor import DESCRIPTION, holds
from lftj.search.regions.node import repeat_prefix
from lftj.search.regions.plain import list_shared, range_below
from lftj.storage.seek import gallop, upper_bound
from lftj.storage.version_memory import (
    X_HEADER,
    X_LEVEL_FIELDS,
    X_LEVELS,
    X_RUN_FIELDS,
    X_RUNS,
    XR_LENGTH,
    XR_ROWS,
)


@part
def goes_apart(plan, state, indexes, row):
    """Whether an open node is listed so: runs have no more tuples in it than its shortest participant."""
    if not plan[row + D_MERGES] or plan[row + D_STREAMS]:
        return False
    shortest, apart = KEY_MAX, np.int64(0)
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        cursor = plan[plan[place] + I_CURSOR]
        length = state[cursor + P_END] - state[cursor + P_POSITION]
        if state[cursor + P_ACTIVE]:
            slot = cursor + P_RUNS
            for _ in range(view(indexes[plan[plan[place] + I_INDEX]], DESCRIPTION)[X_RUNS]):
                ahead = max(0, state[slot + 1] - state[slot])
                length += ahead
                apart += ahead
                slot += CURSOR_RUN_FIELDS
        shortest = min(shortest, length)
    return apart <= shortest


@part
def list_apart(plan, state, indexes, row, rows):
    """Write the matches of such a node, from where its participants stand; a STATUS_*."""
    high = state[plan[row + D_NODE] + N_HIGH]
    while True:
        some, key = next_apart(plan, state, indexes, row, high)
        status = list_before(plan, state, row, rows, some, key, high)
        if status != STATUS_DONE or not some:
            return status
        at = state[R_ROWS]
        if at == rows.shape[1]:
            return STATUS_FULL
        if all_hold(plan, state, indexes, row, key):
            rows[plan[H_DEPTHS] - 1, at] = key
            repeat_prefix(plan, state, rows, at, 1)
        pass_key(plan, state, indexes, row, key)


@part
def next_apart(plan, state, indexes, row, high):
    """Whether a run has a key ahead that is not beyond ``high``, and the least."""
    some, least = False, high
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        cursor = plan[plan[place] + I_CURSOR]
        if state[cursor + P_ACTIVE]:
            index = view(indexes[plan[plan[place] + I_INDEX]], DESCRIPTION)
            run, slot = X_HEADER + index[X_LEVELS] * X_LEVEL_FIELDS, cursor + P_RUNS
            for _ in range(index[X_RUNS]):
                start, stop = state[slot], state[slot + 1]
                if start < stop:
                    key = view(run_keys(index, run, plan[plan[place] + I_LEVEL]), stop)[start]
                    if key <= least:
                        some, least = True, key
                run += X_RUN_FIELDS
                slot += CURSOR_RUN_FIELDS
    return some, least


@part(forceinline=True)
def run_keys(index, run, level):
    """Address of the keys of a run at a level; run: the place of its fields."""
    return index[run + XR_ROWS] + 8 * level * index[run + XR_LENGTH]


@part
def list_before(plan, state, row, rows, some, key, high):
    """Write what all bases have ahead below ``key``, or, without one, up to ``high``; a STATUS_*."""
    leader = np.int64(-1)
    first = plan[row + D_FIRST]
    last = first + plan[row + D_PARTICIPANTS]
    for place in range(first, last):
        cursor = plan[plan[place] + I_CURSOR]
        start, end = state[cursor + P_POSITION], state[cursor + P_END]
        if some:
            end = gallop(view(state[cursor + P_LIST], end), start, end, key)
        else:
            start, end = range_below(state, cursor, high)
        state[cursor + P_STOP] = end
        if leader < 0 or end - start < state[leader + P_STOP] - state[leader + P_POSITION]:
            leader = cursor
    if state[leader + P_POSITION] < state[leader + P_STOP]:
        status = list_shared(plan, state, row, rows, leader, False)
        if status != STATUS_DONE:
            return status
    for place in range(first, last):
        cursor = plan[plan[place] + I_CURSOR]
        state[cursor + P_POSITION] = state[cursor + P_STOP]
    return STATUS_DONE


@part
def all_hold(plan, state, indexes, row, key):
    """Whether all participants have the key.  Counted are those that do: landing passes others so too."""
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        state[R_WORK] += 1
        if not holds(plan, state, indexes, plan[place], key):
            return False
        state[R_COUNTERS + SEEKS] += 1
    return True


@part
def pass_key(plan, state, indexes, row, key):
    """Lead all participants beyond a key that nothing before is ahead of."""
    first = plan[row + D_FIRST]
    for place in range(first, first + plan[row + D_PARTICIPANTS]):
        cursor = plan[plan[place] + I_CURSOR]
        position, end = state[cursor + P_POSITION], state[cursor + P_END]
        if position < end and view(state[cursor + P_LIST], end)[position] == key:
            state[cursor + P_POSITION] = position + 1
        if state[cursor + P_ACTIVE]:
            index = view(indexes[plan[plan[place] + I_INDEX]], DESCRIPTION)
            run, slot = X_HEADER + index[X_LEVELS] * X_LEVEL_FIELDS, cursor + P_RUNS
            for _ in range(index[X_RUNS]):
                start, stop = state[slot], state[slot + 1]
                if start < stop:
                    keys = view(run_keys(index, run, plan[plan[place] + I_LEVEL]), stop)
                    if keys[start] <= key:
                        state[slot] = upper_bound(keys, start, stop, key)
                run += X_RUN_FIELDS
                slot += CURSOR_RUN_FIELDS
