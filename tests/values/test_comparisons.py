"""Comparisons of Arrow columns against Python's exact numbers, for every pair of types that may meet."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lftj.errors import TypeClashError
from lftj.language.expressions import compare, comparison_types
from lftj.values.comparisons import comparable, compare_arrays
from support.expression_columns import COLUMNS, DECIMALS, INT64, NEAR, TYPES, comparison, days

PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
    "=": python.eq,
    "!=": python.ne,
}
OPERATORS = sorted(PYTHON)


def check_comparison(left: pa.Array, right: pa.Array, expected: Callable[[str], list[bool]]) -> None:
    for operator in OPERATORS:
        found = compare(comparison(f"x {operator} y"), {"x": left, "y": right})
        assert found.type == pa.bool_()
        assert found.to_pylist() == expected(operator), operator


FLOATS = st.one_of(
    st.floats(),
    st.sampled_from([2.0**53, 2.0**63, -(2.0**63), 2.0**63 - 1024, 0.5, -0.5, -0.0, float("nan")]),
)
NUMBERS = st.one_of(NEAR, st.sampled_from([2**53, 2**53 + 1, 2**63 - 1024, 0, 1, -1]))


@given(st.lists(st.tuples(NUMBERS, FLOATS), min_size=1, max_size=6))
@example([(2**53 + 1, 2.0**53), (2**63 - 1, 2.0**63), (-(2**63), -(2.0**63)), (0, -0.5), (0, float("nan"))])
def test_integers_beside_floats_are_exact(pairs: list[tuple[int, float]]) -> None:
    """Python compares an int with a float exactly, and NaN with nothing."""
    integers, floats = pa.array([a for a, _ in pairs]), pa.array([b for _, b in pairs])
    check_comparison(integers, floats, lambda op: [PYTHON[op](a, b) for a, b in pairs])
    check_comparison(floats, integers, lambda op: [PYTHON[op](b, a) for a, b in pairs])


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=6))
def test_floats(pairs: list[tuple[float, float]]) -> None:
    left, right = pa.array([a for a, _ in pairs]), pa.array([b for _, b in pairs])
    check_comparison(left, right, lambda op: [PYTHON[op](a, b) for a, b in pairs])


@given(st.lists(st.tuples(NUMBERS, DECIMALS), min_size=1, max_size=6))
@example([(2**63 - 1, Decimal("9223372036854775807.00001"))])
def test_integers_beside_decimals_are_exact(pairs: list[tuple[int, Decimal]]) -> None:
    integers = pa.array([a for a, _ in pairs])
    for type_ in (pa.decimal128(38, 5), pa.decimal256(76, 70 - 19)):
        decimals = pa.array([b for _, b in pairs], type_)
        check_comparison(integers, decimals, lambda op: [PYTHON[op](a, b) for a, b in pairs])
        check_comparison(decimals, integers, lambda op: [PYTHON[op](b, a) for a, b in pairs])


def test_decimals_without_a_common_type() -> None:
    wide = pa.array([Decimal(10**75), Decimal(0)], pa.decimal256(76, 0))
    fine = pa.array([Decimal("0.5"), Decimal("0.5")], pa.decimal256(76, 76))
    check_comparison(
        wide, fine, lambda op: [PYTHON[op](a, Decimal("0.5")) for a in (Decimal(10**75), Decimal(0))]
    )


def test_narrow_decimals_and_negative_scales() -> None:
    left = pa.array([Decimal("1.5"), Decimal("2E+2")], pa.decimal128(9, 1))
    right = pa.array([Decimal("1E+2"), Decimal("2E+2")], pa.decimal128(3, -2))
    check_comparison(left, right, lambda op: [PYTHON[op](1.5, 100), PYTHON[op](200, 200)])


def test_decimals_beside_floats_meet_as_floats() -> None:
    decimals = pa.array([Decimal("0.1"), Decimal("0.3"), Decimal("1.0")])
    floats = pa.array([0.1, 0.1 + 0.2, float("nan")])
    assert compare(comparison("x = y"), {"x": decimals, "y": floats}).to_pylist() == [True, False, False]
    assert compare(comparison("x != y"), {"x": decimals, "y": floats}).to_pylist() == [False, True, True]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x < 2.5", [True, True, False]),
        ("x >= 1e0", [True, True, True]),
        ("2 = x", [False, True, False]),
        ("x < 99999999999999999999", [True, True, True]),
        ("x * 2 != 5 - 1", [True, False, True]),
        ("f = 0.1", [True, False, False]),
        ("f <= 0.2", [True, True, False]),
        ("p = 1e-1", [True, False, False]),
        ("p < 0.25", [True, True, False]),
        ("p > 0", [True, True, True]),
        ('s >= "b"', [False, True, True]),
        ('w < x"02"', [True, False, False]),
        ("b = true", [False, True, True]),
        ("d <= 1970-01-02", [True, True, False]),
        ("d < 1970-01-02T12:00:00", [True, True, False]),
        ("t > 1970-01-01T00:00:00.000001", [False, False, True]),
        ("t < 1970-01-02", [True, True, True]),
        ("z = 1970-01-01T02:00:00+02:00", [True, False, False]),
        ("1 < 2", [True, True, True]),
    ],
)
def test_comparisons_with_constants(text: str, values: list[bool]) -> None:
    columns = {
        "x": pa.array([1, 2, 3], pa.uint8()),
        "f": pa.array([0.1, 0.2, 0.3]),
        "p": pa.array([Decimal("0.1"), Decimal("0.2"), Decimal("0.3")]),
        "s": pa.array(["a", "b", "é"]).dictionary_encode(),
        "w": pa.array([b"\1", b"\2", b"\3"], pa.binary(1)),
        "b": pa.array([False, True, True]),
        "d": days(0, 1, 2),
        "t": pa.array([0, 1000, 2000], pa.timestamp("ns")),
        "z": pa.array([0, 1, 2], pa.timestamp("s", "Europe/Berlin")),
    }
    assert compare(comparison(text), columns).to_pylist() == values


PAIRS = [(a, b) for a in TYPES for b in TYPES if comparable(TYPES[a], TYPES[b])]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_null_compares_to_nothing(left: str, right: str) -> None:
    """The other rows of both columns compare as they do without it."""
    sides = [COLUMNS[left], COLUMNS[right]]
    known = [side.take(pa.array([0, 1, 2, 0, 1])) for side in sides]
    holes = [
        side.take(pa.array(places))
        for side, places in zip(sides, ([0, None, 2, None, 1], [0, 1, None, None, 1]), strict=True)
    ]
    for operator in OPERATORS:
        expected = compare_arrays(operator, *known).to_pylist()
        expected[1:4] = [None] * 3
        assert compare_arrays(operator, *holes).to_pylist() == expected
        assert compare_arrays(operator, *(side.slice(3, 1) for side in holes)).to_pylist() == [None]


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
COUNTS = st.one_of(INT64, st.integers(-3000, 3000))


@given(
    st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=5),
    st.sampled_from(list(UNITS)),
    st.sampled_from(list(UNITS)),
    st.sampled_from([pa.timestamp, pa.duration, lambda unit: pa.timestamp(unit, "UTC")]),
)
def test_units_of_time_compare_without_overflow(
    pairs: list[tuple[int, int]], first: str, second: str, make: Callable[[str], pa.DataType]
) -> None:
    left = pa.array([a for a, _ in pairs], make(first))
    right = pa.array([b for _, b in pairs], make(second))
    check_comparison(
        left, right, lambda op: [PYTHON[op](a * UNITS[first], b * UNITS[second]) for a, b in pairs]
    )


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1), st.sampled_from(list(UNITS)))
@example(1, 86_400, "s")
def test_dates_beside_timestamps(number: int, count: int, unit: str) -> None:
    columns = (days(number), pa.array([count], pa.timestamp(unit)))
    nanoseconds = number * 86_400 * 10**9
    check_comparison(*columns, lambda op: [PYTHON[op](nanoseconds, count * UNITS[unit])])


def test_times_of_all_units() -> None:
    left = pa.array([1, 2], pa.time32("s"))
    for type_, factor in ((pa.time32("ms"), 10**3), (pa.time64("us"), 10**6), (pa.time64("ns"), 10**9)):
        right = pa.array([1 * factor, 2 * factor - 1], type_)
        check_comparison(left, right, lambda op: [PYTHON[op](1, 1), PYTHON[op](2, 1.5)])


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), min_size=1, max_size=5))
def test_strings_of_all_encodings(pairs: list[tuple[str, str]]) -> None:
    left = [a for a, _ in pairs]
    for type_ in (pa.string(), pa.large_string(), pa.string_view()):
        right = pa.array([b for _, b in pairs], type_)
        check_comparison(
            pa.array(left).dictionary_encode(), right, lambda op: [PYTHON[op](a, b) for a, b in pairs]
        )


def test_binary_of_all_encodings() -> None:
    left = pa.array([b"ab", b"b\xff"], pa.binary(2))
    for type_ in (pa.binary(), pa.large_binary(), pa.binary_view()):
        right = pa.array([b"a", b"b\xff"], type_)
        check_comparison(left, right, lambda op: [PYTHON[op](b"ab", b"a"), PYTHON[op](1, 1)])


def test_half_floats_and_unsigned() -> None:
    halves = pa.array(np.array([0.5, 2.0], np.float16))
    unsigned = pa.array([0, 2], pa.uint64())
    check_comparison(halves, unsigned, lambda op: [PYTHON[op](0.5, 0), PYTHON[op](2, 2)])
    decimals = pa.array([Decimal("0.5"), Decimal(2)], pa.decimal128(2, 1))
    check_comparison(decimals, unsigned, lambda op: [PYTHON[op](0.5, 0), PYTHON[op](2, 2)])


@pytest.mark.parametrize(
    "text", ["i = s", "s < 1", "b = 1", "i < d", "ts < tz", "d < tz", "du < i", 'd = "1970-01-01"', "ts < du"]
)
def test_what_cannot_be_compared(text: str) -> None:
    with pytest.raises(TypeClashError, match="they can't be compared"):
        comparison_types(comparison(text), TYPES)
    with pytest.raises(TypeClashError, match="they can't be compared"):
        compare(comparison(text), COLUMNS)
