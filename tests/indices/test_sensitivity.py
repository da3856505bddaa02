"""stateful: a sensitivity index against a plain list of records; its memory and bad input."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from indices import record_contents
from indices.errors import KeyOrderError
from indices.keys import KEY_MAX, KEY_MIN
from indices.max_scan import M_CONTEXT, M_LO, M_QUERY, M_RECORD, M_RUN
from indices.record_joining import join_smallest_gaps
from indices.record_sort import code_bits_in_row, number_prefixes
from indices.sensitivity import SensitivityIndex

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]

Row = tuple[int, ...]

EXTREMES = [KEY_MIN, KEY_MIN + 1, -1, 0, 1, KEY_MAX - 1, KEY_MAX]
NEAR = st.integers(-12, 12)
WIDE = st.one_of(NEAR, st.sampled_from(EXTREMES), st.integers(KEY_MIN, KEY_MAX))
SMALL_TAIL = 8


def columns_of(rows: list[Row], width: int) -> list[np.ndarray]:
    return list(np.array(rows, np.int64).reshape(-1, width).T.copy())


class Recorded:
    """The plain list: rows (prefix, lo, hi, context), and what they say about one (prefix, key)."""

    def __init__(self, prefix_width: int, context_width: int) -> None:
        self.prefix_width = prefix_width
        self.width = prefix_width + 2 + context_width
        self.rows: list[Row] = []

    def split(self, rows: list[Row]) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, list[np.ndarray]]:
        columns = columns_of(rows, self.width)
        at = self.prefix_width
        return columns[:at], columns[at], columns[at + 1], columns[at + 2 :]

    def contexts(self, prefix: Row, key: int) -> set[Row]:
        at = self.prefix_width
        return {row[at + 2 :] for row in self.rows if row[:at] == prefix and row[at] <= key <= row[at + 1]}

    def families(self) -> dict[tuple[Row, Row], list[tuple[int, int]]]:
        """Per (prefix, context) its maximal intervals, in order."""
        at = self.prefix_width
        intervals: dict[tuple[Row, Row], list[tuple[int, int]]] = defaultdict(list)
        for row in sorted(self.rows, key=lambda row: row[at : at + 2]):
            family = intervals[row[:at], row[at + 2 :]]
            if family and row[at] <= family[-1][1] + 1:
                family[-1] = (family[-1][0], max(family[-1][1], row[at + 1]))
            else:
                family.append((row[at], row[at + 1]))
        return intervals


def matched(
    index: SensitivityIndex, prefix: list[np.ndarray], keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The number of each match's query, and the contexts, int64 (columns, matches)."""
    found = index.find(prefix, keys)
    return found[M_QUERY], found[M_CONTEXT:]


def stabbed(index: SensitivityIndex, queries: list[Row]) -> list[list[Row]]:
    """Per query (prefix, key) the contexts found, in one batch."""
    columns = columns_of(queries, index.prefix_width + 1)
    numbers, context = matched(index, columns[:-1], columns[-1])
    assert (np.diff(numbers) >= 0).all()
    found: list[list[Row]] = [[] for _ in queries]
    for place, number in enumerate(numbers.tolist()):
        found[number].append(tuple(int(column[place]) for column in context))
    return found


def renew(index: SensitivityIndex) -> None:
    """Record everything anew beside what is old, and drop that."""
    prefix, lo, hi, context = index.records()
    index.set_apart()
    index.record(prefix, lo, hi, context)
    index.drop_old()


class SensitivityMachine(RuleBasedStateMachine):
    """Records, stabs, renews and shrinks; ``exact`` until shrinking joined something."""

    @initialize(prefix_width=st.integers(0, 3), context_width=st.integers(0, 3), wide=st.booleans())
    def start(self, prefix_width: int, context_width: int, wide: bool) -> None:
        self.index = SensitivityIndex(prefix_width, context_width)
        self.recorded = Recorded(prefix_width, context_width)
        self.wide = wide
        self.keys = WIDE if wide else NEAR
        self.values = st.one_of(st.integers(0, 2), WIDE) if wide else st.integers(0, 2)
        self.exact = True

    def add(self, rows: list[Row]) -> None:
        prefix, lo, hi, context = self.recorded.split(rows)
        with mock.patch.object(record_contents, "TAIL_RECORDS", SMALL_TAIL):
            self.index.record(prefix, lo, hi, context)
        for column in (*prefix, lo, hi, *context):
            column[:] = 99  # the caller may use its arrays again
        self.recorded.rows += rows

    @rule(data=st.data())
    def record(self, data: st.DataObject) -> None:
        at = self.recorded.prefix_width
        row = st.tuples(
            st.tuples(*[self.values] * at),
            st.tuples(self.keys, self.keys).map(lambda pair: tuple(sorted(pair))),
            st.tuples(*[self.values] * (self.recorded.width - at - 2)),
        ).map(lambda parts: parts[0] + parts[1] + parts[2])
        self.add(data.draw(st.lists(row, max_size=6)))

    @rule(seed=st.integers(0, 2**32 - 1), n_rows=st.sampled_from([1, 3, 8, 20, 60]))
    def record_many(self, seed: int, n_rows: int) -> None:
        random = Random(seed)
        at = self.recorded.prefix_width
        rows = []
        for _ in range(n_rows):
            row = [self.random_value(random) for _ in range(self.recorded.width)]
            start = random.choice([KEY_MIN, *[self.random_key(random)] * 6])
            stop = random.choice([KEY_MAX, start, *[self.random_key(random)] * 6])
            row[at : at + 2] = sorted([start, stop])
            rows.append(tuple(row))
        self.add(rows + random.choices(rows, k=n_rows // 4))

    def random_key(self, random: Random) -> int:
        if self.wide and random.random() < 0.3:
            return random.choice([*EXTREMES, random.randint(KEY_MIN, KEY_MAX)])
        return random.randint(-12, 12)

    def random_value(self, random: Random) -> int:
        if self.wide and random.random() < 0.2:
            return random.choice(EXTREMES)
        return random.randint(0, 2)

    @rule(seed=st.integers(0, 2**32 - 1))
    def stab(self, seed: int) -> None:
        random = Random(seed)
        at = self.recorded.prefix_width
        queries = [
            (*[self.random_value(random) for _ in range(at)], self.random_key(random)) for _ in range(8)
        ]
        for row in random.choices(self.recorded.rows, k=30) if self.recorded.rows else []:
            key = random.choice(row[at : at + 2]) + random.randint(-1, 1)
            queries.append((*row[:at], min(max(key, KEY_MIN), KEY_MAX)))
        for query, contexts in zip(queries, stabbed(self.index, queries), strict=True):
            expected = self.recorded.contexts(query[:-1], query[-1])
            assert set(contexts) == expected if self.exact else set(contexts) >= expected

    saved: tuple[np.ndarray, list[Row]] | None = None

    @rule(seed=st.integers(0, 2**32 - 1))
    def find(self, seed: int) -> None:
        """Places of some records, to be dropped now or later."""
        random = Random(seed)
        at = self.recorded.prefix_width
        rows = random.choices(self.recorded.rows, k=4) if self.recorded.rows else []
        queries = sorted({(*row[:at], random.choice(row[at : at + 2])) for row in rows})
        columns = columns_of(queries, at + 1)
        found = self.index.find(columns[:-1], columns[-1])
        places = found[M_RUN : M_RECORD + 1]
        kept = [n for n in range(found.shape[1]) if random.random() < 0.6]
        self.saved = (
            np.ascontiguousarray(places[:, kept]),
            [(*queries[found[M_QUERY, n]][:at], *found[M_LO:, n].tolist()) for n in kept],
        )

    @precondition(lambda self: self.saved is not None)
    @rule(again=st.booleans(), fresh=st.booleans(), seed=st.integers(0, 2**32 - 1))
    def drop(self, again: bool, fresh: bool, seed: int) -> None:
        """What was found now goes; of what was found before, what is still in its place."""
        if fresh:
            self.find(seed)
        assert self.saved is not None
        places, rows = self.saved
        _, first = np.unique(places, axis=1, return_index=True)
        dropped = Counter(rows[number] for number in first.tolist())
        before = Counter(self.decoded().rows)
        for _ in range(1 + again):
            self.index.drop(*places)
        after = Counter(self.decoded().rows)
        assert after == before - dropped if fresh else (after <= before and before - after <= dropped)
        self.recorded.rows = list(after.elements())
        self.exact = True

    @rule()
    def set_apart(self) -> None:
        before = Counter(self.decoded().rows)
        self.index.set_apart()
        assert set(self.decoded().rows) == set(before)
        assert len(self.index.old_serials) == self.index.n_runs

    @rule()
    def renew(self) -> None:
        """What was joined over gaps is as sharp as before: it is recorded anew as it came."""
        self.index.set_apart()
        rows, self.recorded.rows = list(dict.fromkeys(self.recorded.rows)), []
        self.add(rows)
        self.index.drop_old()
        assert not len(self.index.old_serials)
        assert sorted(self.decoded().rows) == sorted(rows)
        self.exact = True

    @rule(part=st.floats(0, 1))
    def shrink(self, part: float) -> None:
        before = self.index.nbytes
        joined = self.index.joined_records
        self.index.shrink(int(before * part))
        assert self.index.nbytes <= before * part or any(
            0 < rows.shape[1] == len(self.decoded(rows).families())
            for rows in self.index._contents.generations()
        ), "either what is old or what is not has one record each"
        self.exact = self.exact and self.index.joined_records == joined
        self.keeps_coverage()

    @precondition(lambda self: self.recorded.rows)
    @rule()
    def shrink_to_one_record_each(self) -> None:
        self.renew()
        joined = self.index.joined_records
        self.index.shrink(0)
        families = self.recorded.families()
        assert self.index.n_records == len(families)
        assert self.as_families() == {
            family: [(intervals[0][0], intervals[-1][1])] for family, intervals in families.items()
        }
        self.exact = self.exact and self.index.joined_records == joined

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.stab(0)
            self.renew()
            self.stab(1)
            self.shrink(0.5)
            self.stab(2)
            self.holds()

    def as_families(self) -> dict[tuple[Row, Row], list[tuple[int, int]]]:
        return self.decoded().families()

    def decoded(self, rows: np.ndarray | None = None) -> Recorded:
        if rows is None:
            prefix, lo, hi, context = self.index.records()
            rows = np.array([*prefix, lo, hi, *context])
        decoded = Recorded(self.index.prefix_width, self.index.context_width)
        decoded.rows = [tuple(row) for row in rows.reshape(decoded.width, -1).T.tolist()]
        return decoded

    def keeps_coverage(self) -> None:
        kept = self.as_families()
        for family, intervals in self.recorded.families().items():
            for lo, hi in intervals:
                assert any(first <= lo and hi <= last for first, last in kept[family])

    @precondition(lambda self: hasattr(self, "index"))
    @invariant()
    def holds(self) -> None:
        self.index.check_invariants()
        decoded = self.decoded()
        assert len(decoded.rows) == self.index.n_records
        assert self.index.n_records <= len(self.recorded.rows)
        if self.exact:
            assert decoded.families() == self.recorded.families()


TestSensitivityMachine = SensitivityMachine.TestCase
TestSensitivityMachine.settings = settings(stateful_step_count=12)


@given(st.lists(st.tuples(st.integers(-3, 3), WIDE, st.integers(0, 1)), min_size=1, max_size=60))
def test_oracle_prefix_codes(rows: list[Row]) -> None:
    codes, distinct = number_prefixes(columns_of(rows, 3), len(rows))
    expected = sorted(set(rows))
    assert [expected[code] for code in codes.tolist()] == rows
    assert list(zip(*(column.tolist() for column in distinct), strict=True)) == expected


def test_empty_index() -> None:
    index = SensitivityIndex(2, 1)
    index.set_apart()
    index.drop_old()
    index.shrink(0)
    index.record([np.empty(0, np.int64)] * 2, np.empty(0, np.int64), np.empty(0, np.int64), [np.empty(0)])
    index.check_invariants()
    assert (index.n_records, index.n_runs, index.nbytes) == (0, 0, 0)
    queries, context = matched(index, [np.array([1]), np.array([2])], np.array([3]))
    assert len(queries) == len(context[0]) == 0
    assert [len(column) for column in (*index.records()[0], index.records()[1])] == [0, 0, 0]


def test_more_matches_than_expected_and_duplicates_across_runs() -> None:
    index = SensitivityIndex(0, 1)
    many = np.arange(700)
    for _ in range(2):
        index.record([], many * 0, many * 0 + 9, [many])
    assert index.n_runs == 1
    index.record([], many[:5] * 0, many[:5] + 4, [many[:5]])
    queries, context = matched(index, [], np.array([4, 10, 0]))
    assert np.bincount(queries).tolist() == [705, 0, 705]
    assert sorted(context[0].tolist()) == sorted([*range(700), *range(5)] * 2)
    index.shrink(index.nbytes - 1)
    queries, _ = matched(index, [], np.array([4, 10, 0]))
    assert np.bincount(queries).tolist() == [700, 0, 700]


def test_a_stab_steps_over_the_dead() -> None:
    """Of 4,000 records all but one die: what is looked at is no more than for a few."""
    index = SensitivityIndex(0, 1)
    many = np.arange(4000)
    index.record([], many * 0, many * 0 + 9, [many])
    found = index.find([], np.array([9]))
    for part in (slice(0, 2000), slice(1990, 3999)):
        index.drop(found[M_RUN, part].copy(), found[M_RECORD, part].copy())
        index.check_invariants()
    assert (index.n_records, index.n_dead) == (1, 3999)
    for key in (9, 0):
        before = index.touched
        _, context = matched(index, [], np.array([key]))
        assert context[0].tolist() == [3999]
        assert index.touched - before < 100
    index.record([], many[:600], many[:600], [many[:600]])
    index.check_invariants()
    assert (index.n_records, index.n_dead) == (601, 3999)
    bytes_before = index.nbytes
    renew(index)
    assert (index.n_records, index.n_dead) == (601, 0) and index.nbytes < bytes_before
    found = index.find([], np.arange(4000))
    index.drop(found[M_RUN].copy(), found[M_RECORD].copy())
    assert index.find([], np.array([9])).shape[1] == 0
    renew(index)
    assert (index.n_records, index.n_runs, index.nbytes) == (0, 0, 0)


def test_a_record_whose_tail_was_packed_since_it_was_found_stays() -> None:
    """And one whose run was merged: their numbers are other records' by then."""
    index = SensitivityIndex(0, 1)
    row = np.array([50])
    index.record([], row, row + 9, [row])
    for added in (1000, 2000):
        found = index.find([], np.array([55]))
        index.record([], np.arange(added), np.arange(added) + 9, [np.arange(added)])
        before = sorted(zip(*(column.tolist() for column in index.records()[1:3]), strict=True))
        index.drop(found[M_RUN].copy(), found[M_RECORD].copy())
        index.check_invariants()
        assert sorted(zip(*(column.tolist() for column in index.records()[1:3]), strict=True)) == before


def test_smallest_gaps_are_joined_first() -> None:
    index = SensitivityIndex(1, 0)
    lo = np.array([0, 10, 30, 35, 90, 7])
    index.record([np.array([1, 1, 1, 1, 1, 2])], lo, lo + 2, [])
    for n_left in (5, 4, 3, 2):
        bits = index.nbytes - 1
        while index.n_records > n_left:
            index.shrink(bits)
            bits -= 1
        kept = sorted(zip(index.records()[1].tolist(), index.records()[2].tolist(), strict=True))
        if index.n_records == 5:
            assert kept == [(0, 2), (7, 9), (10, 12), (30, 37), (90, 92)]
        if index.n_records == 4:
            assert kept == [(0, 12), (7, 9), (30, 37), (90, 92)]
    assert kept == [(0, 92), (7, 9)]
    assert index.joined_records == 4


def test_of_equal_gaps_no_more_are_joined_than_needed() -> None:
    starts = 10 * np.arange(20)
    rows = np.array([starts, starts + 3])
    for n_kept in (1, 7, 19, 20):
        joined = join_smallest_gaps(rows, 0, n_kept)
        assert joined.shape[1] == n_kept
        assert (joined[0, 0], joined[1, -1]) == (0, 193)


@pytest.mark.compiled
def test_bytes_per_record() -> None:
    rng = np.random.default_rng(3)
    n = 100_000

    def size(prefix: np.ndarray, lo: np.ndarray, hi: np.ndarray, context: np.ndarray) -> float:
        index = SensitivityIndex(1, 1)
        index.record([prefix], lo, hi, [context])
        one_by_one = SensitivityIndex(1, 1)
        for start in range(0, n, 1000):
            part = slice(start, start + 1000)
            one_by_one.record([prefix[part]], lo[part], hi[part], [context[part]])
        assert one_by_one.nbytes <= index.nbytes * 1.2
        return index.nbytes / n

    # Keys of 17 bits.
    prefix, context = rng.integers(0, 1200, n), rng.integers(0, 1 << 17, n)
    ends = np.sort(rng.integers(0, 1 << 17, (2, n)), axis=0)
    ends[0, ::20], ends[1, ::30] = KEY_MIN, KEY_MAX
    assert size(prefix, ends[0], ends[1], context) <= 7.2
    # A prefix for each record.
    assert size(np.arange(n), ends[0], ends[1], context) <= 12
    # Keys of 64 bits; intervals reach from a key to the next, as a search leaves them.
    keys = np.sort(rng.integers(KEY_MIN, KEY_MAX, n + 1))
    wide = rng.integers(KEY_MIN, KEY_MAX, n)
    lo, hi = keys[:-1].copy(), keys[1:].copy()
    lo[::20], hi[::30] = KEY_MIN, KEY_MAX
    assert size(rng.integers(KEY_MIN, KEY_MAX, 1200)[prefix], lo, hi, wide) <= 24
    # Intervals from anywhere to anywhere.
    lo, hi = np.sort(rng.integers(KEY_MIN, KEY_MAX, (2, n)), axis=0)
    lo[::20], hi[::30] = KEY_MIN, KEY_MAX
    assert size(prefix, lo, hi, wide) <= 24.9


@pytest.mark.compiled
@pytest.mark.parametrize("n_prefixes", [1, 7, 3000, 40_000])
@pytest.mark.parametrize("wide", [False, True])
def test_oracle_sorting_of_many(n_prefixes: int, wide: bool) -> None:
    """All ways of the sort: one bucket or many, short and long ones, one word a row or several."""
    rng = np.random.default_rng(n_prefixes)
    n = 40_000
    factor = 2**43 + 1 if wide else 1
    prefix = rng.integers(0, n_prefixes, n) * factor
    lo = rng.integers(0, 1000, n) * factor
    hi = lo + rng.integers(0, 50, n) * factor
    context = rng.integers(0, 4, n) * factor
    index = SensitivityIndex(1, 1)
    index.record([prefix], lo, hi, [context])
    index.check_invariants()
    expected = np.unique(np.array([prefix, lo, hi, context]), axis=1)
    (one,), *ends, (other,) = index.records()
    assert np.array_equal(np.array([one, *ends, other]), expected)
    assert code_bits_in_row(n, n_prefixes) == max(0, (n_prefixes - 1).bit_length() - 3)


def test_bad_input_leaves_the_index_as_it_was() -> None:
    index = SensitivityIndex(1, 1)
    one, two = np.array([1]), np.array([1, 2])
    index.record([one], one, one, [one])
    with pytest.raises(KeyOrderError, match="1 intervals end before they start"):
        index.record([two], np.array([1, 5]), np.array([1, 4]), [two])
    many = np.arange(1000)
    with pytest.raises(KeyOrderError, match="999 intervals end before they start"):
        index.record([many], many, many * 0, [many])
    with pytest.raises(ValueError, match="2 prefix and 1 context columns for an index of 1 and 1"):
        index.record([one, one], one, one, [one])
    with pytest.raises(ValueError, match="a column has 2 rows where lo has 1"):
        index.record([one], one, two, [one])
    assert index.n_records == 1
    index.check_invariants()


def test_input_may_be_read_only_or_strided() -> None:
    block = np.arange(4000).reshape(1000, 4)
    block.flags.writeable = False
    index = SensitivityIndex(1, 1)
    index.record([block[:, 0]], block[:, 1], block[:, 2], [block[:, 3]])
    queries, context = matched(index, [block[:3, 0]], block[:3, 1])
    assert queries.tolist() == [0, 1, 2]
    assert context[0].tolist() == [3, 7, 11]
