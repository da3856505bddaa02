"""Where rows are found again: a hash table with linear probing, of row numbers.

A *place* is 0 where it is free, else a row's number + 1, with a *tag* above it: some bits of the row's hash
that have no part in where it stands.  So a row is looked at only where its tag fits.

Rows that differ in the last few bits of the last column alone stand near each other: a scan over sorted rows
finds them in one cache line.

Invariant: a row stands at the first place from its hash on that was free when it came, and no more than half
of the places are taken.

Cost: of a look-up one access to the places, and one to a row for each column; places are 8 bytes.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part

ROW_BITS = 40
"""Of a place; the bits above it are the tag."""

_ROWS = (1 << ROW_BITS) - 1
_TAG_SHIFT = 42


@part(forceinline=True)
def place_of(table, row, rows, places):
    """Where a row of int64 (columns, n) stands in ``places``, or would: that is free; and its tag.

    rows: int64 (columns, room), those that have places; places: int64 (a power of 2,).
    """
    columns = table.shape[0]
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for column in range(columns):
        value = table[column, row] if column + 1 < columns else table[column, row] >> 3
        mixed = (mixed ^ np.uint64(value)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    near = np.uint64(table[columns - 1, row]) & np.uint64(7)
    tag = np.int64(mixed >> np.uint64(_TAG_SHIFT)) ^ np.int64(near)
    last = np.uint64(len(places) - 1)
    place = (mixed << np.uint64(3) | near) & last
    while places[place] != 0:
        if places[place] >> ROW_BITS == tag:
            number = (places[place] & _ROWS) - 1
            same = True
            for column in range(columns):
                same = same and rows[column, number] == table[column, row]
            if same:
                break
        place = (place + np.uint64(1)) & last
    return np.int64(place), tag


@part(forceinline=True)
def number_at(places, place):
    """The number of the row at a place; -1 where it is free."""
    return (places[place] & _ROWS) - 1


@part(forceinline=True)
def entry_of(number, tag):
    """What stands at the place of a row."""
    return tag << ROW_BITS | (number + 1)


def numbers_in(places: np.ndarray) -> np.ndarray:
    """The numbers of the rows that have places, in no order."""
    return (places[places != 0] & _ROWS) - 1
