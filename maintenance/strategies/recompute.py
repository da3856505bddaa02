"""`recompute`: a head is evaluated again, whole, and what it was is subtracted.

Nothing is kept beside the head itself.

Cost: of a step, that of evaluating the head's rules over the new versions, and a merge of both heads.
"""

from __future__ import annotations

import numpy as np

from lftj.evaluation.evaluation import Evaluation, Settings
from lftj.storage.catalog import Table
from lftj.storage.relation import Relation
from lftj.storage.signed_rows import difference
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import (
    Advance,
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
        codes = self._evaluated(versions, Settings(threads=threads, advance=advance)).codes
        return codes, np.ones(len(codes[0]), dtype=np.int64)

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        new = self._evaluated(change.new, Settings()).codes
        old = change.old[self._name].columns()
        ones = np.ones(max(len(new[0]), len(old[0])), dtype=np.int64)
        return difference(new, ones[: len(new[0])], old, ones[: len(old[0])])

    def _evaluated(self, versions: Versions, settings: Settings) -> Relation:
        relations: dict[str, Table] = {name: versions[name] for name in self._reads}
        return Evaluation(self._program, relations, settings).relation(self._name)


class Recompute(HeadStrategy):
    """The yardstick for all others."""

    def plan(self, request: HeadRequest) -> HeadSource:
        return RecomputedHead(request)
