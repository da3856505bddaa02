"""`WindowRows`: the rows of windows by partition, and what their values change to.

    stage(dR) = W(R + dR) - W(R),   W = :func:`lftj.aggregates.windows.windowed`

Rows are kept sorted by partition and order, as far as codes are in the order of values.  Of each partition
that a change touches as much is read, before and after it, as can change:

    first rows       where only those have a tuple, ``top(3, ...)``
    neighbours       where a value depends on rows near it alone: ``lag``, ``lead``, ``rows: (-3, 3)``
    the partition    else

Invariants

1. A change takes two steps (:mod:`maintenance.staged`): ``stage`` computes and publishes nothing.
2. The support counts are the sum of the signed rows; none is negative.
3. The first columns of the order, up to one whose domain is not ordered, are kept as the keys of their codes
   (:func:`lftj.aggregates.windows.order_keys`), which give the codes back.  Rows that are equal in these,
   *alike*, are read together or not at all: their order among each other is not that of codes.

Cost: O(m log n) for m signed rows, and for each partition that they touch a sort of what is read; for first
rows and neighbours O(log n) more per run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lftj.aggregates.windows import order_codes, order_keys, row_names, windowed
from lftj.language.body import CheckedHead
from lftj.language.syntax import Constant, SortKey, Window
from lftj.storage.runs import IndexRun
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.sorting import sort_distinct
from lftj.storage.support import SupportVersion
from lftj.values.schema import ColumnType
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport

Rows = tuple[np.ndarray, np.ndarray]
"""Sorted rows, int64 (columns, n), and how often each is there."""

_MOST_STRETCHES = 64
"""Where more rows change, their partitions are read whole: neighbours of each are found one by one."""

_BOUNDED = ("row_number", "rank", "dense_rank", "top", "lag")
"""Windows of whose values those of the first rows depend on the first rows alone."""


def reach_of(window: Window) -> int | None:
    """How many rows away the value of a row depends on others, at most; None where nothing bounds it.

    >>> from lftj.language.syntax import Frame, Variable
    >>> reach_of(Window("sum", (Variable("v"),), (), (), Frame("rows", -3, 1)))
    3
    """
    if window.function in ("lag", "lead"):
        away = window.arguments[1] if len(window.arguments) > 1 else Constant(1)
        assert isinstance(away, Constant) and isinstance(away.value, int)
        return away.value
    frame = window.frame
    if frame is None or frame.unit != "rows" or frame.first is None or frame.last is None:
        return None
    assert isinstance(frame.first, int) and isinstance(frame.last, int), "rows are counted"
    return max(abs(frame.first), abs(frame.last))


class WindowRows(Staged):
    """One head's.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import SortKey, Variable, Window
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> best = Window("top", (), (), (SortKey(Variable("v"), descending=True),), most=2)
    >>> schema = Schema((Column("v", integer), Column("top", integer)))
    >>> rows = WindowRows(CheckedHead("best", ("v",), None, schema, (0, 0), (best,)), {"v": integer})
    >>> columns, signs = rows.stage([np.array([5, 7, 6])], np.array([1, 1, 1]))
    >>> [column.tolist() for column in columns], signs.tolist()
    ([[6, 7], [2, 1]], [1, 1])
    >>> rows.keep()
    >>> columns, signs = rows.stage([np.array([7])], np.array([-1]))
    >>> [column.tolist() for column in columns], signs.tolist()
    ([[5, 6, 6, 7], [2, 1, 2, 1]], [1, 1, -1, -1])
    """

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head's rows hold."""
        self._head = head
        self._types = types
        self.names = row_names(head)
        first = head.windows[0]
        self._n_parts = len(first.per)
        self._orders: dict[int, SortKey] = {}  # by column, those that rows are sorted by
        for column, one in enumerate(first.by, self._n_parts):
            if self.names.index(one.variable.name) != column or not types[one.variable.name].domain.ordered:
                break
            self._orders[column] = one
        self._n_sorted = self._n_parts + len(self._orders)
        most = [window.most for window in head.windows if window.most is not None]
        bounded = most and all(window.function in _BOUNDED for window in head.windows)
        self._most = min(most) if bounded and self._orders else None
        """How many rows of a partition have a tuple, if not all."""
        reaches = [reach for window in head.windows if (reach := reach_of(window)) is not None]
        near = bool(self._orders) and not most and len(reaches) == len(head.windows)
        self._reach = max(reaches) if near else None
        numbered = {number: types[name] for number, name in enumerate(self.names)}
        self._support = StagedSupport(len(self.names), numbered)

    @property
    def parts(self) -> Sequence[Staged]:
        return (self._support,)

    @property
    def reads(self) -> str:
        """What a change reads, for ``explain``."""
        if self._most is not None:
            return f"the first {self._most} rows of a partition, and those like the last"
        return "partitions whole" if self._reach is None else f"up to {self._reach_read} rows around each"

    @property
    def _reach_read(self) -> int:
        """How far around a changed row what changes, and what that depends on, may stand."""
        assert self._reach is not None
        return 2 * self._reach + 1

    def stage(self, columns: Columns, signs: np.ndarray) -> tuple[Columns, np.ndarray]:
        """The tuples that come and go with signed rows of :attr:`names`, each for a row of its own."""
        before = self._support.newest
        after, changed, _, _ = before.added(self._stored(columns), signs)
        self._support.staged = after
        if not changed.shape[1]:
            return [np.empty(0, np.int64) for _ in self._head.schema.columns], np.empty(0, np.int64)
        old_and_new: list[tuple[list[np.ndarray], int]] = []
        if self._reach is None or not before.runs or changed.shape[1] > _MOST_STRETCHES:
            touched = sort_distinct(list(changed[: self._n_parts])) if self._n_parts else []
            n_touched = len(touched[0]) if touched else 1
            for version, sign in ((before, -1), (after, 1)):
                old_and_new.append((self._values(self._read(version, touched, n_touched)), sign))
        else:
            for stretch in stretches(before, after, changed, self._n_parts, self._n_sorted, self._reach_read):
                first, last = (0 if is_end else self._reach for is_end in stretch.ends_partition)
                for version, sign in ((before, -1), (after, 1)):
                    old_and_new.append((self._values(stretch.rows(version), (first, last)), sign))
        parts = [(values, np.full(len(values[0]), sign, np.int64)) for values, sign in old_and_new]
        rows, weights = net_rows(*gathered(parts))
        return list(rows), weights

    def _read(self, version: SupportVersion, touched: Columns, n_touched: int) -> Rows:
        """What is read of partitions."""
        if self._most is not None:
            return first_rows(version, touched, n_touched, self._n_sorted, self._most)
        _, columns, weights = version.below(touched, n_touched)
        return np.array(columns), weights

    def _values(self, rows: Rows, left_out: tuple[int, int] = (0, 0)) -> list[np.ndarray]:
        columns, weights = rows
        return windowed(self._head, self._types, self._restored(columns), weights, left_out)

    def _stored(self, columns: Columns) -> list[np.ndarray]:
        stored = list(columns)
        for number, order in self._orders.items():
            type_ = self._types[self.names[number]]
            stored[number] = order_keys(stored[number], type_, order.descending, order.nulls_first)
        return stored

    def _restored(self, columns: np.ndarray) -> list[np.ndarray]:
        found = list(columns)
        for number, order in self._orders.items():
            type_ = self._types[self.names[number]]
            found[number] = order_codes(found[number], type_, order.descending, order.nulls_first)
        return found


# -- what is read ------------------------------------------------------------------


def first_rows(version: SupportVersion, prefixes: Columns, n_prefixes: int, n_sorted: int, most: int) -> Rows:
    """Of the tuples that begin with each prefix the first ``most``, and those alike to the last of them.

    ``n_sorted``: columns in which rows are alike.  O(log n) per run and prefix.

    >>> rows = [np.array([1, 2, 2, 3]), np.array([0, 0, 1, 0])]
    >>> version, *_ = SupportVersion(2).added(rows, np.ones(4, int))
    >>> rows, supports = first_rows(version, [], 1, 1, 2)
    >>> rows.tolist(), supports.tolist()
    ([[1, 2, 2], [0, 0, 1]], [1, 1, 1])
    """
    runs = list(version.ranges(prefixes, n_prefixes))
    found = [(list(np.empty((version.arity, 0), np.int64)), np.empty(0, np.int64))]
    for prefix in range(n_prefixes):
        ranges = [(run, int(starts[prefix]), int(stops[prefix])) for run, starts, stops in runs]
        rows, supports = beside(ranges, version.arity, n_sorted, most)
        found.append((list(rows), supports))
    columns, supports = gathered(found)
    return np.array(columns), supports


def beside(
    ranges: Sequence[tuple[IndexRun, int, int]], arity: int, n_sorted: int, most: int, backwards: bool = False
) -> Rows:
    """The first rows of what stands in a range of each run, ``most`` of them and those alike to the last; all
    where there are fewer.  ``backwards``: the last ones.
    """
    taken = most + 8
    while (found := _beside(ranges, arity, n_sorted, most, backwards, taken)) is None:
        taken *= 4
    return found


def _beside(
    ranges: Sequence[tuple[IndexRun, int, int]],
    arity: int,
    n_sorted: int,
    most: int,
    backwards: bool,
    taken: int,
) -> Rows | None:
    """See :func:`beside`; None where ``taken`` tuples of each run are too few."""
    pieces, ends = [], []
    for run, start, stop in ranges:
        first, last = (max(start, stop - taken), stop) if backwards else (start, min(stop, start + taken))
        columns = [column[first:last] for column in run.columns(arity)]
        pieces.append((columns, run.weights_of(first, last)))
        if last - first < stop - start:
            end = 0 if backwards else -1
            ends.append(tuple(int(column[end]) for column in columns[:n_sorted]))
    if not pieces:
        return np.empty((arity, 0), np.int64), np.empty(0, np.int64)
    rows, supports = net_rows(*gathered(pieces))
    if ends:  # what lies on this side of all of them is complete
        nearest = max(ends) if backwards else min(ends)
        complete = (
            ~_before(rows[:n_sorted], nearest, or_equal=True)
            if backwards
            else _before(rows[:n_sorted], nearest)
        )
        rows, supports = rows[:, complete], supports[complete]
    total = np.cumsum(supports[::-1] if backwards else supports)
    if not len(total) or total[-1] < most:
        return None if ends else (rows, supports)
    place = int(np.searchsorted(total, most))
    last_row = tuple(rows[:n_sorted, -1 - place if backwards else place].tolist())
    kept = (
        ~_before(rows[:n_sorted], last_row)
        if backwards
        else _before(rows[:n_sorted], last_row, or_equal=True)
    )
    return rows[:, kept], supports[kept]


def _before(rows: np.ndarray, bound: tuple[int, ...], or_equal: bool = False) -> np.ndarray:
    """Which rows, int64 (columns, n), come lexicographically before a row."""
    less, equal = np.zeros(rows.shape[1], bool), np.ones(rows.shape[1], bool)
    for column, value in zip(rows, bound, strict=True):
        less |= equal & (column < value)
        equal &= column == value
    return less | equal if or_equal else less


@dataclass(frozen=True)
class Stretch:
    """The rows of a partition from one to another, those alike to these among them.

    ``first``, ``last``: in the columns in which rows are alike.  ``ends_partition``: whether no row stands
    before it, and none behind it.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    ends_partition: tuple[bool, bool]

    def rows(self, version: SupportVersion) -> Rows:
        """Its rows in a version."""
        columns = [list(map(np.array, zip(row, strict=True))) for row in (self.first, self.last)]
        begins, ends = (list(version.ranges(prefix, 1)) for prefix in columns)
        ranges = [(run, int(s[0]), int(e[0])) for (run, s, _), (_, _, e) in zip(begins, ends, strict=True)]
        parts = [([c[s:e] for c in run.columns(version.arity)], run.weights_of(s, e)) for run, s, e in ranges]
        return net_rows(*gathered(parts)) if parts else (np.empty((version.arity, 0), np.int64), _NONE)


_NONE = np.empty(0, np.int64)


def stretches(
    before: SupportVersion,
    after: SupportVersion,
    changed: np.ndarray,
    n_parts: int,
    n_sorted: int,
    reach: int,
) -> list[Stretch]:
    """What stands up to ``reach`` rows around changed ones, in both versions; no two overlap.

    ``changed``: sorted rows, of which the first ``n_parts`` columns are the partition.
    """
    found: list[Stretch] = []
    for row in dict.fromkeys(map(tuple, changed[:n_sorted].T.tolist())):
        if found and found[-1].last >= row:  # its neighbours before it stand there
            before_it = found[-1].first, found[-1].ends_partition[0]
        else:
            before_it = _end_of(before, after, row, n_parts, reach, backwards=True)
        last, ends = _end_of(before, after, row, n_parts, reach, backwards=False)
        stretch = Stretch(before_it[0], max(last, row), (before_it[1], ends))
        if found and found[-1].last >= stretch.first:
            stretch = Stretch(found[-1].first, stretch.last, (found[-1].ends_partition[0], ends))
            found.pop()
        found.append(stretch)
    return found


def _end_of(
    before: SupportVersion,
    after: SupportVersion,
    row: tuple[int, ...],
    n_parts: int,
    reach: int,
    backwards: bool,
) -> tuple[tuple[int, ...], bool]:
    """Where the rows end that stand up to ``reach`` before a row, or behind it, and whether all others do."""
    ends, is_end = [row], True
    for version in (before, after):
        partition = list(version.ranges([np.array([key]) for key in row[:n_parts]], 1))
        alike = list(version.ranges([np.array([key]) for key in row], 1))
        ranges = [
            (run, int(starts[0]), int(at[0])) if backwards else (run, int(behind[0]), int(stops[0]))
            for (run, starts, stops), (_, at, behind) in zip(partition, alike, strict=True)
        ]
        rows, supports = beside(ranges, version.arity, len(row), reach + 1, backwards)
        if supports.sum() > reach:  # one more is there than is read
            is_end = False
            rows, supports = beside(ranges, version.arity, len(row), reach, backwards)
        if rows.shape[1]:
            ends.append(tuple(rows[: len(row), 0 if backwards else -1].tolist()))
    return (min(ends) if backwards else max(ends)), is_end
