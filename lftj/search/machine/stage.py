"""Stages: the part of a node's intersection that stays while depths above it vary.

In ``tri(a, b, c)`` with the order a, b, c the children of a in e(a, c) are the
same for every b.  A stage lists such a fixed intersection once, and marks its
keys in a bit map where keys are dense: testing a key is then one load.  Stages
of a depth build on each other, one per earlier depth that fixes participants;
a clique's innermost node then only tests the keys of its newest participant.
(LFTJ has no such thing; the intersection cache of Mhedhbi and Salihoglu, VLDB
2019, is the same idea without marks.)

A stage is built once the leader keys that were tried without it, and those that
are about to be, are as many as it has to list (ski rental), so it costs at most
twice what it could have saved.

Invariants

1. A stage is up to date when its stamp is that of the node that binds the last of its parents; stamps are
   never given out twice.
2. Outside :func:`build_stage` the bit map holds exactly the stage's keys, also of a stale one: they are what
   is to be cleared.
3. Every key of every participant of the depth lies within the bit map's range.
4. Only bases have tuples below the parents of a stage that is built, and of one that is used.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.intersect import intersect, intersect_marked, intersect_ranked
from lftj.search.machine.cursor import child_range
from lftj.search.marks import clear_marks, set_marks
from lftj.search.records import CURSOR, STAGE, cursor_at, node_at, stage_at
from lftj.storage.version_memory import index_at

MARKS_RATIO = 12
"""A marked stage leads only when it has this many times fewer keys than the shortest other range."""


@part(forceinline=True)
def stage_of(node, number):
    """The stage with a number, from 1 on."""
    return stage_at(node.stages + (number - 1) * STAGE)


@part(forceinline=True)
def is_current(stage):
    """Whether a stage holds what it would be built of now."""
    return stage.stamp == node_at(stage.bound_at).stamp


@part(forceinline=True)
def current_stages(node):
    """How many of a depth's stages are up to date, together with all before them."""
    number = np.int64(0)
    while number < node.n_stages and is_current(stage_of(node, number + 1)):
        number += 1
    return number


@part
def rent_stage(search, node, number, length):
    """Count ``length`` leader keys against a stale stage, and build it once that has cost enough: whether."""
    stage = stage_of(node, number)
    stamp = node_at(stage.bound_at).stamp
    if stage.spent_stamp != stamp:
        stage.spent_stamp = stamp
        stage.spent = 0
    price = KEY_MAX
    if number > 1:
        before = stage_of(node, number - 1)
        price = before.end - before.start
    for where in range(node.participants, node.negations, CURSOR):
        cursor = cursor_at(where)
        if cursor.staged == number:
            low, high = child_range(cursor)
            price = min(price, high - low)
    stage.spent += length
    if stage.spent < price:
        return False
    build_stage(search, node, number)
    return True


@part
def build_stage(search, node, number):
    """Intersect the stage's participants with the stage before it; list and mark the result.

    Precondition: the stage before, if there is one, is up to date.
    """
    stage = stage_of(node, number)
    marks = view(stage.marks, stage.marks_words)
    if stage.marks_words and stage.stamp != 0:
        clear_marks(marks, stage.marks_first, view(stage.keys, stage.end), stage.start, stage.end)
    first = first_of(node, number)
    work = begin_stage(node, stage, number, cursor_at(first))
    for where in range(node.participants, node.negations, CURSOR):
        if cursor_at(where).staged == number and where != first:
            work += narrow_stage(stage, cursor_at(where))
    stage.stamp = node_at(stage.bound_at).stamp
    if stage.marks_words:
        set_marks(marks, stage.marks_first, view(stage.keys, stage.end), stage.start, stage.end)
        work += stage.end - stage.start
    node.nexts += work
    search.work += work


@part
def first_of(node, number):
    """The first of a stage's participants that is not on level 0, of which it has one."""
    where = node.participants
    while cursor_at(where).staged != number or cursor_at(where).parent == 0:
        where += CURSOR
    return where


@part
def begin_stage(node, stage, number, first):
    """Let a stage hold what its first participant and the stage before it share; operations."""
    low, high = child_range(first)
    if number == 1:
        stage.keys, stage.start, stage.end = first.keys, low, high
        return high - low
    before = stage_of(node, number - 1)
    start, end = before.start, before.end
    stage.keys, stage.start, stage.end = before.keys, start, end
    if before.marks_words == 0 or high - low > MARKS_RATIO * (end - start):
        return end - start + narrow_stage(stage, first)
    marks = view(before.marks, before.marks_words)
    out = view(stage.list, min(high - low, end - start) + 1)
    found = intersect_marked(view(first.keys, high), low, high, marks, before.marks_first, out, np.int64(0))
    stage.keys, stage.start, stage.end = stage.list, 0, found
    return high - low


@part
def narrow_stage(stage, cursor):
    """Intersect what a stage holds with another participant; operations."""
    start, end = stage.start, stage.end
    low, high = child_range(cursor)
    keys, others = view(stage.keys, end), view(cursor.keys, high)
    out = view(stage.list, min(high - low, end - start) + 1)
    if cursor.parent == 0 and index_at(cursor.index).ranks:
        found = intersect_ranked(keys, start, end, index_at(cursor.index), out, np.int64(0))
    elif high - low < end - start and stage.keys != stage.list:
        found = intersect(others, low, high, keys, start, end, out, np.int64(0))
    else:
        found = intersect(keys, start, end, others, low, high, out, np.int64(0))
    stage.keys, stage.start, stage.end = stage.list, 0, found
    return min(high - low, end - start)
