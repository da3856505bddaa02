"""`trace`: bodies are kept by the sensitivity records of their searches.

Specification: docs/design/engine.md sections 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from lftj.planning.lowered import Lowered
from lftj.planning.planner import OrderChoice
from lftj.search.machine.plan import compile_regions
from lftj.search.problem import JoinProblem
from maintenance.strategies.existence import counting, plan_existence
from maintenance.strategies.strategy import BodyRequest, BodySearches, BodyStrategy
from maintenance.strategies.trace.body_trace import BodyTrace
from maintenance.strategies.trace.witnessed_trace import WitnessedTrace

WITNESS_GAP = 0
"""Most records of searches with witnesses are points, so joining the others saves little: a gap of 1 a fifth
of them, one of 9 a third, for ``hub(a) <- e(a, b), e(b, c), e(a, c)`` on a power-law graph of 112,000 edges.
Exact ones match less, and their cost is bounded by the trace's edits."""

SWITCH = 1.1
"""An order that a pilot finds better by a tenth is taken: fewer operations are fewer records, a commit pays
for records that it matches.  Triangles of a power-law graph of 114,000 edges: by a pilot the order a, b, c
takes 1.3 times the operations of c, b, a; with this one there are 28 % fewer records, and a commit half the
operations."""


class Trace(BodyStrategy):
    """Keeps every rule of the language."""

    fetches = False

    def plan(self, request: BodyRequest, lowered: Lowered) -> BodySearches:
        return plan_existence(request, lowered, Traces(request.gap))


@dataclass(frozen=True)
class Traces:
    """Makes searches with records.  ``gap``: as of the request."""

    gap: int
    keeps_witnesses = True
    witness_operations = 0.0
    switch = SWITCH

    def enumerated(self, problem: JoinProblem) -> JoinProblem:
        return counting(problem)

    def enumerating(self, lowered: Lowered, choice: OrderChoice) -> BodyTrace:
        return BodyTrace(lowered, compile_regions(lowered.problem, choice.order, self.gap))

    def stopping(self, lowered: Lowered, choice: OrderChoice, tail: int) -> WitnessedTrace:
        plan = compile_regions(lowered.problem, choice.order, WITNESS_GAP, tail)
        return WitnessedTrace(lowered, plan)
