"""Two ordered views joined by an inequality, kept by range sums (STRATEGIES.md 3.4).

    d(L join R) = dL join R_old + L_new join dR

A changed row of one side meets a range of the other side's keys.  Of the rows in it only two numbers are
needed, how many they are and what their values add up to, and scan trees have these.  So a changed row
(group, key, v) of weight w gives two rows at most: one with the values (v, sum of the range) and weight
w, whose product is what the range adds; and one of product 0 that brings the weights to w times the
number of rows in the range, the number of assignments.  Where the other side has groups of its own,
each of them has such a range.

Invariants

1. The trees of a side hold its view as it was published, or as it will be while a step is staged;
   ``_undo`` leads back.  They are built from the view's version where they are not there: at first, and
   after an interrupt.
2. ``_magnitude`` is the sum of the absolute values of a side.  As long as it fits 64 bits no sum of a
   range wraps; where it does not, a step raises RangeError, and the head is kept without range sums.

Cost: O(log n) nodes for each changed row, of a side with n keys, and each group of its own.  Memory: two
scan trees per side, 32 bytes a key and 16 for each group column, and a table of groups of its own.

Source: ILFTJ 3.1 (scan trees); DBToaster's finance views are where it pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from indices.monoid import COUNT, SUM
from indices.scan_tree import ScanTree
from lftj.errors import RangeError
from lftj.language.expressions import comparison_text
from lftj.process.progress import Advance
from lftj.rewriting.range_join import OrderedView, RangeJoin, Span
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns, gathered, table_of
from maintenance.staged import Staged
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Assignments, BodySearch, Round, Versions

Key = tuple[int, ...]


class RangeSums(BodySearch):
    """A range join.  Its rows are groups and two values, whose products add up to those of all matches."""

    def __init__(self, join: RangeJoin) -> None:
        self.join = join
        spans, times = join.inequality.spans, join.inequality.times
        self._left = _Side(join.left, spans, times)
        self._right = _Side(join.right, [_turned(span) for span in spans], times[::-1])
        self._variables = (*join.groups, join.left.value, join.right.value)

    @property
    def variables(self) -> tuple[str, ...]:
        return self._variables

    @property
    def is_distinct(self) -> bool:
        return False

    @property
    def parts(self) -> Sequence[Staged]:
        return self._left, self._right

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes

    def build(self, versions: Versions, threads: int = 1, advance: Advance | None = None) -> Assignments:
        for side in (self._left, self._right):
            side.build(versions[side.relation])
        version = versions[self._left.relation]
        return self._joined(self._left, self._right, version.columns(), np.ones(version.n_rows, np.int64))

    def step(self, change: Round, stats: RuleStats) -> Assignments:
        for side in (self._left, self._right):
            if side.is_missing:
                side.build(change.old[side.relation])
        before = self._left.touched + self._right.touched
        found = []
        for side, other in ((self._left, self._right), (self._right, self._left)):
            changed = change.changes.get(side.relation)
            if changed is not None and len(changed):
                found.append(self._joined(side, other, changed.columns, changed.weights))
                side.stage(changed.columns, changed.weights)
                stats.surgeries += len(changed)
        stats.seeks += self._left.touched + self._right.touched - before
        if not found:
            return [np.empty(0, np.int64) for _ in self._variables], np.empty(0, np.int64)
        return gathered(found)

    def rows(self, change: Round, after: bool) -> Assignments:
        return RangeSums(self.join).build(change.new if after else change.old)

    def _joined(self, side: _Side, other: _Side, columns: Columns, weights: np.ndarray) -> Assignments:
        """The rows that signed rows of one side make with the other as it is."""
        groups, own, keys, values = side.taken(columns)
        others: Columns = []
        if other.has_groups:
            rows, others = other.groups_at(groups, len(keys))
            groups, own = [column[rows] for column in groups], [column[rows] for column in own]
            keys, values, weights = keys[rows], values[rows], weights[rows]
        counts, sums = other.summed([*groups, *others], keys, side.spans, side.times)
        met = counts > 0
        in_order = (*own, *others) if side is self._left else (*others, *own)
        groups = [column[met] for column in (*groups, *in_order)]
        values, weights = values[met], weights[met]
        counts, sums = counts[met], sums[met]
        pair = (values, sums) if side is self._left else (sums, values)
        several = counts > 1
        more = weights[several] * (counts[several] - 1)
        nothing = np.zeros(len(more), np.int64)
        repeated = [*(column[several] for column in groups), nothing, nothing]
        return gathered([([*groups, *pair], weights), (repeated, more)])

    def describe(self) -> list[str]:
        sides = " and ".join(view.lookup for view in (self.join.left, self.join.right))
        order = ", ".join(self._variables)
        return [order, f"range sums  of {sides} where {comparison_text(self.join.comparison)}"]


class _Side(Staged):
    """One view in the order of its compared key, by groups that both sides know and its own.

    ``spans``: of its key less the other side's, for a match, taken ``times`` so often.
    """

    def __init__(self, view: OrderedView, spans: Sequence[Span], times: tuple[int, int]) -> None:
        self.relation = view.atom.relation
        self.spans = spans
        self.times = times
        self.has_groups = bool(view.own)
        self._view = view
        self._trees: tuple[ScanTree, ScanTree] | None = None  # how many rows, and their values
        self._members: dict[Key, dict[Key, int]] = {}  # by groups of both, its own, and rows of each
        self._magnitude = 0
        self._undo: (
            list[tuple[Columns, np.ndarray]] | None
        ) = []  # None where they were built since the last keep

    @property
    def is_missing(self) -> bool:
        return self._trees is None

    @property
    def nbytes(self) -> int:
        return 0 if self._trees is None else sum(tree.nbytes for tree in self._trees)

    @property
    def touched(self) -> int:
        """Nodes visited so far."""
        return 0 if self._trees is None else sum(tree.touched for tree in self._trees)

    def taken(self, columns: Columns) -> tuple[Columns, Columns, np.ndarray, np.ndarray]:
        """Groups of both sides and its own, compared keys and values of rows of the view."""
        view = self._view
        groups, own = ([columns[place] for place in places] for places in (view.groups, view.own))
        return groups, own, columns[view.key], columns[-1]

    def groups_at(self, groups: Columns, n_rows: int) -> tuple[np.ndarray, Columns]:
        """This side's own groups within each row of groups: the row's number, and columns of them."""
        found = [list(self._members.get(key, ())) for key in _keys_of(groups, n_rows)]
        rows = np.repeat(np.arange(n_rows), list(map(len, found)))
        own = np.array([key for keys in found for key in keys], np.int64)
        return rows, list(own.reshape(len(rows), len(self._view.own)).T)

    def build(self, version: RelationVersion) -> None:
        """Trees of a version of the view."""
        groups, own, keys, values = self.taken(version.columns())
        table = table_of([*groups, *own, keys], len(values)).T
        order = np.lexsort(table.T[::-1])
        table, values = np.ascontiguousarray(table[order]), values[order]
        self._trees = ScanTree.from_sorted(table, None, COUNT), ScanTree.from_sorted(table, values, SUM)
        self._magnitude = sum(map(abs, values.tolist()))
        self._members = {}
        self._count_members(groups, own, [1] * len(values))
        self._undo = None
        self._refuse_large()

    def stage(self, columns: Columns, weights: np.ndarray) -> None:
        """Take a change of the view, a function: its rows, sorted, with weights 1 and -1."""
        trees, self._trees = self._trees, None
        assert trees is not None, "a side is built before it is stepped"
        undo = self._undo
        self._change(trees, columns, weights)
        if undo is not None:
            undo.append((columns, weights))
        self._trees = trees
        self._refuse_large()

    def _change(self, trees: tuple[ScanTree, ScanTree], columns: Columns, weights: np.ndarray) -> None:
        groups, own, keys, values = self.taken(columns)
        table = np.ascontiguousarray(table_of([*groups, *own, keys], len(values)).T)
        alike = (table[1:] == table[:-1]).all(axis=1)  # the old and the new value of a key stand together
        paired = np.zeros(len(values), bool)
        paired[1:] |= alike
        paired[:-1] |= alike
        gone, came = ~paired & (weights < 0), ~paired & (weights > 0)
        updated = paired & (weights > 0)
        counts, sums = trees
        if gone.any():
            counts.erase_many(table[gone])
            sums.erase_many(table[gone])
        if came.any():
            counts.insert_many(table[came])
            sums.insert_many(table[came], values[came])
        if updated.any():
            sums.update_many(table[updated], values[updated])
        signs = weights.tolist()
        self._magnitude += sum(sign * abs(value) for value, sign in zip(values.tolist(), signs, strict=True))
        self._count_members(groups, own, signs)

    def _count_members(self, groups: Columns, own: Columns, signs: Sequence[int]) -> None:
        """Rows come to its own groups, or go."""
        if not self.has_groups:
            return
        for key, member, sign in zip(_keys_of(groups, len(signs)), _keys_of(own, 0), signs, strict=True):
            members = self._members.setdefault(key, {})
            members[member] = members.get(member, 0) + sign
            if not members[member]:
                del members[member]
                if not members:
                    del self._members[key]

    def summed(
        self, groups: Columns, keys: np.ndarray, spans: Sequence[Span], times: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """For keys of the other side, by groups: how many rows of this side match, and their sum.

        ``spans``: of the other side's key less this one's, taken ``times`` so often.
        """
        assert self._trees is not None
        counts, sums = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        for least, most in spans:
            lows, below = _bounds(keys, most, times, KEY_MIN)
            highs, above = _bounds(keys, least, times, KEY_MAX)
            empty = (below > 0) | (above < 0)  # the range begins above all keys, or ends below them
            low_table = table_of([*groups, lows], len(keys)).T
            high_table = table_of([*groups, highs], len(keys)).T
            for tree, found in zip(self._trees, (counts, sums), strict=True):
                found += np.where(empty, 0, tree.query_many(low_table, high_table))
        return counts, sums

    def _refuse_large(self) -> None:
        if self._magnitude > KEY_MAX:
            raise RangeError(f"sums of ranges of {self.relation} may need more than 64 bits")

    def _keep_own(self) -> None:
        self._undo = []

    def _drop_own(self) -> None:
        (undo, self._undo), (trees, self._trees) = (self._undo, []), (self._trees, None)
        if trees is None or undo is None:
            return
        for columns, weights in reversed(undo):
            self._change(trees, columns, -weights)
        self._trees = trees

    def _check_own(self) -> None:
        if self._trees is None:
            return
        for tree in self._trees:
            tree.check_invariants()
        counted, self._members = self._members, {}
        columns = list(self._trees[0].records()[0].T)
        n_both = len(self._view.groups)
        self._count_members(columns[:n_both], columns[n_both:-1], [1] * len(self._trees[0]))
        assert counted == self._members
        (keys, _), (same, values) = (tree.records() for tree in self._trees)
        assert np.array_equal(keys, same)
        assert self._magnitude == sum(map(abs, values.tolist()))


def _turned(span: Span) -> Span:
    """The span of the difference the other way around."""
    least, most = span
    return None if most is None else -most, None if least is None else -least


def _keys_of(columns: Columns, n_rows: int) -> Iterable[Key]:
    """Rows as tuples; so many empty ones without columns."""
    return zip(*(column.tolist() for column in columns), strict=True) if columns else [()] * n_rows


def _bounds(
    keys: np.ndarray, number: int | None, times: tuple[int, int], end: int
) -> tuple[np.ndarray, np.ndarray]:
    """The other side's keys with ``a * key - b * other`` = ``number``, of times (a, b), rounded to within.

    ``end``: the least or the largest key, to which the range goes without a number.  Behind the bounds,
    which are within 64 bits, -1 or 1 where they lie beyond.
    """
    if number is None or not len(keys):
        return np.full(len(keys), end, np.int64), np.zeros(len(keys), np.int64)
    a, b = times
    up = end == KEY_MIN  # the range begins here
    if max(-int(keys.min()), int(keys.max())) * a + abs(number) <= KEY_MAX:
        difference = a * keys - number
        return -(-difference // b) if up else difference // b, np.zeros(len(keys), np.int64)
    exact = [a * key - number for key in keys.tolist()]
    exact = [-(-one // b) if up else one // b for one in exact]
    beyond = np.array([(one > KEY_MAX) - (one < KEY_MIN) for one in exact], np.int64)
    return np.array([min(max(one, KEY_MIN), KEY_MAX) for one in exact], np.int64), beyond
