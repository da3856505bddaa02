"""The region search: what lies below given bindings, over versions, with records of what it depended on.

One compiled, resumable state machine for all rules, like :mod:`lftj.search.base.kernel`,
which stays the quicker one for whole evaluations over base runs: this one does
the leapfrog of LFTJ section 3 step by step, so that what it records is the
trace (ENGINE.md section 4), sees later runs, and starts from *regions*.

A plan may have a *tail* (:mod:`lftj.search.regions.tail`): then there is one row, of all
depths, for each binding of the variables before it that holds.

A region is a binding of the first d variables, or of d - 1 and an interval of
the next (the whole evaluation is the region with d = 1 and all keys).  Along
fixed coordinates only membership is tested (ENGINE.md section 5): the first
participant that lacks its key records that point and the region is done.  Where
none does, all record the last coordinate: an iterator may have passed over it
before it was a match (invariant 2; ENGINE.md says nothing of this).
Sorted regions share the path that they have in common.

Invariants

1. Between two calls the state describes the search completely; the caller may
   change the buffers of rows and records, and must then clear N_LOGGED.
2. Coverage (ENGINE.md section 4): for every node reached and every key within
   the conditions' bounds, all participants hold it and are covered, or one
   that lacks it is.  In a tail that holds, the witness is covered.
3. Rows come in key order within one region.

Cost: as leapfrog triejoin, O(log runs) more where runs have tuples.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.search.conditions import condition_bounds
from lftj.search.regions.cursor import extend, flush, holds, open_cursor
from lftj.search.regions.layout import (
    C_KEY,
    C_PENDING,
    E_CONDITION,
    E_CONDITIONS,
    E_FIELDS,
    E_FIRST,
    E_MERGES,
    E_NEGATION,
    E_NEGATIONS,
    E_NODE,
    E_PARTICIPANTS,
    E_STREAM,
    E_STREAMS,
    G_DEPTH_ROWS,
    G_DEPTHS,
    G_KEYS,
    G_TAIL,
    MOVE_ALIGN,
    MOVE_NEXT,
    MOVE_OPEN,
    MOVE_REGION,
    N_LOGGED,
    P_CURSOR,
    Q_DEPTH,
    Q_FAILED,
    Q_FAILED_REGIONS,
    Q_FLOOR,
    Q_HELD,
    Q_HIGH,
    Q_LOW,
    Q_MOVE,
    Q_OPENS,
    Q_REGION,
    Q_ROWS,
    Q_VALID,
    Q_WORK,
    STATUS_DONE,
    STATUS_FULL,
    STATUS_LOG_FULL,
    STATUS_PAUSED,
)
from lftj.search.regions.node import (
    ALIGN_LOG_FULL,
    ALIGN_MATCH,
    accept,
    align,
    close_node,
    emit,
    has_room,
    open_node,
    step,
)
from lftj.search.regions.pair import merge_pair, open_pair, plain_pair
from lftj.search.regions.tail import enter_tail, keep_witness, same_head, tail_has_room


@part(_nrt=False)
def follow_path(plan, state, indexes, log, regions, region, fixed):
    """Test the first ``fixed`` coordinates of a region one depth after the other; False: one of them failed.

    Cursors of depths that the region shares with the one before stay as they are.
    """
    shared = np.int64(0)
    if region > 0:
        limit = min(fixed, max(state[Q_VALID], state[Q_FAILED] + 1))
        while shared < limit and regions[region, 2 + shared] == regions[region - 1, 2 + shared]:
            shared += 1
    if state[Q_FAILED] >= 0 and shared > state[Q_FAILED]:
        return False  # where the region before failed
    depth = min(shared, state[Q_VALID])
    state[Q_FAILED] = -1
    while depth < fixed:
        key = regions[region, 2 + depth]
        row = plan[G_DEPTH_ROWS] + depth * E_FIELDS
        state[Q_VALID] = depth
        if not on_path(plan, state, indexes, log, row, key, depth + 1 == fixed):
            state[Q_FAILED] = depth
            return False
        state[plan[G_KEYS] + depth] = key
        depth += 1
    state[Q_VALID] = fixed
    return True


@part(_nrt=False)
def on_path(plan, state, indexes, log, row, key, is_last):
    """Whether all participants of a depth hold the key and nothing refuses it; land them on it.

    The first participant that lacks it records that point.  If none does, the node has a new match at the
    path's last coordinate, which all of them have to record: some may have passed over it before.
    """
    node = plan[row + E_NODE]
    state[node + N_LOGGED] = 0
    first = plan[row + E_STREAM]
    for place in range(first, first + plan[row + E_STREAMS]):
        state[plan[plan[place] + P_CURSOR] + C_PENDING] = 0
    first, count = plan[row + E_CONDITION], plan[row + E_CONDITIONS]
    low, high = condition_bounds(plan, state, plan[G_KEYS], first, count, KEY_MIN, KEY_MAX)
    if key < low or key > high:
        return False
    first = plan[row + E_FIRST]
    for place in range(first, first + plan[row + E_PARTICIPANTS]):
        participant = plan[place]
        open_cursor(plan, state, indexes, participant)
        state[Q_OPENS] += 1
        state[Q_WORK] += 1
        held = holds(plan, state, indexes, participant, key)
        if is_last or not held:
            extend(plan, state, log, row, participant, key, key, False)
        if not held:
            flush(plan, state, log, row, participant)
            return False
    first = plan[row + E_NEGATION]
    for place in range(first, first + plan[row + E_NEGATIONS]):
        open_cursor(plan, state, indexes, plan[place])
    accepted = accept(plan, state, indexes, log, row, key)
    close_node(plan, state, log, row)
    return accepted


@part(_nrt=False, forceinline=True)
def descend(plan, state, log, rows, depth):
    """After a match: the depth and move that come next.  A whole binding is emitted, and ends its tail."""
    if depth + 1 < plan[G_DEPTHS]:
        return depth + 1, MOVE_OPEN
    emit(plan, state, rows)
    if plan[G_TAIL] == plan[G_DEPTHS]:
        return depth, MOVE_NEXT
    keep_witness(plan, state, log)
    if state[Q_FLOOR] < plan[G_TAIL]:
        return plan[G_TAIL] - 1, MOVE_NEXT
    state[Q_HELD] = state[Q_REGION]
    return depth, MOVE_REGION


@kernel
def search_regions(plan, state, indexes, log, regions, rows, budget):
    """Run until all regions are done, buffers are full or the budget of operations is spent; a STATUS_*.

    plan, state, log: int64, as region_layout.py says; plan is only read.  indexes: int64, the address of
    the memory of each index's version, by number.  regions: int64 (n, 2 + depths), sorted: number of bound
    variables d >= 1, end of the interval of the last of them, the values; read only.
    rows: int64 (depths, capacity), written from column Q_ROWS on.
    """
    depths, tail = plan[G_DEPTHS], plan[G_TAIL]
    last = depths - 1
    depth, move = state[Q_DEPTH], state[Q_MOVE]
    state[Q_WORK] = 0
    status = STATUS_DONE
    while True:
        if state[Q_WORK] > budget:
            status = STATUS_PAUSED
            break
        if move == MOVE_REGION:
            region = state[Q_REGION]
            if region == regions.shape[0]:
                break
            bound = regions[region, 0]
            value, end = regions[region, 1 + bound], regions[region, 1]
            fixed = bound if value == end else bound - 1
            room = state[Q_ROWS] < rows.shape[1]
            if not room:
                status = STATUS_FULL
                break
            row = plan[G_DEPTH_ROWS]
            for _ in range(fixed):
                room = room and has_room(plan, log, row)
                row += E_FIELDS
            if not room:
                status = STATUS_LOG_FULL
                break
            state[Q_REGION] = region + 1
            if fixed > tail:
                if state[Q_HELD] > 0 and same_head(plan, regions, region, state[Q_HELD] - 1):
                    continue
                enter_tail(plan, log)
            if not follow_path(plan, state, indexes, log, regions, region, fixed):
                state[Q_FAILED_REGIONS] += 1
                continue
            if fixed == depths:
                emit(plan, state, rows)
                if tail < depths:
                    keep_witness(plan, state, log)
                    state[Q_HELD] = region + 1
                continue
            depth = fixed
            state[Q_FLOOR] = depth
            state[Q_LOW], state[Q_HIGH] = KEY_MIN, KEY_MAX
            if fixed < bound:
                state[Q_LOW], state[Q_HIGH] = value, end
            move = MOVE_OPEN
            continue
        row = plan[G_DEPTH_ROWS] + depth * E_FIELDS
        if not has_room(plan, log, row):
            status = STATUS_LOG_FULL
            break
        going = True
        if depth == last and tail < depths and not tail_has_room(plan, log):
            status = STATUS_LOG_FULL
            break
        if move == MOVE_OPEN:
            if depth == tail:
                enter_tail(plan, log)
            low, high = KEY_MIN, KEY_MAX
            if depth == state[Q_FLOOR]:
                low, high = state[Q_LOW], state[Q_HIGH]
            first, count = plan[row + E_CONDITION], plan[row + E_CONDITIONS]
            low, high = condition_bounds(plan, state, plan[G_KEYS], first, count, low, high)
            state[Q_WORK] += 1
            if plan[row + E_PARTICIPANTS] == 0 and state[Q_ROWS] == rows.shape[1]:
                status = STATUS_FULL
                break
            move = MOVE_ALIGN
            unbounded = low == KEY_MIN and high == KEY_MAX
            going = unbounded and plan[row + E_MERGES] == 1 and open_pair(plan, state, indexes, row)
            if not going:
                going = open_node(plan, state, indexes, log, row, low, high)
            if going and plan[row + E_PARTICIPANTS] == 0:  # bound by an equality alone
                going = low == high and accept(plan, state, indexes, log, row, low)
                if going:
                    state[plan[G_KEYS] + depth] = low
                    depth, move = descend(plan, state, log, rows, depth)
                    continue
        if going and move == MOVE_NEXT:
            going = step(plan, state, indexes, log, row)
            move = MOVE_ALIGN
        if going and depth == last and plain_pair(plan, state, row):
            if state[Q_ROWS] == rows.shape[1]:
                status = STATUS_FULL
                break
            status = merge_pair(plan, state, log, row, rows)
            if status != STATUS_DONE:
                break
            going = False
        if going:
            found = align(plan, state, indexes, log, row)
            if found == ALIGN_LOG_FULL:
                status = STATUS_LOG_FULL
                break
            if found == ALIGN_MATCH:
                if depth == last and state[Q_ROWS] == rows.shape[1]:
                    status = STATUS_FULL
                    break
                key = state[plan[plan[plan[row + E_FIRST]] + P_CURSOR] + C_KEY]
                move = MOVE_NEXT
                if accept(plan, state, indexes, log, row, key):
                    state[plan[G_KEYS] + depth] = key
                    depth, move = descend(plan, state, log, rows, depth)
                continue
        close_node(plan, state, log, row)
        if depth == state[Q_FLOOR]:
            move = MOVE_REGION
        else:
            depth -= 1
            move = MOVE_NEXT
    state[Q_DEPTH], state[Q_MOVE] = depth, move
    return status
