"""Maintained aggregates by group: signed assignments in, the head's change out.

Specification: docs/design/engine.md section 6.

A group's value is a function of the multiset of its assignments' arguments.
Kept of each group are the number of assignments (which says whether the group
exists), the value published last, and what an *accumulator* needs to make the
next value from the next change.  ``count`` needs none.

    stage(dA) = A' - A,  A = {(key, value)}: -1 for a value that went, +1 for one that came
    add(A1), ..., add(An), built() = stage(A1 + ... + An), of a new one, without holding the sum

Invariants

1. A change takes two steps (:mod:`maintenance.staged`): ``stage`` computes and publishes nothing.
   After ``drop`` all is as it was; of one that was being built nothing is left.
2. A group is published when its count is above 0; counts are never negative: an
   assignment that goes was there.
3. ``_values`` has the value code of every published group.
4. Slots of groups that are gone, or whose change was dropped, show nowhere; of
   1,024 slots or more, :meth:`GroupedAggregate.tidy` keeps half or more in use.

Cost: one sort of the m signed rows, then O(m) and what the accumulator takes.
Memory: 16 bytes per slot beside the :class:`~lftj.storage.row_table.RowTable`
and the accumulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from indices.compiled import kernel
from indices.wrapping import wraps_around
from lftj.aggregates.exact_variances import exact_sums
from lftj.aggregates.group_names import spelled_call
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate
from lftj.storage.row_table import NO_ROOM, RowTable, find_or_add
from lftj.storage.signed_rows import Columns, first_rows, net_rows, row_order, table_of
from lftj.values.names import DISTINCT_COUNT, VARIANCES
from lftj.values.schema import ColumnType
from maintenance.changes.timed_change import running, starts_of
from maintenance.groups.accumulator import Accumulator, GroupRows
from maintenance.groups.boundaries import find_groups
from maintenance.groups.distinct_counts import DistinctCounts
from maintenance.groups.sums import GroupSums
from maintenance.groups.whole_sums import DecimalSums, WholeAverages, WholeSums
from maintenance.staged import Staged

_LEAST_TIDIED = 1024
_MOST_ASSIGNMENTS = 2.0**62


def accumulator_for(head: CheckedHead, types: Mapping[str, ColumnType]) -> Accumulator | None:
    """The accumulator of a head that needs no order; None for ``count``.  ValueError for other functions.

    ``types``: of every variable that the head has as a key or an argument.
    """
    if not isinstance(head.value, Aggregate):
        raise ValueError(f"head {head.relation} has no aggregate")
    if head.value.function == "count":
        return None
    if head.value.function == DISTINCT_COUNT:
        return DistinctCounts(head, types)
    if head.value.function in ("sum", "avg", *VARIANCES):
        sums = exact_sums(head, types)
        if not sums.is_whole:
            return GroupSums(head, types)
        if head.value.function == "avg":
            return WholeAverages(head, types)
        return (WholeSums if sums.are_codes else DecimalSums)(head, types)
    raise ValueError(f"{head.value.function} has no accumulator of sums")


class Step(NamedTuple):
    """What ``keep`` publishes."""

    slots: np.ndarray
    counts: np.ndarray
    values: np.ndarray
    n_groups: int
    n_assignments: int


class Opened(NamedTuple):
    """The groups of a step, and how many groups and assignments there are behind it."""

    keys: np.ndarray  # int64 (keys, groups), sorted
    offsets: np.ndarray
    slots: np.ndarray
    before: np.ndarray  # assignments of each group
    after: np.ndarray
    n_groups: int
    n_assignments: int


class Made(NamedTuple):
    """Which accumulator makes an aggregate's value, that of some number, and under which of its filters."""

    accumulator: int
    number: int = 0
    filter: int = 0


class GroupTable(Staged):
    """Groups under changes: of each the number of its assignments, and what was published last."""

    def __init__(self, n_keys: int, accumulators: Sequence[Accumulator | None], values: np.ndarray) -> None:
        """``values``: of no slot: (0,), or (0, aggregates) where there are several."""
        self._n_keys = n_keys
        self._accumulators = tuple(accumulators)
        self._table = RowTable(n_keys)  # a group's slot is the number of its keys
        self._counts = np.zeros(0, np.int64)  # by slot, as are the values
        self._values = values
        self._n_assignments = 0
        self._staged: Step | None = None
        self._is_building = False
        self._n_slots = 0  # of the table, those that were kept: what it has beyond them is staged
        self.n_groups = 0

    @property
    def parts(self) -> tuple[Staged, ...]:
        return tuple(filter(None, self._accumulators))

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        accumulators = sum(one.nbytes for one in filter(None, self._accumulators))
        return self._table.nbytes + self._counts.nbytes + self._values.nbytes + accumulators

    def rows(self) -> list[np.ndarray]:
        """The published groups and their values: columns (keys, value codes), sorted.  O(n log n)."""
        published = np.flatnonzero(self._counts[: self._table.n_rows] > 0)
        columns = [column[published] for column in (*self._table.rows(), *np.atleast_2d(self._values.T))]
        order = np.lexsort(columns[::-1])
        return [column[order] for column in columns]

    @wraps_around
    def _opened(self, rows: np.ndarray, weights: np.ndarray) -> Opened:
        """The groups of sorted rows, keys first; those that are new get slots."""
        table = self._table
        while True:
            keys, offsets, groups, n_came, n_more = _open_groups(
                rows, weights, self._n_keys, table.arrays, self._counts
            )
            if len(groups):
                break
            table.make_room()
        self._reserve()
        slots, before, after = groups
        n_groups, n_assignments = self.n_groups + n_came, self._n_assignments + n_more
        return Opened(keys, offsets, slots, before, after, n_groups, n_assignments)

    def _kept_order(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The keys of all groups of the table, sorted, and their slots."""
        slots = row_order(self._table.rows()) if self._n_keys else np.arange(self._table.n_rows)
        return [column[slots] for column in self._table.rows()], slots

    def _stage_nothing(self) -> None:
        none = np.empty(0, np.int64)
        self._staged = Step(none, none, self._values[:0], self.n_groups, self._n_assignments)

    def _slots_of(self, keys: Columns, n: int) -> np.ndarray:
        """The slots of ``n`` groups; those that are new get some behind all others, which are not taken."""
        try:
            slots = self._table.find_or_add(table_of(keys, n))
            self._reserve()
            return slots
        finally:
            self._table.truncate(self._n_slots)

    def _timed(
        self, keys: Columns, times: np.ndarray, weights: np.ndarray, amounts: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Columns of keys and values that come and go, with their times and signs.

        ``amounts``: of each aggregate, by how much a row changes its value.
        """
        n_keys = self._n_keys
        rows = np.array([*keys, times])
        order = row_order(rows)
        rows = np.ascontiguousarray(rows[:, order])
        if not len(order):
            return [times[:0]] * (n_keys + len(amounts)), times[:0], times[:0]
        starts = starts_of(rows)[:-1]  # of what a group gets at one time
        *groups, times = rows[:, starts]
        offsets = starts_of(np.ascontiguousarray(rows[:n_keys, starts]))
        slots = self._slots_of(rows[:n_keys, starts[offsets[:-1]]], len(offsets) - 1)
        counts = self._counts[slots]
        before, after = running(offsets, counts, np.add.reduceat(weights[order], starts))
        assert after.min() >= 0, "an assignment went that had not been there"
        stays, old, new = (before > 0) & (after > 0), [], []
        for published, changes in zip(np.atleast_2d(self._values[slots].T), amounts, strict=True):
            first = np.where(counts > 0, published, 0)
            was, is_ = running(offsets, first, np.add.reduceat(changes[order], starts))
            stays &= was == is_
            old.append(was)
            new.append(is_)
        went, came = (before > 0) & ~stays, (after > 0) & ~stays
        found = [np.append(column[went], column[came]) for column in (*groups, times)]
        values = [np.append(was[went], is_[came]) for was, is_ in zip(old, new, strict=True)]
        signs = np.repeat((-1, 1), (np.count_nonzero(went), np.count_nonzero(came)))
        return [*found[:-1], *values], found[-1], signs

    def _amounts(
        self, made: Made, head: CheckedHead, columns: Columns, times: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """By how much signed rows, of keys and arguments, change the value of an aggregate, that of a head.

        Raises RangeError where a value may not fit 64 bits on the way.
        """
        accumulator, number = self._accumulators[made.accumulator], made.number
        if accumulator is None:
            return weights
        if isinstance(accumulator, DistinctCounts):
            slots = self._slots_of(columns[: self._n_keys], len(times))
            return accumulator.crossings(slots, columns[self._n_keys :], times, weights, made.filter)
        published = np.atleast_2d(self._values.T)[number]
        largest = float(np.abs(published.astype(np.float64)).max(initial=0.0))
        amounts = np.abs(columns[-1].astype(np.float64)) * np.abs(weights.astype(np.float64))
        if largest + float(amounts.sum()) >= _MOST_ASSIGNMENTS:
            raise RangeError(f"{shown_name(head.relation)}: a sum may not fit 64 bits on the way")
        return weights * columns[-1]

    def _keep_own(self) -> None:
        self._is_building = False
        staged = self._staged
        if staged is None:
            return
        self._counts[staged.slots] = staged.counts
        self._values[staged.slots] = staged.values
        self.n_groups, self._n_assignments = staged.n_groups, staged.n_assignments
        self._n_slots = self._table.n_rows
        self._staged = None

    def _drop_own(self) -> None:
        self._table.truncate(self._n_slots)
        if self._is_building:
            self._counts[:], self._n_assignments = 0, 0
            self._is_building = False
        self._staged = None

    def tidy(self) -> None:
        """Free the slots of groups that are gone, when they are the most of 1,024 or more.

        Nothing may be staged.  O(slots) then, so O(1) per group that went, amortised.
        """
        assert self._staged is None
        n_slots = self._n_slots
        if n_slots < _LEAST_TIDIED or 2 * self.n_groups >= n_slots:
            return
        kept = np.flatnonzero(self._counts[:n_slots])
        accumulators = tuple(one and one.remapped(kept) for one in self._accumulators)
        tidied = self._table.compacted(kept), self._counts[kept], self._values[kept], accumulators, len(kept)
        self._table, self._counts, self._values, self._accumulators, self._n_slots = tidied

    def _check_own(self) -> None:
        self._table.check_invariants()
        n_slots = self._table.n_rows
        assert len(self._counts) == len(self._values)
        assert (self._counts >= 0).all()
        assert self._n_slots == n_slots or self._staged is not None
        assert not self._counts[self._n_slots :].any(), "a slot beyond the table counts something"
        assert self.n_groups == np.count_nonzero(self._counts)
        assert self._n_assignments == int(self._counts.sum())

    def _guard(self, weights: np.ndarray, head: CheckedHead) -> None:
        """See to it that no sum of weights wraps."""
        if self._n_assignments + float(np.abs(weights.astype(np.float64)).sum()) >= _MOST_ASSIGNMENTS:
            assert isinstance(head.value, Aggregate)
            raise RangeError(
                f"{shown_name(head.relation)} = {spelled_call(head.value)}:"
                " there are more than 2**62 assignments: their number may not fit int64"
            )

    def _reserve(self) -> None:
        """Counts of 0 for the slots that are new."""
        missing = self._table.n_rows - len(self._counts)
        if missing > 0:
            room = max(missing, len(self._counts))
            values = np.zeros((room, *self._values.shape[1:]), np.int64)
            values = np.concatenate([self._values, values])
            self._counts, self._values = np.append(self._counts, np.zeros(room, np.int64)), values


class GroupedAggregate(GroupTable):
    """The groups and values of one aggregate head under changes.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import Variable
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("p", integer), Column("c", integer)), functional=True)
    >>> head = CheckedHead("total", ("p",), Aggregate("sum", (Variable("c"),)), schema, (0, 0))
    >>> types = {"p": integer, "c": integer}
    >>> totals = GroupedAggregate(head, types, accumulator_for(head, types))
    >>> columns, weights = totals.stage([np.array([1, 1, 2]), np.array([10, 30, 5])], np.array([1, 2, 1]))
    >>> [column.tolist() for column in columns], weights.tolist()
    ([[1, 2], [70, 5]], [1, 1])
    >>> totals.keep()
    >>> columns, weights = totals.stage([np.array([1, 2]), np.array([30, 5])], np.array([-1, -1]))
    >>> [column.tolist() for column in columns], weights.tolist()
    ([[1, 1, 2], [40, 70, 5]], [1, -1, -1])
    """

    def __init__(
        self, head: CheckedHead, types: Mapping[str, ColumnType], accumulator: Accumulator | None
    ) -> None:
        """``accumulator``: of the head's function, new; None for ``count``."""
        assert isinstance(head.value, Aggregate)
        super().__init__(len(head.variables), [accumulator], np.zeros(0, np.int64))
        self._head = head
        self._types = types

    @property
    def _accumulator(self) -> Accumulator | None:
        return self._accumulators[0]

    def stage(
        self, columns: Columns, weights: np.ndarray, are_unscaled: bool = False
    ) -> tuple[Columns, np.ndarray]:
        """The head's change by signed assignments: columns (keys, value code), sorted, and weights, 1 or -1.

        ``columns``: int64 codes of the key variables, then of the aggregate's arguments, the aggregated one
        last; where ``are_unscaled`` that is a decimal in units of its last digit.  ``weights``: int64.
        Rows may repeat and come in any order.  Nothing is published: call
        :meth:`keep` or :meth:`drop` before the next.  Raises :class:`~lftj.errors.RangeError`, naming head
        and group, when a value does not fit its type; then nothing is staged.
        """
        assert self._staged is None, "what was staged has to be kept or dropped first"
        try:
            found = self._found(columns, weights, are_unscaled)
            if found is None:
                self._stage_nothing()
                none = np.empty(0, np.int64)
                return [none] * (self._n_keys + 1), none
            rows, groups = found
            (accumulator,) = self._accumulators
            values = rows.counts if accumulator is None else accumulator.stage(rows)
            self._head.schema.columns[-1].type.domain.claim(values)
        except BaseException:
            self.drop()
            raise
        self._staged = Step(rows.slots, rows.counts, values, groups.n_groups, groups.n_assignments)
        return _difference(rows.keys, rows.slots, self._values, groups.before, rows.counts, values)

    def add(self, columns: Columns, weights: np.ndarray, are_unscaled: bool = False) -> None:
        """Take some of the assignments that there are when nothing was kept yet; then :meth:`built`.

        Arguments as of :meth:`stage`, weights above 0.  Memory: that of the groups and of these rows.
        """
        assert self._staged is None and not self._n_slots, "groups are built before their first change"
        self._is_building = True
        found = self._found(columns, weights, are_unscaled)
        if found is None:
            return
        rows, groups = found
        if self._accumulator is not None:
            self._accumulator.add(rows)
        self._counts[rows.slots] = rows.counts
        self._n_assignments = groups.n_assignments

    def built(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The head's change by all that was added, as :meth:`stage` gives it; it is kept or dropped alike."""
        keys, slots = self._kept_order()
        counts = self._counts[slots]
        try:
            values = counts
            if self._accumulator is not None and len(slots):
                values = self._accumulator.values(keys, slots, counts)
                self._head.schema.columns[-1].type.domain.claim(values)
        except BaseException:
            self.drop()
            raise
        self._staged = Step(slots, counts, values, len(slots), self._n_assignments)
        return [*keys, values], np.ones(len(slots), np.int64)

    def _found(
        self, columns: Columns, weights: np.ndarray, are_unscaled: bool
    ) -> tuple[GroupRows, Opened] | None:
        """Signed assignments by group, and the groups; None where they cancel."""
        weights = np.ascontiguousarray(weights, np.int64)
        self._guard(weights, self._head)
        rows, weights = net_rows(columns, weights)
        if not len(weights):
            return None
        groups = self._opened(rows, weights)
        arguments = rows[self._n_keys :]
        found = GroupRows(
            groups.keys, groups.slots, groups.after, groups.offsets, arguments, weights, self._table.n_rows,
            are_unscaled,
        )  # fmt: skip
        return found, groups

    @property
    def timed_refusal(self) -> str | None:
        """Why :meth:`timed_step` can't be had, if so."""
        return timed_refusal_of(self._head, self._accumulator)

    def timed_step(
        self, columns: Columns, times: np.ndarray, weights: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """The head's changes by signed assignments that come at some times: columns, times and weights.

        Arguments as for :meth:`stage`, with the time of each row.  Nothing is staged.  Raises RangeError
        where a value may not fit 64 bits on the way.
        """
        self._guard(weights, self._head)
        amounts = self._amounts(Made(0), self._head, columns, times, weights)
        return self._timed(columns[: self._n_keys], times, weights, [amounts])


def timed_refusal_of(head: CheckedHead, accumulator: Accumulator | None) -> str | None:
    """Why the values of a head can't be found through a batch, if so."""
    if accumulator is None or type(accumulator) in (WholeSums, DistinctCounts):
        return None
    assert isinstance(head.value, Aggregate)
    return f"{head.value.function}, other than counts and sums of whole numbers"


@kernel(makes_arrays=True)
def _open_groups(rows, weights, n_keys, table, counts):  # type: ignore[no-untyped-def]
    """The groups of a step: their keys and offsets, as GroupRows has them, slots and counts before and after.

    Slots and counts: int64 (3, groups), or (0, 0) where the table has no room for a new group.  Also by
    how many groups and assignments there are more.
    rows: int64 (columns, n), net, sorted; weights: int64 (n,).  table: Rows, written; counts: int64, by slot,
    0 beyond; read.
    """
    keys, offsets = find_groups(rows, n_keys)
    groups = np.empty((3, len(offsets) - 1), np.int64)
    n_came, n_more = np.int64(0), np.int64(0)
    for group in range(groups.shape[1]):
        slot = find_or_add(keys, group, table)
        if slot == NO_ROOM:
            return keys, offsets, np.empty((0, 0), np.int64), n_came, n_more
        before = counts[slot] if slot < len(counts) else np.int64(0)
        change = np.int64(0)
        for row in range(offsets[group], offsets[group + 1]):
            change += weights[row]
        assert before + change >= 0, "an assignment went that had not been there"
        groups[0, group], groups[1, group], groups[2, group] = slot, before, before + change
        n_came += np.int64(before + change > 0) - np.int64(before > 0)
        n_more += change
    return keys, offsets, groups, n_came, n_more


@kernel(makes_arrays=True)
def _difference(keys, slots, values, before, after, new_values):  # type: ignore[no-untyped-def]
    """-1 for each group's value that went and 1 for each that came, as sorted rows: (columns, n) and (n,).

    keys: int64 (keys, groups), sorted.  values: int64, published ones by slot.  The others: int64, by group.
    """
    last = keys.shape[0]
    rows = np.empty((last + 1, 2 * len(slots)), np.int64)
    weights = np.empty(2 * len(slots), np.int64)
    n = np.int64(0)
    for group in range(len(slots)):
        old, new = values[slots[group]], new_values[group]
        went, came = before[group] > 0, after[group] > 0
        if went and came:
            if old == new:
                continue
            # the smaller value comes first
            rises = np.int64(old < new)
            rows[last, n], rows[last, n + 1] = min(old, new), max(old, new)
            weights[n], weights[n + 1] = 1 - 2 * rises, 2 * rises - 1
        elif went or came:
            rows[last, n], weights[n] = old if went else new, -1 if went else 1
        for column in range(last):
            for place in range(n, n + went + came):
                rows[column, place] = keys[column, group]
        n += np.int64(went) + np.int64(came)
    return first_rows(rows, n), weights[:n].copy()
