"""The facts of a recursive head while a step changes them, fact by fact or many at a time.

Invariants

1. ``OLD`` is the start with all changes but the last one, ``NEW`` with that too.
2. Indices are there for the keys that were asked for since the start; the version that it started with keeps
   those that were built for it, and so has them in the next step.

Cost: per change and index that some term reads, that of advancing it; nothing where none does, as is the case
of linear rules.
"""

from __future__ import annotations

import numpy as np

from lftj.storage.catalog import IndexKey, Side
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation_version import RelationVersion, index_change
from lftj.storage.signed_rows import gathered, net_rows
from maintenance.changes.change import Change


class MovingFacts:
    """One head's."""

    def __init__(self, start: RelationVersion) -> None:
        self.start = start
        self._changes: list[Change] = []
        self._indices: dict[IndexKey, dict[Side, IndexVersion]] = {}

    def change(self, columns: np.ndarray, sign: int) -> None:
        """Facts come (1) or go (-1); int64 (columns, n), sorted and distinct."""
        last = Change(columns, np.full(columns.shape[1], sign, np.int64))
        self._changes.append(last)
        for key, sides in self._indices.items():
            sides[Side.OLD] = sides[Side.NEW]
            sides[Side.NEW] = sides[Side.OLD].advance(*index_change(key, last.columns, last.weights))

    def on(self, side: Side) -> FactsOnSide:
        return FactsOnSide(self, side)

    def index(self, key: IndexKey, side: Side) -> IndexVersion:
        """An index of one side."""
        sides = self._indices.get(key)
        if sides is None:
            old = new = self.start.index_at(key)
            if self._changes:
                *before, last = self._changes
                old = old.advance(*_as_one(key, before)) if before else old
                new = old.advance(*index_change(key, last.columns, last.weights))
            sides = self._indices[key] = {Side.OLD: old, Side.NEW: new}
        return sides[side]


class FactsOnSide:
    """One side of them, as the terms of a delta rule read it."""

    def __init__(self, facts: MovingFacts, side: Side) -> None:
        self._facts = facts
        self._side = side

    def index_at(self, key: IndexKey) -> IndexVersion:
        return self._facts.index(key, self._side)


def _as_one(key: IndexKey, changes: list[Change]) -> tuple[np.ndarray, np.ndarray]:
    """Several changes, one after the other, as one of an index."""
    columns, weights = net_rows(*gathered([(change.columns, change.weights) for change in changes]))
    return index_change(key, columns, weights)
