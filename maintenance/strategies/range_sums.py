"""Two ordered views joined by an inequality, kept by range sums (docs/design/strategies.md section 3.4).

    d(L join R) = dL join R_old + L_new join dR

A key of one side whose value changes by d meets a range of the other side's keys.  Of the rows in it only two
numbers are needed, how many they are and what their values add up to, and scan trees have these.  So a
changed key gives two rows at most: one of weight 1 with the values (d, sum of the range), whose product is
what the range adds; and one of product 0 that brings the weights to the number of assignments that come or
go.  Where the other side has groups of its own, each of them has such a range.

Invariants

1. The trees of a side hold its view as it was published, or as it will be while a step is staged;
   ``_undo`` leads back.  They are built from the view's version where they are not there: at first, and
   after an interrupt.
2. ``_magnitude`` is the sum of the absolute values of a side.  As long as it fits 63 bits no sum of a
   range wraps, nor does a change; where it does not, a step raises RangeError, and the head is kept without
   range sums.

Cost: O(log n) nodes for each changed key, of a side with n keys, and each group of its own.  Memory: two
scan trees per side, 32 bytes a key and 16 for each group column, and a table of groups of its own.

Source: ILFTJ 3.1 (scan trees); DBToaster's finance views are where it pays.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from indices.monoid import COUNT, SUM
from indices.scan_tree import ScanTree
from lftj.errors import RangeError
from lftj.language.expressions import comparison_text
from lftj.rewriting.range_join import OrderedView, RangeJoin, Span
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns, gathered, table_of
from maintenance.staged import Staged
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Assignments, BodySearch, Building, Round

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

    def build(self, building: Building) -> Assignments:
        for side in (self._left, self._right):
            side.build(building.versions[side.relation])
        left = self._left.inserted(building.versions[self._left.relation])
        return self._joined(self._left, self._right, left)

    def step(self, change: Round, stats: RuleStats) -> Assignments:
        for side in (self._left, self._right):
            if side.is_missing:
                side.build(change.old[side.relation])
        before = self._left.touched + self._right.touched
        found = []
        for side, other in ((self._left, self._right), (self._right, self._left)):
            changed = change.changes.get(side.relation)
            if changed is not None and len(changed):
                changes = side.changes_by_key(changed.columns, changed.weights)
                found.append(self._joined(side, other, changes))
                side.stage(changes)
                stats.surgeries += len(changed)
        stats.seeks += self._left.touched + self._right.touched - before
        if not found:
            return [np.empty(0, np.int64) for _ in self._variables], np.empty(0, np.int64)
        return gathered(found)

    def rows(self, change: Round, after: bool) -> Assignments:
        return RangeSums(self.join).build(Building(change.new if after else change.old))

    def _joined(self, side: _Side, other: _Side, changes: KeyChanges) -> Assignments:
        """The rows that changes of one side make with the other as it is."""
        keys, changed, supports = changes.keys, changes.after - changes.before, changes.supports
        n_both = len(side.view.groups)
        groups, own, others = keys[:, :n_both], keys[:, n_both:-1], keys[:, :0]
        compared = keys[:, -1:]
        if other.has_groups:
            rows, others = other.groups_at(groups)
            groups, own, compared = groups[rows], own[rows], compared[rows]
            changed, supports = changed[rows], supports[rows]
        counts, sums = other.summed(np.hstack([groups, others, compared]), side.spans, side.times)
        met = counts > 0
        pair = (changed, sums) if side is self._left else (sums, changed)
        in_order = (own, others) if side is self._left else (others, own)
        columns = [*groups.T, *in_order[0].T, *in_order[1].T]
        more = supports * counts - 1
        if not met.all():
            columns, pair = [column[met] for column in columns], (pair[0][met], pair[1][met])
            more = more[met]
        rest = more != 0
        weights = np.ones(len(more), np.int64)
        if not rest.any():
            return [*columns, *pair], weights
        nothing = np.zeros(int(rest.sum()), np.int64)
        repeated = [*(column[rest] for column in columns), nothing, nothing]
        return gathered([([*columns, *pair], weights), (repeated, more[rest])])

    def describe(self) -> list[str]:
        sides = " and ".join(view.lookup for view in (self.join.left, self.join.right))
        order = ", ".join(self._variables)
        return [order, f"range sums  of {sides} where {comparison_text(self.join.comparison)}"]


@dataclass(frozen=True)
class KeyChanges:
    """Keys of one side that change, their values before and after, and 1 where one comes, -1 where it goes.

    ``keys``: int64 (n, columns), groups of both sides, its own, and what is compared; the others (n,).  A
    value that is not there is 0.
    """

    keys: np.ndarray
    before: np.ndarray
    after: np.ndarray
    supports: np.ndarray

    def undone(self) -> KeyChanges:
        return KeyChanges(self.keys, self.after, self.before, -self.supports)


class _Side(Staged):
    """One view in the order of its compared key, by groups that both sides know and its own.

    ``spans``: of its key less the other side's, for a match, taken ``times`` so often.
    """

    def __init__(self, view: OrderedView, spans: Sequence[Span], times: tuple[int, int]) -> None:
        self.relation = view.atom.relation
        self.view = view
        self.spans = spans
        self.times = times
        self.has_groups = bool(view.own)
        self._trees: tuple[ScanTree, ScanTree] | None = None  # how many rows, and their values
        self._members: dict[Key, dict[Key, int]] = {}  # by groups of both, its own, and rows of each
        self._magnitude = 0
        self._undo: list[KeyChanges] | None = []  # None where they were built since the last keep

    @property
    def is_missing(self) -> bool:
        return self._trees is None

    @property
    def nbytes(self) -> int:
        return 0 if self._trees is None else self._trees[0].nbytes + self._trees[1].nbytes

    @property
    def touched(self) -> int:
        """Nodes visited so far."""
        return 0 if self._trees is None else self._trees[0].touched + self._trees[1].touched

    def inserted(self, version: RelationVersion) -> KeyChanges:
        """All rows of a version of the view, in the order of their keys."""
        rows = version.columns()
        keys = self._keys(rows)
        order = np.lexsort(keys[::-1])
        n_rows = len(order)
        values = rows[-1][order]
        return KeyChanges(
            np.ascontiguousarray(keys.T[order]), np.zeros(n_rows, np.int64), values, np.ones(n_rows, np.int64)
        )

    def changes_by_key(self, columns: Columns, weights: np.ndarray) -> KeyChanges:
        """A change of the view, a function: its rows, sorted, with weights 1 and -1."""
        return KeyChanges(*_by_key(self._keys(columns), columns[-1], weights))

    def _keys(self, columns: Columns) -> np.ndarray:
        view = self.view
        places = (*view.groups, *view.own, view.key)
        return table_of([columns[place] for place in places], 0)

    def groups_at(self, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """This side's own groups within each row of groups of both: the row's number, and a row of them."""
        found = [list(self._members.get(tuple(key), ())) for key in groups.tolist()]
        rows = np.repeat(np.arange(len(groups)), list(map(len, found)))
        own = np.array([key for keys in found for key in keys], np.int64)
        return rows, own.reshape(len(rows), len(self.view.own))

    def build(self, version: RelationVersion) -> None:
        """Trees of a version of the view."""
        rows = self.inserted(version)
        trees = (
            ScanTree.from_sorted(rows.keys, None, COUNT),
            ScanTree.from_sorted(rows.keys, rows.after, SUM),
        )
        self._magnitude, self._members = 0, {}
        self._count(rows)
        self._trees, self._undo = trees, None
        self._refuse_large()

    def stage(self, changes: KeyChanges) -> None:
        """Take changes of the view."""
        trees, self._trees = self._trees, None
        assert trees is not None, "a side is built before it is stepped"
        undo = self._undo
        self._change(trees, changes)
        if undo is not None:
            undo.append(changes)
        self._trees = trees
        self._refuse_large()

    def _change(self, trees: tuple[ScanTree, ScanTree], changes: KeyChanges) -> None:
        counts, sums = trees
        supports = set(changes.supports.tolist())
        for support in supports:
            keys, after = changes.keys, changes.after
            if len(supports) > 1:
                these = changes.supports == support
                keys, after = keys[these], after[these]
            if support < 0:
                counts.erase_many(keys)
                sums.erase_many(keys)
            elif support > 0:
                counts.insert_many(keys)
                sums.insert_many(keys, after)
            else:
                sums.update_many(keys, after)
        self._count(changes)

    def _count(self, changes: KeyChanges) -> None:
        """Bring magnitude and groups of its own to where the trees are."""
        self._magnitude += sum(map(abs, changes.after.tolist())) - sum(map(abs, changes.before.tolist()))
        if not self.has_groups:
            return
        n_both = len(self.view.groups)
        for row, support in zip(changes.keys.tolist(), changes.supports.tolist(), strict=True):
            key, member = tuple(row[:n_both]), tuple(row[n_both:-1])
            members = self._members.setdefault(key, {})
            members[member] = members.get(member, 0) + support
            if not members[member]:
                del members[member]
                if not members:
                    del self._members[key]

    def summed(
        self, keys: np.ndarray, spans: Sequence[Span], times: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """For keys of the other side, by groups: how many rows of this side match, and their sum.

        ``keys``: int64 (n, columns), the groups of this side's trees and the other side's compared key;
        ``spans``: of that less this one's, taken ``times`` so often.
        """
        assert self._trees is not None
        counts, sums = self._trees
        found = np.zeros((2, len(keys)), np.int64)
        for span in spans:
            lows, highs = _ranges_of(keys, span, times)
            found[0] += counts.query_many(lows, highs)
            found[1] += sums.query_many(lows, highs)
        return found[0], found[1]

    def _refuse_large(self) -> None:
        if self._magnitude > KEY_MAX // 2:
            raise RangeError(f"sums of ranges of {self.relation} may need more than 64 bits")

    def _keep_own(self) -> None:
        self._undo = []

    def _drop_own(self) -> None:
        (undo, self._undo), (trees, self._trees) = (self._undo, []), (self._trees, None)
        if trees is None or undo is None:
            return
        for changes in reversed(undo):
            self._change(trees, changes.undone())
        self._trees = trees

    def _check_own(self) -> None:
        if self._trees is None:
            return
        for tree in self._trees:
            tree.check_invariants()
        (keys, _), (same, values) = (tree.records() for tree in self._trees)
        assert np.array_equal(keys, same)
        counted = self._members, self._magnitude
        self._members, self._magnitude = {}, 0
        n_rows = len(values)
        self._count(KeyChanges(keys, np.zeros(n_rows, np.int64), values, np.ones(n_rows, np.int64)))
        assert counted == (self._members, self._magnitude)


def _turned(span: Span) -> Span:
    """The span of the difference the other way around."""
    least, most = span
    return None if most is None else -most, None if least is None else -least


def _ranges_of(keys: np.ndarray, span: Span, times: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Tables of the least and the largest keys that match: ``a * key - b * other`` in the span.

    ``times``: a and b.
    """
    least, most = span
    a, b = times
    if all(end is None or abs(end) <= KEY_MAX for end in span):
        lows, highs, fits = _ranges(keys, least is not None, least or 0, most is not None, most or 0, a, b)
        if fits:
            return lows, highs
    lows, highs = keys.copy(), keys.copy()
    for row, key in enumerate(keys[:, -1].tolist()):
        low = KEY_MIN if most is None else -((most - a * key) // b)
        high = KEY_MAX if least is None else (a * key - least) // b
        if low > KEY_MAX or high < KEY_MIN:
            low, high = KEY_MAX, KEY_MIN  # no key is there
        lows[row, -1], highs[row, -1] = max(low, KEY_MIN), min(high, KEY_MAX)
    return lows, highs


@kernel(makes_arrays=True)
def _ranges(keys, has_least, least, has_most, most, a, b):
    """:func:`_ranges_of` within 64 bits, and whether all of it is.  keys: int64 (n, columns)."""
    lows, highs = keys.copy(), keys.copy()
    last = keys.shape[1] - 1
    for row in range(len(keys)):
        low, high, fits = range_at_key(keys[row, last], has_least, least, has_most, most, a, b)
        if not fits:
            return lows, highs, False
        lows[row, last], highs[row, last] = low, high
    return lows, highs, True


@part
def range_at_key(key, has_least, least, has_most, most, a, b):
    """The least and the largest key with ``a * key - b * other`` in a span, and whether 64 bits do."""
    low, high = np.int64(KEY_MIN), np.int64(KEY_MAX)
    if abs(float(key)) * a + max(abs(float(least)), abs(float(most))) >= 2.0**62:
        return low, high, False
    if has_most:
        low = np.int64(-((most - a * key) // b))
    if has_least:
        high = np.int64((a * key - least) // b)
    return low, high, True


@kernel(makes_arrays=True)
def _by_key(columns, values, weights):
    """Keys that change, their values before and after, and their supports, of a function's signed rows.

    columns: int64 (columns, n), the rows of a key one behind the other; values, weights: int64 (n,).
    """
    n_keys, n_columns = 0, columns.shape[0]
    keys = np.empty((len(weights), n_columns), dtype=np.int64)
    figures = np.zeros((3, len(weights)), dtype=np.int64)
    for row in range(len(weights)):
        same = n_keys > 0
        for column in range(n_columns):
            same = same and keys[n_keys - 1, column] == columns[column, row]
        if not same:
            for column in range(n_columns):
                keys[n_keys, column] = columns[column, row]
            n_keys += 1
        figures[0 if weights[row] < 0 else 1, n_keys - 1] = values[row]
        figures[2, n_keys - 1] += weights[row]
    return keys[:n_keys].copy(), figures[0, :n_keys], figures[1, :n_keys], figures[2, :n_keys]
