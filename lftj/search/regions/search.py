"""The region search: what lies below given bindings, over versions, with records of what it depended on.

One compiled, resumable state machine for all rules, like :mod:`lftj.search.base.kernel`,
which stays the quicker one for whole evaluations over base runs: where something is
recorded or later runs have tuples, this one does the leapfrog of LFTJ section 3 step
by step, so that what it records is the trace (docs/design/engine.md section 4); elsewhere it works
in blocks (:mod:`lftj.search.regions.block`).  It starts from *regions*.

A plan may have a *tail* (:mod:`lftj.search.regions.tail`): then there is one row, of all
depths, for each binding of the variables before it that holds.

A region is a binding of the first d variables, or of d - 1 and an interval of
the next (the whole evaluation is the region with d = 1 and all keys).  Along
fixed coordinates only membership is tested (docs/design/engine.md section 5): the first
participant that lacks its key records that point and the region is done.  Where
none does, all record the last coordinate: an iterator may have passed over it
before it was a match (invariant 2).

Where paths are asked for, a region comes with the interval of the record that named it.  Where its path
fails at the last coordinate for want of a key, the participant whose turn comes after the record's own and
that lacks the key records more than the point: all of its gap that is inside of the interval
(:mod:`lftj.search.regions.gap`).  That part the other record need not cover any longer.

Sorted regions share the path that they have in common.

Invariants

1. Between two calls the state describes the search completely; the caller may
   change the buffers of rows and records, and must then clear N_LOGGED.
2. Coverage (docs/design/engine.md section 4): for every node reached and every key within
   the conditions' bounds, all participants hold it and are covered, or one
   that lacks it is.  In a tail that holds, the witness is covered.
3. Rows come in key order within one region.
4. Where not all depths are listed, a row is a binding of those that are, with the number of assignments
   below it in the column behind; of a region that binds more of them, with those of the region alone.

Cost: as leapfrog triejoin, O(log runs) more where runs have tuples.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.conditions import condition_bounds
from lftj.search.layout import (
    D_CONDITION,
    D_CONDITIONS,
    D_FIRST,
    D_NODE,
    D_PARTICIPANTS,
    D_STREAM,
    D_STREAMS,
    DEPTH_FIELDS,
    H_DEPTH_ROWS,
    H_DEPTHS,
    H_KEYS,
    H_LISTED,
    H_TAIL,
    I_CURSOR,
    I_STREAM,
    MOVE_ALIGN,
    MOVE_NEXT,
    MOVE_OPEN,
    MOVE_REGION,
    N_APART,
    N_LOGGED,
    OPENS,
    P_KEY,
    P_PENDING,
    PATH_FAILED,
    PATH_FIELDS,
    PATH_FROM,
    PATH_HIGH,
    PATH_LOW,
    PATH_MATCHED,
    PATH_TO,
    R_COUNTERS,
    R_DEPTH,
    R_FAILED,
    R_FAILED_REGIONS,
    R_FLOOR,
    R_HELD,
    R_HIGH,
    R_LOW,
    R_MOVE,
    R_PATHS,
    R_REGION,
    R_ROWS,
    R_VALID,
    R_WORK,
    SEEKS,
    STATUS_DONE,
    STATUS_FULL,
    STATUS_LOG_FULL,
    STATUS_PAUSED,
)
from lftj.search.regions.apart import goes_apart, list_apart
from lftj.search.regions.block import (
    bind_match,
    fill_block,
    goes_in_blocks,
    has_keys,
    has_match,
    may_block,
    open_block,
)
from lftj.search.regions.cursor import extend, flush, holds, open_cursor
from lftj.search.regions.gap import gap_around
from lftj.search.regions.node import (
    ALIGN_LOG_FULL,
    ALIGN_MATCH,
    accept,
    align,
    close_node,
    emit,
    emit_counted,
    has_room,
    open_negations,
    open_node,
    step,
)
from lftj.search.regions.plain import is_plain, list_plain, open_plain
from lftj.search.regions.tail import enter_tail, keep_witness, same_tail, tail_has_room


@part
def follow_path(plan, state, indexes, log, regions, region, fixed):
    """Test the first ``fixed`` coordinates of a region one depth after the other; False: one of them failed.

    Cursors of depths that the region shares with the one before stay as they are.
    """
    shared = np.int64(0)
    if region > 0:
        limit = min(fixed, max(state[R_VALID], state[R_FAILED] + 1))
        while shared < limit and regions[region, 2 + shared] == regions[region - 1, 2 + shared]:
            shared += 1
    if state[R_FAILED] >= 0 and shared > state[R_FAILED]:
        return False  # where the region before failed
    depth = min(shared, state[R_VALID])
    state[R_FAILED] = -1
    while depth < fixed:
        key = regions[region, 2 + depth]
        row = plan[H_DEPTH_ROWS] + depth * DEPTH_FIELDS
        state[R_VALID] = depth
        path = np.int64(0)
        if state[R_PATHS] and depth + 1 == fixed:
            path = state[R_PATHS] + 8 * PATH_FIELDS * region
        if not on_path(plan, state, indexes, log, row, key, depth + 1 == fixed, path):
            state[R_FAILED] = depth
            return False
        state[plan[H_KEYS] + depth] = key
        depth += 1
    state[R_VALID] = fixed
    return True


@part
def on_path(plan, state, indexes, log, row, key, is_last, path):
    """Whether all participants of a depth hold the key and nothing refuses it; land them on it.

    The first participant that lacks it records that point, or its gap.  If none does, the node has a new
    match at the path's last coordinate, which all of them have to record: some may have passed over it.
    path: address of the region's path where it is asked for and this is its last coordinate, else 0.
    """
    node = plan[row + D_NODE]
    state[node + N_LOGGED] = 0
    first = plan[row + D_STREAM]
    for place in range(first, first + plan[row + D_STREAMS]):
        state[plan[plan[place] + I_CURSOR] + P_PENDING] = 0
    first, count = plan[row + D_CONDITION], plan[row + D_CONDITIONS]
    low, high = condition_bounds(plan, state, plan[H_KEYS], first, count, KEY_MIN, KEY_MAX)
    if key < low or key > high:
        return False
    first, count = plan[row + D_FIRST], plan[row + D_PARTICIPANTS]
    turn = first_turn(plan, row, path)
    for number in range(turn, turn + count):
        participant = plan[first + (number if number < count else number - count)]
        open_cursor(plan, state, indexes, participant)
        state[R_COUNTERS + OPENS] += 1
        state[R_WORK] += 1
        held = holds(plan, state, indexes, participant, key)
        low = high = key
        if path and not held:
            low, high = cover_gap(plan, state, indexes, participant, key, path)
        if is_last or not held:
            extend(plan, state, log, row, participant, low, high, False)
        if not held:
            flush(plan, state, log, row, participant)
            return False
    open_negations(plan, state, indexes, row)
    accepted = accept(plan, state, indexes, log, row, key)
    close_node(plan, state, log, row)
    return accepted


@part
def first_turn(plan, row, path):
    """The place, among a depth's participants, of the one after that whose record names the region, or 0."""
    if not path:
        return np.int64(0)
    matched = view(path, PATH_FIELDS)[PATH_MATCHED]
    first, count = plan[row + D_FIRST], plan[row + D_PARTICIPANTS]
    for number in range(count - 1):
        if matched >= 0 and plan[plan[first + number] + I_STREAM] == matched:
            return np.int64(number + 1)
    return np.int64(0)


@part
def cover_gap(plan, state, indexes, participant, key, path):
    """What a participant that lacks the last coordinate records: its gap within the interval asked for."""
    told = view(path, PATH_FIELDS)
    low, high = told[PATH_LOW], told[PATH_HIGH]
    if low >= high:
        return key, key
    start, end = gap_around(plan, state, indexes, participant, key)
    state[R_COUNTERS + SEEKS] += 1
    state[R_WORK] += 1
    low, high = max(low, start), min(high, end)
    told[PATH_FROM], told[PATH_TO] = low, high
    return low, high


@part(forceinline=True)
def descend(plan, state, log, rows, depth):
    """After a match: the depth and move that come next.  A whole binding is emitted, and ends its tail."""
    if depth + 1 < plan[H_DEPTHS]:
        return depth + 1, MOVE_OPEN
    emit(plan, state, rows)
    if plan[H_TAIL] == plan[H_DEPTHS]:
        return depth, MOVE_NEXT
    keep_witness(plan, state, log)
    if state[R_FLOOR] < plan[H_TAIL]:
        return plan[H_TAIL] - 1, MOVE_NEXT
    state[R_HELD] = state[R_REGION]
    return depth, MOVE_REGION


@part
def run_search(plan, state, indexes, log, regions, rows, budget):
    """Run until all regions are done, buffers are full or the budget of operations is spent; a STATUS_*.

    plan, state, log: int64, as lftj.search.layout says; plan is only read.  indexes: int64, the address of
    the memory of each index's version, by number.  regions: int64 (n, 2 + depths), sorted: number of bound
    variables d >= 1, end of the interval of the last of them, the values; read only.
    rows: int64 (depths, capacity), written from column R_ROWS on.
    """
    depths, tail, listed = plan[H_DEPTHS], plan[H_TAIL], plan[H_LISTED]
    last = depths - 1
    depth, move = state[R_DEPTH], state[R_MOVE]
    state[R_WORK] = 0
    status = STATUS_DONE
    while True:
        if state[R_WORK] > budget:
            status = STATUS_PAUSED
            break
        if move == MOVE_REGION:
            region = state[R_REGION]
            if region == regions.shape[0]:
                break
            bound = regions[region, 0]
            value, end = regions[region, 1 + bound], regions[region, 1]
            fixed = bound if value == end else bound - 1
            room = state[R_ROWS] < rows.shape[1]
            if not room:
                status = STATUS_FULL
                break
            row = plan[H_DEPTH_ROWS]
            for _ in range(fixed):
                room = room and has_room(plan, log, row)
                row += DEPTH_FIELDS
            if not room:
                status = STATUS_LOG_FULL
                break
            state[R_REGION] = region + 1
            if bound > tail:
                if state[R_HELD] > 0 and same_tail(plan, regions, region, state[R_HELD] - 1):
                    continue
                if region == 0 or not same_tail(plan, regions, region, region - 1):
                    enter_tail(plan, log)
            held = follow_path(plan, state, indexes, log, regions, region, fixed)
            if state[R_PATHS]:
                path = view(state[R_PATHS] + 8 * PATH_FIELDS * region, PATH_FIELDS)
                path[PATH_FAILED] = depths if held else state[R_FAILED]
            if not held:
                state[R_FAILED_REGIONS] += 1
                continue
            if fixed == depths:
                emit(plan, state, rows)
                emit_counted(plan, state, rows)
                if tail < depths:
                    keep_witness(plan, state, log)
                    state[R_HELD] = region + 1
                continue
            depth = fixed
            state[R_FLOOR] = depth
            state[R_LOW], state[R_HIGH] = KEY_MIN, KEY_MAX
            if fixed < bound:
                state[R_LOW], state[R_HIGH] = value, end
            move = MOVE_OPEN
            continue
        row = plan[H_DEPTH_ROWS] + depth * DEPTH_FIELDS
        if not has_room(plan, log, row):
            status = STATUS_LOG_FULL
            break
        going = True
        if depth == last and tail < depths and not tail_has_room(plan, log):
            status = STATUS_LOG_FULL
            break
        if move == MOVE_OPEN:
            if depth == tail and regions[state[R_REGION] - 1, 0] <= tail:
                enter_tail(plan, log)
            low, high = KEY_MIN, KEY_MAX
            if depth == state[R_FLOOR]:
                low, high = state[R_LOW], state[R_HIGH]
            first, count = plan[row + D_CONDITION], plan[row + D_CONDITIONS]
            low, high = condition_bounds(plan, state, plan[H_KEYS], first, count, low, high)
            state[R_WORK] += 1
            if state[R_ROWS] == rows.shape[1] and (depth == listed or plan[row + D_PARTICIPANTS] == 0):
                status = STATUS_FULL
                break
            move = MOVE_ALIGN
            unbounded = low == KEY_MIN and high == KEY_MAX
            opened = unbounded and open_plain(plan, state, indexes, row)
            if not opened and may_block(plan, state, indexes, row):
                opened = True
                going = open_block(plan, state, indexes, row, low, high)
            if not opened:
                going = open_node(plan, state, indexes, log, row, low, high)
                if going and depth == last and goes_apart(plan, state, indexes, row):
                    state[plan[row + D_NODE] + N_APART] = 1
            if going and plan[row + D_PARTICIPANTS] == 0:  # bound by an equality alone
                going = low == high and accept(plan, state, indexes, log, row, low)
                if going:
                    state[plan[H_KEYS] + depth] = low
                    depth, move = descend(plan, state, log, rows, depth)
                    continue
        if going and goes_in_blocks(plan, state, row):
            move = MOVE_NEXT
            if has_match(plan, state, row):
                key = bind_match(plan, state, indexes, row)
                if accept(plan, state, indexes, log, row, key):
                    state[plan[H_KEYS] + depth] = key
                    depth, move = depth + 1, MOVE_OPEN
                continue
            if has_keys(plan, state, row):
                fill_block(plan, state, indexes, row)
                continue
            going = False
        if going and move == MOVE_NEXT:
            going = step(plan, state, indexes, log, row)
            move = MOVE_ALIGN
        plain = going and depth == last and is_plain(plan, state, row)
        if plain or (going and depth == last and state[plan[row + D_NODE] + N_APART]):
            if state[R_ROWS] == rows.shape[1]:
                status = STATUS_FULL
                break
            if plain:
                status = list_plain(plan, state, log, row, rows)
            else:
                status = list_apart(plan, state, indexes, row, rows)
            if status == STATUS_FULL and listed < depths:
                status = STATUS_DONE
                continue
            if status != STATUS_DONE:
                break
            going = False
        if going:
            found = align(plan, state, indexes, log, row)
            if found == ALIGN_LOG_FULL:
                status = STATUS_LOG_FULL
                break
            if found == ALIGN_MATCH:
                if depth == last and state[R_ROWS] == rows.shape[1]:
                    status = STATUS_FULL
                    break
                key = state[plan[plan[plan[row + D_FIRST]] + I_CURSOR] + P_KEY]
                move = MOVE_NEXT
                if accept(plan, state, indexes, log, row, key):
                    state[plan[H_KEYS] + depth] = key
                    depth, move = descend(plan, state, log, rows, depth)
                continue
        close_node(plan, state, log, row)
        if depth == listed or depth == state[R_FLOOR]:
            emit_counted(plan, state, rows)
        if depth == state[R_FLOOR]:
            move = MOVE_REGION
        else:
            depth -= 1
            move = MOVE_NEXT
    state[R_DEPTH], state[R_MOVE] = depth, move
    return status


@kernel
def search_regions(plan, state, indexes, log, regions, rows, budget):
    """:func:`run_search`, for Python."""
    return run_search(plan, state, indexes, log, regions, rows, budget)
