"""Expressions: types, values and errors of arithmetic; comparisons stand in ``test_comparisons.py``."""

from __future__ import annotations

import datetime
import decimal
import operator as python
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lftj.errors import EvaluationError, RangeError, TypeClashError
from lftj.language.expressions import compare, evaluate, result_type, text_of, variables_of
from lftj.language.folding import fold
from lftj.language.parser import parse
from lftj.language.syntax import Comparison, Constant, Expression, Negative
from support.expression_columns import COLUMNS, DECIMALS, NEAR, TYPES, comparison


def expression(text: str) -> Expression:
    return comparison(f"x = {text}").right


def moment(milliseconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)


def span(milliseconds: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=milliseconds)


def day(number: int) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=number)


@pytest.mark.parametrize(
    ("text", "arrow_type", "values"),
    [
        ("i + 1", "int64", [2, 2**53 + 2, -2]),
        ("i8 * i8 - 1", "int64", [16128, 16383, -1]),
        ("-i8", "int64", [-127, 128, 0]),
        ("u - 1", "int64", [-1, 0, 2**63 - 2]),
        ("i / 2", "double", [0.5, (2**53 + 1) / 2, -1.5]),
        ("(i + 0) / i", "double", [1.0, 1.0, 1.0]),
        ("i * 1.2", "double", [1.2, (2**53 + 1) * 1.2, -3 * 1.2]),
        ("1.2 - i8", "double", [1.2 - 127, 129.2, 1.2]),
        ("i * f", "double", [1.5, 2.5 * 2**53, -0.75]),
        ("f4 * f4", "double", [2.25, 6.25, 0.0625]),
        ("f * 1.1", "double", [1.5 * 1.1, 2.5 * 1.1, 0.25 * 1.1]),
        ("-f", "double", [-1.5, -2.5, -0.25]),
        ("f * 1e308 * 10", "double", [float("inf")] * 3),
        ("p * 1.2", "decimal128(11, 3)", [Decimal("1.800"), Decimal("2.700"), Decimal("-3.600")]),
        ("p * (1 + 0.2)", "decimal128(11, 3)", [Decimal("1.800"), Decimal("2.700"), Decimal("-3.600")]),
        ("p + 1", "decimal128(9, 2)", [Decimal("2.50"), Decimal("3.25"), Decimal("-2.00")]),
        ("10 - p", "decimal128(9, 2)", [Decimal("8.50"), Decimal("7.75"), Decimal("13.00")]),
        ("p + i8", "decimal128(22, 2)", [Decimal("128.50"), Decimal("-125.75"), Decimal("-3.00")]),
        ("p - p", "decimal128(9, 2)", [Decimal("0.00")] * 3),
        ("-p", "decimal128(8, 2)", [Decimal("-1.50"), Decimal("-2.25"), Decimal("3.00")]),
        ("p + q", "decimal128(10, 2)", [Decimal("101.50"), Decimal("102.25"), Decimal("97.00")]),
        ("p / 4", "double", [0.375, 0.5625, -0.75]),
        ("p * f", "double", [2.25, 5.625, -0.75]),
        ("big + big", "decimal128(38, 0)", [Decimal(2 * 10**37)] * 3),
        ("huge + 1.5", "decimal256(76, 1)", [Decimal("1" + "0" * 69 + "1.5")] * 3),
        ("huge - huge", "decimal256(76, 0)", [Decimal(0)] * 3),
        ("d + 31", "date32[day]", [day(31), day(32), day(33)]),
        ("i8 + d8", "date32[day]", [day(127), day(-127), day(2)]),
        ("d - 1", "date32[day]", [day(-1), day(0), day(1)]),
        ("d - d8", "int64", [0, 0, 0]),
        ("d - 1969-12-31", "int64", [1, 2, 3]),
        ("ts - tm", "duration[ms]", [span(-5), span(994), span(1993)]),
        ("ts + du", "timestamp[ms]", [moment(1), moment(1002), moment(2003)]),
        ("du + ts", "timestamp[ms]", [moment(1), moment(1002), moment(2003)]),
        ("tm - du", "timestamp[ms]", [moment(4), moment(4), moment(4)]),
        ("du * 3 - du", "duration[ms]", [span(2), span(4), span(6)]),
        ("-du + 2 * du", "duration[ms]", [span(1), span(2), span(3)]),
        ("ts + 2s", "timestamp[s]", [moment(2000), moment(3000), moment(4000)]),
        ("ts - 1500ms", "timestamp[ms]", [moment(-1500), moment(-500), moment(500)]),
        ("2000us + tm", "timestamp[ms]", [moment(7), moment(8), moment(9)]),
        ("d + 1h", "timestamp[s]", [moment(3_600_000 + n * 86_400_000) for n in range(3)]),
        ("d8 - 1ms", "timestamp[ms]", [moment(n * 86_400_000 - 1) for n in range(3)]),
        ("du + d", "timestamp[ms]", [moment(1 + n + n * 86_400_000) for n in range(3)]),
        ("du * 2 - 1ms", "duration[ms]", [span(1), span(3), span(5)]),
        ("-1d + 2 * 90m - 30s", "duration[s]", [span(-75_630_000)] * 3),
        ("250us", "duration[us]", [datetime.timedelta(microseconds=250)] * 3),
        ("s", "dictionary<values=string, indices=int32, ordered=0>", ["a", "b", "a"]),
        ("5", "int64", [5] * 3),
        ("1.2", "decimal128(2, 1)", [Decimal("1.2")] * 3),
        ("0.1 + 0.2", "decimal128(1, 1)", [Decimal("0.3")] * 3),
        ("7 / 2 * 2.0", "double", [7.0] * 3),
        ("-(1.5 - 2)", "decimal128(1, 1)", [Decimal("0.5")] * 3),
        ("2.5 * 1e1", "double", [25.0] * 3),
        ("1.0 / 4", "double", [0.25] * 3),
        ("99999999999999999999", "decimal128(20, 0)", [Decimal("99999999999999999999")] * 3),
        ('"x"', "string", ["x"] * 3),
        ("true", "bool", [True] * 3),
        ('x"00"', "binary", [b"\0"] * 3),
        ("2026-01-31", "date32[day]", [datetime.date(2026, 1, 31)] * 3),
        ("2026-01-31T10:00:00", "timestamp[us]", [datetime.datetime(2026, 1, 31, 10)] * 3),
        (
            "2026-01-31T10:00:00+02:00",
            "timestamp[us, tz=UTC]",
            [datetime.datetime(2026, 1, 31, 8, tzinfo=datetime.UTC)] * 3,
        ),
    ],
)
def test_values_and_types(text: str, arrow_type: str, values: list[Any]) -> None:
    result = evaluate(expression(text), COLUMNS)
    assert str(result.type) == arrow_type
    assert result.to_pylist() == values
    assert result_type(expression(text), TYPES) == result.type
    result.validate(full=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i * 2 + 9223372036854775807", "i * 2 + 9223372036854775807 does not fit type int64 where i = 1"),
        ("u + 1", "u + 1 does not fit type int64 where u = 9223372036854775807"),
        ("i * i", "i * i does not fit type int64 where i = 9007199254740993"),
        (
            "-(-9223372036854775808 + u)",
            "-(-9223372036854775808 + u) does not fit type int64 where u = 0",
        ),
        ("9223372036854775807 + 1", "9223372036854775807 + 1 does not fit type int64"),
        ("big * 10", f"big * 10 does not fit type decimal128(38, 0) where big = {10**37}"),
        ("big * big", f"big * big does not fit type decimal128(38, 0) where big = {10**37}"),
        ("huge * huge", f"huge * huge does not fit type decimal256(76, 0) where huge = {10**70}"),
        (
            "d + i",
            "d + i does not fit type date32[day] where d = 1970-01-02, i = 9007199254740993",
        ),
        ("tz + 106752d", "106752d does not fit type duration[ns]"),
        ("106751991d * 2 + 1us", "106751991d * 2 does not fit type duration[us]"),
        (
            "tz + du * 9223372036854775807",
            "du * 9223372036854775807 does not fit type duration[ms] where du = 2",
        ),
    ],
)
def test_what_does_not_fit(text: str, message: str) -> None:
    with pytest.raises(RangeError) as caught:
        evaluate(expression(text), COLUMNS)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i / 0", "division by zero in i / 0 where i = 1"),
        ("1 / 0", "division by zero in 1 / 0"),
        ("1.5 / 0.0", "division by zero in 1.5 / 0.0"),
        ("2 * (i / i8)", "division by zero in i / i8 where i = -3, i8 = 0"),
        ("p / (f - 2.5)", "division by zero in p / (f - 2.5) where p = 2.25, f = 2.5"),
    ],
)
def test_division_by_zero(text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(expression(text), COLUMNS)
    assert str(caught.value) == message


def test_rows_are_shown_with_nanoseconds() -> None:
    columns = {
        "t": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns")),
        "v": pa.array([2**63 - 1], pa.duration("ns")),
    }
    with pytest.raises(
        RangeError, match=r"where t = 2023-11-14T22:13:20.123456789, v = 9223372036854775807$"
    ):
        evaluate(expression("t + v"), columns)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s + 1", "there is no + for types string and int64"),
        ("-s", "there is no - for type string"),
        ("b * b", "there is no * for types bool and bool"),
        ("d + d", "there is no + for types date32[day] and date32[day]"),
        ("d * 2", "there is no * for types date32[day] and int64"),
        ("d + 1.5", "there is no + for types date32[day] and decimal128(2, 1)"),
        ("ts + 1", "there is no + for types timestamp[s] and int64"),
        ("ts - tz", "there is no - for types timestamp[s] and timestamp[ns, tz=UTC]"),
        ("du - ts", "there is no - for types duration[ms] and timestamp[s]"),
        ("1h - d", "there is no - for types duration[s] and date32[day]"),
        ("5s * 1.5", "there is no * for types duration[s] and decimal128(2, 1)"),
        ("du / 2", "there is no / for types duration[ms] and int64"),
        ('1 + "x"', "there is no + for types int64 and string"),
        ("-2026-01-31", "there is no - for type date32[day]"),
        (f"p * 0.{'0' * 75}1", "decimal128(8, 2) * decimal256(76, 76) needs 78 digits behind the point"),
    ],
)
def test_type_clashes(text: str, message: str) -> None:
    with pytest.raises(TypeClashError) as caught:
        result_type(expression(text), TYPES)
    assert str(caught.value) == message


def test_a_clash_points_at_the_operation() -> None:
    text = "h(x) <- x = 2 * (s + 1)."
    (literal,) = parse(text).rules[0].body
    assert isinstance(literal, Comparison)
    with pytest.raises(TypeClashError) as caught:
        result_type(literal.right, TYPES)
    assert caught.value.span is not None
    assert text[slice(*caught.value.span)] == "s + 1"


def test_no_columns_are_one_row_and_no_rows_are_none() -> None:
    assert evaluate(expression("1 + 2"), {}).to_pylist() == [3]
    assert compare(comparison("1 < 2"), {}).to_pylist() == [True]
    empty = {name: column.slice(0, 0) for name, column in COLUMNS.items()}
    for text in ("i + 1", "i / i8", "p * 1.2", "d - 1", "huge * huge", "1 / 2"):
        assert evaluate(expression(text), empty).to_pylist() == []
    for text in ("i < f", "d < ts", "huge < p", "s < s"):
        assert compare(comparison(text), empty).to_pylist() == []


def test_slices_are_read_from_their_start() -> None:
    sliced = {name: column.slice(1) for name, column in COLUMNS.items()}
    for text in ("i * 2", "i / 3", "p * 1.2", "d + 1", "tm - du", "s"):
        assert evaluate(expression(text), sliced).equals(evaluate(expression(text), COLUMNS).slice(1))
    for text in ("i < f", "d < ts", "p < i", "s = s", "b < b"):
        assert compare(comparison(text), sliced).equals(compare(comparison(text), COLUMNS).slice(1))


# -- texts and folding ------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a + b * c",
        "(a + b) * c",
        "a - (b - c)",
        "a - b - c",
        "a / (b * c)",
        "-a * b",
        "-(a + b)",
        "a - -5",
        "-(-a)",
        '"a\\"b\\n" + x"00ff"',
        "2026-01-31 - 1.50",
        "2026-01-31T10:00:00+00:00 + true",
    ],
)
def test_texts_read_back(text: str) -> None:
    parsed = expression(text)
    assert repr(expression(text_of(parsed))) == repr(parsed)
    if "(-" not in text:
        assert text_of(parsed) == text


def test_variables_in_the_order_of_writing() -> None:
    assert [variable.name for variable in variables_of(expression("b + a * -(b - 1)"))] == ["b", "a", "b"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("7 / 2", 3.5),
        ("1 + 0.2", Decimal("1.2")),
        ("0.1 + 0.2", Decimal("0.3")),
        ("1.5 * 1.5", Decimal("2.25")),
        ("1.0 / 4", 0.25),
        ("1 + 1e0", 2.0),
        ("-(2 - 3.5)", Decimal("1.5")),
    ],
)
def test_constants_fold(text: str, value: object) -> None:
    folded = fold(expression(text))
    assert isinstance(folded, Constant)
    assert repr(folded.value) == repr(value)


@pytest.mark.parametrize(
    "text", ["1 / 0", "1.0 / 0.0", "9223372036854775807 + 1", "a + 1", '"a" + 1', "true + 1"]
)
def test_what_has_no_value_does_not_fold(text: str) -> None:
    assert repr(fold(expression(text))) == repr(expression(text))


def test_folding_reaches_inside() -> None:
    assert repr(fold(expression("a * (1 + 2)"))) == repr(expression("a * 3"))
    assert repr(fold(Negative(expression("1 + 2")))) == repr(Constant(-3))


def test_folding_does_not_depend_on_the_decimal_context() -> None:
    digits = "1." + "3" * 60
    with decimal.localcontext() as context:
        context.prec = 5
        folded = fold(expression(f"{digits} + 0.{'0' * 60}1"))
    assert isinstance(folded, Constant)
    assert str(folded.value) == f"{digits}1"


# -- arithmetic against Python's -----------------------------------------------------


@given(st.lists(st.tuples(NEAR, NEAR), min_size=1, max_size=5), st.sampled_from("+-*"))
def test_integer_arithmetic_is_exact_or_refused(pairs: list[tuple[int, int]], sign: str) -> None:
    columns = {"a": pa.array([a for a, _ in pairs]), "b": pa.array([b for _, b in pairs])}
    operation = {"+": python.add, "-": python.sub, "*": python.mul}[sign]
    expected = [operation(a, b) for a, b in pairs]
    wrong = [row for row, value in enumerate(expected) if not -(2**63) <= value < 2**63]
    if wrong:
        a, b = pairs[wrong[0]]
        with pytest.raises(RangeError) as caught:
            evaluate(expression(f"a {sign} b"), columns)
        assert str(caught.value) == f"a {sign} b does not fit type int64 where a = {a}, b = {b}"
    else:
        assert evaluate(expression(f"a {sign} b"), columns).to_pylist() == expected


@given(NEAR, NEAR.filter(bool))
@example(2**63 - 1, 3)
@example(-(2**63), -(2**63))
def test_quotients_of_integers_are_correctly_rounded(a: int, b: int) -> None:
    columns = {"a": pa.array([a, 1]), "b": pa.array([b, 3])}
    assert evaluate(expression("a / b"), columns).to_pylist() == [a / b, 1 / 3]


@given(DECIMALS, DECIMALS, st.sampled_from("+-*"))
def test_decimal_arithmetic_is_exact_or_refused(a: Decimal, b: Decimal, sign: str) -> None:
    columns = {"a": pa.array([a], pa.decimal128(30, 5)), "b": pa.array([b], pa.decimal128(38, 6))}
    exact = {"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__}[sign](
        Fraction(a), Fraction(b)
    )
    if abs(exact) >= 10 ** (38 - (11 if sign == "*" else 6)):
        with pytest.raises(RangeError):
            evaluate(expression(f"a {sign} b"), columns)
    else:
        (value,) = evaluate(expression(f"a {sign} b"), columns).to_pylist()
        assert Fraction(value) == exact


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=17))
def test_decimals_become_the_nearest_float(value: Decimal) -> None:
    columns = {"a": pa.array([value], pa.decimal128(38, 17)), "b": pa.array([1.0])}
    assert evaluate(expression("a * b"), columns).to_pylist() == [float(value)]
