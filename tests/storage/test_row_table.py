"""RowTable: stateful, against a list of rows; growth, taking off, compaction, and rows of no columns."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lftj.errors import RangeError
from lftj.storage import row_table
from lftj.storage.row_table import RowTable

pytestmark = pytest.mark.kernel

Row = tuple[int, ...]

INTEGERS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, -(2**63)]))


def columns_of(rows: Sequence[Row], arity: int) -> list[np.ndarray]:
    return [np.array([row[column] for row in rows], np.int64) for column in range(arity)]


class TableMachine(RuleBasedStateMachine):
    """The model is the list of rows by number."""

    @initialize(arity=st.integers(1, 3))
    def start(self, arity: int) -> None:
        self.arity = arity
        self.table = RowTable(arity)
        self.rows: list[Row] = []

    @rule(data=st.data())
    def find_or_add(self, data: st.DataObject) -> None:
        batch = data.draw(st.lists(st.tuples(*[INTEGERS] * self.arity), max_size=30))
        if self.rows:
            batch += data.draw(st.lists(st.sampled_from(self.rows), max_size=10))
        found = self.table.find_or_add(columns_of(batch, self.arity)).tolist()
        for row in batch:
            if row not in self.rows:
                self.rows.append(row)
        assert found == [self.rows.index(row) for row in batch]

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        n_rows = data.draw(st.integers(0, len(self.rows)))
        self.table.truncate(n_rows)
        del self.rows[n_rows:]

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        n_rows = len(self.rows)
        alive = data.draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
        kept = np.flatnonzero(np.array(alive, bool))
        self.table = self.table.compacted(kept)
        self.rows = [self.rows[number] for number in kept.tolist()]

    @invariant()
    def is_the_model(self) -> None:
        if hasattr(self, "table"):
            self.table.check_invariants()
            assert self.table.n_rows == len(self.rows)
            assert list(map(tuple, self.table.rows().T.tolist())) == self.rows


TestTableMachine = TableMachine.TestCase
TestTableMachine.settings = settings(stateful_step_count=15)


def test_no_columns() -> None:
    table = RowTable(0)
    assert table.rows().shape == (0, 0)
    for _ in range(2):
        assert table.find_or_add([]).tolist() == [0]
        assert table.n_rows == 1
    table = table.compacted(np.array([0]))
    assert table.n_rows == 1
    table = table.compacted(np.empty(0, np.int64))
    assert table.n_rows == 0
    assert table.find_or_add([]).tolist() == [0]
    table.truncate(0)
    table.check_invariants()
    assert table.n_rows == 0


def test_wrong_number_of_columns() -> None:
    with pytest.raises(ValueError, match="1 columns for a table of 2"):
        RowTable(2).find_or_add([np.array([1])])


def test_an_empty_batch() -> None:
    table = RowTable(1)
    assert table.find_or_add([np.empty(0, np.int64)]).tolist() == []
    assert table.n_rows == 0


@pytest.mark.compiled
def test_memory_follows_the_distinct_rows() -> None:
    table = RowTable(2)
    empty = table.nbytes
    rng = np.random.default_rng(3)
    few = rng.integers(0, 10, 1_000_000)
    table.find_or_add([few, few])
    assert table.nbytes == empty, "a long batch of few groups takes no room"
    many = np.arange(300_000)
    numbers = table.find_or_add([many << 32, -many])  # low bits alone, or high ones, must spread
    table.check_invariants()
    assert table.nbytes <= table.n_rows * 2 * (2 * 8 + 16)
    assert (table.find_or_add([many << 32, -many]) == numbers).all()
    table = table.compacted(np.arange(0, table.n_rows, 1000))
    assert table.nbytes <= max(table.n_rows, 16) * (2 * 8 + 16)


@pytest.mark.compiled
@pytest.mark.parametrize("shift", [0, 1, 20, 32, 43])
def test_regular_keys_spread(shift: int) -> None:
    """Keys in arithmetic progression stand close to where their hash names: no long runs of taken places."""
    table = RowTable(1)
    table.find_or_add([np.arange(100_000) << shift])
    taken = table.arrays[1] != 0
    ends = np.flatnonzero(np.diff(np.concatenate([[False], taken, [False]]).astype(int)))
    assert int(np.diff(ends)[::2].max()) < 200


def test_rows_that_are_only_appended_are_found_once_they_are_placed() -> None:
    table = RowTable(1, is_placed=False)
    table.arrays[0][0, :3], table.arrays[2][0] = [7, 5, 6], 3
    assert len(table.arrays[1]) == 0
    table.check_invariants()
    for _ in range(2):
        table.place()
        assert table.find_or_add([np.array([6, 8, 7])]).tolist() == [2, 3, 0]
    table.check_invariants()


def test_rows_that_have_no_number_are_refused_and_the_others_stay() -> None:
    with mock.patch.object(row_table, "MOST_ROWS", 24):
        table = RowTable(1)
        assert table.find_or_add([np.arange(24)]).tolist() == list(range(24))
        with pytest.raises(RangeError, match="more than 24 distinct rows"):
            table.find_or_add([np.arange(25)])
        assert table.find_or_add([np.arange(24)]).tolist() == list(range(24))
        table.check_invariants()


def test_rows_without_places_may_be_more_and_then_get_none() -> None:
    with mock.patch.object(row_table, "MOST_ROWS", 24):
        table = RowTable(1, is_placed=False)
        table.make_room(30)
        table.arrays[0][0, :30], table.arrays[2][0] = np.arange(30), 30
        with pytest.raises(RangeError, match="more than 24 distinct rows"):
            table.place()
        assert table.room == 32 and len(table.arrays[1]) == 0
        table.check_invariants()
