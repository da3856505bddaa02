"""`TupleSet`: tuples that come again and again, and which of them are new.

A recursion finds most of its tuples many times over.  Here a tuple is looked up and entered in one step, so
what is found is netted as it comes, and only what is new is kept.

Three forms.  *Dense*: a bit for every tuple that the ranges of the columns allow.  *Packed*: where these
would be too many bits, a table with linear probing of the tuples themselves, each in one word.  *Hashed*:
where the ranges allow more tuples than a word can tell apart, a table of row numbers.

Invariants

1. ``rows[:, :n]`` are the distinct tuples in the order in which they came; they never change.
2. Dense and packed: every value lies within ``low .. low + extent - 1`` of its column, so a tuple has a
   *number*, ``SUM (value - low) * stride``.  Dense: the bits of these numbers are set, and no other.
3. Packed: each number + 1, hashed: each row number + 1 with a tag of bits of its tuple's hash, stands in the
   table at the first free place from that hash on; the table has at least twice as many places as there are
   rows.

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
from lftj.storage.signed_rows import Columns, table_of
from lftj.storage.sorting import sort_distinct

FEWEST_BITS = 1 << 27
BITS_PER_TUPLE = 256

MOST_NUMBERS = 1 << 62
"""Where the ranges allow more tuples, these have no numbers."""

LEAST_ROOM = 1 << 10

NUMBER_BITS = 40
NUMBERS = (1 << NUMBER_BITS) - 1
"""The bits of a row's number in a hash table's entry; those above are the tag."""


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
        self.n_rows = 0
        self._rows = np.empty((arity, LEAST_ROOM), np.int64)
        self._low = np.zeros(arity, np.int64)
        self._extent = np.zeros(arity, np.int64)  # all 0: no range is known yet
        self.form = Form.DENSE
        self._places = np.zeros(0, np.int64)  # the bits, or the table

    @wraps_around
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
            done = self._enter(table, done)
            if done < n:
                self._widen(table[:, done:])
        return self.since(first)

    def _enter(self, table: np.ndarray, first: int) -> int:
        """Enter tuples from number ``first`` on; returns the number of the first one out of range, or n."""
        if self.form is not Form.DENSE:
            self._room_in_table(table.shape[1] - first)
        done, self.n_rows = self._enter_all(table, first, self._rows, self.n_rows)
        return done

    def _enter_all(self, table: np.ndarray, first: int, rows: np.ndarray, n_rows: int) -> tuple[int, int]:
        if self.form is Form.HASHED:
            return table.shape[1], _enter(table, first, self._places, rows, n_rows)
        enter = _mark if self.form is Form.DENSE else _pack
        done, n_rows = enter(table, first, self._low, self._extent, self._places, rows, n_rows)
        return done, n_rows

    def _enter_again(self) -> None:
        """Enter the rows into places where nothing is."""
        rows = np.ascontiguousarray(self.since(0))
        self._enter_all(rows, 0, np.empty_like(rows), 0)

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
        self._places = np.zeros(0, np.int64)
        if not fits or bits > MOST_NUMBERS:
            self.form = Form.HASHED
            return
        self._low, self._extent = np.array(lows, np.int64), np.array(extents, np.int64)
        if bits > max(self._fewest_bits, BITS_PER_TUPLE * self.n_rows):
            self.form = Form.PACKED
            return
        self.form = Form.DENSE
        self._places = np.zeros(bits // 64 + 1, np.int64)
        self._enter_again()

    def _room_in_table(self, n_more: int) -> None:
        """A table that holds so many rows more at half its length at most."""
        needed = 2 * (self.n_rows + n_more)
        if needed > len(self._places):
            self._places = np.zeros(1 << (needed - 1).bit_length(), np.int64)
            self._enter_again()

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        rows = self.since(0)
        assert len({tuple(row) for row in rows.T.tolist()}) == self.n_rows
        if self.form is Form.DENSE:
            assert int(np.bitwise_count(self._places.view(np.uint64)).sum()) == self.n_rows
        else:
            assert np.count_nonzero(self._places) == self.n_rows and 2 * self.n_rows <= len(self._places)


@part(_nrt=False)
def _number_of(table, row, low, extent):
    """The number of a row of int64 (columns, n); -1 where a value is outside of its range."""
    number = np.int64(0)
    for column in range(table.shape[0]):
        offset = table[column, row] - low[column]
        if offset < 0 or offset >= extent[column] or table[column, row] < low[column]:
            return np.int64(-1)
        number = number * extent[column] + offset
    return number


@part(_nrt=False)
def _append(table, row, rows, n_rows):
    """Write a row of ``table`` behind the first ``n_rows`` of ``rows``; returns how many these are then."""
    for column in range(table.shape[0]):
        rows[column, n_rows] = table[column, row]
    return n_rows + 1


@kernel(_nrt=False)
def _mark(table, first, low, extent, words, rows, n_rows):
    """Set the bit of every tuple from number ``first`` on; append those whose bit was not set to ``rows``.

    table: int64 (columns, n); low, extent: int64 (columns,); words: int64, written; rows: int64
    (columns, room), written from ``n_rows`` on.  Returns the number of the first tuple outside of the
    ranges, or n, and the number of rows.
    """
    for tuple_ in range(first, table.shape[1]):
        number = _number_of(table, tuple_, low, extent)
        if number < 0:
            return tuple_, n_rows
        bit = np.int64(1) << (number & 63)
        word = words[number >> 6]
        if word & bit == 0:
            words[number >> 6] = word | bit
            n_rows = _append(table, tuple_, rows, n_rows)
    return table.shape[1], n_rows


@kernel(_nrt=False)
def _pack(table, first, low, extent, places, rows, n_rows):
    """Enter the number of every tuple from number ``first`` on into the table; append new ones to ``rows``.

    places: int64 (a power of 2,), number + 1 or 0, written; the others, and what it returns, as of _mark.
    """
    last_place = len(places) - 1
    for tuple_ in range(first, table.shape[1]):
        number = _number_of(table, tuple_, low, extent)
        if number < 0:
            return tuple_, n_rows
        mixed = np.uint64(number >> 3) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ mixed >> np.uint64(32)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        place = np.int64((mixed << np.uint64(3) | np.uint64(number & 7)) & np.uint64(last_place))
        while places[place] != 0 and places[place] != number + 1:
            place = (place + 1) & last_place
        if places[place] == 0:
            places[place] = number + 1
            n_rows = _append(table, tuple_, rows, n_rows)
    return table.shape[1], n_rows


@part(_nrt=False)
def hash_of(table, row):
    """A hash of a row of int64 (columns, n): uint64, whose last three bits are those of the last column.

    Rows that differ in these alone have the other bits in common, so they stand near each other, where a scan
    over sorted rows finds them in one cache line.
    """
    columns = table.shape[0]
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for column in range(columns):
        value = table[column, row] if column + 1 < columns else table[column, row] >> 3
        mixed = (mixed ^ np.uint64(value)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed << np.uint64(3) | np.uint64(table[columns - 1, row]) & np.uint64(7)


@part(_nrt=False)
def place_of(table, row, rows, places):
    """Where a row of int64 (columns, n) has its entry in ``places``, or would have: 0 is there; and its tag.

    rows: int64 (columns, room), those that have entries; places: int64 (a power of 2,).  An *entry* is
    ``tag | number + 1``.  The tag are bits of the hash that say nothing of the place: rows that happen
    to stand on the way are told apart without a look at them, which would be an access to memory each.
    """
    last_place = len(places) - 1
    mixed = hash_of(table, row)
    place = np.int64(mixed & np.uint64(last_place))
    tag = np.int64(mixed >> np.uint64(44) << np.uint64(3) | mixed & np.uint64(7)) << NUMBER_BITS
    while places[place] != 0:
        same = places[place] & ~NUMBERS == tag
        if same:
            other = number_at(places, place)
            for column in range(table.shape[0]):
                same = same and rows[column, other] == table[column, row]
        if same:
            break
        place = (place + 1) & last_place
    return place, tag


@part(_nrt=False)
def number_at(places, place):
    """The number of the row whose entry is at a place, -1 where there is none."""
    return (places[place] & NUMBERS) - 1


@kernel(_nrt=False)
def _enter(table, first, places, rows, n_rows):
    """Enter every tuple from number ``first`` on into the hash table; append those that are new to ``rows``.

    places: int64 (a power of 2,), entries or 0, written; the others as of _mark.  Returns the number
    of rows.
    """
    for tuple_ in range(first, table.shape[1]):
        place, tag = place_of(table, tuple_, rows, places)
        if places[place] == 0:
            n_rows = _append(table, tuple_, rows, n_rows)
            places[place] = tag | n_rows
    return n_rows
