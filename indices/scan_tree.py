"""Scan trees: sorted records and the aggregate of any range of them, under inserts and erasures.

A record is a key of one or more int64 columns, compared from the first column
on, and a value.  The tree answers, for any closed range of keys, the monoid's
combination of the values in key order: prefix sums of weights, the greatest
end of intervals that start before a key, the number of records in a range.

Invariants (:meth:`ScanTree.check_invariants` asserts them)

1. Keys are strictly increasing from leaf to leaf: a key has one record.
2. All leaves are at one depth.  Every node but the root has MINIMUM to CAPACITY
   slots; an inner root has at least two; a tree that is a single leaf may be empty.
3. An inner slot holds the least key below its child, and the combination, from
   left to right, of the child's values.  Both exactly, not bounds.  In a tree with
   ``grouped`` columns that holds for a child whose keys agree in them; the combination
   of others is never made: the operation takes two values of one group, or it is not called.
4. Every row of the pools that was ever taken is in the tree once or on the free list once.
5. ``len`` is the number of records in the leaves.

Cost in nodes, for n records, where h <= log_5(n) is the number of inner levels:
insert and erase touch h + 1 nodes, and a sibling at each level where one splits
or is mended; update h + 1; a range query at most 2h + 1, the search for a sum 2h + 2.  Each node costs
O(CAPACITY) at most.  A node that was split or merged is several changes away
from the next time, so splits and merges are O(1) per change when averaged: that
is all the rebuilding there is.  The one operation that is not O(log n) is an
insert that finds no free row: the arrays are copied into ones of twice the
size, O(1) per insert when averaged.  Building from n sorted records is O(n).
Memory: 8 bytes per key column and per value, for 16 slots of which 12 are
filled after building, plus 1/12 for the inner nodes.

Source: ILFTJ 3.1 (scan trees), 3.1.1 (a leaf aggregates about a dozen records).
Departure: the tree is a B-tree that holds the records themselves, rather than
an index beside them, so that an insert costs no rebuilding of what lies behind it.

One thread at a time: queries count the nodes they touch, in the tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from indices.errors import KeyOrderError, MonoidError
from indices.monoid import SUM, Monoid
from indices.node_pool import CAPACITY, Pool, grown_pool, new_pool, room
from indices.scan_climb import (
    FULL_ENOUGH,
    HEIGHT,
    LEVELS,
    MINIMUM,
    ROOT,
    SIZE,
    TOUCHED,
    build,
    erase_records,
    find_sums,
    insert_records,
    query_ranges,
    update_records,
)

Key = int | Sequence[int]
_INT64 = np.iinfo(np.int64)


class ScanTree:
    """Records sorted by key, with the aggregate of every range at hand.

    >>> from indices.monoid import MAX, SUM
    >>> tree = ScanTree.from_sorted([10, 20, 30], [5, 7, 6], MAX)
    >>> tree.query(10, 20), tree.prefix(15), tree.insert(12, 9), tree.query(10, 20)
    (7, 5, True, 9)

    A key of several columns may be cut short in a query: then it stands for all that it begins.

    >>> weights = ScanTree(SUM, columns=2)
    >>> weights.insert_many([(1, 1), (1, 2), (2, 1)], [1, -1, 1]).tolist()
    [True, True, True]
    >>> weights.query(1, 1), weights.prefix((2, 1)), weights.query((), ())
    (0, 1, 1)
    """

    _leaves: Pool
    _inners: Pool
    _state: np.ndarray
    _sized: tuple[Pool | None, Pool | None, int] = None, None, 0
    """The pools that were measured last, and the bytes."""

    def __init__(self, monoid: Monoid, columns: int = 1, dtype: Any = np.int64, *, grouped: int = 0) -> None:
        """An empty tree.  ``columns``: how many a key has; ``dtype``: of the values, int64 or float64.

        ``grouped``: every range asked for has keys that agree in so many first columns.
        """
        if columns < 1:
            raise KeyOrderError(f"a key has at least one column, not {columns}")
        self.grouped = grouped
        self.monoid = monoid
        self.columns = columns
        self._identity = monoid.identity_of(np.int64 if monoid.counts else dtype)
        self.dtype = self._identity.dtype
        self._combine = monoid.operation(self.dtype)
        self._path = np.zeros((LEVELS, 2), np.int64)
        self._build(np.zeros((0, columns), np.int64), np.zeros(0, self.dtype))

    def __getstate__(self) -> dict[str, Any]:
        """For an image: less the compiled operation, which the monoid gives again."""
        state = self.__dict__.copy()
        del state["_combine"]
        state.pop("_sized", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._combine = self.monoid.operation(self.dtype)

    @classmethod
    def from_sorted(cls, keys: Any, values: Any, monoid: Monoid, *, grouped: int = 0) -> Self:
        """A tree of records whose keys are strictly increasing, in O(n).

        ``keys``: (n,) or (n, columns), integers.  ``values``: (n,), integers or floats, which makes the
        tree one of int64 or float64; None where the monoid counts.  Raises
        :class:`~indices.errors.KeyOrderError`, naming the first row that is not in order.

        >>> from indices.monoid import COUNT
        >>> ScanTree.from_sorted(range(0, 1000, 10), None, COUNT).query(95, 305)
        21
        """
        table = _key_table(keys, None)
        floats = values is not None and np.asarray(values).dtype.kind == "f"
        tree = cls(monoid, table.shape[1], np.float64 if floats else np.int64, grouped=grouped)
        column = tree._value_column(values, len(table))
        equal = np.ones(max(len(table) - 1, 0), bool)
        below = np.zeros_like(equal)
        for level in range(table.shape[1]):
            below |= equal & (table[:-1, level] < table[1:, level])
            equal &= table[:-1, level] == table[1:, level]
        if not below.all():
            row = int(np.argmin(below)) + 1
            raise KeyOrderError(
                f"keys are not strictly increasing: row {row} is {table[row].tolist()}, after "
                f"{table[row - 1].tolist()}"
            )
        tree._build(table, column)
        return tree

    def __len__(self) -> int:
        return int(self._state[SIZE])

    @property
    def touched(self) -> int:
        """Nodes visited by all operations so far: a cost that does not depend on the machine."""
        return int(self._state[TOUCHED])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, room to grow included."""
        leaves, inners, found = self._sized
        if leaves is not self._leaves or inners is not self._inners:
            found = self._leaves.nbytes + self._inners.nbytes + self._path.nbytes + self._state.nbytes
            self._sized = self._leaves, self._inners, found
        return found

    @property
    def arrays(self) -> tuple[Pool, Pool, np.ndarray]:
        """Leaves, inner nodes and state, for kernels that read the tree; gone stale after an insert."""
        return self._leaves, self._inners, self._state

    def insert(self, key: Key, value: float | None = None) -> bool:
        """Insert a record; False, and no change, if its key is there.  ``value`` is left out where the
        monoid counts.

        >>> from indices.monoid import MIN
        >>> tree = ScanTree(MIN)
        >>> tree.insert(3, 5), tree.insert(3, 4), tree.query(3, 3)
        (True, False, 5)
        """
        return bool(self.insert_many([key], None if value is None else [value])[0])

    def update(self, key: Key, value: float) -> bool:
        """Replace a record's value; False, and no change, if its key is not there.

        >>> from indices.monoid import SUM
        >>> tree = ScanTree.from_sorted([1, 2], [10, 20], SUM)
        >>> tree.update(2, 5), tree.update(3, 5), tree.prefix(9)
        (True, False, 15)
        """
        return bool(self.update_many([key], [value])[0])

    def erase(self, key: Key) -> bool:
        """Erase a record; False, and no change, if its key is not there.

        >>> from indices.monoid import COUNT
        >>> tree = ScanTree.from_sorted([1, 2], None, COUNT)
        >>> tree.erase(2), tree.erase(2), len(tree)
        (True, False, 1)
        """
        return bool(self.erase_many([key])[0])

    def query(self, low: Key, high: Key) -> Any:
        """The combination, in key order, of all values with ``low <= key <= high``; the identity if there
        are none.

        >>> from indices.monoid import COUNT
        >>> tree = ScanTree.from_sorted([1, 2, 4], None, COUNT)
        >>> tree.query(2, 4), tree.query(3, 3), tree.query(4, 2)
        (2, 0, 0)
        """
        return self.query_many([low], [high])[0].item()

    def prefix(self, key: Key) -> Any:
        """The combination, in key order, of all values up to ``key`` and with it.

        >>> from indices.monoid import SUM
        >>> tree = ScanTree.from_sorted([(1, 1), (1, 2), (2, 1)], [10, 20, 30], SUM)
        >>> tree.prefix((1, 1)), tree.prefix(1), tree.prefix(2)
        (10, 30, 60)
        """
        return self.query((), key)

    def insert_many(self, keys: Any, values: Any = None) -> np.ndarray:
        """Insert records in the order given, in one kernel call but for growth; says of each whether its
        key was new.

        ``keys``: (m,) or (m, columns), integers, in any order.  ``values``: (m,); None where the monoid
        counts.

        >>> from indices.monoid import COUNT
        >>> ScanTree(COUNT).insert_many([5, 1, 5]).tolist()
        [True, True, False]
        """
        table = _key_table(keys, self.columns)
        column = self._value_column(values, len(table))
        done = np.zeros(len(table), bool)
        row = 0
        while True:
            row = insert_records(
                self._leaves, self._inners, self._state, self._path,
                table, column, row, self._combine, self._identity, done,
            )  # fmt: skip
            if row == len(table):
                return done
            if room(self._leaves) == 0:
                self._leaves = grown_pool(self._leaves)
            else:
                self._inners = grown_pool(self._inners)

    def erase_many(self, keys: Any) -> np.ndarray:
        """Erase records in one kernel call; says of each whether its key was there.

        ``keys``: as for :meth:`insert_many`.
        """
        table = _key_table(keys, self.columns)
        done = np.zeros(len(table), bool)
        erase_records(
            self._leaves, self._inners, self._state, self._path, table, self._combine, self._identity, done
        )
        return done

    def update_many(self, keys: Any, values: Any) -> np.ndarray:
        """Replace values in one kernel call; says of each key whether it was there.

        ``keys``, ``values``: as for :meth:`insert_many`.
        """
        table = _key_table(keys, self.columns)
        column = self._value_column(values, len(table))
        done = np.zeros(len(table), bool)
        update_records(
            self._leaves, self._inners, self._state, self._path,
            table, column, self._combine, self._identity, done,
        )  # fmt: skip
        return done

    def query_many(self, lows: Any, highs: Any) -> np.ndarray:
        """The aggregates of the closed ranges ``[lows[i], highs[i]]``, in one kernel call.

        ``lows``, ``highs``: (m,) or (m, up to ``columns``), integers; columns left out stand for the
        least and the greatest number.

        >>> from indices.monoid import SUM
        >>> ScanTree.from_sorted([1, 2, 3], [10, 20, 30], SUM).query_many([1, 2, 3], [2, 9, 1]).tolist()
        [30, 50, 0]
        """
        low_table = _key_table(lows, self.columns, _INT64.min)
        high_table = _key_table(highs, self.columns, _INT64.max)
        if len(low_table) != len(high_table):
            raise KeyOrderError(f"{len(low_table)} lower ends for {len(high_table)} upper ends of ranges")
        out = np.zeros(len(low_table), self.dtype)
        query_ranges(
            self._leaves, self._inners, self._state, low_table, high_table, self._combine, self._identity, out
        )
        return out

    def find_many(self, lows: Any, limits: Any) -> tuple[np.ndarray, np.ndarray]:
        """The first records, from the keys ``lows`` on, with which the values come to more than ``limits``.

        Of a tree of sums whose values are 0 or more, one kernel call.  ``lows``: as for :meth:`query_many`;
        ``limits``: (m,), 0 or more.  Returns the keys, (m, columns), and whether there are such records.

        >>> from indices.monoid import SUM
        >>> tree = ScanTree.from_sorted([1, 2, 3], [10, 0, 30], SUM)
        >>> keys, found = tree.find_many([1, 1, 2, 2], [9, 10, 29, 30])
        >>> keys[found].tolist(), found.tolist()
        ([[1], [3], [3]], [True, True, True, False])
        """
        if self.monoid is not SUM:
            raise MonoidError(f"only sums are searched for, not the values of monoid {self.monoid.name}")
        low_table = _key_table(lows, self.columns, _INT64.min)
        keys, found = np.zeros(low_table.shape, np.int64), np.zeros(len(low_table), bool)
        column = self._value_column(limits, len(low_table))
        find_sums(self._leaves, self._inners, self._state, low_table, column, self._identity, keys, found)
        return keys, found

    def records(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys, (n, columns), and values, (n,), of all records in key order; O(n).

        >>> from indices.monoid import SUM
        >>> [column.tolist() for column in ScanTree.from_sorted([1, 2], [10, 20], SUM).records()]
        [[[1], [2]], [10, 20]]
        """
        nodes = self._level(0)
        used = np.arange(CAPACITY) < self._leaves.lengths[nodes][:, None]
        return self._leaves.keys[nodes][used], self._leaves.values[nodes][used]

    def check_invariants(self) -> None:
        """Assert the numbered invariants of the module's header; O(n), for tests."""
        keys, _ = self.records()
        rows = [tuple(key) for key in keys.tolist()]
        assert all(before < after for before, after in itertools.pairwise(rows))
        assert len(rows) == len(self)
        taken: list[list[int]] = [[], []]
        for level in range(int(self._state[HEIGHT]), -1, -1):
            pool = self._inners if level else self._leaves
            nodes = self._level(level)
            taken[level > 0] += nodes
            least = (2 if level else 0) if nodes == [self._state[ROOT]] else MINIMUM
            for node in nodes:
                length = int(pool.lengths[node])
                assert least <= length <= CAPACITY
                for slot in range(length if level else 0):
                    child = int(pool.children[node, slot])
                    below = self._inners if level > 1 else self._leaves
                    assert (pool.keys[node, slot] == below.keys[child, 0]).all()
                    last = child
                    for _ in range(level - 1):
                        last = int(self._inners.children[last, self._inners.lengths[last] - 1])
                    end = self._leaves.keys[last, self._leaves.lengths[last] - 1]
                    if (below.keys[child, 0] != end)[: self.grouped].any():
                        continue
                    total = below.values[child, 0]
                    for value in below.values[child, 1 : below.lengths[child]]:
                        total = self.monoid.combine(total, value)
                    assert np.array_equal(pool.values[node, slot], total, equal_nan=self.dtype.kind == "f")
        for pool, nodes in zip((self._leaves, self._inners), taken, strict=True):
            used, free, count = pool.rows.tolist()
            for _ in range(count):
                nodes.append(free)
                free = -2 - int(pool.lengths[free])
            assert free == -1
            assert sorted(nodes) == list(range(used))

    def _level(self, level: int) -> list[int]:
        """The nodes of a level from left to right; level 0 is the leaves."""
        nodes = [int(self._state[ROOT])]
        for _ in range(int(self._state[HEIGHT]) - level):
            children = self._inners.children
            nodes = [int(child) for node in nodes for child in children[node, : self._inners.lengths[node]]]
        return nodes

    def _build(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Make this the tree of the records, which are in order."""
        leaves = len(keys) // FULL_ENOUGH + 2
        self._leaves = new_pool(leaves, self.columns, self.dtype, leaves=True)
        self._inners = new_pool(leaves // 8 + 8, self.columns, self.dtype, leaves=False)
        self._state = np.array([0, 0, 0, 0, self.grouped], np.int64)
        build(self._leaves, self._inners, self._state, keys, values, self._combine, self._identity)

    def _value_column(self, values: Any, rows: int) -> np.ndarray:
        """The values as an array of the tree's type, ``rows`` long."""
        if self.monoid.counts:
            return np.ones(rows, np.int64)
        if values is None:
            raise MonoidError(
                f"records of a scan of monoid {self.monoid.name} have values; only counts have none"
            )
        column = np.asarray(values)
        if column.shape != (rows,):
            raise MonoidError(f"{rows} keys need {rows} values, not an array of shape {column.shape}")
        if rows and not (column.dtype.kind in "iu" or (column.dtype.kind == "f" == self.dtype.kind)):
            raise MonoidError(f"values of type {column.dtype} in a scan of {self.dtype}")
        if column.dtype.kind == "u" and rows and self.dtype.kind == "i" and column.max() > _INT64.max:
            raise MonoidError(f"the value {column.max()} is beyond 64 bits")
        return np.require(column, self.dtype, ["C", "W"])


def _key_table(keys: Any, columns: int | None, padding: int | None = None) -> np.ndarray:
    """Keys as a (rows, columns) array, short ones padded if ``padding`` is a number."""
    if (
        isinstance(keys, np.ndarray)
        and keys.dtype == np.int64
        and keys.ndim == 2
        and keys.shape[1] == columns
    ):
        return keys if keys.flags.carray else keys.copy()
    try:
        table = np.asarray(keys)
    except (ValueError, OverflowError):
        raise KeyOrderError("keys of one call have the same number of columns") from None
    if table.ndim == 1:
        table = table.reshape(-1, 1)
    if table.ndim != 2:
        raise KeyOrderError(f"keys are (rows,) or (rows, columns), not an array of shape {table.shape}")
    if table.size and (
        table.dtype.kind not in "iu" or (table.dtype.kind == "u" and table.max() > _INT64.max)
    ):
        raise KeyOrderError(f"keys are integers of 64 bits; these make an array of {table.dtype}")
    if columns is None:
        columns = max(table.shape[1], 1)
    table = table.astype(np.int64, copy=False)
    missing = columns - table.shape[1]
    if missing < 0 or (missing > 0 and padding is None and len(table)):
        raise KeyOrderError(f"keys of {table.shape[1]} columns in a tree whose keys have {columns}")
    if missing:
        given, table = table, np.full((len(table), columns), padding or 0, np.int64)
        table[:, : given.shape[1]] = given
    return np.require(table, np.int64, ["C", "W"])
