"""One node of the search: open it and bind its matches; :mod:`lftj.search.base.block` finds them.

A node (docs/design/engine.md section 1) is the leapfrog join of its participants.  It works
in blocks: a bounded number of the *leader's* keys is tried against all others
and the matches, with the positions that deeper levels need, go to the depth's
lists.  So the inner loops are tight, the search can stop between any two
blocks, and an existence test can start with blocks of one key.

The leader is the shortest range, so a node costs O(shortest * log) as the
worst-case bound needs (LFTJ section 3).  Participants that stay fixed while the
depth before varies are a *stage* (:mod:`lftj.search.base.stage`), intersected once.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.base.block import filter_matches
from lftj.search.base.cursor import child_range, find
from lftj.search.base.records import BLOCK, CURSOR, FACTOR, cursor_at, factor_at, stage_at
from lftj.search.base.stage import MARKS_RATIO, current_stage, rent_stage
from lftj.search.conditions import condition_bounds
from lftj.storage.patch import patch_places_at, table_row
from lftj.storage.seek import gallop


@part(forceinline=True)
def bounds(search, node, depth):
    """Closed range of keys that the conditions and the thread's share allow; (1, 0) when empty."""
    low, high = KEY_MIN, KEY_MAX
    if search.split == depth:
        low, high = search.low, search.high
    return condition_bounds(search.keys, node.conditions, node.n_conditions, low, high)


@part(forceinline=True)
def open_node(search, node, depth):
    """Set the cursors of all participants below the present binding and choose the leader."""
    node.n_matches = 0
    node.next = 0
    node.position = 0
    node.end = 0
    node.block = node.first_block
    if depth + 1 == search.depths:
        node.weight = outer_weight(search)
    low, high = bounds(search, node, depth)
    if low > high:
        return
    if node.participants == node.negations:
        if low == high:
            open_equal(search, node, low)
        return
    limited = low != KEY_MIN or high != KEY_MAX
    stage = current_stage(node) if node.stages != node.stages_end else np.int64(0)
    while True:
        first = stage_at(stage).rest if stage else node.participants
        leader, length = open_cursors(node, first, limited, low, high)
        if node.stages == node.stages_end or leader == 0 or length == 0:
            break
        renewed = rent_stage(search, node, stage, length)
        if renewed == stage:
            break
        stage = renewed
    opened = (node.negations - first) // CURSOR
    node.stage = stage
    if stage:
        opened += 1
        leader, length = open_stage(node, stage_at(stage), leader, length, low, high)
    if leader:
        cursor = cursor_at(leader)
        node.keys, node.position = cursor.keys, cursor.position
        node.end = cursor.end if length > 0 else cursor.position
    node.leader = leader
    node.opens += opened
    if limited:
        node.seeks += opened
    search.work += opened


@part
def open_equal(search, node, key):
    """The node is bound by an equality alone."""
    view(node.matches, BLOCK)[0] = key
    node.n_matches = 1
    filter_matches(search, node)


@part(forceinline=True)
def open_cursors(node, first, limited, low, high):
    """Set the cursors from ``first`` on; the one with the shortest range, or 0, and its length."""
    leader = np.int64(0)
    length = KEY_MAX
    for where in range(first, node.negations, CURSOR):
        cursor = cursor_at(where)
        start, end = child_range(cursor)
        if limited:
            keys = view(cursor.keys, end)
            if low != KEY_MIN:
                start = find(cursor, keys, start, end, low)
            if high != KEY_MAX:
                end = find(cursor, keys, start, end, high + 1)
        cursor.position = start
        cursor.end = end
        if end - start < length:
            length = end - start
            leader = np.int64(where)
    return leader, length


@part(forceinline=True)
def open_stage(node, stage, leader, length, low, high):
    """Let a stage take part beside a leader and its length; these, 0 for a leader where the stage leads."""
    start, end = stage.start, stage.end
    keys = view(stage.keys, end)
    if low != KEY_MIN:
        start = gallop(keys, start, end, low)
    if high != KEY_MAX:
        end = gallop(keys, start, end, high + 1)
    node.stage_position = start
    ratio = MARKS_RATIO if stage.marks_words else 1
    if leader == 0 or (end - start) * ratio < length:
        leader = np.int64(0)
        node.keys, node.position, node.end = stage.keys, start, end
    if end == start:  # nothing below: no block will be tried
        length = np.int64(0)
    return leader, length


@part(forceinline=True)
def all_match(node):
    """Whether every key that the node has left is a match: one participant, nothing that drops matches."""
    return (
        node.negations - node.participants == CURSOR
        and node.filters == 0
        and node.leader != 0
        and cursor_at(node.leader).positions == 0
    )


@part(forceinline=True)
def outer_weight(search):
    """Product of the multiplicities that are bound before the last walked depth; -1: overflow."""
    weight = np.int64(1)
    for number in range(search.n_factors):
        factor = factor_at(search.factors + number * FACTOR)
        if not factor.inner:
            weight = times_multiplicity(factor, cursor_at(factor.parent).at, weight)
    return weight


@part
def patched_rows(factor, parent, position):
    """Rows at ``position`` of a factor's parent whose index has a patch."""
    places = patch_places_at(parent.patch)
    row, position = table_row(places, parent.in_patch, position)
    if row >= 0:
        place = row * places.levels + factor.column
        return view(places.counts, place + 1)[place]
    offsets = view(factor.offsets, position + 2)
    return offsets[position + 1] - offsets[position]


@part
def times_multiplicity(factor, position, weight):
    """``weight`` times the rows at ``position`` of the factor's parent; -1 for overflow, which stays."""
    parent = cursor_at(factor.parent)
    if parent.patch:
        rows = patched_rows(factor, parent, position)
    else:
        offsets = view(factor.offsets, position + 2)
        rows = offsets[position + 1] - offsets[position]
    if weight < 0 or weight > KEY_MAX // rows:
        return np.int64(-1)
    return weight * rows


@part(forceinline=True)
def bind(search, node, depth):
    """Bind the node's next match: its key, its participants' positions, its negations' branches."""
    match = node.next
    node.next = match + 1
    key = view(node.matches, BLOCK)[match]
    view(search.keys, search.depths)[depth] = key
    search.stamp += 1
    node.stamp = search.stamp
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if cursor.positions:
            cursor.at = view(cursor.positions, BLOCK)[match]
    for where in range(node.negations, node.negations_end, CURSOR):
        negation = cursor_at(where)
        if not negation.is_last:
            start, end = child_range(negation)
            keys = view(negation.keys, end)
            position = find(negation, keys, start, end, key)
            node.seeks += 1
            held = position < end and keys[position] == key
            negation.at = position if held else np.int64(-1)
