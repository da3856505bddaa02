"""Cut records: what a matched record need not cover any longer, since another participant does.

Specification: docs/design/engine.md section 5.

A record that is matched stays needed at most where no other participant that lacks the key is covered.  So
where the path of its region fails at the record's own depth, for want of a key, the *next* participant in
turn that lacks the key records its gap around it, as far as the matched record goes
(:mod:`lftj.search.machine.gap`).  There the matched record is cut: what is left of it, a piece on each side
at most, takes its place.

Invariants

1. Coverage (docs/design/engine.md section 4).  Inside of the gap the other participant lacks every key and is
   covered; outside of it the pieces hold what the record held.
2. At no key do the records of a node cover more participants after a cut than before.
3. After a cut the same key, going and coming again, matches no record of the two, at this node.

So cover moves from one participant to the next.  It comes to rest where the trace has it, if the trace
depends on one participant alone: a change of that one's keys edits the trace, and only such a change moves
the cover away again.  Each edit can move it, at this node, to k - 1 other participants at most, in pieces
that end where one of the k participants has a key.  With two participants those are a constant number per
edit, so matches are paid by the trace edits before them, as in ILFTJ 4.1.  With three or more there may be a
piece for each key that the participants between have inside of the interval edited.

Where a negated atom or a condition refuses the key nothing is cut: there the trace itself has changed, or the
key lies beyond what the search looks at.

Cost: a seek per region whose path fails; O(matches * log matches) where something is cut.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel
from indices.keys import KEY_MAX, KEY_MIN
from lftj.search.machine.plan import RegionPlan
from lftj.search.records import PATH, Path, path_at
from lftj.search.regions.evaluation import Records
from lftj.storage.signed_rows import row_order
from maintenance.strategies.trace.oracle import (
    MATCHED_HI,
    MATCHED_LO,
    MATCHED_RECORD,
    MATCHED_RUN,
    MATCHED_STREAM,
    Regions,
)

UNSEARCHED = -1
"""Stands for the depth at which a region's path failed, where no search has followed the path."""

PIECE_STREAM, PIECE_MATCH, PIECE_LO, PIECE_HI = range(4)


def paths_of(regions: Regions) -> np.ndarray:
    """What is asked of the regions' paths: int64, a :class:`~lftj.search.records.Path` per row."""
    paths = no_paths(len(regions))
    _ask(regions.rows, regions.matched, regions.lengths, regions.parts_of, paths)
    return paths


def no_paths(n_regions: int) -> np.ndarray:
    """Paths of which nothing is asked."""
    return np.repeat(_NOTHING_ASKED, n_regions, axis=0)


_NOTHING_ASKED = np.array(
    [Path.fields(failed=UNSEARCHED, matched=-1, low=KEY_MAX, high=KEY_MIN, gap_low=KEY_MAX, gap_high=KEY_MIN)]
)
GAP = [Path.place("gap_low"), Path.place("gap_high")]


def pieces_of(
    regions: Regions, paths: np.ndarray, cut: np.ndarray, plan: RegionPlan
) -> list[tuple[int, Records]]:
    """What is left of matched records that are cut, by stream.

    ``paths``: those of the regions, as a search has told of them; ``cut``: int64 (n,), numbers of matches.
    """
    matched, parts_of = regions.matched[:, cut], regions.parts_of[cut]
    fields = [MATCHED_STREAM, MATCHED_RUN, MATCHED_RECORD, MATCHED_LO, MATCHED_HI]
    keys = np.ascontiguousarray(matched[fields])
    cuts = np.ascontiguousarray(paths[parts_of][:, GAP].T)
    pieces = cut_records(keys, cuts, row_order([*keys[:3], cuts[0]]))
    found = []
    for stream in np.unique(pieces[PIECE_STREAM]).tolist():
        _, matches, lo, hi = pieces[:, pieces[PIECE_STREAM] == stream]
        rows = regions.rows[parts_of[matches]]
        participant = plan.streams[stream]
        prefix = [rows[:, 2 + place] for place in participant.places[:-1]]
        context = [rows[:, 2 + place] for place in participant.context_places]
        found.append((stream, Records(prefix, lo, hi, context)))
    return found


@kernel
def _ask(rows, matched, lengths, parts_of, paths):
    """Ask for the intervals of the records that name regions.

    rows, matched, lengths, parts_of: those of `Regions`; paths: int64, a Path per row, written.
    """
    for match in range(len(parts_of)):
        stream, region = matched[MATCHED_STREAM, match], parts_of[match]
        if stream >= 0 and lengths[match] == rows[region, 0]:
            path = path_at(paths.ctypes.data + region * PATH)
            path.matched = stream
            path.low = min(path.low, matched[MATCHED_LO, match])
            path.high = max(path.high, matched[MATCHED_HI, match])


@kernel(makes_arrays=True)
def cut_records(matched, cuts, order):
    """The pieces of records outside of their cuts, int64 (4, n): stream, number of a match, lo, hi.

    matched: int64 (5, matches): stream, run, record, lo, hi; a record may be matched several times.
    cuts: int64 (2, matches): a closed interval per match.  order: int64 (matches,), which sorts matches by
    record and then by the cut's start.
    """
    pieces = np.empty((4, 2 * len(order)), np.int64)
    n = 0
    low = np.int64(0)
    done = True
    for place in range(len(order)):
        match = order[place]
        begins = place == 0
        ends = place + 1 == len(order)
        for field in range(3):
            begins = begins or matched[field, match] != matched[field, order[place - 1]]
            ends = ends or matched[field, match] != matched[field, order[place + 1]]
        if begins:
            low = matched[3, match]
            done = False
        if not done and cuts[0, match] > low:
            pieces[PIECE_STREAM, n], pieces[PIECE_MATCH, n] = matched[0, match], match
            pieces[PIECE_LO, n], pieces[PIECE_HI, n] = low, cuts[0, match] - 1
            n += 1
        if not done and cuts[1, match] >= low:
            done = cuts[1, match] >= matched[4, match]
            if not done:
                low = cuts[1, match] + 1
        if ends and not done:
            pieces[PIECE_STREAM, n], pieces[PIECE_MATCH, n] = matched[0, match], match
            pieces[PIECE_LO, n], pieces[PIECE_HI, n] = low, matched[4, match]
            n += 1
    return pieces[:, :n].copy()
