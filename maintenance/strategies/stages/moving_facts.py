"""The facts of a recursive head while a step changes them, fact by fact or many at a time.

Invariants

1. ``OLD`` is the start with all changes but the last one, ``NEW`` with that too.
2. Indices are there for the keys that were asked for since the start, as they were when they were last asked
   for; the version that it started with keeps those that were built for it, and so has them in the next step.

Cost: an index that is asked for is advanced by the changes since it last was, all at once: by each of them
where rules are not linear, and where they are by none but those of the terms of other relations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lftj.storage.catalog import IndexKey, Side
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation_version import RelationVersion, index_change
from lftj.storage.signed_rows import gathered, net_rows
from maintenance.changes.change import Change


@dataclass(frozen=True)
class _Advanced:
    """An index after all changes of the first ``n_changes`` but the last, and after that."""

    n_changes: int
    old: IndexVersion
    new: IndexVersion


class MovingFacts:
    """One head's."""

    def __init__(self, start: RelationVersion) -> None:
        self.start = start
        self._changes: list[Change] = []
        self._indices: dict[IndexKey, _Advanced] = {}

    def change(self, columns: np.ndarray, sign: int) -> None:
        """Facts come (1) or go (-1); int64 (columns, n), sorted and distinct."""
        self._changes.append(Change(columns, np.full(columns.shape[1], sign, np.int64)))

    def on(self, side: Side) -> FactsOnSide:
        return FactsOnSide(self, side)

    def index(self, key: IndexKey, side: Side) -> IndexVersion:
        """An index of one side."""
        known = self._indices.get(key)
        if known is None:
            start = self.start.index_at(key)
            known = _Advanced(0, start, start)
        n_changes = len(self._changes)
        if known.n_changes < n_changes:
            *before, last = self._changes[known.n_changes :]
            old = known.new.advance(*_as_one(key, before)) if before else known.new
            known = _Advanced(n_changes, old, old.advance(*index_change(key, last.columns, last.weights)))
        self._indices[key] = known
        return known.old if side is Side.OLD else known.new


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
