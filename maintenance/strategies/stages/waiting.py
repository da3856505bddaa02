"""What a step has still to see to: facts that fall, and groups whose fact is not their best offer.

Cost: O(1) calls per batch of instances; a set of ranks is sorted.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import numpy as np

from maintenance.strategies.stages.seen_facts import SeenFacts
from maintenance.strategies.stages.stage_body import Instances, StageBody, Tables

MOST_RETURNS = 8
"""So often a value may be beaten in one step and yet come back: where what beat it fell for its rank."""


class RestsOnItselfError(Exception):
    """A value has no proof from the values that there are.

    ``for_good``: that is so of the values that were there before the step.
    """

    def __init__(self, for_good: bool) -> None:
        super().__init__("a value rests on a worse one of its own key")
        self.for_good = for_good


class Falling:
    """Facts that lost their solid support, by rank."""

    def __init__(self, tables: Tables) -> None:
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


class Unsettled:
    """Groups whose best offer may not be their fact."""

    def __init__(self, tables: Tables | Mapping[str, SeenFacts]) -> None:
        self._tables = tables
        self._parts: dict[str, list[np.ndarray]] = {}
        self.last: StageBody | None = None
        """The body that gave the last of them."""

    def gain(self, body: StageBody, found: Instances) -> None:
        """Count instances in."""
        named = self._tables[found.head].gain(found.columns, found.highs)
        if len(named):
            self.last = body
        self.add(found.head, named)

    def add(self, name: str, groups: np.ndarray) -> None:
        if len(groups):
            self._parts.setdefault(name, []).append(groups)

    def taken(self) -> dict[str, np.ndarray]:
        """All of them, offers' groups perhaps several times; none is left."""
        parts, self._parts = self._parts, {}
        return {name: own[0] if len(own) == 1 else np.concatenate(own) for name, own in parts.items()}


class Beaten:
    """How often each offer of a table was beaten in a step."""

    def __init__(self) -> None:
        self._times = np.zeros(0, np.int64)

    def count(self, slots: np.ndarray, n_slots: int) -> None:
        """Offers, each once, are beaten."""
        if n_slots > len(self._times) and len(slots):
            self._times = np.append(self._times, np.zeros(2 * n_slots - len(self._times), np.int64))
        self._times[slots] += 1

    def check(self, slots: np.ndarray) -> None:
        """Refuse offers that come back too often.  Raises RestsOnItselfError."""
        known = slots[slots < len(self._times)]
        if (self._times[known] > MOST_RETURNS).any():
            raise RestsOnItselfError(for_good=False)
