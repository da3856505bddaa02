"""One body of a component's rules, as `stages` reads it: its instances that came or went.

    d(body) = SUM_i  new(A_1) ... new(A_i-1) * dA_i * old(A_i+1) ... old(A_n)

over all atoms, recursive ones too; what changes at a time is either relations outside of the component, or
facts of it, never both (:mod:`maintenance.strategies.stages.stages`).  A negated atom reads its relation by
a name of its own, for what comes into that and what goes out of it are told apart the other way round.

Invariants

1. Rows hold all variables: each is one instance, and has the weight that its changed branch has, the other
   way round where that is of a negated atom.
2. Every recursive atom is a fact: where it has wildcards, variables stand for them.
3. A fact that changes weighs its rank.  So where a body has one recursive atom only, the rows of a change of
   facts weigh their highs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from lftj.errors import EvaluationError, RangeError
from lftj.evaluation.finishing import Finishing
from lftj.evaluation.recursive_body import with_variables
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.diagnostics import with_rule
from lftj.language.syntax import Variable, Wildcard
from lftj.planning.lowered import Lowered
from lftj.planning.lowering import lower
from lftj.planning.planner import choose_order
from lftj.planning.term import left_over, plan_term
from lftj.planning.term_order import choose_term_orders
from lftj.rewriting.computed_keys import shown_rule
from lftj.search.problem import JoinAtom
from lftj.search.regions.evaluation import Operations
from lftj.storage.catalog import Catalog
from lftj.storage.signed_rows import Columns, table_of
from lftj.values.schema import Schema
from maintenance.stats import RuleStats
from maintenance.strategies.delta.term import Terms
from maintenance.strategies.delta.whole_search import WholeSearch
from maintenance.strategies.stages.stage_table import StageTable
from maintenance.strategies.strategy import Building, Round, Versions

Read = TypeVar("Read")

Tables = Mapping[str, StageTable]
"""Of the component's relations; none, where ranks are of no account."""

NEGATED = "!"
"""What the name of a relation begins with as negated atoms read it."""


def with_negated(versions: Mapping[str, Read]) -> dict[str, Read]:
    """Relations by the names that positive and negated atoms read them by."""
    return {**versions, **{NEGATED + name: version for name, version in versions.items()}}


class Instances(NamedTuple):
    """Instances of one body: their heads, int64 (columns, n), and highs, int64 (n,)."""

    head: str
    columns: np.ndarray
    highs: np.ndarray


@dataclass(frozen=True)
class FactAtom:
    """A recursive atom: the relation, and which of the body's variables its columns are."""

    relation: str
    places: tuple[int, ...]


def refusal(rule: CheckedRule, head: CheckedHead, body: Body, component: Collection[str]) -> str | None:
    """Why a body can't be kept by its instances, if so."""
    if head.schema.functional and head.extremum is None:
        return f"{head.relation} is functional"
    assigned = {assignment.variable for assignment in body.assignments}
    if head.extremum and head.columns[-1] in assigned and not head.schema.columns[-1].type.domain.ordered:
        return f"{head.relation} has computed values that are no numbers of a fixed width"
    bound = set(body.atom_variables())
    for atom in body.negations:
        if not {term.name for term in atom.terms if isinstance(term, Variable)} <= bound:
            return f"!{atom.relation} tests a computed value"
    for atom in (*body.atoms, *body.negations):
        if atom.relation not in component and all(isinstance(term, Wildcard) for term in atom.terms):
            return f"an atom of {atom.relation} binds nothing"
    return None


class StageBody:
    """One body for one head."""

    def __init__(
        self, rule: CheckedRule, head: CheckedHead, body: Body, component: Collection[str], catalog: Catalog
    ) -> None:
        """``catalog``: what the rule reads, the component's own relations too; orders are chosen by it."""
        self.head = head.relation
        self.rule = rule
        own = {name: catalog[name].schema for name in component}
        body = with_variables(body, own, every=True)
        self._names = list(head.columns)
        self.lowered = self._lowered(body, {name: catalog[name].schema for name in body.relations})
        self._finishing = Finishing(self.lowered)
        problem = self.lowered.problem
        self._variables = problem.emitted
        self._facts = [
            FactAtom(atom.relation, _places(atom, self._variables))
            for atom in problem.atoms
            if atom.relation in component
        ]
        self.follows = frozenset(fact.relation for fact in self._facts)
        """The component's relations that it reads; none, where it begins a recursion."""
        every = with_negated(catalog)
        parts = left_over(problem)
        orders = choose_term_orders(problem, parts, every)
        plans = [
            plan_term(atom, place >= len(problem.atoms), rest, order)
            for place, ((atom, rest), order) in enumerate(zip(parts, orders, strict=True))
        ]
        self.plans = tuple(plans)
        outer = [plan for plan in plans if plan.atom.relation not in component]
        inner = [plan for plan in plans if plan.atom.relation in component]
        self._outer, self._inner = Terms(outer, self._variables), Terms(inner, self._variables)

    def _lowered(self, body: Body, schemas: Mapping[str, Schema]) -> Lowered:
        """The body lowered to rows of all variables; constants in its atoms are variables too."""
        found = lower(body, schemas, self._names, counted=False, lasting=True, every=True)
        problem = found.problem
        negations = tuple(replace(atom, relation=NEGATED + atom.relation) for atom in problem.negations)
        emitted = tuple(dict.fromkeys((*problem.emitted, *problem.labels)))
        return replace(found, problem=replace(problem, negations=negations, emitted=emitted, counted=True))

    @property
    def is_empty(self) -> bool:
        return self.lowered.empty is not None

    def changed(self, change: Round, tables: Tables, stats: RuleStats) -> Iterator[Instances]:
        """The instances that a change of relations outside of the component made or took away."""
        found = None if self.is_empty else self._outer.rows(change, stats)
        if found is not None:
            yield from self._instances(*found, tables, weights_are_highs=False)

    def followed(self, change: Round, tables: Tables, stats: RuleStats) -> Iterator[Instances]:
        """Those that a change of facts made or took away; each fact weighs its rank."""
        found = None if self.is_empty else self._inner.rows(change, stats)
        if found is not None:
            yield from self._instances(*found, tables, weights_are_highs=len(self._facts) == 1)

    def every(self, versions: Versions, tables: Tables) -> Iterator[Instances]:
        """All over some versions, in pieces."""
        if self.is_empty:
            return
        choice = choose_order(self.lowered.problem, versions)
        search = WholeSearch(self.lowered, choice)
        for columns, weights in search.searched(Building(versions), Operations()):
            by_name = dict(zip(search.variables, columns, strict=True))
            ordered = [by_name[name] for name in self._variables]
            yield from self._instances(ordered, weights, tables, weights_are_highs=False)

    def _instances(
        self, columns: Columns, weights: np.ndarray, tables: Tables, weights_are_highs: bool
    ) -> Iterator[Instances]:
        if not len(weights):
            return
        rows: Mapping[str, np.ndarray] = dict(zip(self._variables, columns, strict=True))
        if not self.lowered.finishes_in_search:
            try:
                rows, numbers = self._finishing.finish(rows, np.arange(len(weights)), {})
            except (RangeError, EvaluationError) as error:
                raise with_rule(error, self.rule.text) from error.__cause__
            columns, weights = [column[numbers] for column in columns], weights[numbers]
        if weights_are_highs:
            highs = np.abs(weights)
        else:
            highs = np.zeros(len(weights), np.int64)
            for fact in self._facts if tables else ():
                ranks = tables[fact.relation].ranks([columns[place] for place in fact.places])
                np.maximum(highs, ranks, out=highs)
        yield Instances(self.head, table_of([rows[name] for name in self._names], len(weights)), highs)

    def describe(self) -> list[str]:
        """For ``explain``: the rule, and its terms, those of recursive atoms behind the others."""
        labels = self.lowered.problem.labels
        lines = [*self._outer.describe(labels), *self._inner.describe(labels)]
        return [shown_rule(self.rule), *(f"  {line}" for line in lines)]


def _places(atom: JoinAtom, variables: Sequence[str]) -> tuple[int, ...]:
    """Which variables the columns of an atom are."""
    names = dict(zip(atom.columns, atom.variables, strict=True))
    for first, second in atom.equal:
        names[second] = names[first]
    return tuple(variables.index(names[column]) for column in atom.identity)
