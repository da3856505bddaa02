"""`recompute`: a head is evaluated again, whole, and what it was is subtracted; so is a recursive component.

Nothing is kept beside the heads themselves but plans, whose key orders stay until a relation is several times
as large or as small (:mod:`lftj.evaluation.plans`).

Cost: of a step, that of evaluating the rules over the new versions, and a merge of both states of each head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.evaluation.evaluation import Evaluation
from lftj.evaluation.plans import Plans
from lftj.evaluation.request import Request
from lftj.storage.relation import Relation
from lftj.storage.signed_rows import difference
from maintenance.stats import RuleStats
from maintenance.strategies.component import ComponentRequest, ComponentStrategy, KeptComponent
from maintenance.strategies.strategy import (
    Building,
    HeadRequest,
    HeadSource,
    HeadStrategy,
    Round,
    Tuples,
)


class RecomputedHead(HeadSource):
    """All tuples of a head."""

    is_distinct = True

    def __init__(self, request: HeadRequest) -> None:
        self._name = request.name
        self._program = request.program
        self._reads = request.reads
        self._plans = Plans()
        schema = request.program.derived[request.name]
        self.is_function = schema.functional  # evaluation refuses two values
        self.sorted_by = tuple(range(len(schema.columns)))

    def build(self, building: Building) -> Tuples:
        codes = self._evaluation(building).whole()[self._name].codes
        return codes, np.ones(len(codes[0]), dtype=np.int64)

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        evaluation = self._evaluation(Building(change.new))
        found = evaluation.whole()[self._name]
        stats.count(evaluation.done.operations)
        return changed(found.codes, change.old[self._name].columns())

    def _evaluation(self, building: Building) -> Evaluation:
        tables = {name: building.versions[name] for name in self._reads}
        threads, advance = building.threads, building.advance
        request = Request(
            self._program, tables, self._name, threads=threads, advance=advance, plans=self._plans
        )
        return Evaluation(request)


class Recompute(HeadStrategy):
    """The yardstick for all others."""

    def plan(self, request: HeadRequest) -> HeadSource:
        return RecomputedHead(request)


class RecomputedComponent(KeptComponent):
    """All tuples of heads that depend on each other."""

    def __init__(self, request: ComponentRequest) -> None:
        self._request = request

    def build(self, building: Building) -> dict[str, Tuples]:
        return all_tuples(evaluated_anew(self._request, building, RuleStats())[0])

    def step(self, change: Round, stats: RuleStats) -> dict[str, Tuples]:
        found, _ = evaluated_anew(self._request, Building(change.new), stats)
        return {name: changed(one.codes, change.old[name].columns()) for name, one in found.items()}

    def describe(self) -> list[str]:
        return [f"recursion of {', '.join(self._request.names)}: evaluated again by each commit"]


class RecomputeComponent(ComponentStrategy):
    """The yardstick for recursion."""

    def plan(self, request: ComponentRequest) -> KeptComponent:
        return RecomputedComponent(request)


def evaluated_anew(
    request: ComponentRequest, building: Building, stats: RuleStats
) -> tuple[dict[str, Relation], int]:
    """A component evaluated over versions, and how many rows its rounds found; ``stats``: what it took."""
    asked = Request(
        request.program,
        {name: building.versions[name] for name in request.reads},
        request.names[0],
        threads=building.threads,
        max_rounds=request.max_rounds,
        advance=building.advance,
    )
    evaluation = Evaluation(asked)
    found = evaluation.whole()
    stats.count(evaluation.done.operations)
    return found, sum(one.found for one in evaluation.done.fixpoints[0].rounds)


def all_tuples(found: Mapping[str, Relation]) -> dict[str, Tuples]:
    """Relations as changes of nothing."""
    return {name: (one.codes, np.ones(one.n_rows, np.int64)) for name, one in found.items()}


def changed(new: Sequence[np.ndarray], old: Sequence[np.ndarray]) -> Tuples:
    """What came and went, of sorted distinct tuples."""
    ones = np.ones(max(len(new[0]), len(old[0])), dtype=np.int64)
    return difference(new, ones[: len(new[0])], old, ones[: len(old[0])])
