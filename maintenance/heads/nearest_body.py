"""A body of which an extremum is asked, kept by witnesses: for each asker the nearest answer.

Analysis: :mod:`lftj.rewriting.nearest_join`; searches: :mod:`lftj.evaluation.nearest`.  Of all assignments of
the body its rows have one for each asker, which has the extremum: that of all rows of a group is that of all
assignments.  Each side is a body of its own, kept by the strategy of the head, and its rows are kept sorted.

    askers that came, and those that answers reach that came or went: + the witness of the new answers
    askers that went, and those reached that had been there:          - the witness of the old answers

Invariants

1. The rows of both sides are those that their bodies give, with how often they do, less what matches nothing.
2. A step reads the answers that change, their neighbours, and the askers whose witness is another one; where
   the distance is limited also those that are near enough.

Cost: that of the sides, and O(log n) per run for each row that changes and each asker that is reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lftj.evaluation.nearest import Nearest, Table
from lftj.rewriting.nearest_join import NearestJoin, Side
from lftj.storage.signed_rows import gathered, net_rows
from lftj.storage.support import SupportVersion, crossing
from maintenance.heads.rule_body import Rows, RuleBody
from maintenance.heads.two_stages import TwoStages
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import (
    BodyRequest,
    BodyStrategy,
    Building,
    Round,
    Versions,
)

Changed = tuple[Table, np.ndarray]
"""Distinct rows of a side, and 1 where one came, -1 where it went."""


class NearestBody(TwoStages):
    """The side of those who ask, and behind it that of the answers."""

    def __init__(self, strategy: BodyStrategy, request: BodyRequest, join: NearestJoin) -> None:
        super().__init__(strategy, _of_side(request, join.askers))
        self.body = request.body
        self._second = RuleBody(strategy, _of_side(request, join.answers))
        self._search = Nearest(join)
        self._askers, self._answers = (
            StagedSupport(
                len(side.names), {place: side.body.types[name] for place, name in enumerate(side.names)}
            )
            for side in (join.askers, join.answers)
        )
        self.distinct_by = frozenset((*join.askers.names, join.value))

    @property
    def parts(self) -> tuple[Staged, ...]:
        return (*super().parts, self._askers, self._answers)

    @property
    def keeps_something(self) -> bool:
        return True

    @property
    def timed_refusal(self) -> str | None:
        return "witnesses follow the order of changes"

    @property
    def nearest(self) -> Nearest:
        """The searches."""
        return self._search

    def build(self, building: Building) -> Rows:
        self._askers.staged = SupportVersion(self._askers.kept.arity)
        self._answers.staged = SupportVersion(self._answers.kept.arity)
        for rows, weights in RuleBody.pieces(self, building):
            self._take_askers(rows, weights)
        for rows, weights in self._second.pieces(building):
            self._take_answers(rows, weights)
        held = self._askers.newest.visible()
        found, _ = self._search.found(np.array(held, np.int64), self._answers.newest)
        return found, np.ones(len(found[self._search.join.value]), np.int64)

    def step(self, change: Round, stats: RuleStats) -> Rows:
        asking, came_or_went = self._take_askers(*super().step(change, stats))
        answering, signs = self._take_answers(*self._second.step(change, stats))
        search, before, after = self._search, self._answers.kept, self._answers.newest
        new, gone = asking[:, came_or_went > 0], asking[:, came_or_went < 0]
        reached = [
            search.reached(some, answers, self._askers.newest)
            for sign, answers in ((1, after), (-1, before))
            if (some := np.ascontiguousarray(answering[:, signs == sign])).shape[1]
        ]
        there = _distinct(reached) if reached else new[:, :0]
        lasting = self._askers.kept.totals(list(there), there.shape[1]) > 0
        parts = []
        for rows, answers, sign in (
            (np.hstack([there[:, lasting], gone]), before, -1),
            (np.hstack([there[:, lasting], new]), after, 1),
        ):
            rows = np.ascontiguousarray(rows)
            found, _ = search.found(rows, answers)
            stats.seeks += rows.shape[1]
            parts.append((list(found.values()), np.full(len(found[search.join.value]), sign, np.int64)))
        stats.seeks += 2 * answering.shape[1]
        stats.nexts += there.shape[1]
        columns, weights = net_rows(*gathered(parts))
        return dict(zip(found, columns, strict=True)), weights

    def tidy(self, versions: Versions) -> int:
        return super().tidy(versions) + self._second.tidy(versions)

    def describe(self) -> list[str]:
        lines = [f"nearest     {self._search.join.described}"]
        for title, some in (("askers", super().describe()), ("answers", self._second.describe())):
            lines += [f"{title:<12}{some[0]}", *some[1:]]
        return lines

    def _take_askers(self, rows: Mapping[str, np.ndarray], weights: np.ndarray) -> Changed:
        names = self._search.join.askers.names
        return _taken(self._askers, *self._search.askers([rows[name] for name in names], weights))

    def _take_answers(self, rows: Mapping[str, np.ndarray], weights: np.ndarray) -> Changed:
        names = self._search.join.answers.names
        return _taken(self._answers, *self._search.answers([rows[name] for name in names], weights))


def _taken(support: StagedSupport, rows: Table, weights: np.ndarray) -> Changed:
    support.staged, changed, before, after = support.newest.added(list(rows), weights)
    changed, before, after = crossing(changed, before, after, 1)
    return changed, np.sign(after - before)


def _distinct(tables: Sequence[Table]) -> Table:
    rows, _ = net_rows(*gathered([(list(table), np.ones(table.shape[1], np.int64)) for table in tables]))
    return rows


def _of_side(request: BodyRequest, side: Side) -> BodyRequest:
    relations = {name: request.relations[name] for name in side.body.relations}
    return replace(
        request,
        body=side.body,
        relations=relations,
        wanted=side.names,
        every=False,
        added_up=False,
        grouped=(),
        extremum=None,
    )
