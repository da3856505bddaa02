"""Two ordered views joined by an inequality, kept by range sums (STRATEGIES.md 3.4).

    d(L join R) = dL join R_old + L_new join dR

A changed row of one side meets a range of the other side's keys.  Of the rows in it only two numbers are
needed, how many they are and what their values add up to, and scan trees have these.  So a changed row
(group, key, v) of weight w gives two rows at most: one with the values (v, sum of the range) and weight
w, whose product is what the range adds; and one of product 0 that brings the weights to w times the
number of rows in the range, the number of assignments.

Invariants

1. The trees of a side hold its view as it was published, or as it will be while a step is staged;
   ``_undo`` leads back.  They are built from the view's version where they are not there: at first, and
   after an interrupt.
2. ``_magnitude`` is the sum of the absolute values of a side.  As long as it fits 64 bits no sum of a
   range wraps; where it does not, a step raises RangeError, and the head is kept without range sums.

Cost: O(log n) nodes for each changed row, of a side with n keys.  Memory: two scan trees per side, 32
bytes a key and 16 for each group column.

Source: ILFTJ 3.1 (scan trees); DBToaster's finance views are where it pays.
"""

from __future__ import annotations

from collections.abc import Sequence

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


class RangeSums(BodySearch):
    """A range join.  Its rows are groups and two values, whose products add up to those of all matches."""

    def __init__(self, join: RangeJoin) -> None:
        self.join = join
        spans = join.inequality.spans
        self._left = _Side(join.left, spans)
        self._right = _Side(join.right, [_turned(span) for span in spans])
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
        groups, keys, values = side.taken(columns)
        counts, sums = other.summed(groups, keys, side.spans)
        met = counts > 0
        groups, values, weights = [column[met] for column in groups], values[met], weights[met]
        counts, sums = counts[met], sums[met]
        pair = (values, sums) if side is self._left else (sums, values)
        several = counts > 1
        others = weights[several] * (counts[several] - 1)
        nothing = np.zeros(len(others), np.int64)
        more = [*(column[several] for column in groups), nothing, nothing]
        return gathered([([*groups, *pair], weights), (more, others)])

    def describe(self) -> list[str]:
        sides = " and ".join(view.lookup for view in (self.join.left, self.join.right))
        order = ", ".join(self._variables)
        return [order, f"range sums  of {sides} where {comparison_text(self.join.comparison)}"]


class _Side(Staged):
    """One view in the order of its compared key.

    ``spans``: of its key less the other side's, for a match.
    """

    def __init__(self, view: OrderedView, spans: Sequence[Span]) -> None:
        self.relation = view.atom.relation
        self.spans = spans
        self._view = view
        self._trees: tuple[ScanTree, ScanTree] | None = None  # how many rows, and their values
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

    def taken(self, columns: Columns) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Groups, compared keys and values of rows of the view."""
        return [columns[place] for place in self._view.groups], columns[self._view.key], columns[-1]

    def build(self, version: RelationVersion) -> None:
        """Trees of a version of the view."""
        groups, keys, values = self.taken(version.columns())
        table = table_of([*groups, keys], len(values)).T
        order = np.lexsort(table.T[::-1])
        table, values = np.ascontiguousarray(table[order]), values[order]
        self._trees = ScanTree.from_sorted(table, None, COUNT), ScanTree.from_sorted(table, values, SUM)
        self._magnitude = sum(map(abs, values.tolist()))
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
        groups, keys, values = self.taken(columns)
        table = np.ascontiguousarray(table_of([*groups, keys], len(values)).T)
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
        signed = zip(values.tolist(), weights.tolist(), strict=True)
        self._magnitude += sum(weight * abs(value) for value, weight in signed)

    def summed(
        self, groups: Sequence[np.ndarray], keys: np.ndarray, spans: Sequence[Span]
    ) -> tuple[np.ndarray, np.ndarray]:
        """For keys of the other side, by group: how many rows of this side match, and their sum.

        ``spans``: of the other side's key less this one's.
        """
        assert self._trees is not None
        counts, sums = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        for least, most in spans:
            lows, below = _less(keys, most, KEY_MIN)
            highs, above = _less(keys, least, KEY_MAX)
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
        (keys, _), (same, values) = (tree.records() for tree in self._trees)
        assert np.array_equal(keys, same)
        assert self._magnitude == sum(map(abs, values.tolist()))


def _turned(span: Span) -> Span:
    """The span of the difference the other way around."""
    least, most = span
    return None if most is None else -most, None if least is None else -least


def _less(keys: np.ndarray, number: int | None, end: int) -> tuple[np.ndarray, np.ndarray]:
    """``keys - number`` within 64 bits, and -1 or 1 where it is beyond; ``end`` without a number."""
    beyond = np.zeros(len(keys), np.int64)
    if number is None:
        return np.full(len(keys), end, np.int64), beyond
    if not KEY_MIN < number <= KEY_MAX:
        exact = [key - number for key in keys.tolist()]
        beyond = np.array([(one > KEY_MAX) - (one < KEY_MIN) for one in exact], np.int64)
        return np.array([min(max(one, KEY_MIN), KEY_MAX) for one in exact], np.int64), beyond
    if number > 0:
        beyond[keys < KEY_MIN + number] = -1
    elif number < 0:
        beyond[keys > KEY_MAX + number] = 1
    with np.errstate(over="ignore"):
        found = keys - np.int64(number)
    found[beyond < 0], found[beyond > 0] = KEY_MIN, KEY_MAX
    return found, beyond
