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

from collections.abc import Mapping
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
from lftj.storage.signed_rows import Columns, net_rows, row_order
from lftj.values.names import VARIANCES
from lftj.values.schema import ColumnType
from maintenance.changes.timed_change import running, starts_of
from maintenance.groups.accumulator import Accumulator, GroupRows
from maintenance.groups.boundaries import find_groups
from maintenance.groups.sums import GroupSums
from maintenance.groups.whole_sums import WholeSums
from maintenance.staged import Staged

_LEAST_TIDIED = 1024
_MOST_ASSIGNMENTS = 2.0**62


def accumulator_for(head: CheckedHead, types: Mapping[str, ColumnType]) -> Accumulator | None:
    """The accumulator of a head of sums or variances; None for ``count``, ValueError for other functions.

    ``types``: of every variable that the head has as a key or an argument.
    """
    if not isinstance(head.value, Aggregate):
        raise ValueError(f"head {head.relation} has no aggregate")
    if head.value.function == "count":
        return None
    if head.value.function in ("sum", "avg", *VARIANCES):
        return WholeSums(head, types) if exact_sums(head, types).is_whole else GroupSums(head, types)
    raise ValueError(f"{head.value.function} has no accumulator of sums")


class _Step(NamedTuple):
    """What ``keep`` publishes."""

    slots: np.ndarray
    counts: np.ndarray
    values: np.ndarray
    n_groups: int
    n_assignments: int


class GroupedAggregate(Staged):
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
        self._head = head
        self._types = types
        self._n_keys = len(head.variables)
        self._accumulator = accumulator
        self._table = RowTable(self._n_keys)  # a group's slot is the number of its keys
        self._counts = np.zeros(0, np.int64)  # by slot, as are the values
        self._values = np.zeros(0, np.int64)
        self._n_assignments = 0
        self._staged: _Step | None = None
        self._is_building = False
        self._n_slots = 0  # of the table, those that were kept: what it has beyond them is staged
        self.n_groups = 0

    @property
    def parts(self) -> tuple[Staged, ...]:
        return () if self._accumulator is None else (self._accumulator,)

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        accumulator = self._accumulator.nbytes if self._accumulator else 0
        return self._table.nbytes + self._counts.nbytes + self._values.nbytes + accumulator

    def rows(self) -> list[np.ndarray]:
        """The published groups and their values: columns (keys, value code), sorted.  O(n log n)."""
        published = np.flatnonzero(self._counts[: self._table.n_rows] > 0)
        columns = [column[published] for column in (*self._table.rows(), self._values)]
        order = np.lexsort(columns[::-1])
        return [column[order] for column in columns]

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
                none = np.empty(0, np.int64)
                self._staged = _Step(none, none, none, self.n_groups, self._n_assignments)
                return [none] * (self._n_keys + 1), none
            rows, before, n_came, n_more = found
            values = rows.counts if self._accumulator is None else self._accumulator.stage(rows)
            self._head.schema.columns[-1].type.domain.claim(values)
        except BaseException:
            self.drop()
            raise
        self._staged = _Step(
            rows.slots, rows.counts, values, self.n_groups + n_came, self._n_assignments + n_more
        )
        return _difference(rows.keys, rows.slots, self._values, before, rows.counts, values)

    def add(self, columns: Columns, weights: np.ndarray, are_unscaled: bool = False) -> None:
        """Take some of the assignments that there are when nothing was kept yet; then :meth:`built`.

        Arguments as of :meth:`stage`, weights above 0.  Memory: that of the groups and of these rows.
        """
        assert self._staged is None and not self._n_slots, "groups are built before their first change"
        self._is_building = True
        found = self._found(columns, weights, are_unscaled)
        if found is None:
            return
        rows, _, _, n_more = found
        if self._accumulator is not None:
            self._accumulator.add(rows)
        self._counts[rows.slots] = rows.counts
        self._n_assignments += n_more

    def built(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The head's change by all that was added, as :meth:`stage` gives it; it is kept or dropped alike."""
        n_groups = self._table.n_rows
        slots = row_order(self._table.rows()) if self._n_keys else np.arange(n_groups)
        keys, counts = [column[slots] for column in self._table.rows()], self._counts[slots]
        try:
            values = counts
            if self._accumulator is not None and n_groups:
                values = self._accumulator.values(keys, slots, counts)
                self._head.schema.columns[-1].type.domain.claim(values)
        except BaseException:
            self.drop()
            raise
        self._staged = _Step(slots, counts, values, n_groups, self._n_assignments)
        return [*keys, values], np.ones(n_groups, np.int64)

    @wraps_around
    def _found(
        self, columns: Columns, weights: np.ndarray, are_unscaled: bool
    ) -> tuple[GroupRows, np.ndarray, int, int] | None:
        """Signed assignments by group, and the groups' counts before them; None where they cancel.

        Also by how many there are more groups then, and more assignments.
        """
        weights = np.ascontiguousarray(weights, np.int64)
        self._guard(weights)
        rows, weights = net_rows(columns, weights)
        if not len(weights):
            return None
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
        arguments = rows[self._n_keys :]
        return (
            GroupRows(keys, slots, after, offsets, arguments, weights, table.n_rows, are_unscaled),
            before,
            n_came,
            n_more,
        )

    @property
    def timed_refusal(self) -> str | None:
        """Why :meth:`timed_step` can't be had, if so."""
        accumulator = self._accumulator
        if accumulator is None or isinstance(accumulator, WholeSums):
            return None
        assert isinstance(self._head.value, Aggregate)
        return f"{self._head.value.function}, other than count and sums of whole numbers"

    def timed_step(
        self, columns: Columns, times: np.ndarray, weights: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """The head's changes by signed assignments that come at some times: columns, times and weights.

        Arguments as for :meth:`stage`, with the time of each row.  Nothing is staged.  Raises RangeError
        where a value may not fit 64 bits on the way.
        """
        self._guard(weights)
        n_keys = self._n_keys
        amounts = weights
        if self._accumulator is not None:
            self._guard_sum(columns[-1], weights)
            amounts = weights * columns[-1]
        rows = np.array([*columns[:n_keys], times])
        order = row_order(rows)
        rows = np.ascontiguousarray(rows[:, order])
        if not len(order):
            return [times[:0]] * (n_keys + 1), times[:0], times[:0]
        starts = starts_of(rows)[:-1]  # of what a group gets at one time
        *keys, times = rows[:, starts]
        offsets = starts_of(np.ascontiguousarray(rows[:n_keys, starts]))
        counts, values = self._published(rows[:n_keys, starts[offsets[:-1]]])
        before, after = running(offsets, counts, np.add.reduceat(weights[order], starts))
        assert after.min() >= 0, "an assignment went that had not been there"
        old, new = running(offsets, values, np.add.reduceat(amounts[order], starts))
        stays = (before > 0) & (after > 0) & (old == new)
        went, came = (before > 0) & ~stays, (after > 0) & ~stays
        found = [np.append(key[went], key[came]) for key in (*keys, times)]
        signs = np.repeat((-1, 1), (np.count_nonzero(went), np.count_nonzero(came)))
        return [*found[:-1], np.append(old[went], new[came])], found[-1], signs

    def _published(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts and values of groups, 0 for those that are not there; no slot is taken."""
        try:
            slots = self._table.find_or_add(keys)
            self._reserve()
            counts = self._counts[slots]
            return counts, np.where(counts > 0, self._values[slots], 0)
        finally:
            self._table.truncate(self._n_slots)

    def _keep_own(self) -> None:
        self._is_building = False
        staged = self._staged
        if staged is None:
            return
        _publish(self._counts, self._values, staged.slots, staged.counts, staged.values)
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
        n_slots = self._table.n_rows
        if n_slots < _LEAST_TIDIED or 2 * self.n_groups >= n_slots:
            return
        kept = np.flatnonzero(self._counts[:n_slots])
        accumulator = self._accumulator and self._accumulator.remapped(kept)
        tidied = self._table.compacted(kept), self._counts[kept], self._values[kept], accumulator, len(kept)
        self._table, self._counts, self._values, self._accumulator, self._n_slots = tidied

    def _check_own(self) -> None:
        self._table.check_invariants()
        n_slots = self._table.n_rows
        assert len(self._counts) == len(self._values)
        assert (self._counts >= 0).all()
        assert self._n_slots == n_slots or self._staged is not None
        assert not self._counts[self._n_slots :].any(), "a slot beyond the table counts something"
        assert self.n_groups == np.count_nonzero(self._counts)
        assert self._n_assignments == int(self._counts.sum())

    def _guard(self, weights: np.ndarray) -> None:
        """See to it that no sum of weights wraps."""
        if self._n_assignments + float(np.abs(weights.astype(np.float64)).sum()) >= _MOST_ASSIGNMENTS:
            assert isinstance(self._head.value, Aggregate)
            raise RangeError(
                f"{shown_name(self._head.relation)} = {spelled_call(self._head.value)}:"
                " there are more than 2**62 assignments: their number may not fit int64"
            )

    def _guard_sum(self, codes: np.ndarray, weights: np.ndarray) -> None:
        """See to it that no sum of 64-bit codes wraps on the way."""
        largest = float(np.abs(self._values.astype(np.float64)).max(initial=0.0))
        amounts = np.abs(codes.astype(np.float64)) * np.abs(weights.astype(np.float64))
        if largest + float(amounts.sum()) >= _MOST_ASSIGNMENTS:
            raise RangeError(f"{shown_name(self._head.relation)}: a sum may not fit 64 bits on the way")

    def _reserve(self) -> None:
        """Counts of 0 for the slots that are new."""
        missing = self._table.n_rows - len(self._counts)
        if missing > 0:
            room = np.zeros(max(missing, len(self._counts)), np.int64)
            counts, values = np.append(self._counts, room), np.append(self._values, room)
            self._counts, self._values = counts, values


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


@kernel
def _publish(counts, values, slots, new_counts, new_values):  # type: ignore[no-untyped-def]
    """Write what was staged.  counts, values: int64, by slot, written; the others: int64, by group."""
    for group in range(len(slots)):
        counts[slots[group]] = new_counts[group]
        values[slots[group]] = new_values[group]


@kernel(makes_arrays=True)
def _difference(keys, slots, values, before, after, new_values):  # type: ignore[no-untyped-def]
    """-1 for each group's value that went and 1 for each that came, as sorted rows: (columns, n) and (n,).

    keys: int64 (keys, groups), sorted.  values: int64, published ones by slot.  The others: int64, by group.
    """
    columns = keys.shape[0] + 1
    rows = np.empty((columns, 2 * len(slots)), np.int64)
    weights = np.empty(2 * len(slots), np.int64)
    n = 0
    for group in range(len(slots)):
        old, new = values[slots[group]], new_values[group]
        went, came = before[group] > 0, after[group] > 0
        if went and came and old == new:
            continue
        for turn in range(2):
            going = (turn == 0) == (old < new)  # the smaller value comes first
            if went if going else came:
                for column in range(columns - 1):
                    rows[column, n] = keys[column, group]
                rows[columns - 1, n] = old if going else new
                weights[n] = -1 if going else 1
                n += 1
    return rows[:, :n].copy(), weights[:n].copy()
