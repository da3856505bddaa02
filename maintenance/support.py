"""Support counts: how many body assignments stand behind each head tuple (ENGINE.md section 6; ILFTJ 2.2).

A Z-set of head tuples as sorted runs.  A signed assignment adds to its tuple's
support; the *visible* change is where support crosses zero.

Invariants

1. A version never changes.
2. Supports are never negative: an erased assignment was there.
3. A run has more than twice the tuples of the run after it.

Cost: O(m (log m + arity log n)) for m signed assignments, and O(log n) per
assignment for merges, amortised.  What begins with a prefix is found in
O(arity log n) per run, of which there are O(log n), and then read.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from indices.compiled import kernel
from lftj.index_version import X_HEADER, X_LEVEL_FIELDS, IndexRun, present, with_run
from lftj.seek import lower_bound, upper_bound
from lftj.sorting import sort_distinct_weighted


class SupportVersion:
    """One version of the support counts of a head.

    >>> empty = SupportVersion(1)
    >>> first, columns, weights = empty.step([np.array([7, 7, 5])], np.array([1, 1, 1]))
    >>> columns[0].tolist(), weights.tolist()
    ([5, 7], [1, 1])
    >>> second, columns, weights = first.step([np.array([7, 5])], np.array([-1, -1]))
    >>> columns[0].tolist(), weights.tolist()
    ([5], [-1])
    """

    def __init__(self, arity: int, runs: tuple[IndexRun, ...] = (), least: int = 1) -> None:
        """``least``: the support from which on a tuple is visible."""
        self.arity = arity
        self.runs = runs
        self.least = least
        fields = [arity, len(runs), 0, 0, 0] + [0] * (arity * X_LEVEL_FIELDS)  # an empty base
        assert len(fields) == X_HEADER + arity * X_LEVEL_FIELDS
        for run in runs:
            fields += (run.address, run.n_tuples)
        self._memory = np.array(fields, dtype=np.int64)

    @property
    def nbytes(self) -> int:
        return sum(run.rows.nbytes for run in self.runs)

    def step(
        self, columns: Sequence[np.ndarray], signs: np.ndarray
    ) -> tuple[SupportVersion, list[np.ndarray], np.ndarray]:
        """The version after signed assignments, and the visible change: sorted distinct tuples, +1 or -1."""
        following, rows, before, after = self.added(columns, signs)
        shown = after >= self.least
        visible = (before >= self.least) != shown
        return following, [column[visible] for column in rows], np.where(shown, 1, -1)[visible]

    def added(
        self, columns: Sequence[np.ndarray], signs: np.ndarray
    ) -> tuple[SupportVersion, list[np.ndarray], np.ndarray, np.ndarray]:
        """The version after signed assignments; the tuples that changed, sorted; supports before and after.

        >>> first = SupportVersion(1).added([np.array([7, 7, 5])], np.array([1, 1, 1]))[0]
        >>> _, (column,), before, after = first.added([np.array([7, 5, 5])], np.array([-1, -1, 1]))
        >>> column.tolist(), before.tolist(), after.tolist()
        ([7], [2], [1])
        """
        rows, weights = sort_distinct_weighted(columns, signs)
        kept = weights != 0
        rows, weights = [np.ascontiguousarray(column[kept]) for column in rows], weights[kept]
        if not len(weights):
            return self, rows, weights, weights
        before = np.zeros(len(weights), dtype=np.int64)
        present(self._memory, np.stack(rows), before)
        after = before + weights
        assert (after >= 0).all(), "an assignment went that had not been there"
        runs = with_run(self.runs, IndexRun.of(rows, weights), self.arity)
        return SupportVersion(self.arity, runs, self.least), rows, before, after

    def visible(self) -> list[np.ndarray]:
        """The columns of all visible tuples, sorted; O(n log n)."""
        columns, weights = self._summed()
        return [column[weights >= self.least] for column in columns]

    def tuples(self) -> tuple[list[np.ndarray], np.ndarray]:
        """All tuples that have support, sorted, and their supports; O(n log n)."""
        columns, weights = self._summed()
        return [column[weights > 0] for column in columns], weights[weights > 0]

    def below(
        self, prefixes: Sequence[np.ndarray], n_prefixes: int
    ) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """The tuples that begin with any of some prefixes, in their order and sorted within each.

        ``prefixes``: the first columns, ``n_prefixes`` rows.  Returns the rows of the prefixes, the
        tuples' columns and their supports.

        >>> support = SupportVersion(2).added([np.array([1, 1, 2]), np.array([8, 8, 9])], np.ones(3, int))[0]
        >>> rows, columns, supports = support.below([np.array([2, 1])], 2)
        >>> rows.tolist(), [column.tolist() for column in columns], supports.tolist()
        ([0, 1], [[2, 1], [9, 8]], [1, 2])
        """
        parts = [np.empty((self.arity + 2, 0), np.int64)]
        for run, starts, ends in self._ranges(prefixes, n_prefixes):
            lengths = ends - starts
            prefix_rows = np.repeat(np.arange(n_prefixes), lengths)
            places = np.arange(int(lengths.sum())) + np.repeat(
                starts - (np.cumsum(lengths) - lengths), lengths
            )
            sums = run.rows[self.arity * run.n_tuples :]
            columns = [column[places] for column in run.columns(self.arity)]
            parts.append(np.stack([prefix_rows, *columns, sums[places + 1] - sums[places]]))
        *found, weights = np.concatenate(parts, axis=1)
        rows, weights = sort_distinct_weighted(found, weights)
        kept = weights != 0
        return rows[0][kept], [column[kept] for column in rows[1:]], weights[kept]

    def totals(self, prefixes: Sequence[np.ndarray], n_prefixes: int) -> np.ndarray:
        """The support, added up, of all that begins with each prefix; arguments as for :meth:`below`.

        >>> support = SupportVersion(1).added([np.array([7, 7, 5])], np.ones(3, int))[0]
        >>> support.totals([np.array([5, 6, 7])], 3).tolist(), support.totals([], 1).tolist()
        ([1, 0, 2], [3])
        """
        totals = np.zeros(n_prefixes, np.int64)
        for run, starts, ends in self._ranges(prefixes, n_prefixes):
            sums = run.rows[self.arity * run.n_tuples :]
            totals += sums[ends] - sums[starts]
        return totals

    def _ranges(
        self, prefixes: Sequence[np.ndarray], n_prefixes: int
    ) -> Iterator[tuple[IndexRun, np.ndarray, np.ndarray]]:
        """Per run, the half-open range of the tuples that begin with each prefix."""
        table = np.empty((len(prefixes), n_prefixes), np.int64)
        for level, column in enumerate(prefixes):
            table[level] = column
        for run in self.runs:
            starts, ends = np.empty(n_prefixes, np.int64), np.empty(n_prefixes, np.int64)
            _prefix_ranges(run.rows, run.n_tuples, table, starts, ends)
            yield run, starts, ends

    def _summed(self) -> tuple[list[np.ndarray], np.ndarray]:
        if not self.runs:
            return [np.empty(0, np.int64) for _ in range(self.arity)], np.empty(0, np.int64)
        columns = [np.concatenate(c) for c in zip(*(r.columns(self.arity) for r in self.runs), strict=True)]
        return sort_distinct_weighted(columns, np.concatenate([run.weights for run in self.runs]))

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        sizes = [run.n_tuples for run in self.runs]
        assert all(size > 2 * after for size, after in pairwise(sizes))
        assert (self._summed()[1] >= 0).all()


@kernel
def _prefix_ranges(rows, length, prefixes, starts, ends):
    """Half-open ranges of a run's tuples that begin with given prefixes.

    rows: the run's flat array, of ``length`` tuples; prefixes: int64 (levels, n); starts, ends: int64
    (n,), written.
    """
    levels, n = prefixes.shape
    for row in range(n):
        start, end = np.int64(0), np.int64(length)
        for level in range(levels):
            column = rows[level * length : (level + 1) * length]
            start, end = (
                lower_bound(column, start, end, prefixes[level, row]),
                upper_bound(column, start, end, prefixes[level, row]),
            )
        starts[row], ends[row] = start, end
