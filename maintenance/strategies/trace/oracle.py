"""The change oracle: which regions of a rule's search a change makes worth looking at.

Specification: docs/design/engine.md section 5.

For every surgery of every participant: where the surgery is a binding prefix of
the key order, it is the region; else every context whose record holds the
surgery's key is one, followed by the key.

Invariants

1. There are at most as many regions as surgeries and matches.
2. Regions are sorted, a shorter one before those that extend it, and none
   extends another: the shorter prefix covers it.
3. ``signs`` of a region: PLUS and MINUS bits of the surgeries that gave rise to it, and BOTH where tuples
   that are only counted came or went below a branch that stays.
4. Each match is known by the record that was matched, for :mod:`maintenance.strategies.trace.dead_records`.

A branch below which counted tuples came or went is looked for as a surgery is, and counts as one.

Cost: O(surgeries * log n + matches * log matches).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel
from indices.keys import KEY_MIN
from indices.max_scan import M_CONTEXT, M_HI, M_LO, M_QUERY, M_RECORD, M_RUN
from indices.sensitivity import SensitivityIndex
from lftj.search.machine.plan import RegionPlan
from lftj.storage.signed_rows import row_order
from maintenance.strategies.surgery import Surgeries

PLUS = 1  # a branch came: nothing was there before
MINUS = 2  # a branch went: nothing is there now
BOTH = 4  # a branch stays, with another number of tuples below it

# -- the rows of matches, a match per column: those of a stab, with the stream in place of the query --------

MATCHED_STREAM = M_QUERY  # -1: a surgery that is a region itself
MATCHED_RUN = M_RUN
MATCHED_RECORD = M_RECORD
MATCHED_LO = M_LO
MATCHED_HI = M_HI
MATCHED_FIELDS = M_CONTEXT


@dataclass(frozen=True)
class Regions:
    """``rows``: int64 (n, 2 + depths), as lftj.search.machine.search takes them; ``signs``: int64 (n,).

    ``matched``: int64 (MATCHED_FIELDS, m), the surgeries and records that named regions; of each of them
    ``lengths``, how many variables that region binds, and ``parts_of``, the number of the region here that it
    is or extends: int64 (m,).  ``surgeries``, ``matches``: how many there were.
    """

    rows: np.ndarray
    signs: np.ndarray
    matched: np.ndarray
    lengths: np.ndarray
    parts_of: np.ndarray
    surgeries: int
    matches: int

    @classmethod
    def none(cls, depths: int, surgeries: int, matches: int) -> Regions:
        nothing = np.empty(0, np.int64)
        rows, matched = np.empty((0, 2 + depths), np.int64), np.empty((MATCHED_FIELDS, 0), np.int64)
        return cls(rows, nothing, matched, nothing, nothing, surgeries, matches)

    def __len__(self) -> int:
        return len(self.signs)

    def of_sign(self, sign: int) -> tuple[np.ndarray, np.ndarray]:
        """The regions to be searched on a sign's side, and their numbers.

        With PLUS and MINUS neither side has anything; with BOTH alone each side has.
        """
        return _chosen(self.rows, self.signs, sign)


def find_regions(
    plan: RegionPlan,
    surgeries_of: Callable[[int], Surgeries | None],
    sensitivity: Sequence[SensitivityIndex],
) -> Regions:
    """The change oracle of one body.

    ``surgeries_of``: the surgeries of an index of the plan, None where it did not change.
    ``sensitivity``: the records, by stream.
    """
    parts: list[np.ndarray] = []
    matched: list[np.ndarray] = []
    n_surgeries = n_matches = 0
    for participant in plan.participants:
        if participant.negated and not participant.tested:
            continue
        found = surgeries_of(participant.index)
        if found is None:
            continue
        path, signs = found.at_level(participant.level)
        if any(participant is counted for counted, _ in plan.counted):
            reweighed = found.reweighed_at(participant.level)
            path = np.concatenate([path, reweighed], axis=1)
            signs = np.concatenate([signs, np.zeros(reweighed.shape[1], np.int64)])
        if not len(signs):
            continue
        n_surgeries += len(signs)
        if participant.stream is None:
            queries, contexts = np.arange(len(signs)), _NO_CONTEXTS
            matched.append(np.full((MATCHED_FIELDS, len(signs)), -1))
        else:
            matches = sensitivity[participant.stream].find(list(path[:-1]), path[-1])
            if not matches.shape[1]:
                continue
            n_matches += matches.shape[1]
            queries, contexts = matches[M_QUERY], np.ascontiguousarray(matches[M_CONTEXT:])
            record = matches[:M_CONTEXT].copy()
            record[MATCHED_STREAM] = participant.stream
            matched.append(record)
        places = np.array(participant.places), np.array(participant.context_places, np.int64)
        sign = -1 if participant.negated else 1
        parts.append(
            _regions_of(path, signs, sign, queries, contexts, *places, participant.depth, plan.depths)
        )
    if not parts:
        return Regions.none(plan.depths, n_surgeries, n_matches)
    found_rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    keys_then_depth = np.concatenate([found_rows[2:-1], found_rows[:1]])
    rows, signs, parts_of = keep_shortest(found_rows, row_order(keys_then_depth))
    records = matched[0] if len(matched) == 1 else np.concatenate(matched, axis=1)
    return Regions(rows, signs, records, found_rows[0], parts_of, n_surgeries, n_matches)


_NO_CONTEXTS = np.empty((0, 0), np.int64)


@kernel(makes_arrays=True)
def _regions_of(path, signs, sign, queries, contexts, places, context_places, depth, depths):
    """The regions that a participant's surgeries and their matches name, int64 (3 + depths, n).

    path: int64 (levels, surgeries); signs: int64 (surgeries,), times ``sign``; queries: int64 (n,), the
    surgery of each region; contexts: int64 (context columns, n); places, context_places: int64, the depths of
    both.
    """
    rows = np.full((3 + depths, len(queries)), KEY_MIN, dtype=np.int64)
    for region in range(len(queries)):
        for level in range(len(places)):
            rows[2 + places[level], region] = path[level, queries[region]]
        for column in range(len(context_places)):
            rows[2 + context_places[column], region] = contexts[column, region]
        rows[0, region] = depth + 1
        rows[1, region] = rows[2 + depth, region]
        rows[2 + depths, region] = sign * signs[queries[region]]
    return rows


@kernel(makes_arrays=True)
def _chosen(rows, signs, sign):
    """Copies of the rows with a sign, and their numbers.

    Loops: numpy's ways to choose take the compiler a second.
    """
    n = 0
    for row in range(len(signs)):
        n += signs[row] == BOTH or signs[row] & ~BOTH == sign
    chosen = np.empty((n, rows.shape[1]), np.int64)
    numbers = np.empty(n, np.int64)
    n = 0
    for row in range(len(signs)):
        if signs[row] == BOTH or signs[row] & ~BOTH == sign:
            numbers[n] = row
            for column in range(rows.shape[1]):
                chosen[n, column] = rows[row, column]
            n += 1
    return chosen, numbers


@kernel(makes_arrays=True)
def keep_shortest(found, order):
    """The regions that extend no other, equal ones made one, and their bits: int64 (n, 2 + depths) and (n,).

    And of each region that was found, the number of the one that it is or extends.
    found: int64 (3 + depths, n), a region per column, with its sign, +1, -1 or 0 for BOTH, last; order:
    int64 (n,), how invariant 2 sorts them.
    """
    last = found.shape[0] - 1
    rows = np.empty((len(order), last), dtype=np.int64)
    signs = np.empty(len(order), dtype=np.int64)
    parts_of = np.empty(len(order), dtype=np.int64)
    kept = 0
    for place in order:
        bit = BOTH if found[last, place] == 0 else PLUS if found[last, place] > 0 else MINUS
        if kept > 0:
            shorter = rows[kept - 1, 0]
            extends = shorter <= found[0, place]
            for column in range(2, 2 + shorter):
                extends = extends and rows[kept - 1, column] == found[column, place]
            if extends:
                if shorter == found[0, place]:
                    signs[kept - 1] |= bit
                parts_of[place] = kept - 1
                continue
        for column in range(last):
            rows[kept, column] = found[column, place]
        signs[kept] = bit
        parts_of[place] = kept
        kept += 1
    return rows[:kept], signs[:kept], parts_of
