"""Which of the ways to keep a body it takes: searches, two stages of them, range sums, or witnesses."""

from __future__ import annotations

from dataclasses import replace

from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.syntax import Atom, Variable
from lftj.planning.lowered import Lowered
from lftj.rewriting.nearest_join import NearestJoin, asked_extremum, nearest_join
from lftj.rewriting.range_join import RangeJoin, range_join
from maintenance.heads.computed_negation import ComputedNegation
from maintenance.heads.keeping import Keeping
from maintenance.heads.nearest_body import NearestBody
from maintenance.heads.rule_body import RuleBody
from maintenance.strategies.range_sums import RangeSums
from maintenance.strategies.strategy import BodyRequest, BodySearches, BodyStrategy


def maintained_body(strategy: BodyStrategy, request: BodyRequest) -> RuleBody:
    """A body in as many stages as it takes; raises as ``RuleBody``."""
    body = request.body
    if late := _late_negations(body):
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


def one_by_one(rule: CheckedRule, head: CheckedHead, keeping: Keeping) -> tuple[str, str] | None:
    """The extremum of a head each of whose groups is one asker, with one witness: that is its value."""
    asked = asked_extremum([head])
    if asked is None or len(rule.bodies) > 1 or keeping.order is not None or _late_negations(rule.bodies[0]):
        return None
    found = nearest_join(rule.bodies[0], *asked, head.variables)
    is_one = isinstance(found, NearestJoin) and set(found.askers.names) <= set(head.variables)
    return asked if is_one else None


def _late_negations(body: Body) -> list[Atom]:
    """The negated atoms over computed variables."""
    bound = set(body.atom_variables())
    return [
        atom
        for atom in body.negations
        if any(isinstance(term, Variable) and term.name not in bound for term in atom.terms)
    ]


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
