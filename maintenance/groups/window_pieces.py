"""Rows of windows as they are stored, and pieces of them in the order of windows.

A piece is what stands between two places in the stored rows of one partition.  Its rows have the values that
they have among all, where its windows see no farther, and the states before it are given.

Invariants

1. Stored rows sort by partition and order, up to the first column of the order whose domain is not ordered.
2. Rows that are alike, equal in these columns, stand together in a piece; their order among each other
   is that of windows, not that of what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lftj.aggregates.window_frames import OrderedRows, order_codes, order_keys, row_names
from lftj.aggregates.windows import Known, States, states_of, tuples_of
from lftj.language.body import CheckedHead
from lftj.language.syntax import SortKey
from lftj.storage.signed_rows import Columns
from lftj.storage.sorting import first_of_equal
from lftj.storage.support import SupportVersion, prefix_ranges
from lftj.values.schema import ColumnType
from maintenance.groups.window_marks import Key, laid
from maintenance.groups.window_reach import Places

_IN_ANY_ORDER = ("sum", "avg", "count", "min", "max")


class StoredOrder:
    """What a head's rows are, and how they are stored."""

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head's rows hold."""
        self.head = head
        self.types = types
        self.names = row_names(head)
        first = head.windows[0]
        self.n_parts = len(first.per)
        self.orders: dict[int, SortKey] = {}
        """By column, those that rows are sorted by."""
        for column, one in enumerate(first.by, self.n_parts):
            if self.names.index(one.variable.name) != column or not types[one.variable.name].domain.ordered:
                break
            self.orders[column] = one
        self.any_order = not first.by and all(window.function in _IN_ANY_ORDER for window in head.windows)
        self.n_sorted = len(self.names) if self.any_order else self.n_parts + len(self.orders)
        """Columns in which rows are alike."""

    def type_of(self, column: int) -> ColumnType:
        """That of a column of the rows."""
        return self.types[self.names[column]]

    def stored(self, columns: Columns) -> list[np.ndarray]:
        """Rows of codes as they are stored."""
        found = list(columns)
        for number, order in self.orders.items():
            found[number] = order_keys(
                found[number], self.type_of(number), order.descending, order.nulls_first
            )
        return found

    def codes(self, columns: Columns) -> list[np.ndarray]:
        """Stored rows as codes."""
        found = list(columns)
        for number, order in self.orders.items():
            found[number] = order_codes(
                found[number], self.type_of(number), order.descending, order.nulls_first
            )
        return found

    def nothing(self) -> States:
        """The state before all rows."""
        none = np.empty(0, np.int64)
        pieces = self.pieces((none, [none] * len(self.names), none))
        (state,) = states_of(self.head, pieces.ordered, (np.zeros(1, np.int64),) * 3)
        return state

    def pieces(self, found: tuple[np.ndarray, Columns, np.ndarray]) -> Pieces:
        """``found``: the rows' numbers of pieces, the rows as they are stored, sorted, and their weights."""
        numbers, rows, weights = found
        ordered = OrderedRows.of(
            self.head, self.types, self.codes(rows), weights, numbers, any_order=self.any_order
        )
        return Pieces(self, numbers, np.array(rows), weights, ordered)

    def between(self, version: SupportVersion, begins: Places, ends: Places) -> Pieces:
        """The rows between pairs of places."""
        n = len(begins.behind)
        below, above = (version.ranges(list(one.keys), n) for one in (begins, ends))
        ranges = [
            (run, np.where(begins.behind, first_ends, firsts), np.where(ends.behind, last_ends, lasts))
            for (run, firsts, first_ends), (_, lasts, last_ends) in zip(below, above, strict=True)
        ]
        return self.pieces(version.within(ranges))


@dataclass(frozen=True)
class Pieces:
    """Some, one behind the other; they are numbered, and some may be empty."""

    order: StoredOrder
    numbers: np.ndarray
    """int64, of each stored row's piece."""
    rows: np.ndarray
    """int64 (columns, n), as they are stored."""
    weights: np.ndarray
    ordered: OrderedRows

    def __len__(self) -> int:
        return len(self.weights)

    def inside(self, begins: Places, ends: Places) -> np.ndarray:
        """Which of the ordered rows stand between two places of their piece each."""
        _, firsts, lasts = self.spans(begins, ends)
        changes = np.zeros(len(self.ordered) + 1, np.int64)
        np.add.at(changes, firsts, 1)
        np.add.at(changes, lasts, -1)
        return np.cumsum(changes[:-1]) > 0

    def spans(self, begins: Places, ends: Places) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where each piece's ordered rows begin, and how far those before either place go."""
        pieces = np.arange(len(begins.behind))
        table = np.array([self.numbers, *self.rows[: self.order.n_sorted]]).ravel()
        passed = np.append(0, np.cumsum(self.weights))
        found = [passed[np.searchsorted(self.numbers, pieces)]]
        for places in (begins, ends):
            before, behind = prefix_ranges(table, len(self), np.array([pieces, *places.keys]))
            found.append(passed[np.where(places.behind, behind, before)])
        return found[0], found[1], found[2]

    def marked(
        self, begins: Places, ends: Places, apart: Sequence[int], before: Sequence[States] | None
    ) -> list[Marked]:
        """Marks for each piece, between two places of it.

        ``apart``: how far; ``before``: the states before the pieces, which begin partitions if None.
        """
        starts, firsts, lasts = self.spans(begins, ends)
        alike = np.cumsum(first_of_equal([self.numbers, *self.rows[: self.order.n_sorted]]))
        boundaries = np.flatnonzero(np.diff(alike[self.ordered.source])) + 1
        places: list[int] = []
        pieces: list[int] = []
        lengths = []
        for number, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
            there = boundaries[np.searchsorted(boundaries, first) : np.searchsorted(boundaries, last)]
            found = [*laid(there, first, apart[number]), last]
            lengths.append(len(found))
            places += found
            pieces += [number] * len(found)
        at = np.array(pieces, np.int64)
        states = states_of(
            self.order.head, self.ordered, (starts[at], np.array(places, np.int64), at), before
        )
        marked, begin = [], 0
        for number, length in enumerate(lengths):
            its = places[begin : begin + length]
            rows = self.rows[: self.order.n_sorted, self.ordered.source[its[:-1]]]
            keys = list(map(tuple, rows.T.tolist()))
            left = its[-1] - (its[-2] if length > 1 else int(firsts[number]))
            marked.append(Marked(keys, states[begin : begin + length - 1], states[begin + length - 1], left))
            begin += length
        return marked


@dataclass(frozen=True)
class Marked:
    """What marks a part of a partition has: see :class:`~maintenance.groups.window_marks.Marks`."""

    keys: list[Key]
    states: list[States]
    end: States
    left: int
    """How many rows stand behind the last of the marks, or behind the beginning."""


@dataclass(frozen=True)
class Evaluation:
    """Rows to make tuples of: all of pieces, or those between two places each."""

    pieces: Pieces
    sign: int
    """Of the tuples: -1 those before the change."""
    kept: tuple[Places, Places] | None = None
    known: Known | None = None
    walks: np.ndarray | None = None
    """Which walk each piece is of."""
    left_out: frozenset[int] = frozenset()
    """Walks of which there are to be no tuples."""

    def without(self, walks: frozenset[int]) -> Evaluation:
        """Less the tuples of some walks."""
        return replace(self, left_out=walks)

    def tuples(self) -> list[np.ndarray]:
        """The columns of the tuples, one for each row."""
        ordered = self.pieces.ordered
        kept = None if self.kept is None else self.pieces.inside(*self.kept)
        if self.left_out:
            assert kept is not None
            assert self.walks is not None
            kept &= ~np.isin(self.walks, list(self.left_out))[ordered.parts]
        return tuples_of(self.pieces.order.head, ordered, self.known, kept)
