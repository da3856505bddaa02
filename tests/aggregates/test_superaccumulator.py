"""Superaccumulator: oracle (Fraction, math.fsum) and laws, over small groups; its speed once."""

from __future__ import annotations

import contextlib
import itertools
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lftj.aggregates import superaccumulator
from lftj.aggregates.sum_values import quotients
from lftj.aggregates.superaccumulator import average_floats, sum_floats, sum_integers

pytestmark = pytest.mark.kernel

MAX = 1.7976931348623157e308
TINY = 5e-324

finite = st.floats(allow_nan=False, allow_infinity=False)
# Bits taken at random reach all exponents evenly; hypothesis' own floats prefer nice ones.
any_exponent = (
    st.integers(0, 2**64 - 1)
    .map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
    .filter(math.isfinite)
)
floats = st.one_of(
    finite, any_exponent, st.sampled_from([0.0, -0.0, MAX, -MAX, TINY, -TINY, 2.0**-1022, 1e16, 1.0])
)
small_weights = st.integers(-3, 3)
weights64 = st.one_of(
    small_weights, st.sampled_from([1023, 1024, -1023, -1024, 2**40 - 1]), st.integers(-(2**62), 2**62)
)


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def same(found: float, wanted: float) -> bool:
    """Equal to the last bit, except that an exact zero is +0.0 here."""
    return (
        math.isnan(found)
        if math.isnan(wanted)
        else struct.pack("<d", found) == struct.pack("<d", wanted + 0.0)
    )


def one_sum(values: list[float], weights: list[int] | None = None) -> float:
    ones = [1] * len(values) if weights is None else weights
    return float(sum_floats(np.array(values, float), np.array(ones, np.int64), np.array([0, len(values)]))[0])


def one_average(values: list[float], weights: list[int] | None = None) -> float:
    ones = [1] * len(values) if weights is None else weights
    return float(
        average_floats(np.array(values, float), np.array(ones, np.int64), np.array([0, len(values)]))[0]
    )


def words_of(integers: list[int], n_words: int) -> np.ndarray:
    data = b"".join(integer.to_bytes(4 * n_words, "little", signed=True) for integer in integers)
    return np.frombuffer(data, np.uint32).reshape(len(integers), n_words)


def integers_of(words: np.ndarray) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little", signed=True) for row in words]


@given(st.lists(floats, max_size=30))
@example([1e308, 1e308, -1e308])
@example([1.1e31, 1.0, -1.1e31, 2.5, -0.125])
@example([0.1] * 10)
@example([TINY, TINY, -TINY])
@example([2.0**-1022, -TINY])
@example([MAX, MAX / 2.0**54])  # a tie that rounds to infinity
@example([MAX, math.nextafter(MAX / 2.0**54, 0)])  # just below the tie
@example([1.0, 2.0**-53])  # a tie, to even
@example([1.0, 2.0**-53, TINY])  # just above it
@example([-0.0, -0.0])
def test_oracle_sum(values: list[float]) -> None:
    wanted = nearest(sum(map(Fraction, values), Fraction(0)))
    assert same(one_sum(values), wanted)
    with contextlib.suppress(OverflowError):  # fsum gives up where a partial sum is too large
        assert same(one_sum(values), math.fsum(values))


@given(st.lists(st.tuples(floats, weights64), max_size=12))
@example([(MAX, 2**62), (MAX, 2**62), (-MAX, 2**62), (TINY, 1)])
@example([(1.5, -(2**63))])
def test_oracle_weighted_sum(rows: list[tuple[float, int]]) -> None:
    wanted = nearest(sum((Fraction(value) * weight for value, weight in rows), Fraction(0)))
    assert same(one_sum([value for value, _ in rows], [weight for _, weight in rows]), wanted)


@given(st.lists(st.tuples(floats, st.one_of(small_weights, weights64)), min_size=1, max_size=8))
@example([(TINY, 1), (0.0, 1)])  # half of the smallest double: to even, zero
@example([(TINY, 3), (0.0, 1)])
@example([(MAX, 1), (MAX, 1)])
@example([(TINY, 1), (0.0, 2**31)])
@example([(1.0, 1), (0.0, 2**62)])
@example([(MAX, 2**62), (1.0, 2**61)])
def test_oracle_average(rows: list[tuple[float, int]]) -> None:
    count = sum(weight for _, weight in rows)
    assume(0 < count < 2**63)
    total = sum((Fraction(value) * weight for value, weight in rows), Fraction(0))
    found = one_average([value for value, _ in rows], [weight for _, weight in rows])
    assert found == nearest(total / count)


@given(st.lists(floats, max_size=8), st.lists(st.floats(), max_size=8), st.lists(st.floats(), max_size=8))
def test_law_taking_back(stays: list[float], goes: list[float], comes: list[float]) -> None:
    """What was added and taken back leaves no trace, be it NaN or infinite."""
    values = stays + goes + comes + goes
    weights = [1] * len(stays) + [1] * len(goes) + [1] * len(comes) + [-1] * len(goes)
    assert same(one_sum(values, weights), one_sum(stays + comes))


@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_oracle_specials(values: list[float]) -> None:
    special = [value for value in values if not math.isfinite(value)]
    wanted = sum(special) if special else nearest(sum(map(Fraction, values), Fraction(0)))
    assert same(one_sum(values), wanted)
    if special:
        assert same(one_average(values), wanted)


def test_every_order_gives_the_same_bits() -> None:
    values = [1.1e31, -1.1e31, 0.1, 1e-300, 3.0]
    assert {one_sum(list(order)).hex() for order in itertools.permutations(values)} == {
        math.fsum(values).hex()
    }


def test_zeros() -> None:
    for values, weights in (([-0.0], [1]), ([0.1, 0.2, -0.1, -0.2], None), ([7.5], [0]), ([], None)):
        assert same(one_sum(values, weights), 0.0)
    assert math.copysign(1, one_sum([1e300, -1e300])) == 1


def test_average_without_members_is_nan() -> None:
    assert math.isnan(one_average([]))
    assert math.isnan(one_average([1.0], [0]))
    assert math.isnan(one_average([1.0, 2.0], [1, -2]))


@given(st.lists(st.lists(st.floats(), max_size=4), max_size=10))
def test_groups_do_not_touch(groups: list[list[float]]) -> None:
    values = np.array([value for group in groups for value in group], float)
    offsets = np.cumsum([0] + [len(group) for group in groups])
    ones = np.ones(len(values), np.int64)
    for together, alone in ((sum_floats, one_sum), (average_floats, one_average)):
        found = together(values, ones, offsets).tolist()
        assert all(same(a, alone(b)) for a, b in zip(found, groups, strict=True))


def test_read_only_and_strided_arrays() -> None:
    values = np.repeat([0.5, 1.5], 2)[::2]
    weights = np.broadcast_to(np.int64(2), 2)
    assert sum_floats(values, weights, np.array([0, 1, 2])).tolist() == [1.0, 3.0]


@given(
    st.sampled_from([1, 2, 4, 8]).flatmap(
        lambda n_words: st.tuples(
            st.just(n_words),
            st.lists(
                st.tuples(
                    st.one_of(
                        st.integers(-(2 ** (32 * n_words - 1)), 2 ** (32 * n_words - 1) - 1),
                        st.integers(-3, 3),
                        st.sampled_from([-(2 ** (32 * n_words - 1)), 2 ** (32 * n_words - 1) - 1]),
                    ),
                    weights64,
                ),
                max_size=10,
            ),
        )
    )
)
@example((2, [(-(2**63), -(2**63))] * 3))
def test_oracle_integers(case: tuple[int, list[tuple[int, int]]]) -> None:
    n_words, rows = case
    words = words_of([integer for integer, _ in rows], n_words)
    weights = np.array([weight for _, weight in rows], np.int64)
    offsets = np.array([0, len(rows)])
    total = sum(integer * weight for integer, weight in rows)
    sums = sum_integers(words, weights, offsets)
    assert integers_of(sums) == [total]
    count = sum(weight for _, weight in rows)
    if 0 < count < 2**63:
        assert quotients(sums, np.array([count]), 0).tolist() == [total / count]


def test_integer_groups() -> None:
    words = words_of([5, -7, 2**63 - 1, 2**63 - 1, -1], 2)
    ones, offsets = np.ones(5, np.int64), np.array([0, 2, 2, 4, 5])
    assert integers_of(sum_integers(words, ones, offsets)) == [-2, 0, 2**64 - 2, -1]


@given(st.lists(st.tuples(floats, weights64), max_size=30))
def test_carries_now_and_then(rows: list[tuple[float, int]]) -> None:
    """Carrying after every few rows changes nothing: the limbs stay a sum, sign and all."""
    values = np.array([value for value, _ in rows], float)
    weights = np.array([weight for _, weight in rows], np.int64)
    offsets = np.array([0, len(rows)])
    wanted = sum_floats(values, weights, offsets)
    for carry_rows in (1, 3):
        out = np.empty(1, np.int64)
        superaccumulator._float_groups(values.view(np.int64), weights, offsets, False, carry_rows, out)
        assert out.tolist() == wanted.view(np.int64).tolist()


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), weights64), max_size=30))
def test_integer_carries_now_and_then(rows: list[tuple[int, int]]) -> None:
    words = words_of([integer for integer, _ in rows], 2).copy()
    weights = np.array([weight for _, weight in rows], np.int64)
    offsets = np.array([0, len(rows)])
    out = np.empty((1, 6), np.uint32)
    superaccumulator._integer_sums(words, weights, offsets, 2, out)
    assert integers_of(out) == [sum(integer * weight for integer, weight in rows)]


@pytest.mark.compiled
def test_many_rows_of_one_sign_need_carries() -> None:
    """More rows than go between two carries, each filling its limbs: nothing spills."""
    rows = superaccumulator._CARRY_ROWS + 1000
    value = -math.nextafter(2.0**600, 0)
    found = sum_floats(np.full(rows, value), np.full(rows, 1023), np.array([0, rows]))
    assert found.tolist() == [nearest(Fraction(value) * 1023 * rows)]
