"""Numbers for the groups of a maintained aggregate.

A hash table with linear probing: each distinct key row has a number, its
*slot*, in the order of first appearance.  What is kept of a group lives in
arrays by slot.

Invariants (see :meth:`GroupTable.check_invariants`)

1. The keys of slot s are ``columns()[i][s]``; no two slots have equal keys.
2. Every slot stands at exactly one place of the table; from the place that its
   keys' hash names up to that one, none is free.  At most half are taken.
3. Slots stand in the table as if they had been added in the order of their
   numbers: so the last ones can be taken off again as if they never came.
4. Whoever is interrupted at any point leaves all of this in place: slots and
   their number are written by one kernel call, and larger arrays are filled
   before they take their place.

Cost: O(1) per row and column, expected; arrays double when full.  Memory: 8
bytes per column and 8 to 16 bytes of places per slot, up to twice that.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numba
import numpy as np

from indices.compiled import kernel, part
from lftj.storage.signed_rows import Columns, table_of

_FREE = -1
NO_ROOM = -1
_LEAST_ROOM = 16


@part
def _hash(keys, row):  # type: ignore[no-untyped-def]
    """Of ``keys[:, row]``; multiplied and folded column by column, since places use the low bits."""
    value = np.uint64(0x9E3779B97F4A7C15)
    for column in range(keys.shape[0]):
        value = (value ^ np.uint64(keys[column, row])) * np.uint64(0xFF51AFD7ED558CCD)
        value ^= value >> np.uint64(32)
    value *= np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(29))


@part
def _place_of(keys, row, stored, places):  # type: ignore[no-untyped-def]
    """The place of the slot whose keys are ``keys[:, row]``, or the free one where it would stand."""
    mask = np.uint64(len(places) - 1)
    place = _hash(keys, row) & mask
    while places[place] != _FREE:
        slot = places[place]
        column = 0
        while column < keys.shape[0] and stored[column, slot] == keys[column, row]:
            column += 1
        if column == keys.shape[0]:
            break
        place = (place + np.uint64(1)) & mask
    return place


@part
def find_or_add(keys, row, stored, places, n_slots):  # type: ignore[no-untyped-def]
    """The slot of ``keys[:, row]``, a new one where there is none; NO_ROOM where a new one finds none.

    keys: (columns, rows) int64, read; of no column there is one row, the empty one.  The others are a table's
    :attr:`GroupTable.arrays`.
    """
    if keys.shape[0] == 0:
        n_slots[0] = 1
        return np.int64(0)
    place = _place_of(keys, row, stored, places)
    slot = np.int64(places[place])
    if slot == _FREE:
        slot = n_slots[0]
        if slot == stored.shape[1]:
            return np.int64(NO_ROOM)
        n_slots[0] += 1
        places[place] = slot
        for column in range(keys.shape[0]):
            stored[column, slot] = keys[column, row]
    return slot


@kernel
def _find_slots(keys, first_row, stored, places, n_slots, slots):  # type: ignore[no-untyped-def]
    """Write the slots of the rows from ``first_row`` on, until a new one finds no room.

    slots: (rows,) int64, written; the others as of find_or_add.  Returns the first row not done.
    """
    for row in range(first_row, keys.shape[1]):
        slot = find_or_add(keys, row, stored, places, n_slots)
        if slot == NO_ROOM:
            return row
        slots[row] = slot
    return keys.shape[1]


@kernel
def _fill_places(stored, n_slots, places):  # type: ignore[no-untyped-def]
    """Put the slots 0 to ``n_slots`` - 1, distinct ones, into free ``places``."""
    mask = np.uint64(len(places) - 1)
    for slot in range(n_slots):
        place = _hash(stored, slot) & mask
        while places[place] != _FREE:
            place = (place + np.uint64(1)) & mask
        places[place] = slot


@kernel
def _take_off(stored, first_slot, n_slots, places):  # type: ignore[no-untyped-def]
    """Free the places of the slots from ``first_slot`` on, the last first: nothing was probed past it.

    n_slots: (1,) int64, written.
    """
    for slot in range(n_slots[0] - 1, first_slot - 1, -1):
        places[_place_of(stored, slot, stored, places)] = _FREE
    n_slots[0] = first_slot


_COMPILED = nullcontext()


def wrapping() -> AbstractContextManager[object]:
    """The hash wraps around, of which numpy warns when kernels run as plain Python."""
    return np.errstate(over="ignore") if numba.config.DISABLE_JIT else _COMPILED


class GroupTable:
    """Slots of distinct rows of ``arity`` int64 columns.

    >>> table = GroupTable(2)
    >>> table.slots([np.array([7, 5, 7]), np.array([1, 1, 1])]).tolist()
    [0, 1, 0]
    >>> [column.tolist() for column in table.columns()]
    [[7, 5], [1, 1]]
    >>> compacted, kept = table.compacted(np.array([False, True]))
    >>> kept.tolist(), compacted.slots([np.array([5]), np.array([1])]).tolist()
    ([1], [0])
    """

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self._n_slots = np.zeros(1, np.int64)  # in an array, for the kernels to write
        self._stored = np.empty((arity, 0), np.int64)
        self._places = np.empty(0, np.int32)
        self._resize(_LEAST_ROOM if arity else 1)

    @property
    def n_slots(self) -> int:
        return int(self._n_slots[0])

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return self._stored.nbytes + self._places.nbytes

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What :func:`find_or_add` reads and writes, up to the next :meth:`grow`.

        The keys by slot, int64 (columns, room), written beyond the slots that are taken; places, int32, a
        power of two, at least twice the room, written; the number of slots, (1,) int64, written.
        """
        return self._stored, self._places, self._n_slots

    def grow(self) -> None:
        """Twice the room."""
        self._resize(2 * self._stored.shape[1])

    def columns(self) -> list[np.ndarray]:
        """The keys by slot, a view per column: read them before the next call."""
        return [column[: self.n_slots] for column in self._stored]

    def slots(self, columns: Columns) -> np.ndarray:
        """The slot of each row, int64; a row not seen before gets the next one.

        Without columns there is one row, the empty one.  Expected O(rows).
        """
        if len(columns) != self.arity:
            raise ValueError(f"{len(columns)} columns for a table of {self.arity}")
        keys = table_of(columns, 1)
        slots = np.empty(keys.shape[1], np.int64)
        done = 0
        with wrapping():
            while True:
                done = _find_slots(keys, done, *self.arrays, slots)
                if done == len(slots):
                    return slots
                self.grow()

    def truncate(self, n_slots: int) -> None:
        """Forget the slots from ``n_slots`` on.  Expected O(slots forgotten)."""
        assert 0 <= n_slots <= self.n_slots
        if not self.arity:
            self._n_slots[0] = n_slots
            return
        with wrapping():
            _take_off(self._stored, n_slots, self._n_slots, self._places)

    def compacted(self, alive: np.ndarray) -> tuple[GroupTable, np.ndarray]:
        """A table of only the slots of the mask ``alive``, numbered anew in the same order.

        Also returns the old number of each new slot.  O(slots).
        """
        assert len(alive) == self.n_slots
        kept = np.flatnonzero(alive)
        table = GroupTable(self.arity)
        table._stored = self._stored[:, kept]
        table._n_slots[0] = len(kept)
        table._resize(max(_LEAST_ROOM if self.arity else 1, len(kept)))
        return table, kept

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module's header."""
        if not self.arity:
            assert self.n_slots in (0, 1)
            return
        assert self.n_slots <= self._stored.shape[1] <= len(self._places) // 2
        rows = list(zip(*(column.tolist() for column in self.columns()), strict=True))
        assert len(set(rows)) == self.n_slots, "no two slots have equal keys"
        taken = self._places[self._places != _FREE]
        assert sorted(taken.tolist()) == list(range(self.n_slots)), "every slot stands at one place"
        as_added = np.full(len(self._places), _FREE, np.int32)
        with wrapping():
            _fill_places(self._stored, self.n_slots, as_added)
        assert (as_added == self._places).all(), "slots stand as if added in order"

    def _resize(self, room: int) -> None:
        """Room for that many slots, and twice the places or more."""
        assert room < 1 << 31, "places are int32"
        stored = np.empty((self.arity, room), np.int64)
        stored[:, : self.n_slots] = self._stored[:, : self.n_slots]
        places = np.full(1 << (2 * room - 1).bit_length() if self.arity else 0, _FREE, np.int32)
        if self.arity:
            with wrapping():
                _fill_places(stored, self.n_slots, places)
        self._stored, self._places = stored, places
