"""Checks of what the engine takes on trust, for those who change it.

Relations, tries and versions are made of rows that the caller says are sorted
and distinct, and of changes that the caller says are changes.  Where that is
not so, nothing fails at once: weights and results are wrong later.  With
``LFTJ_DEBUG=1`` in the environment, read once, each of these is looked at where
it comes in; the project's tests run so.  Threads of a search begin at once then (:mod:`lftj.search.shares`).

Cost: O(n) for n rows that come in, and O(log N) for each changed row of an
index of N tuples.  Switched off: nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

enabled = os.environ.get("LFTJ_DEBUG", "0") not in ("", "0")


def check_rows(columns: Sequence[np.ndarray] | np.ndarray, what: str) -> None:
    """Raise AssertionError unless the rows of these int64 columns increase strictly, lexicographically.

    >>> check_rows([np.array([1, 1, 4]), np.array([3, 5, 2])], "r")
    >>> check_rows([np.array([1, 1, 4]), np.array([5, 5, 2])], "r")
    Traceback (most recent call last):
    AssertionError: r: row 1 is (1, 5), after (1, 5): rows are to be sorted and distinct
    """
    n_rows = len(columns[0]) if len(columns) else 0
    for column in columns:
        if len(column) != n_rows:
            lengths = sorted({len(column) for column in columns})
            raise AssertionError(f"{what}: the columns have {lengths} rows")
        if column.dtype != np.int64:
            raise AssertionError(f"{what}: a column is of type {column.dtype}, not int64")
    if n_rows < 2:
        return
    rises = columns[0][1:] > columns[0][:-1]
    if rises.all():
        return
    equal = columns[0][1:] == columns[0][:-1]
    for column in columns[1:]:
        rises |= equal & (column[1:] > column[:-1])
        equal &= column[1:] == column[:-1]
    if not rises.all():
        row = int(np.argmin(rises)) + 1
        before, here = (tuple(int(column[i]) for column in columns) for i in (row - 1, row))
        raise AssertionError(
            f"{what}: row {row} is {here}, after {before}: rows are to be sorted and distinct"
        )


def check_weights(held: np.ndarray, weights: np.ndarray, what: str) -> None:
    """Raise AssertionError unless every row comes, +1, that was absent, or goes, -1, that was there.

    ``held``: int64, the weights of the changed rows before.

    >>> check_weights(np.array([0, 1]), np.array([1, -1]), "r")
    >>> check_weights(np.array([0, 1]), np.array([-1, -1]), "r")
    Traceback (most recent call last):
    AssertionError: r: row 0 has weight 0 and changes by -1
    """
    if held.shape != weights.shape:
        raise AssertionError(f"{what}: there are {len(held)} rows and {len(weights)} weights")
    after = held + weights
    wrong = (np.abs(weights) != 1) | (after < 0) | (after > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise AssertionError(f"{what}: row {row} has weight {held[row]} and changes by {weights[row]}")
