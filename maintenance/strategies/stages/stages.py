"""`stages`: a recursive component, kept by forward delta rules over ranked facts.

Design: docs/design/strategies.md sections 2.3 and 2.4.

Of every fact is known its rank, how many instances derive it, and how many of these are *solid*: of facts of
lower ranks (:mod:`maintenance.strategies.stages.stage_table`).  A step first takes away, then gives
(:mod:`maintenance.strategies.stages.step`):

    lose    erasures of what positive atoms read, insertions of what negated ones read: their instances are
            counted out.  A fact without solid support leaves, the least rank first, and so do its instances.
    gain    the instances of all other changes are counted in.
    settle  what is new, or left and still has instances, which are of facts that stayed, comes, and its
            instances are counted in, round by round.  A new fact's rank is one more than the largest of those
            it first came from; one that left comes back above all ranks.

Invariants

1. I1 counters are exact; I2 every fact that is there has solid support; I3 no fact that is not there has an
   instance.  So the facts are the least fixpoint: by I2 each has a proof, by induction on ranks; by I3 they
   are closed under the rules.
2. Each instance is found once as it comes, and once as it goes: one change at a time goes first in the delta
   rules, the atoms before it read what is after the change, those behind it what was before.
3. Where no erasure came yet, there are no tables: what is inserted is only followed.  The first step that has
   something to lose counts all instances once.  With ``min`` or ``max`` inside the first step does.
4. A step changes the tables in place, and their journals undo it.

Cost: O(1) kernel calls per change of a relation, rank that loses facts, and round; operations below the
changes; a table's look-up per instance and recursive atom.  Of a budgeted component at most so many instances
are counted as evaluating anew took the last time: beyond that it is evaluated anew, and its tables go.

Facts change piece by piece within a rank or a round: any order is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lftj.storage.catalog import Table
from maintenance.stats import RuleStats
from maintenance.strategies.component import ComponentRequest, ComponentStrategy, KeptComponent
from maintenance.strategies.delta.term import reads_of
from maintenance.strategies.recompute import all_tuples, changed, evaluated_anew
from maintenance.strategies.stages.counters import SOLID, TOTAL
from maintenance.strategies.stages.stage_body import NEGATED, StageBody, Tables, refusal, with_negated
from maintenance.strategies.stages.stage_table import StageTable
from maintenance.strategies.stages.step import OverInstances, Step
from maintenance.strategies.stages.waiting import RestsOnItselfError
from maintenance.strategies.strategy import Building, Read, Round, Tuples, Versions

LEAST_BUDGET = 20_000
"""So many instances a step of a budgeted component may always count."""


@dataclass(frozen=True)
class _State:
    """What is kept between steps.

    ``tables``: none before anything was lost.  ``top``: the largest rank ever given.  ``instances``: what
    evaluating anew found the last time.  ``rests_on_itself``: there are no ranks (RestsOnItselfError).
    """

    tables: Tables
    top: int
    instances: int
    rests_on_itself: bool = False


class StagedComponent(KeptComponent):
    """One component."""

    def __init__(self, request: ComponentRequest, budgeted: bool) -> None:
        self._request = request
        self._budgeted = budgeted
        rules = [
            (rule, head, body)
            for name in request.names
            for rule, head in request.program.rules_of(name)
            for body in rule.bodies
        ]
        self._rules = rules
        self._refusal = next(filter(None, (refusal(*rule, request.names) for rule in rules)), None)
        self._has_values = any(request.extremum_of(name) for name in request.names)
        self._bodies: list[StageBody] = []
        self._kept = _State({}, 0, 0)
        self._staged: _State | None = None

    @property
    def nbytes(self) -> int:
        """Memory of ranks and counters, room for growth included."""
        return sum(table.nbytes for table in self._kept.tables.values())

    # -- building -------------------------------------------------------------------

    def build(self, building: Building) -> Mapping[str, Tuples]:
        found, instances = evaluated_anew(self._request, building, RuleStats())
        self._staged = _State({}, 0, instances)
        if self._refusal is None and not self._bodies:
            versions = building.versions
            catalog: dict[str, Table] = {**{name: versions[name] for name in self._request.reads}, **found}
            self._bodies = [StageBody(*rule, self._request.names, catalog) for rule in self._rules]
            self._prepare(versions)
        return all_tuples(found)

    @property
    def reads(self) -> Iterator[Read]:
        for body in self._bodies:
            for relation, key in reads_of(body.plans):
                yield relation.removeprefix(NEGATED), key

    def _prepare(self, versions: Versions) -> None:
        """Build the indices of relations outside that the terms read, so that commits step them."""
        for name, key in self.reads:
            if name in self._request.reads:
                versions[name].index_at(key)

    # -- steps ----------------------------------------------------------------------

    def step(self, change: Round, stats: RuleStats) -> Mapping[str, Tuples]:
        kept = self._kept
        rests_on_itself = kept.rests_on_itself
        if self._refusal is None and not rests_on_itself:
            budget = max(LEAST_BUDGET, kept.instances) if self._budgeted else None
            step = Step(self._request, self._bodies, change, stats, budget)
            try:
                tables, top, found = step.run(kept.tables, kept.top)
            except (OverInstances, RestsOnItselfError) as error:
                self._undo()
                stats.recomputed += 1
                rests_on_itself = isinstance(error, RestsOnItselfError) and error.for_good
            else:
                self._staged = _State(tables, top, kept.instances)
                return found
        relations, instances = evaluated_anew(self._request, Building(change.new), stats)
        self._staged = _State({}, 0, instances, rests_on_itself)
        return {name: changed(one.codes, change.old[name].columns()) for name, one in relations.items()}

    def _undo(self) -> None:
        for table in self._kept.tables.values():
            table.drop()

    def _keep_own(self) -> None:
        if self._staged is not None:
            for table in self._staged.tables.values():
                table.keep()
                table.tidy()
            self._kept, self._staged = self._staged, None
        super()._keep_own()

    def _drop_own(self) -> None:
        self._undo()
        self._staged = None
        super()._drop_own()

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        every = {place for body in self._bodies for place in body.lowered.nan_free}
        return frozenset(place for place in every if place[0] in self._request.reads)

    def _check_own(self) -> None:
        assert self._staged is None
        for table in self._kept.tables.values():
            table.check_invariants()

    def check_counters(self, versions: Versions) -> None:
        """Raise AssertionError where a counter is not what counting all instances over the versions gives."""
        tables = self._kept.tables
        if not tables:
            return
        fresh, solid = (
            {name: StageTable(len(table.facts()[0])) for name, table in tables.items()} for _ in range(2)
        )
        sides = with_negated(versions)
        for body in self._bodies:
            for found in body.every(sides, tables):
                ranks = tables[found.head].ranks(found.columns)
                assert self._has_values or (ranks > 0).all(), "a fact that has an instance is there"
                fresh[found.head].gain(found.columns, found.highs)
                kept = found.highs < ranks
                solid[found.head].gain(found.columns[:, kept], found.highs[kept])
        for name, table in tables.items():
            facts, counters = table.facts()
            every, totals = table.offers()
            for counted, held, numbers in (
                (fresh, every, totals[:, TOTAL]),
                (solid, facts, counters[:, SOLID]),
            ):
                others, other_counters = counted[name].offers()
                assert all(np.array_equal(a, b) for a, b in zip(held, others, strict=True))
                assert np.array_equal(numbers, other_counters[:, TOTAL])
            shown = versions[name].relation().codes
            assert all(np.array_equal(a, b) for a, b in zip(facts, shown, strict=True))

    def describe(self) -> list[str]:
        names = ", ".join(self._request.names)
        refusal = self._refusal
        if self._kept.rests_on_itself:
            refusal = "a value rests on a worse one of its own key"
        if refusal is not None:
            return [f"recursion of {names}: evaluated again by each commit: {refusal}"]
        tuples, first = "tuple", "erasure"
        if self._has_values:
            tuples, first = "value that is offered for a key", "commit"
        counted = f"a rank and two counters per {tuples}"
        how = counted if self._kept.tables or self._has_values else "insertions are followed"
        lines = [f"recursion of {names}: stages, {how}"]
        if not self._kept.tables:
            lines.append(f"  the first {first} counts all assignments once")
        if self._budgeted:
            budget = max(LEAST_BUDGET, self._kept.instances)
            lines.append(f"  evaluated again where a commit would count more than {budget:,} assignments")
        return [*lines, *(f"  {line}" for body in self._bodies for line in body.describe())]


class StageStrategy(ComponentStrategy):
    """``stages``; ``budgeted``: where it would cost more than evaluating anew, that is done."""

    def __init__(self, budgeted: bool = False) -> None:
        self._budgeted = budgeted

    def plan(self, request: ComponentRequest) -> KeptComponent:
        return StagedComponent(request, self._budgeted)
