"""`Keeping`: how one head is to be kept."""

from __future__ import annotations

from dataclasses import dataclass

from lftj.language.body import MAX_ROUNDS
from maintenance.heads.strategies import COMPONENT_STRATEGIES, DEFAULT, STRATEGIES
from maintenance.strategies.component import ComponentStrategy
from maintenance.strategies.strategy import Strategy

RECORD_GAP = 9
"""An iterator that seeks on by at most this many keys stays one record
(:mod:`lftj.search.machine.cursor`)."""


@dataclass(frozen=True)
class Keeping:
    """``strategy``: its name.  ``gap``: see RECORD_GAP.  ``order``: the caller's key order of its rules.

    ``max_rounds``: of a recursion.
    """

    strategy: str = DEFAULT
    gap: int = RECORD_GAP
    order: tuple[str, ...] | None = None
    max_rounds: int = MAX_ROUNDS

    def made(self) -> Strategy:
        """The strategy itself."""
        return STRATEGIES[self.strategy]()

    def made_for_component(self) -> ComponentStrategy:
        """The strategy of heads that depend on themselves."""
        return COMPONENT_STRATEGIES[self.strategy]()
