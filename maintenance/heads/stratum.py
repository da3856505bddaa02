"""Strata: heads in the order in which a commit steps them.

Invariants

1. A head reads base relations, heads of strata below its own, and relations that grow by what is below it.
2. Strata never change; what heads keep changes in place.

Cost: a commit looks at the heads that read what it changes, however many others there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush

from indices.compile_time import seconds_without_compiling
from lftj.language.body import CheckedProgram, Source
from lftj.language.several_aggregates import is_auxiliary
from lftj.rewriting.shared_views import is_view
from maintenance.changes.change import Change
from maintenance.heads.functional_check import refuse_relation_conflict
from maintenance.heads.grown import Grown, Moment
from maintenance.heads.head import MaintainedHead
from maintenance.heads.strategies import VIEWS
from maintenance.stats import RuleStats, TransactionStats
from maintenance.strategies.strategy import Round

Guarded = tuple[MaintainedHead, frozenset[Source]]
"""A head whose views stand as long as what its rules compute fits, and the columns by which that is known."""

Place = tuple[int, int]


class Stratum:
    """Heads that read none of each other: each is stepped once."""

    def __init__(self, heads: Sequence[MaintainedHead]) -> None:
        self.heads = tuple(heads)


class Strata:
    """All heads that are installed, from the lowest stratum to the highest, and relations that grow."""

    def __init__(self, strata: Iterable[Stratum] = (), grown: Iterable[Grown] = ()) -> None:
        self._strata = tuple(strata)
        self.heads = {head.name: head for stratum in self._strata for head in stratum.heads}
        """By name, each after those that its rules read."""
        self.grown = {one.name: one for one in grown}
        """By name, each after those that it reads."""
        self._ordered = _ordered(self._strata, self.grown.values())
        self.functions = frozenset(name for head in self.heads.values() for name in head.reads_as_functions)
        """Relations that a head reads as functions."""
        named = [head for head in self.heads.values() if not is_auxiliary(head.name)]
        self.hidden = {head.name: _hidden(head) for head in named if head.kept_for}
        """What to say of heads that a user named, and that are not to be read."""
        shown = [head for head in named if not head.kept_for]
        self.schemas = {head.name: head.schema for head in shown}
        """Of the heads that a user knows of."""
        self.strategies = {head.name: head.strategy for head in named}
        guards = ((head, head.program.guards.get(head.name)) for head in self.heads.values())
        self.guarded: list[Guarded] = [(head, guard.columns) for head, guard in guards if guard is not None]
        self.guarded_columns = frozenset[Source]().union(*(columns for _, columns in self.guarded))
        self.guarding: dict[str, list[Guarded]] = {}
        """By relation, the heads whose views stand as long as some of its columns are as they are."""
        for head, columns in self.guarded:
            for name in dict.fromkeys(relation for relation, _ in columns):
                self.guarding.setdefault(name, []).append((head, columns))

    @cached_property
    def may_wait_for_views(self) -> bool:
        """Whether a head that is to have views has none, for what its rules compute may not fit."""
        return any(head.strategy == VIEWS and not any(map(is_view, head.reads)) for head, _ in self.guarded)

    @property
    def members(self) -> Iterator[MaintainedHead | Grown]:
        """Heads and relations that grow, each after those that it reads."""
        for one in self._ordered:
            yield from one.heads if isinstance(one, Stratum) else (one,)

    @cached_property
    def _places(self) -> list[Place]:
        """Of relations that grow, among all that is stepped: how many stand before, and 0."""
        return [(number, 0) for number, one in enumerate(self._ordered) if not isinstance(one, Stratum)]

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[Place]]:
        """By relation, the heads that read it: how many strata and the like stand before, and its place."""
        readers: dict[str, list[Place]] = {}
        for number, one in enumerate(self._ordered):
            for place, head in enumerate(one.heads if isinstance(one, Stratum) else ()):
                for name in head.reads:
                    readers.setdefault(name, []).append((number, place))
        return readers

    def step(
        self, change: Round, stats: TransactionStats, moment: Moment | None
    ) -> Iterator[tuple[str, Change]]:
        """Step what reads what changed, one behind the other: staged, and entered.

        Gives what is added to each relation that grows, by name, before it goes on.  ``moment``: None where
        the round has that already.  ``stats.rules`` gets the figures of every head whose relations changed,
        before it stages anything.  Raises what heads raise, and FunctionalConflictError; then all of those
        have to be dropped.
        """
        readers, functions, changes = self._readers, self.functions, change.changes
        waiting = {place for name in changes if name in readers for place in readers[name]}
        if moment is not None:
            waiting.update(self._places)
        places = sorted(waiting)
        unchecked: list[str] = []
        at = 0
        while places:
            number, place = heappop(places)
            if unchecked and number != at:
                _refuse_conflicts(unchecked, change)
            at, member = number, self._ordered[number]
            if not isinstance(member, Stratum):
                assert moment is not None
                name = member.name
                if (gained := member.gained(change, moment)) is None:
                    continue
                version = change.enter(name, gained)
                yield name, gained
            else:
                head = member.heads[place]
                name = head.name
                started = seconds_without_compiling()
                figures = stats.rules[name] = RuleStats(head.strategy)
                columns, weights = head.step(change, figures)
                if len(weights):
                    version = change.enter(name, Change(columns, weights))
                    head.check_values(version, columns, weights)
                figures.head_changes = len(weights)
                figures.seconds = seconds_without_compiling() - started
                if not len(weights):
                    continue
            if name in functions and not version.schema.functional:
                unchecked.append(name)
            for reader in readers.get(name, ()):
                if reader not in waiting and reader > (number, place):
                    waiting.add(reader)
                    heappush(places, reader)
        _refuse_conflicts(unchecked, change)

    def below(self, others: Iterable[Stratum]) -> Strata:
        """These, and others on top of them."""
        return Strata((*self._strata, *others), self.grown.values())

    def with_grown(self, one: Grown) -> Strata:
        """These, and a relation that grows; what it reads may come later."""
        return Strata(self._strata, (*self.grown.values(), one))

    def inserted(self, others: Sequence[Stratum]) -> Strata:
        """These with others, each head right below the first stratum that reads it, be it by others."""
        first: dict[str, int] = {}
        for place, stratum in enumerate(self._strata):
            for head in stratum.heads:
                for name in head.reads:
                    first.setdefault(name, place)
        n_strata = len(self._strata)
        for head in [head for stratum in reversed(others) for head in stratum.heads]:
            place = first.get(head.name, n_strata)
            first |= {name: min(place, first.get(name, place)) for name in head.reads}
        strata: list[Stratum] = []
        for place in range(n_strata + 1):
            parts = ([one for one in its.heads if first.get(one.name, n_strata) == place] for its in others)
            strata += [Stratum(heads) for heads in parts if heads]
            strata += self._strata[place : place + 1]
        return Strata(strata, self.grown.values())

    def with_heads(self, others: Mapping[str, MaintainedHead]) -> Strata:
        """These with some heads in the place of those of their names."""
        strata = (
            Stratum([others.get(head.name, head) for head in stratum.heads]) for stratum in self._strata
        )
        return Strata(strata, self.grown.values())

    def without(self, names: Collection[str]) -> Strata:
        """These less some heads and relations that grow, which no other reads."""
        left = ([head for head in stratum.heads if head.name not in names] for stratum in self._strata)
        grown = (one for one in self.grown.values() if one.name not in names)
        return Strata((Stratum(heads) for heads in left if heads), grown)


def _ordered(strata: Sequence[Stratum], grown: Iterable[Grown]) -> list[Stratum | Grown]:
    """What grows, right behind the last stratum that it reads, itself or by others that grow."""
    places = {head.name: place for place, stratum in enumerate(strata, 1) for head in stratum.heads}
    behind: dict[int, list[Grown]] = {}
    for one in grown:
        place = places[one.name] = max((places.get(name, 0) for name in one.reads), default=0)
        behind.setdefault(place, []).append(one)
    ordered: list[Stratum | Grown] = [*behind.get(0, ())]
    for place, stratum in enumerate(strata, 1):
        ordered += [stratum, *behind.get(place, ())]
    return ordered


def _refuse_conflicts(names: list[str], change: Round) -> None:
    """Raise FunctionalConflictError where one is no function; else the list is empty then."""
    while names:
        name = names.pop(0)
        changed = change.changes[name]
        refuse_relation_conflict(change.new[name], changed.columns, changed.weights)


def _hidden(head: MaintainedHead) -> str:
    results = " and ".join(map(repr, head.kept_for))
    return (
        f"{head.name!r} is kept for {results} alone, and maybe for some keys only: to read it, name it among"
        " results= of install(), and replace=True"
    )


def heads_by_stratum(program: CheckedProgram) -> list[list[str]]:
    """The heads of a program by stratum; a head stands in the last stratum of its rules."""
    last: dict[str, int] = {}
    for number, rules in enumerate(program.strata):
        for rule in rules:
            for head in rule.heads:
                last.pop(head.relation, None)  # in the order of the last rules
                last[head.relation] = number
    return [[name for name in last if last[name] == number] for number in sorted({*last.values()})]
