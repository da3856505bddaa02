"""Bags: relations in which a row may be there several times, as sets of tuples with one more column.

    (tea, 250) three times   =   (tea, 250, 0), (tea, 250, 1), (tea, 250, 2)

Invariant: the copies of a row are numbered 0, 1, 2, ... without a gap, so the tuples say how often each row
is there and nothing else: copies come behind the last and go from there.

Cost: of a load one sort, as for a set; of a change, O(log c) look-ups of each row that has c copies before or
after, and a tuple per copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from lftj.storage.sorting import sort_distinct_weighted


class Holding(Protocol):
    """A version of a relation."""

    def weights(self, columns: Sequence[np.ndarray]) -> np.ndarray: ...


def all_copies(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows, int64 in any order and with repetitions, as the sorted tuples of a bag.

    >>> [column.tolist() for column in all_copies([np.array([7, 5, 7])])]
    [[5, 7, 7], [0, 0, 1]]
    """
    rows, counts = sort_distinct_weighted(columns, np.ones(len(columns[0]), np.int64))
    return [*(np.repeat(column, counts) for column in rows), _ranges(np.zeros(len(counts), np.int64), counts)]


def bag_change(
    version: Holding, rows: Sequence[np.ndarray] | np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What adding net rows does to a bag: ``weight`` copies come, or go as far as there are some.

    ``rows``: sorted and distinct.  Returns the tuples that come and go, int64 (columns + 1, n), sorted, and
    1 or -1 for each.
    """
    rows = np.array(rows, np.int64).reshape(len(rows), len(weights))
    before = copies_of(version, rows)
    after = np.maximum(before + weights, 0)
    tuples, signs, _ = copies_between(rows, before, after)
    return tuples, signs


def timed_bag_change(
    version: Holding, rows: np.ndarray, times: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of changes one after the other: at each time as :func:`bag_change` would.

    ``rows``: sorted, equal ones by time.  Returns tuples, times and signs, sorted by tuple, then by time.
    """
    starts = np.ones(len(times), bool)
    starts[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    there = copies_of(version, rows[:, starts])[np.cumsum(starts) - 1].tolist()
    after, count = np.empty(len(times), np.int64), 0
    for number, (is_first, weight) in enumerate(zip(starts.tolist(), weights.tolist(), strict=True)):
        count = max(0, (there[number] if is_first else count) + weight)
        after[number] = count
    before = np.where(starts, there, np.roll(after, 1))
    tuples, signs, counts = copies_between(rows, before, after)
    times = np.repeat(times, counts)
    order = np.lexsort((times, *tuples[::-1]))
    return np.ascontiguousarray(tuples[:, order]), times[order], signs[order]


def copies_of(version: Holding, rows: np.ndarray) -> np.ndarray:
    """How often each row, int64 (columns, n), is in a bag: by doubling, then by bisection."""
    least = np.zeros(rows.shape[1], np.int64)  # so many copies are there
    bound = np.ones(rows.shape[1], np.int64)  # not so many, or not known

    def has(chosen: np.ndarray, number: np.ndarray) -> np.ndarray:
        return version.weights([*rows[:, chosen], number - 1]) > 0

    open_ = np.arange(rows.shape[1])
    while len(open_):
        open_ = open_[has(open_, bound[open_])]
        least[open_] = bound[open_]
        bound[open_] *= 2
    open_ = np.flatnonzero(bound - least > 1)
    while len(open_):
        middle = (least[open_] + bound[open_]) // 2
        found = has(open_, middle)
        least[open_[found]] = middle[found]
        bound[open_[~found]] = middle[~found]
        open_ = open_[bound[open_] - least[open_] > 1]
    return least


def copies_between(
    rows: np.ndarray, before: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tuples by which the numbers of copies differ, 1 or -1 for each, and how many they are per row."""
    counts = np.abs(after - before)
    copies = _ranges(np.minimum(before, after), counts)
    tuples = np.concatenate([np.repeat(rows, counts, axis=1), copies[np.newaxis]])
    return tuples, np.repeat(np.sign(after - before), counts), counts


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers from each start on, as many as its count, one range behind the other.

    >>> _ranges(np.array([4, 0]), np.array([2, 1])).tolist()
    [4, 5, 0]
    """
    ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)
