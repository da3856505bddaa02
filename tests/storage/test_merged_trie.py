"""oracle: a base trie with a change merged in against the trie of the sorted tuples, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lftj.storage.merged_trie import merged
from lftj.storage.trie import RANKS_SMALL, Trie
from support.bodies import BOTTOM, TOP, Row

pytestmark = pytest.mark.kernel

KEYS = st.sampled_from((st.integers(0, 3), st.integers(-2, 70), st.sampled_from((BOTTOM, -1, 0, TOP))))


@st.composite
def changed_sets(draw: st.DrawFn) -> tuple[int, set[Row], set[Row]]:
    """Levels, the base's tuples, and tuples that go where they are among those and come where not."""
    levels = draw(st.integers(1, 4))
    rows = st.tuples(*[draw(KEYS) for _ in range(levels)])
    base = draw(st.sets(rows, max_size=20))
    gone = draw(st.sets(st.sampled_from(sorted(base)))) if base else set()
    return levels, base, gone | draw(st.sets(rows, max_size=12))


def columns_of(rows: Sequence[Row], levels: int) -> np.ndarray:
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(len(rows), levels).T)


def trie_of(rows: set[Row], levels: int) -> Trie:
    return Trie.from_sorted(list(columns_of(sorted(rows), levels)))


def merged_with(base: Trie, held: set[Row], toggled: set[Row]) -> Trie:
    weights = np.array([-1 if row in held else 1 for row in sorted(toggled)], np.int64)
    return merged(base, columns_of(sorted(toggled), base.n_levels), weights)


def assert_same(trie: Trie, expected: Trie) -> None:
    trie.check_invariants()
    for array, other in zip((*trie.keys, *trie.children), (*expected.keys, *expected.children), strict=True):
        assert array.dtype == other.dtype and array.tolist() == other.tolist()
    assert (trie.ranks is None) == (expected.ranks is None)
    assert trie.ranks is None or np.array_equal(trie.ranks, expected.ranks)
    assert (trie.max_fanouts, trie.key_ranges) == (expected.max_fanouts, expected.key_ranges)


@given(changed_sets())
@example((3, set(), {(1, 2, 3), (1, 2, 4), (5, 0, 0)}))  # into nothing
@example((3, {(1, 2, 3), (1, 2, 4), (5, 0, 0)}, {(1, 2, 3), (1, 2, 4), (5, 0, 0)}))  # all go
@example((3, {(1, 2, 3), (5, 0, 0)}, {(1, 2, 3), (1, 2, 4), (3, 3, 3), (9, 9, 9)}))  # and none goes
def test_a_merged_trie_is_that_of_the_tuples(source: tuple[int, set[Row], set[Row]]) -> None:
    levels, rows, toggled = source
    base = trie_of(rows, levels)
    expected = trie_of(rows ^ toggled, levels)
    trie = merged_with(base, rows, toggled)
    assert_same(trie, expected)
    for level in range(levels):
        assert trie.leaf_offsets(level).tolist() == expected.leaf_offsets(level).tolist()
    assert_same(base, trie_of(rows, levels))
    assert_same(merged_with(trie, rows ^ toggled, toggled), base)


@pytest.mark.parametrize("levels", [2, 3])
def test_many_changes(levels: int) -> None:
    """Of nodes with many children: most stretches are longer than one branch, and the ranks come and go."""
    draws = np.random.default_rng(levels)
    rows = {tuple(row) for row in draws.integers(0, 40, (3000, levels)).tolist()}
    toggled = {tuple(row) for row in draws.integers(0, 44, (400, levels)).tolist()}
    toggled |= {(RANKS_SMALL * 60,) * levels}
    base = trie_of(rows, levels)
    trie = merged_with(base, rows, toggled)
    assert base.ranks is not None and trie.ranks is None
    assert_same(trie, trie_of(rows ^ toggled, levels))
    assert_same(merged_with(trie, rows ^ toggled, toggled), base)
