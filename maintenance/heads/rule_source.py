"""A rule's share of a head: the signed tuples that it gives, from a set of rows or from an aggregate.

Invariants

1. The tuples of ``build`` and of the steps that were kept add up to the rule's tuples over the newest
   versions.  Where ``is_distinct`` each has weight 1; else its weight is a support count.
2. A step stages, as all that is :class:`~maintenance.staged.Staged`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from lftj.errors import EvaluationError, RangeError
from lftj.evaluation.wanted import wanted_variables
from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.diagnostics import with_rule
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate, Variable
from lftj.rewriting.computed_keys import shown_rule
from lftj.rewriting.merged_tests import merged_tests
from lftj.storage.signed_rows import gathered
from lftj.storage.zset import Weighted
from maintenance.groups.joined_groups import JoinedGroups
from maintenance.groups.shared_scans import Sharer
from maintenance.heads.intermediate import Intermediate, Projected
from maintenance.heads.keeping import Keeping
from maintenance.heads.maintained_body import maintained_body
from maintenance.heads.rule_body import RuleBody
from maintenance.staged import Staged
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import (
    BodyRequest,
    BodySearch,
    BodyStrategy,
    Building,
    HeadSource,
    Read,
    Round,
    Tuples,
    Versions,
)
from maintenance.strategies.timed_round import TimedRound

Made = TypeVar("Made")

TimedTuples = tuple[list[np.ndarray], np.ndarray, np.ndarray]
"""Columns of tuples, the time of each and its sign."""


class RuleSource(HeadSource):
    """One rule's."""

    rule: CheckedRule

    @property
    @abstractmethod
    def bodies(self) -> Sequence[RuleBody]:
        """Whose searches the head pays for."""

    @property
    @abstractmethod
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        """The bodies that are searched, whoever pays for them, and the head in their variables."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """How the tuples are made, for ``explain``."""

    @property
    @abstractmethod
    def timed_refusal(self) -> str | None:
        """Why :meth:`timed_step` can't be had, if so."""

    @abstractmethod
    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        """The tuples that come and go through a batch; columns, times and signs.  Nothing is staged."""

    @property
    def searches(self) -> Sequence[BodySearch]:
        bodies = self.bodies
        if len(bodies) == 1:
            return bodies[0].all_searches
        return [search for body in bodies for search in body.all_searches]

    @property
    def reads(self) -> Iterator[Read]:
        for body in self.bodies:
            yield from body.reads

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        return frozenset().union(*(body.nan_free for body in self.bodies))

    def tidy(self, versions: Versions) -> int:
        return sum([body.tidy(versions) for body in self.bodies])

    def describe(self) -> list[str]:
        lines = [shown_rule(self.rule)]
        lines += [f"  head        {note}" for note in self.notes or ["every row is a tuple of its own"]]
        for body in self.bodies:
            lines += [f"  {line}" for line in body.describe()]
        return lines


class SetSource(RuleSource):
    """A rule without aggregate: the rows of its bodies, projected."""

    is_function = False

    def __init__(
        self,
        rule: CheckedRule,
        head: CheckedHead,
        relations: Versions,
        strategy: BodyStrategy,
        keeping: Keeping,
        extremum: tuple[str, str] | None = None,
    ) -> None:
        """``extremum``: that of the head, where each of its groups has one row (:func:`one_by_one`)."""
        self.rule = rule
        self._head = head
        self._names = head.columns
        self.is_function = extremum is not None
        grouped = head.variables if head.schema.functional else ()
        wanted = wanted_variables(head)
        self._bodies = [
            maintained_body(
                strategy,
                BodyRequest(
                    rule,
                    body,
                    relations,
                    wanted,
                    extremum=extremum,
                    grouped=grouped,
                    order=keeping.order,
                    gap=keeping.gap,
                ),
            )
            for body in (merged_tests(rule.bodies) if strategy.fetches else rule.bodies)
        ]
        self.is_distinct = len(self._bodies) == 1 and self._bodies[0].told_apart_by(self._names)
        self.sorted_by = self._order_of(head.variables)

    def _order_of(self, keys: tuple[str, ...]) -> tuple[int, ...] | None:
        """The order of the only search, where the tuples are the keys and it has all of them."""
        searches = self._bodies[0].searches
        if not self.is_distinct or len(searches) != 1 or not self._bodies[0].distinct_by <= set(self._names):
            return None
        walked = [name for name in searches[0].variables if name in keys]
        return tuple(map(keys.index, walked)) if len(walked) == len(self._names) else None

    @property
    def bodies(self) -> Sequence[RuleBody]:
        return self._bodies

    @property
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        return self._head, self._bodies

    @property
    def parts(self) -> Sequence[Staged]:
        return self._bodies

    @property
    def keeps_something(self) -> bool:
        return any(body.keeps_something for body in self._bodies)

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.is_distinct else ("support counts",)

    def build(self, building: Building) -> Tuples:
        if self.is_distinct:
            return self._projected([body.build(building) for body in self._bodies])
        tuples = Weighted(len(self._names))
        for body in self._bodies:
            for rows, weights in body.pieces(building):
                try:
                    tuples.add([rows[name] for name in self._names], weights)
                except RangeError as error:
                    raise with_rule(error, self.rule.text) from error.__cause__
        return tuples.finish()

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        return self._projected([body.step(change, stats) for body in self._bodies])

    @property
    def timed_refusal(self) -> str | None:
        return next(filter(None, (body.timed_refusal for body in self._bodies)), None)

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        parts = []
        for body in self._bodies:
            rows, times, signs = body.timed_step(change, stats)
            parts.append(([*(rows[name] for name in self._names), times], signs))
        (*columns, times), signs = gathered(parts)
        return columns, times, signs

    def _projected(self, parts: Sequence[tuple[Mapping[str, np.ndarray], np.ndarray]]) -> Tuples:
        return gathered([([rows[name] for name in self._names], signs) for rows, signs in parts])


class SharedSource(RuleSource):
    """A rule whose assignments an intermediate has for several heads."""

    def __init__(self, intermediate: Intermediate, sharer: Sharer | Projected) -> None:
        self.rule = sharer.rule
        self._intermediate = intermediate
        self._own = sharer

    @property
    def bodies(self) -> Sequence[RuleBody]:
        return self._intermediate.bodies if self._own is self._intermediate.sharers[0] else ()

    @property
    def shared(self) -> frozenset[Staged]:
        return frozenset([self._intermediate])

    @property
    def _sharing(self) -> tuple[str, ...]:
        """For ``explain``: the heads that share the assignments, and so may pay for them."""
        others = [one.head.relation for one in self._intermediate.sharers if one is not self._own]
        return (f"one intermediate with {', '.join(others)}",) if others else ()

    def hand_over(self) -> None:
        self._intermediate.put_last(self._own)

    def leave(self) -> None:
        self._intermediate.leave(self._own)


class ProjectedSource(SharedSource):
    """A rule without aggregate: its values among the assignments that other heads aggregate."""

    is_distinct = False
    is_function = False
    sorted_by = None

    def __init__(self, intermediate: Intermediate, sharer: Projected) -> None:
        super().__init__(intermediate, sharer)
        self._sharer = sharer

    @property
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        return replace(self._sharer.head, variables=self._sharer.names), self._intermediate.bodies

    @property
    def parts(self) -> Sequence[Staged]:
        return (self._intermediate,)

    @property
    def notes(self) -> tuple[str, ...]:
        return ("support counts", *self._sharing)

    def build(self, building: Building) -> Tuples:
        try:
            self._intermediate.build(building)
            return self._intermediate.counted(self._sharer)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        try:
            rows, signs = self._intermediate.step(change, stats)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        return [rows[name] for name in self._sharer.names], signs

    @property
    def timed_refusal(self) -> str | None:
        return self._intermediate.timed_refusal

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        try:
            rows, times, signs = self._intermediate.timed_step(change, stats)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        return [rows[name] for name in self._sharer.names], times, signs


class AggregateSource(SharedSource):
    """A rule with an aggregate: one tuple per group, from the rule's intermediate."""

    is_distinct = True
    is_function = True
    is_net = True

    def __init__(self, intermediate: Intermediate, sharer: Sharer) -> None:
        super().__init__(intermediate, sharer)
        self._sharer = sharer
        self._groups = intermediate.groups(sharer)
        self.sorted_by = tuple(range(len(sharer.head.schema.columns)))

    @property
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        return aggregated(self._sharer), self._intermediate.bodies

    @property
    def parts(self) -> Sequence[Staged]:
        return self._intermediate, self._groups

    @property
    def notes(self) -> tuple[str, ...]:
        sharer = self._sharer
        return (
            f"aggregate {sharer.call.function}",
            *self._intermediate.notes(sharer),
            *self._sharing,
        )

    def build(self, building: Building) -> Tuples:
        try:
            self._intermediate.build(building)
            return self._groups.built()
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    @property
    def timed_refusal(self) -> str | None:
        return self._intermediate.timed_refusal or self._groups.timed_refusal

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        try:
            rows, times, signs = self._intermediate.timed_step(change, stats)
            return self._groups.timed_step([rows[name] for name in self._sharer.names], times, signs)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        try:
            rows, signs = self._intermediate.step(change, stats)
            columns, are_unscaled = self._sharer.columns(rows)
            return self._groups.stage(columns, signs, are_unscaled)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    def tidy(self, versions: Versions) -> int:
        self._groups.tidy()
        return super().tidy(versions)


class BesideSource(SharedSource):
    """A rule with one of several aggregates that another head has side by side: it gives no tuples."""

    is_distinct = True
    is_function = True
    is_net = True
    sorted_by = None

    def __init__(self, intermediate: Intermediate, sharer: Sharer) -> None:
        super().__init__(intermediate, sharer)
        self._sharer = sharer

    @property
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        return aggregated(self._sharer), self._intermediate.bodies

    @property
    def parts(self) -> Sequence[Staged]:
        return (self._intermediate,)

    @property
    def notes(self) -> tuple[str, ...]:
        sharer, shown = self._sharer, shown_name(self._sharer.head.relation)
        return (
            f"aggregate {sharer.call.function}, a column of {shown}, which finds all side by side",
            *self._intermediate.notes(sharer),
            *self._sharing,
        )

    def build(self, building: Building) -> Tuples:
        try:
            self._intermediate.build(building)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        none = np.empty(0, np.int64)
        return [none] * len(self._sharer.head.schema.columns), none

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        try:
            self._intermediate.step(change, stats)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        none = np.empty(0, np.int64)
        return [none] * len(self._sharer.head.schema.columns), none

    @property
    def timed_refusal(self) -> str | None:
        return self._intermediate.timed_refusal

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        try:
            self._intermediate.timed_step(change, stats)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        none = np.empty(0, np.int64)
        return [none] * len(self._sharer.head.schema.columns), none, none


class SideBySideSource(RuleSource):
    """A rule that joins aggregates of the same groups, found side by side: one tuple per group."""

    is_distinct = True
    is_function = False
    is_net = True
    bodies = ()

    def __init__(self, rule: CheckedRule, intermediate: Intermediate, groups: JoinedGroups) -> None:
        self.rule = rule
        self._intermediate = intermediate
        self._groups = groups
        self.sorted_by = tuple(range(len(rule.heads[0].schema.columns)))

    @property
    def shared(self) -> frozenset[Staged]:
        return frozenset([self._intermediate])

    @property
    def parts(self) -> Sequence[Staged]:
        return self._intermediate, self._groups

    @property
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        return self.rule.heads[0], ()

    @property
    def notes(self) -> tuple[str, ...]:
        names = ", ".join(sharer.head.relation for sharer in self._groups.sharers)
        return (f"{names} side by side: they have the same groups",)

    def build(self, building: Building) -> Tuples:
        return self._named(self._groups.built)

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        return self._named(lambda: self._groups.stage(*self._intermediate.step(change, stats)))

    @property
    def timed_refusal(self) -> str | None:
        return self._intermediate.timed_refusal or self._groups.timed_refusal

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        return self._named(lambda: self._groups.timed_step(*self._intermediate.timed_step(change, stats)))

    def _named(self, made: Callable[[], Made]) -> Made:
        """What is made of the groups; an error has the text of the rule whose aggregates they are."""
        try:
            return made()
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    def tidy(self, versions: Versions) -> int:
        self._groups.tidy()
        return 0


def aggregated(sharer: Sharer) -> CheckedHead:
    """A head that aggregates, in the variables of the bodies that are searched for it."""
    call = Aggregate(sharer.call.function, tuple(map(Variable, sharer.arguments)))
    return replace(sharer.head, variables=sharer.groups, value=call)
