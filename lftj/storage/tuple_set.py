"""`TupleSet`: tuples that come again and again, and which of them are new.

A recursion finds most of its tuples many times over.  Here a tuple is looked up and entered in one step, so
what is found is netted as it comes, and only what is new is kept.

Two forms.  *Dense*: a bit for every tuple that the ranges of the columns allow.  *Hashed*: a table of
row numbers with linear probing, where these would be too many bits.

Invariants

1. ``rows[:, :n]`` are the distinct tuples in the order in which they came; they never change.
2. Dense: bit ``SUM (value - low) * stride`` is set for each of them and no other; every value lies within
   ``low .. low + extent - 1`` of its column, and the product of the extents is at most ``most_bits``.
3. Hashed: each row number + 1 stands in the table at the first free place from its tuple's hash on; the table
   has at least twice as many places as there are rows.

Cost: O(1) per tuple that is looked up, amortised; memory 8 bytes per column of each tuple, up to
four times for growth, and at most ``BITS_PER_TUPLE`` bits, or a table of 16 to 32 bytes, for each.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from lftj.storage.signed_rows import Columns, table_of
from lftj.storage.sorting import sort_distinct

FEWEST_BITS = 1 << 27
BITS_PER_TUPLE = 256

LEAST_ROOM = 1 << 10


class TupleSet:
    """Distinct tuples of ``arity`` int64 columns, at least one; they are added, never taken away.

    >>> seen = TupleSet(2)
    >>> seen.add([np.array([1, 1, 1]), np.array([5, 6, 5])]).tolist()
    [[1, 1], [5, 6]]
    >>> seen.add([np.array([9, 1]), np.array([9, 6])]).tolist(), seen.n_rows
    ([[9], [9]], 3)
    """

    def __init__(self, arity: int, fewest_bits: int = FEWEST_BITS) -> None:
        """``fewest_bits``: so many are always allowed."""
        self._fewest_bits = fewest_bits
        self.n_rows = 0
        self._rows = np.empty((arity, LEAST_ROOM), np.int64)
        self._low = np.zeros(arity, np.int64)
        self._extent = np.zeros(arity, np.int64)  # all 0: no range is known yet
        self._words: np.ndarray | None = np.zeros(0, np.int64)
        self._table: np.ndarray | None = None

    @property
    def is_dense(self) -> bool:
        return self._words is not None

    @np.errstate(over="ignore")  # the hash wraps around, also when kernels run as plain Python
    def add(self, columns: Columns) -> np.ndarray:
        """Enter tuples, which may repeat; returns those that were not there, each once, as they came.

        int64 (columns, n), a view that stays as it is.
        """
        n = len(columns[0])
        table = table_of(columns, n)
        first = self.n_rows
        self._make_room(n)
        done = 0
        while done < n:
            if self._words is not None:
                done, self.n_rows = _mark(
                    table, done, self._low, self._extent, self._words, self._rows, self.n_rows
                )
                if done < n:
                    self._widen(table[:, done:])
            else:
                self._room_in_table(n - done)
                self.n_rows = _enter(table, done, self._table, self._rows, self.n_rows)
                done = n
        return self.since(first)

    def since(self, first: int, last: int | None = None) -> np.ndarray:
        """The tuples from number ``first`` on, before number ``last``; int64 (columns, n)."""
        return self._rows[:, first : self.n_rows if last is None else last]

    def sorted_columns(self) -> list[np.ndarray]:
        """All tuples, sorted; O(n log n)."""
        return sort_distinct(list(self.since(0)))

    def _make_room(self, n_more: int) -> None:
        """Room for so many rows more; views of the old rows stay as they are."""
        needed = self.n_rows + n_more
        if needed > self._rows.shape[1]:
            rows = np.empty((len(self._rows), max(needed, 2 * self._rows.shape[1])), np.int64)
            rows[:, : self.n_rows] = self.since(0)
            self._rows = rows

    def _widen(self, table: np.ndarray) -> None:
        """Let the ranges hold these tuples too, or go over to the table."""
        low, high = table.min(axis=1).tolist(), table.max(axis=1).tolist()
        lows, extents, bits = [], [], 1
        for column in range(len(low)):
            least, most = low[column], high[column]
            known = int(self._extent[column])
            if known:
                before = int(self._low[column])
                slack = known // 2  # a range that grows does so in steps that double it
                least = before if least >= before else min(least, before - slack)
                last = before + known - 1
                most = last if most <= last else max(most, last + slack)
            least, most = max(least, -(2**62)), min(most, 2**62)
            lows.append(least)
            extents.append(most - least + 1)
            bits *= extents[-1]
        fits = all(least <= value for least, value in zip(lows, low, strict=True)) and all(
            value < least + extent for least, extent, value in zip(lows, extents, high, strict=True)
        )
        if not fits or bits > max(self._fewest_bits, BITS_PER_TUPLE * self.n_rows):
            self._words, self._table = None, np.zeros(0, np.int64)
            return
        self._low, self._extent = np.array(lows, np.int64), np.array(extents, np.int64)
        self._words = np.zeros(bits // 64 + 1, np.int64)
        rows = np.ascontiguousarray(self.since(0))
        _mark(rows, 0, self._low, self._extent, self._words, np.empty_like(rows), 0)

    def _room_in_table(self, n_more: int) -> None:
        """A table that holds so many rows more at half its length at most."""
        assert self._table is not None
        needed = 2 * (self.n_rows + n_more)
        if needed > len(self._table):
            self._table = np.zeros(1 << (needed - 1).bit_length(), np.int64)
            rows = np.ascontiguousarray(self.since(0))
            _enter(rows, 0, self._table, np.empty_like(rows), 0)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        rows = self.since(0)
        assert len({tuple(row) for row in rows.T.tolist()}) == self.n_rows
        if self._words is not None:
            assert int(np.bitwise_count(self._words.view(np.uint64)).sum()) == self.n_rows
        else:
            assert self._table is not None and np.count_nonzero(self._table) == self.n_rows
            assert 2 * self.n_rows <= len(self._table)


@kernel
def _mark(table, first, low, extent, words, rows, n_rows):
    """Set the bit of every tuple from number ``first`` on; append those whose bit was not set to ``rows``.

    table: int64 (columns, n); low, extent: int64 (columns,); words: int64, written; rows: int64
    (columns, room), written from ``n_rows`` on.  Returns the number of the first tuple outside of the
    ranges, or n, and the number of rows.
    """
    columns, n = table.shape
    for tuple_ in range(first, n):
        place = np.int64(0)
        for column in range(columns):
            offset = table[column, tuple_] - low[column]
            if offset < 0 or offset >= extent[column] or table[column, tuple_] < low[column]:
                return tuple_, n_rows
            place = place * extent[column] + offset
        bit = np.int64(1) << (place & 63)
        word = words[place >> 6]
        if word & bit == 0:
            words[place >> 6] = word | bit
            for column in range(columns):
                rows[column, n_rows] = table[column, tuple_]
            n_rows += 1
    return n, n_rows


@part
def hash_of(table, row, length):
    """A place in a table of ``length``, a power of 2, for a row of int64 (columns, n).

    Rows that differ in the last few bits of the last column stand near each other, where a scan over
    sorted rows finds them in one cache line.
    """
    columns = table.shape[0]
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for column in range(columns):
        value = table[column, row] if column + 1 < columns else table[column, row] >> 3
        mixed = (mixed ^ np.uint64(value)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    low = np.uint64(table[columns - 1, row]) & np.uint64(7)
    return np.int64((mixed << np.uint64(3) | low) & np.uint64(length - 1))


@kernel
def _enter(table, first, places, rows, n_rows):
    """Enter every tuple from number ``first`` on into the hash table; append those that are new to ``rows``.

    places: int64 (a power of 2,), row number + 1 or 0, written; the others as of _mark.  Returns the number
    of rows.
    """
    columns, n = table.shape
    length = len(places)
    for tuple_ in range(first, n):
        place = hash_of(table, tuple_, length)
        found = False
        while places[place] != 0 and not found:
            found = True
            for column in range(columns):
                found = found and rows[column, places[place] - 1] == table[column, tuple_]
            if not found:
                place = (place + 1) & (length - 1)
        if not found:
            for column in range(columns):
                rows[column, n_rows] = table[column, tuple_]
            n_rows += 1
            places[place] = n_rows
    return n_rows
