"""`TupleSet`: tuples that come again and again, and which of them are new.

A recursion finds most of its tuples many times over.  Here a tuple is looked up and entered in one step, so
what is found is netted as it comes, and only what is new is kept.

Three forms.  *Dense*: a bit for every tuple that the ranges of the columns allow.  *Packed*: where these
would be too many bits, a table with linear probing of the tuples themselves, each in one word.  *Hashed*:
where the ranges allow more tuples than a word can tell apart, the places of the
:class:`~lftj.storage.row_table.RowTable` that holds the tuples in all forms.

Invariants

1. The table's rows are the distinct tuples in the order in which they came; they never change.
2. Dense and packed: every value lies within ``low .. low + extent - 1`` of its column, so a tuple has a
   *number*, ``SUM (value - low) * stride``.  Dense: the bits of these numbers are set, and no other.
3. Packed: each number + 1 stands in ``numbers`` at the first free place from its tuple's hash on; there are
   at least twice as many places as tuples.  Hashed, and only then, the table has places of its own.

Cost: O(1) per tuple that is looked up, amortised: one access to memory in the first two forms, in the third
one and another for each column.  Memory 8 bytes per column of each tuple, up to four times for growth, and at
most ``BITS_PER_TUPLE`` bits, or a table of 16 to 32 bytes, for each.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from enum import Enum

import numpy as np

from indices.compiled import kernel, part
from indices.wrapping import wraps_around
from lftj.storage.row_table import RowTable, append
from lftj.storage.signed_rows import Columns, table_of
from lftj.storage.sorting import sort_distinct

FEWEST_BITS = 1 << 27
BITS_PER_TUPLE = 256

MOST_NUMBERS = 1 << 62
"""Where the ranges allow more tuples, these have no numbers."""

LEAST_ROOM = 1 << 10


class Form(Enum):
    """How the tuples are found again."""

    DENSE = "dense"
    PACKED = "packed"
    HASHED = "hashed"


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
        self._table = RowTable(arity, LEAST_ROOM, is_placed=False)
        self._low = np.zeros(arity, np.int64)
        self._extent = np.zeros(arity, np.int64)  # all 0: no range is known yet
        self.form = Form.DENSE
        self._numbers = np.zeros(0, np.int64)  # the bits, or the packed ones

    @property
    def n_rows(self) -> int:
        return self._table.n_rows

    @wraps_around
    def add(self, columns: Columns) -> np.ndarray:
        """Enter tuples, which may repeat; returns those that were not there, each once, as they came.

        int64 (columns, n), a view that stays as it is.
        """
        table = table_of(columns, len(columns[0]))
        first, done = self._table.n_rows, 0
        while self.form is not Form.HASHED and done < table.shape[1]:
            done = self._enter(table, done)
            if done < table.shape[1]:
                self._widen(table[:, done:])
        if done < table.shape[1]:
            self._table.find_or_add(table[:, done:])
        return self._table.rows(first)

    def _enter(self, table: np.ndarray, first: int) -> int:
        """Enter tuples from number ``first`` on; returns the number of the first one out of range, or n."""
        self._table.make_room(table.shape[1] - first)
        if self.form is Form.PACKED:
            needed = 2 * (self.n_rows + table.shape[1] - first)
            if needed > len(self._numbers):
                self._numbers = np.zeros(1 << (needed - 1).bit_length(), np.int64)
                self._enter_again()
        enter = _mark if self.form is Form.DENSE else _pack
        return int(enter(table, first, self._low, self._extent, self._numbers, self._table.arrays))

    def _enter_again(self) -> None:
        """Enter the rows where nothing is."""
        if self.n_rows:
            rows = np.ascontiguousarray(self.since(0))
            scratch = RowTable(len(rows), self.n_rows, is_placed=False)
            enter = _mark if self.form is Form.DENSE else _pack
            enter(rows, 0, self._low, self._extent, self._numbers, scratch.arrays)

    def since(self, first: int, last: int | None = None) -> np.ndarray:
        """The tuples from number ``first`` on, before number ``last``; int64 (columns, n)."""
        return self._table.rows(first, last)

    def sorted_columns(self) -> list[np.ndarray]:
        """All tuples, sorted; O(n log n)."""
        return sort_distinct(list(self.since(0)))

    def _widen(self, table: np.ndarray) -> None:
        """Let the ranges hold these tuples too, in the form for these."""
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
        self._numbers = np.zeros(0, np.int64)
        if not fits or bits > MOST_NUMBERS:
            self.form = Form.HASHED
            self._table.place()
            return
        self._low, self._extent = np.array(lows, np.int64), np.array(extents, np.int64)
        if bits > max(self._fewest_bits, BITS_PER_TUPLE * self.n_rows):
            self.form = Form.PACKED
            return
        self.form = Form.DENSE
        self._numbers = np.zeros(bits // 64 + 1, np.int64)
        self._enter_again()

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        self._table.check_invariants()
        if self.form is Form.DENSE:
            assert int(np.bitwise_count(self._numbers.view(np.uint64)).sum()) == self.n_rows
        if self.form is Form.PACKED:
            assert np.count_nonzero(self._numbers) == self.n_rows and 2 * self.n_rows <= len(self._numbers)


@part
def _number_of(table, row, low, extent):
    """The number of a row of int64 (columns, n); -1 where a value is outside of its range."""
    number = np.int64(0)
    for column in range(table.shape[0]):
        offset = table[column, row] - low[column]
        if offset < 0 or offset >= extent[column] or table[column, row] < low[column]:
            return np.int64(-1)
        number = number * extent[column] + offset
    return number


@kernel
def _mark(table, first, low, extent, words, rows):
    """Set the bit of every tuple from number ``first`` on; append those whose bit was not set to ``rows``.

    table: int64 (columns, n); low, extent: int64 (columns,); words: int64, written; rows: Rows, with room for
    all, written.  Returns the number of the first tuple outside of the ranges, or n.
    """
    for tuple_ in range(first, table.shape[1]):
        number = _number_of(table, tuple_, low, extent)
        if number < 0:
            return tuple_
        bit = np.int64(1) << (number & 63)
        word = words[number >> 6]
        if word & bit == 0:
            words[number >> 6] = word | bit
            append(table, tuple_, rows)
    return table.shape[1]


@kernel
def _pack(table, first, low, extent, places, rows):
    """Enter the number of every tuple from number ``first`` on into places; append new ones to ``rows``.

    places: int64 (a power of 2,), number + 1 or 0, written; the others, and what it returns, as of _mark.
    """
    last_place = len(places) - 1
    for tuple_ in range(first, table.shape[1]):
        number = _number_of(table, tuple_, low, extent)
        if number < 0:
            return tuple_
        mixed = np.uint64(number >> 3) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ mixed >> np.uint64(32)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        place = np.int64((mixed << np.uint64(3) | np.uint64(number & 7)) & np.uint64(last_place))
        while places[place] != 0 and places[place] != number + 1:
            place = (place + 1) & last_place
        if places[place] == 0:
            places[place] = number + 1
            append(table, tuple_, rows)
    return table.shape[1]
