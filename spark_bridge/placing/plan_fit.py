"""How far a join has gone away from the rows that its grids were planned for.

    grown = rows of all relations / rows when it was planned
    load  = rows of a cell under the shares as they are / under the best shares for the rows as they are
    skew  = rows of the largest partition / rows of a partition on average

``load`` says what other shares would save, ``skew`` is of heavy values that have come, for they get cells of
their own when the grids are planned again.

Cost: ``load`` chooses shares, which takes a while for many partitions; so rows are rounded to a fourth of an
octave, and what was chosen is remembered.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_bridge.placing.grids import UNSURE, HeadGrids
from spark_bridge.placing.head_plan import HeadPlan
from spark_bridge.placing.shares import Read, choose_shares, load

_STEPS = 4  # of rounded rows in an octave
FEW = 1000
"""Rows that a partition may have more than others before that counts for skew."""


@dataclass(frozen=True)
class PlanFit:
    """``grown``, ``load`` and ``skew`` as above; 1.0 where nothing has changed, all at least nearly so but
    ``grown``, which is below where relations have shrunk."""

    grown: float = 1.0
    load: float = 1.0
    skew: float = 1.0

    def left_by(self, planned: PlanFit) -> float:
        """The factor by which planning again could pay: of ``load``, or of the skew that there was then."""
        return max(self.load / planned.load, self.skew / planned.skew)


def plan_fit(
    grids: Sequence[tuple[HeadPlan, HeadGrids]],
    planned_rows: Mapping[str, int],
    rows: Mapping[str, int],
    stages_rows: Sequence[Sequence[int]],
) -> PlanFit:
    """``rows``: of relations, then and now.  ``stages_rows``: by stage that searches, then by partition."""
    grown = (sum(rows.values()) + UNSURE) / (sum(planned_rows.values()) + UNSURE)
    loads = [1.0]
    for plan, of_head in grids:
        known = {name: rows.get(name, of_head.rows.get(name, 0.0)) + UNSURE for name in plan.reads}
        for number, rule in enumerate(plan.rules):
            even = next(grid for grid in of_head.grids if grid.rule == number and not grid.heavy)
            rounded = {name: 2 ** (round(_STEPS * math.log2(n)) / _STEPS) for name, n in known.items()}
            reads = tuple(rule.reads(rounded))
            best = _best_load(reads, rule.axes, of_head.partitions)
            loads.append(load(reads, dict(even.shares)) / best if best else 1.0)
    skews = [
        (max(of_stage) + FEW) / (sum(of_stage) / len(of_stage) + FEW) for of_stage in stages_rows if of_stage
    ]
    return PlanFit(grown, max(loads), max([1.0, *skews]))


@functools.lru_cache(maxsize=256)
def _best_load(reads: tuple[Read, ...], axes: tuple[str, ...], partitions: int) -> float:
    return load(reads, choose_shares(reads, axes, partitions))
