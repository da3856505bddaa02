"""Support counts: how many body assignments stand behind each head tuple (ENGINE.md section 6; ILFTJ 2.2).

A Z-set of head tuples as sorted runs.  A signed assignment adds to its tuple's
support; the *visible* change is where support crosses zero.

Invariants

1. A version never changes.
2. Supports are never negative: an erased assignment was there.
3. A run has more than twice the tuples of the run after it.

Cost: O(m (log m + arity log n)) for m signed assignments, and O(log n) per
assignment for merges, amortised.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lftj.index_version import X_HEADER, X_LEVEL_FIELDS, IndexRun, present, with_run
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

    def __init__(self, arity: int, runs: tuple[IndexRun, ...] = ()) -> None:
        self.arity = arity
        self.runs = runs
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
        rows, weights = sort_distinct_weighted(columns, signs)
        kept = weights != 0
        rows, weights = [np.ascontiguousarray(column[kept]) for column in rows], weights[kept]
        if not len(weights):
            return self, rows, weights
        before = np.zeros(len(weights), dtype=np.int64)
        present(self._memory, np.stack(rows), before)
        after = before + weights
        assert (after >= 0).all(), "an assignment went that had not been there"
        visible = (before > 0) != (after > 0)
        runs = with_run(self.runs, IndexRun.of(rows, weights), self.arity)
        following = SupportVersion(self.arity, runs)
        return following, [column[visible] for column in rows], np.where(after > 0, 1, -1)[visible]

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        sizes = [run.n_tuples for run in self.runs]
        assert all(size > 2 * after for size, after in pairwise(sizes))
        if not self.runs:
            return
        columns = [np.concatenate(c) for c in zip(*(r.columns(self.arity) for r in self.runs), strict=True)]
        _, weights = sort_distinct_weighted(columns, np.concatenate([run.weights for run in self.runs]))
        assert (weights >= 0).all()
