"""`TimedChange`: what each of many transactions does to one relation, in one table.

The transactions of a *batch* are numbered 0, 1, ... in their order; the number is the *time* at which
what a transaction changes comes or goes.

Invariants

1. Rows are sorted, and those that are alike by time; one row has one change at one time.
2. The changes of one row come and go in turns, for a row is there or is not.

Cost: one sort of the n changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.sorting import first_rows_of_equal
from maintenance.changes.change import Change


@dataclass(frozen=True, eq=False)
class TimedChange:
    """``columns``: int64 (columns, n), a row each; ``times``: int64 (n,); ``signs``: int64 (n,), +1 or -1.

    >>> change = TimedChange(np.array([[5, 5, 7]]), np.array([0, 2, 2]), np.array([1, -1, -1]))
    >>> change.net.columns.tolist(), change.net.weights.tolist(), change.touched.tolist()
    ([[7]], [-1], [[5, 7]])
    >>> change.at(2).columns.tolist(), change.at(2).weights.tolist(), len(change.at(1))
    ([[5, 7]], [-1, -1], 0)
    """

    columns: np.ndarray
    times: np.ndarray
    signs: np.ndarray

    def __len__(self) -> int:
        return len(self.signs)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the changes of each row begin, and the end of the last."""
        return starts_of(self.columns)

    @cached_property
    def touched(self) -> np.ndarray:
        """The rows that change at any time, each once, int64 (columns, rows)."""
        return self.columns.take(self.offsets[:-1], axis=1)

    @cached_property
    def were_there(self) -> np.ndarray:
        """Whether each touched row was there before all of it: then it goes first."""
        return self.signs[self.offsets[:-1]] < 0

    @cached_property
    def net(self) -> Change:
        """What all the transactions do together."""
        if not len(self):
            return Change(self.columns, self.signs)
        starts = self.offsets[:-1]
        sums = np.add.reduceat(self.signs, starts)
        lasting = sums != 0
        return Change(self.columns.take(starts[lasting], axis=1), sums[lasting])

    @cached_property
    def _by_time(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the changes by time, those of one in the order of the rows; and their times."""
        order = np.argsort(self.times, kind="stable")
        return order, self.times[order]

    def at(self, time: int) -> Change:
        """What one transaction does."""
        order, times = self._by_time
        first, last = np.searchsorted(times, (time, time + 1))
        chosen = order[first:last]
        return Change(self.columns.take(chosen, axis=1), self.signs[chosen])


def timed(
    columns: Columns, times: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed rows added up by row and time: rows, times and weights, sorted by row, then by time."""
    rows, weights = net_rows([*columns, times], weights)
    return np.ascontiguousarray(rows[:-1]), rows[-1].copy(), weights


def starts_of(rows: np.ndarray) -> np.ndarray:
    """Where each of sorted rows, int64 (columns, n), comes first, and n behind.

    >>> starts_of(np.array([[4, 4, 6]])).tolist()
    [0, 2, 3]
    """
    n_rows = rows.shape[1]
    return np.append(first_rows_of_equal(list(rows), n_rows), n_rows)


def running(offsets: np.ndarray, before: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Running totals of several series one behind the other: before each item, and after it.

    ``offsets``: where each series begins, and the end of the last: a series may have no item, the last one
    too; ``before``: the total before each series.

    >>> earlier, later = running(np.array([0, 2, 3, 3]), np.array([5, 0, 4]), np.array([1, -2, 7]))
    >>> earlier.tolist(), later.tolist()
    ([5, 6, 0], [6, 4, 7])
    """
    sums = np.concatenate([[0], np.cumsum(weights)])  # before each item, and behind the last
    later = sums[1:] + np.repeat(before - sums[offsets[:-1]], np.diff(offsets))
    return later - weights, later
