"""Z-sets under construction against a Counter, batch by batch, with the stated invariants after each."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import RangeError
from lftj.storage.zset import Distinct, Run, Weighted

Batch = list[tuple[tuple[int, ...], int]]
keys = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 2**40]))


def batches_of(weights: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, list[Batch]]]:
    def of_arity(arity: int) -> st.SearchStrategy[tuple[int, list[Batch]]]:
        rows = st.tuples(st.tuples(*[keys] * arity), weights)
        return st.tuples(st.just(arity), st.lists(st.lists(rows, max_size=8), max_size=12))

    return st.integers(0, 3).flatmap(of_arity)


def columns_of(batch: Batch, arity: int) -> tuple[list[np.ndarray], np.ndarray]:
    columns = [np.array([row[place] for row, _ in batch], np.int64) for place in range(arity)]
    return columns, np.array([weight for _, weight in batch], np.int64)


def rows_of(run: Run) -> list[tuple[tuple[int, ...], int]]:
    columns, weights = run
    values = [column.tolist() for column in columns]
    return [(tuple(column[i] for column in values), weight) for i, weight in enumerate(weights.tolist())]


@given(batches_of(st.integers(-2, 3)), st.sampled_from([1, 4, 16, 1000]))
def test_oracle_weighted(case: tuple[int, list[Batch]], buffer_rows: int) -> None:
    arity, batches = case
    rows, model = Weighted(arity, buffer_rows), Counter[tuple[int, ...]]()
    for batch in batches:
        rows.add(*columns_of(batch, arity))
        rows.check_invariants()
        for row, weight in batch:
            model[row] += weight
    wanted = sorted((row, weight) for row, weight in model.items() if weight)
    assert rows_of(rows.finish()) == wanted
    rows.check_invariants()
    assert rows_of(rows.finish()) == wanted


@given(batches_of(st.integers(0, 3)), st.sampled_from([1, 4, 16, 1000]))
def test_oracle_distinct(case: tuple[int, list[Batch]], buffer_rows: int) -> None:
    arity, batches = case
    rows, model = Distinct(arity, buffer_rows), set()
    for batch in batches:
        rows.add(*columns_of(batch, arity))
        rows.check_invariants()
        model |= {row for row, weight in batch if weight}
    assert rows_of(rows.finish()) == [(row, 1) for row in sorted(model)]


@given(batches_of(st.just(1)))
def test_weights_are_one_when_not_given(case: tuple[int, list[Batch]]) -> None:
    arity, batches = case
    for kind in (Weighted, Distinct):
        given_, default = kind(arity, 4), kind(arity, 4)
        for batch in batches:
            columns, weights = columns_of(batch, arity)
            given_.add(columns, weights)
            default.add(columns, None if arity else weights)
        assert rows_of(given_.finish()) == rows_of(default.finish())


def test_batches_may_be_overwritten() -> None:
    for buffer_rows in (1, 100):
        rows, batch = Weighted(1, buffer_rows), np.array([3, 4])
        rows.add([batch])
        batch[:] = [5, 6]
        rows.add([batch])
        assert rows.finish()[0][0].tolist() == [3, 4, 5, 6]


def test_adding_goes_on_after_finish() -> None:
    rows = Weighted(1)
    rows.add([np.array([2, 1])])
    assert rows_of(rows.finish()) == [((1,), 1), ((2,), 1)]
    rows.add([np.array([1, 2])], np.array([-1, 1]))
    assert rows_of(rows.finish()) == [((2,), 2)]


def test_runs_stay_few() -> None:
    """Memory follows the distinct rows: ten times the same rows are one run of them."""
    rows = Distinct(2, 64)
    values = np.arange(1000)
    for _ in range(10):
        for start in range(0, 1000, 50):
            rows.add([values[start : start + 50], values[start : start + 50] % 7])
        rows.check_invariants()
    assert len(rows.finish()[1]) == 1000
    assert sum(len(weights) for _, weights in rows._runs) == 1000


def test_weights_never_wrap() -> None:
    rows = Weighted(1)
    rows.add([np.array([1, 1])], np.array([2**62, 2**62 - 1]))
    assert rows_of(rows.finish()) == [((1,), 2**63 - 1)]
    with pytest.raises(RangeError, match="does not fit int64"):
        rows.add([np.array([2])])
    with pytest.raises(RangeError, match="does not fit int64"):
        Weighted(0).add([], np.array([-(2**63)]))


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="negative"):
        Distinct(1).add([np.array([1])], np.array([-1]))
    with pytest.raises(ValueError, match="need weights"):
        Weighted(0).add([])
    with pytest.raises(ValueError, match="does not fit a Z-set of 2 columns"):
        Weighted(2).add([np.array([1])])
    with pytest.raises(ValueError, match="does not fit a Z-set of 1 columns"):
        Distinct(1).add([np.array([1, 2])], np.array([0]))
