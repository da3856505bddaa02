"""The region search: what lies below given bindings, over versions, with records of what it depended on.

One compiled, resumable state machine for all rules, like :mod:`lftj.kernel`,
which stays the quicker one for whole evaluations over base runs: this one does
the leapfrog of LFTJ section 3 step by step, so that what it records is the
trace (ENGINE.md section 4), sees later runs, and starts from *regions*.

A region is a binding of the first d variables, or of d - 1 and an interval of
the next (the whole evaluation is the region with d = 1 and all keys).  Along
fixed coordinates only membership is tested (ENGINE.md section 5): the first
participant that lacks its key records that point and the region is done.
Sorted regions share the path that they have in common.

Invariants

1. Between two calls the state describes the search completely; the caller may
   change the buffers of rows and records, and must then clear N_LOGGED.
2. Coverage (ENGINE.md section 4): for every node reached and every key within
   the conditions' bounds, all participants hold it and are covered, or one
   that lacks it is.
3. Rows come in key order within one region.

Cost: as leapfrog triejoin, O(log runs) more where runs have tuples.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel
from lftj.block import condition_holds
from lftj.index_version import upper_bound
from lftj.layout import (
    C_OPERATOR,
    CONDITION_FIELDS,
    D_CONDITION,
    D_CONDITIONS,
    H_DEPTHS,
    H_KEYS,
    KEY_MAX,
    KEY_MIN,
    OP_AT_MOST,
)
from lftj.memory import view
from lftj.node import condition_bounds
from lftj.region_cursor import extend, flush, hide_branch, land, open_base, open_cursor
from lftj.region_layout import (
    C_ACTIVE,
    C_AT,
    C_END,
    C_FROM,
    C_KEY,
    C_KEYS,
    C_PENDING,
    C_POSITION,
    C_SKIPPED,
    C_TO,
    E_FIELDS,
    E_FILTERS,
    E_FIRST,
    E_FIXED,
    E_LOG,
    E_MERGES,
    E_NEGATION,
    E_NEGATIONS,
    E_NODE,
    E_PARTICIPANTS,
    E_STREAM,
    E_STREAMS,
    G_DEPTH_ROWS,
    G_GAP,
    L_CAPACITY,
    L_COUNT,
    MOVE_ALIGN,
    MOVE_NEXT,
    MOVE_OPEN,
    MOVE_REGION,
    N_HIGH,
    N_LOGGED,
    P_CURSOR,
    P_LAST,
    P_PARENT,
    P_STREAM,
    Q_DEPTH,
    Q_FAILED,
    Q_FAILED_REGIONS,
    Q_FLOOR,
    Q_HIGH,
    Q_LOW,
    Q_MARKED_FROM,
    Q_MARKED_TO,
    Q_MARKS,
    Q_MARKS_BASE,
    Q_MARKS_WORDS,
    Q_MOVE,
    Q_NEXTS,
    Q_OPENS,
    Q_RECORD,
    Q_REGION,
    Q_ROWS,
    Q_SEEKS,
    Q_VALID,
    Q_WORK,
    ROOM,
    S_CAPACITY,
    S_COUNT,
    STATUS_DONE,
    STATUS_FULL,
    STATUS_LOG_FULL,
    STATUS_PAUSED,
)
from lftj.seek import gallop

SIX, SIXTY_THREE = np.uint64(6), np.uint64(63)

ALIGN_MATCH = 1
ALIGN_END = 0
ALIGN_LOG_FULL = 2


@kernel(_nrt=False, forceinline=True)
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


@kernel(_nrt=False, forceinline=True)
def close_node(plan, state, log, row):
    """Write the records that are still growing."""
    first = plan[row + E_STREAM]
    for place in range(first, first + plan[row + E_STREAMS]):
        flush(plan, state, log, row, plan[place])


@kernel(_nrt=False, forceinline=True)
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


@kernel(_nrt=False, forceinline=True)
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


@kernel(_nrt=False)
def accept(plan, state, indexes, log, row, key):
    """Whether the conditions and the negated atoms that are complete here let the key pass.

    Negated atoms with deeper levels are bound on the way.
    """
    if plan[row + E_FILTERS]:
        condition = plan[row + D_CONDITION]
        for _ in range(plan[row + D_CONDITIONS]):
            if plan[condition + C_OPERATOR] > OP_AT_MOST and not condition_holds(plan, state, condition, key):
                return False
            condition += CONDITION_FIELDS
    first = plan[row + E_NEGATION]
    for place in range(first, first + plan[row + E_NEGATIONS]):
        negation = plan[place]
        cursor = plan[negation + P_CURSOR]
        state[Q_SEEKS] += 1
        landed = land(plan, state, indexes, negation, key, np.int64(0))
        held = landed and state[cursor + C_KEY] == key
        if plan[negation + P_LAST]:
            extend(plan, state, log, row, negation, key, key, False)
            if held:
                return False
        elif not held:
            hide_branch(plan, state, indexes, negation)
    return True


@kernel(_nrt=False, forceinline=True)
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


@kernel(_nrt=False, forceinline=True)
def emit(plan, state, rows):
    """Write the whole binding as a row; the caller sees to room."""
    at = state[Q_ROWS]
    for depth in range(plan[H_DEPTHS]):
        rows[depth, at] = state[plan[H_KEYS] + depth]
    state[Q_ROWS] = at + 1


@kernel(_nrt=False, forceinline=True)
def plain_pair(plan, state, row):
    """Whether the node is two participants of the base alone, with nothing that drops matches."""
    if not plan[row + E_MERGES]:
        return False
    first = plan[row + E_FIRST]
    left, right = plan[plan[first] + P_CURSOR], plan[plan[first + 1] + P_CURSOR]
    return state[left + C_ACTIVE] == 0 and state[right + C_ACTIVE] == 0


@kernel(_nrt=False, forceinline=True)
def open_pair(plan, state, indexes, row):
    """:func:`open_node` for a :func:`plain_pair` without bounds; False, and nothing done, if it is none."""
    first = plan[row + E_FIRST]
    for place in range(first, first + 2):
        parent = plan[plan[place] + P_PARENT]
        if parent < 0:
            return False
        above = plan[parent + P_CURSOR]
        if state[above + C_ACTIVE] or state[above + C_AT] < 0:
            return False
    for place in range(first, first + 2):
        open_base(plan, state, indexes, plan[place])
        cursor = plan[plan[place] + P_CURSOR]
        state[cursor + C_FROM] = KEY_MIN
        state[cursor + C_PENDING] = state[Q_RECORD] == 1 and plan[plan[place] + P_STREAM] >= 0
    node = plan[row + E_NODE]
    state[node + N_HIGH] = KEY_MAX
    state[node + N_LOGGED] = 0
    state[Q_OPENS] += 2
    return True


@kernel(_nrt=False)
def mark_keys(state, where, start, end):
    """Let the bit map hold the keys [start, end) at an address and no others; nothing to do if it does."""
    if state[Q_MARKED_FROM] == start and state[Q_MARKED_TO] == end:
        return
    marks = view(state[Q_MARKS], state[Q_MARKS_WORDS])
    keys = view(where, max(end, state[Q_MARKED_TO]))
    base = state[Q_MARKS_BASE]
    for place in range(state[Q_MARKED_FROM], state[Q_MARKED_TO]):
        marks[np.uint64(keys[place] - base) >> SIX] = 0
    for place in range(start, end):
        bit = np.uint64(keys[place] - base)
        marks[bit >> SIX] |= np.int64(1) << np.int64(bit & SIXTY_THREE)
    state[Q_MARKED_FROM], state[Q_MARKED_TO] = start, end


@kernel(_nrt=False)
def list_marked(state, keys, start, end, out, at):
    """Write the marked ones of keys[start:end] from ``out[at]`` on: (at, keys tried up to, a STATUS_*)."""
    marks = view(state[Q_MARKS], state[Q_MARKS_WORDS])
    base = state[Q_MARKS_BASE]
    stop = min(end, start + len(out) - at)
    for place in range(start, stop):
        key = keys[place]
        bit = np.uint64(key - base)
        out[at] = key
        at += (marks[bit >> SIX] >> np.int64(bit & SIXTY_THREE)) & 1
    return at, stop, STATUS_DONE if stop == end else STATUS_FULL


@kernel(_nrt=False, forceinline=True)
def merge_pair(plan, state, log, row, rows):
    """The rest of a :func:`plain_pair` node of the last depth, from where both have landed; a STATUS_*.

    The same operations and records as align, step and emit, in one loop.
    """
    first = plan[row + E_FIRST]
    p, q = plan[first], plan[first + 1]
    left, right = plan[p + P_CURSOR], plan[q + P_CURSOR]
    gap = plan[G_GAP]
    high = state[plan[row + E_NODE] + N_HIGH]
    i, i_end = state[left + C_POSITION], state[left + C_END]
    j, j_end = state[right + C_POSITION], state[right + C_END]
    a, b = view(state[left + C_KEYS], i_end), view(state[right + C_KEYS], j_end)
    last = plan[H_DEPTHS] - 1
    out = rows[last]
    at = start = state[Q_ROWS]
    capacity = rows.shape[1]
    p_records = plan[p + P_STREAM] >= 0 and state[Q_RECORD] == 1
    q_records = plan[q + P_STREAM] >= 0 and state[Q_RECORD] == 1
    status = STATUS_DONE
    operations = np.int64(0)
    i_stop, j_stop = i_end, j_end
    if high != KEY_MAX:
        i_stop, j_stop = upper_bound(a, i, i_end, high), upper_bound(b, j, j_end, high)
    longer, shorter = max(i_stop - i, j_stop - j), min(i_stop - i, j_stop - j)
    merged = longer <= gap * shorter
    if merged:  # neither skips much: both sides stay one record
        fixed = plan[row + E_FIXED]
        if state[Q_MARKS] and fixed >= 0:
            i_to, j_to = i_stop, j_stop  # nothing is shared beyond the side that ends first
            if a[i_stop - 1] < b[j_stop - 1]:
                j_to = upper_bound(b, j, j_stop, a[i_stop - 1])
            else:
                i_to = upper_bound(a, i, i_stop, b[j_stop - 1])
            operations -= i + j
            if fixed == 0:
                mark_keys(state, state[left + C_KEYS], i, i_end)
                at, j, status = list_marked(state, b, j, j_to, out, at)
                i = i_to if status == STATUS_DONE else gallop(a, i, i_end, b[j])
            else:
                mark_keys(state, state[right + C_KEYS], j, j_end)
                at, i, status = list_marked(state, a, i, i_to, out, at)
                j = j_to if status == STATUS_DONE else gallop(b, j, j_end, a[i])
            operations += i + j
        else:
            operations -= i + j
            while i < i_stop and j < j_stop:
                if at == capacity:
                    status = STATUS_FULL
                    break
                x, y = a[i], b[j]
                out[at] = x
                at += x == y
                i += x <= y
                j += y <= x
            operations += i + j
    while not merged and i < i_stop and j < j_stop:
        x, y = a[i], b[j]
        operations += 1
        if x == y:
            if at == capacity:
                status = STATUS_FULL
                break
            out[at] = x
            at += 1
            i += 1
        elif x < y:
            before = i
            i += 1
            stop = min(i_stop, i + gap)
            while i < stop and a[i] < y:
                i += 1
            if i < i_stop and a[i] < y:
                if p_records:
                    if not has_room(plan, log, row):
                        i = before
                        status = STATUS_LOG_FULL
                        break
                    state[left + C_TO] = a[before]
                    flush(plan, state, log, row, p)
                    state[left + C_PENDING] = 1
                    state[left + C_FROM] = y
                i = gallop(a, i, i_stop, y)
        else:
            before = j
            j += 1
            stop = min(j_stop, j + gap)
            while j < stop and b[j] < x:
                j += 1
            if j < j_stop and b[j] < x:
                if q_records:
                    if not has_room(plan, log, row):
                        j = before
                        status = STATUS_LOG_FULL
                        break
                    state[right + C_TO] = b[before]
                    flush(plan, state, log, row, q)
                    state[right + C_PENDING] = 1
                    state[right + C_FROM] = x
                j = gallop(b, j, j_stop, x)
    state[left + C_POSITION] = i
    state[right + C_POSITION] = j
    state[left + C_KEY] = a[i] if i < i_end else KEY_MAX
    state[right + C_KEY] = b[j] if j < j_end else KEY_MAX
    if p_records:
        state[left + C_TO] = state[left + C_KEY]
    if q_records:
        state[right + C_TO] = state[right + C_KEY]
    state[Q_SEEKS] += operations
    state[Q_WORK] += operations
    for depth in range(last):
        key = state[plan[H_KEYS] + depth]
        column = rows[depth]
        for place in range(start, at):
            column[place] = key
    state[Q_ROWS] = at
    return status


@kernel(_nrt=False)
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
        if not on_path(plan, state, indexes, log, row, key):
            state[Q_FAILED] = depth
            return False
        state[plan[H_KEYS] + depth] = key
        depth += 1
    state[Q_VALID] = fixed
    return True


@kernel(_nrt=False)
def on_path(plan, state, indexes, log, row, key):
    """Whether all participants of a depth hold the key and nothing refuses it; land them on it."""
    node = plan[row + E_NODE]
    state[node + N_LOGGED] = 0
    first = plan[row + E_STREAM]
    for place in range(first, first + plan[row + E_STREAMS]):
        state[plan[plan[place] + P_CURSOR] + C_PENDING] = 0
    low, high = condition_bounds(plan, state, row, KEY_MIN, KEY_MAX)
    if key < low or key > high:
        return False
    first = plan[row + E_FIRST]
    for place in range(first, first + plan[row + E_PARTICIPANTS]):
        participant = plan[place]
        cursor = plan[participant + P_CURSOR]
        open_cursor(plan, state, indexes, participant)
        state[Q_OPENS] += 1
        state[Q_WORK] += 1
        if not land(plan, state, indexes, participant, key, np.int64(0)) or state[cursor + C_KEY] != key:
            extend(plan, state, log, row, participant, key, key, False)
            flush(plan, state, log, row, participant)
            return False
    first = plan[row + E_NEGATION]
    for place in range(first, first + plan[row + E_NEGATIONS]):
        open_cursor(plan, state, indexes, plan[place])
    accepted = accept(plan, state, indexes, log, row, key)
    close_node(plan, state, log, row)
    return accepted


@kernel
def search_regions(plan, state, indexes, log, regions, rows, budget):
    """Run until all regions are done, buffers are full or the budget of operations is spent; a STATUS_*.

    plan, state, log: int64, as region_layout.py says; plan is only read.  indexes: int64, the address of
    the memory of each index's version, by number.  regions: int64 (n, 2 + depths), sorted: number of bound
    variables d >= 1, end of the interval of the last of them, the values; read only.
    rows: int64 (depths, capacity), written from column Q_ROWS on.
    """
    depths = plan[H_DEPTHS]
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
            if not follow_path(plan, state, indexes, log, regions, region, fixed):
                state[Q_FAILED_REGIONS] += 1
                continue
            if fixed == depths:
                emit(plan, state, rows)
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
        if move == MOVE_OPEN:
            low, high = KEY_MIN, KEY_MAX
            if depth == state[Q_FLOOR]:
                low, high = state[Q_LOW], state[Q_HIGH]
            low, high = condition_bounds(plan, state, row, low, high)
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
                    state[plan[H_KEYS] + depth] = low
                    move = MOVE_NEXT
                    if depth == last:
                        emit(plan, state, rows)
                    else:
                        depth += 1
                        move = MOVE_OPEN
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
                    state[plan[H_KEYS] + depth] = key
                    if depth == last:
                        emit(plan, state, rows)
                    else:
                        depth += 1
                        move = MOVE_OPEN
                continue
        close_node(plan, state, log, row)
        if depth == state[Q_FLOOR]:
            move = MOVE_REGION
        else:
            depth -= 1
            move = MOVE_NEXT
    state[Q_DEPTH], state[Q_MOVE] = depth, move
    return status
