"""One body of a rule: the signed rows that a change of its relations makes.

The searches that the strategy plans give rows of the variables that the head needs; late comparisons
and computed variables are done on them (:mod:`lftj.evaluation.finishing`).
Negated atoms over computed variables take a second stage (:mod:`maintenance.heads.computed_negation`).
The body's tests let all rows pass or none: where they open or close, all rows come or go.

Invariants

1. The rows of ``build`` and of all steps that were kept add up to the rows over the newest versions, each
   with weight 1, or where they are added up, with the number of assignments that it stands for; of the
   variables in ``distinct_by`` no two are alike.
2. A step stages, as all that is :class:`~maintenance.staged.Staged`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from lftj.errors import EvaluationError, RangeError
from lftj.evaluation.finishing import Finishing
from lftj.language.diagnostics import with_rule
from lftj.language.syntax import Variable
from lftj.planning.lowered import Lowered
from lftj.planning.lowering import WILDCARD_NAME, Fetches, lower
from lftj.planning.planner import GREEDILY, is_long
from lftj.search.problem import JoinAtom
from lftj.storage.relation_version import levels_of
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.support import SupportVersion
from maintenance.staged import Staged, StagedValue
from maintenance.stats import RuleStats
from maintenance.strategies.delta.timed_body import TimedBody
from maintenance.strategies.strategy import (
    Assignments,
    BodyRequest,
    BodySearch,
    BodyStrategy,
    Building,
    Read,
    Round,
    Versions,
)
from maintenance.strategies.timed_round import TimedRound

Rows = tuple[Mapping[str, np.ndarray], np.ndarray]
"""Code columns by variable, and the sign of each row."""

TimedRows = tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]
"""The same with the time of each row before its sign."""


class RuleBody(Staged):
    """A body and how it is kept."""

    has_one_stage = True
    """Whether its searches and tests are all that there is to a step."""
    may_fetch = True
    """Whether variables may be read off rows when these were found."""
    not_nearest: str | None = None
    """Why an extremum is not found by searches for the nearest, where something is compared with it."""

    def __init__(self, strategy: BodyStrategy, request: BodyRequest) -> None:
        """Plan over the relations as they are.

        Raises OrderError, NanError and FunctionalConflictError.
        """
        self.rule = request.rule
        self.body = request.body
        self._request = replace(request, relations={})  # which holds no data
        self._timed: tuple[TimedBody, Finishing] | None = None
        fetches = self.may_fetch and strategy.fetches and _takes_rows(request)
        self._fetches = Fetches.ALL if fetches else Fetches.NOTHING
        self.lowered = _lowered(request, self._fetches)
        self.lowered.check(request.relations)
        if request.order is not None:  # the caller does not know the names of wildcards
            missing = [name for name in request.body.atom_variables() if name not in request.order]
            order = [*request.order, *filter(WILDCARD_NAME.fullmatch, missing)]
            request = replace(request, order=order)
        way = strategy.plan(request, self.lowered)
        self.notes = way.notes
        self.searches = way.rows
        self.tests = way.tests
        self._own_searches: tuple[BodySearch, ...] = (*way.rows, *way.tests)
        self._unbound = [(_emptiness(atom), negated) for atom, negated in way.unbound]
        self._emitted = self.lowered.problem.emitted
        self._always_passes = bool(self.searches) and not (self.tests or self._unbound or self.lowered.empty)
        self._finishing = Finishing(self.lowered)
        self._places = [[search.variables.index(name) for name in self._emitted] for search in self.searches]
        self._held = StagedValue(SupportVersion(len(self._emitted), least=len(self.searches)))
        several = (self._held,) if len(self.searches) > 1 else ()
        self._parts: tuple[Staged, ...] = (*(each for each in self._own_searches if each.stages), *several)
        self._tidied = [each for each in self._own_searches if type(each).tidy is not BodySearch.tidy]
        free = self._emitted
        if len(self.searches) == 1:
            (search,) = self.searches
            free = search.variables if search.is_distinct else self.lowered.problem.variables
        self.distinct_by = (frozenset(free) - self.lowered.problem.pinned) | request.body.generated

    def told_apart_by(self, names: Iterable[str]) -> bool:
        """Whether no two rows agree in some variables, as they are or by keys."""
        return self.distinct_by <= self.lowered.problem.closure(names)

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        """Columns of relations that must hold no NaN."""
        return self.lowered.nan_free

    @property
    def all_searches(self) -> tuple[BodySearch, ...]:
        """Those of tests too."""
        return self._own_searches

    @property
    def reads(self) -> Iterator[Read]:
        """The indices that its steps read."""
        for search in self._own_searches:
            yield from search.reads
        yield from (read for read, _ in self._unbound)
        if self._timed is not None:
            yield from self._timed[0].reads

    @property
    def parts(self) -> tuple[Staged, ...]:
        return self._parts

    @property
    def keeps_something(self) -> bool:
        """Whether a step stages anything."""
        several = len(self.searches) > 1 or len(self.parts) > 1
        return several or any(search.keeps_something for search in self._own_searches)

    def build(self, building: Building) -> Rows:
        """All rows; staged, like a step."""
        parts = [search.build(building) for search in self.searches]
        for test in self.tests:
            test.build(building)
        columns, signs = self._combined(parts)
        if not self._passes(building.versions, lambda test: test.will_hold):
            columns, signs = [column[:0] for column in columns], signs[:0]
        return self._finished(columns, signs)

    def pieces(self, building: Building) -> Iterator[Rows]:
        """Rows that add up to those of :meth:`build`, in pieces; staged when the last piece was taken."""
        if len(self.searches) != 1:
            yield self.build(building)
            return
        for test in self.tests:
            test.build(building)
        passes = self._passes(building.versions, lambda test: test.will_hold)
        for piece in self.searches[0].pieces(building):
            if passes:
                yield self._finished(*self._combined([piece]))

    def step(self, change: Round, stats: RuleStats) -> Rows:
        """The rows that came (+1) and went (-1)."""
        if self in change.stepped:
            return change.stepped[self]
        columns, signs = self._combined([search.step(change, stats) for search in self.searches])
        for test in self.tests:
            test.step(change, stats)
        if self._always_passes:
            return self._finished(columns, signs)
        passed = self._passes(change.old, lambda test: test.holds)
        passes = self._passes(change.new, lambda test: test.will_hold)
        if passed != passes:
            columns, weights = self._all_rows(change, after=passes)
            signs = weights if passes else -weights
        elif not passes:
            columns, signs = [column[:0] for column in columns], signs[:0]
        elif not self.searches:
            signs = signs[:0]
        return self._finished(columns, signs)

    @property
    def timed_refusal(self) -> str | None:
        """Why :meth:`timed_step` can't be had, if so."""
        if not self.has_one_stage or self.lowered.problem.negations or self._unbound:
            return "a negated atom, or one without variables"
        if self.tests or len(self.searches) != 1 or self.lowered.empty:
            return "the body is searched in parts"
        if not self.searches[0].lists_assignments:
            return "a witness is kept per row"
        return None

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedRows:
        """The rows that come and go through a batch, with their times.

        Where the search keeps nothing, its step through the whole batch is known then.
        Raises OverBudget soon after it takes more operations than steps one by one may take.
        """
        if self._timed is None:
            request = replace(self._request, relations=change.total.old, added_up=False)
            lowered = _lowered(request, self._fetches) if self._request.added_up else self.lowered
            self._timed = TimedBody(lowered, change.total.old), Finishing(lowered)
        body, finishing = self._timed
        budget = self.searches[0].budget
        columns, times, signs = body.rows(change, stats, None if budget is None else budget * change.n_times)
        lowered = body.lowered
        rows: Mapping[str, np.ndarray] = {
            name: columns[body.variables.index(name)] for name in lowered.problem.emitted
        }
        if not len(signs):
            rows = {name: np.empty(0, np.int64) for name in lowered.types}
        elif not lowered.finishes_in_search:
            try:
                rows, times, signs = _finished_at_times(finishing, rows, times, signs)
            except (RangeError, EvaluationError) as error:
                raise with_rule(error, self.rule.text) from error.__cause__
        if not self.searches[0].keeps_something:
            change.total.stepped[self] = rows, signs
        return rows, times, signs

    def tidy(self, versions: Versions) -> int:
        """Build worn records anew, over versions that are published; returns for how many searches."""
        return sum([search.tidy(versions) for search in self._tidied])

    def describe(self) -> list[str]:
        """For ``explain``: what was decided, and each search."""
        lines = [f"existence   {note}" for note in self.notes]
        if self.not_nearest is not None:
            lines.append(f"nearest     no search for it: {self.not_nearest}")
        if is_long(self.lowered.problem):
            lines.append(f"key orders  {GREEDILY}")
        for title, searches in (("key order ", self.searches), ("test order", self.tests)):
            for search in searches:
                lines += described(title, search)
        lines += [f"on the rows {text}" for text in self.lowered.on_rows]
        return lines

    def _check_own(self) -> None:
        assert self._held.staged is None

    def _combined(self, parts: list[Assignments]) -> Assignments:
        """Signed rows of the emitted variables from those of the searches; a row must be in all of them."""
        if not parts:  # no variable at all: one row, if the tests pass
            return [], np.ones(1, dtype=np.int64)
        placed = [
            ([columns[place] for place in places], signs)
            for places, (columns, signs) in zip(self._places, parts, strict=True)
        ]
        if len(placed) == 1:
            return placed[0]
        self._held.staged, columns, signs = self._held.kept.step(*gathered(placed))
        return columns, signs

    def _all_rows(self, change: Round, after: bool) -> Assignments:
        """All rows of the emitted variables before the step or after it, if the tests pass."""
        if not self.searches:
            return [], np.ones(1, dtype=np.int64)
        if len(self.searches) > 1:
            held = (self._held.newest if after else self._held.kept).visible()
            return held, np.ones(len(held[0]), dtype=np.int64)
        (search,) = self.searches
        columns, weights = search.rows(change, after)
        return [columns[place] for place in self._places[0]], weights

    def _passes(self, versions: Versions, holds: Callable[..., bool]) -> bool:
        if self.lowered.empty:
            return False
        return all(map(holds, self.tests)) and all(
            (versions[name].index_at(key).n_tuples > 0) != negated for (name, key), negated in self._unbound
        )

    def _finished(self, columns: Columns, signs: np.ndarray) -> Rows:
        lowered = self.lowered
        rows: Mapping[str, np.ndarray] = dict(zip(self._emitted, columns, strict=True))
        if not len(signs):
            return {name: np.empty(0, np.int64) for name in lowered.types}, signs
        if not lowered.finishes_in_search:
            try:
                rows, signs = _finished_or_net(self._finishing, rows, signs)
            except (RangeError, EvaluationError) as error:
                raise with_rule(error, self.rule.text) from error.__cause__
        return rows, signs


def _finished_or_net(
    finishing: Finishing, rows: Mapping[str, np.ndarray], signs: np.ndarray
) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
    """Finished rows; where one fails, those that come and go within the step are left out: none is there.

    Raises RangeError and EvaluationError.
    """
    try:
        return finishing.finish(rows, signs, {})
    except (RangeError, EvaluationError):
        columns, net = net_rows(list(rows.values()), signs)
        if len(net) == len(signs):
            raise
        return finishing.finish(dict(zip(rows, columns, strict=True)), net, {})


def _finished_at_times(
    finishing: Finishing, rows: Mapping[str, np.ndarray], times: np.ndarray, signs: np.ndarray
) -> TimedRows:
    """The same of rows that come and go at some times."""
    try:
        rows, numbers = finishing.finish(rows, np.arange(len(signs)), {})
    except (RangeError, EvaluationError):
        (*columns, times), net = net_rows([*rows.values(), times], signs)
        if len(net) == len(signs):
            raise
        rows, numbers = finishing.finish(dict(zip(rows, columns, strict=True)), np.arange(len(net)), {})
        signs = net
    return rows, times[numbers], signs[numbers]


def _lowered(request: BodyRequest, fetches: Fetches) -> Lowered:
    """The body, with what is only counted where the rows are added up and something is joined."""
    schemas = {name: table.schema for name, table in request.relations.items()}

    def lowered(counted: bool) -> Lowered:
        return lower(
            request.body,
            schemas,
            request.wanted,
            counted=counted,
            grouped=request.grouped,
            lasting=True,
            every=request.every and not counted,
            fetches=fetches,
        )

    if request.added_up:
        found = lowered(counted=True)
        atoms = found.problem.atoms
        walked = all(atom.variables for atom in (*atoms, *found.problem.negations))
        if walked and len(atoms) > 1:
            return found
    return lowered(counted=False)


def _takes_rows(request: BodyRequest) -> bool:
    """Whether the rows of wide relations are told apart, whatever is read of them.

    Those of a set are where it does not have all that is read of one: how often a tuple is found is counted.
    """
    if request.every or request.added_up:
        return True
    wide = [atom for atom in request.body.atoms if request.relations[atom.relation].schema.wide]
    if all(isinstance(atom.terms[0], Variable) and atom.terms[0].name in request.wanted for atom in wide):
        return True
    terms = Counter(
        term.name for atom in request.body.atoms for term in atom.terms if isinstance(term, Variable)
    )
    return any(
        isinstance(term, Variable) and term.name not in request.wanted and terms[term.name] == 1
        for atom in wide
        for term in atom.terms[1:]
    )


def described(title: str, search: BodySearch) -> list[str]:
    """A search in lines, the title before its order."""
    order, *others = search.describe()
    return [f"{title}  {order}", *others]


def _emptiness(atom: JoinAtom):  # type: ignore[no-untyped-def]
    """The index that is empty when no tuple satisfies an atom without variables: relation and key."""
    return atom.relation, (levels_of((), atom.equal, atom.identity), atom.equal)
