"""A relation that a recursion derives, while it does: its tuples, those of the last round, and their indices.

Invariants

1. The tuples before number ``_old`` are *old*, those from there to ``_new`` are the *frontier*, what the
   last round found; later ones are found by the round that runs and belong to no side yet.
2. An index is there for each key that a term of the last round read beside its frontier, on both sides: of
   the old tuples, and of these and the frontier.  What only the frontier drives needs none.

Cost: of a round a sort of its frontier per order in which a term reads it, and the advance of the indices.
"""

from __future__ import annotations

import numpy as np

from lftj.storage.catalog import IndexKey, Side
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation import Relation
from lftj.storage.relation_version import index_change
from lftj.storage.signed_rows import Columns
from lftj.storage.sorting import sort_distinct
from lftj.storage.trie import Trie
from lftj.storage.tuple_set import TupleSet
from lftj.values.schema import Schema

STATISTICS_ROWS = 1 << 18
"""Orders are chosen by at most so many of the tuples."""


class GrowingRelation:
    """One relation of a recursive component."""

    def __init__(self, name: str, schema: Schema) -> None:
        self.name = name
        self.schema = schema
        self.tuples = TupleSet(len(schema.columns))
        self._old = self._new = 0
        self._indices: dict[IndexKey, dict[Side, IndexVersion]] = {}
        self._bindings: dict[tuple[IndexKey, int], np.ndarray] = {}

    @property
    def n_frontier(self) -> int:
        return self._new - self._old

    @property
    def n_rows(self) -> int:
        """Old tuples and frontier."""
        return self._new

    @property
    def frontier(self) -> np.ndarray:
        """Int64 (columns, n), as they came."""
        return self.tuples.since(self._old, self._new)

    def add(self, columns: Columns) -> np.ndarray:
        """Enter what a round found; returns what of it is new."""
        return self.tuples.add(columns)

    def next_round(self) -> int:
        """Make what was found the frontier; returns how many tuples it has."""
        kept = {}
        for key, sides in self._indices.items():
            kept[key] = {Side.OLD: sides[Side.NEW], Side.NEW: sides[Side.NEW]}
        self._indices = kept
        self._bindings = {}
        self._old, self._new = self._new, self.tuples.n_rows
        for key, sides in self._indices.items():
            sides[Side.NEW] = sides[Side.OLD].advance(*self._change(key))
        return self.n_frontier

    def keep_indices(self, keys: set[IndexKey]) -> None:
        """Give back those that no term reads any longer."""
        self._indices = {key: sides for key, sides in self._indices.items() if key in keys}

    def index(self, key: IndexKey, side: Side) -> IndexVersion:
        """An index of the old tuples, or with the frontier; built where it is asked for first."""
        sides = self._indices.get(key)
        if sides is None:
            columns, _ = index_change(
                key, sort_distinct(list(self.tuples.since(0, self._old))), self._ones(self._old)
            )
            old = IndexVersion(Trie.from_sorted(list(columns)))
            sides = self._indices[key] = {Side.OLD: old, Side.NEW: old.advance(*self._change(key))}
        return sides[side]

    @property
    def index_keys(self) -> frozenset[IndexKey]:
        return frozenset(self._indices)

    def bindings(self, key: IndexKey, bound: int) -> np.ndarray:
        """The frontier's distinct values of the first ``bound`` columns of an index, sorted."""
        place = key, bound
        found = self._bindings.get(place)
        if found is None:
            rows, equal = self.frontier, key[1]
            if equal:
                rows = rows[:, np.logical_and.reduce([rows[i] == rows[j] for i, j in equal])]
            found = np.array(sort_distinct([rows[column] for column in key[0][:bound]]))
            self._bindings[place] = found
        return found

    def _change(self, key: IndexKey) -> tuple[np.ndarray, np.ndarray]:
        """The frontier as a change of an index."""
        rows = self.bindings(key, len(key[0]))
        return rows, self._ones(rows.shape[1])

    @staticmethod
    def _ones(n: int) -> np.ndarray:
        return np.ones(n, np.int64)

    def for_statistics(self) -> Relation:
        """Some of the tuples, for who chooses an order."""
        columns = sort_distinct(list(self.tuples.since(0, min(self._new, STATISTICS_ROWS))))
        return Relation.from_codes(self.name, self.schema, columns)

    def relation(self) -> Relation:
        """All tuples as a relation."""
        return Relation.from_codes(self.name, self.schema, self.tuples.sorted_columns())

    def forget(self) -> None:
        """Give back the memory of what is not asked for any longer."""
        self.tuples = TupleSet(len(self.schema.columns))
        self._old = self._new = 0
        self._indices, self._bindings = {}, {}
