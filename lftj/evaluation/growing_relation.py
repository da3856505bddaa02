"""A relation that a recursion derives, while it does: its tuples, those of the last round, and their indices.

Two kinds.  :class:`GrowingTuples` get more.  :class:`GrowingValues` are of heads ``dist[x] = min(d)``: there
is one tuple per key, and a better value takes the place of another.

Invariants

1. What was there before the last round is *old*, what that found is the *frontier*; what the round finds that
   runs belongs to no side yet.
2. An index is there for each key that a term of the last round read beside its frontier, on both sides: of
   the old tuples, and of these and the frontier, less those whose place it took.  What only the frontier
   drives needs none.

Cost: of a round a sort of its frontier per order in which a term reads it, and the advance of the indices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from lftj.storage.best_values import BestValues, Improved, ranks_in
from lftj.storage.catalog import IndexKey, Side
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation import Relation
from lftj.storage.relation_version import index_change
from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.sorting import sort_distinct
from lftj.storage.trie import Trie
from lftj.storage.tuple_set import TupleSet
from lftj.values.schema import Schema

STATISTICS_ROWS = 1 << 18
"""Orders are chosen by at most so many of the tuples."""


class GrowingRelation(ABC):
    """One relation of a recursive component."""

    def __init__(self, name: str, schema: Schema) -> None:
        self.name = name
        self.schema = schema
        self._indices: dict[IndexKey, dict[Side, IndexVersion]] = {}
        self._bindings: dict[tuple[IndexKey, int], np.ndarray] = {}

    @property
    def n_frontier(self) -> int:
        return self.frontier.shape[1]

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Old tuples and frontier."""

    @property
    @abstractmethod
    def frontier(self) -> np.ndarray:
        """Int64 (columns, n), as they came."""

    @abstractmethod
    def add(self, columns: Columns) -> np.ndarray:
        """Enter what a round found; returns what of it is new, int64 (columns, n)."""

    @abstractmethod
    def columns(self) -> list[np.ndarray]:
        """Old tuples and frontier, in any order."""

    @abstractmethod
    def _advance(self) -> None:
        """Make what was found the frontier."""

    @abstractmethod
    def _old_columns(self) -> list[np.ndarray]:
        """The old tuples, in any order."""

    @abstractmethod
    def _change(self, key: IndexKey) -> tuple[np.ndarray, np.ndarray]:
        """What the frontier changed of an index."""

    @abstractmethod
    def forget(self) -> None:
        """Give back the memory of what is not asked for any longer."""
        self._indices, self._bindings = {}, {}

    def next_round(self) -> int:
        """Make what was found the frontier; returns how many tuples it has."""
        kept = {}
        for key, sides in self._indices.items():
            kept[key] = {Side.OLD: sides[Side.NEW], Side.NEW: sides[Side.NEW]}
        self._indices = kept
        self._bindings = {}
        self._advance()
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
            rows = sort_distinct(self._old_columns())
            columns, _ = index_change(key, rows, np.ones(len(rows[0]), np.int64))
            old = IndexVersion(Trie.from_sorted(list(columns)))
            sides = self._indices[key] = {Side.OLD: old, Side.NEW: old.advance(*self._change(key))}
        return sides[side]

    @property
    def index_keys(self) -> frozenset[IndexKey]:
        return frozenset(self._indices)

    def bindings(self, key: IndexKey, bound: int, in_order: bool) -> np.ndarray:
        """The frontier's distinct values of the first ``bound`` columns of an index, sorted if need be."""
        place = key, bound
        found = self._bindings.get(place)
        if found is None:
            rows, equal = self.frontier, key[1]
            if not in_order and not equal and bound == len(rows):
                return rows[list(key[0])]
            if equal:
                rows = rows[:, np.logical_and.reduce([rows[i] == rows[j] for i, j in equal])]
            found = np.array(sort_distinct([rows[column] for column in key[0][:bound]]))
            self._bindings[place] = found
        return found

    def for_statistics(self) -> Relation:
        """Some of the tuples, for who chooses an order."""
        columns = sort_distinct([column[:STATISTICS_ROWS] for column in self.columns()])
        return Relation.from_codes(self.name, self.schema, columns)

    def relation(self) -> Relation:
        """All tuples as a relation."""
        return Relation.from_codes(self.name, self.schema, sort_distinct(self.columns()))


class GrowingTuples(GrowingRelation):
    """One that gets more tuples: those before number ``_old`` are old, those from there to ``_new`` the
    frontier.
    """

    def __init__(self, name: str, schema: Schema) -> None:
        super().__init__(name, schema)
        self.forget()

    def forget(self) -> None:
        super().forget()
        self._tuples = TupleSet(len(self.schema.columns))
        self._old = self._new = 0

    @property
    def n_rows(self) -> int:
        return self._new

    @property
    def frontier(self) -> np.ndarray:
        return self._tuples.since(self._old, self._new)

    def add(self, columns: Columns) -> np.ndarray:
        return self._tuples.add(columns)

    def columns(self) -> list[np.ndarray]:
        return list(self._tuples.since(0, self._new))

    def _advance(self) -> None:
        self._old, self._new = self._new, self._tuples.n_rows

    def _old_columns(self) -> list[np.ndarray]:
        return list(self._tuples.since(0, self._old))

    def _change(self, key: IndexKey) -> tuple[np.ndarray, np.ndarray]:
        rows = self.bindings(key, len(key[0]), True)
        return rows, np.ones(rows.shape[1], np.int64)


class GrowingValues(GrowingRelation):
    """One value per key, the last column: the least that was found, or the largest."""

    def __init__(self, name: str, schema: Schema, extremum: str) -> None:
        """``extremum``: ``"min"`` or ``"max"``."""
        super().__init__(name, schema)
        self._largest = extremum == "max"
        self._domain = schema.columns[-1].type.domain
        self.forget()

    def forget(self) -> None:
        super().forget()
        n_keys = len(self.schema.columns) - 1
        self._best = BestValues(n_keys, self._largest)
        none = np.empty(0, np.int64)
        self._improved = Improved(np.empty((n_keys, 0), np.int64), none, none, 0)
        self._frontier = np.empty((n_keys + 1, 0), np.int64)
        self._n_rows = 0

    @property
    def n_rows(self) -> int:
        return self._n_rows

    @property
    def frontier(self) -> np.ndarray:
        return self._frontier

    def add(self, columns: Columns) -> np.ndarray:
        *keys, values = columns
        better = self._best.add(keys, values, ranks_in(self._domain))
        return np.array([column[better] for column in columns])

    def columns(self) -> list[np.ndarray]:
        return self._best.columns()

    def _advance(self) -> None:
        self._improved = self._best.next_round()
        self._frontier = np.vstack([self._improved.keys, self._improved.values[None]])
        self._n_rows = self._best.n_groups

    def _replaced(self) -> np.ndarray:
        """The old tuples whose place the frontier took; int64 (columns, n)."""
        before = self._improved.before
        return np.vstack([self._improved.keys[:, : len(before)], before[None]])

    def _old_columns(self) -> list[np.ndarray]:
        columns, signs = self._signed()
        every = np.hstack([np.array(self.columns()), columns])
        rows, _ = net_rows(every, np.concatenate([np.ones(self._n_rows, np.int64), -signs]))
        return list(rows)

    def _signed(self) -> tuple[np.ndarray, np.ndarray]:
        """The frontier, and what it took the place of."""
        gone = self._replaced()
        signs = np.repeat(np.array([1, -1]), [self.n_frontier, gone.shape[1]])
        return np.hstack([self.frontier, gone]), signs

    def _change(self, key: IndexKey) -> tuple[np.ndarray, np.ndarray]:
        return index_change(key, *net_rows(*self._signed()))
