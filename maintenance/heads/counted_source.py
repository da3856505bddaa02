"""Rules whose tuples depend on how often rows are there: windows, and bags.

Invariants are those of :mod:`maintenance.heads.rule_source`; the assignments are maintained as those of
aggregates (:mod:`maintenance.heads.intermediate`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.aggregates.copies import counted_rows
from lftj.errors import RangeError
from lftj.evaluation.wanted import common_types, wanted_variables
from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.diagnostics import with_rule
from lftj.storage.zset import Weighted
from maintenance.groups.windows import WindowRows
from maintenance.heads.intermediate import Intermediate
from maintenance.heads.keeping import Keeping
from maintenance.heads.rule_body import RuleBody
from maintenance.heads.rule_source import RuleSource, TimedTuples
from maintenance.staged import Staged
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import BodyStrategy, Building, Round, Tuples, Versions
from maintenance.strategies.timed_round import TimedRound


class CountedSource(RuleSource):
    """One rule's."""

    is_distinct = False
    is_function = False
    sorted_by = None

    def __init__(
        self,
        rule: CheckedRule,
        head: CheckedHead,
        relations: Versions,
        strategy: BodyStrategy,
        keeping: Keeping,
    ) -> None:
        self.rule = rule
        self._head = head
        self._assignments = Intermediate(rule, (), relations, strategy, keeping, wanted_variables(head))

    @property
    def bodies(self) -> Sequence[RuleBody]:
        return self._assignments.bodies

    @property
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        return self._head, self._assignments.bodies


class BagSource(CountedSource):
    """A rule of a bag: its rows, as often as it gives them.  The head counts and numbers them."""

    notes = ("copies: support counts say how many there are",)

    @property
    def parts(self) -> Sequence[Staged]:
        return (self._assignments,)

    def build(self, building: Building) -> Tuples:
        counts = Weighted(len(self._head.variables))
        try:
            for rows, weights in self._assignments.pieces(building):
                counts.add(*counted_rows(self._head, rows, weights))
        except RangeError as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        return counts.finish()

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        rows, signs = self._assignments.step(change, stats)
        if not len(signs):
            return [signs for _ in self._head.variables], signs
        try:
            return counted_rows(self._head, rows, signs)
        except RangeError as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    @property
    def timed_refusal(self) -> str | None:
        return self._assignments.timed_refusal

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        rows, times, signs = self._assignments.timed_step(change, stats)
        try:
            columns, weights = counted_rows(self._head, rows, signs)
        except RangeError as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        return columns, times, weights


class WindowSource(CountedSource):
    """A rule with windows."""

    timed_refusal = "windows follow the order of changes"

    def __init__(
        self,
        rule: CheckedRule,
        head: CheckedHead,
        relations: Versions,
        strategy: BodyStrategy,
        keeping: Keeping,
    ) -> None:
        super().__init__(rule, head, relations, strategy, keeping)
        self._rows = WindowRows(head, common_types(rule))

    @property
    def parts(self) -> Sequence[Staged]:
        return self._assignments, self._rows

    @property
    def notes(self) -> tuple[str, ...]:
        functions = ", ".join(dict.fromkeys(window.function for window in self._head.windows))
        return f"windows {functions}: a change reads {self._rows.reads}", "support counts"

    def build(self, building: Building) -> Tuples:
        rows = Weighted(len(self._rows.names))
        try:
            for columns, weights in self._assignments.pieces(building):
                rows.add([columns[name] for name in self._rows.names], weights)
            return self._rows.stage(*rows.finish())
        except RangeError as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        rows, signs = self._assignments.step(change, stats)
        if not len(signs):
            return [np.empty(0, np.int64) for _ in self._head.schema.columns], signs
        try:
            found = self._rows.stage([rows[name] for name in self._rows.names], signs)
        except RangeError as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        stats.window_rows += self._rows.rows_read
        return found

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        raise AssertionError(self.timed_refusal)
