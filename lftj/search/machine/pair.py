"""A plain node (:mod:`lftj.search.machine.plain`) with two participants, in one loop.

The same matches as :mod:`lftj.search.machine.node` gives, and records that cover at
least as much.  Three ways, by the lengths of the two ranges:

* one is more than ``gap`` times the other, as always where ``gap`` is 0: leapfrog, with a record per gap.
  ``turn`` is the participant, 0 or 1, that steps after a match: the one that did not move last;
* else a merge, in which neither side skips much: one record each;
* the same by the marks of the side that stays while the depth above
  varies (:mod:`lftj.search.machine.stage`), for whole evaluations over dense keys: one load per key of the
  other.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.intersect import intersect_marked
from lftj.search.machine.cursor import flush
from lftj.search.machine.node import has_room
from lftj.search.machine.rows import take_matches
from lftj.search.machine.stage import build_stage, is_current, stage_of
from lftj.search.records import CURSOR, STATUS_DONE, STATUS_FULL, STATUS_LOG_FULL, cursor_at
from lftj.storage.seek import gallop, upper_bound


@part
def merge_pair(search, node, rows):
    """The rest of a plain node with two participants, from where both have landed; a STATUS_*.

    The same operations and records as align, step and emit, in one loop.
    """
    left, right = cursor_at(node.participants), cursor_at(node.participants + CURSOR)
    i, j, i_stop, j_stop = left.position, right.position, left.end, right.end
    a, b = view(left.keys, i_stop), view(right.keys, j_stop)
    if node.high != KEY_MAX:
        i_stop, j_stop = upper_bound(a, i, i_stop, node.high), upper_bound(b, j, j_stop, node.high)
    longer, shorter = max(i_stop - i, j_stop - j), min(i_stop - i, j_stop - j)
    start = search.rows
    if longer > search.gap * shorter:
        status = leapfrog_pair(search, node, i_stop, j_stop, rows)
    elif node.n_stages == 0 or left.staged == right.staged:  # neither skips much: both sides stay one record
        status = merge_both(search, node, left, right, i_stop, j_stop, rows)
    elif left.staged:
        status = list_marked(search, node, left, i_stop, right, j_stop, rows)
    else:
        status = list_marked(search, node, right, j_stop, left, i_stop, rows)
    land_at(left, a)
    land_at(right, b)
    count = search.rows - start
    search.rows = start
    take_matches(search, rows, start, count)
    return status


@part(forceinline=True)
def land_at(cursor, keys):
    """Let a cursor have landed where it stands; its record goes on up to there."""
    cursor.key = keys[cursor.position] if cursor.position < cursor.end else KEY_MAX
    if cursor.stream:
        cursor.record_high = cursor.key


@part(forceinline=True)
def count_seeks(search, node, n):
    """Count operations."""
    node.seeks += n
    search.work += n


@part(forceinline=True)
def merge_both(search, node, left, right, i_stop, j_stop, rows):
    """Merge two ranges, up to their stops; a STATUS_*."""
    i, j, at, capacity = left.position, right.position, search.rows, rows.shape[1]
    a, b = view(left.keys, i_stop), view(right.keys, j_stop)
    out = rows[search.scratch]
    before = i + j
    status = STATUS_DONE
    while i < i_stop and j < j_stop:
        if at == capacity:
            status = STATUS_FULL
            break
        x, y = a[i], b[j]
        out[at] = x
        at += x == y
        i += x <= y
        j += y <= x
    count_seeks(search, node, i + j - before)
    left.position, right.position, search.rows = i, j, at
    return status


@part
def list_marked(search, node, fixed, fixed_stop, varying, varying_stop, rows):
    """List what two ranges share, by the stage of the one that is fixed; a STATUS_*."""
    stage = stage_of(node, 1)
    if stage.marks_words == 0:
        return merge_both(search, node, fixed, varying, fixed_stop, varying_stop, rows)
    if not is_current(stage):
        build_stage(search, node, 1)
    i, j, at = fixed.position, varying.position, search.rows
    a, b = view(fixed.keys, fixed.end), view(varying.keys, varying.end)
    i_to, j_to = fixed_stop, varying_stop  # nothing is shared beyond the side that ends first
    if a[i_to - 1] < b[j_to - 1]:
        j_to = upper_bound(b, j, j_to, a[i_to - 1])
    else:
        i_to = upper_bound(a, i, i_to, b[j_to - 1])
    marks = view(stage.marks, stage.marks_words)
    stop = min(j_to, j + rows.shape[1] - at)
    out = rows[search.scratch]
    at += intersect_marked(b, j, stop, marks, stage.marks_first, out, at)
    i_to = i_to if stop == j_to else gallop(a, i, fixed.end, b[stop])
    count_seeks(search, node, i_to + stop - i - j)
    fixed.position, varying.position, search.rows = i_to, stop, at
    return STATUS_DONE if stop == j_to else STATUS_FULL


@part
def leapfrog_pair(search, node, i_stop, j_stop, rows):
    """Leapfrog search of two ranges, up to their stops, with a record per gap; a STATUS_*."""
    left, right = cursor_at(node.participants), cursor_at(node.participants + CURSOR)
    i, j, at, capacity = left.position, right.position, search.rows, rows.shape[1]
    a, b = view(left.keys, left.end), view(right.keys, right.end)
    out = rows[search.scratch]
    operations = np.int64(0)
    status = STATUS_DONE
    turn = node.turn
    while i < i_stop and j < j_stop:
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
            continue
        if x < y:
            i, gone = pass_gap(search, node, left, a, i, i_stop, y)
        else:
            j, gone = pass_gap(search, node, right, b, j, j_stop, x)
        if not gone:
            status = STATUS_LOG_FULL
            break
        turn = np.int64(x < y)
    node.turn = turn
    count_seeks(search, node, operations)
    left.position, right.position, search.rows = i, j, at
    return status


@part(forceinline=True)
def pass_gap(search, node, cursor, keys, position, stop, key):
    """Seek ``key``, which is ahead of a position: the new one, and whether the log had room."""
    gap, low = search.gap, keys[position]
    to = position + 1
    near = min(stop, position + gap)
    while to < near and keys[to] < key:
        to += 1
    passed = to < stop and keys[to] < key
    if (passed or gap == 0) and cursor.stream and key - 1 > low:
        if not has_room(node):
            return position, False
        cursor.record_high = low
        flush(search, node, cursor)
        cursor.recording = 1
        cursor.record_low = key
    if passed:
        to = gallop(keys, to, stop, key)
    return to, True
