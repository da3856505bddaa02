"""`Keeping`: how one head is to be kept."""

from __future__ import annotations

from dataclasses import dataclass

from maintenance.heads.strategies import DEFAULT, STRATEGIES
from maintenance.strategies.strategy import Strategy

RECORD_GAP = 9
"""An iterator that seeks on by at most this many keys stays one record
(:mod:`lftj.search.regions.cursor`)."""


@dataclass(frozen=True)
class Keeping:
    """``strategy``: its name.  ``gap``: see RECORD_GAP.  ``order``: the caller's key order of its rules."""

    strategy: str = DEFAULT
    gap: int = RECORD_GAP
    order: tuple[str, ...] | None = None

    def made(self) -> Strategy:
        """The strategy itself."""
        return STRATEGIES[self.strategy]()
