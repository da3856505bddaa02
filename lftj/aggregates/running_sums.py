"""Counts and sums of whole numbers by group, added up as rows come: no row is kept.

A sum is linear in its rows, so they need not be distinct, nor in order.  Groups stand in a hash table; each
has its number of assignments and, for each summed variable, a sum of 128 bits.

Invariants

1. ``keys[:, :n]`` are the distinct keys in the order in which they came; ``counts`` and both words of
   ``sums`` are of the same groups.
2. No sum wraps: a summand has 64 bits and there are less than ``2**63`` assignments.

Cost: O(1) per row.  Memory 8 bytes per key column, 8 for the count and 16 per sum of each group, up to twice
for growth, and 16 to 32 for its place in the table.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX
from indices.wrapping import wraps_around
from lftj.errors import RangeError
from lftj.storage.row_places import entry_of, number_at, place_of

LEAST_GROUPS = 1 << 6

_DONE, _FULL, _OVERFLOW = 0, 1, 2
_MASK = (1 << 32) - 1


class RunningSums:
    """Groups in the making.

    >>> sums = RunningSums(1, 1)
    >>> sums.add([np.array([7, 5, 7])], [np.array([10, 20, 30])], np.array([1, 1, 2]))
    >>> keys, counts, words = sums.finish()
    >>> keys[0].tolist(), counts.tolist(), words[0][:, 0].tolist()
    ([5, 7], [1, 3], [20, 70])
    """

    def __init__(self, n_keys: int, n_sums: int) -> None:
        self.n_groups = 0
        self._keys = np.empty((n_keys, LEAST_GROUPS), np.int64)
        self._counts = np.zeros(LEAST_GROUPS, np.int64)
        self._sums = np.zeros((2 * n_sums, LEAST_GROUPS), np.int64)
        self._places = np.zeros(2 * LEAST_GROUPS, np.int64)
        self._total = 0

    @wraps_around
    def add(self, keys: Sequence[np.ndarray], summands: Sequence[np.ndarray], weights: np.ndarray) -> None:
        """Add rows: int64 columns of the keys and of what is summed; ``weights``: int64, above 0.

        Raises :class:`~lftj.errors.RangeError` when there are ``2**63`` assignments or more in all.
        """
        n = len(weights)
        key_rows, summand_rows = _rows_of(keys, n), _rows_of(summands, n)
        weights = np.require(weights, np.int64, ("C", "W"))
        done, status = 0, _FULL
        while status == _FULL:
            done, self.n_groups, self._total, status = _add(
                key_rows, summand_rows, weights, done, self._keys, self._counts, self._sums, self._places,
                self.n_groups, self._total,
            )  # fmt: skip
            if status == _FULL:
                self._grow()
        if status == _OVERFLOW:
            raise RangeError("there are more than 2**63 assignments: their number does not fit int64")

    def finish(self) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
        """Sorted keys, the assignments of each, and the sums: int64 (groups, 2), the low word first."""
        n = self.n_groups
        keys = [column[:n] for column in self._keys]
        order = np.lexsort(keys[::-1]) if keys else np.arange(n)
        words = [
            np.ascontiguousarray(self._sums[place : place + 2, :n].T[order])
            for place in range(0, len(self._sums), 2)
        ]
        return [column[order] for column in keys], self._counts[:n][order], words

    def _grow(self) -> None:
        """Room for twice as many groups."""
        room = 2 * len(self._counts)
        self._keys, self._sums = (_widened(rows, room) for rows in (self._keys, self._sums))
        self._counts = _widened(self._counts[np.newaxis], room)[0]
        self._places = np.zeros(2 * room, np.int64)
        _place(self._keys, self.n_groups, self._places)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        n = self.n_groups
        assert len({tuple(row) for row in self._keys[:, :n].T.tolist()}) == n
        assert (self._counts[:n] > 0).all() and int(self._counts[:n].sum()) == self._total
        if len(self._keys):
            assert np.count_nonzero(self._places) == n and 2 * n <= len(self._places)


def _rows_of(columns: Sequence[np.ndarray], n: int) -> np.ndarray:
    return np.array(columns, np.int64) if len(columns) else np.empty((0, n), np.int64)


def _widened(rows: np.ndarray, room: int) -> np.ndarray:
    wider = np.zeros((len(rows), room), np.int64)
    wider[:, : rows.shape[1]] = rows
    return wider


@kernel
def _place(keys, n_groups, places):
    """Enter the first ``n_groups`` of int64 keys (columns, room) into places where nothing is."""
    for group in range(n_groups):
        place, tag = place_of(keys, group, keys, places)
        places[place] = entry_of(group, tag)


@part
def _times(value, weight):
    """``value * weight`` as two words, the low one first; weight: int64, above 0."""
    low, high = np.uint64(value) & np.uint64(_MASK), value >> 32  # value = high * 2**32 + low
    weight_low, weight_high = np.uint64(weight) & np.uint64(_MASK), weight >> 32
    parts = np.uint64(low * weight_low)
    middle = np.uint64(low * np.uint64(weight_high))
    cross = high * np.int64(weight_low)
    first = np.uint64(middle << np.uint64(32))
    second = np.uint64(cross) << np.uint64(32)
    total = parts + first
    carry = np.int64(total < parts)
    whole = total + second
    carry += np.int64(whole < total)
    upper = np.int64(middle >> np.uint64(32)) + (cross >> 32) + high * weight_high + carry
    return np.int64(whole), upper


@kernel
def _add(rows, summands, weights, first, keys, counts, sums, places, n_groups, total):
    """Add rows from number ``first`` on: (number of the first that was not, groups, assignments, status).

    rows, summands: int64 (columns, n); weights: int64 (n,); all only read.  keys, counts, sums, places: as
    :class:`RunningSums` has them, written.
    """
    columns = rows.shape[0]
    group = np.int64(-1)
    for row in range(first, len(weights)):
        weight = weights[row]
        if total > KEY_MAX - weight:
            return row, n_groups, total, _OVERFLOW
        same = group >= 0  # neighbours are often of one group
        for column in range(columns):
            same = same and keys[column, group] == rows[column, row]
        if not same:
            place, tag, group = np.int64(0), np.int64(0), np.int64(-1)
            if columns:
                place, tag = place_of(rows, row, keys, places)
                group = number_at(places, place)
            elif n_groups:
                group = np.int64(0)
            if group < 0:
                if n_groups == len(counts):
                    return row, n_groups, total, _FULL
                group = n_groups
                for column in range(columns):
                    keys[column, group] = rows[column, row]
                if columns:
                    places[place] = entry_of(group, tag)
                n_groups += 1
        total += weight
        counts[group] += weight
        for number in range(summands.shape[0]):
            value = summands[number, row]
            high = np.int64(-1) if value < 0 else np.int64(0)
            low = value
            if weight != 1:
                low, high = _times(value, weight)
            before = np.uint64(sums[2 * number, group])
            after = before + np.uint64(low)
            sums[2 * number, group] = np.int64(after)
            sums[2 * number + 1, group] += high + np.int64(after < before)
    return len(weights), n_groups, total, _DONE
