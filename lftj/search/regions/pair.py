"""A plain node (:mod:`lftj.search.regions.plain`) with two participants, in one loop.

The same matches as :mod:`lftj.search.regions.node` gives, and records that cover at
least as much.  Three ways, by the lengths of the two ranges:

* one is more than H_GAP times the other, as always where H_GAP is 0: leapfrog, with a record per gap.
  N_TURN is the participant, 0 or 1, that steps after a match: the one that did not move last;
* else a merge, in which neither side skips much: one record each;
* the same by a bit map (*marks*) of the side that stays while the depth above
  varies, for whole evaluations over dense keys: one load per key of the other.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.layout import (
    D_FIRST,
    D_FIXED,
    D_NODE,
    H_DEPTHS,
    H_GAP,
    I_CURSOR,
    I_STREAM,
    N_HIGH,
    N_TURN,
    P_END,
    P_FROM,
    P_KEY,
    P_LIST,
    P_PENDING,
    P_POSITION,
    P_TO,
    R_COUNTERS,
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
    STATUS_LOG_FULL,
)
from lftj.search.marks import clear_marks, intersect_marked, set_marks
from lftj.search.regions.cursor import flush
from lftj.search.regions.node import has_room, repeat_prefix
from lftj.storage.seek import gallop, upper_bound


@part
def mark_keys(state, where, start, end):
    """Let the bit map hold the keys [start, end) at an address and no others; nothing to do if it does."""
    if state[R_MARKED_FROM] == start and state[R_MARKED_TO] == end:
        return
    marks = view(state[R_MARKS], state[R_MARKS_WORDS])
    keys = view(where, max(end, state[R_MARKED_TO]))
    base = state[R_MARKS_BASE]
    clear_marks(marks, np.int64(0), base, keys, state[R_MARKED_FROM], state[R_MARKED_TO])
    set_marks(marks, np.int64(0), base, keys, start, end)
    state[R_MARKED_FROM], state[R_MARKED_TO] = start, end


@part
def list_marked(state, keys, start, end, out, at):
    """Write the marked ones of keys[start:end] from ``out[at]`` on: (at, keys tried up to, a STATUS_*)."""
    marks = view(state[R_MARKS], state[R_MARKS_WORDS])
    stop = min(end, start + len(out) - at)
    at += intersect_marked(keys, start, stop, marks, np.int64(0), state[R_MARKS_BASE], out, at)
    return at, stop, STATUS_DONE if stop == end else STATUS_FULL


@part(forceinline=True)
def merge_pair(plan, state, log, row, rows):
    """The rest of a plain node with two participants, from where both have landed; a STATUS_*.

    The same operations and records as align, step and emit, in one loop.
    """
    first = plan[row + D_FIRST]
    p, q = plan[first], plan[first + 1]
    left, right = plan[p + I_CURSOR], plan[q + I_CURSOR]
    gap = plan[H_GAP]
    node = plan[row + D_NODE]
    high = state[node + N_HIGH]
    i, i_end = state[left + P_POSITION], state[left + P_END]
    j, j_end = state[right + P_POSITION], state[right + P_END]
    a, b = view(state[left + P_LIST], i_end), view(state[right + P_LIST], j_end)
    out = rows[plan[H_DEPTHS] - 1]
    at = start = state[R_ROWS]
    capacity = rows.shape[1]
    p_records = plan[p + I_STREAM] >= 0
    q_records = plan[q + I_STREAM] >= 0
    status = STATUS_DONE
    operations = np.int64(0)
    i_stop, j_stop = i_end, j_end
    if high != KEY_MAX:
        i_stop, j_stop = upper_bound(a, i, i_end, high), upper_bound(b, j, j_end, high)
    longer, shorter = max(i_stop - i, j_stop - j), min(i_stop - i, j_stop - j)
    merged = longer <= gap * shorter
    if merged:  # neither skips much: both sides stay one record
        fixed = plan[row + D_FIXED]
        if state[R_MARKS] and fixed >= 0:
            i_to, j_to = i_stop, j_stop  # nothing is shared beyond the side that ends first
            if a[i_stop - 1] < b[j_stop - 1]:
                j_to = upper_bound(b, j, j_stop, a[i_stop - 1])
            else:
                i_to = upper_bound(a, i, i_stop, b[j_stop - 1])
            operations -= i + j
            if fixed == 0:
                mark_keys(state, state[left + P_LIST], i, i_end)
                at, j, status = list_marked(state, b, j, j_to, out, at)
                i = i_to if status == STATUS_DONE else gallop(a, i, i_end, b[j])
            else:
                mark_keys(state, state[right + P_LIST], j, j_end)
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
    turn = state[node + N_TURN]
    while not merged and i < i_stop and j < j_stop:
        x, y = a[i], b[j]
        operations += 1
        if x == y:
            if at == capacity:
                status = STATUS_FULL
                break
            out[at] = x
            at += 1
            i += turn == 0
            j += turn == 1
            turn = 1 - turn
        elif x < y:
            before = i
            i += 1
            stop = min(i_stop, before + gap)
            while i < stop and a[i] < y:
                i += 1
            passed = i < i_stop and a[i] < y
            if (passed or gap == 0) and p_records and y - 1 > x:
                if not has_room(plan, log, row):
                    i = before
                    status = STATUS_LOG_FULL
                    break
                state[left + P_TO] = x
                flush(plan, state, log, row, p)
                state[left + P_PENDING] = 1
                state[left + P_FROM] = y
            if passed:
                i = gallop(a, i, i_stop, y)
            turn = 1
        else:
            before = j
            j += 1
            stop = min(j_stop, before + gap)
            while j < stop and b[j] < x:
                j += 1
            passed = j < j_stop and b[j] < x
            if (passed or gap == 0) and q_records and x - 1 > y:
                if not has_room(plan, log, row):
                    j = before
                    status = STATUS_LOG_FULL
                    break
                state[right + P_TO] = y
                flush(plan, state, log, row, q)
                state[right + P_PENDING] = 1
                state[right + P_FROM] = x
            if passed:
                j = gallop(b, j, j_stop, x)
            turn = 0
    state[node + N_TURN] = turn
    state[left + P_POSITION] = i
    state[right + P_POSITION] = j
    state[left + P_KEY] = a[i] if i < i_end else KEY_MAX
    state[right + P_KEY] = b[j] if j < j_end else KEY_MAX
    if p_records:
        state[left + P_TO] = state[left + P_KEY]
    if q_records:
        state[right + P_TO] = state[right + P_KEY]
    state[R_COUNTERS + SEEKS] += operations
    state[R_WORK] += operations
    repeat_prefix(plan, state, rows, start, at - start)
    return status
