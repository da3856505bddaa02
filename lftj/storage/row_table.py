"""`RowTable`: distinct rows of int64 columns, numbered as they first came, and found again by their values.

A hash table with linear probing.  A *place* is 0 where it is free.  Else it has a row's number + 1, in as
many low bits as it takes to number the places, and above that a *tag*: some bits of the row's hash that have
no part in where it stands.  So a row is looked at only where its tag fits.

Rows that differ in the last few bits of the last column alone stand near each other: a scan over sorted rows
finds them in one cache line.

What an owner keeps of each row lies in arrays of its own, by number.

Invariants

1. ``rows()[:, i]`` is row number i; no two are equal, and none changes.
2. Rows have places as if they had been added in the order of their numbers, each at the first from its hash
   on that was free: so the last ones can be taken off again as if they never came.  At most half of the
   places are taken.  Where nothing is to be found there are none yet (:meth:`RowTable.place`).
3. Whoever is interrupted at any point leaves all of this in place: a row and the number of rows are written
   by one kernel call, and larger arrays are filled before one assignment puts them there.

Cost: of a look-up O(1) expected: one access to the places, and one to a row for each column.  Memory: 8 bytes
per column and 8 to 16 bytes of places per row, up to twice that for growth.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.wrapping import wraps_around
from lftj.errors import RangeError
from lftj.storage.signed_rows import Columns, table_of

NO_ROOM = -1
"""Instead of the number of a new row."""

LEAST_ROOM = 1 << 4

MOST_ROWS = 1 << 31
"""Of a table with places: a number + 1 has to fit their 32 bits."""


Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The arrays of a table, as kernels read and write them up to the next time that it grows.

int64 (columns, room), written beyond the rows that there are; places, uint32 (a power of 2,), at least twice
the room, or (0,), written; how many rows there are, int64 (1,), written.
"""


class RowTable:
    """Rows of ``arity`` int64 columns; of no column there is one row, the empty one.

    >>> table = RowTable(2)
    >>> table.find_or_add([np.array([7, 5, 7]), np.array([1, 1, 1])]).tolist()
    [0, 1, 0]
    >>> table.rows().tolist()
    [[7, 5], [1, 1]]
    >>> table.compacted(np.array([1])).find_or_add([np.array([5]), np.array([1])]).tolist()
    [0]
    """

    def __init__(self, arity: int, room: int = LEAST_ROOM, is_placed: bool = True) -> None:
        """``is_placed``: else rows are only appended, by kernels that know them to be new."""
        self.arity = arity
        self._is_placed = is_placed
        self._count = np.zeros(1, np.int64)
        places = _free_places(room, is_placed)
        self.arrays: Rows = (np.empty((arity, room), np.int64), places, self._count)

    @classmethod
    @wraps_around
    def of(cls, rows: np.ndarray, room: int = LEAST_ROOM) -> RowTable:
        """Of distinct rows, int64 (columns, n), in that order; O(n)."""
        arity, n = rows.shape
        table = cls(arity, max(room, n))
        table.arrays[0][:, :n], table._count[0] = rows, n
        _refill(table.arrays)
        return table

    @property
    def n_rows(self) -> int:
        return int(self._count[0])

    @property
    def room(self) -> int:
        """So many rows fit; what an owner keeps by number has as much room, or more."""
        return self.arrays[0].shape[1]

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return sum(array.nbytes for array in self.arrays)

    def rows(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """Those from number ``first`` on, before number ``last``: int64 (columns, n), a view.

        It stays as it is, unless rows are taken off.
        """
        return self.arrays[0][:, first : self._count[0] if last is None else last]

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """Those of some numbers: int64 (columns, n)."""
        return self.arrays[0].take(numbers, axis=1)

    def find_or_add(self, columns: Columns) -> np.ndarray:
        """The number of each row, int64; a row not seen before gets the next one.

        Without columns there is one row.  Expected O(rows).
        """
        if len(columns) != self.arity:
            raise ValueError(f"{len(columns)} columns for a table of {self.arity}")
        keys = table_of(columns, 1)
        numbers = np.empty(keys.shape[1], np.int64)
        done = 0
        while (done := self._found(keys, done, numbers)) < len(numbers):
            self.make_room()
        return numbers

    @wraps_around
    def _found(self, keys: np.ndarray, first: int, numbers: np.ndarray) -> int:
        return int(_find_or_add_all(keys, first, self.arrays, numbers))

    def make_room(self, n_more: int = 1) -> None:
        """Room for so many rows more; twice what there was, where that is not enough."""
        needed, room = int(self._count[0]) + n_more, self.arrays[0].shape[1]
        if needed > room:
            self._resize(max(needed, 2 * room), self._is_placed)

    def place(self) -> None:
        """From now on rows are found: all of them are given places, where they have none."""
        if not self._is_placed:
            self._resize(self.room, True)

    @wraps_around
    def truncate(self, n_rows: int) -> None:
        """Forget the rows from number ``n_rows`` on.  Expected O(rows forgotten)."""
        assert 0 <= n_rows <= self.n_rows
        _take_off(self.arrays, n_rows)

    def compacted(self, kept: np.ndarray, room: int = LEAST_ROOM) -> RowTable:
        """A table of the rows of these numbers alone, numbered anew in their order.  O(rows)."""
        return RowTable.of(self.rows_of(kept), room)

    @wraps_around
    def _resize(self, room: int, is_placed: bool) -> None:
        """Room for that many rows, and twice the places or more, where they have places.

        Raises :class:`~lftj.errors.RangeError` for more than ``MOST_ROWS`` of these.
        """
        if room > MOST_ROWS and is_placed:
            if self.n_rows >= MOST_ROWS:
                raise RangeError(f"there are more than {MOST_ROWS:,} distinct rows: a table has no more")
            room = MOST_ROWS
        stored = np.empty((self.arity, room), np.int64)
        stored[:, : self.n_rows] = self.rows()
        arrays = stored, _free_places(room, is_placed), self._count
        if is_placed:
            _refill(arrays)
        self.arrays, self._is_placed = arrays, is_placed

    @wraps_around
    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module's header."""
        n, (stored, places, _) = self.n_rows, self.arrays
        assert n <= self.room and (2 * self.room <= len(places) or not self._is_placed)
        assert len(set(map(tuple, self.rows().T.tolist()))) == n, "no two rows are equal"
        as_added = stored, np.zeros_like(places), self._count
        if self._is_placed:
            _refill(as_added)
        assert np.array_equal(as_added[1], places), "rows stand as if added in order"


def _free_places(room: int, is_placed: bool) -> np.ndarray:
    return np.zeros(1 << (2 * room - 1).bit_length() if is_placed else 0, np.uint32)


@part(forceinline=True)
def _hashed(keys, row, last):
    """The place that the hash of ``keys[:, row]`` names, and the tag; uint64.

    last: uint64, the number of the last place.
    """
    mixed = np.uint64(0x9E3779B97F4A7C15)
    value = np.int64(0)
    for column in range(keys.shape[0]):
        value = keys[column, row]
        high = value if column + 1 < keys.shape[0] else value >> 3
        mixed = (mixed ^ np.uint64(high)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x94D049BB133111EB)  # where only the high bits of values differ, low ones do so now
    mixed ^= mixed >> np.uint64(29)
    near = np.uint64(value) & np.uint64(7)
    tag = (mixed >> np.uint64(32) ^ near << np.uint64(29)) & ~last
    return (mixed << np.uint64(3) | near) & last, tag


@part(forceinline=True)
def _place_of(keys, row, table):
    """The place of the row ``keys[:, row]``, or the free one where it would stand; and its tag."""
    stored, places, _ = table
    last = np.uint64(len(places) - 1)
    place, tag = _hashed(keys, row, last)
    while places[place] != 0:
        if np.uint64(places[place]) & ~last == tag:
            number = np.int64(np.uint64(places[place]) & last) - 1
            same = True
            for column in range(keys.shape[0]):
                same = same and stored[column, number] == keys[column, row]
            if same:
                break
        place = (place + np.uint64(1)) & last
    return place, tag


@part(forceinline=True)
def find(keys, row, table):
    """The number of the row ``keys[:, row]``; -1 where it is not there.

    keys: int64 (columns, n); table: Rows, those of a table that has places.
    """
    place, _ = _place_of(keys, row, table)
    places = table[1]
    return np.int64(np.uint64(places[place]) & np.uint64(len(places) - 1)) - 1


@part(forceinline=True)
def find_or_add(keys, row, table):
    """The number of the row ``keys[:, row]``, the next one where it is not there; NO_ROOM: there is none.

    Arguments as of find; the table is written.
    """
    place, tag = _place_of(keys, row, table)
    stored, places, n_rows = table
    number = np.int64(np.uint64(places[place]) & np.uint64(len(places) - 1)) - 1
    if number < 0:
        number = n_rows[0]
        if number == stored.shape[1]:
            return np.int64(NO_ROOM)
        places[place] = np.uint32(tag | np.uint64(number + 1))
        append(keys, row, table)
    return number


@part(forceinline=True)
def append(keys, row, table):
    """Write a row that is new behind those of a table that has room for it; it is given no place."""
    stored, _, n_rows = table
    number = n_rows[0]
    for column in range(keys.shape[0]):
        stored[column, number] = keys[column, row]
    n_rows[0] = number + 1


@kernel
def _find_or_add_all(keys, first, table, numbers):
    """Write the numbers of the rows from ``first`` on, until a new one finds no room.

    keys: int64 (columns, n); table: Rows, written; numbers: int64 (n,), written.  Returns the first row not
    done.
    """
    for row in range(first, keys.shape[1]):
        number = find_or_add(keys, row, table)
        if number == NO_ROOM:
            return row
        numbers[row] = number
    return keys.shape[1]


@kernel
def _refill(table):
    """Put all rows of a table, which are distinct, into places that are all free; Rows, written."""
    stored, places, n_rows = table
    last = np.uint64(len(places) - 1)
    for number in range(n_rows[0]):
        place, tag = _hashed(stored, number, last)
        while places[place] != 0:
            place = (place + np.uint64(1)) & last
        places[place] = np.uint32(tag | np.uint64(number + 1))


@kernel
def _take_off(table, n_left):
    """Free the places of the rows from ``n_left`` on, the last first: nothing was probed past it.

    table: Rows, written.
    """
    stored, places, n_rows = table
    for number in range(n_rows[0] - 1, n_left - 1, -1):
        places[_place_of(stored, number, table)[0]] = 0
    n_rows[0] = n_left
