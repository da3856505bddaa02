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

from collections.abc import Callable, Sequence
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
        contexts: list[np.ndarray] = []
        queries = None
        if participant.stream is not None:
            queries, contexts = sensitivity[participant.stream].stab(path[:-1], path[-1])
            if not len(queries):
                continue
            n_matches += len(queries)
        rows = np.full((len(signs) if queries is None else len(queries), 3 + plan.depths), KEY_MIN)
        rows[:, 0] = participant.depth + 1
        rows[:, -1] = (signs if queries is None else signs[queries]) * (-1 if participant.negated else 1)
        for place, column in zip(participant.places, path, strict=True):
            rows[:, 2 + place] = column if queries is None else column[queries]
        for place, column in zip(participant.context_places, contexts, strict=True):
            rows[:, 2 + place] = column
        rows[:, 1] = rows[:, 2 + participant.depth]
        parts.append(rows)
    if not parts:
        nothing = np.empty((0, 2 + plan.depths), dtype=np.int64)
        return Regions(nothing, np.empty(0, np.int64), n_surgeries, n_matches)
    found_rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    columns = found_rows.T
    order = np.lexsort((columns[0], *columns[-2:1:-1]))
    rows = np.empty((len(order), 2 + plan.depths), dtype=np.int64)
    signs = np.empty(len(order), dtype=np.int64)
    kept = keep_shortest(found_rows, order, rows, signs)
    return Regions(rows[:kept], signs[:kept], n_surgeries, n_matches)


@kernel
def keep_shortest(found, order, rows, signs):
    """Copy the regions that extend no other, equal ones made one; returns how many there are.

    found: int64 (n, 3 + depths), regions with their sign, +1 or -1, last; order: int64 (n,), how invariant 2
    sorts them.  rows: int64 (n, 2 + depths), signs: int64 (n,), the regions and their bits; both written.
    """
    last = found.shape[1] - 1
    kept = 0
    for place in order:
        bit = PLUS if found[place, last] > 0 else MINUS
        if kept > 0:
            shorter = rows[kept - 1, 0]
            extends = shorter <= found[place, 0]
            for column in range(2, 2 + shorter):
                extends = extends and rows[kept - 1, column] == found[place, column]
            if extends:
                if shorter == found[place, 0]:
                    signs[kept - 1] |= bit
                continue
        for column in range(last):
            rows[kept, column] = found[place, column]
        signs[kept] = bit
        kept += 1
    return kept
