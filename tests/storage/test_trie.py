"""laws: a trie's arrays against the sorted tuples that they stand for."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.storage.trie import RANKS_MAX_SPREAD, RANKS_SMALL, Trie

Rows = list[tuple[int, ...]]
TOP, BOTTOM = 2**63 - 1, -(2**63)
SMALL = st.integers(-3, 6)
ANY = SMALL | st.sampled_from((TOP, BOTTOM, TOP - 1, 2**40))


@st.composite
def tuples(draw: st.DrawFn, least_arity: int = 1) -> tuple[int, Rows]:
    """Arity, and distinct sorted tuples."""
    arity = draw(st.integers(least_arity, 4))
    key = draw(st.sampled_from((SMALL, ANY)))
    return arity, sorted(draw(st.sets(st.tuples(*[key] * arity), max_size=30)))


def columns_of(arity: int, rows: Rows) -> list[np.ndarray]:
    return [np.array([row[i] for row in rows], dtype=np.int64) for i in range(arity)]


def walk(trie: Trie) -> Rows:
    """The tuples, by following the children arrays down."""

    def below(level: int, low: int, high: int) -> Rows:
        found: Rows = []
        for node in range(low, high):
            key = int(trie.keys[level][node])
            if level + 1 == trie.n_levels:
                found.append((key,))
            else:
                bounds = trie.children[level][node : node + 2].tolist()
                found += [(key, *rest) for rest in below(level + 1, *bounds)]
        return found

    return below(0, 0, len(trie.keys[0]))


@given(tuples())
def test_a_trie_holds_its_tuples(source: tuple[int, Rows]) -> None:
    arity, rows = source
    trie = Trie.from_sorted(columns_of(arity, rows))
    trie.check_invariants()
    assert walk(trie) == rows
    assert (trie.n_levels, trie.n_tuples) == (arity, len(rows))
    for array in (*trie.keys, *trie.children):
        assert array.dtype == np.int64 and array.flags.c_contiguous


@given(tuples())
def test_every_level_is_a_distinct_prefix(source: tuple[int, Rows]) -> None:
    arity, rows = source
    trie = Trie.from_sorted(columns_of(arity, rows))
    for level in range(arity):
        prefixes = sorted({row[: level + 1] for row in rows})
        keys = [prefix[-1] for prefix in prefixes]
        assert trie.keys[level].tolist() == keys
        assert trie.key_ranges[level] == ((min(keys), max(keys)) if keys else (0, -1))
        parents = Counter(prefix[:-1] for prefix in prefixes)
        assert trie.max_fanouts[level] == max(parents.values(), default=0)


@given(tuples())
def test_leaf_offsets_count_the_tuples_below_each_node(source: tuple[int, Rows]) -> None:
    arity, rows = source
    trie = Trie.from_sorted(columns_of(arity, rows))
    for level in range(arity):
        below = Counter(row[: level + 1] for row in rows)
        offsets = trie.leaf_offsets(level)
        assert offsets[0] == 0 and offsets[-1] == len(rows)
        assert np.diff(offsets).tolist() == [below[prefix] for prefix in sorted(below)]


@given(tuples())
def test_offsets_count_the_branches_of_deeper_levels(source: tuple[int, Rows]) -> None:
    arity, rows = source
    trie = Trie.from_sorted(columns_of(arity, rows))
    for level in range(arity):
        for deeper in range(level, arity):
            below = Counter(row[: level + 1] for row in {row[: deeper + 1] for row in rows})
            offsets = trie.offsets(level, deeper)
            assert offsets is trie.offsets(level, deeper) and not offsets.flags.writeable
            assert offsets[0] == 0
            assert np.diff(offsets).tolist() == [below[prefix] for prefix in sorted(below)]


@given(st.sets(ANY, max_size=20), st.integers(1, 3))
def test_ranks_are_least_positions(keys: set[int], repeats: int) -> None:
    """One look-up is what a binary search gives, for every key from the least to one past the largest."""
    ordered = sorted(keys)
    rows: Rows = [(key, i) for key in ordered for i in range(repeats)]
    trie = Trie.from_sorted(columns_of(2, rows))
    spread = ordered[-1] - ordered[0] + 1 if ordered else 0
    if not ordered or spread > RANKS_SMALL:
        assert trie.ranks is None
        return
    assert trie.ranks is not None and trie.ranks.dtype == np.int32 and not trie.ranks.flags.writeable
    base = ordered[0]
    assert trie.ranks.tolist() == [bisect_left(ordered, base + i) for i in range(spread + 1)]


@pytest.mark.parametrize(
    ("spread", "made"), [(RANKS_MAX_SPREAD * 10_000, True), (1 + RANKS_MAX_SPREAD * 10_000, False)]
)
def test_a_rank_table_is_made_where_keys_are_dense(spread: int, made: bool) -> None:
    """Of 10,000 tuples below two keys, the first and the last of the range."""
    first = np.repeat(np.array([-7, spread - 8]), 5000)
    trie = Trie.from_sorted([first, np.tile(np.arange(5000), 2)])
    assert (trie.ranks is not None) == made
    trie.check_invariants()
    assert trie.nbytes == 8 * (2 + 10_000 + 3) + (4 * (spread + 1) if made else 0)


def test_the_whole_range_of_keys_does_not_wrap() -> None:
    trie = Trie.from_sorted(columns_of(1, [(BOTTOM,), (0,), (TOP,)]))
    trie.check_invariants()
    assert trie.ranks is None and trie.key_ranges == ((BOTTOM, TOP),)


def broken(trie: Trie, **changes: object) -> Trie:
    return dataclasses.replace(trie, **changes)  # type: ignore[arg-type]


def test_broken_invariants_are_found() -> None:
    trie = Trie.from_sorted(columns_of(2, [(1, 3), (1, 5), (4, 2)]))
    trie.check_invariants()

    def arrays(*lists: list[int], dtype: type = np.int64) -> tuple[np.ndarray, ...]:
        made: tuple[np.ndarray, ...] = tuple(np.array(items, dtype=dtype) for items in lists)
        for array in made:
            array.setflags(write=False)
        return made

    for wrong in (
        broken(trie, keys=arrays([4, 1], [3, 5, 2])),
        broken(trie, keys=arrays([1, 4], [3, 3, 2])),
        broken(trie, keys=arrays([1, 4], [5, 3, 2])),
        broken(trie, children=arrays([0, 2])),
        broken(trie, children=arrays([0, 0, 3])),
        broken(trie, children=arrays([0, 2, 4])),
        broken(trie, children=()),
        broken(trie, max_fanouts=(2, 1)),
        broken(trie, key_ranges=((1, 4), (3, 5))),
        broken(trie, ranks=arrays([0, 1, 1, 2, 2], dtype=np.int32)[0]),
        broken(trie, keys=(np.array([1, 4]), trie.keys[1])),
    ):
        with pytest.raises(AssertionError):
            wrong.check_invariants()
