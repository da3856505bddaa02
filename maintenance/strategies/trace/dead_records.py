"""Dead records: which of the records that a change matched are needed no more.

Specification: docs/design/engine.md section 5; ILFTJ 4.1.

ILFTJ removes each interval that is matched.  Here a record stays as long as it covers something, so it is
dropped for one of five reasons, each of which can be told from what a step has done anyway:

1. *Its node is not reached*: the path of its region failed at a coordinate before its own depth, in the
   version that was searched.  If that is the old one, the node is not reached in the new one either: a
   branch that came there would be a shorter region, which the region would be part of.  If the node is ever
   reached again, a branch has come on the path to it, and everything below that is recorded anew.
2. *Its region extends a shorter one* where a branch came or went: below one that went nothing is reached,
   below one that came everything is recorded anew.  Where tuples are only counted (BOTH) the branch stays.
3. *It is one point that was recorded anew*: the path of its region was tested on the new version as far as
   the record's own depth.  Then the participant has recorded that point again, or one that lacks the key has.
4. *Another record of its region holds it*: one of the same stream, prefix and context, and as wide.
5. *The witness is elsewhere*: its node is in a tail that holds, and the witness does not pass through the
   node.  Only witnesses are covered in such a tail; when one is lost, the tail is searched and recorded anew.

Reasons 1 to 3 hold in tails (:mod:`lftj.search.machine.tail`) as well: a search that stops at a success,
or is left out since the tail holds, leaves a tail where the witness is covered and nothing else has to be.
A region that was not searched says nothing for 1 and 3: its place in ``came`` and ``went`` is UNSEARCHED.

So of the records that are matched in vain there stay those of reached nodes, unless they are cut
(:mod:`maintenance.strategies.trace.cut_records`).  Each record is dropped once, and came of one operation of
a search: what dead records cost is paid by the trace edits that made them.

Cost: O(matches), O(matches * log matches) where a region has several records of one stream.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel
from indices.keys import KEY_MIN
from lftj.search.machine.plan import RegionPlan
from lftj.search.records import PATH, path_at
from lftj.storage.signed_rows import row_order
from maintenance.strategies.trace.cut_records import no_paths, paths_of
from maintenance.strategies.trace.oracle import (
    MATCHED_HI,
    MATCHED_LO,
    MATCHED_RECORD,
    MATCHED_RUN,
    MATCHED_STREAM,
    MINUS,
    PLUS,
    Regions,
)


@dataclass
class Followed:
    """What became of the paths of regions.

    ``came``: in the new version, with recording; ``went``: in the old one; int64, a
    :class:`~lftj.search.records.Path` per region; UNSEARCHED where none has followed the path.  ``aside``:
    int64 (regions,), 1 where reason 5 applies.
    """

    came: np.ndarray
    went: np.ndarray
    aside: np.ndarray

    @classmethod
    def nowhere(cls, regions: Regions, plan: RegionPlan) -> Followed:
        n = len(regions)
        return cls(paths_of(regions), no_paths(n), np.zeros(n, np.int64))


@dataclass
class Judged:
    """What is to become of matched records.

    ``dropped``: those that are dead or cut, int64 (3, n): stream, serial number of the run, number of the
    record; ascending by stream.  ``dead``: how many are dead.  ``cut``: int64, the numbers of the matches
    that cut one.  ``vain``: how many of the others were tested in vain.
    """

    dropped: np.ndarray
    dead: int
    cut: np.ndarray
    vain: int


def judge_matched(regions: Regions, followed: Followed, old: Sequence[np.ndarray] = ()) -> Judged:
    """What is to become of the records that gave rise to regions.

    ``old``: by stream, the serial numbers of runs whose records don't stand for others (reason 4), if any.
    """
    lives = np.empty(regions.matched.shape[1], np.bool_)
    is_cut = np.zeros(len(lives), np.bool_)
    repeats, vain = _judge(
        regions.rows,
        regions.signs,
        regions.lengths,
        regions.matched,
        regions.parts_of,
        followed.came,
        followed.went,
        followed.aside,
        lives,
        is_cut,
    )
    if repeats:
        several = np.flatnonzero(lives & (regions.matched[MATCHED_STREAM] >= 0))
        low, high = regions.matched[MATCHED_LO, several], regions.matched[MATCHED_HI, several]
        streams = regions.matched[MATCHED_STREAM, several]
        kinds = 2 * streams
        for stream, serials in enumerate(old):
            kinds += (streams == stream) & np.isin(regions.matched[MATCHED_RUN, several], serials)
        keys = [regions.parts_of[several], regions.lengths[several], kinds]
        order = row_order([*keys, low, ~high])
        drop_contained(np.stack([*keys, high])[:, order].copy(), several[order], lives)
    dead = len(lives) - int(np.count_nonzero(lives))
    cut = np.flatnonzero(is_cut & lives)
    lives[cut] = False
    return Judged(_dropped(regions.matched, lives), dead, cut, vain)


@kernel(makes_arrays=True)
def _judge(rows, signs, lengths, matched, parts_of, came, went, aside, lives, cut):
    """Write into ``lives``, bool (n,), whether none of the reasons but 4 applies to a match.

    And into ``cut``, bool (n,), whether the region's path tells of a part that another participant covers.
    rows: int64 (regions, 2 + depths); signs, aside: int64 (regions,); came, went: int64, a Path
    per region; lengths, parts_of: int64 (n,) and matched: int64 (MATCHED_FIELDS, n), as `Regions` has them.
    Returns whether 4 may apply, and how many records live uncut although the path of their region failed.
    """
    repeats = False
    vain = 0
    stream_of = np.full(rows.shape[0], -1)
    for match in range(len(parts_of)):
        region, stream = parts_of[match], matched[MATCHED_STREAM, match]
        depth = lengths[match] - 1
        lives[match] = True
        if stream < 0:
            continue
        came_path = path_at(came.ctypes.data + region * PATH)
        came_to, went_to = came_path.failed, path_at(went.ctypes.data + region * PATH).failed
        dead = 0 <= came_to < depth or 0 <= went_to < depth
        if depth >= rows[region, 0]:
            dead = dead or (signs[region] & (PLUS | MINUS)) != 0
        else:
            is_point = matched[MATCHED_LO, match] == matched[MATCHED_HI, match]
            dead = dead or aside[region] == 1 or (is_point and came_to >= depth)
            if not dead:
                cut[match] = came_path.gap_low <= came_path.gap_high
                vain += not cut[match] and (came_to == depth or went_to == depth)
                repeats = repeats or stream_of[region] == stream
                stream_of[region] = stream
        lives[match] = not dead
    return repeats, vain


@kernel
def drop_contained(keys, matches, lives):
    """Reason 4: clear ``lives`` of matches whose interval another one's holds.

    keys: int64 (4, n): what tells a region's stream from another, then hi; sorted by all but hi, then by lo,
    then by hi, greatest first.  matches: int64 (n,), their numbers; lives: bool, written.
    """
    top = np.int64(KEY_MIN)
    for place in range(len(matches)):
        same = place > 0
        for column in range(3):
            same = same and keys[column, place] == keys[column, place - 1]
        if same and keys[3, place] <= top:
            lives[matches[place]] = False
        else:
            top = keys[3, place]


@kernel(makes_arrays=True)
def _dropped(matched, lives):
    """Stream, run and record of the matches of records that don't live, int64 (3, n)."""
    n = 0
    for match in range(len(lives)):
        n += not lives[match]
    found = np.empty((3, n), np.int64)
    n = 0
    for match in range(len(lives)):
        if not lives[match]:
            found[0, n] = matched[MATCHED_STREAM, match]
            found[1, n] = matched[MATCHED_RUN, match]
            found[2, n] = matched[MATCHED_RECORD, match]
            n += 1
    return found
