"""Support counts: how many body assignments stand behind each head tuple.

Specification: docs/design/engine.md section 6; ILFTJ 2.2.

A Z-set of head tuples as sorted runs.  A signed assignment adds to its tuple's
support; the *visible* change is where support crosses zero.

Invariants

1. A version never changes.
2. Supports are never negative: an erased assignment was there.
3. Runs are merged piece by piece (:mod:`lftj.storage.runs`).

Cost: O(m (log m + arity log n)) for m signed assignments, and O(log n) per
assignment for merges, amortised.  What begins with a prefix is found in
O(arity log n) per run, of which there are O(log n), and then read.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.storage.net_weights import net_weights
from lftj.storage.runs import (
    NO_DIRECTORY,
    IndexRun,
    RunList,
    Runs,
    added_runs,
    compare_rows,
    directory_of,
    first_key_from,
)
from lftj.storage.seek import from_end, gallop, lower_bound, upper_bound
from lftj.storage.signed_rows import Columns, net_rows, table_of
from lftj.storage.version_memory import RUN, Index, Level, first_run, index_at, run_at


class SupportVersion:
    """One version of the support counts of a head.

    >>> empty = SupportVersion(1)
    >>> first, columns, weights = empty.step([np.array([7, 7, 5])], np.array([1, 1, 1]))
    >>> columns[0].tolist(), weights.tolist()
    ([5, 7], [1, 1])
    >>> second, columns, weights = first.step([np.array([7, 5])], np.array([-1, -1]))
    >>> columns[0].tolist(), weights.tolist()
    ([5], [-1])
    """

    def __init__(self, arity: int, least: int = 1) -> None:
        """The version without tuples.  ``least``: the support from which on a tuple is visible."""
        self._start(arity, least, _over_nothing(arity, ()))

    def _start(self, arity: int, least: int, run_list: RunList) -> None:
        self.arity = arity
        self.least = least
        self._memory, self.runs, _ = run_list
        self._run_list = run_list

    def __getstate__(self) -> dict[str, Any]:
        """For an image (:mod:`maintenance.image`): less the addresses of the runs."""
        return {"arity": self.arity, "runs": self.runs, "least": self.least}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._start(state["arity"], state["least"], _over_nothing(state["arity"], state["runs"]))

    @property
    def nbytes(self) -> int:
        return self._run_list.nbytes

    def step(self, columns: Columns, signs: np.ndarray) -> tuple[SupportVersion, np.ndarray, np.ndarray]:
        """The version after signed assignments, and the visible change: sorted distinct tuples, +1 or -1."""
        following, rows, before, after = self.added(columns, signs)
        rows, before, after = crossing(rows, before, after, self.least)
        return following, rows, np.sign(after - before)

    def added(
        self, columns: Columns, signs: np.ndarray
    ) -> tuple[SupportVersion, np.ndarray, np.ndarray, np.ndarray]:
        """The version after signed assignments; the tuples that changed, sorted; supports before and after.

        >>> first = SupportVersion(1).added([np.array([7, 7, 5])], np.array([1, 1, 1]))[0]
        >>> _, (column,), before, after = first.added([np.array([7, 5, 5])], np.array([-1, -1, 1]))
        >>> column.tolist(), before.tolist(), after.tolist()
        ([7], [2], [1])
        """
        rows, weights = net_rows(columns, signs)
        if not len(weights):
            return self, rows, weights, weights
        before, after = np.empty((2, len(weights)), np.int64)
        sound = _supports(self._memory, rows, weights, before, after)
        assert sound, "an assignment went that had not been there"
        following = SupportVersion.__new__(SupportVersion)
        following._start(self.arity, self.least, self._run_list.with_run(rows, weights))
        return following, rows, before, after

    def visible(self) -> list[np.ndarray]:
        """The columns of all visible tuples, sorted; O(n)."""
        columns, weights = added_runs(self._memory)
        return [column[weights >= self.least] for column in columns]

    def tuples(self) -> tuple[list[np.ndarray], np.ndarray]:
        """All tuples that have support, sorted, and their supports; O(n)."""
        columns, weights = added_runs(self._memory)
        return [column[weights > 0] for column in columns], weights[weights > 0]

    def below(self, prefixes: Columns, n_prefixes: int) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """The tuples that begin with any of some prefixes, in their order and sorted within each.

        ``prefixes``: the first columns, ``n_prefixes`` rows.  Returns the rows of the prefixes, the
        tuples' columns and their supports.

        >>> support = SupportVersion(2).added([np.array([1, 1, 2]), np.array([8, 8, 9])], np.ones(3, int))[0]
        >>> rows, columns, supports = support.below([np.array([2, 1])], 2)
        >>> rows.tolist(), [column.tolist() for column in columns], supports.tolist()
        ([0, 1], [[2, 1], [9, 8]], [1, 2])
        """
        return self.within(self.ranges(prefixes, n_prefixes))

    def within(
        self, ranges: Iterable[tuple[IndexRun, np.ndarray, np.ndarray]]
    ) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """The tuples of half-open ranges of the runs, as :meth:`ranges` gives them; see :meth:`below`.

        Returns the ranges' numbers, ascending, the tuples' columns and their supports.
        """
        parts = [np.empty((self.arity + 2, 0), np.int64)]
        for run, starts, ends in ranges:
            lengths = ends - starts
            numbers = np.repeat(np.arange(len(lengths)), lengths)
            places = np.arange(int(lengths.sum())) + np.repeat(
                starts - (np.cumsum(lengths) - lengths), lengths
            )
            sums = run.rows[self.arity * run.n_tuples :]
            columns = [column[places] for column in run.columns(self.arity)]
            parts.append(np.stack([numbers, *columns, sums[places + 1] - sums[places]]))
        *found, weights = np.concatenate(parts, axis=1)
        rows, weights = net_rows(found, weights)
        return rows[0], list(rows[1:]), weights

    def totals(self, prefixes: Columns, n_prefixes: int) -> np.ndarray:
        """The support, added up, of all that begins with each prefix; arguments as for :meth:`below`.

        >>> support = SupportVersion(1).added([np.array([7, 7, 5])], np.ones(3, int))[0]
        >>> support.totals([np.array([5, 6, 7])], 3).tolist(), support.totals([], 1).tolist()
        ([1, 0, 2], [3])
        """
        totals = np.empty(n_prefixes, np.int64)
        _totals(self._memory, table_of(prefixes, n_prefixes), totals)
        return totals

    def neighbours(
        self, prefixes: np.ndarray, behind: np.ndarray, n_within: int, away: tuple[int, bool], backwards: bool
    ) -> np.ndarray:
        """What the tuple begins with that stands some tuples away from a place, or the last one that way.

        ``prefixes``: int64 (levels, n), of places, which are behind all that begins so where ``behind``, else
        before it.  ``n_within``: among tuples that share as many first columns.  ``away``: how many, a tuple
        counts as often as it has support; if True, how many prefixes of ``levels`` columns.  Where no tuple
        stands that way it is the place's.  O(log n + tuples passed) for each run.

        >>> rows = [np.array([1, 1, 1, 2]), np.array([5, 6, 7, 8])]
        >>> version, *_ = SupportVersion(2).added(rows, np.ones(4, int))
        >>> version.neighbours(np.array([[1], [5]]), np.array([True]), 1, (2, False), False).tolist()
        [[1], [7]]
        >>> version.neighbours(np.array([[1], [6]]), np.array([False]), 1, (2, True), True).tolist()
        [[1], [5]]
        """
        found = np.array(prefixes, np.int64, order="C")
        n_away, of_prefixes = away
        if n_away:
            places = found.copy()
            _neighbours(self._memory, places, behind, n_within, n_away, of_prefixes, backwards, found)
        return found

    def ranges(self, prefixes: Columns, n_prefixes: int) -> Iterator[tuple[IndexRun, np.ndarray, np.ndarray]]:
        """Per run, the half-open range of the tuples that begin with each prefix."""
        table = table_of(prefixes, n_prefixes)
        for run in self.runs:
            yield run, *prefix_ranges(run.rows, run.n_tuples, table, run.directory)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        self._run_list.check_invariants()
        assert (added_runs(self._memory)[1] >= 0).all()


def _over_nothing(arity: int, runs: Runs) -> RunList:
    """Runs over a base without tuples."""
    return RunList.of([*Index.fields(levels=arity), *Level.fields() * arity], runs)


@kernel(makes_arrays=True)
def _supports(memory, rows, weights, before, after):
    """Supports of tuples before and after a change; False where one would be negative.

    memory: that of a version; rows: int64 (arity, n); weights, before, after: int64 (n,), the last two
    written.
    """
    held = np.zeros((max(1, rows.shape[0]), rows.shape[1]), dtype=np.int64)
    net_weights(memory.ctypes.data, rows, held)
    for row in range(rows.shape[1]):
        before[row] = held[-1, row]
        after[row] = held[-1, row] + weights[row]
        if after[row] < 0:
            return False
    return True


@kernel(makes_arrays=True)
def crossing(rows, before, after, least):
    """The tuples whose support comes to ``least`` or goes below it: copies of their columns and supports.

    rows: int64 (arity, n); before, after: int64 (n,).
    """
    found = 0
    places = np.empty(len(before), dtype=np.int64)
    for row in range(len(before)):
        if (before[row] >= least) != (after[row] >= least):
            places[found] = row
            found += 1
    crossed = np.empty((rows.shape[0], found), dtype=np.int64)
    for column in range(rows.shape[0]):
        for place in range(found):
            crossed[column, place] = rows[column, places[place]]
    places = places[:found]
    return crossed, before[places], after[places]


@part
def _first_range(rows, length, directory, prefixes, row, before):
    """The tuples of a run whose first key is that of a prefix: where to begin with the row after it, and
    their range; where there is none, its place.  All tuples, where prefixes have no level.

    rows: the run's flat array, of ``length`` tuples; directory: its own, or empty; prefixes: int64
    (levels, n), of which ``row`` is meant; before: what was said of the row before, to gallop from.
    """
    if prefixes.shape[0] == 0:
        return np.int64(0), np.int64(0), np.int64(length)
    key = prefixes[0, row]
    ascends = row > 0 and key >= prefixes[0, row - 1]
    if len(directory) > 0:
        number = first_key_from(directory, np.int64(before) if ascends else np.int64(0), key)
        start = directory[2 * number + 1]
        if start < length and directory[2 * number] == key:
            return number, start, directory[2 * number + 3]
        return number, start, start
    column = rows[:length]
    if ascends:
        start = gallop(column, np.int64(before), np.int64(length), key)
    else:
        start = lower_bound(column, np.int64(0), np.int64(length), key)
    end = gallop(column, start, np.int64(length), key + 1) if key < KEY_MAX else np.int64(length)
    return start, start, end


@part
def _narrowed(rows, length, prefixes, row, first, last, start, end):
    """Of the tuples from ``start`` to before ``end``, which agree before the level ``first``, the range of
    those that begin with ``prefixes[:last, row]``; where none does, its place.  Arguments as of
    :func:`_first_range`.
    """
    start, end = np.int64(start), np.int64(end)
    for level in range(first, last):
        column = rows[level * length : (level + 1) * length]
        key = prefixes[level, row]
        start = from_end(column, start, end, key)
        end = gallop(column, start, end, key + 1) if key < KEY_MAX else end
    return start, end


def ranges_between(
    run: IndexRun, begins: np.ndarray, ends: np.ndarray, behind: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The half-open ranges of a run's tuples from those on that begin with some prefixes, to before others.

    Prefixes as for :func:`prefix_ranges`; ``begins`` and ``ends`` differ in the last column alone; where
    ``behind``, up to behind the tuples that begin with the end.

    >>> run = IndexRun(np.array([1, 1, 1, 3, 2, 4, 5, 9, 0, 1, 2, 3, 4]), 4)
    >>> prefixes = np.array([[1], [3]]), np.array([[1], [5]])
    >>> [part.tolist() for part in ranges_between(run, *prefixes, np.array([False]))]
    [[1], [2]]
    """
    starts, stops = np.empty((2, begins.shape[1]), np.int64)
    _ranges_between(run.rows, run.n_tuples, run.directory, begins, ends, behind, starts, stops)
    return starts, stops


@kernel
def _ranges_between(rows, length, directory, begins, ends, behind, starts, stops):
    """See :func:`ranges_between`; starts, stops: int64 (n,), written."""
    last = begins.shape[0] - 1
    column = rows[last * length : (last + 1) * length]
    start, end, before = np.int64(0), np.int64(length), np.int64(0)
    for row in range(begins.shape[1]):
        if last > 0:
            before, start, end = _first_range(rows, length, directory, begins, row, before)
            start, end = _narrowed(rows, length, begins, row, 1, last, start, end)
        starts[row] = from_end(column, start, end, begins[last, row])
        if behind[row]:
            stops[row] = upper_bound(column, starts[row], end, ends[last, row])
        else:
            stops[row] = gallop(column, starts[row], end, ends[last, row])


def prefix_ranges(
    rows: np.ndarray, length: int, prefixes: np.ndarray, directory: np.ndarray = NO_DIRECTORY
) -> tuple[np.ndarray, np.ndarray]:
    """The half-open ranges of sorted tuples that begin with some prefixes; where none does, its place.

    ``rows``: int64, flat, of ``length`` tuples column after column, to which more may follow; ``prefixes``:
    int64 (levels, n), C-contiguous; ``directory``: where they are a run that has one.

    >>> starts, ends = prefix_ranges(np.array([1, 1, 3]), 3, np.array([[1, 2]]))
    >>> starts.tolist(), ends.tolist()
    ([0, 2], [2, 2])
    """
    starts, ends = np.empty((2, prefixes.shape[1]), np.int64)
    _prefix_ranges(rows, length, directory, prefixes, starts, ends)
    return starts, ends


@kernel
def _prefix_ranges(rows, length, directory, prefixes, starts, ends):
    """See :func:`prefix_ranges`; starts, ends: int64 (n,), written."""
    levels, before = prefixes.shape[0], np.int64(0)
    for row in range(prefixes.shape[1]):
        before, start, end = _first_range(rows, length, directory, prefixes, row, before)
        starts[row], ends[row] = _narrowed(rows, length, prefixes, row, 1, levels, start, end)


@kernel(makes_arrays=True)
def _neighbours(memory, prefixes, behind, n_within, n_away, of_prefixes, backwards, found):
    """:meth:`SupportVersion.neighbours`; found: int64 (levels, n), a copy of the prefixes, written."""
    first, index = first_run(memory.ctypes.data), index_at(memory.ctypes.data)
    levels, arity = prefixes.shape[0], index.levels
    at, stops = np.empty(index.runs, dtype=np.int64), np.empty(index.runs, dtype=np.int64)
    places = np.zeros(index.runs, dtype=np.int64)
    step = -1 if backwards else 1
    for row in range(prefixes.shape[1]):
        for number in range(index.runs):
            run = run_at(first + number * RUN)
            rows, directory = view(run.rows, arity * run.length), directory_of(run)
            place, start, end = _first_range(rows, run.length, directory, prefixes, row, places[number])
            places[number] = place
            if n_within > 0:
                start, end = _narrowed(rows, run.length, prefixes, row, 1, n_within, start, end)
                below, above = _narrowed(rows, run.length, prefixes, row, n_within, levels, start, end)
            else:
                below, above = _narrowed(rows, run.length, prefixes, row, 1, levels, start, end)
                start, end = np.int64(0), np.int64(run.length)
            place = above if behind[row] else below
            at[number], stops[number] = (place - 1, start - 1) if backwards else (place, end)
        passed = np.int64(0)
        while passed < n_away:
            nearest = np.int64(-1)
            for number in range(index.runs):
                if at[number] != stops[number] and (
                    nearest < 0
                    or _compared(first, number, at[number], nearest, at[nearest], arity) * step < 0
                ):
                    nearest = np.int64(number)
            if nearest < 0:
                break
            its_run, its_place = run_at(first + nearest * RUN), at[nearest]
            weight = np.int64(0)
            for number in range(index.runs):
                if at[number] != stops[number] and (
                    _compared(first, number, at[number], nearest, its_place, arity) == 0
                ):
                    run = run_at(first + number * RUN)
                    sums = view(run.rows + 8 * arity * run.length, run.length + 1)
                    weight += sums[at[number] + 1] - sums[at[number]]
                    at[number] += step
            if weight == 0:
                continue
            columns = view(its_run.rows, arity * its_run.length)
            is_new = passed == 0
            for level in range(levels):
                key = columns[level * its_run.length + its_place]
                is_new = is_new or key != found[level, row]
                found[level, row] = key
            if not of_prefixes:
                passed += weight
            elif is_new:
                passed += 1


@part
def _compared(first, left, left_place, right, right_place, arity):
    """:func:`compare_rows` of a tuple of a run and one of another, by the runs' numbers."""
    one, other = run_at(first + left * RUN), run_at(first + right * RUN)
    return compare_rows(
        view(one.rows, arity * one.length),
        one.length,
        left_place,
        view(other.rows, arity * other.length),
        other.length,
        right_place,
        arity,
    )


@kernel(makes_arrays=True)
def _totals(memory, prefixes, totals):
    """Net weight of what begins with given prefixes.

    memory: that of a version with an empty base; prefixes: int64 (levels, n); totals: int64 (n,), written.
    """
    levels = prefixes.shape[0]
    if levels > 0:
        below = np.empty(prefixes.shape, np.int64)
        net_weights(memory.ctypes.data, prefixes, below)
        for prefix in range(len(totals)):
            totals[prefix] = below[levels - 1, prefix]
        return
    totals[:] = 0
    index = index_at(memory.ctypes.data)
    for number in range(index.runs):
        run = run_at(first_run(memory.ctypes.data) + number * RUN)
        totals += view(run.rows, (index.levels + 1) * run.length + 1)[-1]
