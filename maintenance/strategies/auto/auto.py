"""`auto`: trace or delta for each body, and evaluation again for a commit that changes much.

Where a body is searched for existence, by stopping at the first success, its records tell what
a change can't touch: those searches are `trace`'s, where a change would meet many assignments.
All assignments are kept by
:class:`~maintenance.strategies.auto.auto_body.AutoBody`, which begins as `trace` where the body has
a negated atom beside several others, and as `delta` where not (docs/design/strategies.md section 1, "before
any measurement").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lftj.planning.lowered import Lowered
from lftj.planning.planner import OrderChoice
from lftj.search.problem import JoinProblem
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.delta.delta_body import DeltaBody
from maintenance.strategies.existence import counting, plan_existence
from maintenance.strategies.strategy import BodyRequest, BodySearches, BodyStrategy, BodyTest
from maintenance.strategies.trace.trace import Traces

WITNESS_OPERATIONS = 1_000.0
"""A step by witnesses takes 80 us longer than one by support counts, whose operations take 50 to 80 ns."""


class Auto(BodyStrategy):
    """Keeps every rule of the language."""

    def plan(self, request: BodyRequest, lowered: Lowered) -> BodySearches:
        found = plan_existence(request, lowered, _Choosing(request, Traces(request.gap)))
        notes = [
            f"auto: trace, for {', '.join(search.variables) or 'a test'} by first success"
            for search in (*found.rows, *found.tests)
            if not isinstance(search, AutoBody)
        ]
        return replace(found, notes=(*found.notes, *notes))


@dataclass(frozen=True)
class _Choosing:
    """Makes searches that choose, and `trace`'s where there is nothing to choose."""

    request: BodyRequest
    traces: Traces
    keeps_witnesses = True
    witness_operations = WITNESS_OPERATIONS
    switch = Traces.switch

    def enumerated(self, problem: JoinProblem) -> JoinProblem:
        return replace(problem, counted=True)

    def enumerating(self, lowered: Lowered, choice: OrderChoice) -> AutoBody:
        delta = DeltaBody(lowered, choice, self.request.relations)
        every = replace(lowered, problem=counting(lowered.problem))
        return AutoBody(delta, self.traces.enumerating(every, choice))

    def stopping(self, lowered: Lowered, choice: OrderChoice, tail: int) -> BodyTest:
        return self.traces.stopping(lowered, choice, tail)
