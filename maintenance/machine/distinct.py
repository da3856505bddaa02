"""GROUP's counts of distinct values, by the table that the general way has
(:class:`~maintenance.groups.distinct_counts.DistinctCounts`).

Invariant: values that a commit adds to the table have no support before it is published, and are taken off
again where it is not.

Cost: a look-up for each row that comes or goes.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import int64, types, uint32

from indices.array_views import view_of
from indices.calls_by_address import caller_of, code_address
from indices.compiled import part
from indices.records import Record, record_at
from lftj.memory import address, view
from lftj.storage.row_table import _take_off
from lftj.storage.signed_rows import _net
from lftj.values.domain import NULL_CODE
from maintenance.groups.distinct_counts import DistinctCounts, _counted
from maintenance.machine.records import DONE, ROOM

view_u32 = view_of(np.uint32)

_TABLE = types.Tuple((int64[:, ::1], uint32[::1], int64[::1]))
_COUNTED = (
    *(int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1]),
    *(_TABLE, int64[:, ::1], int64[:, ::1]),
)
counted_at_address = caller_of(_counted, _COUNTED)


class Distinct(Record):
    """The values of an aggregate's groups."""

    stored: int  # the arrays of the table of slots and values
    room: int
    places: int
    n_places: int
    count: int
    supports: int  # by number of a value, and for how many
    n_supports: int
    counts: int  # by slot, and for how many
    n_counts: int
    totals: int  # values that are kept, and those among them that are there
    keeps_null: int  # whether NULL may be among the values
    numbers: int  # that are staged: values, their supports, and by group the counts
    new_supports: int
    new_counts: int
    n_staged: int
    more: int  # values that are there more, by what is staged
    counted: int  # where the code of _counted is


distinct_at = record_at(Distinct)


@part(makes_arrays=True)
def _table_of(its):
    return (
        view(its.stored, 2 * its.room).reshape((2, its.room)),
        view_u32(its.places, its.n_places),
        view(its.count, 1),
    )


@part(makes_arrays=True)
def distinct_counts(its, keys, groups, rows, weights, column):
    """The counts of groups, int64 (groups,), and a status; what they come of is staged.

    keys, groups: as ``_open_groups`` has them; rows: int64 (columns, n), net, by groups, and weights; column:
    that of the values.
    """
    n_keys, n, n_known = keys.shape[0], groups.shape[1], np.int64(0)
    for row in range(len(weights)):
        n_known += its.keeps_null == 0 or rows[column, row] != NULL_CODE
    read, its_weights = np.empty((n_keys + 1, n_known), np.int64), np.empty(n_known, np.int64)
    at = np.int64(0)
    for row in range(len(weights)):
        if its.keeps_null == 0 or rows[column, row] != NULL_CODE:
            for key in range(n_keys):
                read[key, at] = rows[key, row]
            read[n_keys, at], its_weights[at] = rows[column, row], weights[row]
            at += 1
    read, its_weights = _net(read, its_weights)
    n_rows = np.int64(len(its_weights))
    offsets, passed = np.empty(n + 1, np.int64), np.ones(n_rows, np.int64)
    values = np.empty((1, n_rows), np.int64)
    at = np.int64(0)
    for group in range(n):
        offsets[group] = at
        while at < n_rows and is_of(read, at, keys, group):
            values[0, at] = read[n_keys, at]
            at += 1
    offsets[n] = at
    found = np.empty(n, np.int64)
    if view(its.count, 1)[0] + n_rows > min(its.room, its.n_supports):
        return found, ROOM
    numbers, supports, counts, more = counted_at_address(
        its.counted,
        *(values, passed, its_weights, offsets, groups[0], _table_of(its)),
        view(its.supports, its.n_supports).reshape((its.n_supports, 1)),
        view(its.counts, its.n_counts).reshape((its.n_counts, 1)),
    )
    if len(counts) < n:
        return found, ROOM
    staged, new_supports = view(its.numbers, len(numbers)), view(its.new_supports, len(numbers))
    for number in range(len(numbers)):
        staged[number], new_supports[number] = numbers[number], supports[number, 0]
    new_counts = view(its.new_counts, n)
    for group in range(n):
        found[group] = new_counts[group] = counts[group, 0]
    its.n_staged, its.more = len(numbers), more
    return found, DONE


@part
def is_of(rows, row, keys, group):
    """Whether a row is one of a group."""
    is_equal = True
    for key in range(keys.shape[0]):
        is_equal = is_equal and rows[key, row] == keys[key, group]
    return is_equal


@part(makes_arrays=True)
def forget_values(its):
    """Take off what a commit has added that was not published."""
    its.n_staged = its.more = 0
    if view(its.count, 1)[0] > view(its.totals, 1)[0]:
        _take_off(_table_of(its), view(its.totals, 1)[0])


@part
def publish_values(its, slots):
    """Write the supports and counts that are staged."""
    numbers, new_supports = view(its.numbers, its.n_staged), view(its.new_supports, its.n_staged)
    supports, counts = view(its.supports, its.n_supports), view(its.counts, its.n_counts)
    for place in range(its.n_staged):
        supports[numbers[place]] = new_supports[place]
    new_counts, totals = view(its.new_counts, len(slots)), view(its.totals, 2)
    for group in range(len(slots)):
        counts[slots[group]] = new_counts[group]
    totals[0] = view(its.count, 1)[0]
    totals[1] += its.more
    its.n_staged = its.more = 0


class Values:
    """The distinct values of an aggregate's groups, and room for those of a commit of so many rows."""

    def __init__(self, counts: DistinctCounts, rows: int) -> None:
        self._counts, self._rows = counts, rows
        self._words = np.zeros(Distinct.LENGTH, np.int64)
        self._staged = np.zeros((3, rows), np.int64)
        self._totals = np.zeros(2, np.int64)
        self._kept: tuple[np.ndarray, ...] = ()
        its = Distinct(self._words)
        its.numbers, its.new_supports, its.new_counts = map(address, self._staged)
        its.totals, its.counted = address(self._totals), code_address(_counted, _COUNTED)

    @property
    def record(self) -> int:
        """The address of the Distinct."""
        return address(self._words)

    def bind(self, n_slots: int) -> None:
        """Have room for so many slots, and for a commit, and the addresses of what is kept now."""
        kept, its = self._counts, Distinct(self._words)
        arrays, supports, counts = kept.with_room(self._rows, n_slots)
        stored, places, count = arrays
        its.stored, its.room, its.count = address(stored), stored.shape[1], address(count)
        its.places, its.n_places = address(places), len(places)
        its.supports, its.n_supports = address(supports), len(supports)
        its.counts, its.n_counts = address(counts), len(counts)
        its.keeps_null = kept.keeps_null
        its.n_staged = its.more = 0
        self._totals[:] = kept.n_values, kept.n_there
        self._kept = (*arrays, supports, counts)

    def fold(self) -> None:
        """Let the head know which values there are; may be done any number of times."""
        stored, places, count, *_ = self._kept
        self._counts.take_totals((stored, places, count), *map(int, self._totals))
