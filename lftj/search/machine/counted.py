"""The last depth, counted below a whole block of matches of the depth above.

Where nothing but the number of the last depth's matches is asked for, and all of its participants but one are
staged (:mod:`lftj.search.machine.stage`), a node is the number of the one's keys that are marked.  So none is
opened: the matches of the depth above that wait in its list are led on and counted one after the other.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from indices.compiled import part
from lftj.memory import view
from lftj.search.intersect import count_marked
from lftj.search.machine.cursor import child_range, led_to
from lftj.search.machine.cut import cut_range
from lftj.search.machine.stage import MARKS_RATIO, current_stages, rent_stage, stage_of
from lftj.search.records import SHORT_BLOCK, cursor_at


@part
def count_below(search, node, below):
    """Count what is below the matches that wait, as long as the marks are there and serve.

    node: that of the last depth but one; below: the last one.  Those that are left are to be opened.
    """
    n_stages = below.n_stages
    cursor = cursor_at(below.varying)
    above = cursor_at(cursor.parent)
    if n_stages == 0 or below.log or search.runs or above.patch:
        return
    matches = view(node.matches, SHORT_BLOCK)
    first, match, end = node.next, node.next, node.n_matches
    staged = current_stages(below)
    if staged < n_stages:
        above.at = led_to(above, matches[match])
        start, stop = child_range(cursor)
        while staged < n_stages:
            staged += 1
            if not rent_stage(search, below, staged, (end - match) * (stop - start)):
                return
    stage = stage_of(below, n_stages)
    if stage.marks_words == 0:
        return
    longest = MARKS_RATIO * (stage.end - stage.start)
    marks = view(stage.marks, stage.marks_words)
    work = weight = 0
    while match < end:
        above.at = led_to(above, matches[match])
        keys, start, stop = cut_range(search, below, cursor)
        if stop - start > longest:
            break
        weight += count_marked(view(keys, stop), start, stop, marks, stage.marks_first)
        work += stop - start
        match += 1
    node.next = match
    search.weight += weight
    below.opens += 2 * (match - first)
    below.nexts += work
    below.seeks += work
    search.work += 2 * work + 2 * (match - first)
