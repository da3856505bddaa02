"""What plans are bound to: tables by name, on two or three sides.

A plan names indices, by relation, columns and *side* (:class:`IndexUse`); the data come
with the call, as a catalog per side.  A relation is a table, and so is a version of one.
``trace`` reads one side at a time; delta rules mix them: the change of one atom's
relation joins the new versions of the atoms before it and the old ones of those behind.

Invariant: tables never change, so what a call is bound to stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from lftj.storage.trie import Trie
from lftj.values.schema import Schema

if TYPE_CHECKING:
    from lftj.storage.patch import Patch  # it brings the compiler

IndexKey = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""Columns in the order of the levels, and pairs of columns whose codes have to agree."""


class Side(Enum):
    """Which of the tables of one name an index use reads."""

    NEW = "new"
    OLD = "old"
    CHANGE = "change"


class SearchView(NamedTuple):
    """An index as searches read it: a base trie, and what later runs change of it."""

    base: Trie
    patch: Patch | None

    @property
    def rooted(self) -> SearchView:
        """With the root, for who walks it (:attr:`lftj.storage.patch.Patch.rooted`)."""
        return self if self.patch is None else SearchView(self.base, self.patch.rooted)

    @property
    def n_tuples(self) -> int:
        return self.base.n_tuples if self.patch is None else self.patch.n_tuples

    @property
    def key_ranges(self) -> tuple[tuple[int, int], ...]:
        """Per level: keys are not less and not greater; (0, -1) where there are none."""
        return self.base.key_ranges if self.patch is None else self.patch.key_ranges

    @property
    def max_fanouts(self) -> tuple[int, ...]:
        """Per level: at most so many keys below one parent."""
        return self.base.max_fanouts if self.patch is None else self.patch.max_fanouts

    @property
    def memory(self) -> np.ndarray:
        """As kernels see it: int64 (:mod:`lftj.storage.version_memory`)."""
        return self.base.memory if self.patch is None else self.patch.patched_base

    @property
    def pinned_memory(self) -> np.ndarray:
        """The same for who seeks single keys of its root."""
        return self.base.memory if self.patch is None else self.patch.pinned_base

    def n_branches(self, level: int) -> int:
        """How many prefixes of ``level + 1`` keys there are."""
        return len(self.base.keys[level]) + (0 if self.patch is None else self.patch.came[level])


class Table(Protocol):
    """Rows of codes under one schema: a relation, a version."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def n_rows(self) -> int: ...

    def columns(self) -> Sequence[np.ndarray]:
        """Codes of all rows, a column each."""

    def code(self, column: int) -> None:
        """Have the values of a column in its dictionary, where columns are coded when they are asked for."""

    @property
    def index_keys(self) -> frozenset[IndexKey]:
        """Of the indices that are there already."""

    def view(self, key: IndexKey) -> SearchView:
        """The index whose first levels are the key's columns."""

    def n_branches(self, key: IndexKey, level: int) -> int:
        """How many distinct prefixes of ``level + 1`` columns an index has."""

    def refuse_nan(self, column: int) -> None:
        """Raise :class:`~lftj.errors.NanError` if the column holds NaN."""

    def refuse_null(self, column: int) -> None:
        """Raise :class:`~lftj.errors.NullError` if a column of a wide relation holds NULL that must not."""

    def check_functional(self) -> None:
        """Raise :class:`~lftj.errors.FunctionalConflictError` if the last column is no function."""

    @property
    def statistics_of(self) -> object:
        """What its statistics are kept with, and go with: many versions share one."""

    def statistics_column(self, column: int) -> tuple[np.ndarray, bool]:
        """Codes of a column, near enough to the table's, and whether they are sorted."""


Catalog = Mapping[str, Table]


@dataclass(frozen=True)
class IndexUse:
    """An index that a plan reads."""

    relation: str
    key: IndexKey
    side: Side = Side.NEW
