"""A trial: a body is searched as it was written, until that has taken as much as another way would.

Cost: the plan, which the evaluation takes over, and the operations that were allowed.
"""

from __future__ import annotations

import numpy as np

from lftj.evaluation.plans import Plans, Scanned, Wanted
from lftj.evaluation.wanted import grouped_together, summed_together, wanted_variables
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.syntax import Aggregate
from lftj.search.queries.search import BATCH_ROWS, Search
from lftj.search.shares import SLICE
from lftj.storage.catalog import Catalog

ROW_OPERATIONS = 8.0
"""A set that takes no more operations than so many for each value of its rows has little to lose."""


class Trial:
    """Trials of the bodies of a program over a catalog."""

    def __init__(self, plans: Plans, catalog: Catalog) -> None:
        self._plans = plans
        self._catalog = catalog

    def is_filtered(self, head: CheckedHead, body: Body) -> bool:
        """Whether a part of the rows is searched, whose number no estimate knows."""
        return self._plans.is_filtered(self._wanted(head, body), {}, self._catalog)

    def _wanted(self, head: CheckedHead, body: Body) -> Wanted:
        counted = isinstance(head.value, Aggregate)
        summed = summed_together([head]) if counted else ()
        return Wanted(body, tuple(wanted_variables(head)), counted, grouped_together([head]), summed=summed)

    def takes_more(self, rule: CheckedRule, head: CheckedHead, body: Body, operations: float) -> bool:
        """Whether the search of a body takes more operations, and does not give a set's rows for them."""
        counted = isinstance(head.value, Aggregate)
        planned = self._plans.found(rule, self._wanted(head, body), {}, self._catalog, looks_up=counted)
        if isinstance(planned, Scanned):
            return False
        plan = planned.plan
        if planned.lowered.empty or plan.empty or not plan.depths:
            return False
        search = Search(plan)
        rows = np.empty((plan.plan.layout.width, BATCH_ROWS), dtype=np.int64)
        taken = 0
        while not search.done and taken < operations:
            search.restart_rows()
            search.run(rows, min(SLICE, int(operations) - taken + 1))
            taken = int(search.counters.sum())
        found = 0 if counted or plan.plan.needs_distinct else search.total
        return not search.done and taken > ROW_OPERATIONS * found * max(1, len(plan.order))
