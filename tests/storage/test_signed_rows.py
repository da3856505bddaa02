"""Signed rows: the kernels that add few rows up, and what is made of them, against Python's own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.storage import signed_rows
from lftj.storage.signed_rows import net_rows, row_order
from lftj.storage.support import crossing
from lftj.values.arithmetic import kernel, signature
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from maintenance.changes import write_buffer
from maintenance.changes.write_buffer import WriteBuffer

EXTREME = st.sampled_from([-(2**63), -1, 0, 1, 2, 2**63 - 1])
ROWS = st.integers(0, 3).flatmap(
    lambda width: st.lists(st.tuples(st.tuples(*[EXTREME] * width), st.integers(-2, 2)), max_size=40)
)


NARROW = st.sampled_from([-(2**30), -1, 0, 1, 2, 2**25])
NARROW_ROWS = st.integers(1, 2).flatmap(
    lambda width: st.lists(st.tuples(st.tuples(*[NARROW] * width), st.integers(-2, 2)), max_size=40)
)


@given(st.one_of(ROWS, NARROW_ROWS), st.sampled_from([0, 1 << 10]), st.sampled_from([2, 1 << 10]))
def test_oracle_net_rows(rows: list[tuple[tuple[int, ...], int]], few: int, packed: int) -> None:
    """By comparing and by both ways of packing, the net rows are the same: sorted, distinct, no weight 0."""
    width = len(rows[0][0]) if rows else 2
    columns = [np.array([row[column] for row, _ in rows], np.int64) for column in range(width)]
    weights = np.array([weight for _, weight in rows], np.int64)
    expected: Counter[tuple[int, ...]] = Counter()
    for row, weight in rows:
        expected[row] += weight
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(signed_rows, "FEW_ROWS", few)
        patched.setattr(signed_rows, "PACKED_ROWS", packed)
        table, sums = net_rows(columns, weights)
    assert table.shape == (width, len(sums))
    found = list(zip((tuple(row) for row in table.T.tolist()), sums.tolist(), strict=True))
    assert found == sorted((row, weight) for row, weight in expected.items() if weight)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 63, 64, 65, 1000, 1024, 1025])
def test_row_order_is_stable(n_rows: int) -> None:
    generator = np.random.default_rng(n_rows)
    columns = [generator.integers(0, 6, n_rows) for _ in range(2)]
    assert row_order(columns).tolist() == np.lexsort(columns[::-1]).tolist()


@given(st.lists(st.tuples(EXTREME, st.integers(0, 4), st.integers(0, 4))), st.integers(1, 3))
def test_oracle_crossing(rows: list[tuple[int, int, int]], least: int) -> None:
    table = np.array(rows, np.int64).reshape(len(rows), 3).T.copy()
    found = crossing(table[:1], table[1], table[2], least)
    expected = [row for row in rows if (row[1] >= least) != (row[2] >= least)]
    assert list(zip(found[0][0].tolist(), found[1].tolist(), found[2].tolist(), strict=True)) == expected


@given(st.lists(st.tuples(EXTREME, EXTREME.filter(bool)), min_size=1, max_size=5))
def test_quotients_of_integers_are_rounded_once(pairs: list[tuple[int, int]]) -> None:
    divide = kernel("/", signature("/", pa.int64(), pa.int64()))
    columns = [pa.array(column, pa.int64()) for column in zip(*pairs, strict=True)]
    assert divide(*columns).to_pylist() == [left / right for left, right in pairs]
    with pytest.raises(pa.ArrowInvalid, match="divide by zero"):
        divide(columns[0], pa.array([0] * len(pairs), pa.int64()))


BATCH = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-2, 2)), max_size=5)


@given(st.lists(BATCH, max_size=8), st.sampled_from([1, 3, 1 << 10]), st.sampled_from([1, 3, 1 << 10]))
def test_oracle_write_buffer(batches: list[list[tuple[int, int, int]]], rows: int, number: int) -> None:
    """Batches that wait and those that were added up before come to one Z-set, asked for at any time."""
    integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    buffer = WriteBuffer(Schema((Column("a", integer), Column("b", integer))))
    expected: Counter[tuple[int, int]] = Counter()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(write_buffer, "FEW_ROWS", rows)
        patched.setattr(write_buffer, "FEW_BATCHES", number)
        for batch in batches:
            table = np.array(batch, np.int64).reshape(len(batch), 3).T.copy()
            buffer.stage(list(table[:2]), table[2])
            table[:] = 7  # what was staged is the buffer's own
            for left, right, weight in batch:
                expected[left, right] += weight
            (first, second), weights = buffer.zset()
            found = list(zip(first.tolist(), second.tolist(), weights.tolist(), strict=True))
            assert found == sorted((*row, weight) for row, weight in expected.items() if weight)
    assert buffer.staged_rows == sum(map(len, batches))
