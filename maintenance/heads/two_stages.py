"""A body in two stages: what the first gives is kept, and a body of its own follows it.

Invariant: what is between the stages is staged, kept and dropped with them.
"""

from __future__ import annotations

from collections.abc import Iterator

from maintenance.heads.rule_body import Rows, RuleBody
from maintenance.staged import Staged
from maintenance.strategies.strategy import BodySearch, Building, Read


class TwoStages(RuleBody):
    """The first stage, as a body; ``_second`` is the other, of the same rule."""

    has_one_stage = False
    _second: RuleBody

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        return super().nan_free | self._second.nan_free

    @property
    def all_searches(self) -> tuple[BodySearch, ...]:
        return (*super().all_searches, *self._second.all_searches)

    @property
    def reads(self) -> Iterator[Read]:
        yield from super().reads
        yield from self._second.reads

    @property
    def parts(self) -> tuple[Staged, ...]:
        return (*super().parts, self._second)

    def pieces(self, building: Building) -> Iterator[Rows]:
        """One piece: what is between the stages is kept anyway."""
        yield self.build(building)
