"""Z-sets under construction: encoded rows come in batches, the net rows come out sorted.

A Z-set has an integer weight per row.  Batches are added up,

    Weighted = sum of the batches             (a row's weight is the sum of its weights)
    Distinct = distinct(sum of the batches)   (a row is in, with weight 1, or is not)

so a batch may repeat rows of itself and of earlier batches.

Invariants

1. The pending rows and the runs together add up to the batches so far.
2. A run's rows are strictly increasing (lexicographically, first column first)
   and none has weight 0.
3. A run has more than twice the rows of the run after it, so all runs together
   have fewer than twice the rows of the first: memory follows the number of
   distinct rows, not the number of rows added.
4. No weight wraps: the sum of all absolute weights so far is below 2**63.

Cost: O(n log n) sorting per level of merging, O(log(n / buffer)) levels for n
rows.  Merging sorts again instead of interleaving: numpy's vectorised sort is
as fast as a merge of two runs, and drops duplicates on the way.

Rows without columns are allowed (the groups of a global aggregate): the Z-set
then is a single weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lftj.errors import RangeError
from lftj.storage.sorting import sort_distinct, sort_distinct_weighted

BUFFER_ROWS = 1 << 20

Run = tuple[list[np.ndarray], np.ndarray]
"""Columns and weights, one row per position."""


class Weighted:
    """Rows of ``arity`` int64 columns with weights that add up.

    ``buffer_rows`` rows are collected before they are sorted.

    >>> rows = Weighted(1)
    >>> rows.add([np.array([7, 5, 7])])
    >>> rows.add([np.array([5, 9])], np.array([-1, 4]))
    >>> columns, weights = rows.finish()
    >>> columns[0].tolist(), weights.tolist()
    ([7, 9], [2, 4])
    """

    def __init__(self, arity: int, buffer_rows: int = BUFFER_ROWS) -> None:
        self._arity = arity
        self._buffer_rows = buffer_rows
        self._runs: list[Run] = []
        self._pending: list[Run] = []
        self._pending_rows = 0
        self._weight_total = 0

    def add(self, columns: Sequence[np.ndarray], weights: np.ndarray | None = None) -> None:
        """Add a batch: one int64 array per column, and int64 weights (default: 1 each).

        The arrays are copied or sorted before this returns: the caller may write to them again.
        Without columns there is nothing but the weights, and they must be given.
        Raises :class:`~lftj.errors.RangeError` when weights could add up beyond 64 bits.
        Amortised O(n log n).
        """
        if weights is None:
            if not columns:
                raise ValueError("rows without columns need weights: nothing else tells how many there are")
            weights = np.broadcast_to(np.int64(1), len(columns[0]))
        self._check_shape(columns, weights)
        if not len(weights):
            return
        self._guard(weights)
        if len(weights) >= self._buffer_rows:
            self._push(self._sorted(list(columns), np.ascontiguousarray(weights)))
            return
        self._pending.append(
            ([np.array(column, np.int64) for column in columns], np.array(weights, np.int64))
        )
        self._pending_rows += len(weights)
        if self._pending_rows >= self._buffer_rows:
            self._flush()

    def finish(self) -> Run:
        """The columns and the weights of the net rows, sorted; no weight is 0.  O(n log n).

        More may be added afterwards.
        """
        self._flush()
        while len(self._runs) > 1:
            self._merge_last_two()
        if not self._runs:
            return [np.empty(0, np.int64) for _ in range(self._arity)], np.empty(0, np.int64)
        return self._runs[0]

    def check_invariants(self) -> None:
        """Assert what the module's header states; for tests."""
        assert self._pending_rows == sum(len(weights) for _, weights in self._pending) < self._buffer_rows
        for columns, weights in self._runs:
            assert len(columns) == self._arity
            assert (weights != 0).all()
            assert all(len(column) == len(weights) for column in columns)
            rows = list(zip(*(column.tolist() for column in columns), strict=True))
            assert all(row < following for row, following in pairwise(rows))
        sizes = [len(weights) for _, weights in self._runs]
        assert all(size > 2 * following for size, following in pairwise(sizes))

    def _check_shape(self, columns: Sequence[np.ndarray], weights: np.ndarray) -> None:
        if len(columns) != self._arity or any(len(column) != len(weights) for column in columns):
            raise ValueError(
                f"a batch of {[len(column) for column in columns]} rows by column and {len(weights)} weights"
                f" does not fit a Z-set of {self._arity} columns"
            )

    def _guard(self, weights: np.ndarray) -> None:
        """Invariant 4."""
        self._weight_total = guarded_total(self._weight_total, weights)

    def _sorted(self, columns: list[np.ndarray], weights: np.ndarray) -> Run:
        """One run of the rows, in any order and with repetitions."""
        if columns:
            columns, weights = sort_distinct_weighted(columns, weights)
        else:
            weights = weights.sum(keepdims=True)
        present = weights != 0
        if present.all():
            return list(columns), weights
        return [column[present] for column in columns], weights[present]

    def _flush(self) -> None:
        if self._pending:
            run = self._sorted(*_concatenated(self._pending))
            self._pending, self._pending_rows = [], 0
            self._push(run)

    def _push(self, run: Run) -> None:
        if not len(run[1]):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2][1]) <= 2 * len(self._runs[-1][1]):
            self._merge_last_two()

    def _merge_last_two(self) -> None:
        merged = self._sorted(*_concatenated(self._runs[-2:]))
        self._runs[-2:] = [merged] if len(merged[1]) else []


class Distinct(Weighted):
    """The set of rows that were added, whatever their weights.

    >>> rows = Distinct(1)
    >>> rows.add([np.array([7, 5, 7])])
    >>> rows.finish()[0][0].tolist()
    [5, 7]
    """

    def add(self, columns: Sequence[np.ndarray], weights: np.ndarray | None = None) -> None:
        """Add a batch; rows of weight 0 are not in it.

        A set cannot tell what to take back: ValueError for a negative weight.
        Otherwise as :meth:`Weighted.add`.
        """
        if weights is not None and len(weights) and int(weights.min()) <= 0:
            if int(weights.min()) < 0:
                raise ValueError("a set of rows takes no negative weights")
            self._check_shape(columns, weights)
            columns, weights = [column[weights > 0] for column in columns], weights[weights > 0]
        super().add(columns, weights)

    def finish(self) -> Run:
        """The columns of the rows, sorted, and read-only weights of 1 that take no memory."""
        columns, weights = super().finish()
        return columns, np.broadcast_to(np.int64(1), len(weights))

    def _guard(self, weights: np.ndarray) -> None:
        """Weights are not added up."""

    def _sorted(self, columns: list[np.ndarray], weights: np.ndarray) -> Run:
        if columns:
            columns = list(sort_distinct(columns))
            return columns, np.broadcast_to(np.int64(1), len(columns[0]))
        return [], np.ones(min(len(weights), 1), np.int64)


def guarded_total(total: int, weights: np.ndarray) -> int:
    """``total`` and the absolute values of int64 ``weights``; RangeError where that is ``2**63`` or more.

    >>> guarded_total(2**62, np.array([-(2**61), 5])) == 2**62 + 2**61 + 5
    True
    """
    # Also right for -2**63, which has no absolute value in int64.
    magnitudes = np.abs(weights).view(np.uint64)
    total += int((magnitudes >> 32).sum()) * 2**32 + int((magnitudes & (2**32 - 1)).sum())
    if total >= 2**63:
        raise RangeError("there are more than 2**63 assignments: their number does not fit int64")
    return total


def _concatenated(runs: Sequence[Run]) -> Run:
    columns = [np.concatenate(parts) for parts in zip(*(columns for columns, _ in runs), strict=True)]
    return columns, np.concatenate([weights for _, weights in runs])
