"""laws: versions of relations and indices against sets of tuples, under random changes.

After every change all indices of the new version hold the new set (its
permutations, and those restricted to rows whose columns agree), every version
before holds what it held, the differences between versions are those of the
sets, and the surgeries are the prefixes that came and went.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator
from functools import partial
from unittest import mock

import numba
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lftj.storage import index_version
from lftj.storage.index_version import IndexVersion
from lftj.storage.merged_trie import TrieMerge
from lftj.storage.net_weights import net_weights, present
from lftj.storage.relation_version import IndexKey, RelationVersion, index_change, levels_of
from lftj.storage.trie import Trie
from maintenance.strategies.surgery import find_surgeries
from support.bodies import BOTTOM, TOP, Row, advanced, change_between, columns_of, relation, rows_of

pytestmark = pytest.mark.kernel

Surgery = tuple[Row, int]
"""A branch's keys, and +1 or -1."""

SMALL = st.integers(0, 3)
EXTREME = st.sampled_from((BOTTOM, BOTTOM + 1, -1, 0, TOP - 1, TOP))


@contextlib.contextmanager
def merging(least: int, fraction: int) -> Iterator[None]:
    """Runs are merged into the base above ``least`` tuples or 1/``fraction`` of it, whichever is more."""
    with (
        mock.patch.object(index_version, "BASE_LEAST", least),
        mock.patch.object(index_version, "BASE_FRACTION", fraction),
    ):
        yield


SIZES = st.sampled_from(((4096, 8), (0, 1), (0, 3), (6, 8), (0, 100)))


@st.composite
def histories(draw: st.DrawFn, most_steps: int = 8) -> tuple[int, list[frozenset[Row]]]:
    """Arity, and the contents of a relation after each of some changes."""
    arity = draw(st.integers(1, 3))
    rows = st.tuples(*[draw(st.sampled_from((SMALL, EXTREME)))] * arity)
    states = [frozenset(draw(st.sets(rows, max_size=20)))]
    for _ in range(draw(st.integers(1, most_steps))):
        held = states[-1]
        few = draw(st.sampled_from((1, 1, 3, 10)))
        erased = draw(st.sets(st.sampled_from(sorted(held)), max_size=few)) if held else set()
        states.append(held - erased | draw(st.sets(rows, max_size=few)))
    return arity, states


def index_keys(arity: int) -> list[IndexKey]:
    """All permutations, and per pair of columns that must agree the ones without the second of them."""
    keys: list[IndexKey] = [(order, ()) for order in itertools.permutations(range(arity))]
    for first, second in itertools.combinations(range(arity), 2):
        others = [column for column in range(arity) if column != second]
        keys += [(order, ((first, second),)) for order in itertools.permutations(others)]
    return keys


def expected_in(key: IndexKey, rows: frozenset[Row]) -> list[Row]:
    order, equal = key
    kept = [row for row in rows if all(row[i] == row[j] for i, j in equal)]
    return sorted(tuple(row[column] for column in order) for row in kept)


def check_version(version: RelationVersion, rows: frozenset[Row], keys: list[IndexKey]) -> None:
    assert version.n_rows == len(rows)
    assert set(rows_of(version.columns())) == rows
    assert rows_of(version.relation().codes) == sorted(rows)
    for key in keys:
        index = version.index_at(key)
        expected = expected_in(key, rows)
        assert rows_of(index.columns()) == expected
        assert index.n_tuples == len(expected)
        check_branches(index, expected)
    version.check_invariants()


@numba.njit
def weigh(index, rows, out):  # type: ignore[no-untyped-def]
    """The kernels' own function, for Python code to call."""
    net_weights(index.ctypes.data, rows, out)


def hashed(rows: np.ndarray) -> np.ndarray:
    """Numbers that do not ascend with the rows."""
    return np.array([hash(row) % 8191 for row in rows_of(rows)])


def check_branches(index: IndexVersion, expected: list[Row]) -> None:
    """The net weight of every branch is its number of tuples, that of any other one 0."""
    below = Counter(row[: level + 1] for row in expected for level in range(index.levels))
    probes = set(expected)
    probes |= {
        (*row[:level], key, *row[level + 1 :])
        for row in expected[:6]
        for level in range(index.levels)
        for key in (BOTTOM, row[level] - 1 if row[level] > BOTTOM else 0, 2, TOP)
    }
    probes |= {(key,) * index.levels for key in (BOTTOM, 0, 2, TOP)}
    ordered = sorted(probes)
    rows = np.stack(columns_of(ordered, index.levels))
    weights = np.empty(rows.shape, dtype=np.int64)
    for order in (slice(None), slice(None, None, -1), np.argsort(hashed(rows))):
        weigh(index.memory, np.ascontiguousarray(rows[:, order]), weights)
        found = dict(zip(rows_of(rows[:, order]), weights.T.tolist(), strict=True))
        assert found == {row: [below[row[: level + 1]] for level in range(index.levels)] for row in ordered}
    held = np.empty(len(ordered), dtype=np.int64)
    present(index.memory, rows, held)
    assert held.tolist() == [int(row in below) for row in ordered]
    view = index.view
    branches = Counter(len(branch) - 1 for branch in below)
    assert [view.n_branches(level) for level in range(index.levels)] == [
        branches[level] for level in range(index.levels)
    ]
    if view.patch is not None:
        view.patch.rooted.check_invariants()


@given(histories(), SIZES, st.data())
def test_all_indices_follow_and_old_versions_stay(
    history: tuple[int, list[frozenset[Row]]], sizes: tuple[int, int], data: st.DataObject
) -> None:
    arity, states = history
    keys = data.draw(st.lists(st.sampled_from(index_keys(arity)), max_size=4, unique=True))
    late = data.draw(st.sampled_from(index_keys(arity)))
    with merging(*sizes):
        versions = [RelationVersion(relation("r", arity, states[0]))]
        for key in keys:
            versions[0].index_at(key)
        for before, after in itertools.pairwise(states):
            change = change_between(before, after)
            following = advanced(versions[-1], change)
            assert (following is versions[-1]) == (not change)
            versions.append(following)
            check_version(following, after, keys)
        versions[len(states) // 2].index_at(late)  # asked for when later versions are there
        for version, rows in zip(versions, states, strict=True):
            check_version(version, rows, [*keys, late])
        event(f"at most {max(len(version.primary.runs) for version in versions)} runs")


@given(histories(most_steps=4), SIZES)
def test_weights_tell_what_is_there(
    history: tuple[int, list[frozenset[Row]]], sizes: tuple[int, int]
) -> None:
    """Also where the primary index is a permutation."""
    arity, states = history
    order = tuple(reversed(range(arity)))
    rows = sorted(tuple(row[column] for column in order) for row in states[0])
    schema = relation("r", arity).schema
    with merging(*sizes):
        version = RelationVersion.of_sorted("r", schema, order, columns_of(rows, arity))
        for before, after in itertools.pairwise(states):
            version = advanced(version, change_between(before, after))
    asked = sorted(set().union(*states))
    assert version.weights(columns_of(asked, arity)).tolist() == [int(row in states[-1]) for row in asked]
    check_version(version, states[-1], [(tuple(range(arity)), ())])


# -- surgeries ----------------------------------------------------------------------


def brute_surgeries(before: list[Row], after: list[Row], levels: int) -> set[Surgery]:
    """Prefixes that only one of the two states has."""
    found = set()
    for length in range(1, levels + 1):
        old, new = ({row[:length] for row in rows} for rows in (before, after))
        found |= {(path, 1) for path in new - old} | {(path, -1) for path in old - new}
    return found


def surgeries_of(index: IndexVersion, columns: list[np.ndarray], weights: np.ndarray) -> list[Surgery]:
    found = find_surgeries(index, columns, weights)
    return [
        (tuple(found.rows[: level + 1, row].tolist()), sign)
        for level, row, sign in zip(
            found.levels.tolist(), found.tuples.tolist(), found.signs.tolist(), strict=True
        )
    ]


@given(histories(most_steps=5), SIZES, st.data())
def test_surgeries_are_the_prefixes_that_came_and_went(
    history: tuple[int, list[frozenset[Row]]], sizes: tuple[int, int], data: st.DataObject
) -> None:
    arity, states = history
    key = data.draw(st.sampled_from(index_keys(arity)))
    with merging(*sizes):
        version = RelationVersion(relation("r", arity, states[0]))
        for before, after in itertools.pairwise(states):
            change = change_between(before, after)
            version = advanced(version, change)
            weights = np.array(list(change.values()), dtype=np.int64)
            columns, weights = index_change(key, columns_of(list(change), arity), weights)
            if not len(weights):
                continue
            found = surgeries_of(version.index_at(key), columns, weights)
            expected = brute_surgeries(expected_in(key, before), expected_in(key, after), len(key[0]))
            assert len(found) == len(set(found)) and set(found) == expected


@pytest.mark.parametrize("in_runs", [False, True])
def test_seven_operations_from_four_changes(in_runs: bool) -> None:
    """An example of the shape of ILFTJ 4.2.1: four changed tuples, seven operations on the trie.

    The figures are ours.  The branch (1) stays, for other tuples are below it; (1, 2) comes with its first
    tuple, (2) and (2, 7) go with their only one.
    """
    before = [(1, 1, 4), (1, 1, 5), (2, 7, 7), (4, 4, 4)]
    change = {(1, 1, 5): -1, (1, 2, 6): 1, (2, 7, 7): -1, (4, 4, 5): 1}
    index = IndexVersion(Trie.from_sorted(columns_of([] if in_runs else before, 3)))
    if in_runs:
        index = index.advance(columns_of(before, 3), np.ones(4, dtype=np.int64))
    columns, weights = columns_of(list(change), 3), np.array(list(change.values()))
    assert surgeries_of(index.advance(columns, weights), columns, weights) == [
        ((1, 1, 5), -1),
        ((1, 2), 1),
        ((1, 2, 6), 1),
        ((2,), -1),
        ((2, 7), -1),
        ((2, 7, 7), -1),
        ((4, 4, 5), 1),
    ]


# -- runs -----------------------------------------------------------------------------


def test_runs_stay_few_and_are_merged_into_the_base() -> None:
    """Single-tuple changes: the number of runs is logarithmic, and the base is made anew in time."""
    rows = [(i, i % 7) for i in range(400)]
    with merging(16, 8):
        index = IndexVersion(Trie.from_sorted(columns_of(rows, 2)))
        first = index.base
        for i in range(200):
            index = index.advance(columns_of([(1000 + i, 1)], 2), np.array([1]))
            assert len(index.runs) <= 7
        index.check_invariants()
    assert index.base is not first and index.n_tuples == 600
    assert rows_of(index.columns()) == rows + [(1000 + i, 1) for i in range(200)]


@pytest.mark.compiled
def test_no_change_of_one_tuple_pays_for_the_whole_merge() -> None:
    """A piece at a time, and complete before the runs are at the limit; the merge at once never comes."""
    index = IndexVersion(Trie.from_sorted(columns_of([(i // 8, i) for i in range(20_000)], 2)))
    bases, most_pieces = [index.base], 0
    advance = TrieMerge.advance

    def counted(merge: TrieMerge, n_pieces: int) -> Trie | None:
        nonlocal most_pieces
        most_pieces = max(most_pieces, n_pieces)
        return advance(merge, n_pieces)

    with (
        merging(800, 8),
        mock.patch.object(TrieMerge, "advance", counted),
        mock.patch.object(index_version, "merged", side_effect=AssertionError),
    ):
        for i in range(3000):
            index = index.advance(columns_of([(i % 1900, 30_000 + i)], 2), np.array([1]))
            if index.base is not bases[-1]:
                bases.append(index.base)
    assert most_pieces == 1 and 2 <= len(bases) <= 8 and index.n_tuples == 23_000
    index.check_invariants()
    assert rows_of(index.columns()) == sorted(
        [(i // 8, i) for i in range(20_000)] + [(i % 1900, 30_000 + i) for i in range(3000)]
    )


@pytest.mark.compiled
@pytest.mark.parametrize("searched", [True, False])
@pytest.mark.parametrize("size", [1, 60, 700])
def test_laws_a_merge_is_complete_before_the_runs_are_at_the_limit(size: int, searched: bool) -> None:
    n_gone = 12_000 if searched else 3_000 * index_version.SHOWN_TIMES
    rows = np.arange(10 * n_gone)
    index = IndexVersion(Trie.from_sorted([rows // 64, rows // 8, rows]), (), searched)
    bases = {id(index.base): index.base}
    with mock.patch.object(index_version, "merged", side_effect=AssertionError):
        for first in range(0, 2 * n_gone, size):
            there = first % n_gone * 10 + 10 * np.arange(size)  # every tenth tuple goes, then comes again
            sign = -1 if first < n_gone else 1
            there = there[there < 10 * n_gone]
            held = index.memory, np.array([there // 64, there // 8, there])
            present = np.empty(len(there), np.int64)
            index_version.present(*held, present)
            changes = (present > 0) == (sign < 0)
            index = index.advance(held[1][:, changes], np.full(int(changes.sum()), sign))
            bases[id(index.base)] = index.base
    assert len(bases) > 2
    index.check_invariants()


@pytest.mark.compiled
@pytest.mark.parametrize("searched", [True, False])
@pytest.mark.parametrize("levels", [3, 5, 16])
def test_a_merge_of_many_levels_is_complete_before_the_runs_are_at_the_limit(
    levels: int, searched: bool
) -> None:
    """As many pieces come with a change as it takes: each level is copied, and the limit is small."""
    keys, n_changes = np.arange(34_200), 10_000 * (1 if searched else index_version.SHOWN_TIMES)
    index = IndexVersion(Trie.from_sorted([keys * 10] * levels), (), searched)
    bases = {id(index.base): index.base}
    with mock.patch.object(index_version, "merged", side_effect=AssertionError):
        for first in range(0, n_changes, 100):
            came = np.arange(first, first + 100) * 30 + 1
            index = index.advance(np.array([came] * levels), np.ones(100, np.int64))
            bases[id(index.base)] = index.base
    assert len(bases) > 2 and index.n_tuples == 34_200 + n_changes


LARGE = partial(pytest.param, marks=pytest.mark.compiled)


@pytest.mark.parametrize(
    ("n_rows", "searched", "awaited"),
    [
        (1_000, True, 1024),
        (1_000, False, 16_384),
        LARGE(40_000, True, 1250),
        LARGE(400_000, True, 4096),
        LARGE(800_000, True, 6250),
        LARGE(800_000, False, 25_000),
    ],
)
def test_how_long_a_first_run_waits(n_rows: int, searched: bool, awaited: int) -> None:
    """A sixteenth of the limit, or a quarter; of a small base 4,096 tuples, or a quarter of the limit."""
    index = IndexVersion(Trie.from_sorted([np.arange(n_rows)]), (), searched)
    for _ in range(2):
        for n, merges in ((awaited, False), (awaited + 1, True)):
            changed = index.advance([np.arange(n_rows, n_rows + n)], np.ones(n, np.int64))
            assert (changed._merge is not None) == merges and changed.base is index.base
        changed.check_invariants()
        index = index.advance([np.arange(1)], -np.ones(1, np.int64)).compacted()
        index = index.advance([np.arange(1)], np.ones(1, np.int64)).compacted()


def test_versions_that_share_a_merge_do_not_disturb_each_other() -> None:
    """From one version two ways: one that nobody keeps makes pieces, too."""
    rows = [(i, i) for i in range(1000)]
    with merging(0, 2):
        first = IndexVersion(Trie.from_sorted(columns_of(rows, 2)))
        first = first.advance(columns_of([(i, i) for i in range(300)], 2), np.full(300, -1))
        kept = first
        for i in range(30):
            kept.advance(columns_of([(5000, i)], 2), np.array([1]))  # rolled back
            kept = kept.advance(columns_of([(2000 + i, i)], 2), np.array([1]))
            kept.check_invariants()
            assert rows_of(kept.columns()) == rows[300:] + [(2000 + j, j) for j in range(i + 1)]
    assert kept.base is not first.base and rows_of(first.columns()) == rows[300:]


def test_a_change_and_its_inverse_leave_no_run() -> None:
    index = IndexVersion(Trie.from_sorted(columns_of([(1, 2), (3, 4)], 2)))
    change = columns_of([(0, 0), (1, 2)], 2)
    there = index.advance(change, np.array([1, -1]))
    back = there.advance(change, np.array([-1, 1]))
    assert len(there.runs) == 1 and back.runs == () and back.base is index.base
    assert rows_of(back.columns()) == [(1, 2), (3, 4)]


def test_levels_of_an_index() -> None:
    assert levels_of((1,), (), range(3)) == (1, 0, 2)
    assert levels_of((2,), ((0, 1),), range(3)) == (2, 0)


def test_who_reads_an_index_that_is_shown_leaves_a_base() -> None:
    """Versions after it begin with that; those before stay as they are."""
    columns = [np.arange(40), np.arange(40)]
    for read in ("columns", "view"):
        first = IndexVersion(Trie.from_sorted(columns), searched=False)
        few = first.advance([np.array([40]), np.array([0])], np.array([1]))
        many = few.advance([np.arange(41, 50), np.zeros(9, np.int64)], np.ones(9, np.int64))
        for version in (few, many):
            _ = version.columns() if read == "columns" else version.view
        last = np.array([3]), np.array([3])
        assert few.advance(last, np.array([-1])).base is first.base
        following = many.advance(last, np.array([-1]))
        assert following.base is many.whole and [run.n_tuples for run in following.runs] == [1]
        assert following.base.n_tuples == 50 and following.n_tuples == 49
        assert many.base is first.base and many.n_tuples == 50
        assert many.nbytes > many.base.nbytes + many.whole.nbytes
        for version in (few, many, following):
            version.check_invariants()
        assert following.columns()[0].tolist() == [*range(3), *range(4, 50)]


def test_one_that_is_searched_is_read_beside_its_runs() -> None:
    version = IndexVersion(Trie.from_sorted([np.arange(4)])).advance([np.arange(4, 9)], np.ones(5, np.int64))
    assert version.columns()[0].tolist() == list(range(9)) and version.view.patch is not None
    assert version.advance([np.array([9])], np.array([1])).base is version.base
