"""One step of a recursive component: lose, gain, settle (:mod:`maintenance.strategies.stages.stages`).

Relations outside of the component go from old to *middle* to new.  Middle is what is left after the losses:
of what positive atoms read the erasures are done, of what negated ones read the insertions.  What is lost is
counted out, what is gained is counted in.  Then, over the new relations, round by round:

    leave    a fact that is beaten by another offer of its group leaves, and its instances are counted out
    fall     so do facts whose solid support is gone by that, the least rank first
    come     the best offers of groups without a fact come, at ranks at which all their instances are solid;
             their instances are counted in, and may beat facts of other groups

until no group is left whose best offer is not its fact.  Without ``min`` and ``max`` nothing is beaten, so
rounds are of what is new, or was lost and has instances yet.

Invariants

1. While facts change, the relations outside don't, and the other way round.
2. A fact falls when all instances that need it are counted out; those of facts of one rank are taken out in
   any order, for none is solid for another of them.
3. When facts come, each that is there has solid support.  So the values that are offered can be had, and none
   is better than that of the least fixpoint.
4. At the end the facts are the best offers, so that no rule gives a better one.  They are the least fixpoint:
   by solid support none is better than that, and because rules are monotone none is worse.
5. It ends: a fact that was beaten ``MOST_RETURNS`` times does not come back in the same step, and where none
   is beaten any more nothing falls either.

A value may rest on a worse one of its own key, as in ``b[] = min(y) <- b[] = x, s(y), x < 4``: once it has
taken the place of that, it has nothing to stand on but itself.  Then there are no such ranks, and
:class:`RestsOnItselfError` is raised: the component has to be evaluated.  Where going round never makes a
value better (distances without negative cycles, labels, widths) none does.

Cost: the instances of facts that leave and come; a value that gets better several times is followed each
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from lftj.evaluation.fixpoint import no_end
from lftj.storage.catalog import Side
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.sorting import sort_distinct
from lftj.values.domain import NAN_CODE
from maintenance.changes.change import Change
from maintenance.stats import RuleStats
from maintenance.strategies.component import ComponentRequest
from maintenance.strategies.stages.moving_facts import MovingFacts
from maintenance.strategies.stages.seen_facts import SeenFacts
from maintenance.strategies.stages.stage_body import Instances, StageBody, Tables, with_negated
from maintenance.strategies.stages.stage_table import Best, StageTable
from maintenance.strategies.stages.waiting import Beaten, Falling, RestsOnItselfError, Unsettled
from maintenance.strategies.strategy import Round, Tuples, Versions

PIECE_FACTS = 1 << 12
"""Facts that are followed at a time."""

Facts = tuple[np.ndarray, np.ndarray]
"""Sorted facts, int64 (columns, n), and their ranks."""


class OverInstances(Exception):
    """A step counts more instances than it may."""


class Step:
    """One step."""

    def __init__(
        self,
        request: ComponentRequest,
        bodies: Sequence[StageBody],
        change: Round,
        stats: RuleStats,
        budget: int | None,
    ) -> None:
        """``budget``: of instances, beyond which OverInstances is raised."""
        self._request = request
        self._bodies = bodies
        self._change = change
        self._stats = stats
        self._budget = budget
        self._facts = {name: MovingFacts(change.old[name]) for name in request.names}
        self._top = 0
        every = {place for body in bodies for place in body.lowered.nan_free}
        values = {
            (name, len(change.old[name].schema.columns) - 1)
            for name in request.names
            if request.extremum_of(name)
        }
        self._has_values = bool(values)
        self._nan_free = [place for place in every if place[0] in request.names] + sorted(values)

    def run(self, tables: Tables, top: int) -> tuple[Tables, int, dict[str, Tuples]]:
        """The tables, the largest rank, and what changed of each head.

        The tables are changed in place, and made where there are none and something is lost; with ``min`` or
        ``max`` inside always.
        """
        self._top = top
        change = self._change
        outside = {name: change.old[name] for name in self._request.reads}
        losing, gaining, middle = self._split(outside)
        old = with_negated(outside)
        new = with_negated({name: change.new[name] for name in outside})
        kept = tables or (self._counted_first(old) if losing or self._has_values else {})
        seen = {} if kept else {name: SeenFacts(change.old[name]) for name in self._request.names}
        unsettled = Unsettled(kept or seen)
        if losing:
            for name, slots in self._lose(kept, old, middle, losing).items():
                unsettled.add(name, kept[name].left(slots))
        if gaining:
            gained = self._round(middle, new, gaining)
            for body in self._bodies:
                for found in self._counting(body.changed(gained, kept, self._stats)):
                    unsettled.gain(body, found)
        self._settle(unsettled, kept or seen, kept, new)
        return kept, self._top if kept else 0, {name: one.change() for name, one in (kept or seen).items()}

    def _split(
        self, outside: Versions
    ) -> tuple[dict[str, Change], dict[str, Change], dict[str, RelationVersion]]:
        """What is lost and what is gained, by the names that atoms read it by, and the versions between."""
        read = {plan.atom.relation for body in self._bodies for plan in body.plans}
        losing: dict[str, Change] = {}
        gaining: dict[str, Change] = {}
        middle = with_negated(outside)
        for name in outside:
            change = self._change.changes.get(name)
            if change is None:
                continue
            for reading, lost in with_negated({name: change.weights < 0}).items():
                lost = lost if reading == name else ~lost
                if reading not in read:
                    continue
                if lost.any():
                    losing[reading] = _part(change, lost)
                    whole = bool(lost.all())
                    middle[reading] = (
                        self._change.new[name]
                        if whole
                        else outside[name].advance(losing[reading].columns, losing[reading].weights)
                    )
                if not lost.all():
                    gaining[reading] = _part(change, ~lost)
        return losing, gaining, middle

    def _round(
        self, old: Versions, new: Versions, changes: dict[str, Change], moved: str | None = None
    ) -> Round:
        """What terms read: relations outside on both sides, and facts, of which ``moved`` have changed."""
        after = {name: facts.on(Side.NEW) for name, facts in self._facts.items()}
        before = dict(after)
        if moved is not None:
            before[moved] = self._facts[moved].on(Side.OLD)
        return Round({**old, **cast("Versions", before)}, {**new, **cast("Versions", after)}, changes)

    def _counting(self, found: Iterator[Instances]) -> Iterator[Instances]:
        for instances in found:
            self._stats.instances += len(instances.highs)
            if self._budget is not None and self._stats.instances > self._budget:
                raise OverInstances
            yield instances

    def _follow(
        self,
        name: str,
        columns: np.ndarray,
        ranks: np.ndarray,
        sign: int,
        outside: Versions,
        tables: Tables,
    ) -> Iterator[tuple[StageBody, Instances]]:
        """Let facts come or go; the instances that come or go with them."""
        self._facts[name].change(columns, sign)
        change = self._round(outside, outside, {name: Change(columns, ranks)}, name)
        for body in self._bodies:
            if name in body.follows:
                for instances in self._counting(body.followed(change, tables, self._stats)):
                    yield body, instances

    # -- losing ---------------------------------------------------------------------

    def _lose(
        self,
        tables: Tables,
        old: Versions,
        middle: Versions,
        losing: dict[str, Change],
    ) -> dict[str, np.ndarray]:
        """Count out what is lost; returns the slots of the facts that left."""
        falling = Falling(tables)
        change = self._round(old, middle, losing)
        for body in self._bodies:
            for found in self._counting(body.changed(change, tables, self._stats)):
                falling.lose(found)
        return self._drop(falling, tables, middle)

    def _drop(self, falling: Falling, tables: Tables, outside: Versions) -> dict[str, np.ndarray]:
        """Let facts without solid support leave, and what needs them; returns their slots."""
        dead: dict[str, list[np.ndarray]] = {}
        while wave := falling.next_wave():
            for name, slots in wave.items():
                dead.setdefault(name, []).append(slots)
                self._leave(name, slots, falling, tables, outside)
        return {name: np.concatenate(parts) for name, parts in dead.items()}

    def _leave(
        self,
        name: str,
        slots: np.ndarray,
        falling: Falling,
        tables: Tables,
        outside: Versions,
    ) -> None:
        """Take facts out, and count out their instances."""
        table = tables[name]
        for start in range(0, len(slots), PIECE_FACTS):
            piece = slots[start : start + PIECE_FACTS]
            columns, ranks = table.facts_of(piece)
            for _, found in self._follow(name, columns, ranks, -1, outside, tables):
                falling.lose(found)
            table.take_out(piece, self._top)

    # -- settling -------------------------------------------------------------------

    def _settle(
        self,
        unsettled: Unsettled,
        tables: Tables | Mapping[str, SeenFacts],
        ranked: Tables,
        outside: Versions,
        final: Versions | None = None,
    ) -> None:
        """Let facts leave and come until each group's best offer is its fact.

        ``ranked``: the tables; none, where ranks are of no account.  ``final``: no value comes that is not
        there, in the least fixpoint.
        """
        rounds = 0
        beaten = {name: Beaten() for name in ranked} if self._has_values else {}
        while taken := unsettled.taken():
            if self._has_values:
                taken = self._best_offers(taken, beaten, ranked, outside, final)
            coming = {}
            for name, slots in taken.items():
                if ranked:
                    ranked[name].enter(slots)
                coming[name] = tables[name].facts_of(slots)
            if coming:
                rounds += 1
                self._check(coming, rounds, unsettled.last)
            for name, (columns, ranks) in coming.items():
                self._top = max(self._top, int(ranks.max()))
                for start in range(0, len(ranks), PIECE_FACTS):
                    piece = slice(start, start + PIECE_FACTS)
                    facts = np.ascontiguousarray(columns[:, piece])
                    for body, found in self._follow(name, facts, ranks[piece], 1, outside, ranked):
                        unsettled.gain(body, found)

    def _best_offers(
        self,
        taken: dict[str, np.ndarray],
        beaten: dict[str, Beaten],
        tables: Tables,
        outside: Versions,
        final: Versions | None,
    ) -> dict[str, np.ndarray]:
        """Let facts leave that are beaten in some groups, and those that rest on them.

        Returns the slots of the best offers of groups that have no fact then.
        """
        falling = Falling(tables)
        for name, groups in taken.items():
            taken[name] = np.unique(groups)
            leaving = tables[name].beaten(taken[name])
            beaten[name].count(leaving, tables[name].n_slots)
            self._leave(name, leaving, falling, tables, outside)
        for name, slots in self._drop(falling, tables, outside).items():
            taken[name] = np.union1d(taken.get(name, slots[:0]), tables[name].left(slots))
        coming = {}
        for name, groups in taken.items():
            slots = tables[name].coming(groups)
            if final is not None and len(slots):
                slots = slots[final[name].weights(list(tables[name].rows_of(slots))) > 0]
            if len(slots):
                beaten[name].check(slots)
                coming[name] = slots
        return coming

    def _check(self, facts: dict[str, Facts], rounds: int, last: StageBody | None) -> None:
        """Refuse NaN where rules join, and a recursion that goes on for too long."""
        for name, column in self._nan_free:
            schema = self._change.old[name].schema
            if name in facts and schema.columns[column].type.domain.name == "float":
                columns = facts[name][0]
                if (columns[column] == NAN_CODE).any():
                    Relation.from_codes(name, schema, list(columns)).refuse_nan(column)
        if rounds > self._request.max_rounds and last is not None:
            columns, _ = facts.get(last.head) or next(iter(facts.values()))
            name = last.head if last.head in facts else next(iter(facts))
            schema = self._change.old[name].schema
            raise no_end(
                self._request.names, self._request.max_rounds, last.rule, name, schema, columns[:, -1]
            )

    def _counted_first(self, old: Versions) -> dict[str, StageTable]:
        """Tables of all facts as they were before the step: one evaluation, with every instance counted in.

        Which facts will come is known, so where these are no best values, tables are as large as they have to
        be, and in order.
        """
        request, facts, budget = self._request, self._facts, self._budget
        final = {name: self._change.old[name] for name in request.names}
        tables, nothing = {}, {}
        for name, version in final.items():
            columns, extremum = version.schema.columns, request.extremum_of(name)
            best = Best(columns[-1].type.domain, extremum == "max") if extremum else None
            tables[name] = StageTable(len(columns), best, journaled=False)
            if best is None:
                tables[name].expect(sort_distinct(version.columns()))
            none = [np.empty(0, np.int64) for _ in columns]
            nothing[name] = MovingFacts(RelationVersion(Relation.from_codes(name, version.schema, none)))
        try:
            self._budget, self._facts = None, nothing
            unsettled = Unsettled(tables)
            for body in self._bodies:
                if not body.follows:
                    for found in body.every(old, tables):
                        unsettled.gain(body, found)
            self._settle(unsettled, tables, tables, old, final)
            if any(tables[name].n_facts < version.n_rows for name, version in final.items()):
                raise RestsOnItselfError(for_good=True)
        finally:
            self._facts, self._budget = facts, budget
            self._stats.instances = 0
        for table in tables.values():
            table.begin()
        return tables


def _part(change: Change, mask: np.ndarray) -> Change:
    """Some of a change's rows."""
    return Change(np.ascontiguousarray(np.array(change.columns)[:, mask]), change.weights[mask])
