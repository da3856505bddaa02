"""Which of the ways to keep a body it takes: searches, two stages of them, range sums, or witnesses."""

from __future__ import annotations

from dataclasses import replace

from lftj.language.syntax import Variable
from lftj.planning.lowered import Lowered
from lftj.rewriting.nearest_join import NearestJoin, nearest_join
from lftj.rewriting.range_join import RangeJoin, range_join
from maintenance.heads.computed_negation import ComputedNegation
from maintenance.heads.nearest_body import NearestBody
from maintenance.heads.rule_body import RuleBody
from maintenance.strategies.range_sums import RangeSums
from maintenance.strategies.strategy import BodyRequest, BodySearches, BodyStrategy


def maintained_body(strategy: BodyStrategy, request: BodyRequest) -> RuleBody:
    """A body in as many stages as it takes; raises as ``RuleBody``."""
    body = request.body
    bound = set(body.atom_variables())
    late = [
        atom
        for atom in body.negations
        if any(isinstance(term, Variable) and term.name not in bound for term in atom.terms)
    ]
    if late:
        return ComputedNegation(strategy, request, late)
    refusal = None
    if request.extremum is not None and request.order is None:
        nearest = nearest_join(body, *request.extremum, request.wanted)
        if isinstance(nearest, NearestJoin):
            return NearestBody(strategy, request, nearest)
        refusal = nearest
    join = range_join(body) if request.added_up else None
    if join is not None and set(request.wanted).isdisjoint({join.inequality.left, join.inequality.right}):
        return RangeBody(request, join)
    kept = RuleBody(strategy, request)
    kept.not_nearest = refusal
    return kept


class RangeBody(RuleBody):
    """Two ordered views that an inequality joins, whatever the strategy of the head (:class:`RangeSums`)."""

    has_one_stage = False

    def __init__(self, request: BodyRequest, join: RangeJoin) -> None:
        super().__init__(
            _ByRanges(join), replace(request, body=replace(request.body, comparisons=()), order=None)
        )
        self.body = request.body

    @property
    def timed_refusal(self) -> str | None:
        return "range sums follow the order of changes"


class _ByRanges(BodyStrategy):
    """Plans the search of one range join."""

    fetches = False

    def __init__(self, join: RangeJoin) -> None:
        self._join = join

    def plan(self, request: BodyRequest, lowered: Lowered) -> BodySearches:
        return BodySearches((RangeSums(self._join),), (), (), ())
