"""Sorting against Python's own sorted(), on rows that take each of its ways."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.storage import radix, sorting
from lftj.storage.sorting import first_of_equal, sort_distinct, sort_distinct_weighted

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# Narrow columns share a word, wide ones take one each, constant ones no bit.
RANGES = (
    (0, 3),
    (-5, 5),
    (0, 70_000),
    (-(2**40), 2**40),
    (INT64_MIN, INT64_MAX),
    (7, 7),
    (INT64_MIN, INT64_MIN + 1),
)
WAYS = {"numpy": 1 << 10, "kernels": 0}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small inputs, by numpy and as if they were large; blocks so short that there are several."""
    monkeypatch.setattr(sorting, "SMALL_ROWS", WAYS[request.param])
    monkeypatch.setattr(sorting, "_BLOCK_ROWS", 4)
    return str(request.param)


@st.composite
def rows(draw: st.DrawFn) -> list[np.ndarray]:
    ranges = draw(st.lists(st.sampled_from(RANGES), min_size=1, max_size=5))
    values = st.tuples(*(st.one_of(st.sampled_from(ends), st.integers(*ends)) for ends in ranges))
    drawn = draw(st.lists(values, max_size=20))
    drawn += draw(st.lists(st.sampled_from(drawn), max_size=10)) if drawn else []
    if draw(st.booleans()):
        drawn.sort()
    return [np.array([row[i] for row in drawn], dtype=np.int64) for i in range(len(ranges))]


def _tuples(columns: list[np.ndarray]) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.kernel
@pytest.mark.usefixtures("way")
@given(rows())
def test_oracle_sort_distinct(columns: list[np.ndarray]) -> None:
    before = _tuples(columns)
    found = sort_distinct(columns)
    assert _tuples(found) == sorted(set(before))
    assert all(column.dtype == np.int64 for column in found)
    for column in found:
        column[:] = 0
    assert _tuples(columns) == before, "the result shares no memory with the input"


@pytest.mark.kernel
@pytest.mark.usefixtures("way")
@given(rows(), st.data())
def test_oracle_sort_distinct_of_partly_sorted_rows(columns: list[np.ndarray], data: st.DataObject) -> None:
    stable_from = data.draw(st.integers(0, len(columns)))
    order = sorted(range(len(columns[0])), key=lambda row: _tuples(columns)[row][stable_from:])
    prepared = [column[np.array(order, dtype=np.int64)] for column in columns]
    if stable_from == 0:
        assert _tuples(sort_distinct(prepared, 0)) == sorted(set(_tuples(columns)))
    assert _tuples(sort_distinct(prepared, stable_from)) == sorted(set(_tuples(columns)))


@pytest.mark.kernel
@pytest.mark.usefixtures("way")
@given(rows(), st.data())
def test_oracle_sort_distinct_weighted(columns: list[np.ndarray], data: st.DataObject) -> None:
    n_rows = len(columns[0])
    weights = np.array(
        data.draw(st.lists(st.integers(-3, 3), min_size=n_rows, max_size=n_rows)), dtype=np.int64
    )
    expected: Counter[tuple[int, ...]] = Counter()
    for row, weight in zip(_tuples(columns), weights.tolist(), strict=True):
        expected[row] += weight
    found, sums = sort_distinct_weighted(columns, weights)
    assert list(zip(_tuples(found), sums.tolist(), strict=True)) == sorted(expected.items())
    sums[:] = 9
    assert 9 not in weights, "the result shares no memory with the input"


@pytest.mark.usefixtures("way")
def test_arrays_of_every_layout() -> None:
    strided = np.arange(20, dtype=np.int64)[::-2]
    narrow = np.arange(10, dtype=np.int32)
    read_only = np.broadcast_to(np.int64(3), 10)
    expected = sorted(zip(strided.tolist(), narrow.tolist(), [3] * 10, strict=True))
    assert _tuples(sort_distinct([strided, narrow, read_only])) == expected
    _, weights = sort_distinct_weighted([read_only], np.broadcast_to(np.int64(2), 10))
    assert weights.tolist() == [20]


def test_no_rows() -> None:
    empty = np.empty(0, dtype=np.int64)
    assert [len(column) for column in sort_distinct([empty, empty])] == [0, 0]
    columns, weights = sort_distinct_weighted([empty], empty)
    assert len(columns[0]) == len(weights) == 0
    assert len(first_of_equal([empty])) == 0


@pytest.mark.compiled
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("bits", [3, 20, 62])
def test_oracle_large(width: int, bits: int) -> None:
    rng = np.random.default_rng(bits)
    columns = [rng.integers(-(2**bits), 2**bits, 100_000) for _ in range(width)]
    columns[0][:1000] = columns[0][-1000:]
    order = np.lexsort(columns[::-1])
    expected = [column[order] for column in columns]
    first = first_of_equal(expected)
    found, weights = sort_distinct_weighted(columns, np.ones(100_000, dtype=np.int64))
    for column, sorted_column, also in zip(sort_distinct(columns), expected, found, strict=True):
        assert np.array_equal(column, sorted_column[first])
        assert np.array_equal(column, also)
    assert weights.sum() == 100_000


@pytest.mark.kernel
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(0, 63), st.integers(1, 64))
def test_laws_of_radix_sort(values: list[int], low_bit: int, width: int) -> None:
    high_bit = min(64, low_bit + width)
    words = np.array([value % (1 << high_bit) for value in values], dtype=np.uint64)
    cargo = np.arange(len(words))
    expected = sorted(range(len(words)), key=lambda row: int(words[row]) >> low_bit)  # stable
    spare, spare_cargo = np.empty_like(words), np.empty_like(cargo)
    given_words, plain, plain_spare = words.copy(), words.copy(), np.empty_like(words)
    swapped = radix.sort_words_carrying(words, spare, cargo, spare_cargo, low_bit, high_bit)
    assert (spare_cargo if swapped else cargo).tolist() == expected
    assert np.array_equal(spare if swapped else words, given_words[expected])
    swapped = radix.sort_words(plain, plain_spare, low_bit, high_bit)
    assert np.array_equal(plain_spare if swapped else plain, given_words[expected])
