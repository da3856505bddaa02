"""Intermediates: the assignments of a body that aggregate heads read, kept once for all that share them.

Heads that aggregate the same body, up to the names of its variables, step one set of
searches, and some of them one ordered tree of values (:mod:`maintenance.groups.shared_scans`).  Auxiliary
heads that hold the distinct values of such a body, for other aggregates, are projections of its rows.

The aggregates of one head are auxiliary heads of the same groups (:mod:`lftj.language.several_aggregates`).
Those over one body are found *side by side*, by the head that joins them; then they have no rows of their
own.

Invariants

1. The rows of ``build`` and of the steps that were kept add up to the assignments over the newest versions:
   of one body as often as there are assignments with their values; of several alternatives, the variables
   that all of them bind, each row once.
2. A round is stepped once, whoever asks first; ``keep`` and ``drop``, once or once per head, end it.
3. A build holds a piece of the assignments at a time: it goes to the trees and to the groups of all heads,
   and is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from lftj.evaluation.wanted import common_variables
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.expressions import text_of
from lftj.language.several_aggregates import is_auxiliary, joins_groups
from lftj.language.syntax import Aggregate, Atom, Constant, Expression, Term, Variable
from lftj.rewriting.merged_tests import merged_tests
from lftj.rewriting.nearest_join import asked_extremum
from lftj.rewriting.summand import substituted
from lftj.storage.signed_rows import gathered
from lftj.storage.zset import Weighted
from maintenance.groups.grouped import GroupedAggregate
from maintenance.groups.joined_groups import JoinedGroups
from maintenance.groups.scan import GroupScan
from maintenance.groups.shared_scans import SharedScans, Sharer
from maintenance.heads.keeping import Keeping
from maintenance.heads.maintained_body import maintained_body
from maintenance.heads.rule_body import Rows, TimedRows
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import BodyRequest, BodyStrategy, Building, Round, Tuples, Versions
from maintenance.strategies.timed_round import TimedRound


class Projected:
    """A head that holds values of a set of rows, and what its variables are called there."""

    def __init__(self, rule: CheckedRule, head: CheckedHead, names: Mapping[str, str]) -> None:
        """``names``: what the rows call each of the rule's variables."""
        self.rule = rule
        self.head = head
        self.groups = self.names = tuple(names[name] for name in head.columns)


_NO_ROWS: Rows = ({}, np.empty(0, np.int64))


class Join(NamedTuple):
    """Aggregates that a head has side by side, and its columns, as JoinedGroups numbers them."""

    sharers: tuple[Sharer, ...]
    places: tuple[int, ...]


class Intermediate(Staged):
    """The maintained assignments of a rule's bodies, and the ordered trees over them."""

    def __init__(
        self,
        rule: CheckedRule,
        sharers: Sequence[Sharer | Projected],
        relations: Versions,
        strategy: BodyStrategy,
        keeping: Keeping,
        wanted: Sequence[str] = (),
        joins: Mapping[CheckedRule, Join] = MappingProxyType({}),
    ) -> None:
        """``rule``: whose bodies are evaluated; all ``sharers`` are there from the beginning.

        ``wanted``: variables that are read beside those of sharers.  ``joins``: by rule, of sharers that
        its head has side by side.
        """
        if strategy.fetches:
            rule = replace(rule, bodies=merged_tests(rule.bodies))
        several = len(rule.bodies) > 1
        self.sharers = tuple(sharers)
        self.names = tuple(common_variables(rule)) if several else tuple(rule.bodies[0].types)
        wanted = self.names if several else [*wanted, *(n for s in sharers for n in s.names)]
        grouped = list(dict.fromkeys(name for sharer in sharers for name in sharer.groups))
        self.bodies = [
            maintained_body(
                strategy,
                BodyRequest(
                    rule,
                    body,
                    relations,
                    wanted,
                    every=not several,
                    added_up=not several,
                    extremum=None if several else asked_extremum([one.head for one in sharers]),
                    grouped=grouped,
                    order=keeping.order,
                    gap=keeping.gap,
                ),
            )
            for body in rule.bodies
        ]
        types = {number: rule.bodies[0].types[name] for number, name in enumerate(self.names)}
        self._support = StagedSupport(len(types), types) if several else None
        aggregates = [sharer for sharer in sharers if isinstance(sharer, Sharer)]
        self._scans = SharedScans(aggregates)
        beside = {sharer for join in joins.values() for sharer in join.sharers}
        self._groups = {
            sharer: GroupedAggregate(
                sharer.head, sharer.rule.bodies[0].types, self._scans.accumulator(sharer)
            )
            for sharer in aggregates
            if sharer not in beside
        }
        self._joined = {
            rule: JoinedGroups(join.sharers, self._scans.accumulator, join.places)
            for rule, join in joins.items()
        }
        self._counts: dict[Projected, Weighted] = {}  # how often each tuple is found, of a build
        self._round: object = None
        self._rows = _NO_ROWS

    @property
    def parts(self) -> Sequence[Staged]:
        support = () if self._support is None else (self._support,)
        return *self.bodies, *support, self._scans

    def groups(self, sharer: Sharer) -> GroupedAggregate:
        """A head's groups, which a build fills; the head stages, keeps and drops them."""
        return self._groups[sharer]

    def joined(self, rule: CheckedRule) -> JoinedGroups:
        """The groups of a joining rule that has sharers side by side; as :meth:`groups`."""
        return self._joined[rule]

    def own_scan(self, sharer: Sharer) -> GroupScan | None:
        """The ordered tree that a head has alone; None without one."""
        return self._scans.own_scan(sharer)

    def notes(self, sharer: Sharer) -> tuple[str, ...]:
        """How a head's values are made, for ``explain``."""
        return self._scans.notes(sharer)

    def build(self, building: Building) -> None:
        """Give all assignments to the groups of all heads, whoever asks first; staged, like a step."""
        if self._round is not None:
            return
        projected = [one for one in self.sharers if isinstance(one, Projected)]
        self._counts = {one: Weighted(len(one.names)) for one in projected}
        for rows, weights in self.pieces(building):
            for one, counts in self._counts.items():
                counts.add([rows[name] for name in one.names], weights)
            self._scans.stage(rows, weights)
            for sharer, groups in self._groups.items():
                columns, are_unscaled = sharer.columns(rows)
                groups.add(columns, weights, are_unscaled)
            for joined in self._joined.values():
                joined.add(rows, weights)

    def counted(self, sharer: Projected) -> Tuples:
        """The tuples of a projection that was built, once, and how often the assignments give each."""
        return self._counts.pop(sharer).finish()

    def pieces(self, building: Building) -> Iterator[Rows]:
        """All assignments in pieces; of several bodies each row once.  Staged, like a step."""
        self._round = building.versions
        for body in self.bodies:
            for piece in body.pieces(building):
                yield piece if self._support is None else self._came(self._support, piece)

    def step(self, change: Round, stats: RuleStats) -> Rows:
        """The assignments that came (+1) and went (-1); ``stats`` of whoever asks first gets what it took."""
        if self._round is None:
            self._begin(change, [body.step(change, stats) for body in self.bodies])
        return self._rows

    @property
    def timed_refusal(self) -> str | None:
        """Why :meth:`timed_step` can't be had, if so."""
        return "several alternatives" if len(self.bodies) > 1 else self.bodies[0].timed_refusal

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedRows:
        """The assignments that come and go through a batch; ``stats`` of whoever asks first."""
        return change.shared.once(self, lambda: self.bodies[0].timed_step(change, stats))

    def _begin(self, change: object, parts: list[Rows]) -> None:
        rows, signs = parts[0] if self._support is None else self._came(self._support, *parts)
        self._scans.stage(rows, signs)
        self._rows = rows, signs
        self._round = change

    def _came(self, support: StagedSupport, *parts: Rows) -> Rows:
        """The rows of several bodies that come and go with signed rows of some of them."""
        columns, signs = gathered([([rows[name] for name in self.names], signs) for rows, signs in parts])
        support.staged, rows_of_all, signs = support.newest.step(columns, signs)
        return dict(zip(self.names, rows_of_all, strict=True)), signs

    def keep(self) -> None:
        if self._round is not None:  # else a head that shares it has kept it, or none has stepped it
            super().keep()

    def _keep_own(self) -> None:
        self._end()

    def _drop_own(self) -> None:
        self._end()

    def _end(self) -> None:
        self._round = None
        self._rows = _NO_ROWS

    def put_last(self, sharer: Sharer | Projected) -> None:
        """Let another head, if there is one, be the first: the one that pays for the searches."""
        self.sharers = (*(other for other in self.sharers if other is not sharer), sharer)

    def leave(self, sharer: Sharer | Projected) -> None:
        """A head is uninstalled: the trees that only it reads go."""
        if isinstance(sharer, Sharer):
            self._scans.leave(sharer)
            self._groups.pop(sharer, None)
            self._joined = {rule: one for rule, one in self._joined.items() if sharer not in one.sharers}
        self.sharers = tuple(other for other in self.sharers if other is not sharer) or self.sharers

    def _check_own(self) -> None:
        assert self._round is None


# -- which rules share -------------------------------------------------------------------


class Intermediates:
    """The intermediates of heads that are installed together, as far as they are aggregates."""

    def __init__(
        self,
        heads: Sequence[tuple[CheckedRule, CheckedHead]],
        keepings: Mapping[str, Keeping],
    ) -> None:
        """``heads``: with their rules, those that are kept body by body; ``keepings``: of each by name."""
        self._keepings = keepings
        self._rules: dict[object, CheckedRule] = {}
        self._sharers: dict[object, list[Sharer | Projected]] = {}
        self._made: dict[object, Intermediate] = {}
        aggregates = [(rule, head) for rule, head in heads if isinstance(head.value, Aggregate)]
        for rule, head in aggregates:
            key, names = self._key(rule, head)
            self._rules.setdefault(key, rule)
            self._sharers.setdefault(key, []).append(Sharer(rule, head, self._own(key, names)))
        for rule, head in heads:
            if head.value is None and is_auxiliary(head.relation) and not head.aggregates_rows:
                key, names = self._key(rule, head)
                if key in self._sharers:
                    self._sharers[key].append(Projected(rule, head, self._own(key, names)))
        self._joins = {rule: join for rule, _ in heads if (join := self._join(rule)) is not None}
        self._beside = {one.head.relation for join in self._joins.values() for one in join.sharers}

    def _join(self, rule: CheckedRule) -> Join | None:
        """What the head of a joining rule has side by side; None where its parts stay heads of their own."""
        if not joins_groups(rule):
            return None
        (head,), (body,) = rule.heads, rule.bodies
        found = {one.head.relation: one for each in self._sharers.values() for one in each}
        sharers = [found.get(relation) for relation in body.relations]
        aggregates = [one for one in sharers if isinstance(one, Sharer)]
        keys = {self._key(one.rule, one.head)[0] for one in aggregates}
        if len(aggregates) < len(sharers) or len(sharers) < 2 or len(keys) > 1:
            return None
        terms = [[term.name for term in atom.terms if isinstance(term, Variable)] for atom in body.atoms]
        names = [*terms[0][:-1], *(own[-1] for own in terms)]
        return Join(tuple(aggregates), tuple(names.index(name) for name in head.columns))

    def joins(self, rule: CheckedRule) -> bool:
        """Whether this is a joining rule whose head has its aggregates side by side."""
        return rule in self._joins

    def is_beside(self, head: CheckedHead) -> bool:
        """Whether a head is one of several aggregates that another has side by side."""
        return head.relation in self._beside

    def read_by(self, name: str) -> frozenset[str]:
        """What the bodies read whose aggregates a head has side by side."""
        joins = [join for rule, join in self._joins.items() if rule.heads[0].relation == name]
        sharers = [one for join in joins for one in join.sharers]
        return frozenset(read for one in sharers for body in one.rule.bodies for read in body.relations)

    def joined(self, rule: CheckedRule) -> tuple[Intermediate, JoinedGroups]:
        """The intermediate and the groups of a joining rule whose head has its aggregates side by side."""
        first = self._joins[rule].sharers[0]
        intermediate = self._made[self._key(first.rule, first.head)[0]]
        return intermediate, intermediate.joined(rule)

    def _own(self, key: object, names: Mapping[str, str]) -> dict[str, str]:
        """What the rule that is evaluated calls the variables of one that is as it is."""
        inverse = {number: name for name, number in _numbered(self._rules[key]).items()}
        return {name: inverse[number] for name, number in names.items()}

    def _key(self, rule: CheckedRule, head: CheckedHead) -> tuple[object, dict[str, str]]:
        names = _numbered(rule)
        return (tuple(_text(body, names) for body in rule.bodies), self._keepings[head.relation]), names

    def shares(self, rule: CheckedRule, head: CheckedHead) -> bool:
        """Whether others aggregate the same body."""
        return len(self._sharers[self._key(rule, head)[0]]) > 1

    def of(
        self,
        rule: CheckedRule,
        head: CheckedHead,
        relations: Versions,
        strategy: BodyStrategy,
    ) -> tuple[Intermediate, Sharer | Projected] | None:
        """The intermediate of a head, made over the relations when the first of its heads asks; or none."""
        key, _ = self._key(rule, head)
        sharers = self._sharers.get(key, [])
        sharer = next((s for s in sharers if s.head is head and s.rule is rule), None)
        if sharer is None:
            return None
        if key not in self._made:
            joins = {joining: join for joining, join in self._joins.items() if join.sharers[0] in sharers}
            self._made[key] = Intermediate(
                self._rules[key], sharers, relations, strategy, self._keepings[head.relation], joins=joins
            )
        return self._made[key], sharer


def _numbered(rule: CheckedRule) -> dict[str, str]:
    """A name for each variable of a rule's bodies that says where it comes first."""
    names: dict[str, str] = {}
    for body in rule.bodies:
        for term in (term for atom in (*body.atoms, *body.negations) for term in atom.terms):
            if isinstance(term, Variable):
                names.setdefault(term.name, f"v{len(names)}")
        for assignment in body.assignments:
            names.setdefault(assignment.variable, f"v{len(names)}")
    return names


def _text(body: Body, names: Mapping[str, str]) -> tuple[str, ...]:
    """A body in words that only depend on its meaning and order of writing."""

    variables = {name: Variable(new) for name, new in names.items()}

    def text(expression: Expression) -> str:
        return text_of(substituted(expression, variables))

    def term_text(term: Term) -> str:
        return text(term) if isinstance(term, Variable | Constant) else "_"

    def atom_text(atom: Atom) -> str:
        return f"{atom.relation}{'[]' if atom.functional else '()'}{', '.join(map(term_text, atom.terms))}"

    return (
        *map(atom_text, body.atoms),
        *(f"!{atom_text(atom)}" for atom in body.negations),
        *(f"{text(c.left)} {c.operator} {text(c.right)}" for c in body.comparisons),
        *(f"{names[a.variable]} :{a.sign} {text(a.expression)}" for a in body.assignments),
    )
