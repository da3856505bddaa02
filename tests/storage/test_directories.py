"""laws: what is found in runs that have a directory of their first keys, against sorted lists of tuples."""

from __future__ import annotations

import contextlib
import pickle
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indices import merging
from indices.keys import KEY_MAX, KEY_MIN
from lftj.storage import runs as runs_module
from lftj.storage.runs import DIRECTORY_LEAST, PER_FIRST_KEY, IndexRun, RunMerge
from lftj.storage.support import SupportVersion, ranges_between
from maintenance import Workspace

pytestmark = pytest.mark.kernel

Row = tuple[int, int]
FIRST = st.sampled_from([KEY_MIN, -1, 0, 1, 5, KEY_MAX])
SECOND = st.one_of(st.integers(0, 9), st.sampled_from([KEY_MIN, KEY_MAX]))
EXTREMUM = "near[x, y] = max(z) <- r(x, y), s(x, z), z <= y."
ROWS = st.lists(st.tuples(FIRST, SECOND), min_size=1, max_size=40)


@contextlib.contextmanager
def directories(least: int, per_key: int) -> Iterator[None]:
    """Runs have directories from so many tuples on, and are merged in pieces of three."""
    with contextlib.ExitStack() as stack:
        found = {"DIRECTORY_LEAST": least, "PER_FIRST_KEY": per_key}
        for name, value in found.items():
            stack.enter_context(mock.patch.object(runs_module, name, value))
        found = {"AT_ONCE": 6, "AT_ONCE_PER_ROW": 0, "PIECE_ROWS": 3, "PIECE_PER_ROW": 0}
        for name, value in found.items():
            stack.enter_context(mock.patch.object(merging, name, value))
        yield


def columns_of(rows: list[Row]) -> list[np.ndarray]:
    return [np.array([row[place] for row in rows], np.int64) for place in (0, 1)]


def followed(changes: list[list[Row]]) -> tuple[SupportVersion, Counter[Row]]:
    """The version after changes, and what it holds; every third row that is there goes with the next one."""
    version, held = SupportVersion(2), Counter[Row]()
    for change in changes:
        signed = [(row, 1) for row in change] + [(row, -1) for row in sorted(+held)[::3]]
        columns = columns_of([row for row, _ in signed])
        before = held.copy()
        for row, sign in signed:
            held[row] += sign
        net = sorted(row for row in {row for row, _ in signed} if held[row] != before[row])
        version, found, was, is_ = version.added(columns, np.array([sign for _, sign in signed]))
        assert list(zip(*(column.tolist() for column in found), strict=True)) == net
        assert was.tolist() == [before[row] for row in net] and is_.tolist() == [held[row] for row in net]
        version.check_invariants()
    return version, +held


@given(st.lists(ROWS, min_size=1, max_size=8), st.lists(st.tuples(FIRST, SECOND), min_size=1), st.data())
def test_oracle_supports_with_directories(
    changes: list[list[Row]], asked: list[Row], data: st.DataObject
) -> None:
    with directories(data.draw(st.sampled_from([1, 8])), data.draw(st.sampled_from([1, 2, 4]))):
        version, held = followed(changes)
    rows = sorted(held)
    places = np.array(columns_of(asked))
    assert version.totals(list(places), len(asked)).tolist() == [held[row] for row in asked]
    assert version.totals([places[0]], len(asked)).tolist() == [
        sum(held[row] for row in rows if row[0] == first) for first, _ in asked
    ]
    numbers, columns, weights = version.below([places[0]], len(asked))
    found = list(
        zip(numbers.tolist(), *(column.tolist() for column in columns), weights.tolist(), strict=True)
    )
    assert found == [
        (number, *row, held[row])
        for number, (first, _) in enumerate(asked)
        for row in rows
        if row[0] == first
    ]
    behind = np.array(data.draw(st.lists(st.booleans(), min_size=len(asked), max_size=len(asked))))
    for backwards in (False, True):
        for n_within in (0, 1):
            some = version.neighbours(places, behind, n_within, (1, True), backwards)
            for number, row in enumerate(asked):
                among = [one for one in rows if one[:n_within] == row[:n_within]]
                place = (bisect_right if behind[number] else bisect_left)(among, row)
                place -= backwards
                expected = among[place] if 0 <= place < len(among) else row
                assert tuple(some[:, number].tolist()) == expected
    ends = places.copy()
    ends[1] = np.maximum(ends[1], np.array(columns_of(asked[::-1]))[1])
    for run in version.runs:
        theirs = list(zip(*(column.tolist() for column in run.columns(2)), strict=True))
        starts, stops = ranges_between(run, places, ends, behind)
        for number, row in enumerate(asked):
            end = (bisect_right if behind[number] else bisect_left)(theirs, tuple(ends[:, number].tolist()))
            assert (starts[number], stops[number]) == (bisect_left(theirs, row), end)


PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)


@pytest.mark.parametrize("strategy", ["trace", "delta", "views"])
@given(st.lists(st.tuples(PAIRS, PAIRS), min_size=2, max_size=6))
@settings(max_examples=min(25, settings.default.max_examples if settings.default else 25), deadline=None)
def test_oracle_joins_over_runs_with_directories(
    strategy: str, states: list[tuple[set[Row], set[Row]]]
) -> None:
    with directories(1, 1):
        ws = Workspace()
        ws.load("r", [(0, 0)], columns=["x", "y"])
        ws.load("s", [(0, 0)], columns=["y", "z"])
        ws.install(f"h(x, y, z) <- r(x, y), s(y, z), r(x, z). {EXTREMUM}", strategy=strategy)
        held = {(0, 0)}, {(0, 0)}
        for state in states:
            with ws.transaction() as tx:
                for name, old, new in zip("rs", held, state, strict=True):
                    tx.erase(name, sorted(old - new))
                    tx.insert(name, sorted(new - old))
            held = state
            r, s = state
            expected = {(x, y, z) for x, y in r for of, z in s if of == y and (x, z) in r}
            assert set(ws["h"]) == expected
            pairs = [(x, y, z) for x, y in r for of, z in s if of == x and z <= y]
            greatest = {(x, y): max(z for a, b, z in pairs if (a, b) == (x, y)) for x, y, _ in pairs}
            assert set(ws["near"]) == {(*key, z) for key, z in greatest.items()}
            ws.check_invariants()


def test_a_long_run_with_few_first_keys_has_a_directory() -> None:
    """However it comes to be: of one change, of merges in pieces, out of an image; others have none."""
    n = 4 * DIRECTORY_LEAST
    few, many = np.arange(n) // (2 * PER_FIRST_KEY), np.arange(n)
    sums = np.arange(n + 1)
    (run,) = SupportVersion(2).added([few, many], np.ones(n, np.int64))[0].runs
    assert len(run.directory) == 2 * (n // (2 * PER_FIRST_KEY)) + 2
    again = pickle.loads(pickle.dumps(run))
    merge = RunMerge(run, IndexRun(np.concatenate([few, many + n, sums]), n))
    while (merged := merge.advance(1000)) is None:
        pass
    for one in (again, merged):
        one.check_directory()
        assert len(one.directory) == len(run.directory)
    for rows, length in (
        (np.concatenate([many, few, sums]), n),
        (np.concatenate([few[:100], many[:100], sums[:101]]), 100),
    ):
        other = IndexRun(rows, length)
        other.check_directory()
        assert not len(other.directory)


def test_weights_of_prefixes_are_those_of_a_run_without_directory() -> None:
    """Of rows in any order, in versions of an index."""
    generator = np.random.default_rng(3)
    rows = np.unique(generator.integers(0, 40, (3, 6_000)), axis=1)
    version = SupportVersion(3).added(list(rows), np.ones(rows.shape[1], np.int64))[0]
    with directories(1 << 40, 1):
        plain = SupportVersion(3).added(list(rows), np.ones(rows.shape[1], np.int64))[0]
    assert len(version.runs[0].directory) and not len(plain.runs[0].directory)
    asked = generator.integers(-1, 42, (3, 500))
    for some in (asked, np.unique(asked, axis=1)):
        for levels in (1, 2, 3):
            path = list(np.ascontiguousarray(some[:levels]))
            found = [one.totals(path, some.shape[1]).tolist() for one in (version, plain)]
            assert found[0] == found[1]
