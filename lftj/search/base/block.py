"""One block of a node: a bounded number of the leader's keys, tried against all other participants.

How a block is intersected is chosen per node:

* a stage that is marked (:mod:`lftj.search.base.stage`) and nothing else: one load per key;
* two ranges of similar length are merged;
* everything else is a leapfrog that the leader leads: others are galloped, or
  looked up where level 0 has a rank table.

Then conditions and negated atoms that are complete here drop matches.

Invariants: lists hold matches in increasing key order; a cursor never moves
back within a node; ranges are half-open.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.search.base.cursor import child_range, find
from lftj.search.base.records import BLOCK, CURSOR, FILTERS_KEYS, cursor_at, stage_at
from lftj.search.conditions import (
    CONDITION,
    OP_AT_MOST,
    OP_DIFFERS,
    compared_with,
    condition_at,
    filter_holds,
)
from lftj.search.marks import intersect_marked, marked
from lftj.storage.seek import MERGE_RATIO, gallop


@part(forceinline=True)
def fill_block(search, node):
    """Try up to ``block`` leader keys; put the matches into the depth's lists, ``n_matches`` of them.

    Moves ``position``; the node is exhausted when that is ``end``.
    """
    block = node.block
    node.block = min(4 * block, BLOCK)
    leader, start, end = node.leader, node.position, node.end
    stop = min(end, start + block)
    first = stage_at(node.stage).rest if node.stage else node.participants
    others = (node.negations - first) // CURSOR - (1 if leader else 0)
    test_stage = node.stage != 0 and leader != 0
    positions = cursor_at(leader).positions if leader else np.int64(0)
    if others == 0 and not test_stage:
        found, reached, seeks = take_block(node, start, stop, positions), stop, np.int64(0)
    elif others == 0 and positions == 0 and stage_at(node.stage).marks_words:
        stage = stage_at(node.stage)
        keys, matches = view(node.keys, end), view(node.matches, BLOCK)
        marks = view(stage.marks, stage.marks_words)
        found = intersect_marked(keys, start, stop, marks, stage.marks_first, matches, np.int64(0))
        reached, seeks = stop, stop - start
    else:
        other = np.int64(0)
        if positions == 0 and not test_stage:
            other = merged_with(node, first, end - start)
        if other:
            cursor = cursor_at(other)
            before = cursor.position
            found, reached = merge_block(node, cursor, start, stop)
            seeks = cursor.position - before
            if cursor.position == cursor.end:
                node.end = reached
        else:
            found, reached, seeks = leapfrog_block(node, start, stop, first)
    node.position = reached
    node.next = 0
    node.n_matches = found
    node.nexts += reached - start
    node.seeks += seeks
    search.work += reached - start + seeks
    if found and node.filters:
        filter_matches(search, node)


@part(forceinline=True)
def take_block(node, start, stop, positions):
    """All leader keys in [start, stop) are matches; how many.  ``positions``: their list, or 0."""
    keys, matches = view(node.keys, stop), view(node.matches, BLOCK)
    found = stop - start
    for match in range(found):
        matches[match] = keys[start + match]
    if positions:
        listed = view(positions, BLOCK)
        for match in range(found):
            listed[match] = start + match
    return found


@part(forceinline=True)
def merged_with(node, first, length):
    """The one participant from ``first`` on beside the leader when merging with it pays, else 0."""
    other = np.int64(0)
    for where in range(first, node.negations, CURSOR):
        if where != node.leader:
            if other:
                return np.int64(0)
            other = np.int64(where)
    if other == 0:
        return other
    cursor = cursor_at(other)
    if cursor.positions or cursor.ranks or cursor.end - cursor.position > MERGE_RATIO * length:
        return np.int64(0)
    return other


@part
def merge_block(node, other, start, stop):
    """Merge the leader's keys in [start, stop) with the range of one other participant, which moves.

    Returns the number of matches, and the first leader key that was not passed.
    """
    position, end = other.position, other.end
    keys, others, matches = view(node.keys, stop), view(other.keys, end), view(node.matches, BLOCK)
    found = np.int64(0)
    while start < stop and position < end:
        key, landed = keys[start], others[position]
        matches[found] = key
        found += key == landed
        start += key <= landed
        position += landed <= key
    other.position = position
    return found, start


@part
def leapfrog_block(node, start, stop, first):
    """Leapfrog search (LFTJ section 3.1) led by one list, for any number and kind of participants.

    ``first``: the first of those that take part beside the stage.
    Returns matches, the next leader position (``end`` when some participant ended), and seeks.
    """
    leader, end = node.leader, node.end
    keys, matches = view(node.keys, end), view(node.matches, BLOCK)
    positions = cursor_at(leader).positions if leader else np.int64(0)
    test_stage = node.stage != 0 and leader != 0
    found = np.int64(0)
    seeks = np.int64(0)
    while start < stop:
        key = keys[start]
        if test_stage:
            seeks += 1
            following = pass_stage(node, keys, start, key)
            if following != start:
                start = following
                continue
        agreed = True
        for where in range(first, node.negations, CURSOR):
            if where == leader:
                continue
            seeks += 1
            cursor = cursor_at(where)
            other_end = cursor.end
            others = view(cursor.keys, other_end)
            position = find(cursor, others, cursor.position, other_end, key)
            cursor.position = position
            if position == other_end:
                return found, end, seeks
            if others[position] != key:
                start = gallop(keys, start + 1, end, others[position])
                agreed = False
                break
            if cursor.positions:
                view(cursor.positions, BLOCK)[found] = position
        if agreed:
            matches[found] = key
            if positions:
                view(positions, BLOCK)[found] = start
            found += 1
            start += 1
    return found, start, seeks


@part(forceinline=True)
def pass_stage(node, keys, start, key):
    """The leader's position, if its stage has the key there, else that of the next key that it may have."""
    stage = stage_at(node.stage)
    if stage.marks_words:
        return start if marked(view(stage.marks, stage.marks_words), stage.marks_first, key) else start + 1
    end = stage.end
    staged = view(stage.keys, end)
    position = gallop(staged, node.stage_position, end, key)
    node.stage_position = position
    if position == end:
        return node.end
    return start if staged[position] == key else gallop(keys, start + 1, node.end, staged[position])


@part
def filter_matches(search, node):
    """Drop the matches that a condition or a negated atom, fully bound here, refuses."""
    for number in range(node.n_conditions):
        condition = condition_at(node.conditions + number * CONDITION)
        if condition.operator > OP_AT_MOST:
            filter_condition(search, node, condition)
    for where in range(node.negations, node.negations_end, CURSOR):
        if cursor_at(where).is_last:
            filter_negation(search, node, cursor_at(where))


@part
def keep_match(node, source, target):
    """Move a match, with its positions, to an earlier place of the lists."""
    matches = view(node.matches, BLOCK)
    matches[target] = matches[source]
    for where in range(node.participants, node.negations, CURSOR):
        if cursor_at(where).positions:
            positions = view(cursor_at(where).positions, BLOCK)
            positions[target] = positions[source]


@part
def filter_condition(search, node, condition):
    """Keep the matches for which one filter condition holds."""
    matches = view(node.matches, BLOCK)
    kept = np.int64(0)
    if condition.operator == OP_DIFFERS and node.filters == FILTERS_KEYS:
        refused = compared_with(search.keys, condition)
        for match in range(node.n_matches):
            key = matches[match]
            matches[kept] = key
            kept += key != refused
    else:
        for match in range(node.n_matches):
            if filter_holds(search.keys, condition, matches[match]):
                if kept != match:
                    keep_match(node, match, kept)
                kept += 1
    node.n_matches = kept


@part
def filter_negation(search, node, negation):
    """Drop the matches that a negated atom holds, whose last variable is bound here."""
    start, end = child_range(negation)
    if start == end:
        return
    others, matches = view(negation.keys, end), view(node.matches, BLOCK)
    count = node.n_matches
    node.seeks += count
    search.work += count
    kept = np.int64(0)
    only_keys = node.filters == FILTERS_KEYS
    for match in range(count):
        key = matches[match]
        start = find(negation, others, start, end, key)
        if only_keys:
            matches[kept] = key
            kept += start == end or others[start] != key
        elif start == end or others[start] != key:
            if kept != match:
                keep_match(node, match, kept)
            kept += 1
    node.n_matches = kept
