"""laws: runs and their merges against counters of tuples, at once and piece by piece."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indices import merging
from indices.housekeeping import housekeeping
from lftj.storage import runs as runs_module
from lftj.storage.index_version import IndexVersion
from lftj.storage.runs import IndexRun, RunList, RunMerge
from lftj.storage.trie import Trie
from support.bodies import Row, columns_of, rows_of

pytestmark = pytest.mark.kernel

SMALL = st.integers(0, 3)
WEIGHT = st.integers(-2, 2).filter(bool)
ZSETS = st.dictionaries(st.tuples(SMALL, st.integers(0, 30)), WEIGHT, min_size=1, max_size=40)

NO_BASE = IndexVersion(Trie.from_sorted(columns_of([], 2)))


@contextlib.contextmanager
def pieces(at_once: int, rows: int) -> Iterator[None]:
    """Merges at once of at most so many tuples, pieces of so many rows, however long the change is."""
    with contextlib.ExitStack() as stack:
        found = {"AT_ONCE": at_once, "AT_ONCE_PER_ROW": 0, "PIECE_ROWS": rows, "PIECE_PER_ROW": 0}
        for name, value in found.items():
            stack.enter_context(mock.patch.object(merging, name, value))
        yield


def run_of(zset: dict[Row, int]) -> IndexRun:
    """A run of two columns."""
    ordered = sorted(zset)
    sums = np.cumsum([0, *(zset[row] for row in ordered)])
    return IndexRun(np.concatenate([*columns_of(ordered, 2), sums]), len(ordered))


def zset_of(run: IndexRun) -> dict[Row, int]:
    return dict(zip(rows_of(run.columns(2)), run.weights.tolist(), strict=True))


def added(*zsets: dict[Row, int]) -> dict[Row, int]:
    total: Counter[Row] = Counter()
    for zset in zsets:
        total.update(zset)
    return {row: weight for row, weight in total.items() if weight}


@given(st.lists(st.sets(st.tuples(SMALL, SMALL), max_size=12), min_size=2, max_size=2), st.data())
def test_merged_runs_add_up(parts: list[set[Row]], data: st.DataObject) -> None:
    weight = st.integers(-2, 2).filter(bool)
    zsets = [{row: data.draw(weight) for row in sorted(part)} for part in parts]
    first = IndexVersion(Trie.from_sorted(columns_of([], 2)))
    run_list = RunList(first.memory, first.runs)
    for zset in zsets:
        rows = np.array(columns_of(list(zset), 2), dtype=np.int64)
        run_list = run_list.with_run(rows, np.array(list(zset.values()), dtype=np.int64))
    runs = run_list.runs
    expected = Counter(zsets[0])
    for row, its in zsets[1].items():
        expected[row] += its
    found: Counter[Row] = Counter()
    for run in runs:
        assert rows_of(run.columns(2)) == sorted(rows_of(run.columns(2)))
        found.update(dict(zip(rows_of(run.columns(2)), run.weights.tolist(), strict=True)))
    assert {row: its for row, its in found.items() if its} == {
        row: its for row, its in expected.items() if its
    }
    if 0 < len(zsets[0]) <= 2 * len(zsets[1]):
        assert len(runs) == any(expected.values()), "these are merged"
        assert all(found.values()), "a weight that cancels leaves no tuple"


@given(ZSETS, ZSETS, st.lists(st.integers(1, 50), min_size=1))
def test_a_merge_in_pieces_is_the_sum(
    older: dict[Row, int], younger: dict[Row, int], sizes: list[int]
) -> None:
    """However long the pieces are: none reads more than it may, and both passes read everything once."""
    merge = RunMerge(run_of(older), run_of(younger))
    before, total = housekeeping.rows, 0
    merged = None
    for size in [*sizes, *([7] * 60)]:
        merged = merge.advance(size)
        assert housekeeping.rows - before <= size + 1  # a tuple that both have
        total += housekeeping.rows - before
        before = housekeeping.rows
        if merged is not None:
            break
    assert merged is not None and merge.advance(1) is merged
    assert zset_of(merged) == added(older, younger) and merged.n_tuples == len(zset_of(merged))
    assert total <= 2 * (len(older) + len(younger))
    assert zset_of(merge.older) == older and zset_of(merge.younger) == younger


@given(st.lists(ZSETS, min_size=1, max_size=30), st.integers(1, 60), st.integers(1, 40))
def test_runs_add_up_while_they_are_merged(zsets: list[dict[Row, int]], at_once: int, piece: int) -> None:
    """And versions of before stay as they are, also when two go on from one."""
    versions = [RunList(NO_BASE.memory, ())]
    with pieces(at_once, piece):
        for zset in zsets:
            run = run_of(zset)
            change = np.array(run.columns(2)), run.weights
            versions[-1].with_run(*change)  # rolled back
            versions.append(versions[-1].with_run(*change))
            versions[-1].check_invariants()
    for number, version in enumerate(versions):
        assert added(*map(zset_of, version.runs)) == added(*zsets[:number])
        addresses = [run.rows.__array_interface__["data"][0] for run in version.runs]
        assert np.isin(addresses, version.memory).all()


def test_no_change_of_one_tuple_pays_for_a_merge() -> None:
    """Runs stay few, and the most that a change moves is a stated number of rows, however many there are."""
    generator = np.random.default_rng(1)
    version, most, most_runs = RunList(NO_BASE.memory, ()), 0, 0
    with pieces(64, 16):
        for row in generator.permutation(20_000).tolist():
            before = housekeeping.rows
            version = version.with_run(np.array([[row % 7], [row]]), np.array([1]))
            n_merges = len(version.merges)
            most = max(most, housekeeping.rows - before)
            most_runs = max(most_runs, len(version.runs))
            assert n_merges <= 8
    version.check_invariants()
    assert most <= 2 * 64 + 8 * 17 and most_runs <= 20
    assert added(*map(zset_of, version.runs)) == {(row % 7, row): 1 for row in range(20_000)}


def test_runs_are_never_more_than_searches_have_room_for() -> None:
    """Where pieces are far too small, the merges are completed instead."""
    version, most = RunList(NO_BASE.memory, ()), 0
    with pieces(1, 1), mock.patch.object(runs_module, "MAX_RUNS", 12):
        for row in range(2_000):
            version = version.with_run(np.array([[0], [row]]), np.array([1]))
            most = max(most, len(version.runs))
    assert most <= 12 and added(*map(zset_of, version.runs)) == {(0, row): 1 for row in range(2_000)}
