"""The innermost node in one loop, under a prefix where only the base has tuples.

A node is *plain* if it is one of the last depth and no participant has tuples of runs.  Where nothing
records, any number of participants is intersected, and of the matches those are dropped that conditions and
negated atoms refuse; where something does, one participant is listed and two are merged
(:mod:`lftj.search.regions.pair`), if nothing drops matches.  The matches are those that
:mod:`lftj.search.regions.node` gives, and records cover at least as much.

Cost of a node: the shortest range, times the logarithm of the others' lengths at most.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.conditions import (
    CONDITION,
    OP_AT_MOST,
    OP_DIFFERS,
    compared_with,
    condition_at,
    filter_holds,
)
from lftj.search.marks import clear_marks, intersect_marked, set_marks
from lftj.search.records import CURSOR, STATUS_DONE, STATUS_FULL, cursor_at
from lftj.search.regions.cursor import holds, open_base
from lftj.search.regions.node import open_negations, repeat_prefix
from lftj.search.regions.pair import merge_pair
from lftj.storage.seek import MERGE_RATIO, gallop, upper_bound


@part(forceinline=True)
def may_be_plain(node):
    """Whether the depth's nodes are plain where no participant has tuples of runs."""
    if node.log:
        return node.lists_matches != 0 and node.n_participants <= 2 and not drops_matches(node)
    return node.lists_matches != 0


@part(forceinline=True)
def drops_matches(node):
    """Whether a condition or a negated atom may refuse a key that all participants hold."""
    return node.filters != 0 or node.negations < node.end


@part(forceinline=True)
def is_plain(node):
    """Whether the node, all of whose participants are open, is plain."""
    if not may_be_plain(node):
        return False
    active = np.int64(0)
    for where in range(node.participants, node.negations, CURSOR):
        active += cursor_at(where).active
    return active == 0


@part(forceinline=True)
def open_plain(search, node):
    """Open a plain node without bounds below others; False, and nothing done, if it is none."""
    if not may_be_plain(node):
        return False
    for where in range(node.participants, node.negations, CURSOR):
        parent = cursor_at(where).parent
        if parent == 0:
            return False
        above = cursor_at(parent)
        if above.active or above.at < 0:
            return False
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        open_base(cursor)
        cursor.record_low = KEY_MIN
        cursor.recording = cursor.stream != 0
    open_negations(node)
    node.high = KEY_MAX
    node.logged = 0
    node.turn = 0
    search.opens += node.n_participants
    return True


@part(forceinline=True)
def list_plain(search, node, rows):
    """Write the matches of a plain node, from where its participants stand; a STATUS_*."""
    if node.n_participants == 2 and node.log:
        return merge_pair(search, node, rows)
    if node.n_participants == 1:
        return list_one(search, node, rows)
    return list_common(search, node, rows)


@part
def range_below(cursor, high):
    """Half-open range of the keys up to ``high`` that are ahead of a cursor."""
    start, end = cursor.position, cursor.end
    if high != KEY_MAX:
        end = upper_bound(view(cursor.keys, end), start, end, high)
    return start, end


@part
def list_one(search, node, rows):
    """:func:`list_plain` for one participant: its keys."""
    cursor = cursor_at(node.participants)
    start, end = range_below(cursor, node.high)
    keys = view(cursor.keys, cursor.end)
    at = search.rows
    count = min(end - start, rows.shape[1] - at)
    out = rows[search.depths - 1]
    for match in range(count):
        out[at + match] = keys[start + match]
    repeat_prefix(search, rows, at, kept_matches(search, node, out, at, count))
    stop = start + count
    cursor.position = stop
    cursor.key = keys[stop] if stop < cursor.end else KEY_MAX
    if cursor.recording:
        cursor.record_high = cursor.key
    search.nexts += count
    search.work += count
    return STATUS_DONE if stop == end else STATUS_FULL


@part
def list_common(search, node, rows):
    """:func:`list_plain` where nothing is recorded: the keys of the shortest range that all others hold.

    Each of the others is intersected with what is left, in the rows' last column; those that stay while
    the depth above varies are marked together, where there is a bit map.
    """
    use_marks = search.marks != 0 and mark_fixed(search, node, rows)
    if use_marks and search.marked == 0:
        return STATUS_DONE
    leader = np.int64(0)
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if not (use_marks and cursor.is_fixed):
            start, end = range_below(cursor, node.high)
            cursor.stop = end
            if leader == 0 or end - start < cursor_at(leader).stop - cursor_at(leader).position:
                leader = np.int64(where)
    return list_shared(search, node, rows, leader, use_marks)


@part
def list_shared(search, node, rows, leader, use_marks):
    """Write the leader's keys up to its ``stop`` that all others have up to theirs; a STATUS_*.

    leader: the Cursor of the shortest of the ranges.  use_marks: what is fixed is marked instead.
    """
    at = search.rows
    first = cursor_at(leader)
    start, end = first.position, first.stop
    stop = min(end, start + rows.shape[1] - at)
    out = rows[search.depths - 1]
    keys = view(first.keys, end)
    work = stop - start
    first.position = stop
    low, to = start, stop
    if use_marks:
        marks = view(search.marks, search.marks_words)
        found = intersect_marked(keys, low, to, marks, search.marks_first, out, at)
        keys, low, to = out, at, at + found
    alone = not use_marks
    for where in range(node.participants, node.negations, CURSOR):
        other = cursor_at(where)
        if where != leader and not (use_marks and other.is_fixed):
            other_low, other_to = other.position, other.stop
            others = view(other.keys, other_to)
            work += min(to - low, other_to - other_low)
            found = intersect(keys, low, to, others, other_low, other_to, out, at)
            keys, low, to = out, at, at + found
            alone = False
    if alone:
        for match in range(to - low):
            out[at + match] = keys[low + match]
    repeat_prefix(search, rows, at, kept_matches(search, node, out, at, to - low))
    search.seeks += work
    search.work += work
    return STATUS_DONE if stop == end else STATUS_FULL


@part(forceinline=True)
def kept_matches(search, node, keys, at, count):
    """Drop those of the ``count`` matches in keys[at:] that are refused; how many are left."""
    return drop_refused(search, node, keys, at, count) if drops_matches(node) else count


@part
def drop_refused(search, node, keys, at, count):
    """:func:`kept_matches` where something may refuse them."""
    for number in range(node.n_conditions):
        condition = condition_at(node.conditions + number * CONDITION)
        if condition.operator > OP_AT_MOST:
            kept = at
            if condition.operator == OP_DIFFERS:
                refused = compared_with(search.keys, condition)
                for match in range(at, at + count):
                    key = keys[match]
                    keys[kept] = key
                    kept += key != refused
            else:
                for match in range(at, at + count):
                    key = keys[match]
                    keys[kept] = key
                    kept += filter_holds(search.keys, condition, key)
            count = kept - at
    for where in range(node.negations, node.end, CURSOR):
        negation = cursor_at(where)
        search.seeks += count
        search.work += count
        kept = at
        for match in range(at, at + count):
            key = keys[match]
            keys[kept] = key
            kept += not holds(negation, key)
        count = kept - at
    return count


@part
def mark_fixed(search, node, rows):
    """Let the bit map hold the keys that all fixed participants share; False: it would not pay."""
    shortest = np.int64(0)
    length, others = KEY_MAX, KEY_MAX
    held = search.marked >= 0
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        its = cursor.end - cursor.position
        if cursor.is_fixed:
            if its < length:
                shortest, length = np.int64(where), its
            held = held and cursor.marked == cursor.position + 1
        else:
            others = min(others, its)
    if shortest == 0 or others == KEY_MAX or rows.shape[1] - search.rows < length:
        return False
    if not held:
        if others > MERGE_RATIO * length:
            return False
        mark_shared(search, node, shortest, rows)
    return search.marked == 0 or others <= MERGE_RATIO * search.marked


@part
def mark_shared(search, node, shortest, rows):
    """Mark what all fixed participants share, of which the Cursor ``shortest`` has the fewest keys."""
    at = search.rows
    out = rows[search.depths - 1]
    marks, base = view(search.marks, search.marks_words), search.marks_first
    first = first_fixed(node)
    keys = view(first.keys, search.marked_to)
    clear_marks(marks, base, keys, search.marked_from, search.marked_to)
    search.marked_from, search.marked_to = first.position, first.end
    cursor = cursor_at(shortest)
    low, to = cursor.position, cursor.end
    cursor.marked = low + 1
    keys = view(cursor.keys, to)
    work = to - low
    for where in range(node.participants, node.negations, CURSOR):
        other = cursor_at(where)
        if where != shortest and other.is_fixed:
            start, end = other.position, other.end
            other.marked = start + 1
            work += min(to - low, end - start)
            found = intersect(keys, low, to, view(other.keys, end), start, end, out, at)
            keys, low, to = out, at, at + found
    set_marks(marks, base, keys, low, to)
    search.marked = to - low
    search.work += work
    search.seeks += work


@part(forceinline=True)
def first_fixed(node):
    """The first participant that is fixed, of which there is one."""
    where = node.participants
    while not cursor_at(where).is_fixed:
        where += CURSOR
    return cursor_at(where)


@part
def intersect(keys, start, end, others, other, other_end, out, at):
    """List what keys[start:end] and others[other:other_end] share at ``out[at:]``; return how many.

    ``keys[start:end]`` may be ``out[at:]`` itself: it is never written ahead of what is read.
    """
    found = at
    if other_end - other <= MERGE_RATIO * (end - start):
        while start < end and other < other_end:
            key, landed = keys[start], others[other]
            out[found] = key
            found += key == landed
            start += key <= landed
            other += landed <= key
        return found - at
    while start < end:
        key = keys[start]
        other = gallop(others, other, other_end, key)
        if other == other_end:
            break
        out[found] = key
        found += others[other] == key
        start += 1
    return found - at
