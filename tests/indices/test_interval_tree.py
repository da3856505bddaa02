"""oracle: interval trees against a list of intervals; the worked example; the number of steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indices.errors import KeyOrderError
from indices.interval_tree import IntervalTree
from indices.keys import KEY_MAX, KEY_MIN
from indices.max_scan import FAN_OUT, nodes_of_scan

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]

KEYS = st.one_of(
    st.integers(-20, 20),
    st.sampled_from([KEY_MIN, KEY_MIN + 1, -1, 0, KEY_MAX - 1, KEY_MAX]),
    st.integers(KEY_MIN, KEY_MAX),
)
INTERVALS = st.tuples(KEYS, KEYS).map(sorted)


def tree_of(intervals: list[list[int]], payload: list[int] | None = None) -> IntervalTree:
    ends = np.array(intervals, np.int64).reshape(-1, 2)
    return IntervalTree.from_intervals(
        ends[:, 0], ends[:, 1], None if payload is None else np.array(payload, np.int64)
    )


@given(st.lists(INTERVALS, max_size=60), st.lists(KEYS, max_size=12))
def test_oracle_stab(intervals: list[list[int]], keys: list[int]) -> None:
    tree = tree_of(intervals)
    tree.check_invariants()
    assert len(tree) == len(intervals)
    expected = [
        (query, row)
        for query, key in enumerate(keys)
        for row, (lo, hi) in enumerate(intervals)
        if lo <= key <= hi
    ]
    queries, rows = tree.stab_many(np.array(keys, np.int64))
    assert sorted(zip(queries.tolist(), rows.tolist(), strict=True)) == expected
    assert (np.diff(queries) >= 0).all()
    for query, key in enumerate(keys):
        found = tree.stab(key)
        assert sorted(found.tolist()) == [row for other, row in expected if other == query]
        assert [intervals[row][0] for row in found] == sorted(intervals[row][0] for row in found)


@given(st.lists(st.tuples(INTERVALS, st.integers(-3, 3)), max_size=40), KEYS)
def test_oracle_payload(rows: list[tuple[list[int], int]], key: int) -> None:
    tree = tree_of([interval for interval, _ in rows], [payload for _, payload in rows])
    expected = sorted(payload for (lo, hi), payload in rows if lo <= key <= hi)
    assert sorted(tree.stab(key).tolist()) == expected


def test_worked_example_the_stab_at_10() -> None:
    """A stab at 10, of the shape of the example in ILFTJ 3.2, with figures of our own.

    Among intervals sorted by their start, those from 10 on are left out by the start, and leaves whose
    greatest end is less than 10 are not entered.
    """
    # Four leaves.  The ends of the first and the third stay below 10; the second has two that reach it.
    first = [[start, start + 1] for start in range(-40, -40 + FAN_OUT)]
    second = [[start, start + 2] for start in range(-20, -20 + FAN_OUT)]
    second[3][1], second[9][1] = 10, KEY_MAX
    third = [[start // 4, 9] for start in range(FAN_OUT)]
    fourth = [[10, 10], [10, 40], [11, 12]] + [[20 + start, 40] for start in range(FAN_OUT - 3)]
    tree = tree_of(first + second + third + fourth)
    assert tree.stab(10).tolist() == [FAN_OUT + 3, FAN_OUT + 9, 3 * FAN_OUT, 3 * FAN_OUT + 1]
    entered = 2 * FAN_OUT  # the second leaf, and the fourth as far as starts reach
    assert tree.touched < entered + 8 + 2 * 4, "first and third leaf are stepped over"


@pytest.mark.compiled
@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_steps_follow_log_n_and_matches(n: int) -> None:
    """Disjoint intervals, of which one or none holds the key, below ``k`` long ones that stand together."""
    levels = int(np.ceil(np.log2(n) / 4)) + 1
    per_query = 2 * np.log2(n) + 2 * FAN_OUT * levels
    starts = 10 * np.arange(n)
    tree = IntervalTree.from_intervals(starts, starts + 4)
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 10 * n, 200)
    queries, _ = tree.stab_many(keys)
    assert len(queries) == (keys % 10 <= 4).sum()
    assert tree.touched <= per_query * len(keys)
    n_long = n // 10
    long = IntervalTree.from_intervals(
        np.concatenate([starts, np.full(n_long, -5)]), np.concatenate([starts + 4, np.full(n_long, KEY_MAX)])
    )
    queries, _ = long.stab_many(np.array([10 * n + 7]))
    assert len(queries) == n_long
    assert long.touched <= 2 * n_long + 2 * per_query


@pytest.mark.compiled
def test_steps_where_matches_lie_apart() -> None:
    """Each match may cost a way down of its own, and no more."""
    n, apart = 200_000, 5_000
    starts = np.arange(n)
    ends = starts.copy()
    ends[::apart] = KEY_MAX
    tree = IntervalTree.from_intervals(starts, ends)
    assert len(tree.stab(n)) == n // apart
    levels = int(np.ceil(np.log2(n) / 4))
    assert tree.touched <= (n // apart + 1) * 3 * FAN_OUT * levels


def test_memory() -> None:
    assert tree_of([]).nbytes == 0
    assert [nodes_of_scan(n) for n in (0, 1, 16, 17, 256, 257)] == [0, 1, 1, 3, 17, 20]
    rng = np.random.default_rng(0)
    lo = rng.integers(0, 1 << 17, 2000)
    tree = IntervalTree.from_intervals(lo, lo + rng.integers(0, 1 << 17, 2000))
    assert tree.nbytes <= 7 * len(tree)


def test_bad_input() -> None:
    with pytest.raises(KeyOrderError, match="1 intervals end before they start"):
        tree_of([[1, 2], [2, 1]])
    with pytest.raises(ValueError, match="different lengths"):
        tree_of([[1, 2]], [1, 2])


def test_input_is_copied_and_may_be_read_only_or_strided() -> None:
    ends = np.array([[1, 5], [3, 9]])
    ends.flags.writeable = False
    tree = IntervalTree.from_intervals(ends[:, 0], ends[:, 1])
    keys = np.array([4, 4, 1])[::2]
    assert [column.tolist() for column in tree.stab_many(keys)] == [[0, 0, 1], [0, 1, 0]]
