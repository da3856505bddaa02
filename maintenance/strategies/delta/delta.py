"""`delta`: bodies are kept by delta rules, and keep nothing themselves.

Design: docs/design/strategies.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lftj.planning.lowered import Lowered
from lftj.planning.planner import SWITCH, OrderChoice
from lftj.search.problem import JoinProblem
from lftj.storage.catalog import Catalog
from maintenance.strategies.delta.delta_body import DeltaBody, DeltaTest
from maintenance.strategies.existence import plan_existence
from maintenance.strategies.strategy import BodyRequest, BodySearches, BodyStrategy, BodyTest


class Delta(BodyStrategy):
    """Keeps every rule of the language."""

    def plan(self, request: BodyRequest, lowered: Lowered) -> BodySearches:
        return plan_existence(request, lowered, _DeltaRules(request.relations))


@dataclass(frozen=True)
class _DeltaRules:
    """Makes searches that keep nothing."""

    relations: Catalog
    keeps_witnesses = False
    witness_operations = 0.0
    switch = SWITCH

    def enumerated(self, problem: JoinProblem) -> JoinProblem:
        return replace(problem, counted=True)

    def enumerating(self, lowered: Lowered, choice: OrderChoice) -> DeltaBody:
        return DeltaBody(lowered, choice, self.relations)

    def stopping(self, lowered: Lowered, choice: OrderChoice, tail: int) -> BodyTest:
        return DeltaTest(lowered, choice, self.relations)
