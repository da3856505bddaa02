"""A rule's share of a head: the signed tuples that it gives, from a set of rows or from an aggregate.

Invariants

1. The tuples of ``build`` and of the steps that were kept add up to the rule's tuples over the newest
   versions.  Where ``is_distinct`` each has weight 1; else its weight is a support count.
2. A step stages; ``keep`` publishes and ``drop`` forgets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from lftj.errors import EvaluationError, RangeError
from lftj.evaluation.evaluation import wanted_variables
from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.diagnostics import with_rule
from lftj.storage.relation import Relation
from lftj.storage.signed_rows import Columns, gathered
from maintenance.groups.grouped import GroupedAggregate
from maintenance.groups.shared_scans import Sharer
from maintenance.heads.computed_negation import maintained_body
from maintenance.heads.intermediate import Intermediate
from maintenance.heads.rule_body import RuleBody
from maintenance.stats import RuleStats
from maintenance.strategies.trace.body_trace import Advance, Round, Versions


class RuleSource(ABC):
    """What a head asks of a rule."""

    is_distinct: bool

    @property
    @abstractmethod
    def bodies(self) -> Sequence[RuleBody]:
        """Whose searches the head pays for."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """How the tuples are made, for ``explain``."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory beside the bodies' searches."""

    @abstractmethod
    def build(
        self, versions: Versions, threads: int = 1, advance: Advance | None = None
    ) -> tuple[Columns, np.ndarray]:
        """All tuples; staged."""

    @abstractmethod
    def step(self, change: Round, stats: RuleStats) -> tuple[Columns, np.ndarray]:
        """The tuples that came and went, signed; staged."""

    @abstractmethod
    def keep(self) -> None:
        """Publish what was staged."""

    @abstractmethod
    def drop(self) -> None:
        """Forget what was staged."""

    @abstractmethod
    def tidy(self) -> None:
        """Give back memory that is no more needed."""

    @abstractmethod
    def hand_over(self) -> None:
        """Let others pay for what is shared with them."""

    @abstractmethod
    def leave(self) -> None:
        """Give up what is shared with others."""

    @abstractmethod
    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the structures."""


class SetSource(RuleSource):
    """A rule without aggregate: the rows of its bodies, projected."""

    def __init__(
        self,
        rule: CheckedRule,
        head: CheckedHead,
        relations: Mapping[str, Relation],
        record_gap: int,
        order: Sequence[str] | None,
    ) -> None:
        self._names = [*head.variables, *([head.value] if isinstance(head.value, str) else [])]
        grouped = head.variables if head.schema.functional else ()
        wanted = wanted_variables(head)
        self._bodies = [
            maintained_body(rule, body, wanted, False, relations, record_gap, order, grouped)
            for body in rule.bodies
        ]
        self.is_distinct = len(self._bodies) == 1 and self._bodies[0].distinct_by <= set(self._names)

    @property
    def bodies(self) -> Sequence[RuleBody]:
        return self._bodies

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.is_distinct else ("support counts",)

    @property
    def nbytes(self) -> int:
        return 0

    def build(
        self, versions: Versions, threads: int = 1, advance: Advance | None = None
    ) -> tuple[Columns, np.ndarray]:
        return self._projected([body.build(versions, threads, advance) for body in self.bodies])

    def step(self, change: Round, stats: RuleStats) -> tuple[Columns, np.ndarray]:
        return self._projected([body.step(change, stats) for body in self.bodies])

    def _projected(
        self, parts: Sequence[tuple[dict[str, np.ndarray], np.ndarray]]
    ) -> tuple[Columns, np.ndarray]:
        return gathered([([rows[name] for name in self._names], signs) for rows, signs in parts])

    def keep(self) -> None:
        for body in self.bodies:
            body.keep()

    def drop(self) -> None:
        for body in self.bodies:
            body.drop()

    def tidy(self) -> None:
        pass  # there is nothing beside the bodies

    def hand_over(self) -> None:
        pass  # nothing is shared

    def leave(self) -> None:
        pass

    def check_invariants(self) -> None:
        for body in self.bodies:
            body.check_invariants()


class AggregateSource(RuleSource):
    """A rule with an aggregate: one tuple per group, from the rule's intermediate."""

    is_distinct = True

    def __init__(self, intermediate: Intermediate, sharer: Sharer) -> None:
        self._intermediate = intermediate
        self._sharer = sharer
        self._names = (*sharer.groups, *sharer.arguments)
        types = sharer.rule.bodies[0].types
        self._groups = GroupedAggregate(sharer.head, types, intermediate.accumulator(sharer))

    @property
    def bodies(self) -> Sequence[RuleBody]:
        return self._intermediate.bodies if self._sharer is self._intermediate.sharers[0] else ()

    @property
    def notes(self) -> tuple[str, ...]:
        intermediate, sharer = self._intermediate, self._sharer
        others = [s.head.relation for s in intermediate.sharers if s is not sharer]
        notes = (f"aggregate {sharer.call.function}", *intermediate.notes(sharer))
        return (*notes, f"one intermediate with {', '.join(others)}") if others else notes

    @property
    def nbytes(self) -> int:
        return self._groups.nbytes + (self._intermediate.nbytes if self.bodies else 0)

    def build(
        self, versions: Versions, threads: int = 1, advance: Advance | None = None
    ) -> tuple[Columns, np.ndarray]:
        return self._staged(lambda: self._intermediate.build(versions, threads, advance))

    def step(self, change: Round, stats: RuleStats) -> tuple[Columns, np.ndarray]:
        return self._staged(lambda: self._intermediate.step(change, stats))

    def _staged(self, rows_of) -> tuple[Columns, np.ndarray]:  # type: ignore[no-untyped-def]
        try:
            rows, signs = rows_of()
            return self._groups.stage([rows[name] for name in self._names], signs)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self._sharer.rule.text) from None

    def keep(self) -> None:
        self._intermediate.keep()
        self._groups.keep()

    def drop(self) -> None:
        self._intermediate.drop()
        self._groups.drop()

    def tidy(self) -> None:
        self._groups.tidy()

    def hand_over(self) -> None:
        self._intermediate.put_last(self._sharer)

    def leave(self) -> None:
        self._intermediate.leave(self._sharer)

    def check_invariants(self) -> None:
        self._intermediate.check_invariants()
        self._groups.check_invariants()
