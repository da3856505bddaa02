"""oracle: many tuples at once, more than go down a base together, against Python's counters."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lftj.storage.index_version import IndexVersion
from lftj.storage.merged_trie import merged
from lftj.storage.net_weights import changing, multiply_weights, present
from lftj.storage.seek_many import BLOCK
from lftj.storage.trie import Trie
from support.bodies import BOTTOM, TOP, Row

pytestmark = pytest.mark.kernel

SHAPES = {
    "one wide node": (1, (10 * BLOCK,)),
    "ranks, and nodes of every width": (2, (60, 4 * BLOCK)),
    "no ranks": (2, (2**61, 30)),
    "three levels": (3, (9, 40, 200)),
}


def drawn(levels: int, spreads: tuple[int, ...], n: int, seed: int) -> list[Row]:
    """``n`` tuples, small keys many times as often as large ones, and the ends of all keys."""
    generator = np.random.default_rng(seed)
    columns = [(spread * generator.random(n) ** 3).astype(np.int64) for spread in spreads]
    if len(spreads) > 1:
        columns[-1][: n // 50] = generator.choice(np.array([BOTTOM, -1, TOP]), n // 50)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def columns_of(rows: list[Row], levels: int) -> np.ndarray:
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(len(rows), levels).T)


def version_of(levels: int, spreads: tuple[int, ...]) -> tuple[IndexVersion, set[Row]]:
    """A version with a base and runs, and its tuples."""
    held = set(drawn(levels, spreads, 5 * BLOCK, 1))
    version = IndexVersion(Trie.from_sorted(list(columns_of(sorted(held), levels))))
    for seed, n in ((2, BLOCK), (3, 50), (4, 1)):
        toggled = sorted(set(drawn(levels, spreads, n, seed)))
        weights = np.array([-1 if row in held else 1 for row in toggled])
        version = version.advance(columns_of(toggled, levels), weights)
        held ^= set(toggled)
    return version, held


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_weights_of_many_rows(shape: str, in_order: bool) -> None:
    levels, spreads = SHAPES[shape]
    version, held = version_of(levels, spreads)
    rows = drawn(levels, spreads, 2 * BLOCK + 7, 5)
    rows += sorted(held)[:: max(1, len(held) // BLOCK)]
    if in_order:
        rows.sort()
    found = np.empty(len(rows), np.int64)
    present(version.memory, columns_of(rows, levels), found)
    assert found.tolist() == [row in held for row in rows]
    for n_levels in range(1, levels + 1):
        counts = Counter(row[:n_levels] for row in held)
        products = np.full(len(rows), 3)
        path = np.ascontiguousarray(columns_of(rows, levels)[:n_levels])
        assert multiply_weights(version.memory, path, products)
        assert products.tolist() == [3 * counts[row[:n_levels]] for row in rows]


@pytest.mark.parametrize("shape", SHAPES)
def test_which_of_many_changes_take_effect(shape: str) -> None:
    levels, spreads = SHAPES[shape]
    version, held = version_of(levels, spreads)
    rows = sorted(set(drawn(levels, spreads, 3 * BLOCK, 6)) | set(sorted(held)[::3]))
    weights = np.resize([2, -1, -3, 1, 1], len(rows))
    order = np.arange(levels)
    found, signs = changing(version.memory, order, columns_of(rows, levels), weights)
    expected = [
        (row, np.sign(weight))
        for row, weight in zip(rows, weights, strict=True)
        if (row in held) != (weight > 0)
    ]
    assert list(zip(*found.tolist(), strict=True)) == [row for row, _ in expected]
    assert signs.tolist() == [sign for _, sign in expected]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trie_with_many_tuples_merged_in(shape: str) -> None:
    levels, spreads = SHAPES[shape]
    held = set(drawn(levels, spreads, 5 * BLOCK, 1))
    toggled = sorted(set(drawn(levels, spreads, 3 * BLOCK, 7)) | set(sorted(held)[::5]))
    weights = np.array([-1 if row in held else 1 for row in toggled])
    base = Trie.from_sorted(list(columns_of(sorted(held), levels)))
    trie = merged(base, columns_of(toggled, levels), weights)
    expected = Trie.from_sorted(list(columns_of(sorted(held ^ set(toggled)), levels)))
    for made, wanted in zip((*trie.keys, *trie.children), (*expected.keys, *expected.children), strict=True):
        assert np.array_equal(made, wanted)
    assert trie.key_ranges == expected.key_ranges and trie.max_fanouts == expected.max_fanouts
    trie.check_invariants()


def test_an_empty_base_holds_nothing() -> None:
    version = IndexVersion(Trie.from_sorted([np.empty(0, np.int64)] * 2))
    found = np.empty(2 * BLOCK, np.int64)
    present(version.memory, np.zeros((2, 2 * BLOCK), np.int64), found)
    assert not found.any()
