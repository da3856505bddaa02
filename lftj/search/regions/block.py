"""A node before the last depth in blocks: only the base has tuples there, and nothing is recorded.

A bounded number of the *leader's* keys, those of the shortest range, is intersected with each other
participant in turn; the matches wait in the depth's list.  They are those that
:mod:`lftj.search.regions.node` gives one by one, and the two agree on what a cursor says of a bound key.

Invariants

1. ``position`` of no participant is beyond the next match: a participant that something hangs below is
   led on to a match when that is bound.
2. ``position`` of the node is the first of the leader's keys that is not tried yet.
3. Blocks begin small and grow, so a node of which little is needed costs little.

Cost of a node: the shortest range, times the logarithm of the others' lengths at most.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view, view32
from lftj.search.records import CURSOR, SHORT_BLOCK, cursor_at
from lftj.search.regions.cursor import beyond, open_cursor
from lftj.search.regions.node import open_negations
from lftj.search.regions.plain import intersect
from lftj.storage.seek import gallop
from lftj.storage.version_memory import index_at

FIRST_BLOCK = 8
"""Leader keys that a node tries first."""


@part(forceinline=True)
def may_block(node):
    """Whether a node that is to be opened can go in blocks."""
    if node.matches == 0 or node.log:
        return False
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
def open_block(search, node, low, high):
    """Open all participants on their keys in [low, high] and choose the leader; False: there is no match."""
    node.logged = 0
    node.n_matches = 0
    node.next = 0
    node.block = FIRST_BLOCK
    if low > high:
        return False
    length = KEY_MAX
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        open_cursor(cursor)
        start, end = cursor.position, cursor.end
        keys = view(cursor.keys, end)
        if low != KEY_MIN:
            start = beyond(cursor, keys, start, end, low)
            cursor.position = start
        if high != KEY_MAX:
            end = beyond(cursor, keys, start, end, high + 1)
            cursor.end = end
        if end - start < length:
            length = end - start
            node.leader = where
            node.position = start
    search.opens += node.n_participants
    open_negations(node)
    return length > 0


@part(forceinline=True)
def has_match(node):
    """Whether a match waits in the depth's list."""
    return node.next < node.n_matches


@part(forceinline=True)
def has_keys(node):
    """Whether the leader has keys that are not tried yet."""
    return node.position < cursor_at(node.leader).end


@part(forceinline=True)
def bind_match(node):
    """Land what has branches below on the next match, which is returned."""
    match = node.next
    node.next = match + 1
    key = view(node.matches, SHORT_BLOCK)[match]
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if not cursor.is_last:
            cursor.at = led_to(cursor, key)
    return key


@part(forceinline=True)
def led_to(cursor, key):
    """Lead a participant, which is at a key, on to its first that is not below ``key``; its position."""
    position, end = cursor.position, cursor.end
    keys = view(cursor.keys, end)
    if keys[position] < key:
        position = beyond(cursor, keys, position, end, key)
        cursor.position = position
    return position


@part
def lead_on(node):
    """Move all others to the leader's next key, and it to theirs; False: there is no match left."""
    leader = cursor_at(node.leader)
    start, end = node.position, leader.end
    keys = view(leader.keys, end)
    for where in range(node.participants, node.negations, CURSOR):
        if where != node.leader:
            cursor = cursor_at(where)
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
def fill_block(search, node):
    """Try up to ``block`` of the leader's keys; the matches go to the depth's list."""
    leader = cursor_at(node.leader)
    end = leader.end
    node.next = 0
    node.n_matches = 0
    if not lead_on(node):
        node.position = end
        return
    start = node.position
    stop = min(end, start + node.block)
    node.block = min(4 * node.block, SHORT_BLOCK)
    node.position = stop
    leader.position = start
    keys = view(leader.keys, end)
    highest = keys[stop - 1]
    work = stop - start
    matches = view(node.matches, SHORT_BLOCK + 1)
    low, to = start, stop
    if node.n_participants == 1:
        for place in range(start, stop):
            matches[place - start] = keys[place]
        low, to = np.int64(0), work
    for where in range(node.participants, node.negations, CURSOR):
        if where != node.leader and low < to:
            other = cursor_at(where)
            found, its = meet_block(other, keys, low, to, highest, matches)
            work += its
            keys, low, to = matches, np.int64(0), found
    node.n_matches = to - low
    search.seeks += work
    search.work += work


@part(forceinline=True)
def meet_block(cursor, keys, low, to, highest, matches):
    """List those of keys[low:to], which end at ``highest``, that a cursor has: how many, and operations."""
    if cursor.parent == 0:
        index = index_at(cursor.index)
        if index.ranks:
            return intersect_ranked(keys, low, to, index, matches), to - low
    position, end = cursor.position, cursor.end
    others = view(cursor.keys, end)
    if others[end - 1] > highest:
        end = gallop(others, position, end, highest + 1)
    found = intersect(keys, low, to, others, position, end, matches, np.int64(0))
    return found, min(to - low, end - position)


@part
def intersect_ranked(keys, start, end, index, out):
    """List those of keys[start:end] that level 0 of an index with a rank table has; return how many.

    ``keys[start:end]`` may be ``out`` itself: it is never written ahead of what is read.
    """
    base, spread = index.first_key, index.spread
    table = view32(index.ranks, spread + 1)
    found = np.int64(0)
    for place in range(start, end):
        key = keys[place]
        out[found] = key
        if base <= key and np.uint64(key) - np.uint64(base) < np.uint64(spread):
            rank = np.uint64(key) - np.uint64(base)
            found += table[rank + np.uint64(1)] > table[rank]
    return found
