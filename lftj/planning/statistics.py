"""Statistics of the data that the planner reads: distinct keys, fan-outs, skew.

For every column that a rule uses there is one :class:`Histogram`: its distinct
keys with the number of rows of each.  From these come

* distinct counts and average fan-outs of any prefix of an atom's variables;
* the *weighted* fan-out: how many rows a key meets when keys come as often as
  other atoms bring them.  On skewed data this is far from the average: a key
  that is reached often is also left often (the size of the two-atom join is
  exactly the sum of the products of both counts);
* the share of keys or rows that a bound leaves: a literal, or another column's
  key plus a constant.

Estimates that ask for sizes and shares, not for keys, do with rows that are drawn
(:func:`about`): a wide relation's columns are not coded for them.

Histograms are kept as long as their relation lives, or the base that versions of it
share.  What combines several is computed from a sample of at most ``SAMPLE`` rows,
evenly spaced in key order: a key with more than a ``SAMPLE``-th of all rows is always among them.

Cost: once per column, O(range of keys) where keys are dense and one sort where
they are not (none for a declared first column); then O(SAMPLE * log keys) per
combination.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lftj.storage.catalog import Table
from lftj.storage.wide_columns import WideColumns

SAMPLE = 1024
"""Rows of a histogram that a combination with others looks at."""

DRAWS_SAMPLE = 128
"""Rows of a histogram that :meth:`Histogram.draws` looks at."""

DENSE = 8
"""Keys are counted by an array over their range when that has at most this many items per row."""


@dataclass(frozen=True, eq=False)
class Histogram:
    """``keys``: int64, strictly increasing; ``counts``: rows per key, float64."""

    keys: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, column: np.ndarray, is_sorted: bool = False) -> Histogram:
        """Count the keys of an int64 column.

        >>> histogram = Histogram.of(np.array([7, 2, 7]))
        >>> histogram.keys.tolist(), histogram.counts.tolist()
        ([2, 7], [1.0, 2.0])
        """
        if not len(column):
            return cls(np.empty(0, dtype=np.int64), np.empty(0))
        if not is_sorted:
            low, high = int(column.min()), int(column.max())
            if high - low < DENSE * len(column):
                counts = np.bincount(column - low)
                places = np.flatnonzero(counts)
                return cls(places + low, counts[places].astype(np.float64))
            column = np.sort(column)
        starts = np.concatenate([[0], np.flatnonzero(column[1:] != column[:-1]) + 1])
        return cls(column[starts], np.diff(starts, append=len(column)).astype(np.float64))

    @property
    def n_keys(self) -> float:
        """Distinct keys."""
        return len(self.keys)

    @property
    def fullest(self) -> float:
        """Rows of the key that has most of them, 1 of none."""
        return float(self.counts.max(initial=1.0))

    @property
    def n_rows(self) -> float:
        return float(self.starts[-1])

    @cached_property
    def starts(self) -> np.ndarray:
        """Rows before each key in key order, and at the end all rows: float64 (n_keys + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.counts)])

    def at(self, keys: np.ndarray) -> np.ndarray:
        """Counts of ``keys``; 0 for those that do not occur.

        >>> Histogram(np.array([1, 4]), np.array([2.0, 5.0])).at(np.array([4, 3])).tolist()
        [5.0, 0.0]
        """
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0.0)

    def sample(self, size: int = SAMPLE) -> tuple[np.ndarray, np.ndarray]:
        """Keys with a weight each, together all rows: every key, or those of ``size`` rows evenly spaced."""
        if self.n_keys <= size:
            return self.keys, self.counts
        rows = (np.arange(size) + 0.5) * (self.n_rows / size)
        places = np.searchsorted(self.starts, rows, side="right") - 1
        return self.keys[places], np.full(size, self.n_rows / size)

    def draws(self, n_keys: float) -> float:
        """How often each row is drawn on average when draws give ``n_keys`` distinct keys.

        Frequent keys are drawn more than once; this is one step from as many draws as keys.

        >>> round(Histogram(np.arange(4), np.array([97.0, 1.0, 1.0, 1.0])).draws(2.0), 3)
        0.044
        """
        keys, weights = self.sample(DRAWS_SAMPLE)
        counts = weights if len(keys) == self.n_keys else self.at(keys)
        draws = n_keys / max(1.0, self.n_rows)
        length = float(-np.expm1(counts * -draws) @ (weights / counts))
        return draws * max(1.0, n_keys / length) if length else draws

    def share_between(self, low: np.ndarray, high: np.ndarray, of_rows: bool) -> np.ndarray:
        """Share of the keys, or of the rows, in each closed interval [low, high].

        >>> histogram = Histogram(np.array([1, 4]), np.array([1.0, 3.0]))
        >>> histogram.share_between(np.array([2, 5]), np.array([9, 9]), of_rows=True).tolist()
        [0.75, 0.0]
        """
        if not len(self.keys):
            return np.ones(len(low))
        first, last = np.searchsorted(self.keys, low), np.searchsorted(self.keys, high, side="right")
        passed = self.starts[last] - self.starts[first] if of_rows else last - first
        return np.maximum(0.0, passed) / (self.n_rows if of_rows else len(self.keys))


@dataclass(frozen=True, eq=False)
class DrawnHistogram(Histogram):
    """Of rows drawn at random, with replacement; ``counts`` are of those.

    ``n_all``: rows of the table.  Its keys are estimated as if all came equally often: then of K keys n draws
    find ``K * (1 - exp(-n / K))``.

    >>> keys = np.random.default_rng(1).integers(0, 1000, 4096)
    >>> 950 < DrawnHistogram.of_rows(keys, 600_000).n_keys < 1050
    True
    """

    n_all: int

    @classmethod
    def of_rows(cls, column: np.ndarray, n_all: int) -> DrawnHistogram:
        drawn = Histogram.of(column)
        return cls(drawn.keys, drawn.counts, n_all)

    @cached_property
    def n_keys(self) -> float:
        found, draws = len(self.keys), self.n_rows
        low, high = float(found), float(max(found, self.n_all))
        while high - low > 0.01 * low:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if middle * -math.expm1(-draws / middle) < found else (low, middle)
        return high

    @property
    def fullest(self) -> float:
        """What a key is drawn more often than chance alone may have it, but no less than the average."""
        most = self.counts.max(initial=0.0)
        rows = (most - 2.0 * math.sqrt(most)) * self.n_all / max(1.0, self.n_rows)
        return max(1.0, rows, self.n_all / max(1.0, self.n_keys))


_histograms: WeakKeyDictionary[Any, dict[int, Histogram]] = WeakKeyDictionary()
_drawn: WeakKeyDictionary[Any, dict[int, Histogram]] = WeakKeyDictionary()
_keeping = threading.Lock()


def histogram(table: Table, column: int) -> Histogram:
    """The histogram of one column; computed once for all versions on one base."""
    with _keeping:
        known = _histograms.setdefault(table.statistics_of, {})
    found = known.get(column)
    if found is None:
        found = known[column] = Histogram.of(*table.statistics_column(column))
    return found


def about(table: Table, column: int) -> Histogram:
    """The histogram of one column, or of a large wide relation's that of rows that are drawn."""
    with _keeping:
        whole, drawn = (kept.setdefault(table.statistics_of, {}) for kept in (_histograms, _drawn))
    found = whole.get(column) or drawn.get(column)
    if found is None:
        columns = table.columns() if table.schema.wide else None
        rows = columns.drawn(column) if isinstance(columns, WideColumns) else None
        if rows is None:
            return histogram(table, column)
        found = drawn[column] = DrawnHistogram.of_rows(rows, table.n_rows)
    return found


def combinations(table: Table, keys: Mapping[int, float]) -> float:
    """Estimated number of distinct combinations of some columns; ``keys``: distinct ones, by column.

    Exact for one column of a base and for all; else as if rows fell independently into
    the product of the columns' keys.
    """
    if len(keys) < 2:
        return max(1.0, float(sum(keys.values())))
    n_rows = table.n_rows
    if keys.keys() >= set(table.schema.identity):
        return max(1.0, float(n_rows))
    cells = 1.0
    for n_keys in keys.values():
        cells *= max(1, n_keys)
    return max(1.0, cells * -math.expm1(-n_rows / cells))
