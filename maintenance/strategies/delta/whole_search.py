"""All assignments of one body over some versions, by the search of queries.

Cost: that of a query.  Nothing of the versions is held between two calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lftj.planning.lowered import Lowered
from lftj.planning.planner import OrderChoice
from lftj.search.queries.plan import BoundPlan, Plan, compile_plan
from lftj.search.queries.search import BATCH_ROWS, all_rows, batches
from lftj.search.regions.evaluation import Operations
from lftj.storage.zset import Weighted
from maintenance.strategies.strategy import Assignments, Building, Versions


class WholeSearch:
    """Rows of the emitted variables, in the key order; their weights count the assignments of the others."""

    def __init__(self, lowered: Lowered, choice: OrderChoice) -> None:
        self.problem = problem = replace(lowered.problem, counted=True)
        self.variables = tuple(name for name in choice.order if name in problem.emitted)
        free = [name for name in choice.order if name not in problem.labels]
        self.is_distinct = len(free) == len(self.variables)
        self._comes_sorted = tuple(free[: len(self.variables)]) == self.variables
        self._order = choice.order
        self._is_empty = lowered.empty is not None
        self._plan: Plan | None = None

    @property
    def nothing(self) -> Assignments:
        return [np.empty(0, np.int64) for _ in self.variables], np.empty(0, np.int64)

    def evaluated(self, building: Building) -> tuple[Assignments, Operations]:
        """All rows over the versions, sorted by the variables; what it took.

        Memory: the distinct rows twice.
        """
        operations = Operations()
        if self._is_empty:
            return self.nothing, operations
        if not self._comes_sorted:
            found = Weighted(len(self.variables))
            for columns, weights in self.searched(building, operations):
                found.add(list(columns), weights)
            return found.finish(), operations
        plan = self._bound(building.versions)
        counters = plan.new_counters()
        rows = self._ordered(*all_rows(plan, counters, building.threads, building.advance))
        operations.add(Operations(*counters.sum(axis=0).tolist()))
        return rows, operations

    def searched(self, building: Building, operations: Operations) -> Iterator[Assignments]:
        """All rows over the versions, as the search finds them; ``operations`` gets what it took.

        Memory: a batch of rows per thread.
        """
        if self._is_empty:
            return
        plan = self._bound(building.versions)
        counters = plan.new_counters()
        for columns, weights in batches(plan, counters, BATCH_ROWS, building.threads, building.advance):
            assert weights is not None
            yield self._ordered(columns, weights)
        operations.add(Operations(*counters.sum(axis=0).tolist()))

    def _bound(self, versions: Versions) -> BoundPlan:
        """The plan over the versions."""
        if self._plan is None:
            self._plan = compile_plan(self.problem, self._order, write=True)
        return self._plan.bind(versions, self.problem)

    def _ordered(self, columns: list[np.ndarray], weights: np.ndarray) -> Assignments:
        """Rows of a search, their columns in the order of the variables."""
        emitted = self.problem.emitted
        return [columns[emitted.index(name)] for name in self.variables], weights
