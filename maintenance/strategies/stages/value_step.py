"""One step of a component with ``min`` or ``max`` inside (:mod:`maintenance.strategies.stages.stages`).

A fact is the current offer of its group (:mod:`maintenance.strategies.stages.offer_table`).  What is lost is
counted out as in any step.  Then, over the new relations, round by round:

    leave    a fact that is beaten by another offer of its group leaves, and its instances are counted out
    fall     so do facts whose solid support is gone by that, the least rank first
    come     the best offers of groups without a fact come, at ranks at which all their instances are solid;
             their instances are counted in, and may beat facts of other groups

until no group is left whose best offer is not its fact.

Invariants

1. When facts come, each that is there has solid support.  So the values that are offered can be had, and none
   is better than that of the least fixpoint.
2. At the end the facts are the best offers, so that no rule gives a better one.  They are the least fixpoint:
   by solid support none is better than that, and because rules are monotone none is worse.
3. It ends: a fact that was beaten ``MOST_RETURNS`` times does not come back in the same step, and where none
   is beaten any more nothing falls either.

A value may rest on a worse one of its own key, as in ``b[] = min(y) <- b[] = x, s(y), x < 4``: once it has
taken the place of that, it has nothing to stand on but itself.  Then there are no such ranks, and
:class:`RestsOnItselfError` is raised: the component has to be evaluated.  Where going round never makes a
value better (distances without negative cycles, labels, widths) none does.

Cost: the instances of facts that leave and come; a value that gets better several times is followed each
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from maintenance.strategies.stages.moving_facts import MovingFacts
from maintenance.strategies.stages.offer_table import OfferTable
from maintenance.strategies.stages.stage_body import Instances, StageBody, with_negated
from maintenance.strategies.stages.stage_table import StageTable
from maintenance.strategies.stages.step import PIECE_FACTS, Falling, Step
from maintenance.strategies.strategy import Tuples, Versions

Offers = Mapping[str, OfferTable]

MOST_RETURNS = 8
"""So often a value may be beaten in one step and yet come back: where what beat it fell for its rank."""


class RestsOnItselfError(Exception):
    """A value has no proof from the values that there are.

    ``for_good``: that is so of the values that were there before the step.
    """

    def __init__(self, for_good: bool) -> None:
        super().__init__("a value rests on a worse one of its own key")
        self.for_good = for_good


class _Groups:
    """Groups whose best offer may not be their fact."""

    def __init__(self, tables: Offers) -> None:
        self._tables = tables
        self._parts: dict[str, list[np.ndarray]] = {}
        self.last: StageBody | None = None
        """The body that gave the last of them."""

    def gain(self, body: StageBody, found: Instances) -> None:
        """Count instances in."""
        touched = self._tables[found.head].gain(found.columns, found.highs)
        if len(touched):
            self.add(found.head, touched)
            self.last = body

    def add(self, name: str, groups: np.ndarray) -> None:
        self._parts.setdefault(name, []).append(groups)

    def taken(self) -> dict[str, np.ndarray]:
        """All of them, each once; none is left."""
        parts, self._parts = self._parts, {}
        return {name: np.unique(np.concatenate(groups)) for name, groups in parts.items()}


class _Beaten:
    """How often each offer of a table was beaten in a step."""

    def __init__(self) -> None:
        self._times = np.zeros(0, np.int64)

    def count(self, slots: np.ndarray, n_slots: int) -> None:
        """Offers, each once, are beaten."""
        if n_slots > len(self._times) and len(slots):
            times = np.zeros(2 * n_slots, np.int64)
            times[: len(self._times)] = self._times
            self._times = times
        self._times[slots] += 1

    def check(self, slots: np.ndarray) -> None:
        """Refuse offers that come back too often.  Raises RestsOnItselfError."""
        known = slots[slots < len(self._times)]
        if (self._times[known] > MOST_RETURNS).any():
            raise RestsOnItselfError(for_good=False)


class ValueStep(Step):
    """One step."""

    def run(
        self, tables: Mapping[str, StageTable], top: int
    ) -> tuple[Mapping[str, StageTable], int, dict[str, Tuples]]:
        """As of a :class:`Step`; tables are made by the first one, and no largest rank is kept."""
        change = self._change
        outside = {name: change.old[name] for name in self._request.reads}
        losing, gaining, middle = self._split(outside)
        old = with_negated(outside)
        new = with_negated({name: change.new[name] for name in outside})
        offers = cast(Offers, tables) or self._counted_values(old)
        groups = _Groups(offers)
        if losing:
            for name, slots in self._lose(offers, old, middle, losing).items():
                groups.add(name, offers[name].groups_of(slots))
        if gaining:
            gained = self._round(middle, new, gaining)
            for body in self._bodies:
                for found in self._counting(body.changed(gained, offers, self._stats)):
                    groups.gain(body, found)
        self._settle(groups, offers, new)
        return offers, top, {name: table.change() for name, table in offers.items()}

    def _settle(
        self, groups: _Groups, tables: Offers, outside: Versions, final: Versions | None = None
    ) -> None:
        """Let facts leave and come until each group's best offer is its fact.

        ``final``: nothing comes that is not there, which is the least fixpoint.
        """
        rounds = 0
        beaten = {name: _Beaten() for name in tables}
        while taken := groups.taken():
            falling = Falling(tables)
            for name, own in taken.items():
                current, best = tables[name].current(own), tables[name].best(own)
                leaving = current[(current >= 0) & (current != best)]
                beaten[name].count(leaving, tables[name].n_slots)
                self._leave(name, leaving, falling, tables, outside)
            for name, slots in self._drop(falling, tables, outside).items():
                dead = tables[name].groups_of(slots)
                taken[name] = np.union1d(taken[name], dead) if name in taken else np.unique(dead)
            coming = {}
            for name, own in taken.items():
                slots = tables[name].best(own[tables[name].current(own) < 0])
                slots = slots[slots >= 0]
                if final is not None and len(slots):
                    slots = slots[final[name].weights(list(tables[name].rows_of(slots))) > 0]
                if len(slots):
                    beaten[name].check(slots)
                    tables[name].enter(slots)
                    coming[name] = tables[name].facts_of(slots)
            if coming:
                rounds += 1
                self._check(coming, rounds, groups.last)
            for name, (columns, ranks) in coming.items():
                for start in range(0, len(ranks), PIECE_FACTS):
                    piece = slice(start, start + PIECE_FACTS)
                    facts = np.ascontiguousarray(columns[:, piece])
                    for body, found in self._follow(name, facts, ranks[piece], 1, outside, tables):
                        groups.gain(body, found)

    def _counted_values(self, old: Versions) -> Offers:
        """Tables of all offers as they were before the step."""
        request, facts, budget = self._request, self._facts, self._budget
        final = {name: self._change.old[name] for name in request.names}
        tables = {}
        nothing = {}
        for name, version in final.items():
            schema = version.schema
            tables[name] = OfferTable(schema, request.extremum_of(name), journaled=False)
            none = [np.empty(0, np.int64) for _ in schema.columns]
            nothing[name] = MovingFacts(RelationVersion(Relation.from_codes(name, schema, none)))
        try:
            self._budget, self._facts = None, nothing
            groups = _Groups(tables)
            for body in self._bodies:
                if not body.follows:
                    for found in body.every(old, tables):
                        groups.gain(body, found)
            self._settle(groups, tables, old, final)
            if any(tables[name].n_facts < version.n_rows for name, version in final.items()):
                raise RestsOnItselfError(for_good=True)
        finally:
            self._facts, self._budget = facts, budget
            self._stats.instances = 0
        for table in tables.values():
            table.begin()
        return tables
