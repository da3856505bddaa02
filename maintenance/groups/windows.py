"""`WindowRows`: the rows of windows by partition, and what their values change to.

    stage(dR) = W(R + dR) - W(R),   W = :func:`lftj.aggregates.windows.windowed`

Of each partition that a change touches the values are made anew, before and after it.  Rows are kept sorted
by partition and order, as far as codes are in the order of values; so the first rows of a partition are found
without the others, and a head that keeps only those, ``top(3, ...)``, reads no more.

Invariants

1. A change takes two steps (:mod:`maintenance.staged`): ``stage`` computes and publishes nothing.
2. The support counts are the sum of the signed rows; none is negative.
3. The first columns of the order, up to one whose domain is not ordered, are kept as the keys of their codes
   (:func:`lftj.aggregates.windows.order_keys`), which give the codes back.

Cost: O(m log n) for m signed rows, and for each partition that they touch a sort of its rows; where a number
bounds them, O(log n) and as many rows as the number, and their peers, from each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.aggregates.windows import order_codes, order_keys, row_names, windowed
from lftj.language.body import CheckedHead
from lftj.language.syntax import Ordering
from lftj.storage.runs import IndexRun
from lftj.storage.signed_rows import Columns, difference, gathered, net_rows
from lftj.storage.sorting import sort_distinct
from lftj.storage.support import SupportVersion
from lftj.values.schema import ColumnType
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport

_BOUNDED = ("row_number", "rank", "dense_rank", "top", "lag")
"""Windows of whose values those of the first rows depend on the first rows alone."""


class WindowRows(Staged):
    """One head's.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import Ordering, Variable, Window
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> best = Window("top", (), (), (Ordering(Variable("v"), descending=True),), most=2)
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
        self._beside = [variable.name for variable in first.per if variable.name not in head.variables]
        self.is_distinct = not self._beside
        """Whether no two partitions give one tuple."""
        self._orders: dict[int, Ordering] = {}  # by column, those that rows are sorted by
        for column, one in enumerate(first.by, self._n_parts):
            if self.names.index(one.variable.name) != column or not types[one.variable.name].domain.ordered:
                break
            self._orders[column] = one
        most = [window.most for window in head.windows if window.most is not None]
        bounded = all(window.function in _BOUNDED for window in head.windows)
        self.most = min(most) if most and bounded and self._orders else None
        """How many rows of a partition are read, with those like the last of them; None: all."""
        numbered = {number: types[name] for number, name in enumerate(self.names)}
        self._support = StagedSupport(len(self.names), numbered)

    @property
    def parts(self) -> Sequence[Staged]:
        return (self._support,)

    @property
    def nbytes(self) -> int:
        return self._support.kept.nbytes

    def stage(self, columns: Columns, signs: np.ndarray) -> tuple[Columns, np.ndarray]:
        """The tuples that come and go with signed rows of :attr:`names`, as often as partitions give them."""
        before = self._support.newest
        after, changed, _, _ = before.added(self._stored(columns), signs)
        self._support.staged = after
        touched = sort_distinct(list(changed[: self._n_parts])) if self._n_parts else []
        n_touched = len(touched[0]) if touched else min(1, changed.shape[1])
        if not n_touched:
            return [np.empty(0, np.int64) for _ in self._head.schema.columns], np.empty(0, np.int64)
        old, new = (self._values(version, touched, n_touched) for version in (before, after))
        ones = [np.ones(len(tuples[0]), np.int64) for tuples in (new, old)]
        rows, weights = difference(new, ones[0], old, ones[1])
        return list(rows[len(self._beside) :]), weights

    def _values(self, version: SupportVersion, touched: Columns, n_touched: int) -> list[np.ndarray]:
        """The tuples of partitions, each once per partition."""
        if self.most is None:
            _, columns, weights = version.below(touched, n_touched)
        else:
            n_sorted = self._n_parts + len(self._orders)
            columns, weights = first_rows(version, touched, n_touched, n_sorted, self.most)
        return windowed(self._head, self._types, self._restored(columns), weights, self._beside)

    def _stored(self, columns: Columns) -> list[np.ndarray]:
        stored = list(columns)
        for number, order in self._orders.items():
            type_ = self._types[self.names[number]]
            stored[number] = order_keys(stored[number], type_, order.descending, order.nulls_first)
        return stored

    def _restored(self, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = list(columns)
        for number, order in self._orders.items():
            type_ = self._types[self.names[number]]
            found[number] = order_codes(found[number], type_, order.descending, order.nulls_first)
        return found


def first_rows(
    version: SupportVersion, prefixes: Columns, n_prefixes: int, n_sorted: int, most: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Of the tuples that begin with each prefix the first ``most``, and those equal to the last of them
    in the first ``n_sorted`` columns; with their supports.  O(log n) per run and prefix, and the rows.

    >>> rows = [np.array([1, 2, 2, 3]), np.array([0, 0, 1, 0])]
    >>> version, *_ = SupportVersion(2).added(rows, np.ones(4, int))
    >>> columns, supports = first_rows(version, [], 1, 1, 2)
    >>> [column.tolist() for column in columns], supports.tolist()
    ([[1, 2, 2], [0, 0, 1]], [1, 1, 1])
    """
    runs = list(version.ranges(prefixes, n_prefixes))
    found = [(np.empty((version.arity, 0), np.int64), np.empty(0, np.int64))]
    for prefix in range(n_prefixes):
        ranges = [(run, int(starts[prefix]), int(stops[prefix])) for run, starts, stops in runs]
        taken = most + 8
        while (part := _first_of(ranges, version.arity, n_sorted, most, taken)) is None:
            taken *= 4
        found.append(part)
    columns, supports = gathered([(list(rows), supports) for rows, supports in found])
    return list(columns), supports


def _first_of(
    ranges: Sequence[tuple[IndexRun, int, int]], arity: int, n_sorted: int, most: int, taken: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """The first rows by what begins each run's range; None where ``taken`` tuples of each are too few."""
    pieces, ends = [], []
    for run, start, stop in ranges:
        end = min(stop, start + taken)
        columns = np.array([column[start:end] for column in run.columns(arity)])
        pieces.append((list(columns), run.weights_of(start, end)))
        if end < stop:
            ends.append(tuple(columns[:n_sorted, -1].tolist()))
    if not pieces:
        return np.empty((arity, 0), np.int64), np.empty(0, np.int64)
    rows, supports = net_rows(*gathered(pieces))
    if ends:  # what lies before the least of them is complete
        complete = _before(rows[:n_sorted], min(ends))
        rows, supports = rows[:, complete], supports[complete]
    total = np.cumsum(supports)
    if not len(total) or total[-1] < most:
        return None if ends else (rows, supports)
    last = rows[:n_sorted, int(np.searchsorted(total, most))]
    kept = _before(rows[:n_sorted], tuple(last.tolist()), or_equal=True)
    return rows[:, kept], supports[kept]


def _before(rows: np.ndarray, bound: tuple[int, ...], or_equal: bool = False) -> np.ndarray:
    """Which rows, int64 (columns, n), come lexicographically before a row."""
    less, equal = np.zeros(rows.shape[1], bool), np.ones(rows.shape[1], bool)
    for column, value in zip(rows, bound, strict=True):
        less |= equal & (column < value)
        equal &= column == value
    return less | equal if or_equal else less
