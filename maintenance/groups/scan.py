"""`GroupScan`: the ordered intermediate of ``min``, ``max``, ranks, quantiles, ``arg_min`` and semigroups.

Under signed rows: multiplicities of (groups..., arguments...), and a scan tree over the tuples that
have any, whose keys are the groups and the arguments' *places*: numbers in the
order of values.  Codes are places in an ordered domain; elsewhere labels are
(:mod:`maintenance.groups.order_labels`), while the multiplicities hold codes, which
never change.  A record's value is its place (min, max, ranks), what it weighs (quantiles), how often it
is there (``arg_min``, ``arg_max``), or the argument combined with itself as often as it occurs (user
semigroups).

Invariants

1. The support counts are the sum of the signed rows; none is negative.
2. The tree, where there is one, has a record for every tuple that has support, with
   the value of that support.  It changes in place; the counts are immutable versions.
3. The tree is taken away while it changes, so one that was left half way, by an
   exception or an interrupt, is never seen: it is built again from the counts.
4. ``_undo`` leads from the tree back to the counts that were kept; None where it can't,
   because the tree was built since.

The function of a user is never called with values of two groups: it may raise
for them (:class:`~indices.scan_tree.ScanTree`, ``grouped``).

Cost: O(log n) nodes of the tree per tuple that appears, goes or (quantiles, user
semigroups) changes its support, and per group asked for; k times that for rank k.
A batch of more than a quarter of the tree, and labels that were renumbered, build
it again, O(n log n).

Source: ILFTJ 2.3.3, 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from indices.housekeeping import housekeeping
from indices.keys import KEY_MAX, KEY_MIN
from indices.monoid import MAX, MIN, SUM
from indices.scan_tree import ScanTree
from lftj.aggregates.group_names import GroupNames, spelled_call
from lftj.aggregates.quantiles import checked_amounts, refuse_heavy, skipped
from lftj.aggregates.whole import Aggregation, argument_names
from lftj.errors import AggregateError
from lftj.language.body import CheckedHead
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate, rank_of
from lftj.storage.signed_rows import Columns, table_of
from lftj.storage.sorting import sort_distinct
from lftj.storage.support import crossing
from lftj.values.domain import Domain
from lftj.values.floating import float_codes, floats_of_codes
from lftj.values.names import AGGREGATES, DISTINCT_COUNT, ORDERED, QUANTILES, RANKED, REACHED, VARIANCES
from lftj.values.schema import ColumnType
from lftj.values.semigroup import semigroup
from maintenance.groups.order_labels import SPACING, OrderLabels
from maintenance.groups.text import GroupText
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport

_FEW_ROWS = 64  # so many change any tree, however small
_TREE_FRACTION = 4
_NO_FUNCTION = nullcontext()
WITHOUT_ORDER = ("count", "sum", "avg", *VARIANCES, DISTINCT_COUNT)
"""Aggregates that are found from signed rows in any order."""


def scan_for(head: CheckedHead, types: Mapping[str, ColumnType], group_columns: int) -> GroupScan | GroupText:
    """The intermediate of a head's aggregate; ValueError for one that needs no order."""
    function = head.value.function if isinstance(head.value, Aggregate) else None
    if function is None or function in WITHOUT_ORDER:
        raise ValueError(f"head {head.relation} has no aggregate that needs an order")
    kind = GroupText if function in ORDERED else GroupScan
    return kind(head, types, group_columns)


class GroupScan(Staged):
    """The values of a head's groups.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import Variable
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("k", integer), Column("v", integer)), functional=True)
    >>> head = CheckedHead("least", ("k",), Aggregate("min", (Variable("v"),)), schema, (0, 0))
    >>> scan = GroupScan(head, {"k": integer, "v": integer}, 1)
    >>> scan.stage([np.array([7, 7, 8]), np.array([30, 20, 90])], np.array([1, 1, 1]))
    >>> scan.keep()
    >>> scan.stage([np.array([7]), np.array([20])], np.array([-1]))
    >>> scan.values([np.array([8, 7])]).tolist(), scan.values([]).tolist()
    ([90, 30], [30])
    >>> scan.drop()
    >>> scan.values([np.array([8, 7])]).tolist()
    [90, 20]
    """

    def __init__(
        self,
        head: CheckedHead,
        types: Mapping[str, ColumnType],
        group_columns: int,
        spacing: int = SPACING,
    ) -> None:
        """``types``: of the head's variables; ``group_columns``: how many of the rows' columns are groups.

        They are those of the head's variables in their order where a user's function may have to be told
        which group it failed on.  ``spacing``: of order labels.
        """
        if not isinstance(head.value, Aggregate) or head.value.function in (*WITHOUT_ORDER, *ORDERED):
            raise ValueError(f"head {head.relation} has no minimum, maximum, rank, quantile or semigroup")
        call = head.value
        self._head = head
        self._types = types
        self._call = call
        self._n_groups = group_columns
        self._arguments = argument_names(call)
        self._upwards = call.function in ("min", "kth_smallest")
        domains = [types[name].domain for name in self._arguments]
        self._labels: dict[Domain, OrderLabels] = {
            domain: OrderLabels(domain, spacing) for domain in domains if not domain.ordered
        }
        self._label_columns = [self._labels.get(domain) for domain in domains]
        self._floats = domains[-1].name == "float"
        self._reaches = call.function in REACHED
        self._weighs = call.function in QUANTILES or self._reaches
        self._total = 0  # what all records of the tree weigh
        self._operation = None
        if call.function not in AGGREGATES:
            dtype = np.float64 if self._floats else np.int64
            self._operation = semigroup(call.function).operation(dtype)
        columns = [*enumerate(head.variables[:group_columns]), *enumerate(self._arguments, group_columns)]
        self._support = StagedSupport(
            group_columns + len(domains), {number: types[name] for number, name in columns}
        )
        self._tree: ScanTree | None = None
        self._undo: list[tuple[Columns, np.ndarray, np.ndarray]] | None = []

    @property
    def parts(self) -> tuple[Staged, ...]:
        return (self._support,)

    # -- changes --------------------------------------------------------------------

    def stage(self, columns: Columns, weights: np.ndarray) -> None:
        """Add signed rows: group columns, then arguments, the aggregated one last; any order, may repeat.

        Raises :class:`~lftj.errors.AggregateError` when a user's function raises; then :meth:`drop`.
        """
        self._support.staged, rows, before, after = self._support.newest.added(columns, weights)
        if self._operation is None and not self._weighs:
            rows, before, after = crossing(rows, before, after, 1)
        if not len(before):
            return
        tree, self._tree = self._tree, None
        if tree is None or len(before) > max(_FEW_ROWS, len(tree) // _TREE_FRACTION):
            return
        generations = self._generations()
        keys = self._keys(rows)
        if generations != self._generations():
            return
        with self._named(rows):
            self._change(tree, keys, rows, before, after)
        if self._undo is not None:
            self._undo.append((rows, before, after))
        self._tree = tree

    def _keep_own(self) -> None:
        self._undo = []

    def _drop_own(self) -> None:
        (undo, self._undo), (tree, self._tree) = (self._undo, []), (self._tree, None)
        if tree is None or undo is None:
            return
        try:
            for rows, before, after in reversed(undo):
                self._change(tree, self._keys(rows), rows, after, before)
        except AggregateError:
            return
        self._tree = tree

    def _change(
        self,
        tree: ScanTree,
        keys: np.ndarray,
        rows: Columns,
        before: np.ndarray,
        after: np.ndarray,
    ) -> None:
        """Bring the records of some tuples from their supports ``before`` to those ``after``."""
        if self._weighs:
            amounts = [self._amounts(rows, supports)[1] for supports in (before, after)]
            self._total += amounts[1] - amounts[0]
            refuse_heavy(self._total, lambda row: self._name_of(rows, row))
        with self._watched():
            gone = after == 0
            if gone.any():
                tree.erase_many(keys[gone])
                left = ~gone
                keys, rows = keys[left], [column[left] for column in rows]
                before, after = before[left], after[left]
            if len(after):
                values, came = self._values(keys, rows, after), before == 0
                if came.any():
                    tree.insert_many(keys[came], values[came])
                tree.update_many(keys[~came], values[~came])

    # -- questions ------------------------------------------------------------------

    def values(self, keys: Columns) -> np.ndarray:
        """The code of each group's value; 0 for a group without rows.

        ``keys``: a column per group column; of ``min`` and ``max`` per group column of a prefix.
        Raises :class:`~lftj.errors.AggregateError` when a user's function raises.
        """
        whole_groups = self._operation is not None or self._weighs or self._call.function in RANKED
        if len(keys) > self._n_groups or (whole_groups and len(keys) != self._n_groups):
            raise ValueError(f"{len(keys)} columns are no group of {self._n_groups} columns")
        n_keys = len(keys[0]) if len(keys) else 1
        alive = self._support.newest.totals(keys, n_keys) > 0
        asked = table_of(keys, n_keys).T[alive]
        tree = self._built()
        with self._named(list(asked.T)), self._watched():
            found = tree.query_many(asked, asked)
            if self._call.function in RANKED:
                self._walk(tree, asked, found)
            elif self._reaches:
                found = self._reached(tree, asked, found)
            elif self._weighs:
                found = self._at_share(tree, asked, found)
        codes = np.zeros(n_keys, np.int64)
        codes[alive] = self._codes(found)
        return codes

    def _walk(self, tree: ScanTree, groups: np.ndarray, found: np.ndarray) -> None:
        """From each group's first value, ``found``, to the one of the call's rank, or to its last."""
        columns = list(groups.T)
        lows, highs = (np.column_stack([groups, np.full(len(groups), end)]) for end in (KEY_MIN, KEY_MAX))
        left = np.minimum(rank_of(self._call), self._support.newest.totals(columns, len(groups)))
        rows = np.arange(len(groups))
        while True:
            place = [*(column[rows] for column in columns), self._codes(found[rows])]
            left[rows] -= self._support.newest.totals(place, len(rows))
            rows = rows[left[rows] > 0]
            if not len(rows):
                return
            if self._upwards:
                lows[rows, -1] = found[rows] + 1
            else:
                highs[rows, -1] = found[rows] - 1
            found[rows] = tree.query_many(lows[rows], highs[rows])

    def _at_share(self, tree: ScanTree, groups: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """The place at which each group, which weighs ``totals``, reaches the call's share."""
        keys, _ = tree.find_many(groups, skipped(self._call, totals))
        found = keys[:, self._n_groups]
        weightless = totals == 0
        if weightless.any():
            rows, columns, _ = self._support.newest.below(list(groups[weightless].T), int(weightless.sum()))
            places = self._keys(columns)[:, self._n_groups]
            firsts = np.flatnonzero(np.diff(rows, prepend=-1))
            edge = np.minimum if self._call.function == "quantile" else np.maximum
            found[weightless] = edge.reduceat(places, firsts)
        return found

    def _reached(self, tree: ScanTree, groups: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """The place of each group's value: the least where what it is chosen by is least, or greatest."""
        is_least = self._call.function == "arg_min"
        keys, _ = tree.find_many(groups, np.zeros_like(totals) if is_least else totals - 1)
        if not is_least:
            keys, _ = tree.find_many(keys[:, :-1], np.zeros_like(totals))
        return keys[:, -1]

    @property
    def nbytes(self) -> int:
        """Memory of counts, tree and labels."""
        tree = self._tree.nbytes if self._tree is not None else 0
        return self._support.newest.nbytes + tree + sum(labels.nbytes for labels in self._labels.values())

    @property
    def n_records(self) -> int:
        """Distinct tuples; may build the tree."""
        return len(self._built())

    @property
    def tree(self) -> ScanTree:
        """The scan tree, built if it has to be; read only."""
        return self._built()

    def _check_own(self) -> None:
        for labels in self._labels.values():
            labels.check_invariants()
        if self._tree is None:
            return
        self._tree.check_invariants()
        keys, values = self._tree.records()
        again = self._build()
        wanted_keys, wanted_values = again.records()
        assert np.array_equal(keys, wanted_keys)
        assert np.array_equal(values, wanted_values, equal_nan=again.dtype.kind == "f")

    # -- the tree -------------------------------------------------------------------

    def _built(self) -> ScanTree:
        if self._tree is None:
            tree = self._build()
            housekeeping.rows += len(tree)
            if self._support.staged is not None:
                self._undo = None
            self._tree = tree
        return self._tree

    def _build(self) -> ScanTree:
        """A tree of the counts as they are."""
        rows, supports = self._support.newest.tuples()
        keys = self._keys(rows)
        if self._labels:
            order = np.lexsort(keys.T[::-1])
            rows, keys, supports = [column[order] for column in rows], keys[order], supports[order]
        monoid, grouped = MIN if self._upwards else MAX, 0
        if self._weighs:
            monoid, self._total = SUM, self._amounts(rows, supports)[1]
        if self._operation is not None:
            monoid, grouped = self._operation.monoid, self._n_groups
        with self._named(rows), self._watched():
            return ScanTree.from_sorted(keys, self._values(keys, rows, supports), monoid, grouped=grouped)

    def _generations(self) -> list[int]:
        return [labels.generation for labels in self._labels.values()]

    def _keys(self, rows: Columns) -> np.ndarray:
        """The tree's keys of some tuples, (n, columns)."""
        keys = table_of(rows, 0).T.copy()
        generations = None
        while generations != (generations := self._generations()):  # again, if a column renumbered the others
            for column, labels in enumerate(self._label_columns, self._n_groups):
                if labels is not None:
                    keys[:, column] = labels.labels(rows[column])
        return keys

    def _values(self, keys: np.ndarray, rows: Columns, supports: np.ndarray) -> np.ndarray:
        """The records' values; within :meth:`_watched`."""
        if self._weighs:
            return self._amounts(rows, supports)[0]
        if self._operation is None:
            return np.ascontiguousarray(keys[:, -1])
        values = floats_of_codes(rows[-1]) if self._floats else rows[-1]
        return self._operation.powers(values, supports)

    def _amounts(self, rows: Columns, supports: np.ndarray) -> tuple[np.ndarray, int]:
        """What the tuples of a quantile weigh, and all together."""
        weights = rows[-1] if len(self._arguments) > 1 and not self._reaches else None
        return checked_amounts(supports, weights, lambda row: self._name_of(rows, row))

    def _name_of(self, rows: Columns, row: int) -> str:
        """What a message calls the value of a tuple's group."""
        names = GroupNames(self._head, self._types, list(rows[: self._n_groups]))
        return f"{names.name(row)} = {names.call()}"

    def _codes(self, found: np.ndarray) -> np.ndarray:
        """Aggregates as codes."""
        if self._operation is not None:
            return float_codes(found) if self._floats else found
        labels = self._label_columns[0 if self._weighs and not self._reaches else -1]
        return found if labels is None else labels.codes(found)

    # -- a user's function ------------------------------------------------------------

    def _watched(self) -> AbstractContextManager[object]:
        """Kernels that combine run in here."""
        return _NO_FUNCTION if self._operation is None else self._operation.watched()

    def _named(self, rows: Columns) -> AbstractContextManager[object]:
        """Give an error of the function the name of the group; ``rows`` begin with the groups in question."""
        return _NO_FUNCTION if self._operation is None else self._naming(list(rows))

    @contextmanager
    def _naming(self, rows: Sequence[np.ndarray]) -> Iterator[None]:
        try:
            yield
        except AggregateError as error:
            groups = sort_distinct(rows[: self._n_groups]) if self._n_groups else []
            if self._n_groups == len(self._head.variables):
                _, columns, supports = self._support.newest.below(groups, len(groups[0]) if groups else 1)
                names = (*self._head.variables, *self._arguments)
                one_by_one = Aggregation(self._head, self._types)
                one_by_one.add(dict(zip(names, columns, strict=True)), supports)
                one_by_one.finish()  # raises, and says where
            raise AggregateError(
                f"{shown_name(self._head.relation)} = {spelled_call(self._call)}: {error}"
            ) from None
