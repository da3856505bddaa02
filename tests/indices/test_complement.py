"""oracle, laws: the integers that a set lacks, against Python's sets."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indices.complement import missing
from indices.errors import KeyOrderError, MonoidError
from indices.monoid import COUNT, SUM
from indices.scan_tree import ScanTree

pytestmark = pytest.mark.kernel

INT64 = np.iinfo(np.int64)


def count_scan(keys: set[int] | range) -> ScanTree:
    return ScanTree.from_sorted(np.array(sorted(keys), np.int64), None, COUNT)


@given(
    absent=st.sets(st.integers(0, 400), max_size=40),
    present=st.tuples(st.integers(0, 400), st.integers(0, 400)),
    ends=st.tuples(st.integers(-30, 430), st.integers(-30, 430)),
)
def test_long_runs_with_few_gaps(absent: set[int], present: tuple[int, int], ends: tuple[int, int]) -> None:
    keys = set(range(*present)) - absent
    assert list(missing(count_scan(keys), *ends)) == sorted(set(range(ends[0], ends[1] + 1)) - keys)


@given(keys=st.sets(st.integers(-50, 50)), ends=st.tuples(st.integers(-60, 60), st.integers(-60, 60)))
def test_any_set(keys: set[int], ends: tuple[int, int]) -> None:
    assert list(missing(count_scan(keys), *ends)) == sorted(set(range(ends[0], ends[1] + 1)) - keys)


@given(
    keys=st.sets(st.integers(0, 200), max_size=100),
    changes=st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=60),
)
def test_after_changes(keys: set[int], changes: list[tuple[bool, int]]) -> None:
    tree = count_scan(keys)
    for inserted, key in changes:
        if inserted:
            tree.insert(key)
            keys = keys | {key}
        else:
            tree.erase(key)
            keys = keys - {key}
    assert list(missing(tree, 0, 200)) == sorted(set(range(201)) - keys)


@pytest.mark.parametrize("edge", [INT64.min, INT64.max - 40])
@given(offsets=st.sets(st.integers(0, 40)), ends=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_at_the_ends_of_64_bits(edge: int, offsets: set[int], ends: tuple[int, int]) -> None:
    tree = count_scan({int(edge) + offset for offset in offsets})
    expected = [int(edge) + offset for offset in range(ends[0], ends[1] + 1) if offset not in offsets]
    assert list(missing(tree, int(edge) + ends[0], int(edge) + ends[1])) == expected


def test_the_whole_range_is_listed_lazily() -> None:
    everything = missing(count_scan({INT64.min, INT64.min + 2}), INT64.min, INT64.max)
    assert list(islice(everything, 3)) == [INT64.min + 1, INT64.min + 3, INT64.min + 4]


def test_complement_twice_is_the_set() -> None:
    keys = {3, 4, 5, 9, 11, 12}
    others = set(missing(count_scan(keys), 0, 20))
    assert set(missing(count_scan(others), 0, 20)) == keys


def test_changes_meanwhile_are_seen_from_the_next_batch_on() -> None:
    tree = count_scan(set())
    numbers = missing(tree, 0, 200)
    first = next(numbers)
    tree.insert_many(range(100, 200))
    rest = list(numbers)
    assert first == 0 and rest == [*range(1, 100), 200]


@pytest.mark.compiled
@pytest.mark.parametrize("size", [1_000, 100_000])
def test_nodes_touched_follow_the_gaps_and_not_the_keys(size: int) -> None:
    holes = set(range(size // 20, size, size // 10))
    tree = count_scan(set(range(size)) - holes)
    height = 1 + int(np.log(size) / np.log(6)) + 1
    before = tree.touched
    assert list(missing(tree, 0, size - 1)) == sorted(holes)
    assert tree.touched - before <= (len(holes) + 2) * height


@pytest.mark.compiled
def test_a_wide_gap_is_one_way_down_per_batch() -> None:
    tree = count_scan({0, 100_001})
    before = tree.touched
    assert sum(1 for _ in missing(tree, 0, 100_001)) == 100_000
    assert tree.touched - before <= 3 * 20


def test_trees_and_intervals_that_do_not_fit() -> None:
    with pytest.raises(MonoidError, match="needs a scan of counts, not of monoid sum"):
        missing(ScanTree(SUM), 0, 1)
    with pytest.raises(KeyOrderError, match="not of keys of 2 columns"):
        missing(ScanTree(COUNT, columns=2), 0, 1)
    with pytest.raises(KeyOrderError, match="not an interval of 64-bit integers"):
        missing(ScanTree(COUNT), 0, 2**63)
