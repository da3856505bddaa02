"""`WindowRows`: the rows of windows by partition, and what their values change to.

    stage(dR) = W(R + dR) - W(R),   W = :func:`lftj.aggregates.windows.windowed`

Rows are kept sorted by partition and order, as far as codes are in the order of values.  Of each partition
that a change touches as much is read, before and after it, as can change
(:mod:`maintenance.groups.window_reach`):

    first rows       where only those have a tuple, ``top(3, ...)``
    stretches        where values depend on rows near them alone: ``lag``, ``lead``, frames between two ends
    walks            where they depend on all before them, ``rank``, running sums: from a mark before the
                     changed row on, until the state is what it was (:mod:`maintenance.groups.window_walks`)
    the partition    where it is small; where values depend on all of it, and what they depend on changes

Invariants

1. A change takes two steps (:mod:`maintenance.staged`): ``stage`` computes and publishes nothing.
2. The support counts are the sum of the signed rows; none is negative.
3. The first columns of the order, up to one whose domain is not ordered, are kept as the keys of their codes
   (:func:`lftj.aggregates.window_frames.order_keys`), which give the codes back.  Rows that are equal in
   these, *alike*, are read together or not at all: their order among each other is not that of codes.
   Without an order, where none matters, rows are alike to none.
4. Where windows are walked every partition of LARGE rows has marks, of the rows that are kept.

Cost: O(m log n) for m signed rows, and what is read, sorted.  In a partition of n rows that is, for a
changed row, besides the rows whose values change: O(log n) per run for first rows and stretches, and the
rows that values there depend on; O(sqrt n) for walks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.aggregates.windows import states_of
from lftj.language.body import CheckedHead
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.sorting import first_of_equal, first_rows_of_equal
from lftj.storage.support import SupportVersion
from lftj.values.schema import ColumnType
from maintenance.groups.first_rows import first_rows
from maintenance.groups.window_marks import Key, Marks, greatest_key, is_large, least_key, spacing
from maintenance.groups.window_pieces import Evaluation, StoredOrder
from maintenance.groups.window_reach import Neighbourhood, Places, Reach, is_before, places_of
from maintenance.groups.window_walks import Walk, walked
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport

_FIRST = ("row_number", "rank", "dense_rank", "top", "lag")
"""Windows of whose values those of the first rows depend on the first rows alone."""

Versions = tuple[SupportVersion, SupportVersion]
"""Before a change and after it."""


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

    rows_read = 0
    """Of both versions, by the last stage."""

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head's rows hold."""
        self._head = head
        self._order = StoredOrder(head, types)
        self.names = self._order.names
        most = [window.most for window in head.windows if window.most is not None]
        is_first = most and all(window.function in _FIRST for window in head.windows)
        self._most = min(most) if is_first and self._order.orders else None
        """How many rows of a partition have a tuple, if not all."""
        self._reach = Reach.of(head.windows) if self._order.orders or self._order.any_order else None
        numbered = {number: types[name] for number, name in enumerate(self.names)}
        self._support = StagedSupport(len(self.names), numbered)
        self._marks: dict[Key, Marks] = {}
        """By partition, of large ones, where windows are carried."""
        self._staged_marks: dict[Key, Marks | None] = {}
        """Those that take their places; None: none does."""

    @property
    def parts(self) -> Sequence[Staged]:
        return (self._support,)

    def _keep_own(self) -> None:
        for part, marks in self._staged_marks.items():
            if marks is None:
                self._marks.pop(part, None)
            else:
                self._marks[part] = marks
        self._staged_marks = {}

    def _drop_own(self) -> None:
        self._staged_marks = {}

    def _check_own(self) -> None:
        for part, marks in self._marks.items():
            marks.check_invariants()
            begin, end = (
                places_of([key(part, self._order.n_sorted)], is_end)
                for key, is_end in ((least_key, False), (greatest_key, True))
            )
            pieces = self._order.between(self._support.kept, begin, end)
            rows = pieces.rows[: self._order.n_sorted]
            before = [pieces.weights[is_before(rows, np.array(key))].sum() for key in marks.keys]
            places = np.array([*before, pieces.weights.sum()], np.int64)
            none = np.zeros(len(places), np.int64)
            found = states_of(self._head, pieces.ordered, (none, places, none))
            assert found == [*marks.states, marks.end]

    @property
    def reads(self) -> str:
        """What a change reads, for ``explain``."""
        reach = self._reach
        if self._most is not None:
            return f"the first {self._most} rows of a partition, and those like the last"
        if reach is None:
            return "partitions whole"
        near = " and ".join(str(one) for one in dict.fromkeys((reach.back, reach.ahead)) if one)
        around = f"what is up to {near} around each changed row" if near else "each changed row"
        if not reach.carried:
            return around
        behind = f"{around}, and from there on as long as states change"
        if not reach.total:
            return behind
        what = "their size or " if reach.sized else ""
        return f"{behind}; partitions whole where {what}the last state changes"

    def stage(self, columns: Columns, signs: np.ndarray) -> tuple[Columns, np.ndarray]:
        """The tuples that come and go with signed rows of :attr:`names`, each for a row of its own."""
        before = self._support.newest
        after, changed, _, _ = before.added(self._order.stored(columns), signs)
        self._support.staged = after
        self.rows_read = 0
        if not changed.shape[1]:
            return [np.empty(0, np.int64) for _ in self._head.schema.columns], np.empty(0, np.int64)
        change = _Change(changed, self._order.n_parts, (before, after))
        if self._most is not None:
            found = self._first(change, self._most)
        else:
            whole = np.ones(len(change.touched), bool)
            found = []
            if self._reach is not None and (is_near := self._is_near(change, self._reach)).any():
                found, failed = self._near(change, self._reach, is_near)
                whole = ~is_near
                whole[failed] = True
            large = is_large(change.n_after) & (self._reach is not None and self._reach.carried)
            found += self._whole(change, whole & ~large) + self._marked(change, whole & large)
        self.rows_read = sum(len(one.pieces) for one in found)
        parts = [
            (rows, np.full(len(rows[0]), one.sign, np.int64)) for one in found for rows in [one.tuples()]
        ]
        rows, weights = net_rows(*gathered(parts))
        return list(rows), weights

    def _first(self, change: _Change, most: int) -> list[Evaluation]:
        """The first rows of partitions."""
        touched = change.prefixes(np.ones(len(change.touched), bool))
        return [
            Evaluation(
                self._order.pieces(
                    first_rows(version, touched, len(change.touched), self._order.n_sorted, most)
                ),
                sign,
            )
            for version, sign in zip(change.versions, (-1, 1), strict=True)
        ]

    def _whole(self, change: _Change, those: np.ndarray) -> list[Evaluation]:
        """Touched partitions that have no marks afterwards."""
        if not those.any():
            return []
        for number in np.flatnonzero(those).tolist():
            if self._marks_of(change.touched[number]) is not None:
                self._staged_marks[change.touched[number]] = None
        prefixes = change.prefixes(those)
        return [
            Evaluation(self._order.pieces(version.below(prefixes, int(those.sum()))), sign)
            for version, sign in zip(change.versions, (-1, 1), strict=True)
        ]

    def _marked(self, change: _Change, those: np.ndarray) -> list[Evaluation]:
        """Touched partitions that have."""
        found = self._whole(change, those)
        if found:
            numbers = np.flatnonzero(those).tolist()
            touched = [change.touched[number] for number in numbers]
            begins = places_of([least_key(part, self._order.n_sorted) for part in touched], behind=False)
            ends = places_of([greatest_key(part, self._order.n_sorted) for part in touched], behind=True)
            apart = [spacing(int(change.n_after[number])) for number in numbers]
            nothing = self._order.nothing()
            for part, its in zip(touched, found[1].pieces.marked(begins, ends, apart, None), strict=True):
                first = least_key(part, self._order.n_sorted)
                self._staged_marks[part] = Marks([first, *its.keys], [nothing, *its.states], its.end)
        return found

    def _marks_of(self, part: Key) -> Marks | None:
        """The newest marks of a partition."""
        return self._staged_marks[part] if part in self._staged_marks else self._marks.get(part)

    def _is_near(self, change: _Change, reach: Reach) -> np.ndarray:
        """Of which touched partitions less is read than all."""
        found = is_large(np.minimum(change.n_before, change.n_after))
        if reach.sized:
            found &= change.n_before == change.n_after
        if reach.carried:
            found &= np.array([self._marks_of(part) is not None for part in change.touched])
        return found

    def _near(self, change: _Change, reach: Reach, those: np.ndarray) -> tuple[list[Evaluation], list[int]]:
        """What changes in some touched partitions; the numbers of those that are to be read whole."""
        order = self._order
        column = order.n_parts
        by = (order.orders[column], order.type_of(column)) if column in order.orders else None
        hood = Neighbourhood(change.versions, order.n_parts, by)
        rows = change.changed[: order.n_sorted, those[change.numbers]]
        rows = rows[:, first_of_equal(list(rows))]
        begins = hood.away(Places.of(rows, behind=False), reach.ahead, backwards=True).keys
        ends = hood.away(Places.of(rows, behind=True), reach.back, backwards=False).keys
        apart = np.append(True, is_before(ends[:, :-1], begins[:, 1:]))  # from those before them
        begins, ends = begins[:, apart], ends[:, np.append(apart[1:], True)]
        if not reach.carried:
            kept = Places.of(begins, behind=False), Places.of(ends, behind=True)
            read_from = hood.away(kept[0], reach.back, backwards=True)
            read_to = hood.away(kept[1], reach.ahead, backwards=False)
            return [
                Evaluation(order.between(version, read_from, read_to), sign, kept)
                for version, sign in zip(change.versions, (-1, 1), strict=True)
            ], []
        numbers = {part: number for number, part in enumerate(change.touched)}
        walks: dict[Key, Walk] = {}
        for first, last in zip(begins.T.tolist(), ends.T.tolist(), strict=True):
            part = tuple(first[: order.n_parts])
            if part not in walks:
                marks = self._marks_of(part)
                assert marks is not None
                end = greatest_key(part, order.n_sorted)
                walks[part] = Walk(marks, int(change.n_after[numbers[part]]), end)
            walks[part].reached.append((tuple(first), tuple(last), False))
        found = walked(order, reach, hood, change.versions, list(walks.values()))
        failed = {}
        for number, (part, walk) in enumerate(walks.items()):
            assert walk.found is not None
            if reach.total and walk.found.end != walk.marks.end:
                failed[number] = numbers[part]
            else:
                self._staged_marks[part] = walk.found
        return [one.without(frozenset(failed)) for one in found], list(failed.values())


class _Change:
    """Changed rows, as they are stored, with the partitions that they touch."""

    def __init__(self, changed: np.ndarray, n_parts: int, versions: Versions) -> None:
        """``changed``: int64 (columns, n), sorted."""
        self.changed = changed
        self.versions = versions
        parts = changed[:n_parts]
        first = first_rows_of_equal(list(parts), changed.shape[1])
        self._parts = parts[:, first]
        self.touched: list[Key] = list(map(tuple, self._parts.T.tolist())) if n_parts else [()]
        self.numbers = np.zeros(changed.shape[1], np.int64)
        """Of each changed row's partition among those touched."""
        self.numbers[first[1:]] = 1
        self.numbers = np.cumsum(self.numbers)
        every = np.ones(len(self.touched), bool)
        self.n_before, self.n_after = (
            version.totals(self.prefixes(every), len(self.touched)) for version in versions
        )

    def prefixes(self, those: np.ndarray) -> list[np.ndarray]:
        """The columns of some touched partitions."""
        return list(self._parts[:, those])
