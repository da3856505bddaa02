"""oracle: `sql_cast` and `try_cast` against DuckDB's CAST and TRY_CAST, over odd values of every type."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from support import peer

RANDOM = Random(36)
HALVES = [n + 0.5 for n in range(-4, 5)]
FLOATS = """
0 0.49999999999999994 2.45 2.55 2.675 1.005 0.125 0.375 127.4 127.5 -128.5 255.5 1e10 1e19
9.223372036854775e18
-9.223372036854775e18 1e300 1e-300 inf -inf 999.95 99.9949 1e15 1e16 0.0001 1e-5
"""
DECIMALS = """
0.000 2.500 -2.500 3.500 2.450 2.549 -0.050 999.999 -999.950 0.001 127.500 -128.500 99999.999
"""
TEXTS = """
12| 12 |12.5|13.5|-12.5|12.45|-12.45|12.55|1e3|1.5e1|+5|.5|5.|-.5|| |x|1x|0.49|300|-129|1e40|nan|inf|-inf
Infinity|99.96|999.94|true|TRUE|t|f|False|yes|no|Y|n|1|0| true|on|--1|1 2
9223372036854775807|9223372036854775808|2024-01-01| 2024-01-01 |2024-1-1|2024/01/02|2024-02-30
2024-01-01 10:00:00|2024-01-01T10:00:00.5|2024-01-01 10:00|2024-01-01 10:00:00Z|2024-01-01 10:00:00.123456
2024-13-01|2024-01-01 25:00:00
10:00:00|1e-400|1e400
"""
MICROSECONDS = [0, 500_000, 499_999, -500_000, -500_001, -1, 1_500_000, 1_234_500, -1_234_500, 10**15]

COLUMNS: dict[str, pa.Array] = {
    "whole": pa.array([0, 1, -1, 127, 128, 255, 256, -128, -129, 32768, 2**31, 2**53 + 1, -(2**62), 99, 100]),
    "byte": pa.array([0, 1, -1, 127, -128], pa.int8()),
    "float": pa.array(
        [*HALVES, *map(float, FLOATS.split()), *(RANDOM.uniform(-1000, 1000) for _ in range(100))]
    ),
    "single": pa.array([0.5, 1.5, 2.5, 0.3, 1e30, math.inf, 16777217.0, 0.1], pa.float32()),
    "decimal": pa.array(map(Decimal, DECIMALS.split()), pa.decimal128(8, 3)),
    "wide": pa.array(map(Decimal, ("1e30", "0.5", "-1.5", "1e-7")), pa.decimal128(38, 7)),
    "flag": pa.array([True, False]),
    "day": pa.array([datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(1, 1, 1)]),
    "moment": pa.array(MICROSECONDS, pa.timestamp("us")),
    "second": pa.array([0, -1, 10**9], pa.timestamp("s")),
    "text": pa.array([text for line in TEXTS.strip("\n").split("\n") for text in line.split("|")]),
}
TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "utinyint",
    "float64": "double",
    "float32": "float",
    **{name: name for name in ("decimal(4, 1)", "decimal(9, 2)", "decimal(38, 10)", "decimal(5, 0)")},
    "bool": "boolean",
    "string": "varchar",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp[s]": "timestamp_s",
    "timestamp[ms]": "timestamp_ms",
}
NUMBERS = ("whole", "byte", "float", "single", "decimal", "wide", "flag")
NOT_THERE = {  # no cast in SQL, or none in rules
    name: [
        type_ for type_ in TYPES if (type_[:4] in ("date", "time")) == (name in NUMBERS) and type_ != "string"
    ]
    for name in COLUMNS
    if name != "text"
}

ODD = ("inf", "-inf", "Infinity", " 2024-01-01 ")
"""Moments of DuckDB's that Arrow lacks, and spaces that it does not take everywhere."""


def same(ours: Any, theirs: Any) -> bool:
    both_nan = (
        isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours) and math.isnan(theirs)
    )
    return both_nan or (type(ours) is type(theirs) and ours == theirs)


@pytest.mark.in_turns
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("column", COLUMNS)
def test_casts(column: str, type_: str) -> None:
    if type_ in NOT_THERE.get(column, ()):
        pytest.skip("there is no such cast")
    table = pa.table({"k": range(len(COLUMNS[column])), "x": COLUMNS[column]})
    database, connection = lftj.Database(), peer.connection()
    database.load("t", table)
    connection.register("t", table)
    expected = [
        value
        for (value,) in connection.execute(
            f"select try_cast(x as {TYPES[type_]}) from t order by k"
        ).fetchall()
    ]
    rule = f'h(k, v) <- t(k, x), v = try_cast(x, "{type_}").'
    found = database.query(rule, order_by="k")["v"].to_pylist()
    values = COLUMNS[column].to_pylist()
    is_moment = type_.startswith(("date", "timestamp"))
    compared = [k for k, value in enumerate(values) if not (is_moment and value in ODD)]
    assert not [(values[k], found[k], expected[k]) for k in compared if not same(found[k], expected[k])]
    known = [k for k in compared if expected[k] is not None]
    database.load("known", {"k": known})
    rule = f'h(k, v) <- known(k), t(k, x), v = sql_cast(x, "{type_}").'
    shown = [str(value) for value in database.query(rule, order_by="k")["v"].to_pylist()]
    assert shown == [str(expected[k]) for k in known]
    for k in set(compared).difference(known):
        with pytest.raises((errors.RangeError, errors.EvaluationError)):
            database.query(f'h(v) <- t({k}, x), v = sql_cast(x, "{type_}").')


def test_null() -> None:
    database = lftj.Database()
    database.load("t", {"k": [1, 2, 3], "s": ["4", "x", None]}, nulls="keep")
    rule = 'h(k, v, w) <- t(k, s), v = try_cast(s, "int64"), w = sql_cast(null, "date").'
    assert database.query(rule, order_by="k")["v"].to_pylist() == [4, None]
    rule = 'h(k, v) <- t(k, s), v = coalesce(try_cast(s, "int64"), -1).'
    assert database.query(rule, order_by="k")["v"].to_pylist() == [4, -1, -1]
    with pytest.raises(errors.TypeClashError, match="sql_cast takes a type second"):
        database.query("h(k, v) <- t(k, s), v = sql_cast(s, k).")
    with pytest.raises(
        errors.RangeError, match=r'sql_cast\(s, "int64"\) does not fit type int64 where s = "x"'
    ):
        database.query('h(k, v) <- t(k, s), v = sql_cast(s, "int64").')
