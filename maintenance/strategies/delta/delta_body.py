"""One body of a rule, kept by its delta rule (docs/design/strategies.md section 1).

Nothing is kept: what a transaction changes is joined with what was there, atom by atom.

Invariants

1. The terms' rows add up to the assignments over the new versions less those over the old ones:
   ``step == build(new) - build(old)`` (``tests/maintenance/strategies/test_delta.py``).
2. The indices that the terms read are built with the body, so that commits step them, and held; what only a
   whole evaluation reads may be given up, and is built again where one is made.

Cost: of a build that of a query, which in pieces holds none of its rows; of a step that of its terms
(:mod:`maintenance.strategies.delta.term`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lftj.planning.lowered import Lowered
from lftj.planning.planner import OrderChoice
from lftj.search.regions.evaluation import Operations
from lftj.storage.catalog import Catalog
from maintenance.stats import RuleStats
from maintenance.strategies.delta.term import plan_terms, shown
from maintenance.strategies.delta.whole_search import WholeSearch
from maintenance.strategies.strategy import Assignments, BodySearch, BodyTest, Building, Read, Round, Versions


class DeltaBody(BodySearch):
    """A body whose rows hold the emitted variables; their weights count the assignments of the others."""

    stages = False

    def __init__(self, lowered: Lowered, choice: OrderChoice, catalog: Catalog) -> None:
        self.lowered = lowered
        self.whole = WholeSearch(lowered, choice)
        self.terms = plan_terms(self.whole.problem, catalog, self.variables, by_keys=True)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.whole.variables

    @property
    def lists_assignments(self) -> bool:
        return True

    @property
    def keeps_something(self) -> bool:
        return False

    @property
    def is_distinct(self) -> bool:
        return self.whole.is_distinct

    @property
    def nbytes(self) -> int:
        return 0

    def build(self, building: Building) -> Assignments:
        self.prepare(building.versions)
        return self.whole.evaluated(building)[0]

    def pieces(self, building: Building) -> Iterator[Assignments]:
        self.prepare(building.versions)
        yield from self.whole.searched(building, Operations())

    @property
    def reads(self) -> Iterable[Read]:
        return () if self.lowered.empty else self.terms.reads

    def prepare(self, versions: Versions) -> None:
        """Build the indices that the terms read, so that commits step them."""
        if not self.lowered.empty:
            self.terms.prepare(versions)

    def step(self, change: Round, stats: RuleStats) -> Assignments:
        return self.step_within(change, stats, None)

    def step_within(self, change: Round, stats: RuleStats, budget: int | None) -> Assignments:
        """:meth:`step`; raises OverBudget soon after more than ``budget`` operations."""
        found = None if self.lowered.empty else self.terms.rows(change, stats, budget)
        return self.whole.nothing if found is None else found

    def rows(self, change: Round, after: bool) -> Assignments:
        return self.whole.evaluated(Building(change.new if after else change.old))[0]

    def sampled_operations(self, change: Round, sample: int, budget: int) -> tuple[float, int]:
        """What a step would take, by some of the changed branches of each term; and what these took.

        ``budget``: of the sample, in operations; what takes more would take that much at least.
        """
        return (0.0, 0) if self.lowered.empty else self.terms.sampled_operations(change, sample, budget)

    def describe(self) -> list[str]:
        """The key order of whole evaluations, and each term's, with the indices that it reads."""
        labels = self.lowered.problem.labels
        return [shown(self.variables, labels), *self.terms.describe(labels)]


class DeltaTest(DeltaBody, BodyTest):
    """A body that no variable of the rows stands in: it holds when it has an assignment; they are counted."""

    stages = True

    def __init__(self, lowered: Lowered, choice: OrderChoice, catalog: Catalog) -> None:
        super().__init__(lowered, choice, catalog)
        self._count = 0
        self._staged: int | None = None

    @property
    def keeps_something(self) -> bool:
        return True

    @property
    def holds(self) -> bool:
        return self._count > 0

    @property
    def will_hold(self) -> bool:
        return (self._count if self._staged is None else self._staged) > 0

    def build(self, building: Building) -> Assignments:
        columns, weights = super().build(building)
        self._staged = int(weights.sum())
        return columns, weights

    def step(self, change: Round, stats: RuleStats) -> Assignments:
        columns, weights = super().step(change, stats)
        self._staged = self._count + int(weights.sum())
        return columns, weights

    def _keep_own(self) -> None:
        if self._staged is not None:
            self._count, self._staged = self._staged, None

    def _drop_own(self) -> None:
        self._staged = None

    def _check_own(self) -> None:
        assert self._staged is None and self._count >= 0
