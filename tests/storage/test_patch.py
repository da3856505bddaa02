"""oracle: a patched base against the set of tuples that it stands for."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.storage.patch import Patch
from lftj.storage.trie import Trie

pytestmark = pytest.mark.kernel

Row = tuple[int, ...]


def columns_of(rows: Sequence[Row], levels: int) -> np.ndarray:
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(len(rows), levels).T)


@st.composite
def changed_sets(draw: st.DrawFn) -> tuple[int, set[Row], set[Row]]:
    """Levels, the base's tuples, and tuples of which some are in the base."""
    levels = draw(st.integers(1, 4))
    row = st.tuples(*[st.integers(-2, draw(st.sampled_from((0, 2, 70))))] * levels)
    return levels, draw(st.sets(row, max_size=14)), draw(st.sets(row, min_size=1, max_size=10))


def patched(levels: int, base: set[Row], toggled: set[Row]) -> tuple[Trie, Patch]:
    trie = Trie.from_sorted(list(columns_of(sorted(base), levels)))
    weights = np.array([-1 if row in base else 1 for row in sorted(toggled)])
    return trie, Patch(trie, columns_of(sorted(toggled), levels), weights)


def walked(base: Trie, patch: Patch) -> list[tuple[int, ...]]:
    """The tuples that a walk over a patched base finds, sorted."""
    found: list[tuple[int, ...]] = []

    def walk(level: int, node: int, low: int, high: int, path: tuple[int, ...]) -> None:
        own = patch.levels[level]
        if node >= 0:
            pairs: Sequence[tuple[int, int]] = list(
                zip(
                    own.keys[own.starts[node] : own.starts[node + 1]].tolist(),
                    own.links[own.starts[node] : own.starts[node + 1]].tolist(),
                    strict=True,
                )
            )
        else:
            pairs = [(int(base.keys[level][position]), position) for position in range(low, high)]
        for key, link in pairs:
            if level + 1 == base.n_levels:
                found.append((*path, key))
                continue
            row = -1 - link if link < 0 else int(np.searchsorted(own.at, link))
            changed = link < 0 or (row < len(own.at) and own.at[row] == link)
            child = int(own.child[row]) if changed else -1
            below = base.children[level][link : link + 2].tolist() if link >= 0 else [0, 0]
            walk(level + 1, child, below[0], below[1], (*path, key))

    walk(0, 0 if patch.relists_root else -1, 0, len(base.keys[0]), ())
    return found


@given(changed_sets())
def test_a_walk_finds_the_tuples_of_the_version(case: tuple[int, set[Row], set[Row]]) -> None:
    levels, base, toggled = case
    trie, patch = patched(levels, base, toggled)
    patch.check_invariants()
    now = base ^ toggled
    assert walked(trie, patch) == sorted(now)
    assert patch.n_tuples == len(now)
    for level in range(levels):
        before, after = ({row[: level + 1] for row in rows} for rows in (base, now))
        assert patch.came[level] == len(after) - len(before)
        if after:
            low, high = patch.key_ranges[level]
            assert low <= min(row[level] for row in after) and max(row[level] for row in after) <= high
            below = [len({r for r in after if r[:level] == path}) for path in {r[:level] for r in after}]
            assert max(below) <= patch.max_fanouts[level]


@given(changed_sets())
def test_counts_are_of_the_branches_below(case: tuple[int, set[Row], set[Row]]) -> None:
    levels, base, toggled = case
    _, patch = patched(levels, base, toggled)
    now = base ^ toggled
    for level, own in enumerate(patch.levels[:-1]):
        in_base = sorted({row[: level + 1] for row in base})
        paths = [in_base[place] for place in own.at.tolist()]
        fresh = sorted({row[: level + 1] for row in now} - set(in_base))
        assert len(own.counts) == len(paths) + len(fresh)
        for deeper in range(level + 1, levels):
            deep = {row[: deeper + 1] for row in now}
            expected = [sum(row[: level + 1] == path for row in deep) for path in (*paths, *fresh)]
            assert own.counts[:, deeper].tolist() == expected


def test_what_has_the_base_s_keys_is_not_listed() -> None:
    trie, patch = patched(2, {(1, 5), (2, 5), (2, 6)}, {(2, 7)})
    assert not patch.relists_root and trie.n_tuples == 3
    assert [len(level.keys) for level in patch.levels] == [0, 3]


@pytest.mark.parametrize("list_root", [True, False])
def test_a_patch_goes_with_whoever_has_it(list_root: bool) -> None:
    """Not when Python's collector comes by: it counts objects, and a patch holds a base."""
    base = Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])])
    patch = Patch(base, np.array([[1, 7], [4, 9]]), np.array([1, 1]), list_root)
    assert patch.rooted.is_rooted
    known = weakref.ref(patch)
    gc.disable()
    try:
        del patch
        assert known() is None
    finally:
        gc.enable()
