"""One step of a recursive component: lose, return, gain (:mod:`maintenance.strategies.stages.stages`).

Relations outside of the component go from old to *middle* to new.  Middle is what is left after the losses:
of what positive atoms read the erasures are done, of what negated ones read the insertions.

Invariants

1. While facts change, the relations outside don't, and the other way round.
2. In the losing phase a fact leaves when all instances that need it are counted out; those of facts of one
   rank are taken out in any order, for none is solid for another of them.
3. A fact that comes is followed once: in the round after the one that found it, or first where it returned.

Cost: see the component's.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from lftj.evaluation.fixpoint import no_end
from lftj.storage.catalog import Side
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.sorting import sort_distinct
from lftj.storage.tuple_set import TupleSet
from lftj.values.domain import NAN_CODE
from maintenance.changes.change import Change
from maintenance.stats import RuleStats
from maintenance.strategies.component import ComponentRequest
from maintenance.strategies.stages.moving_facts import MovingFacts
from maintenance.strategies.stages.stage_body import Instances, StageBody, with_negated
from maintenance.strategies.stages.stage_table import StageTable
from maintenance.strategies.strategy import Round, Tuples, Versions

PIECE_FACTS = 1 << 12
"""Facts that are followed at a time."""

Facts = tuple[np.ndarray, np.ndarray]
"""Sorted facts, int64 (columns, n), and their ranks."""


class OverInstances(Exception):
    """A step counts more instances than it may."""


# -- what is written down of facts that come ---------------------------------------------------


class Book(ABC):
    """Where instances that came are entered, and what it says is new."""

    @abstractmethod
    def gain(self, found: Instances) -> bool:
        """Enter instances; whether a fact of them is new."""

    @abstractmethod
    def new_facts(self) -> dict[str, Facts]:
        """The facts that are new since the last time, by relation."""


class Counted(Book):
    """In tables, with ranks."""

    def __init__(self, tables: Mapping[str, StageTable]) -> None:
        self.tables = tables
        self._new: dict[str, list[np.ndarray]] = {}

    def gain(self, found: Instances) -> bool:
        slots = self.tables[found.head].gain(found.columns, found.highs)
        if len(slots):
            self._new.setdefault(found.head, []).append(slots)
        return len(slots) > 0

    def returned(self, name: str, slots: np.ndarray) -> None:
        """Facts that left are there again."""
        self._new.setdefault(name, []).append(slots)

    def new_facts(self) -> dict[str, Facts]:
        facts = {}
        for name, parts in self._new.items():
            slots, table = np.concatenate(parts), self.tables[name]
            table.settle(slots)
            facts[name] = table.facts_of(slots)
        self._new = {}
        return facts


class Falling:
    """Facts that lost their solid support, by rank."""

    def __init__(self, tables: Mapping[str, StageTable]) -> None:
        self._tables = tables
        self._waiting: dict[int, dict[str, list[np.ndarray]]] = {}
        self._ranks: list[int] = []

    def lose(self, found: Instances) -> None:
        """Count instances out."""
        slots = self._tables[found.head].lose(found.columns, found.highs)
        if not len(slots):
            return
        own = self._tables[found.head].ranks_of(slots)
        for rank in np.unique(own).tolist():
            if rank not in self._waiting:
                self._waiting[rank] = {}
                heapq.heappush(self._ranks, rank)
            self._waiting[rank].setdefault(found.head, []).append(slots[own == rank])

    def next_wave(self) -> dict[str, np.ndarray]:
        """Slots of the facts of the least rank, less those that have left otherwise; {} at the end."""
        while self._ranks:
            wave = {}
            for name, parts in self._waiting.pop(heapq.heappop(self._ranks)).items():
                slots = np.concatenate(parts)
                there = slots[self._tables[name].ranks_of(slots) > 0]
                if len(there):
                    wave[name] = there
            if wave:
                return wave
        return {}


class Present(Book):
    """By presence alone."""

    def __init__(self, old: Versions, names: Sequence[str]) -> None:
        self._old = {name: old[name] for name in names}
        self.tuples = {name: TupleSet(len(version.schema.columns)) for name, version in self._old.items()}
        self._told = dict.fromkeys(names, 0)

    def gain(self, found: Instances) -> bool:
        columns = sort_distinct(list(found.columns))
        absent = self._old[found.head].weights(columns) == 0
        return self.tuples[found.head].add([column[absent] for column in columns]).shape[1] > 0

    def new_facts(self) -> dict[str, Facts]:
        facts = {}
        for name, tuples in self.tuples.items():
            rows = tuples.since(self._told[name])
            if rows.shape[1]:
                facts[name] = np.array(sort_distinct(list(rows))), np.ones(rows.shape[1], np.int64)
            self._told[name] = tuples.n_rows
        return facts


# -- the step -----------------------------------------------------------------------------------


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
        every = {place for body in bodies for place in body.lowered.nan_free}
        values = {
            (name, len(change.old[name].schema.columns) - 1)
            for name in request.names
            if request.extremum_of(name)
        }
        self._nan_free = [place for place in every if place[0] in request.names] + sorted(values)

    def run(
        self, tables: Mapping[str, StageTable], top: int
    ) -> tuple[Mapping[str, StageTable], int, dict[str, Tuples]]:
        """The tables, the largest rank, and what changed of each head.

        The tables are changed in place, and made where there are none and something is lost.
        """
        change = self._change
        outside = {name: change.old[name] for name in self._request.reads}
        losing, gaining, middle = self._split(outside)
        old = with_negated(outside)
        new = with_negated({name: change.new[name] for name in outside})
        if not tables and losing:
            tables, top = self._counted_first(old)
        if not tables:
            book = Present(change.old, self._request.names)
            self._gain(book, middle, new, gaining)
            found = {name: tuples.sorted_columns() for name, tuples in book.tuples.items()}
            return tables, top, {n: (rows, np.ones(len(rows[0]), np.int64)) for n, rows in found.items()}
        counted = Counted(tables)
        if losing:
            dead = self._lose(tables, old, middle, losing)
            for name, slots in dead.items():
                back = slots[tables[name].totals_of(slots) > 0]
                if len(back):
                    tables[name].put_back(back, top + 1)
                    counted.returned(name, back)
        top = max(top, self._gain(counted, middle, new, gaining))
        return tables, top, {name: table.change() for name, table in tables.items()}

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
        tables: Mapping[str, StageTable],
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
        tables: Mapping[str, StageTable],
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

    def _drop(
        self, falling: Falling, tables: Mapping[str, StageTable], outside: Versions
    ) -> dict[str, np.ndarray]:
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
        tables: Mapping[str, StageTable],
        outside: Versions,
    ) -> None:
        """Take facts out, and count out their instances."""
        table = tables[name]
        for start in range(0, len(slots), PIECE_FACTS):
            piece = slots[start : start + PIECE_FACTS]
            columns, ranks = table.facts_of(piece)
            for _, found in self._follow(name, columns, ranks, -1, outside, tables):
                falling.lose(found)
            table.take_out(piece)

    # -- gaining --------------------------------------------------------------------

    def _gain(self, book: Book, middle: Versions, new: Versions, gaining: dict[str, Change]) -> int:
        """Enter what is gained, and follow it; returns the largest rank that a fact got."""
        tables = book.tables if isinstance(book, Counted) else {}
        last = None
        if gaining:
            change = self._round(middle, new, gaining)
            for body in self._bodies:
                for found in self._counting(body.changed(change, tables, self._stats)):
                    if book.gain(found):
                        last = body
        return self._grow(book, new, last)

    def _grow(self, book: Book, outside: Versions, last: StageBody | None) -> int:
        """Follow new facts, round by round; ``last``: the body that gave the last one."""
        tables = book.tables if isinstance(book, Counted) else {}
        top = rounds = 0
        while facts := book.new_facts():
            rounds += 1
            self._check(facts, rounds, last)
            for name, (columns, ranks) in facts.items():
                top = max(top, int(ranks.max()))
                for start in range(0, len(ranks), PIECE_FACTS):
                    piece = slice(start, start + PIECE_FACTS)
                    own = np.ascontiguousarray(columns[:, piece])
                    for body, found in self._follow(name, own, ranks[piece], 1, outside, tables):
                        if book.gain(found):
                            last = body
        return top

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

    def _counted_first(self, old: Versions) -> tuple[dict[str, StageTable], int]:
        """Tables of all facts as they were before the step: one evaluation, with every instance counted in.

        Which facts will come is known, so the tables are as large as they have to be, and in order.
        """
        request, facts, budget = self._request, self._facts, self._budget
        schemas = {name: self._change.old[name].schema for name in request.names}
        tables = {name: StageTable(len(schema.columns), journaled=False) for name, schema in schemas.items()}
        for name, table in tables.items():
            table.expect(sort_distinct(self._change.old[name].columns()))
        nothing = {
            name: Relation.from_codes(name, schema, [np.empty(0, np.int64) for _ in schema.columns])
            for name, schema in schemas.items()
        }
        try:
            self._budget = None
            self._facts = {name: MovingFacts(RelationVersion(none)) for name, none in nothing.items()}
            book = Counted(tables)
            for body in self._bodies:
                if not body.follows:
                    for found in body.every(old, tables):
                        book.gain(found)
            top = self._grow(book, old, None)
        finally:
            self._facts, self._budget = facts, budget
        self._stats.instances = 0
        for table in tables.values():
            table.begin()
        return tables, top


def _part(change: Change, mask: np.ndarray) -> Change:
    """Some of a change's rows."""
    return Change(np.ascontiguousarray(np.array(change.columns)[:, mask]), change.weights[mask])
