"""`recompute`: a head is evaluated again, whole, and what it was is subtracted; so is a recursive component.

Nothing is kept beside the heads themselves.

Cost: of a step, that of evaluating the rules over the new versions, and a merge of both states of each head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.evaluation.evaluation import Evaluation, Settings
from lftj.process.progress import Advance
from lftj.storage.catalog import Table
from lftj.storage.relation import Relation
from lftj.storage.signed_rows import difference
from maintenance.stats import RuleStats
from maintenance.strategies.component import ComponentRequest, ComponentStrategy, KeptComponent
from maintenance.strategies.strategy import (
    HeadRequest,
    HeadSource,
    HeadStrategy,
    Round,
    Tuples,
    Versions,
)


class RecomputedHead(HeadSource):
    """All tuples of a head."""

    is_distinct = True

    def __init__(self, request: HeadRequest) -> None:
        self._name = request.name
        self._program = request.program
        self._reads = request.reads
        schema = request.program.derived[request.name]
        self.is_function = schema.functional  # evaluation refuses two values
        self.sorted_by = tuple(range(len(schema.columns)))

    def build(self, versions: Versions, threads: int = 1, advance: Advance | None = None) -> Tuples:
        codes = (
            self._evaluation(versions, Settings(threads=threads, advance=advance)).relation(self._name).codes
        )
        return codes, np.ones(len(codes[0]), dtype=np.int64)

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        evaluation = self._evaluation(change.new, Settings())
        found = evaluation.relation(self._name)
        stats.count(evaluation.operations)
        return changed(found.codes, change.old[self._name].columns())

    def _evaluation(self, versions: Versions, settings: Settings) -> Evaluation:
        relations: dict[str, Table] = {name: versions[name] for name in self._reads}
        return Evaluation(self._program, relations, settings)


class Recompute(HeadStrategy):
    """The yardstick for all others."""

    def plan(self, request: HeadRequest) -> HeadSource:
        return RecomputedHead(request)


class RecomputedComponent(KeptComponent):
    """All tuples of heads that depend on each other."""

    def __init__(self, request: ComponentRequest) -> None:
        self._request = request

    def build(self, versions: Versions, threads: int, advance: Advance | None) -> dict[str, Tuples]:
        return all_tuples(evaluated_anew(self._request, versions, RuleStats(), threads, advance)[0])

    def step(self, change: Round, stats: RuleStats) -> dict[str, Tuples]:
        found, _ = evaluated_anew(self._request, change.new, stats)
        return {name: changed(one.codes, change.old[name].columns()) for name, one in found.items()}

    def describe(self) -> list[str]:
        return [f"recursion of {', '.join(self._request.names)}: evaluated again by each commit"]


class RecomputeComponent(ComponentStrategy):
    """The yardstick for recursion."""

    def plan(self, request: ComponentRequest) -> KeptComponent:
        return RecomputedComponent(request)


def evaluated_anew(
    request: ComponentRequest,
    versions: Versions,
    stats: RuleStats,
    threads: int = 1,
    advance: Advance | None = None,
) -> tuple[dict[str, Relation], int]:
    """A component evaluated over versions, and how many rows its rounds found; ``stats``: what it took."""
    relations: dict[str, Table] = {name: versions[name] for name in request.reads}
    settings = Settings(threads=threads, advance=advance, max_rounds=request.max_rounds)
    evaluation = Evaluation(request.program, relations, settings)
    found = evaluation.recursive(request.names)
    stats.count(evaluation.operations)
    return found, sum(one.found for one in evaluation.fixpoints[0].rounds)


def all_tuples(found: Mapping[str, Relation]) -> dict[str, Tuples]:
    """Relations as changes of nothing."""
    return {name: (one.codes, np.ones(one.n_rows, np.int64)) for name, one in found.items()}


def changed(new: Sequence[np.ndarray], old: Sequence[np.ndarray]) -> Tuples:
    """What came and went, of sorted distinct tuples."""
    ones = np.ones(max(len(new[0]), len(old[0])), dtype=np.int64)
    return difference(new, ones[: len(new[0])], old, ones[: len(old[0])])
