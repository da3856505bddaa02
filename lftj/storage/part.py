"""A part of a relation: some of its rows, in any order, and the columns that one query reads.

Rows may be equal, for they may differ in columns that are left out.  An index whose last column is the
number behind all columns' has a level that numbers the rows (:meth:`lftj.storage.trie.Trie.of_rows`): what
is counted there are rows of the relation.

Cost: an index sorts the part's rows only, and once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from lftj.storage.catalog import IndexKey, SearchView
from lftj.storage.sorting import sort_distinct
from lftj.storage.trie import Trie
from lftj.values.schema import Schema


class Part:
    """A table (:class:`lftj.storage.catalog.Table`) that lives as long as one query's plan.

    >>> part = Part("some", Schema(()), [], 3)
    >>> [level.tolist() for level in part.view(((0,), ())).base.keys]
    [[0, 1, 2]]
    """

    def __init__(self, name: str, schema: Schema, columns: Sequence[np.ndarray], n_rows: int) -> None:
        self.name = name
        self.schema = schema
        self.n_rows = n_rows
        self._columns = tuple(columns)
        self._indices: dict[tuple[int, ...], Trie] = {}
        self._lock = threading.Lock()

    def column(self, number: int) -> np.ndarray:
        """The codes of one column."""
        return self._columns[number]

    def columns(self) -> Sequence[np.ndarray]:
        """Codes of all rows, a column each."""
        return self._columns

    @property
    def index_keys(self) -> frozenset[IndexKey]:
        """Of the indices that are there already."""
        with self._lock:
            return frozenset((columns, ()) for columns in self._indices)

    def view(self, key: IndexKey) -> SearchView:
        """The index of a key as searches read it; no columns of it have to agree."""
        columns, equal = key
        assert not equal
        with self._lock:
            if columns not in self._indices:
                self._indices[columns] = self._build(columns)
            return SearchView(self._indices[columns], None)

    def _build(self, columns: tuple[int, ...]) -> Trie:
        numbered = columns[-1] == len(self._columns)
        codes = [self._columns[column] for column in (columns[:-1] if numbered else columns)]
        return Trie.of_rows(codes, self.n_rows) if numbered else Trie.from_sorted(sort_distinct(codes))

    def n_branches(self, key: IndexKey, level: int) -> int:
        """How many distinct prefixes of ``level + 1`` columns an index has."""
        return self.view(key).n_branches(level)

    def refuse_nan(self, column: int) -> None:
        """The relation itself is asked."""

    def refuse_null(self, column: int) -> None:
        """The relation itself is asked."""

    def code(self, column: int) -> None:
        """All columns are coded."""

    def check_functional(self) -> None:
        """The relation itself is asked."""

    @property
    def statistics_of(self) -> object:
        return self

    def statistics_column(self, column: int) -> tuple[np.ndarray, bool]:
        """The codes of a column, and that they may be unsorted."""
        return self._columns[column], False
