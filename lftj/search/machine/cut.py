"""Cuts: what stages leave of a list that is met again and again.

In a 4-clique with the order a, b, c, d the children of c in e(c, d) are met for each b, and every time only
those count that are children of a as well.  These are listed once for each pair of a and c, and are what is
met from then on: candidates of a depth come from those of the depth before, as in kClist (Danisch, Balalau
and Sozio, WWW 2018), which cuts a whole graph to the neighbours of a.

Each stage but a depth's last cuts the lists of the *varying* participant, which the depth above binds: the
first one the index's lists, each other one what the stage before has left.  Where a stage's room is full it
cuts no more.

Invariant: a cut is up to date when its stamp is that of its stage.

Cost: of a list that is met once at most as much again as of meeting it.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from indices.compiled import part
from lftj.memory import view
from lftj.search.intersect import intersect, intersect_marked
from lftj.search.machine.cursor import child_range
from lftj.search.machine.stage import MARKS_RATIO, stage_of
from lftj.search.records import CUT, cursor_at, cut_at

CUT_LEAST = 8
"""Keys of the shortest list that is cut."""


@part
def cut_range(search, node, cursor):
    """What the depth's stages but the last leave of a varying participant's list: keys, start and end.

    Precondition: they are up to date.
    """
    above = cursor_at(cursor.parent)
    start, end = child_range(cursor)
    keys = cursor.keys
    if above.patch:
        return keys, start, end
    for number in range(1, node.n_stages):
        stage = stage_of(node, number)
        if stage.cuts == 0 or end - start < CUT_LEAST:
            break
        cut = cut_at(stage.cuts + above.at * CUT)
        if cut.stamp != stage.stamp and not cut_list(search, node, stage, cut, keys, start, end):
            break
        keys, start, end = stage.room, cut.start, cut.end
    return keys, start, end


@part
def cut_list(search, node, stage, cut, keys, start, end):
    """List what a stage has of a list; False: there is no room."""
    if stage.cut_stamp != stage.stamp:
        stage.cut_stamp, stage.filled = stage.stamp, 0
    filled, length, staged = stage.filled, end - start, stage.end - stage.start
    if filled + min(length, staged) >= stage.room_length:  # a refused last key is written too
        return False
    out = view(stage.room, stage.room_length)
    if length <= MARKS_RATIO * staged:
        marks = view(stage.marks, stage.marks_words)
        found = intersect_marked(view(keys, end), start, end, marks, stage.marks_first, out, filled)
    else:
        others = view(stage.keys, stage.end)
        found = intersect(others, stage.start, stage.end, view(keys, end), start, end, out, filled)
    cut.stamp, cut.start, cut.end = stage.stamp, filled, filled + found
    stage.filled = filled + found
    work = min(length, MARKS_RATIO * staged)
    node.nexts += work
    search.work += work
    return True
