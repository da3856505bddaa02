"""Aggregates against brute force over lists of Python values, and the errors and corners by name."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lftj
from lftj.aggregates.whole import Aggregation
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Constant, Variable
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from support.aggregate_heads import aggregate

INT64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5))


class Case:
    """One aggregate head over a table of assignments with weights."""

    def __init__(
        self,
        function: str,
        result: pa.DataType,
        columns: dict[str, pa.Array],
        arguments: tuple[str | Constant, ...] = ("v",),
        keys: tuple[str, ...] = ("k",),
        weights: list[int] | None = None,
    ) -> None:
        self.domains = Domains()
        self.types = {name: self.type_of(array.type) for name, array in columns.items()}
        self.columns = {name: self.types[name].domain.encode(array) for name, array in columns.items()}
        self.weights = np.array(
            [1] * len(next(iter(columns.values()))) if weights is None else weights, np.int64
        )
        terms = tuple(Variable(a) if isinstance(a, str) else a for a in arguments)
        schema = Schema(
            (*(Column(key, self.types[key]) for key in keys), Column("value", self.type_of(result))),
            functional=True,
        )
        self.head = CheckedHead("total", keys, Aggregate(function, terms), schema, (0, 0))

    def type_of(self, arrow: pa.DataType) -> ColumnType:
        return ColumnType(self.domains.of(arrow), arrow)

    def run(self) -> dict[Any, Any]:
        keys, values = aggregate(self.head, self.columns, self.weights, self.types)
        return self.result(keys, values)

    def run_in_batches(self) -> dict[Any, Any]:
        aggregation = Aggregation(self.head, self.types)
        for row in range(len(self.weights)):
            batch = {name: column[row : row + 1] for name, column in self.columns.items()}
            aggregation.add(batch, self.weights[row : row + 1])
        return self.result(*aggregation.finish())

    def result(self, keys: list[np.ndarray], values: pa.Array) -> dict[Any, Any]:
        """Value by key: a Python value for one key column, a tuple for any other number."""
        assert values.type == self.head.schema.columns[-1].type.arrow
        values.validate(full=True)
        decoded = [
            self.types[name].domain.decode(codes, self.types[name].arrow).to_pylist()
            for name, codes in zip(self.head.variables, keys, strict=True)
        ]
        rows: list[Any] = (
            decoded[0] if len(decoded) == 1 else list(zip(*decoded, strict=True)) or [()] * len(values)
        )
        assert len(set(rows)) == len(rows) == len(values)
        return dict(zip(rows, values.to_pylist(), strict=True))


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def by_group(rows: list[tuple[Any, Any, int]], function: Callable[[list[Any]], Any]) -> dict[Any, Any]:
    """The reference: ``rows`` of key, value and weight; each value taken as often as it weighs."""
    groups: dict[Any, list[Any]] = {}
    for key, value, weight in rows:
        if weight:
            groups.setdefault(key, []).extend([value] * weight)
    return {key: function(values) for key, values in groups.items()}


def tables(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[int, Any, int]]]:
    return st.lists(st.tuples(st.integers(0, 3), values, st.integers(0, 4)), max_size=12)


def case(
    function: str,
    result: pa.DataType,
    rows: list[tuple[Any, Any, int]],
    value_type: pa.DataType,
    arguments: tuple[str | Constant, ...] = ("v",),
) -> Case:
    columns = {
        "k": pa.array([row[0] for row in rows], pa.int32()),
        "v": pa.array([row[1] for row in rows], value_type),
    }
    return Case(function, result, columns, arguments, weights=[row[2] for row in rows])


def check(made: Case, wanted: dict[Any, Any]) -> None:
    assert made.run() == wanted
    assert made.run_in_batches() == wanted


# -- oracle -------------------------------------------------------------------


@given(tables(INT64))
def test_oracle_count(rows: list[tuple[int, int, int]]) -> None:
    check(case("count", pa.int64(), rows, pa.int64(), ()), by_group(rows, len))


@given(tables(INT64))
@example([(0, 2**63 - 1, 1), (0, -1, 1), (0, 2**63 - 1, 1), (0, -(2**63), 1)])
@example([(0, 2**62, 1), (0, 2**62 - 1, 1)])
@example([(0, -(2**62), 2)])
def test_oracle_sum_of_integers(rows: list[tuple[int, int, int]]) -> None:
    wanted = by_group(rows, sum)
    made = case("sum", pa.int64(), rows, pa.int64())
    too_large = {key: total for key, total in wanted.items() if not -(2**63) <= total < 2**63}
    if not too_large:
        check(made, wanted)
        return
    with pytest.raises(RangeError) as caught:
        made.run()
    assert any(
        str(caught.value).startswith(f"total[{k}] = sum(v) is {total},") for k, total in too_large.items()
    )


@given(tables(st.floats(allow_nan=False, allow_infinity=False)))
def test_oracle_sum_and_avg_of_floats(rows: list[tuple[int, float, int]]) -> None:
    check(
        case("sum", pa.float64(), rows, pa.float64()),
        by_group(rows, lambda values: nearest(sum(map(Fraction, values), Fraction(0)))),
    )
    check(
        case("avg", pa.float64(), rows, pa.float64()),
        by_group(rows, lambda values: nearest(sum(map(Fraction, values), Fraction(0)) / len(values))),
    )


@given(tables(INT64))
def test_oracle_avg_of_integers(rows: list[tuple[int, int, int]]) -> None:
    wanted = by_group(rows, lambda values: float(Fraction(sum(values), len(values))))
    check(case("avg", pa.float64(), rows, pa.int64()), wanted)


DIGITS = [(pa.decimal32, 5, 2), (pa.decimal64, 18, 0), (pa.decimal128, 38, 10), (pa.decimal128, 12, -3)]
DECIMALS = [*(make(precision, scale) for make, precision, scale in DIGITS), pa.decimal256(60, 25)]


@given(st.data())
@pytest.mark.parametrize("type_", DECIMALS, ids=str)
def test_oracle_sum_and_avg_of_decimals(type_: pa.DataType, data: st.DataObject) -> None:
    beyond = 10**type_.precision
    scaled = data.draw(tables(st.one_of(st.integers(-beyond + 1, beyond - 1), st.integers(-9, 9))))
    unit = Fraction(10) ** -type_.scale
    rows = [(key, Decimal(f"{value}e{-type_.scale}"), weight) for key, value, weight in scaled]
    wanted = by_group(scaled, lambda values: float(sum(values) * unit / len(values)))
    check(case("avg", pa.float64(), rows, type_), wanted)

    result = pa.decimal128(38, type_.scale)
    sums = by_group(scaled, sum)
    made = case("sum", result, rows, type_)
    if all(abs(total) < 10**38 for total in sums.values()):
        found = made.run()
        assert {key: Fraction(value) for key, value in found.items()} == {
            key: v * unit for key, v in sums.items()
        }
        assert made.run_in_batches() == found
    else:
        with pytest.raises(RangeError, match=r"total\[\d\] = sum\(v\) is .* does not fit decimal128\(38"):
            made.run()


ORDERED: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False).map(lambda value: value + 0.0)),
    "date32": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "string": (pa.string(), st.text(max_size=3)),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.text(max_size=2)),
    "binary": (pa.large_binary(), st.binary(max_size=3)),
    "decimal": (pa.decimal128(9, 2), st.integers(-99, 99).map(lambda value: Decimal(value) / 4)),
}


@given(st.data())
@pytest.mark.parametrize("kind", ORDERED)
def test_oracle_min_and_max(kind: str, data: st.DataObject) -> None:
    type_, values = ORDERED[kind]
    rows = data.draw(tables(values))
    check(case("min", type_, rows, type_), by_group(rows, min))
    check(case("max", type_, rows, type_), by_group(rows, max))


@given(st.data())
@pytest.mark.parametrize("kind", ["int16", "dictionary"])
def test_oracle_ranks(kind: str, data: st.DataObject) -> None:
    type_, values = ORDERED[kind]
    rows = data.draw(tables(values))
    rank = data.draw(st.integers(1, 4))
    smallest, largest = (
        case(function, type_, rows, type_, ("v", Constant(rank)))
        for function in ("kth_smallest", "kth_largest")
    )
    check(smallest, by_group(rows, lambda its: sorted(its)[:rank][-1]))
    check(largest, by_group(rows, lambda its: sorted(its, reverse=True)[:rank][-1]))


@given(st.data())
@pytest.mark.parametrize("kind", ["int16", "dictionary", "decimal"])
def test_oracle_quantiles(kind: str, data: st.DataObject) -> None:
    type_, values = ORDERED[kind]
    rows = data.draw(tables(values))
    share = data.draw(st.sampled_from((0.1, 0.25, 0.5, 0.9, 1)))
    for function, descending in (("quantile", False), ("upper_quantile", True)):
        made = case(function, type_, rows, type_, ("v", Constant(share)))

        def reached(its: list[Any], descending: bool = descending) -> Any:
            place = math.ceil(Fraction(str(share)) * len(its)) - 1
            return sorted(its, reverse=descending)[place]

        check(made, by_group(rows, reached))


def test_quantiles_by_weight_are_those_of_duckdb_by_copies() -> None:
    random = Random(5)
    rows = [(random.randrange(4), random.randrange(30), random.randrange(6)) for _ in range(300)]
    columns = dict(zip("gvw", zip(*rows, strict=True), strict=True))
    db = lftj.Database()
    db.load("r", pa.table({**columns, "n": range(300)}))
    con = duckdb.connect()
    con.register("r", pa.table(columns))
    for share in (0.25, 0.5, 1):
        found = db.query(f"h(g, quantile(v, {share}, w), upper_quantile(v, {share}, w)) <- r(g, v, w, _).")
        wanted = con.sql(
            f"select g, percentile_disc({share}) within group (order by v), "
            f"percentile_disc({share}) within group (order by v desc) "
            "from (select g, v, unnest(range(w)) from r) group by g order by g"
        )
        assert sorted(tuple(row.values()) for row in found.to_pylist()) == wanted.fetchall()


def test_weights_are_whole_numbers_from_zero_that_fit_64_bits() -> None:
    db = lftj.Database()
    db.load("r", [(1, 5, 2), (2, 7, -3)], columns=["g", "v", "w"])
    with pytest.raises(lftj.errors.EvaluationError, match=r"h\[2\] = quantile\(v, 0.5, w\): -3 is no weight"):
        db.query("h[g] = quantile(v, 0.5, w) <- r(g, v, w).")
    db.load("s", [(1, 5, 2**62), (1, 7, 2**62)], columns=["g", "v", "w"])
    with pytest.raises(lftj.errors.RangeError, match="come to 9223372036854775808, more than 64 bits hold"):
        db.query("h[g] = quantile(v, 0.5, w) <- s(g, v, w).")
    db.load("t", [(1, 5, 0.5)], columns=["g", "v", "w"])
    with pytest.raises(lftj.errors.TypeClashError, match="the weights of 'quantile' are whole numbers"):
        db.query("h[g] = quantile(v, 0.5, w) <- t(g, v, w).")
    assert db.query("h[g] = quantile(v, 0.5, w) <- s(g, v, w), w < 0.").num_rows == 0


@given(
    st.lists(
        st.tuples(
            st.text("xy", max_size=1), st.text("abé,", max_size=2), st.integers(-2, 2), st.integers(0, 3)
        ),
        max_size=12,
    ),
    st.sampled_from([",", "", " – "]),
)
def test_oracle_concat(rows: list[tuple[str, str, int, int]], separator: str) -> None:
    columns = {
        "k": pa.array([row[0] for row in rows], pa.string()),
        "s": pa.array([row[1] for row in rows], pa.string()),
        "o": pa.array([row[2] for row in rows], pa.int8()),
    }
    weights = [row[3] for row in rows]
    written: tuple[str | Constant, ...] = () if separator == "," else (Constant(separator),)
    plain = Case("concat", pa.string(), columns, ("s", *written), weights=weights)
    by_string = [(key, text, weight) for key, text, _, weight in rows]
    check(plain, by_group(by_string, lambda texts: separator.join(sorted(texts))))

    ordered = Case("concat", pa.string(), columns, ("s", Constant(separator), "o"), weights=weights)
    by_place = [(key, (place, text), weight) for key, text, place, weight in rows]
    check(ordered, by_group(by_place, lambda pairs: separator.join(text for _, text in sorted(pairs))))


# -- groups -------------------------------------------------------------------


def test_global_aggregates() -> None:
    values = {"v": pa.array([5, 7, 5])}
    for function, result, wanted in (
        ("count", pa.int64(), 4),
        ("sum", pa.int64(), 24),
        ("avg", pa.float64(), 6.0),
        ("min", pa.int64(), 5),
        ("max", pa.int64(), 7),
    ):
        arguments = () if function == "count" else ("v",)
        assert Case(function, result, values, arguments, (), [1, 2, 1]).run() == {(): wanted}


@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max", "concat"])
def test_no_rows_no_groups(function: str) -> None:
    value = pa.string() if function == "concat" else pa.int64()
    result = {"avg": pa.float64(), "concat": pa.string()}.get(function, pa.int64())
    for rows in ({"k": [], "v": []}, {"k": [1], "v": ["1"] if function == "concat" else [1]}):
        columns = {"k": pa.array(rows["k"], pa.int64()), "v": pa.array(rows["v"], value)}
        for keys in ((), ("k",)):
            arguments = () if function == "count" else ("v",)
            made = Case(function, result, columns, arguments, keys, [0] * len(rows["k"]))
            check(made, {})


def test_several_and_repeated_keys() -> None:
    columns = {"a": pa.array(["x", "y", "x"]), "b": pa.array([1, 2, 1]), "v": pa.array([10, 20, 30])}
    assert Case("sum", pa.int64(), columns, keys=("b", "a")).run() == {(1, "x"): 40, (2, "y"): 20}
    assert Case("sum", pa.int64(), columns, keys=("a", "a")).run() == {("x", "x"): 40, ("y", "y"): 20}
    assert Case("sum", pa.int64(), columns, ("b",), ("b",)).run() == {1: 2, 2: 2}
    assert Case("max", pa.string(), columns, ("a",), ("a",)).run() == {"x": "x", "y": "y"}


def test_key_rows_come_sorted() -> None:
    assert list(Case("count", pa.int64(), {"k": pa.array([3, 1, 2, 1])}, ()).run().items()) == [
        (1, 2),
        (2, 1),
        (3, 1),
    ]


def test_a_dictionary_that_grows_between_batches() -> None:
    """min and max of strings go by the order of all values, not of those known when a row came."""
    made = Case("min", pa.string(), {"k": pa.array([1, 1]), "v": pa.array(["m", "z"])})
    aggregation = Aggregation(made.head, made.types)
    aggregation.add(made.columns, made.weights)
    later = {"k": np.array([1]), "v": made.types["v"].domain.encode(pa.array(["a"]))}
    aggregation.add(later, np.array([1]))
    assert aggregation.finish()[1].to_pylist() == ["a"]


# -- floats -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1.1e31, 1.0, -1.1e31, 2.5], 3.5),
        ([1e308, 1e308, -1e308], 1e308),
        ([1e308, 1e308], math.inf),
        ([5e-324, 1e-323], 1.5e-323),
        ([-0.0], 0.0),
        ([0.1, 0.2, -0.2, -0.1], 0.0),
        ([1.0, math.nan], math.nan),
        ([1.0, math.inf], math.inf),
        ([-math.inf, 1e308], -math.inf),
        ([math.inf, -math.inf], math.nan),
    ],
)
def test_sum_of_floats(values: list[float], total: float) -> None:
    found = case("sum", pa.float64(), [(1, value, 1) for value in values], pa.float64()).run()[1]
    assert struct.pack("<d", found) == struct.pack("<d", total)


def test_float32_is_summed_as_float64() -> None:
    rows = [(1, value, 1) for value in (0.1, 1e30, -1e30, 2.0**-20)]
    exact = sum((Fraction(float(np.float32(value))) for _, value, _ in rows), Fraction(0))
    assert case("sum", pa.float64(), rows, pa.float32()).run() == {1: float(exact)}
    assert case("max", pa.float32(), rows, pa.float32()).run() == {1: float(np.float32(1e30))}


def test_nan_is_the_largest_float() -> None:
    rows = [(1, math.nan, 1), (1, math.inf, 1), (1, -1.0, 1), (2, math.nan, 2)]
    smallest = case("min", pa.float64(), rows, pa.float64()).run()
    assert smallest[1] == -1.0
    assert math.isnan(smallest[2])
    assert all(map(math.isnan, case("max", pa.float64(), rows, pa.float64()).run().values()))


def test_avg_beyond_the_largest_float() -> None:
    assert case("avg", pa.float64(), [(1, 1e308, 1), (1, 1.5e308, 3)], pa.float64()).run() == {1: 1.375e308}


# -- other types --------------------------------------------------------------


def test_sum_of_durations() -> None:
    second = datetime.timedelta(seconds=1)
    rows = [(1, second, 3), (1, -2 * second, 1)]
    assert case("sum", pa.duration("ms"), rows, pa.duration("ms")).run() == {1: second}
    with pytest.raises(RangeError, match=r"total\[1\] = sum\(v\) is .* does not fit duration\[us\]$"):
        case("sum", pa.duration("us"), [(1, 10**8 * 86400 * second, 1 << 22)], pa.duration("us")).run()


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("h[] = sum(v) <- (r(v, _) ; r(_, v)).", [("3.75",)]),
        ("h[] = sum(v) <- (r(_, v) ; r(v, _)).", [("3.75",)]),
        ("h[v] = sum(w) <- (r(v, _) ; r(_, v)), w = v - 1.5.", [("1.50", "0.00"), ("2.25", "0.75")]),
        ("h(n: sum(v), m: max(v)) <- (r(v, _) ; r(_, v)).", [("3.75", "2.25")]),
    ],
)
def test_decimals_of_several_scales_in_one_sum(rule: str, rows: list[tuple[str, ...]]) -> None:
    """The first alternative had the fewest digits behind the point, and the sum failed, once and kept."""
    one, two = pa.decimal128(10, 1), pa.decimal128(6, 2)
    table = pa.table({"a": pa.array([Decimal("1.5")], one), "b": pa.array([Decimal("2.25")], two)})
    workspace = lftj.Workspace()
    workspace.load("r", table)
    workspace.install(rule)
    for found in (lftj_database(table).query(rule), workspace["h"].to_arrow()):
        shown = [tuple(map(str, row)) for row in zip(*found.to_pydict().values(), strict=True)]
        assert sorted(shown) == rows


def lftj_database(table: pa.Table) -> lftj.Database:
    database = lftj.Database()
    database.load("r", table)
    return database


def test_dictionary_encoded_decimals() -> None:
    plain = pa.array([Decimal("1.25"), Decimal("-0.50")], pa.decimal128(5, 2))
    columns = {"k": pa.array([1, 1]), "v": plain.dictionary_encode()}
    assert Case("sum", pa.decimal128(38, 2), columns).run() == {1: Decimal("0.75")}
    assert Case("avg", pa.float64(), columns).run() == {1: 0.375}


# -- errors -------------------------------------------------------------------


def test_overflow_names_head_group_and_way_out() -> None:
    day = datetime.date(2026, 1, 31)
    columns = {
        "name": pa.array(["bob", "ann", "ann"]),
        "day": pa.array([day] * 3),
        "id": pa.array([b"\x00", b"\xff", b"\xff"]),
        "c": pa.array([1, 2**63 - 1, 2]),
    }
    with pytest.raises(RangeError) as caught:
        Case("sum", pa.int64(), columns, ("c",), ("name", "day", "id")).run()
    assert str(caught.value) == (
        'total["ann", 2026-01-31, x"ff"] = sum(c) is 9223372036854775809, which does not fit int64;'
        " a column of decimal128(38, 0) or float64 can have larger sums"
    )
    with pytest.raises(RangeError, match=r"^total\[\] = sum\(c\) is 9223372036854775810"):
        Case("sum", pa.int64(), columns, ("c",), ()).run()


def test_decimal_overflow() -> None:
    largest = Decimal("9" * 36 + ".99")
    columns = {"k": pa.array([1, 1]), "v": pa.array([largest, Decimal("0.01")], pa.decimal128(38, 2))}
    assert Case("sum", pa.decimal128(38, 2), columns, weights=[1, 0]).run() == {1: largest}
    with pytest.raises(
        RangeError, match=rf"is 1{'0' * 36}\.00, which does not fit decimal128\(38, 2\); a column of"
    ):
        Case("sum", pa.decimal128(38, 2), columns).run()


def test_more_assignments_than_int64_can_count() -> None:
    columns = {"k": pa.array([1, 1])}
    assert Case("count", pa.int64(), columns, (), weights=[2**62, 2**62 - 1]).run() == {1: 2**63 - 1}
    with pytest.raises(RangeError, match=r"^total = count\(\): there are more than 2\*\*63 assignments"):
        Case("count", pa.int64(), columns, (), weights=[2**62, 2**62]).run()


def test_concat_beyond_two_gigabytes() -> None:
    columns = {"k": pa.array(["a", "b"]), "s": pa.array(["x" * 1000, "y"])}
    with pytest.raises(
        RangeError, match=r'total = concat\(s\) take 3003000\d+ bytes.*total\["a"\], takes 3002999999'
    ):
        Case("concat", pa.string(), columns, ("s",), weights=[3_000_000, 2]).run()


def test_negative_weights_and_plain_heads_are_refused() -> None:
    with pytest.raises(ValueError, match="negative weight"):
        Case("count", pa.int64(), {"k": pa.array([1])}, (), weights=[-1]).run()
    made = Case("count", pa.int64(), {"k": pa.array([1])}, ())
    with pytest.raises(ValueError, match="no aggregate"):
        Aggregation(CheckedHead("r", ("k",), None, made.head.schema, (0, 0)), made.types)
