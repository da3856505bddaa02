"""The first rows of what begins with a prefix, in support counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.storage.runs import IndexRun
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.support import SupportVersion
from maintenance.groups.window_reach import is_before

Rows = tuple[np.ndarray, np.ndarray]
"""Sorted rows, int64 (columns, n), and how often each is there."""


def first_rows(
    version: SupportVersion, prefixes: Columns, n_prefixes: int, n_sorted: int, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the tuples that begin with each prefix the first ``most``, and those alike to the last of them.

    ``n_sorted``: columns in which rows are alike.  Returns the prefixes' numbers, the tuples and their
    supports.  O(log n) per run and prefix.

    >>> rows = [np.array([1, 2, 2, 3]), np.array([0, 0, 1, 0])]
    >>> version, *_ = SupportVersion(2).added(rows, np.ones(4, int))
    >>> _, rows, supports = first_rows(version, [], 1, 1, 2)
    >>> rows.tolist(), supports.tolist()
    ([[1, 2, 2], [0, 0, 1]], [1, 1, 1])
    """
    runs = list(version.ranges(prefixes, n_prefixes))
    found: list[tuple[Columns, np.ndarray]] = [
        (list(np.empty((version.arity + 1, 0), np.int64)), np.empty(0, np.int64))
    ]
    for prefix in range(n_prefixes):
        ranges = [(run, int(starts[prefix]), int(stops[prefix])) for run, starts, stops in runs]
        rows, supports = _first_of(ranges, version.arity, n_sorted, most)
        found.append(([np.full(len(supports), prefix), *rows], supports))
    columns, supports = gathered(found)
    return columns[0], np.array(columns[1:]), supports


def _first_of(ranges: Sequence[tuple[IndexRun, int, int]], arity: int, n_sorted: int, most: int) -> Rows:
    """The first rows of what stands in a range of each run, ``most`` of them and those alike to the last; all
    where there are fewer.
    """
    taken = most + 8
    while (found := _first_of_taken(ranges, arity, n_sorted, most, taken)) is None:
        taken *= 4
    return found


def _first_of_taken(
    ranges: Sequence[tuple[IndexRun, int, int]], arity: int, n_sorted: int, most: int, taken: int
) -> Rows | None:
    """See :func:`_first_of`; None where ``taken`` tuples of each run are too few."""
    pieces, ends = [], []
    for run, start, end in ranges:
        stop = min(end, start + taken)
        columns = [column[start:stop] for column in run.columns(arity)]
        pieces.append((columns, run.weights_of(start, stop)))
        if stop < end:
            ends.append(tuple(int(column[-1]) for column in columns[:n_sorted]))
    if not pieces:
        return np.empty((arity, 0), np.int64), np.empty(0, np.int64)
    rows, supports = net_rows(*gathered(pieces))
    if ends:  # what lies on this side of all of them is complete
        complete = is_before(rows[:n_sorted], np.array(min(ends)))
        rows, supports = rows[:, complete], supports[complete]
    total = np.cumsum(supports)
    if not len(total) or total[-1] < most:
        return None if ends else (rows, supports)
    last_row = rows[:n_sorted, int(np.searchsorted(total, most))]
    kept = is_before(rows[:n_sorted], last_row, or_equal=True)
    return rows[:, kept], supports[kept]
