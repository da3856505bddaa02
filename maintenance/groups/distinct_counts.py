"""Maintained ``count(distinct v)`` by group: how often each value stands in its group, and how many do.

    supports[slot, v..., f]  = assignments of the group with these values, none NULL, that pass filter f
    counts[slot, f]          = values whose support is above 0

Counts of one value under several filters have one table of values; ``count(distinct v)`` passes everything.

Invariants

1. A value of a group that is there has a support above 0; those with none are values that went, which keep
   their numbers until the table is tidied: of 1,024 values or more, half or more are there.
2. ``counts`` has of each slot and filter the number of values with a support above 0; slots that were never
   kept have 0.
3. ``stage`` writes nothing that is published: values that it adds to the table have the support 0, and go
   with ``drop``.  ``add`` does, while nothing was ever kept: ``drop`` then takes all of it away.
4. The codes of values that are there keep their values (:mod:`lftj.values.collector`).

Cost: a look-up per row, expected, whatever the number of filters.  Memory: that of a
:class:`~lftj.storage.row_table.RowTable` of slots and values, and for each filter 8 bytes more for each of
its rows, and 8 per slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part
from indices.wrapping import wraps_around
from lftj.aggregates.whole import argument_names
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate
from lftj.storage.row_table import NO_ROOM, Rows, RowTable, find_or_add
from lftj.storage.signed_rows import Columns, row_order, table_of
from lftj.values.collector import Held
from lftj.values.domain import NULL_CODE
from lftj.values.schema import ColumnType
from maintenance.changes.timed_change import running, starts_of
from maintenance.groups.accumulator import Accumulator, GroupRows

_LEAST_TIDIED = 1024


class _Step(NamedTuple):
    """What ``keep`` publishes."""

    numbers: np.ndarray  # of values, each once
    supports: np.ndarray
    slots: np.ndarray  # of groups
    counts: np.ndarray
    n_there: int


class DistinctCounts(Accumulator):
    """The accumulator of a count of distinct values."""

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType], n_filters: int = 1) -> None:
        """``types``: of every variable that the head has as an argument.

        ``n_filters``: where there are several, the rows that are staged have one argument, and behind it of
        each row the filters that it passes, bits of a number.
        """
        assert isinstance(head.value, Aggregate)
        self._types = [types[name] for name in argument_names(head.value)]
        self._table = RowTable(1 + len(self._types))
        self._supports = np.zeros((0, n_filters), np.int64)  # by number of the table's rows, 0 beyond
        self._counts = np.zeros((0, n_filters), np.int64)  # by slot
        self._n_values = 0  # of the table, those that were kept: what it has beyond them is staged
        self._n_there = 0
        self._staged: _Step | None = None
        self._hold()

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._hold()

    def _hold(self) -> None:
        for collector in {type_.domain.collector for type_ in self._types}:
            if collector is not None:
                collector.hold(self)

    def held(self) -> list[Held]:
        """The codes that are to keep their values."""
        rows = self._there()
        columns = zip(self._types, rows[1:], strict=True)
        coded = [(of.domain, codes) for of, codes in columns if of.domain.collector is not None]
        return [Held(rows, coded)]

    def _there(self) -> np.ndarray:
        """Slots and values, those that are there: int64 (1 + arguments, n), a copy."""
        return self._table.rows_of(self._numbers_there())

    def _numbers_there(self) -> np.ndarray:
        return np.flatnonzero(self._supports[: self._n_values].any(axis=1))

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return self._table.nbytes + self._supports.nbytes + self._counts.nbytes

    @property
    def counts_one(self) -> bool:
        """Whether values are those of one variable, counted under no other filter."""
        return len(self._types) == 1 and self._counts.shape[1] == 1

    @property
    def keeps_null(self) -> bool:
        """Whether NULL may be among the arguments."""
        return any(type_.nullable or type_.domain.keeps_null for type_ in self._types)

    @property
    def n_values(self) -> int:
        """Of the table, those that were kept."""
        return self._n_values

    @property
    def n_there(self) -> int:
        """Values with a support above 0."""
        return self._n_there

    def with_room(self, n_values: int, n_slots: int) -> tuple[Rows, np.ndarray, np.ndarray]:
        """The table's arrays, with room for as many values more, supports by number and counts by slot: for
        kernels that add values, and write both as :meth:`keep` does."""
        self._table.truncate(self._n_values)
        self._table.make_room(n_values)
        self._supports = _with_room(self._supports, self._table.room)
        self._counts = _with_room(self._counts, n_slots)
        return self._table.arrays, self._supports, self._counts

    def take_totals(self, arrays: Rows, n_values: int, n_there: int) -> None:
        """So many values are kept by kernels, and there; where the table has still these arrays."""
        if all(one is other for one, other in zip(self._table.arrays, arrays, strict=True)):
            self._table.truncate(n_values)
            self._n_values, self._n_there = n_values, n_there
            self._tidy()

    def stage(self, rows: GroupRows) -> np.ndarray:
        assert self._staged is None, "what was staged has to be kept or dropped first"
        self._staged = self._with(rows)
        return self._by_filter(self._staged.counts)

    def add(self, rows: GroupRows) -> None:
        assert self._staged is None, "what was staged has to be kept or dropped first"
        self._publish(self._with(rows))

    def values(self, keys: Columns, slots: np.ndarray, counts: np.ndarray) -> np.ndarray:
        self._counts = _with_room(self._counts, int(slots.max(initial=-1)) + 1)
        return self._by_filter(self._counts[slots])

    def _by_filter(self, counts: np.ndarray) -> np.ndarray:
        """int64 (groups, filters); of one filter (groups,)."""
        return counts[:, 0] if counts.shape[1] == 1 else counts

    @wraps_around
    def _with(self, rows: GroupRows) -> _Step:
        """The supports of the rows' values, and the groups' counts, with the rows."""
        self._counts = _with_room(self._counts, rows.n_slots)
        arguments = table_of(rows.arguments, len(rows.weights))
        if self._counts.shape[1] == 1:
            passed = self.known(arguments, len(rows.weights)).astype(np.int64)
        else:
            arguments, passed = arguments[:-1], arguments[-1]
        while True:
            numbers, supports, counts, n_more = _counted(
                arguments, passed, rows.weights, rows.offsets, rows.slots, self._table.arrays,
                self._supports, self._counts,
            )  # fmt: skip
            if len(counts) == len(rows.slots):
                break
            self._table.make_room()
        self._supports = _with_room(self._supports, self._table.n_rows)
        return _Step(numbers, supports, rows.slots, counts, self._n_there + n_more)

    def known(self, arguments: Columns, n_rows: int) -> np.ndarray:
        """Whether no argument of a row is NULL, so that the row is read: bool, by row."""
        known = np.ones(n_rows, np.bool_)
        for type_, codes in zip(self._types, arguments, strict=True):
            if type_.domain.keeps_null:
                known &= codes != NULL_CODE
        return known

    def crossings(
        self, slots: np.ndarray, arguments: Columns, times: np.ndarray, weights: np.ndarray, number: int = 0
    ) -> np.ndarray:
        """By how much signed rows that come at some times change their groups' counts under a filter.

        ``arguments``: NULL where a row does not pass it.
        ``slots``: of each row, those of no group that is there are above all others.  Nothing is staged.
        Of rows that are alike and of one time one has it all.
        """
        if not len(weights):
            return weights
        rows = np.array([slots, *arguments, times])
        order = row_order(rows)
        rows = np.ascontiguousarray(rows[:, order])
        starts = starts_of(rows)[:-1]  # of what a value gets at one time
        offsets = starts_of(np.ascontiguousarray(rows[:-1, starts]))
        values = rows[:-1, starts[offsets[:-1]]]
        try:
            numbers = self._table.find_or_add(values)
            self._supports = _with_room(self._supports, self._table.n_rows)
            supports = self._supports[numbers, number]
        finally:
            self._table.truncate(self._n_values)
        before, after = running(offsets, supports, np.add.reduceat(weights[order], starts))
        found = np.zeros(len(weights), np.int64)
        found[order[starts]] = (after > 0).astype(np.int64) - (before > 0)
        return found * self.known(arguments, len(weights))

    def _publish(self, step: _Step) -> None:
        _publish(self._supports, self._counts, *step[:4])
        self._n_there = step.n_there

    def _keep_own(self) -> None:
        if self._staged is not None:
            self._publish(self._staged)
            self._staged = None
        self._n_values = self._table.n_rows
        self._tidy()

    def _tidy(self) -> None:
        """Forget values that went, where they are many."""
        if self._n_values >= _LEAST_TIDIED and 2 * self._n_there < self._n_values:
            there = self._numbers_there()
            tidied = self._table.compacted(there), self._supports[there], len(there)
            self._table, self._supports, self._n_values = tidied

    def _drop_own(self) -> None:
        self._table.truncate(self._n_values)
        if not self._n_values:
            self._supports[:], self._counts[:], self._n_there = 0, 0, 0
        self._staged = None

    def remapped(self, kept: np.ndarray) -> DistinctCounts:
        assert self._staged is None
        self._counts = _with_room(self._counts, int(kept.max(initial=-1)) + 1)
        slot_of = np.full(len(self._counts), -1)
        slot_of[kept] = np.arange(len(kept))
        there = self._numbers_there()
        rows = self._table.rows_of(there)
        rows[0] = slot_of[rows[0]]
        assert (rows[0] >= 0).all(), "a group that is gone has no values"
        other = DistinctCounts.__new__(DistinctCounts)
        other.__setstate__(
            {
                **self.__dict__,
                "_table": RowTable.of(rows),
                "_supports": self._supports[there],
                "_counts": self._counts[kept],
                "_n_values": len(there),
            }
        )
        return other

    def _check_own(self) -> None:
        self._table.check_invariants()
        supports = self._supports[: self._n_values]
        assert (self._supports >= 0).all() and not self._supports[self._n_values :].any()
        assert self._n_there == len(self._numbers_there())
        assert self._n_values < _LEAST_TIDIED or 2 * self._n_there >= self._n_values
        for number, counts in enumerate(self._counts.T):
            slots = self._table.rows_of(np.flatnonzero(supports[:, number]))[0]
            found = np.bincount(slots, minlength=len(counts))
            assert np.array_equal(found, counts), "a count is that of the values that are there"


def _with_room(numbers: np.ndarray, n: int) -> np.ndarray:
    """The numbers, int64 (rows, filters), zeros behind them where there are fewer rows than ``n``."""
    missing = n - len(numbers)
    if missing <= 0:
        return numbers
    return np.concatenate([numbers, np.zeros((max(missing, len(numbers)), numbers.shape[1]), np.int64)])


@kernel(makes_arrays=True)
def _counted(arguments, passed, weights, offsets, slots, table, supports, counts):  # type: ignore[no-untyped-def]
    """Numbers of the rows' values that pass a filter, int64, their supports and the groups' counts.

    Supports and counts are those with the rows.  Also by how many values there are more.  No counts where the
    table has no room for a new value.
    arguments: int64 (arguments, n), equal ones of a group side by side; passed: int64 (n,), bit f: filter f;
    weights: int64 (n,); offsets: int64, group g's rows are ``[offsets[g], offsets[g + 1])``; slots: int64, by
    group.  table: Rows, written; supports: int64 (numbers, filters), 0 beyond, counts: int64 (slots,
    filters); read.
    """
    filters = supports.shape[1]
    numbers, after = np.empty(len(weights), np.int64), np.empty((len(weights), filters), np.int64)
    new_counts = np.empty((len(slots), filters), np.int64)
    value = np.empty((1 + arguments.shape[0], 1), np.int64)
    n, n_more = 0, np.int64(0)
    for group in range(len(slots)):
        value[0, 0] = slots[group]
        for filter_ in range(filters):
            new_counts[group, filter_] = counts[slots[group], filter_]
        row, end = offsets[group], offsets[group + 1]
        while row < end:
            if passed[row] == 0:
                row += 1
                continue
            for argument in range(arguments.shape[0]):
                value[1 + argument, 0] = arguments[argument, row]
            number = find_or_add(value, 0, table)
            if number == NO_ROOM:
                return numbers[:0], after[:0], new_counts[:0], np.int64(0)
            is_kept = number < len(supports)
            for filter_ in range(filters):
                after[n, filter_] = supports[number, filter_] if is_kept else 0
            first = row
            while row < end and _are_equal(arguments, first, row):
                for filter_ in range(filters):
                    after[n, filter_] += weights[row] * (passed[row] >> filter_ & 1)
                row += 1
            was, is_ = np.int64(0), np.int64(0)
            for filter_ in range(filters):
                before, now = supports[number, filter_] if is_kept else np.int64(0), after[n, filter_]
                assert now >= 0, "an assignment went that had not been there"
                new_counts[group, filter_] += np.int64(now > 0) - np.int64(before > 0)
                was, is_ = was | np.int64(before > 0), is_ | np.int64(now > 0)
            numbers[n] = number
            n_more += is_ - was
            n += 1
    return numbers[:n], after[:n], new_counts, n_more


@part
def _are_equal(arguments, left, right):  # type: ignore[no-untyped-def]
    """Whether two rows, columns of ``arguments``, are alike."""
    for argument in range(arguments.shape[0]):
        if arguments[argument, left] != arguments[argument, right]:
            return False
    return True


@kernel
def _publish(supports, counts, numbers, new_supports, slots, new_counts):  # type: ignore[no-untyped-def]
    """Write what was staged.  supports: int64 (numbers, filters), counts: int64 (slots, filters); written."""
    for place in range(len(numbers)):
        for filter_ in range(supports.shape[1]):
            supports[numbers[place], filter_] = new_supports[place, filter_]
    for group in range(len(slots)):
        for filter_ in range(counts.shape[1]):
            counts[slots[group], filter_] = new_counts[group, filter_]
