"""A node of bases alone: only they have tuples there, and nothing is recorded.

The *leader's* keys, those of the shortest range, are intersected with each other participant in turn, in
tight loops; participants that stay while depths above vary are a *stage*
(:mod:`lftj.search.machine.stage`), intersected once.  On the last depth all matches are listed
(:mod:`lftj.search.machine.plain`); on others a block of keys is tried at a time, and the matches wait in the
depth's list.  They are those that :mod:`lftj.search.machine.node` gives one by one, and the two agree on what
a cursor says of a bound key.

Invariants

1. ``position`` of no participant is beyond the next match: a participant that something hangs or counts
   below is led on to a match when that is bound.
2. ``position`` of the node is the first of the leader's keys that is not tried yet.
3. Blocks begin small and grow, so a node of which little is needed costs little.

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
from lftj.search.intersect import (
    intersect,
    intersect_marked,
    intersect_ranked,
    subtract_range,
    subtract_ranked,
)
from lftj.search.machine.cursor import beyond, child_range, hide_branch, holds, led_to
from lftj.search.machine.cut import cut_range
from lftj.search.machine.node import open_negations
from lftj.search.machine.stage import MARKS_RATIO, current_stages, rent_stage, stage_of
from lftj.search.records import CURSOR, SHORT_BLOCK, WAY_APART, cursor_at
from lftj.storage.seek import gallop
from lftj.storage.version_memory import index_at


@part(forceinline=True)
def is_on_bases(search, node):
    """Whether a node that is to be opened is one of bases alone, and has a way to go on so."""
    if node.log or (node.matches == 0 and not node.lists_matches):
        return False
    return search.runs == 0 or are_bases(node)


@part
def are_bases(node):
    """Whether only bases have tuples in a node that is to be opened."""
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if cursor.parent == 0:
            if index_at(cursor.index).runs:
                return False
        else:
            above = cursor_at(cursor.parent)
            if above.active or above.at < 0:
                return False
    return True


@part(forceinline=True)
def is_met(node, cursor):
    """Whether a participant takes part by itself: no stage in use covers it."""
    return cursor.staged == 0 or cursor.staged > node.staged


@part(forceinline=True)
def is_ranked(cursor):
    """Whether keys are looked up in a rank table."""
    return cursor.parent == 0 and index_at(cursor.index).ranks != 0


# -- open ------------------------------------------------------------------------------


@part(forceinline=True)
def open_block(search, node, low, high):
    """Open all participants on their keys in [low, high] and choose the leader; False: there is no match."""
    node.logged = 0
    node.n_matches = 0
    node.next = 0
    node.block = node.first_block
    if low > high:
        return False
    node.staged = current_stages(node)
    leader, length = open_cursors(node, low, high)
    while node.staged < node.n_stages and leader and length:
        if not rent_stage(search, node, node.staged + 1, length):
            break
        node.staged += 1
        leader, length = open_cursors(node, low, high)
    if leader:
        cursor = cursor_at(leader)
        node.keys, node.position, node.stop = cursor.keys, cursor.position, cursor.end
        if leader == node.varying and node.staged == node.n_stages > 1:
            node.keys, start, end = cut_range(search, node, cursor)
            node.position, node.stop = narrowed(node.keys, start, end, low, high)
            length = node.stop - node.position
    if node.staged:
        leader, length = open_stage(node, node.staged, leader, length, low, high)
    if leader:
        node.others -= 1
    node.leader = leader
    search.work += 1
    open_negations(node)
    return length > 0


@part(forceinline=True)
def open_cursors(node, low, high):
    """Open those that no stage in use covers; the one with the shortest range, or 0, and its length."""
    leader = np.int64(0)
    length = KEY_MAX
    opens = np.int64(0)
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if is_met(node, cursor):
            start, end = child_range(cursor)
            opens += 1
            if low != KEY_MIN:
                start = beyond(cursor, view(cursor.keys, end), start, end, low)
            if high != KEY_MAX:
                end = beyond(cursor, view(cursor.keys, end), start, end, high + 1)
            cursor.position, cursor.end, cursor.stop, cursor.active = start, end, end, 0
            if end - start < length:
                length = end - start
                leader = np.int64(where)
        elif cursor.leads:
            cursor.position, cursor.end = child_range(cursor)
            cursor.active = 0
    node.others = opens
    node.opens += opens
    if low != KEY_MIN or high != KEY_MAX:
        node.seeks += opens
    return leader, length


@part(forceinline=True)
def open_stage(node, number, leader, length, low, high):
    """Let a stage take part beside a leader and its length; these, 0 for a leader where the stage leads."""
    stage = stage_of(node, number)
    start, end = narrowed(stage.keys, stage.start, stage.end, low, high)
    node.opens += 1
    if leader == 0 or (end - start) * (MARKS_RATIO if stage.marks_words else 1) < length:
        leader, length = np.int64(0), end - start
        node.keys, node.position, node.stop = stage.keys, start, end
    return leader, length


@part(forceinline=True)
def narrowed(where, start, end, low, high):
    """Half-open range of those of the keys at an address in [start, end) that are in [low, high]."""
    if low != KEY_MIN:
        start = gallop(view(where, end), start, end, low)
    if high != KEY_MAX:
        end = gallop(view(where, end), start, end, high + 1)
    return start, end


# -- meet ------------------------------------------------------------------------------


@part
def meet(node, start, stop, out, at):
    """List those of the leader's keys[start:stop] that all others have up to their ``stop`` at ``out[at:]``.

    Returns how many, and look-ups.
    """
    keys, low, to = view(node.keys, stop), start, stop
    leader, staged = node.leader, node.staged
    work = np.int64(0)
    alone = True
    if staged and leader:
        found = meet_stage(stage_of(node, staged), keys, low, to, out, at)
        work += to - low
        if node.others == 0:
            return found, work
        keys, low, to, alone = out, at, at + found, False
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if where != leader and is_met(node, cursor):
            found, its = meet_cursor(node, cursor, keys, low, to, out, at)
            work += its
            keys, low, to, alone = out, at, at + found, False
    if alone:
        for match in range(np.uint64(to - low)):
            out[np.uint64(at) + match] = keys[np.uint64(low) + match]
    return to - low, work


@part(forceinline=True)
def count_met(search, node, passed, sought):
    """Count the leader's keys that were passed over, and what was looked up in others."""
    node.nexts += passed
    node.seeks += sought
    search.work += passed + sought


@part(forceinline=True)
def meet_stage(stage, keys, low, to, out, at):
    """List those of keys[low:to] that a stage has; how many."""
    if stage.marks_words:
        marks = view(stage.marks, stage.marks_words)
        return intersect_marked(keys, low, to, marks, stage.marks_first, out, at)
    if low == to:
        return np.int64(0)
    others, end = view(stage.keys, stage.end), stage.end
    first = gallop(others, stage.start, end, keys[low])
    if first < end and others[end - 1] > keys[to - 1]:
        end = gallop(others, first, end, keys[to - 1] + 1)
    return intersect(keys, low, to, others, first, end, out, at)


@part(forceinline=True)
def meet_cursor(node, cursor, keys, low, to, out, at):
    """List those of keys[low:to] that a cursor has up to its ``stop``; how many, and operations."""
    if is_ranked(cursor) and node.way != WAY_APART:  # there what it has passed counts
        return intersect_ranked(keys, low, to, index_at(cursor.index), out, at), to - low
    position, stop = cursor.position, cursor.stop
    found = intersect(keys, low, to, view(cursor.keys, stop), position, stop, out, at)
    return found, min(to - low, stop - position)


# -- drop -----------------------------------------------------------------------------


@part(forceinline=True)
def drops_matches(node):
    """Whether a condition or a negated atom may refuse a key that all participants hold."""
    return node.filters != 0 or node.negations < node.end


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
        if not negation.is_last:
            continue
        node.seeks += count
        search.work += count
        if negation.active:
            kept = at
            for match in range(at, at + count):
                key = keys[match]
                keys[kept] = key
                kept += not holds(negation, key)
            count = kept - at
        else:
            count = subtract(keys, at, at + count, negation)
    return count


@part
def subtract(keys, start, end, negation):
    """Keep those of keys[start:end] that a negation, which has no tuples of runs, lacks; how many."""
    if negation.parent == 0 and index_at(negation.index).ranks:
        return subtract_ranked(keys, start, end, index_at(negation.index))
    stop = negation.end
    return subtract_range(keys, start, end, view(negation.keys, stop), negation.position, stop)


# -- blocks ----------------------------------------------------------------------------


@part(forceinline=True)
def has_match(node):
    """Whether a match waits in the depth's list."""
    return node.next < node.n_matches


@part(forceinline=True)
def has_keys(node):
    """Whether the leader has keys that are not tried yet."""
    return node.position < node.stop


@part(forceinline=True)
def bind_match(node):
    """Land what has branches below on the next match, which is returned; negated atoms, too."""
    match = node.next
    node.next = match + 1
    key = view(node.matches, SHORT_BLOCK)[match]
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if cursor.leads:
            cursor.at = led_to(cursor, key)
    for where in range(node.negations, node.end, CURSOR):
        negation = cursor_at(where)
        if not negation.is_last:
            node.seeks += 1
            if not holds(negation, key):
                hide_branch(negation)
    return key


@part
def lead_on(node):
    """Move others to the leader's next key, and it to theirs; False: there is no match left."""
    start, end = node.position, node.stop
    keys = view(node.keys, end)
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if where != node.leader and is_met(node, cursor):
            position, stop = led_to(cursor, keys[start]), cursor.end
            if position == stop:
                return False
            key = view(cursor.keys, stop)[position]
            if key > keys[start]:
                start = gallop(keys, start + 1, end, key)
                if start == end:
                    return False
    node.position = start
    return True


@part
def bound_others(node, highest):
    """Let those beside the leader and the stage end with their keys up to ``highest``."""
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if where != node.leader and is_met(node, cursor) and not is_ranked(cursor):
            position, end = cursor.position, cursor.end
            keys = view(cursor.keys, end)
            cursor.stop = end if keys[end - 1] <= highest else gallop(keys, position, end, highest + 1)


@part
def fill_block(search, node):
    """Try up to ``block`` of the leader's keys; the matches go to the depth's list."""
    node.next = 0
    if node.others and node.block > 1 and not lead_on(node):  # a single key is looked up at once
        node.position = node.stop
        node.n_matches = 0
        return
    start = node.position
    stop = min(node.stop, start + node.block)
    node.block = min(4 * node.block, SHORT_BLOCK)
    node.position = stop
    if node.leader:
        cursor_at(node.leader).position = start
    if node.others:
        bound_others(node, view(node.keys, stop)[stop - 1])
    matches = view(node.matches, SHORT_BLOCK + 1)
    found, work = meet(node, start, stop, matches, np.int64(0))
    node.n_matches = kept_matches(search, node, matches, np.int64(0), found)
    count_met(search, node, stop - start, work)
