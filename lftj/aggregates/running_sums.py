"""Counts, sums of whole numbers, least and greatest codes by group, found as rows come: no row is kept.

A sum is linear in its rows, and an extreme is the same whatever else came, so they need not be distinct, nor
in order.  A group's number is that of its key in a :class:`~lftj.storage.row_table.RowTable`; it is found by
places for all keys that the ranges of the columns allow, where these are few enough, or by the table's own.
Each group has its number of assignments and, for each summed variable, a sum of 128 bits.

Invariants

1. ``counts``, both words of ``sums`` and ``extremes`` are by number of the group; beyond, 0 or no extreme.
2. With ranges known (``extent``), every key lies within them, and ``places`` has at its number, ``SUM (key -
   low) * stride``, that of its group + 1; elsewhere 0.  Without, the table has places of its own.
3. No sum wraps: a summand has 64 bits and there are less than ``2**63`` assignments.

Cost: O(1) per row.  Memory 8 bytes per key column, 8 for the count, 16 per sum and 8 per extreme of each
group, up to twice for growth, and 8 bytes for each of up to ``MOST_NUMBERS`` places, or 8 to 16 of the
table's.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from indices.wrapping import wraps_around
from lftj.errors import RangeError
from lftj.storage.row_table import RowTable, append
from lftj.storage.signed_rows import table_of
from lftj.storage.sorting import sorted_order

LEAST_GROUPS = 1 << 6

MOST_NUMBERS = 1 << 20
"""Places of a table of all keys that ranges allow: it stays in the cache, about."""

_MASK = (1 << 32) - 1


class RunningSums:
    """Groups in the making.

    >>> sums = RunningSums(1, 1, [True])
    >>> sums.add([np.array([7, 5, 7])], [np.array([10, 20, 30])], [np.array([4, 1, 3])], np.array([1, 1, 2]))
    >>> keys, counts, words, extremes = sums.finish()
    >>> keys[0].tolist(), counts.tolist(), words[0][:, 0].tolist(), extremes[0].tolist()
    ([5, 7], [1, 3], [20, 70], [1, 4])
    """

    def __init__(self, n_keys: int, n_sums: int, largest: Sequence[bool] = ()) -> None:
        """``largest``: for each extreme whether it is the greatest code, else the least."""
        self._keys = RowTable(n_keys, LEAST_GROUPS, is_placed=False)
        self._counts = np.zeros(LEAST_GROUPS, np.int64)
        self._sums = np.zeros((2 * n_sums, LEAST_GROUPS), np.int64)
        self._largest = tuple(largest)
        self._extremes = self._no_extremes(LEAST_GROUPS)
        self._low = np.zeros(n_keys, np.int64)
        self._extent = np.zeros(n_keys, np.int64)
        self._is_ranged = True
        self._places = np.zeros(1, np.int64)
        self._total = 0

    @property
    def n_groups(self) -> int:
        return self._keys.n_rows

    @wraps_around
    def add(
        self,
        keys: Sequence[np.ndarray],
        summands: Sequence[np.ndarray | None],
        compared: Sequence[np.ndarray],
        weights: np.ndarray,
    ) -> None:
        """Add rows: int64 columns of the keys, of what is summed and of what may be an extreme.

        ``summands``: more than before if need be; None where these rows add nothing.  ``weights``: int64,
        above 0.

        Raises :class:`~lftj.errors.RangeError` when there are ``2**63`` assignments or more in all.
        """
        weights = np.require(weights, np.int64, ("C", "W"))
        groups = self._groups_of(table_of(keys, len(weights)))
        self._total = _count(groups, weights, self._counts, self._total)
        if self._total < 0:
            raise RangeError("there are more than 2**63 assignments: their number does not fit int64")
        if 2 * len(summands) > len(self._sums):
            more = np.zeros((2 * len(summands) - len(self._sums), self._sums.shape[1]), np.int64)
            self._sums = np.concatenate([self._sums, more])
        for number, values in enumerate(summands):
            if values is not None:
                _sum(groups, np.require(values, np.int64, ("C", "W")), weights, self._sums, 2 * number)
        for number, (codes, largest) in enumerate(zip(compared, self._largest, strict=True)):
            _compare(groups, np.require(codes, np.int64, ("C", "W")), largest, self._extremes[number])

    def finish(self) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Sorted keys, the assignments of each, the sums: int64 (groups, 2), the low word first; extremes."""
        n = self.n_groups
        keys = list(self._keys.rows())
        order = _order(keys, n)
        words = [
            np.ascontiguousarray(self._sums[place : place + 2, :n].T[order])
            for place in range(0, len(self._sums), 2)
        ]
        extremes = [codes[:n][order] for codes in self._extremes]
        return [column[order] for column in keys], self._counts[:n][order], words, extremes

    def _no_extremes(self, room: int) -> np.ndarray:
        """What is below or above every code, for so many groups."""
        none = [KEY_MIN if largest else KEY_MAX for largest in self._largest]
        return np.repeat(np.array(none, np.int64)[:, np.newaxis], room, axis=1)

    def _groups_of(self, rows: np.ndarray) -> np.ndarray:
        """The group of each row of int64 keys (columns, n); new ones are made."""
        groups = np.empty(rows.shape[1], np.int64)
        done = 0
        while self._is_ranged and done < len(groups):
            done = self._enter(rows, done, self._keys, groups)
            if done < len(groups):
                self._widen(rows[:, done:])
        if not self._is_ranged:
            groups[done:] = self._keys.find_or_add(rows[:, done:])
        self._grow()
        return groups

    def _enter(self, rows: np.ndarray, first: int, keys: RowTable, groups: np.ndarray) -> int:
        """Write the group of each row from number ``first`` on; returns the first one out of range, or n."""
        while True:
            first = _enter(rows, first, self._low, self._extent, keys.arrays, self._places, groups)
            if first == len(groups) or keys.n_rows < keys.room:
                return first
            keys.make_room()

    def _grow(self) -> None:
        """Room for as many groups as there is for their keys."""
        room = self._keys.room
        if room > len(self._counts):
            self._sums = _widened(self._sums, room)
            self._counts = _widened(self._counts[np.newaxis], room)[0]
            before, self._extremes = self._extremes, self._no_extremes(room)
            self._extremes[:, : before.shape[1]] = before

    def _widen(self, rows: np.ndarray) -> None:
        """Let the ranges hold these keys too, or do without; beyond an end that moved is room for as many."""
        known = self._keys.rows()
        ends = list(zip(rows.min(axis=1).tolist(), rows.max(axis=1).tolist(), strict=True))
        if self.n_groups:
            before = zip(known.min(axis=1).tolist(), known.max(axis=1).tolist(), strict=True)
            ends = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(ends, before, strict=True)]
            wider = [
                (
                    max(KEY_MIN, 2 * least - most) if least < low else least,
                    min(KEY_MAX, 2 * most - least) if most >= low + extent else most,
                )
                for (least, most), low, extent in zip(
                    ends, self._low.tolist(), self._extent.tolist(), strict=True
                )
            ]
            ends = wider if _n_keys(wider) <= MOST_NUMBERS else ends
        numbers = _n_keys(ends)
        self._is_ranged = numbers <= MOST_NUMBERS
        self._places = np.zeros(numbers if self._is_ranged else 0, np.int64)
        if not self._is_ranged:
            self._keys.place()
            return
        self._low = np.array([least for least, _ in ends], np.int64)
        self._extent = np.array([most - least + 1 for least, most in ends], np.int64)
        again = RowTable(len(known), self.n_groups, is_placed=False)
        self._enter(np.ascontiguousarray(known), 0, again, np.empty(self.n_groups, np.int64))

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        n = self.n_groups
        self._keys.check_invariants()
        assert (self._counts[:n] > 0).all() and int(self._counts[:n].sum()) == self._total
        assert np.count_nonzero(self._places) == (n if self._is_ranged else 0)
        assert self._groups_of(np.ascontiguousarray(self._keys.rows())).tolist() == list(range(n))


def _n_keys(ends: Sequence[tuple[int, int]]) -> int:
    """How many keys there are within these ends."""
    return math.prod(most - least + 1 for least, most in ends)


def _order(keys: Sequence[np.ndarray], n: int) -> np.ndarray | slice:
    """What sorts ``n`` rows; often they came in order."""
    later = np.zeros(max(n - 1, 0), bool)
    for column in reversed(keys):
        later = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & later)
    return slice(None) if later.all() else sorted_order(keys)


def _widened(rows: np.ndarray, room: int) -> np.ndarray:
    wider = np.zeros((len(rows), room), np.int64)
    wider[:, : rows.shape[1]] = rows
    return wider


@kernel
def _enter(rows, first, low, extent, keys, places, groups):
    """Write the group of each row from number ``first`` on; those that are new are appended to ``keys``.

    rows: int64 (columns, n); low, extent: int64 (columns,); keys: Rows, and places: int64, both as
    :class:`RunningSums` has them, written; groups: int64 (n,), written.  Returns the number of the first
    row that is out of range or for whose group there is no room, or n.
    """
    stored, _, n_groups = keys
    for row in range(first, rows.shape[1]):
        number = np.int64(0)
        for column in range(rows.shape[0]):
            offset = rows[column, row] - low[column]
            if offset < 0 or offset >= extent[column] or rows[column, row] < low[column]:
                return row
            number = number * extent[column] + offset
        group = places[number] - 1
        if group < 0:
            group = n_groups[0]
            if group == stored.shape[1]:
                return row
            places[number] = group + 1
            append(rows, row, keys)
        groups[row] = group
    return rows.shape[1]


@kernel
def _count(groups, weights, counts, total):
    """Add the weights of rows to the counts of their groups; returns the sum of all, -1 beyond int64.

    groups, weights: int64 (n,), weights above 0; counts: int64, written.
    """
    for row in range(len(groups)):
        weight = weights[row]
        if total > KEY_MAX - weight:
            return np.int64(-1)
        total += weight
        counts[groups[row]] += weight
    return total


@kernel
def _sum(groups, values, weights, sums, place):
    """Add ``weights[i] * values[i]`` to the two words of a group's sum, sums[place] and the row behind it."""
    lows, highs = sums[place], sums[place + 1]
    for row in range(len(groups)):
        low, group = values[row], groups[row]
        high = low >> 63
        if weights[row] != 1:
            low, high = _times(low, weights[row])
        before = np.uint64(lows[group])
        after = before + np.uint64(low)
        lows[group] = np.int64(after)
        highs[group] += high + np.int64(after < before)


@kernel
def _compare(groups, codes, largest, extremes):
    """Let the extreme of each group be of these codes too; extremes: int64, written."""
    for row in range(len(groups)):
        group, code = groups[row], codes[row]
        if (code > extremes[group]) if largest else (code < extremes[group]):
            extremes[group] = code


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
