"""Maintained count, sum and avg by group: stateful, and by name what floating-point sums get wrong.

What is kept of a group must also be what a single step of its multiset would leave.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from lftj.aggregates import limb_pool
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from maintenance.groups import whole_sums
from maintenance.groups.grouped import accumulator_for
from support.maintained_sums import Change, Maintained, exact

pytestmark = pytest.mark.kernel

MAX = 1.7976931348623157e308
TINY = 5e-324

FLOATS = st.one_of(st.floats(), st.sampled_from([0.0, MAX, -MAX, TINY, -TINY, 1e16, 1.0, math.inf, math.nan]))
INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**63 - 1, -(2**63), 2**32, 2**31, -(2**31)]))
DECIMAL = pa.decimal128(38, 2)
DECIMALS = st.one_of(
    st.integers(-300, 300), st.sampled_from([10**38 - 1, 1 - 10**38, 5 * 10**37, 10**20])
).map(lambda units: Decimal(f"{units}e-2"))
SMALL = st.integers(-999_999_999, 999_999_999).map(lambda units: Decimal(f"{units}e-2"))

KINDS = {
    "count": ("count", pa.int64(), pa.int64(), INTEGERS),
    "sum float": ("sum", pa.float64(), pa.float64(), FLOATS),
    "avg float": ("avg", pa.float64(), pa.float64(), FLOATS),
    "sum float32": ("sum", pa.float32(), pa.float64(), st.floats(width=32)),
    "sum integer": ("sum", pa.int64(), pa.int64(), INTEGERS),
    "avg integer": ("avg", pa.int64(), pa.float64(), INTEGERS),
    "sum decimal": ("sum", DECIMAL, DECIMAL, DECIMALS),
    "avg decimal": ("avg", DECIMAL, pa.float64(), DECIMALS),
    "sum small decimal": ("sum", pa.decimal32(9, 2), pa.decimal128(38, 2), SMALL),
    "avg small decimal": ("avg", pa.decimal64(18, 2), pa.float64(), SMALL),
    "sum wide decimal": ("sum", pa.decimal256(76, 2), pa.decimal256(76, 2), DECIMALS),
    "sum integer as decimal": ("sum", pa.int64(), pa.decimal128(38, 0), INTEGERS),
    "sum decimal as integer": ("sum", pa.decimal128(38, 0), pa.int64(), INTEGERS.map(Decimal)),
}


class SumsMachine(RuleBasedStateMachine):
    @initialize(kind=st.sampled_from(sorted(KINDS)), keys=st.sampled_from([1, 1, 0]))
    def start(self, kind: str, keys: int) -> None:
        self.maintained = Maintained(*KINDS[kind][:3], keys)
        self.values = KINDS[kind][3]
        self.key = st.integers(-1, 2) if keys else st.just(0)

    @rule(data=st.data(), keep=st.sampled_from([True, True, False]))
    def change(self, data: st.DataObject, keep: bool) -> None:
        changes = data.draw(st.lists(st.tuples(self.key, self.values, st.integers(1, 3)), max_size=6))
        if self.maintained.multiset:
            present = sorted(self.maintained.multiset.items())
            erased = data.draw(st.lists(st.sampled_from(present), max_size=6, unique_by=lambda item: item[0]))
            value_of = self.maintained.types["v"].domain.decode
            for (key, code), weight in erased:
                (value,) = value_of(np.array([code]), self.maintained.value).to_pylist()
                changes.append((key, value, -data.draw(st.integers(1, weight))))
        self.maintained.step(data.draw(st.permutations(changes)), keep)

    @rule()
    def erase_all(self) -> None:
        multiset, domain = self.maintained.multiset, self.maintained.types["v"].domain
        values = domain.decode(np.array([code for _, code in multiset], np.int64), self.maintained.value)
        self.maintained.step(
            [
                (key, value, -weight)
                for ((key, _), weight), value in zip(multiset.items(), values.to_pylist(), strict=True)
            ]
        )
        assert self.maintained.groups.n_groups == 0
        assert self.maintained.n_limbs == 0

    @rule()
    def tidy(self) -> None:
        kept = self.maintained.contents()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("maintenance.groups.grouped._LEAST_TIDIED", 1)
            self.maintained.groups.tidy()
        self.maintained.groups.check_invariants()
        assert self.maintained.contents() == kept
        assert self.maintained.groups._table.n_rows <= 2 * len(kept)

    def teardown(self) -> None:
        if hasattr(self, "maintained"):
            self.maintained.check_path_independence()


TestSumsMachine = SumsMachine.TestCase
TestSumsMachine.settings = settings(stateful_step_count=12)


def floats() -> Maintained:
    return Maintained("sum", pa.float64(), pa.float64())


def value_of(maintained: Maintained, key: int = 0) -> float:
    code = maintained.contents()[key][1]
    return float(maintained.declared.domain.decode(np.array([code]), maintained.result)[0].as_py())


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ((1.1e31, 1.0, -1.1e31, 2.5, -0.125), 3.375),
        ((1e308, 1e308, -1e308), 1e308),
        ((MAX, MAX, -MAX, -MAX), 0.0),
        ((MAX, MAX), math.inf),
        ((TINY, TINY, -TINY, 2.0**-1022), 2.0**-1022 + TINY),
        ((1.0, TINY, -1.0), TINY),
        ((-0.0, -0.0), 0.0),
        ((0.1,) * 10, 1.0),
    ],
)
def test_one_by_one_and_back(values: tuple[float, ...], wanted: float) -> None:
    """Every order of insertion gives the same bits; taken out again, each is as if it had not been there."""
    for order in itertools.islice(itertools.permutations(values), 24):
        maintained = floats()
        for value in order:
            maintained.step([(0, value, 1)])
        assert value_of(maintained).hex() == wanted.hex()
        for value in order:
            maintained.step([(0, value, -1)])
        assert maintained.contents() == {}
        assert maintained.sums.n_limbs == 0


def test_the_lost_small_terms() -> None:
    """1.1e31 goes again: the small terms that were added beside it are all there."""
    maintained = floats()
    maintained.step([(0, 1.1e31, 1)])
    small = [(0, value, 1) for value in (0.5, 1e-300, -7.25, 3.0)]
    for change in small:
        maintained.step([change])
    maintained.step([(0, -1.1e31, 1)])
    assert value_of(maintained) == math.fsum([0.5, 1e-300, -7.25, 3.0])
    maintained.step([(0, -1.1e31, -1), (0, 1.1e31, -1)])
    assert value_of(maintained) == math.fsum([0.5, 1e-300, -7.25, 3.0])


def test_infinities_and_nan_come_and_go() -> None:
    for function in ("sum", "avg"):
        maintained = Maintained(function, pa.float64(), pa.float64())
        values = []
        for change in (
            (0, 2.5, 1),
            (0, math.inf, 2),
            (0, -math.inf, 1),
            (0, math.nan, 1),
            (0, -math.inf, -1),
            (0, math.nan, -1),
            (0, math.inf, -2),
        ):
            maintained.step([change])
            values.append(repr(value_of(maintained)))
        assert values == ["2.5", "inf", "nan", "nan", "nan", "inf", "2.5"]
        assert maintained.sums._specials.nbytes == 0, "what is not there takes no memory"


def test_specials_move_with_their_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintenance.groups.grouped._LEAST_TIDIED", 1)
    maintained = floats()
    maintained.step([(0, math.inf, 1), (1, 1.0, 1), (2, math.nan, 2), (2, 0.5, 1), (3, 7.0, 1)])
    maintained.step([(0, math.inf, -1), (1, 1.0, -1), (3, 7.0, -1)])
    kept = maintained.contents()
    maintained.groups.tidy()
    maintained.groups.check_invariants()
    assert maintained.groups._table.n_rows == 1
    assert maintained.contents() == kept
    maintained.step([(2, math.nan, -2), (5, -math.inf, 1)])
    assert (value_of(maintained, 2), value_of(maintained, 5)) == (0.5, -math.inf)


def test_averages_of_integers_are_that_when_slots_were_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintenance.groups.grouped._LEAST_TIDIED", 1)
    maintained = Maintained(*KINDS["avg integer"][:3])
    maintained.step([(0, 1, 1), (1, 2, 1), (2, 3, 1), (2, 4, 1)])
    maintained.step([(0, 1, -1), (1, 2, -1)])
    maintained.groups.tidy()
    assert maintained.groups._table.n_rows == 1
    maintained.step([(2, 8, 1), (5, 7, 1)])
    assert (value_of(maintained, 2), value_of(maintained, 5)) == (5.0, 7.0)


@pytest.mark.parametrize("value", [2**31, -(2**31), 2**31 - 1, -(2**31) - 1, 2**32, -(2**32), 2**63 - 1])
def test_integers_at_the_ends_of_limbs(value: int) -> None:
    for kind in ("sum integer", "avg integer"):
        maintained = Maintained(*KINDS[kind][:3])
        for part in (value, 1, -1):
            maintained.step([(0, part, 1)])
        maintained.check_path_independence()


def test_int64_overflow_names_the_group_and_leaves_all() -> None:
    maintained = Maintained("sum", pa.int64(), pa.int64())
    maintained.step([(3, 2**62, 1), (4, 7, 1)])
    kept = maintained.contents()
    changes: list[Change] = [(3, 2**62, 1), (4, -9, 1), (5, 1, 1)]
    keys, weights = np.array([3, 4, 5]), np.ones(3, np.int64)
    with pytest.raises(RangeError) as caught:
        maintained.stage(keys, maintained.codes(changes), weights)
    assert str(caught.value) == (
        "total[3] = sum(v) is 9223372036854775808, which does not fit int64;"
        " a column of decimal128(38, 0) or float64 can have larger sums"
    )
    maintained.groups.drop()
    maintained.groups.check_invariants()
    assert maintained.contents() == kept
    maintained.step([(3, -1, 1), *changes])  # the same, with one that makes room


def test_duration_overflow() -> None:
    maintained = Maintained("sum", pa.duration("us"), pa.duration("us"))
    with pytest.raises(RangeError, match=r"total\[0\] = sum\(v\) is 9223372036854775808, .* duration\[us\]"):
        maintained.stage(np.zeros(2, np.int64), np.array([2**62, 2**62]), np.ones(2, np.int64))
    maintained.groups.drop()
    assert maintained.stage(np.array([0]), np.array([5]), np.array([1]))[0][1].microseconds == 5


def test_decimal_overflow() -> None:
    maintained = Maintained("sum", DECIMAL, DECIMAL)
    most = Decimal((0, (9,) * 38, -2))
    maintained.step([(0, most, 1)])
    codes = maintained.codes([(0, Decimal("0.01"), 1)])
    with pytest.raises(
        RangeError, match=r"total\[0\] = sum\(v\) is 1(0){36}\.00, which .* decimal128\(38, 2\)"
    ):
        maintained.stage(np.array([0]), codes, np.array([1]))
    maintained.groups.drop()
    maintained.step([(0, Decimal("0.01"), 1), (0, most, -1), (0, Decimal("-7.25"), 1)])
    assert value_of(maintained) == -7.24


def test_decimals_beyond_a_code() -> None:
    wide = pa.decimal256(76, 0)
    maintained = Maintained("sum", wide, wide)
    codes = maintained.codes([(0, Decimal(10**38 - 1), 1), (1, Decimal(1), 1)])
    with pytest.raises(RangeError, match=r"^total\[1\] = sum\(v\) is 1(0)+: .* too many for a key"):
        maintained.stage(np.array([0, 1, 1]), codes[[1, 0, 1]], np.ones(3, np.int64))


def test_stage_twice_is_a_bug() -> None:
    maintained = floats()
    empty = np.empty(0, np.int64)
    assert maintained.stage(empty, empty, empty) == {}
    with pytest.raises(AssertionError, match="kept or dropped first"):
        maintained.stage(empty, empty, empty)
    maintained.groups.keep()
    assert maintained.stage(np.array([0, 0]), np.array([4, 4]), np.array([1, -1])) == {}
    maintained.groups.keep()
    assert maintained.groups._table.n_rows == 0, "nothing net, nothing visible"
    with pytest.raises(AssertionError, match="had not been there"):
        maintained.stage(np.array([0]), np.array([4]), np.array([-1]))
    maintained.groups.drop()
    assert maintained.groups._table.n_rows == 0


def test_too_many_assignments() -> None:
    count = Maintained("count", pa.int64(), pa.int64())
    one = np.array([0])
    assert count.stage(one, one, np.array([2**61])) == {0: (None, 2**61)}
    count.groups.keep()
    with pytest.raises(RangeError, match=r"^total = count\(\): there are more than 2\*\*62 assignments"):
        count.stage(one, one, np.array([2**61]))


def test_accumulators_by_function() -> None:
    maintained = floats()
    head, types = maintained.head, maintained.types
    call = Aggregate("max", (Variable("v"),))
    with pytest.raises(ValueError, match="max has no accumulator of sums"):
        accumulator_for(CheckedHead(head.relation, head.variables, call, head.schema, head.span), types)
    with pytest.raises(ValueError, match="no aggregate"):
        accumulator_for(CheckedHead(head.relation, head.variables, None, head.schema, head.span), types)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4),
    st.one_of(st.integers(1, 2**33), st.sampled_from((2**31 - 1, 2**31, 2**59 - 1, 2**59))),
)
def test_whole_sums_are_exact_or_refused(values: list[int], weight: int) -> None:
    """Values and weights of all sizes, in one step and back in two."""
    maintained = Maintained("sum", pa.int64(), pa.int64())
    codes, zeros = maintained.codes([(0, value, 1) for value in values]), np.zeros(len(values), np.int64)
    weights, total = np.full(len(values), weight), sum(values) * weight
    if not -(2**63) <= total < 2**63:
        with pytest.raises(RangeError, match=re.escape(f"total[0] = sum(v) is {total}, which does not fit")):
            maintained.stage(zeros, codes, weights)
        return
    assert maintained.stage(zeros, codes, weights) == {0: (None, total)}
    maintained.groups.keep()
    maintained.groups.check_invariants()
    left = sum(values[1:]) * weight
    if len(values) > 1 and -(2**63) <= left < 2**63:
        change = maintained.stage(zeros[:1], codes[:1], -weights[:1])
        assert change == ({} if left == total else {0: (total, left)})
        maintained.groups.keep()
        codes, zeros, weights = codes[1:], zeros[1:], weights[1:]
    maintained.stage(zeros, codes, -weights)
    maintained.groups.keep()
    assert maintained.n_limbs == 0


def test_carries_between_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carrying after every other row changes nothing that is kept."""
    found = []
    for carry_rows in (1, 2, 2**22):
        monkeypatch.setattr(limb_pool, "_CARRY_ROWS", carry_rows)
        monkeypatch.setattr(whole_sums, "CARRY_ROWS", carry_rows)
        for kind in ("sum float", "avg integer", "sum integer"):
            maintained = Maintained(*KINDS[kind][:3])
            values: Iterable[Any] = (MAX, TINY, -1.0, 1e30) if kind == "sum float" else (2**61 - 1, -5, 17)
            maintained.step([(0, value, 3) for value in values])
            found.append((kind, maintained.contents()))
    assert found[0:3] == found[3:6] == found[6:9]


def random_doubles(rng: np.random.Generator, n_values: int) -> np.ndarray:
    """Finite doubles of all exponents, subnormals among them."""
    bits = rng.integers(0, 2**64, n_values, dtype=np.uint64)
    bits[bits >> np.uint64(52) & np.uint64(0x7FF) == 0x7FF] &= np.uint64(2**62 - 1)
    return bits.view(np.float64)


@pytest.mark.compiled
def test_a_million_inserts_and_erasures() -> None:
    """In random order, over the whole range of doubles: at the end not a limb is left."""
    n_values, batch = 1_000_000, 5_000
    rng = np.random.default_rng(17)
    maintained = floats()
    domain = maintained.types["v"].domain
    codes = domain.encode(pa.array(random_doubles(rng, n_values)))
    keys = rng.integers(0, 1000, n_values)
    maintained.step([(0, 0.0, 1)])  # group 0 stays
    times = np.sort(rng.random((n_values, 2)), axis=1).T.ravel()  # a value comes before it goes
    events = np.argsort(times)
    values, most_limbs = {0: 0.0}, 0
    for start in range(0, len(events), batch):
        rows, weights = events[start : start + batch] % n_values, np.ones(batch, np.int64)
        weights[events[start : start + batch] >= n_values] = -1
        for key, (old, new) in maintained.stage(keys[rows], codes[rows], weights).items():
            assert repr(values.pop(key, None)) == repr(old)
            if new is not None:
                values[key] = new
        maintained.groups.keep()
        maintained.groups.tidy()
        most_limbs = max(most_limbs, maintained.sums.n_limbs)
        if start % 500_000 == 0:
            maintained.groups.check_invariants()
            now = times[events[start + batch - 1]]
            present = (times[:n_values] <= now) & (now < times[n_values:])
            for key in range(1, 1000, 97):
                members = domain.decode(codes[present & (keys == key)], pa.float64()).to_pylist()
                assert repr(values.get(key)) == repr(exact(members, False) if members else None)
    assert values == {0: 0.0}
    assert repr(values[0]) == "0.0"
    assert maintained.groups.n_groups == 1
    assert maintained.sums.n_limbs == 0
    assert 1000 * 60 < most_limbs <= 1000 * 68, "all exponents at once: all limbs"
    maintained.groups.check_invariants()
    maintained.step([(0, 0.0, -1)])
    assert maintained.contents() == {}


@pytest.mark.compiled
def test_memory_follows_the_exponents_in_use() -> None:
    """Per group a few limbs for values of similar size, and 66 only for one that has all sizes."""
    n_groups = 20_000
    maintained = floats()
    rng = np.random.default_rng(5)
    keys, ones = np.repeat(np.arange(n_groups), 20), np.ones(20 * n_groups, np.int64)
    codes = maintained.types["v"].domain.encode(pa.array(rng.standard_normal(len(keys))))
    maintained.stage(keys, codes, ones)
    maintained.groups.keep()
    assert maintained.sums.n_limbs <= 4 * n_groups
    assert maintained.groups.nbytes <= 100 * n_groups
    similar = maintained.sums.n_limbs
    extremes = maintained.codes([(n_groups, MAX, 1), (n_groups, TINY, 1)])
    maintained.stage(np.full(2, n_groups), extremes, ones[:2])
    maintained.groups.keep()
    assert 64 <= maintained.sums.n_limbs - similar <= 66
    maintained.stage(keys, codes, -ones)
    maintained.groups.keep()
    maintained.groups.tidy()
    maintained.groups.check_invariants()
    assert maintained.sums.n_limbs <= 66
    assert maintained.groups.nbytes <= 10_000


@pytest.mark.compiled
def test_a_number_that_grows_and_shrinks_leaves_no_garbage() -> None:
    """One group's limbs come and go ten thousand times: the pool stays small."""
    maintained = floats()
    codes = maintained.codes([(0, 1.0, 1), (0, MAX, 1), (0, TINY, 1)])
    zero, one = np.array([0]), np.array([1])
    maintained.stage(zero, codes[:1], one)
    maintained.groups.keep()
    for step in range(10_000):
        maintained.stage(zero, codes[1 + step // 2 % 2 : 2 + step // 2 % 2], -one if step % 2 else one)
        maintained.groups.keep()
    maintained.groups.check_invariants()
    assert value_of(maintained) == 1.0
    assert maintained.sums.n_limbs == 1
    assert maintained.sums.nbytes <= 4 * 4096
