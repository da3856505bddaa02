"""Statistics of the data that the planner reads: distinct keys, fan-outs, skew.

For every column that a rule uses there is one :class:`Histogram`: its distinct
keys with the number of rows of each.  From these come

* distinct counts and average fan-outs of any prefix of an atom's variables;
* the *weighted* fan-out: how many rows a key meets when keys come as often as
  other atoms bring them.  On skewed data this is far from the average: a key
  that is reached often is also left often (the size of the two-atom join is
  exactly the sum of the products of both counts);
* the share of rows that a bound by a literal leaves.

Cost: one sort per column, once per relation; pairs of histograms are merged in
O(keys).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from lftj.relation import Relation


@dataclass(frozen=True, eq=False)
class Histogram:
    """``keys``: int64, strictly increasing; ``counts``: rows per key, float64."""

    keys: np.ndarray
    counts: np.ndarray

    @property
    def n_keys(self) -> int:
        return len(self.keys)

    @property
    def n_rows(self) -> float:
        return float(self.counts.sum())

    def at(self, keys: np.ndarray) -> np.ndarray:
        """Counts of ``keys``; 0 for those that do not occur.

        >>> Histogram(np.array([1, 4]), np.array([2.0, 5.0])).at(np.array([4, 3])).tolist()
        [5.0, 0.0]
        """
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0.0)

    def share_between(self, low: int, high: int) -> float:
        """Share of the keys in the closed interval [low, high]."""
        if not len(self.keys):
            return 1.0
        first, last = np.searchsorted(self.keys, low), np.searchsorted(self.keys, high, side="right")
        return max(0.0, float(last - first)) / len(self.keys)


_histograms: WeakKeyDictionary[Relation, dict[int, Histogram]] = WeakKeyDictionary()


def histogram(relation: Relation, column: int) -> Histogram:
    """The histogram of one column; computed once per relation."""
    known = _histograms.setdefault(relation, {})
    if column not in known:
        keys, counts = np.unique(relation.codes[column], return_counts=True)
        known[column] = Histogram(keys, counts.astype(np.float64))
    return known[column]


def distinct(relation: Relation, columns: Sequence[int]) -> float:
    """Estimated number of distinct combinations of the columns.

    Exact for one column and for all; else as if rows fell independently into
    the product of the columns' keys.
    """
    if not columns:
        return 1.0
    n_rows = relation.n_rows
    if len(columns) == 1:
        return max(1.0, float(histogram(relation, columns[0]).n_keys))
    if len(set(columns)) == len(relation.codes):
        return max(1.0, float(n_rows))
    cells = 1.0
    for column in columns:
        cells *= max(1, histogram(relation, column).n_keys)
    return max(1.0, cells * -np.expm1(-n_rows / cells))


@dataclass(frozen=True)
class Source:
    """A column of a relation, as something that brings keys."""

    relation: Relation
    column: int

    def __hash__(self) -> int:
        return hash((id(self.relation), self.column))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.relation is other.relation and self.column == other.column


@functools.lru_cache(maxsize=512)
def weighted_fanout(of: Source, brought_by: tuple[Source, ...]) -> float:
    """Average rows per key of ``of``, keys weighted by the product of their counts in ``brought_by``.

    With nothing to bring keys, the plain average.
    """
    own = histogram(of.relation, of.column)
    if not own.n_keys:
        return 0.0
    if not brought_by:
        return own.n_rows / own.n_keys
    smallest = min(brought_by, key=lambda s: histogram(s.relation, s.column).n_keys)
    keys = histogram(smallest.relation, smallest.column).keys
    weights = np.ones(len(keys))
    for source in brought_by:
        weights *= histogram(source.relation, source.column).at(keys)
    total = float(weights.sum())
    if total == 0.0:
        return 0.0
    return float((weights * own.at(keys)).sum()) / total
