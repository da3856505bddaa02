"""`IntervalTree`: a static set of closed intervals, and which of them hold a key (ILFTJ 3.2).

The intervals lie sorted by their lower end, with the maxima of the upper ends over every 16
of them, every 256, and so on, as a scan above: one run of :mod:`indices.record_packing` without a
prefix, whose context is the interval's row number, and the max-scan of :mod:`indices.max_scan`,
where invariants and cost stand.

>>> tree = IntervalTree.from_intervals(np.array([1, 4, 9]), np.array([6, 12, 9]))
>>> tree.stab(5).tolist(), tree.stab(9).tolist(), tree.stab(13).tolist()
([0, 1], [1, 2], [])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from indices.max_scan import M_CONTEXT, M_QUERY, stab_runs
from indices.record_run import RecordRun, RunImage, check_run, plain_column, table_width

_FIRST_MATCHES = 64
_NO_TAIL = np.empty((3, 0), np.int64)
_NO_MARKS = np.empty(0, np.uint64)


class IntervalTree:
    """A static set of closed intervals of int64; made by :meth:`from_intervals`.

    ``KEY_MIN`` as lower end means minus infinity, ``KEY_MAX`` as upper end plus infinity.
    One thread at a time.
    """

    def __init__(self, runs: Sequence[RecordRun], payload: np.ndarray | None) -> None:
        self._payload = payload
        self._runs = runs  # none or one
        self._table = np.array([run.row for run in runs], np.int64).reshape(-1, table_width(0, 1))
        self.touched = 0
        """What stabs looked at so far, in intervals and scan nodes: a cost that no machine's speed enters."""

    @classmethod
    def from_intervals(cls, lo: np.ndarray, hi: np.ndarray, payload: np.ndarray | None = None) -> Self:
        """The tree over intervals ``[lo[i], hi[i]]``, int64, in any order, equal ones allowed.

        ``payload``: what stands for interval i in answers; without it, i does.  Raises
        :class:`indices.errors.KeyOrderError` where lo > hi, ``ValueError`` where lengths differ.
        """
        lengths = {len(column) for column in (lo, hi, payload) if column is not None}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")
        runs = []
        if len(lo):
            runs = [RunImage.of([], plain_column(lo), plain_column(hi), [np.arange(len(lo))]).written()]
        return cls(runs, None if payload is None else np.array(payload))

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, the payload included."""
        payload = 0 if self._payload is None else self._payload.nbytes
        return sum(run.nbytes for run in self._runs) + self._table.nbytes + payload

    def stab(self, key: int) -> np.ndarray:
        """The payloads, or row numbers, of all intervals that hold the key, by lower end.

        >>> tree = IntervalTree.from_intervals(np.array([5, 1]), np.array([7, 9]), np.array([50, 10]))
        >>> tree.stab(6).tolist()
        [10, 50]
        """
        return self.stab_many(np.array([key], np.int64))[1]

    def stab_many(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For many keys at once: (query numbers, ascending; payloads or row numbers of what holds that key).

        >>> tree = IntervalTree.from_intervals(np.array([1, 4]), np.array([6, 12]))
        >>> [column.tolist() for column in tree.stab_many(np.array([5, 0, 8]))]
        [[0, 0, 2], [0, 1, 1]]
        """
        queries = plain_column(keys).reshape(1, -1)
        addresses = np.array([run.address for run in self._runs], np.int64)
        capacity = max(_FIRST_MATCHES, 2 * len(keys))
        while True:
            out = np.empty((M_CONTEXT + 1, capacity), np.int64)
            count, touched = stab_runs(addresses, self._table, _NO_MARKS, 0, 1, _NO_TAIL, 0, 0, queries, out)
            if count <= capacity:
                self.touched += touched
                rows = out[M_CONTEXT, :count]
                return out[M_QUERY, :count], rows if self._payload is None else self._payload[rows]
            capacity = count

    def check_invariants(self) -> None:
        """Assert that the run is as :mod:`indices.record_run` says, with its scan; for tests."""
        for run in self._runs:
            check_run(run, 0, 1)
