"""A rule with windows: the tuples of a head whose values depend on the rows beside theirs.

Invariants are those of :mod:`maintenance.heads.rule_source`; the assignments are maintained as those of
aggregates (:mod:`maintenance.heads.intermediate`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.errors import RangeError
from lftj.evaluation.wanted import common_types
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


class WindowSource(RuleSource):
    """One rule's."""

    is_distinct = False
    is_function = False
    sorted_by = None
    timed_refusal = "windows follow the order of changes"

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
        self._rows = WindowRows(head, common_types(rule))
        self._assignments = Intermediate(rule, (), relations, strategy, keeping, self._rows.names)

    @property
    def bodies(self) -> Sequence[RuleBody]:
        return self._assignments.bodies

    @property
    def searched(self) -> tuple[CheckedHead, Sequence[RuleBody]]:
        return self._head, self._assignments.bodies

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
            return self._rows.stage([rows[name] for name in self._rows.names], signs)
        except RangeError as error:
            raise with_rule(error, self.rule.text) from error.__cause__

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedTuples:
        raise AssertionError(self.timed_refusal)
