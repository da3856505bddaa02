"""Stages: the part of a node's intersection that stays while the depth before varies.

In ``tri(a, b, c)`` with the order a, b, c the children of a in e(a, c) are the
same for every b.  A stage lists such a fixed intersection once, and marks its
keys in a bit map where keys are dense: testing a key is then one load.  Stages
of a depth build on each other, one per earlier depth that fixes participants;
a clique's innermost node then only tests the keys of its newest participant.
(LFTJ has no such thing; the intersection cache of Mhedhbi and Salihoglu, VLDB
2019, is the same idea without marks.)

A stage is built only after as many leader keys were tried without it as it has
to list (ski rental), so it costs at most twice what it could have saved.

Invariants

1. A stage is up to date when its stamp is that of the node that binds the last of its parents; stamps are
   never given out twice.
2. Outside :func:`build_stage` the bit map holds exactly the stage's keys, also of a stale one: they are what
   is to be cleared.
3. Every key of every participant of the depth lies within the bit map's range.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.base.cursor import child_range
from lftj.search.base.records import CURSOR, STAGE, cursor_at, node_at, stage_at
from lftj.search.marks import clear_marks, intersect_marked, set_marks
from lftj.storage.seek import gallop

MARKS_RATIO = 12
"""A marked stage leads only when it has this many times fewer keys than the shortest other range."""


@part
def intersect_galloping(keys, start, end, others, other_start, other_end, out):
    """List in ``out`` what keys[start:end] and others[other_start:other_end] share; return how many.

    ``keys`` may be that list itself: it is never written ahead of what is read.
    """
    found = np.int64(0)
    position = other_start
    while start < end:
        key = keys[start]
        position = gallop(others, position, other_end, key)
        if position == other_end:
            break
        if others[position] == key:
            out[found] = key
            found += 1
            start += 1
        else:
            start = gallop(keys, start + 1, end, others[position])
    return found


@part(forceinline=True)
def is_current(stage):
    """Whether a stage holds what it would be built of now."""
    return stage.stamp == node_at(stage.bound_at).stamp


@part(forceinline=True)
def current_stage(node):
    """Last stage of a depth that is up to date together with all before it; 0: none."""
    current = np.int64(0)
    for where in range(node.stages, node.stages_end, STAGE):
        if not is_current(stage_at(where)):
            break
        current = np.int64(where)
    return current


@part(forceinline=True)
def rent_stage(search, node, current, length):
    """Count ``length`` leader keys against the first stale stage; build it once that has cost enough.

    Returns the last stage that is up to date now.
    """
    where = current + STAGE if current else node.stages
    if where >= node.stages_end:
        return current
    stage = stage_at(where)
    stamp = node_at(stage.bound_at).stamp
    if stage.spent_stamp != stamp:
        stage.spent_stamp = stamp
        stage.spent = 0
    price = KEY_MAX
    first = node.participants
    if current:
        before = stage_at(current)
        price = before.end - before.start
        first = before.rest
    for place in range(first, stage.rest, CURSOR):
        low, high = child_range(cursor_at(place))
        price = min(price, high - low)
    if stage.spent >= price:
        build_stage(search, node, where)
        return where
    stage.spent += length
    return current


@part
def build_stage(search, node, where):
    """Intersect the stage's participants with the stage before it; list and mark the result.

    Precondition: the stage before, if it is one of the same depth, is up to date.
    """
    stage = stage_at(where)
    marks = view(stage.marks, stage.marks_words)
    if stage.marks_words and stage.stamp != 0:
        clear_marks(marks, stage.marks_first, view(stage.keys, stage.end), stage.start, stage.end)
    if where > node.stages:
        work = extend_stage(stage, stage_at(where - STAGE))
    else:
        work = begin_stage(stage, cursor_at(node.participants), node.participants + CURSOR)
    stage.stamp = node_at(stage.bound_at).stamp
    if stage.marks_words:
        set_marks(marks, stage.marks_first, view(stage.keys, stage.end), stage.start, stage.end)
        work += stage.end - stage.start
    node.nexts += work
    search.work += work


@part
def begin_stage(stage, first, rest):
    """Let a stage hold what its depth's first participant and those from ``rest`` on share; operations."""
    start, end = child_range(first)
    stage.keys, stage.start, stage.end = first.keys, start, end
    return end - start + narrow_stage(stage, rest)


@part
def extend_stage(stage, before):
    """Let a stage hold what the one before it and its participants beside those of that share; operations."""
    start, end = before.start, before.end
    stage.keys, stage.start, stage.end = before.keys, start, end
    rest = before.rest
    work = end - start
    cursor = cursor_at(rest)
    low, high = child_range(cursor)
    if before.marks_words and high - low <= MARKS_RATIO * (end - start):
        others, marks = view(cursor.keys, high), view(before.marks, before.marks_words)
        out = view(stage.list, min(high - low, end - start) + 1)
        found = intersect_marked(others, low, high, marks, before.marks_first, out, np.int64(0))
        stage.keys, stage.start, stage.end = stage.list, 0, found
        work += min(high - low, end - start)
        rest += CURSOR
    return work + narrow_stage(stage, rest)


@part
def narrow_stage(stage, first):
    """Intersect what a stage holds with its participants from ``first`` on; operations."""
    work = np.int64(0)
    for where in range(first, stage.rest, CURSOR):
        cursor = cursor_at(where)
        low, high = child_range(cursor)
        start, end = stage.start, stage.end
        keys, others = view(stage.keys, end), view(cursor.keys, high)
        work += min(high - low, end - start)
        out = view(stage.list, min(high - low, end - start) + 1)
        if high - low < end - start and stage.keys != stage.list:
            found = intersect_galloping(others, low, high, keys, start, end, out)
        else:
            found = intersect_galloping(keys, start, end, others, low, high, out)
        stage.keys, stage.start, stage.end = stage.list, 0, found
    return work
