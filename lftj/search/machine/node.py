"""One node, step by step: open it, align its participants, step, with records (LFTJ section 3).

Invariants

1. ``open_node`` leaves every participant landed on its first key, or says that the
   node has no match; ``align`` goes on from where they have landed, so a node can
   be left for want of room and resumed.
2. What a participant did since its last record was written is its growing record.
3. The ring lists the participants by the keys that they landed on when the node was opened, those that
   landed on one key in the order of the cursors.  They take turns in this order (LFTJ 3.1): the one whose
   turn it is has the least key, the one before it the greatest.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.search.conditions import filters_hold
from lftj.search.machine.cursor import extend, flush, hide_branch, holds, next_key, open_cursor, seek
from lftj.search.records import CURSOR, ROOM, cursor_at, node_log_at, stream_at

ALIGN_MATCH = 1
ALIGN_END = 0
ALIGN_LOG_FULL = 2


@part(forceinline=True)
def has_room(node):
    """Whether the depth's logs take one more step."""
    return not node.log or logs_have_room(node)


@part
def logs_have_room(node):
    """:func:`has_room` of a node that records."""
    log = node_log_at(node.log)
    if log.count + ROOM > log.capacity:
        return False
    for where in range(node.participants, node.end, CURSOR):
        if cursor_at(where).stream:
            stream = stream_at(cursor_at(where).stream)
            if stream.count + ROOM > stream.capacity:
                return False
    return True


@part(forceinline=True)
def begin_records(node):
    """Nothing is recorded of the node as yet."""
    node.logged = 0
    if node.log:
        for where in range(node.participants, node.end, CURSOR):
            cursor_at(where).recording = 0


@part(forceinline=True)
def close_node(search, node):
    """Write the records that are still growing."""
    if node.log:
        for where in range(node.participants, node.end, CURSOR):
            if cursor_at(where).stream:
                flush(search, node, cursor_at(where))


@part(forceinline=True)
def open_node(search, node, low, high):
    """Open all participants and land them on their first key >= low; False: the node has no match."""
    node.high = high
    begin_records(node)
    if low > high:
        return False
    node.turn = 0
    for number in range(node.n_participants):
        where = node.participants + number * CURSOR
        cursor = cursor_at(where)
        open_cursor(cursor)
        node.opens += 1
        landed = seek(cursor, low, np.int64(0))
        extend(search, node, cursor, low, cursor.key, False)
        if not landed:
            return False
        give_turn(node, number, where)
    open_negations(node)
    return True


@part(forceinline=True)
def give_turn(node, number, where):
    """Give a participant that has landed, behind so many others, its place in the ring (invariant 3)."""
    ring = view(node.ring, node.n_participants)
    key = cursor_at(where).key
    to = np.int64(number)
    while to > 0 and cursor_at(ring[to - 1]).key > key:
        ring[to] = ring[to - 1]
        to -= 1
    ring[to] = where


@part
def open_negations(node):
    """Open the depth's negated atoms, for :func:`accept`."""
    for where in range(node.negations, node.end, CURSOR):
        open_cursor(cursor_at(where))


@part(forceinline=True)
def align(search, node):
    """Leapfrog search (LFTJ section 3.1) from the keys landed on: an ALIGN_*; at a match all have one key."""
    gap, count = search.gap, node.n_participants
    ring = view(node.ring, count)
    high, turn = node.high, node.turn
    before = turn - 1 if turn > 0 else count - 1
    greatest = cursor_at(ring[before]).key
    found = ALIGN_END
    while greatest <= high:
        cursor = cursor_at(ring[turn])
        if cursor.key == greatest:
            found = ALIGN_MATCH
            break
        if not has_room(node):
            found = ALIGN_LOG_FULL
            break
        node.seeks += 1
        search.work += 1
        landed = seek(cursor, greatest, gap)
        key = cursor.key
        extend(search, node, cursor, greatest, key, cursor.moved <= gap)
        if not landed:
            break
        greatest = key
        turn = turn + 1 if turn + 1 < count else np.int64(0)
    node.turn = turn
    return found


@part
def accept(search, node, key):
    """Whether the conditions and the negated atoms that are complete here let the key pass.

    Negated atoms with deeper levels are bound on the way.
    """
    if node.filters and not filters_hold(search.keys, node.conditions, node.n_conditions, key):
        return False
    for where in range(node.negations, node.end, CURSOR):
        negation = cursor_at(where)
        node.seeks += 1
        held = holds(negation, key)
        if negation.is_last:
            extend(search, node, negation, key, key, False)
            if held:
                return False
        elif not held:
            hide_branch(negation)
    return True


@part(forceinline=True)
def step(search, node):
    """After a match, move the participant on whose turn it is; False: it has no further key."""
    count = node.n_participants
    if count == 0:
        return False
    turn = node.turn
    cursor = cursor_at(view(node.ring, count)[turn])
    node.turn = turn + 1 if turn + 1 < count else 0
    key = cursor.key
    node.nexts += 1
    search.work += 1
    if key >= node.high:
        return False
    landed = next_key(cursor)
    extend(search, node, cursor, key + 1, cursor.key, False)
    return landed
