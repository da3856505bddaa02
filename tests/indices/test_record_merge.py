"""laws: merging runs of records piece by piece against sets of rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indices import merging, record_contents, record_merge
from indices.housekeeping import housekeeping
from indices.keys import KEY_MAX, KEY_MIN
from indices.max_scan import M_CONTEXT, M_HI, M_LO, M_QUERY, M_RECORD, M_RUN
from indices.record_merge import RecordMerge
from indices.record_run import RecordRun, RunImage, check_run, unpack
from indices.sensitivity import SensitivityIndex

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]

Row = tuple[int, ...]

ENDS = st.sampled_from((KEY_MIN, KEY_MIN + 1, -3, 0, 2, 5, KEY_MAX - 1, KEY_MAX))
VALUES = st.sampled_from((KEY_MIN, -1, 0, 1, KEY_MAX))


@contextlib.contextmanager
def pieces(at_once: int, rows: int) -> Iterator[None]:
    """Merges at once of at most so many records, pieces of so many, however many come."""
    with contextlib.ExitStack() as stack:
        found = {"AT_ONCE": at_once, "AT_ONCE_PER_ROW": 0, "PIECE_ROWS": rows, "PIECE_PER_ROW": 0}
        for name, value in found.items():
            stack.enter_context(mock.patch.object(merging, name, value))
        stack.enter_context(mock.patch.object(record_contents, "TAIL_RECORDS", 4))
        yield


@st.composite
def two_sets(draw: st.DrawFn) -> tuple[int, int, set[Row], set[Row]]:
    """Widths of prefix and context, and two sets of records."""
    prefix_width, context_width = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    ends = st.tuples(ENDS, ENDS).map(lambda pair: tuple(sorted(pair)))
    row = st.tuples(st.tuples(*[VALUES] * prefix_width), ends, st.tuples(*[VALUES] * context_width))
    rows = st.sets(row.map(lambda parts: parts[0] + parts[1] + parts[2]), min_size=1, max_size=150)
    return prefix_width, context_width, draw(rows), draw(rows)


def columns_of(rows: set[Row]) -> list[np.ndarray]:
    return [np.array(column, np.int64) for column in zip(*sorted(rows), strict=True)]


def run_of(rows: set[Row], width: int) -> RecordRun:
    columns = columns_of(rows)
    return RunImage.of(columns[:width], *columns[width : width + 2], columns[width + 2 :]).written()


@given(two_sets(), st.lists(st.integers(1, 90), min_size=1), st.booleans())
def test_a_merge_in_pieces_has_the_records_of_both(
    found: tuple[int, int, set[Row], set[Row]], sizes: list[int], small: bool
) -> None:
    """However long the pieces are, and written as one that is made at once."""
    prefix_width, context_width, first, second = found
    older, younger = run_of(first, prefix_width), run_of(second, prefix_width)
    table, marks = np.stack([older.row, younger.row]), np.empty(0, np.uint64)
    with mock.patch.object(record_merge, "BUFFER", 64 if small else record_merge.BUFFER):
        merge = RecordMerge(older, younger, table, marks, prefix_width, context_width)
        merged, total = None, 0
        for size in [*sizes, *([11] * 80)]:
            before = housekeeping.rows
            merged = merge.advance(size)
            assert housekeeping.rows - before <= size + 1  # a record that both have
            total += housekeeping.rows - before
            if merged is not None:
                break
    assert merged is not None and merge.advance(1) is merged
    assert total == 2 * (len(first) + len(second))
    check_run(merged, prefix_width, context_width)
    assert set(map(tuple, unpack([merged], prefix_width, context_width).T.tolist())) == first | second
    at_once = run_of(first | second, prefix_width)
    assert np.array_equal(merged.row, at_once.row) and np.array_equal(merged.words, at_once.words)


@given(st.lists(two_sets(), min_size=1, max_size=4), st.integers(1, 60), st.integers(1, 200))
def test_dead_records_are_left_out(
    found: list[tuple[int, int, set[Row], set[Row]]], at_once: int, piece: int
) -> None:
    """What lived when a merge began is in the index afterwards; what was dead before is not."""
    prefix_width, context_width, *_ = found[0]
    index = SensitivityIndex(prefix_width, context_width)
    least: set[Row] = set()  # what is there for sure, and what may be
    most: set[Row] = set()
    with pieces(at_once, piece):
        for widths in found:
            if widths[:2] != (prefix_width, context_width):
                continue
            for rows in widths[2:]:
                columns = columns_of(rows)
                prefix, ends = columns[:prefix_width], columns[prefix_width : prefix_width + 2]
                index.record(prefix, *ends, columns[prefix_width + 2 :])
                index.check_invariants()
                least |= rows
                most |= rows
                matches = index.find(prefix, ends[0])
                gone = matches[:, matches[M_QUERY] % 3 == 0]
                index.drop(gone[M_RUN].copy(), gone[M_RECORD].copy())
                index.check_invariants()
                queried = np.array(columns)[:prefix_width, gone[M_QUERY]]
                dropped = np.vstack([queried, gone[[M_LO, M_HI]], gone[M_CONTEXT:]])
                least -= set(map(tuple, dropped.T.tolist()))
                there = index.records()
                held = set(map(tuple, np.array([*there[0], *there[1:3], *there[3]]).T.tolist()))
                assert least <= held <= most


@pytest.mark.compiled
def test_no_record_pays_for_a_merge() -> None:
    """Single records: runs stay few, and what one of them moves is a stated number, however many."""
    generator = np.random.default_rng(1)
    index, most, most_runs, most_bytes = SensitivityIndex(1, 1), 0, 0, 0
    n_records = 30_000
    with pieces(64, 32):
        for key in generator.permutation(n_records).tolist():
            before = housekeeping.rows
            one = np.array([key])
            index.record([one % 7], one, one + 3, [one])
            most = max(most, housekeeping.rows - before)
            most_runs = max(most_runs, index.n_runs)
            most_bytes = max(most_bytes, index.nbytes)
    index.check_invariants()
    assert index.n_records == n_records
    assert most <= 64 + 9 * 33 and most_runs <= 24
    found = index.find([np.arange(7)], np.full(7, 15_000))
    assert sorted(found[M_CONTEXT].tolist()) == [14_997, 14_998, 14_999, 15_000]
    index.shrink(index.nbytes - 1)
    assert most_bytes <= 3 * index.nbytes


@pytest.mark.compiled
def test_an_index_that_is_stored_amid_a_merge_begins_it_again() -> None:
    index = SensitivityIndex(0, 1)
    with pieces(64, 16):
        for start in range(0, 2000, 50):
            keys = np.arange(start, start + 50)
            index.record([], keys, keys + 1, [keys])
        assert index._contents.merges
        again = SensitivityIndex.__new__(SensitivityIndex)
        again.__setstate__(index.__getstate__())
        for start in range(2000, 6000, 50):
            keys = np.arange(start, start + 50)
            again.record([], keys, keys + 1, [keys])
            again.check_invariants()
    assert sorted(again.records()[1].tolist()) == list(range(6000))
    assert sorted(index.records()[1].tolist()) == list(range(2000))
