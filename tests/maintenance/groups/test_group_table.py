"""GroupTable: stateful, against a list of rows; growth, taking off, compaction, and rows of no columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from maintenance.groups.table import GroupTable

pytestmark = pytest.mark.kernel

Row = tuple[int, ...]

INTEGERS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, -(2**63)]))


def columns_of(rows: Sequence[Row], arity: int) -> list[np.ndarray]:
    return [np.array([row[column] for row in rows], np.int64) for column in range(arity)]


class TableMachine(RuleBasedStateMachine):
    """The model is the list of keys by slot."""

    @initialize(arity=st.integers(1, 3))
    def start(self, arity: int) -> None:
        self.arity = arity
        self.table = GroupTable(arity)
        self.rows: list[Row] = []

    @rule(data=st.data())
    def find_or_add(self, data: st.DataObject) -> None:
        batch = data.draw(st.lists(st.tuples(*[INTEGERS] * self.arity), max_size=30))
        if self.rows:
            batch += data.draw(st.lists(st.sampled_from(self.rows), max_size=10))
        found = self.table.slots(columns_of(batch, self.arity)).tolist()
        for row in batch:
            if row not in self.rows:
                self.rows.append(row)
        assert found == [self.rows.index(row) for row in batch]

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        n_slots = data.draw(st.integers(0, len(self.rows)))
        self.table.truncate(n_slots)
        del self.rows[n_slots:]

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        n_slots = len(self.rows)
        alive = data.draw(st.lists(st.booleans(), min_size=n_slots, max_size=n_slots))
        self.table, places = self.table.compacted(np.array(alive, bool))
        kept = places.tolist()
        assert kept == [slot for slot in range(n_slots) if alive[slot]]
        self.rows = [self.rows[slot] for slot in kept]

    @invariant()
    def is_the_model(self) -> None:
        if hasattr(self, "table"):
            self.table.check_invariants()
            assert self.table.n_slots == len(self.rows)
            assert [column.tolist() for column in self.table.columns()] == [
                column.tolist() for column in columns_of(self.rows, self.arity)
            ]


TestTableMachine = TableMachine.TestCase
TestTableMachine.settings = settings(stateful_step_count=15)


def test_no_columns() -> None:
    table = GroupTable(0)
    assert (table.n_slots, table.columns()) == (0, [])
    for _ in range(2):
        assert table.slots([]).tolist() == [0]
        assert table.n_slots == 1
    table, kept = table.compacted(np.array([True]))
    assert kept.tolist() == [0]
    table, kept = table.compacted(np.array([False]))
    assert kept.tolist() == []
    assert table.n_slots == 0
    assert table.slots([]).tolist() == [0]
    table.truncate(0)
    table.check_invariants()
    assert table.n_slots == 0


def test_wrong_number_of_columns() -> None:
    with pytest.raises(ValueError, match="1 columns for a table of 2"):
        GroupTable(2).slots([np.array([1])])


def test_an_empty_batch() -> None:
    table = GroupTable(1)
    assert table.slots([np.empty(0, np.int64)]).tolist() == []
    assert table.n_slots == 0


@pytest.mark.compiled
def test_memory_follows_the_distinct_rows() -> None:
    table = GroupTable(2)
    empty = table.nbytes
    rng = np.random.default_rng(3)
    few = rng.integers(0, 10, 1_000_000)
    table.slots([few, few])
    assert table.nbytes == empty, "a long batch of few groups takes no room"
    many = np.arange(300_000)
    slots = table.slots([many << 32, -many])  # low bits alone, or high ones, must spread
    table.check_invariants()
    assert table.nbytes <= table.n_slots * 2 * (2 * 8 + 16)
    assert (table.slots([many << 32, -many]) == slots).all()
    table, _ = table.compacted(np.arange(table.n_slots) % 1000 == 0)
    assert table.nbytes <= max(table.n_slots, 16) * (2 * 8 + 16)


@pytest.mark.compiled
@pytest.mark.parametrize("shift", [0, 1, 20, 32, 43])
def test_regular_keys_spread(shift: int) -> None:
    """Keys in arithmetic progression stand close to where their hash names: no long runs of taken places."""
    table = GroupTable(1)
    table.slots([np.arange(100_000) << shift])
    taken = table._places != -1
    ends = np.flatnonzero(np.diff(np.concatenate([[False], taken, [False]]).astype(int)))
    assert int(np.diff(ends)[::2].max()) < 200
