"""Joining interval records of one prefix and context: touching ones always, others for want of memory.

Records are int64 (columns, records): prefix, lo, hi, context, with lo in row ``lo_at``; sorted by prefix,
context, lo and hi.  Those that agree on prefix and context are a *family*.  Joining replaces
neighbours of a family by the interval from the first lo to the greatest hi: a
superset, which is all that soundness asks for (docs/design/engine.md section 4).

Invariants

1. Every key that a family held before, it holds after.
2. After :func:`join_touching`, between neighbours of a family lies at least one key that neither holds.
3. Joining the records on both sides of a gap leaves all other gaps as they are: so the smallest
   gaps can be chosen all at once.

Cost: one pass, and for :func:`join_smallest_gaps` one selection (``numpy.partition``), O(n).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX
from indices.record_packing import unsigned

_NO_GAP = np.uint64(2**64 - 1)
"""Stands before a family's first record; a gap between two keys is less."""


@part
def _gap(rows, lo_at, row, hi):
    """From hi to the row's lo, as uint64; 0 if lo is not greater; _NO_GAP if the row begins a family."""
    lo = rows[lo_at, row]
    for column in range(rows.shape[0]):
        if column != lo_at and column != lo_at + 1 and rows[column, row] != rows[column, row - 1]:
            return _NO_GAP
    if lo <= hi:
        return np.uint64(0)
    return unsigned(lo) - unsigned(hi)


@kernel
def _join(rows, lo_at, widest, n_widest, joined):
    """Join over gaps below ``widest`` (uint64), and over the first ``n_widest`` gaps of that width.

    rows: as the module says.  ``joined``: of the same shape, written.  Returns the number of records in it.
    """
    kept = -1
    hi = np.int64(KEY_MAX)
    for row in range(rows.shape[1]):
        gap = _NO_GAP
        if row > 0:
            gap = _gap(rows, lo_at, row, hi)
        join = gap < widest
        if gap == widest and gap != _NO_GAP and n_widest > 0:
            join = True
            n_widest -= 1
        if join:
            hi = max(hi, rows[lo_at + 1, row])
        else:
            kept += 1
            hi = rows[lo_at + 1, row]
            for column in range(rows.shape[0]):
                joined[column, kept] = rows[column, row]
        joined[lo_at + 1, kept] = hi
    return kept + 1


@kernel
def _gaps(rows, lo_at, gaps):
    """Fill ``gaps``, uint64 (records,): the gap before each record, _NO_GAP before the first of a family."""
    gaps[0] = _NO_GAP
    for row in range(1, rows.shape[1]):
        gaps[row] = _gap(rows, lo_at, row, rows[lo_at + 1, row - 1])


def join_touching(rows: np.ndarray, lo_at: int) -> np.ndarray:
    """Join records of a family that overlap or whose keys follow each other.

    >>> join_touching(np.array([[7, 7, 7, 8], [1, 4, 8, 8], [3, 6, 9, 9]]), 1).tolist()
    [[7, 7, 8], [1, 8, 8], [6, 9, 9]]
    """
    return _joined(rows, lo_at, np.uint64(1), rows.shape[1])


def count_families(rows: np.ndarray, lo_at: int) -> int:
    """How many families there are among one or more records: what joining can come down to.

    >>> count_families(np.array([[7, 7, 7, 8], [1, 4, 8, 8], [3, 6, 9, 9]]), 1)
    2
    """
    return _joined(rows, lo_at, _NO_GAP, 0).shape[1]


def join_smallest_gaps(rows: np.ndarray, lo_at: int, n_kept: int) -> np.ndarray:
    """Join over the smallest gaps of all, until ``n_kept`` records are left, or one of each family.

    There are one or more records, and touching ones are joined already.

    >>> join_smallest_gaps(np.array([[0, 0, 0], [1, 5, 8], [2, 6, 9]]), 1, 2).tolist()
    [[0, 0], [1, 5], [2, 9]]
    """
    gaps = np.empty(rows.shape[1], np.uint64)
    _gaps(rows, lo_at, gaps)
    gaps = gaps[gaps != _NO_GAP]
    n_joins = min(rows.shape[1] - n_kept, len(gaps))
    if n_joins <= 0:
        return rows
    gaps.partition(n_joins - 1)
    widest = gaps[n_joins - 1]
    return _joined(rows, lo_at, widest, int((gaps[:n_joins] == widest).sum()))


def _joined(rows: np.ndarray, lo_at: int, widest: np.uint64, n_widest: int) -> np.ndarray:
    joined = np.empty_like(rows)
    count = _join(rows, lo_at, widest, n_widest, joined)
    return np.ascontiguousarray(joined[:, :count])
