"""The change oracle: which regions of a rule's search a change makes worth looking at (ENGINE.md section 5).

For every surgery of every participant: where the surgery is a binding prefix of
the key order, it is the region; else every context whose record holds the
surgery's key is one, followed by the key.

Invariants

1. There are at most as many regions as surgeries and matches.
2. Regions are sorted, a shorter one before those that extend it, and none
   extends another: the shorter prefix covers it.
3. ``signs`` of a region: PLUS and MINUS bits of the surgeries that gave rise to it.

Cost: O(surgeries * log n + matches * log matches).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel
from indices.sensitivity import SensitivityIndex
from lftj.layout import KEY_MIN
from lftj.region_plan import RegionPlan
from maintenance.surgery import Surgeries

PLUS = 1  # a branch came: nothing was there before
MINUS = 2  # a branch went: nothing is there now


@dataclass(frozen=True)
class Regions:
    """``rows``: int64 (n, 2 + depths), as lftj.region_search takes them; ``signs``: int64 (n,)."""

    rows: np.ndarray
    signs: np.ndarray
    surgeries: int
    matches: int

    def __len__(self) -> int:
        return len(self.signs)

    def of_sign(self, sign: int) -> np.ndarray:
        """The regions with this sign alone: with both, neither side has anything."""
        alone = self.signs == sign
        return self.rows if alone.all() else self.rows[alone]


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
    part_signs: list[np.ndarray] = []
    n_surgeries = n_matches = 0
    for participant in plan.participants:
        if participant.negated and not participant.tested:
            continue
        found = surgeries_of(participant.index)
        if found is None:
            continue
        path, signs = found.at_level(participant.level)
        if not len(signs):
            continue
        n_surgeries += len(signs)
        bits = np.where(signs > 0, MINUS, PLUS) if participant.negated else np.where(signs > 0, PLUS, MINUS)
        contexts: Mapping[int, np.ndarray] = {}
        if participant.stream is not None:
            queries, columns = sensitivity[participant.stream].stab(path[:-1], path[-1])
            if not len(queries):
                continue
            n_matches += len(queries)
            path, bits = [column[queries] for column in path], bits[queries]
            contexts = dict(zip(participant.context_places, columns, strict=True))
        rows = np.full((len(bits), 2 + plan.depths), KEY_MIN, dtype=np.int64)
        rows[:, 0] = participant.depth + 1
        rows[:, 1] = path[-1]
        for place, column in zip(participant.places, path, strict=True):
            rows[:, 2 + place] = column
        for place, column in contexts.items():
            rows[:, 2 + place] = column
        parts.append(rows)
        part_signs.append(bits)
    if not parts:
        nothing = np.empty((0, 2 + plan.depths), dtype=np.int64)
        return Regions(nothing, np.empty(0, np.int64), n_surgeries, n_matches)
    rows, signs = np.concatenate(parts), np.concatenate(part_signs)
    order = np.lexsort((rows[:, 0], *(rows[:, column] for column in range(rows.shape[1] - 1, 1, -1))))
    rows, signs = rows[order], signs[order]
    kept = drop_extended(rows, signs)
    return Regions(rows[:kept], signs[:kept], n_surgeries, n_matches)


@kernel
def drop_extended(rows, signs):
    """Move the regions that extend no other to the front, equal ones made one; returns how many there are.

    rows: int64 (n, 2 + depths), sorted as invariant 2 says; signs: int64 (n,).  Both are written.
    """
    kept = 0
    for row in range(len(rows)):
        if kept > 0:
            shorter = rows[kept - 1, 0]
            extends = shorter <= rows[row, 0]
            for column in range(2, 2 + shorter):
                extends = extends and rows[kept - 1, column] == rows[row, column]
            if extends:
                if shorter == rows[row, 0]:
                    signs[kept - 1] |= signs[row]
                continue
        if kept < row:
            rows[kept] = rows[row]
            signs[kept] = signs[row]
        kept += 1
    return kept
