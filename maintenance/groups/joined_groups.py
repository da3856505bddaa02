"""Several aggregates of one set of rows by the same groups, side by side: one row per group.

    stage(dR) = {(key, values)}: -1 for a group's values that went, +1 for those that came

As :class:`~maintenance.groups.grouped.GroupedAggregate`, of several aggregates: groups are found once for all
of them, and their values stand in no relation but that of the head that joins them.

Counts of one distinct value under several filters are made together, by one
:class:`~maintenance.groups.distinct_counts.DistinctCounts`.

Cost: a sort of the m signed rows and one for each accumulator, O(m), and what the accumulators
take.  Memory: 8 bytes per slot, and 8 for each aggregate, beside the
:class:`~lftj.storage.row_table.RowTable` and the accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from indices.compiled import kernel
from lftj.process import debug
from lftj.storage.signed_rows import Columns, first_rows, net_rows, row_order, table_of
from maintenance.groups.accumulator import Accumulator, GroupRows
from maintenance.groups.boundaries import group_boundaries
from maintenance.groups.distinct_counts import DistinctCounts
from maintenance.groups.grouped import GroupTable, Made, Opened, Step, timed_refusal_of
from maintenance.groups.shared_scans import Sharer

_MOST_FILTERS = 32
"""Of one value: their number is packed with a row."""


class _Part(NamedTuple):
    """What the accumulator of some aggregates gets of a step."""

    numbers: tuple[int, ...]
    accumulator: Accumulator
    rows: GroupRows
    groups: np.ndarray  # those of the step that it has rows of


class JoinedGroups(GroupTable):
    """The groups of heads that aggregate the same rows by the same keys."""

    def __init__(
        self,
        sharers: Sequence[Sharer],
        accumulator: Callable[[Sharer], Accumulator | None],
        places: Sequence[int],
    ) -> None:
        """``accumulator``: makes that of a sharer.  ``places``: of the columns of what comes out, the number
        of a key, or behind those of all keys that of an aggregate."""
        self._names = sharers[0].groups
        self._numbers = _made_together(sharers)
        accumulators = [
            DistinctCounts(sharers[first].head, sharers[first].rule.bodies[0].types, 1 + len(others))
            if others
            else accumulator(sharers[first])
            for first, *others in self._numbers
        ]
        super().__init__(len(self._names), accumulators, np.zeros((0, len(sharers)), np.int64))
        self.sharers = tuple(sharers)
        self._places = np.array(places, np.int64)
        self._in_order = list(places[: self._n_keys]) == list(range(self._n_keys))

    def stage(self, rows: Mapping[str, np.ndarray], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What signed assignments change: rows (columns, n), sorted, and weights, 1 or -1.

        ``rows``: int64 codes by name; they may repeat and come in any order.  Nothing is published.  Raises
        as :meth:`~maintenance.groups.grouped.GroupedAggregate.stage`; then nothing is staged.
        """
        assert self._staged is None, "what was staged has to be kept or dropped first"
        if not len(weights):
            self._stage_nothing()
            return np.empty((len(self._places), 0), np.int64), weights
        try:
            groups, parts = self._found(rows, weights)
            values = self._values[groups.slots]
            self._count(values, groups.after)
            for part in parts:
                found = self._claimed(part.numbers, part.accumulator.stage(part.rows))
                values[part.groups[:, np.newaxis], part.numbers] = found
        except BaseException:
            self.drop()
            raise
        self._staged = Step(groups.slots, groups.after, values, groups.n_groups, groups.n_assignments)
        return self._sorted(
            *_differences(
                groups.keys, groups.slots, self._values, groups.before, groups.after, values, self._places
            )
        )

    def add(self, rows: Mapping[str, np.ndarray], weights: np.ndarray) -> None:
        """Take some of the assignments that there are when nothing was kept yet; then :meth:`built`."""
        assert self._staged is None and not self._n_slots, "groups are built before their first change"
        self._is_building = True
        if not len(weights):
            return
        groups, parts = self._found(rows, weights)
        for part in parts:
            part.accumulator.add(part.rows)
        self._counts[groups.slots] = groups.after
        self._n_assignments = groups.n_assignments

    def built(self) -> tuple[np.ndarray, np.ndarray]:
        """What all that was added gives, as :meth:`stage` does; it is kept or dropped alike."""
        keys, slots = self._kept_order()
        counts = self._counts[slots]
        values = np.empty((len(slots), len(self.sharers)), np.int64)
        self._count(values, counts)
        try:
            for numbers, accumulator in zip(self._numbers, self._accumulators, strict=True):
                if accumulator is not None and len(slots):
                    found = accumulator.values(keys, slots, counts)
                    values[:, numbers] = self._claimed(numbers, found)
        except BaseException:
            self.drop()
            raise
        self._staged = Step(slots, counts, values, len(slots), self._n_assignments)
        columns = [*keys, *values.T]
        rows = np.array([columns[place] for place in self._places]).reshape(len(self._places), len(slots))
        return self._sorted(rows, np.ones(len(slots), np.int64))

    def _found(self, rows: Mapping[str, np.ndarray], weights: np.ndarray) -> tuple[Opened, Iterator[_Part]]:
        """The groups of signed assignments, and what each accumulator gets."""
        self._guard(weights, self.sharers[0].head)
        keys = table_of([rows[name] for name in self._names], len(weights))
        order = row_order(keys) if self._n_keys else np.arange(len(weights))
        groups = self._opened(keys.take(order, axis=1), weights.take(order))
        group_of = np.empty(len(order), np.int64)
        group_of[order] = np.repeat(np.arange(len(groups.slots)), np.diff(groups.offsets))
        return groups, self._parts(rows, weights, groups, group_of)

    def _parts(
        self, rows: Mapping[str, np.ndarray], weights: np.ndarray, groups: Opened, group_of: np.ndarray
    ) -> Iterator[_Part]:
        for numbers, accumulator in zip(self._numbers, self._accumulators, strict=True):
            if accumulator is None:
                continue
            found = [self.sharers[number].columns(rows) for number in numbers]
            columns, are_unscaled = found[0]
            read, their_weights = [group_of, *columns[self._n_keys :]], weights
            if isinstance(accumulator, DistinctCounts):  # the values of others change with the rows
                if len(numbers) > 1:
                    read[1:] = _filtered(accumulator, [columns[-1] for columns, _ in found])
                    known = read[-1] != 0
                else:
                    known = accumulator.known(read[1:], len(weights))
                if not known.all():
                    read, their_weights = [column[known] for column in read], weights[known]
            net, net_weights = net_rows(read, their_weights)
            if not len(net_weights):
                continue
            (some,), offsets = group_boundaries(net, 1)
            its_rows = GroupRows(
                groups.keys.take(some, axis=1), groups.slots[some], groups.after[some], offsets, net[1:],
                net_weights, self._table.n_rows, are_unscaled,
            )  # fmt: skip
            yield _Part(numbers, accumulator, its_rows, some)

    def _count(self, values: np.ndarray, counts: np.ndarray) -> None:
        for (first, *_), accumulator in zip(self._numbers, self._accumulators, strict=True):
            if accumulator is None:
                values[:, first] = counts

    def _claimed(self, numbers: tuple[int, ...], found: np.ndarray) -> np.ndarray:
        """What an accumulator gives for some aggregates: int64 (groups, aggregates).

        Raises RangeError for a code that is that of NULL.
        """
        found = found.reshape(len(found), len(numbers))
        for number, codes in zip(numbers, found.T, strict=True):
            self.sharers[number].head.schema.columns[-1].type.domain.claim(codes)
        return found

    def _sorted(self, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._in_order or not len(weights):
            return rows, weights
        order = row_order(rows)
        return rows.take(order, axis=1), weights[order]

    @property
    def timed_refusal(self) -> str | None:
        """Why :meth:`timed_step` can't be had, if so."""
        pairs = zip(self._numbers, self._accumulators, strict=True)
        refusals = (timed_refusal_of(self.sharers[first].head, one) for (first, *_), one in pairs)
        return next(filter(None, refusals), None)

    def timed_step(
        self, rows: Mapping[str, np.ndarray], times: np.ndarray, weights: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """What signed assignments that come at some times change: columns, times and weights.

        Nothing is staged.  Raises RangeError where a value may not fit 64 bits on the way.
        """
        self._guard(weights, self.sharers[0].head)
        made = {
            number: Made(accumulator, number, nth)
            for accumulator, numbers in enumerate(self._numbers)
            for nth, number in enumerate(numbers)
        }
        amounts = [
            self._amounts(made[number], sharer.head, [rows[name] for name in sharer.names], times, weights)
            for number, sharer in enumerate(self.sharers)
        ]
        keys: Columns = [rows[name] for name in self._names]
        columns, times, signs = self._timed(keys, times, weights, amounts)
        return [columns[place] for place in self._places], times, signs


def _made_together(sharers: Sequence[Sharer]) -> list[tuple[int, ...]]:
    """The numbers of sharers, those together that count one value under several filters."""
    found: list[tuple[int, ...]] = []
    open_: dict[str, int] = {}  # by value, where those that count it stand
    for number, sharer in enumerate(sharers):
        place = open_.get(sharer.value) if sharer.value else None
        if place is None or len(found[place]) == _MOST_FILTERS:
            open_[sharer.value] = len(found)
            found.append((number,))
        else:
            found[place] = (*found[place], number)
    return found


def _filtered(counts: DistinctCounts, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A value of each row, and the filters that it passes: those whose column has it and not NULL."""
    values, passed = columns[0], np.zeros(len(columns[0]), np.int64)
    for number, column in enumerate(columns):
        known = counts.known([column], len(column))
        assert not debug.enabled or (values[known & (passed != 0)] == column[known & (passed != 0)]).all()
        if number:
            values = np.where(known, column, values)
        passed |= known.astype(np.int64) << number
    return values, passed


@kernel(makes_arrays=True)
def _differences(keys, slots, values, before, after, new_values, places):  # type: ignore[no-untyped-def]
    """-1 for each group's values that went and 1 for those that came: rows (columns, n) and weights (n,).

    Those of a group are sorted.  keys: int64 (keys, groups); values: int64 (slots, aggregates), published;
    new_values: int64 (groups, aggregates); places: int64, by column, see JoinedGroups; the others: int64, by
    group.
    """
    n_keys = keys.shape[0]
    rows = np.empty((len(places), 2 * len(slots)), np.int64)
    weights = np.empty(2 * len(slots), np.int64)
    n = 0
    for group in range(len(slots)):
        went, came, slot = before[group] > 0, after[group] > 0, slots[group]
        order = np.int64(0)  # of the old values and the new
        for place in places:
            if order == 0 and place >= n_keys:
                old, new = values[slot, place - n_keys], new_values[group, place - n_keys]
                order = np.int64(old > new) - np.int64(old < new)
        if went and came and order == 0:
            continue
        for turn in range(2):
            going = (turn == 0) == (order < 0)  # the smaller values come first
            if went if going else came:
                for column in range(len(places)):
                    place = places[column]
                    if place < n_keys:
                        rows[column, n] = keys[place, group]
                    elif going:
                        rows[column, n] = values[slot, place - n_keys]
                    else:
                        rows[column, n] = new_values[group, place - n_keys]
                weights[n] = -1 if going else 1
                n += 1
    return first_rows(rows, n), weights[:n].copy()
