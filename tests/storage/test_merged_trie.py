"""oracle: a base trie with a change merged in against the trie of the sorted tuples, bit for bit."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lftj.storage import merged_trie
from lftj.storage.merged_trie import PIECE, TUPLE_COST, TrieMerge, merged
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


def change_of(levels: int, held: set[Row], toggled: set[Row]) -> tuple[np.ndarray, np.ndarray]:
    weights = np.array([-1 if row in held else 1 for row in sorted(toggled)], np.int64)
    return columns_of(sorted(toggled), levels), weights


def merged_with(base: Trie, held: set[Row], toggled: set[Row]) -> Trie:
    return merged(base, *change_of(base.n_levels, held, toggled))


def piecemeal(merge: TrieMerge) -> tuple[Trie, int]:
    """The trie, and how many pieces it took."""
    for pieces in itertools.count(1):
        trie = merge.advance(1)
        if trie is not None:
            return trie, pieces
    raise AssertionError


def assert_same(trie: Trie, expected: Trie) -> None:
    trie.check_invariants()
    for array, other in zip((*trie.keys, *trie.children), (*expected.keys, *expected.children), strict=True):
        assert array.dtype == other.dtype and array.tolist() == other.tolist()
    assert (trie.ranks is None) == (expected.ranks is None)
    assert trie.ranks is None or np.array_equal(trie.ranks, expected.ranks)
    for level in range(trie.n_levels):
        assert np.array_equal(trie.leaf_offsets(level), expected.leaf_offsets(level))
    assert (trie.max_fanouts, trie.key_ranges) == (expected.max_fanouts, expected.key_ranges)


@given(changed_sets())
@example((3, set(), {(1, 2, 3), (1, 2, 4), (5, 0, 0)}))  # into nothing
@example((3, {(1, 2, 3), (1, 2, 4), (5, 0, 0)}, {(1, 2, 3), (1, 2, 4), (5, 0, 0)}))  # all go
@example((3, {(1, 2, 3), (5, 0, 0)}, {(1, 2, 3), (1, 2, 4), (3, 3, 3), (9, 9, 9)}))  # and none goes
@example((1, {(BOTTOM,), (TOP,)}, {(BOTTOM,), (TOP - 5,)}))  # ranks up to the last key that there is
def test_a_merged_trie_is_that_of_the_tuples(source: tuple[int, set[Row], set[Row]]) -> None:
    """At once, and in the smallest pieces."""
    levels, rows, toggled = source
    base = trie_of(rows, levels)
    expected = trie_of(rows ^ toggled, levels)
    trie = merged_with(base, rows, toggled)
    assert_same(trie, expected)
    assert_same(piecemeal(TrieMerge(base, *change_of(levels, rows, toggled), TUPLE_COST))[0], expected)
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
    assert_same(piecemeal(TrieMerge(base, *change_of(levels, rows, toggled), 100))[0], trie)
    assert_same(trie, trie_of(rows ^ toggled, levels))
    assert_same(merged_with(trie, rows ^ toggled, toggled), base)


@pytest.mark.parametrize("piece", [16, PIECE])
@pytest.mark.parametrize(
    "toggled",
    [
        range(1, 900, 3),  # keys go and keys come
        range(800, 900),  # the last go
        range(899, 1200, 7),  # others come behind the last, which goes
        range(300),  # the first go
        [0, 890],
        [4],  # a child more, no key more
    ],
)
def test_rank_tables_move_with_the_keys(toggled: Sequence[int], piece: int) -> None:
    rows = {(key, child) for key in range(0, 900, 2) for child in (5, 6)}
    change = {(key, child) for key in toggled for child in ((7,) if key == 4 else (5, 6))}
    base, expected = trie_of(rows, 2), trie_of(rows ^ change, 2)
    assert base.ranks is not None and expected.ranks is not None
    assert_same(piecemeal(TrieMerge(base, *change_of(2, rows, change), piece))[0], expected)


def test_pieces_are_many_and_bounded() -> None:
    """Of 60,000 tuples: as many pieces as PIECE says, and each writes no more than that."""
    rows = {(i // 4, i % 4 * 2) for i in range(60_000)}
    toggled = {(i, 3) for i in range(0, 15_000, 3)}
    merge = TrieMerge(trie_of(rows, 2), *change_of(2, rows, toggled))
    written = []
    copy = merged_trie._merge

    def counted(*arguments: Any) -> bool:
        cursor = arguments[5]
        before = int(cursor[merged_trie.C_AT])
        done = bool(copy(*arguments))
        written.append(int(cursor[merged_trie.C_AT]) - before)
        return done

    with mock.patch.object(merged_trie, "_merge", counted):
        trie, pieces = piecemeal(merge)
    assert_same(trie, trie_of(rows | toggled, 2))
    assert max(written) <= PIECE and sum(written) == 15_000 + 65_000 + 15_001
    tuple_pieces = 2 * 2 * -(-5_000 // (PIECE // TUPLE_COST))
    assert tuple_pieces + sum(written) // PIECE < pieces < tuple_pieces + (sum(written) + 15_001) // PIECE + 8


def test_a_merge_that_is_given_up_is_gone_at_once() -> None:
    """Arrays are large, and the collector of cycles, who counts objects, comes late."""
    base, change = trie_of({(n, n) for n in range(100)}, 2), columns_of([(n, n + 1) for n in range(100)], 2)
    merge = TrieMerge(base, change, np.ones(100, np.int64), 8)
    assert merge.advance(30) is None
    there = weakref.ref(merge)
    gc.disable()
    try:
        del merge
        assert there() is None
    finally:
        gc.enable()


def test_a_merge_that_was_interrupted_begins_anew() -> None:
    rows = {(i, i) for i in range(100)}
    with mock.patch.object(merged_trie, "_find", side_effect=KeyboardInterrupt):
        merge = TrieMerge(trie_of(rows, 2), *change_of(2, rows, {(5, 5), (7, 8)}), TUPLE_COST)
        with pytest.raises(KeyboardInterrupt):
            merge.advance(1)
    with mock.patch.object(merged_trie, "_merge", side_effect=MemoryError), pytest.raises(MemoryError):
        merge.advance(100)
    trie, _ = piecemeal(merge)
    assert_same(trie, trie_of(rows ^ {(5, 5), (7, 8)}, 2))
    assert merge.advance(1) is trie
