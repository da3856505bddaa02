"""oracle: values of parameters give what DuckDB gives with the same values, types and refusals included."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import ParameterError, SqlError
from lftj.statements.parameters import Filled, filled
from maintenance import Workspace
from sql.answers import difference, rows_of
from sql.tables import TABLES, Tables
from support import peer

VALUES = (
    None,
    True,
    False,
    0,
    -7,
    2**31,
    -(2**63),
    1.5,
    -2.0,
    1e-300,
    1e300,
    float("inf"),
    float("nan"),
    Decimal("1.50"),
    Decimal("-0.05"),
    Decimal("1E+3"),
    "",
    "it's -- no ? $1",
    "two\nlines\\n",
    "äöü",
    b"\x00a'\xff",
    datetime.date(2026, 1, 31),
    datetime.datetime(2026, 1, 2, 13, 30, 5, 250000),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    datetime.time(13, 30),
    datetime.timedelta(days=-3, seconds=7, microseconds=9),
    [1, 2, None],
    [],
    ["a", "it's"],
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_has_the_type_that_duckdb_gives_it(value: Any) -> None:
    connection = peer.connection()
    right = connection.execute("select typeof($1), $1", [value]).fetchone()
    found = connection.execute(filled("select typeof($1), $1", [value]).text).fetchone()
    assert str(found) == str(right)


@given(
    st.one_of(
        st.text(alphabet="a'\"?$1\\\n\r -/*ä😀"),
        st.binary(max_size=9),
        st.floats(),
        st.integers(-(2**126), 2**126),
    )
)
def test_any_value_comes_back(value: Any) -> None:
    ((found,),) = duckdb.sql(filled("select ?", [value]).text).fetchall()
    assert repr(found) == repr(value)


CASES: tuple[tuple[str, Any], ...] = (
    ("select a, b from r where b > ? and a <> $1", [3]),
    ("select a, b from r where b > ? or b = ?", [10, 5]),
    ("select a, b from r where b = $2 or a = $1", [4, 5]),
    ("select k, p from m where p > $least and g is distinct from $G", {"least": Decimal("1.10"), "g": "abc"}),
    ("select k, x from m where x * ? > 0.1", [1.5]),
    ("select k, day from m where day > ?", [datetime.date(2026, 1, 1)]),
    ("select k, day from m where day > ?", ["2026-01-01"]),
    ("select k, moment from m where moment = ?", [datetime.datetime(2026, 1, 1)]),
    ("select k, '?', g as \"$1\" /* ? */ from m where g = ? -- ?", ["5%"]),
    ("select k, $$ ? $$ from m where g like ?", ["a%"]),
    ("select k from m where g in (?, ?) and f = ?", ["abc", "b", True]),
    ("select a, coalesce(b, ?) as c from r", [None]),
    ("select a from r where b in (select d from s where c = ?) order by a limit ?", [1, 2]),
    ("select a + ? as n, -? as m from r where a=?", [-1, -2, 1]),
    ("select case when a>? then ? else ? end as c from r", [2, "big", "small"]),
    ("select q + ? as c from m", [1]),
    ("select q / ? as c, q // ? as d from m", [2, 2]),
)


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables()


@pytest.mark.parametrize(("text", "params"), CASES, ids=[text for text, _ in CASES])
def test_as_duckdb(tables: Tables, text: str, params: Any) -> None:
    database = lftj.Database()
    for name, table in TABLES.items():
        database.load(name, tables.arrow(table), **table.options())
    right = tables.connection.execute(text, params).fetchall()
    assert (found := difference(rows_of(database.sql(text, params)), right)) is None, found


def test_numbers_of_numpy_are_values() -> None:
    assert filled("select ?, ?", [np.int64(3), np.float64(0.5)]).text == "select 3, 5e-1".replace(
        "5e-1", "0.5e0"
    )


@pytest.mark.parametrize(
    ("text", "params", "words"),
    [
        ("select ?", None, "'1' has no value: no values are given"),
        ("select ?, ?", [1], r"'2' has no value: there are values for '1'"),
        (
            "select ?, $b",
            {"1": 1},
            "'b' has no value: .* '1'; params= takes .* the statement has '1' and 'b'",
        ),
        ("select ?", [1, 2], "values are given for '2', which the statement does not have: it has '1'$"),
        (
            "select 1",
            [1],
            r"values are given for '1', which .*: it has none; one is written \?, \$1 or \$name",
        ),
        ("select $name", {"nam": 1}, "'name' has no value: there are values for 'nam'"),
        ("select $name", {"name": 1, "other": 2}, "'other', which"),
        ("select $name", 3, "not a int"),
        ("select ?", "3", "not a str"),
        ("select ?", [object()], "a object is no value"),
        ("select ?", [2**127], "128 bits"),
        ("select ?", [Decimal("NaN")], "no decimal"),
        ("select ?", [Decimal(10**40)], "38 digits"),
        ("select ?", ["a\0b"], "NUL"),
    ],
)
def test_refusals(text: str, params: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        lftj.Database().sql(text, params)


def test_places_are_those_of_the_text_as_it_was_written() -> None:
    database = lftj.Database()
    database.load("t", {"a": [1]})
    text = "select a from t\nwhere a = $long_name and nope > ?2 and a < 3"
    with pytest.raises(SqlError) as raised:
        database.sql(text, {"long_name": 1, "2": "a text that is much longer than its parameter"})
    assert raised.value.span is not None
    start, end = raised.value.span
    assert text[start:end] == "nope"
    assert str(raised.value).splitlines()[-2:] == [
        "  where a = $long_name and nope > ?2 and a < 3",
        "                           ^^^^",
    ]


def test_a_place_in_a_value_is_the_parameters() -> None:
    statement = filled("? + ?", ["ab", "abcd"])
    assert statement == Filled("'ab' + 'abcd'", (((0, 1), (0, 4)), ((4, 5), (7, 13))))
    assert [statement.place(span) for span in ((0, 4), (1, 2), (5, 6), (7, 13), (8, 9))] == [
        (0, 1),
        (0, 1),
        (2, 3),
        (4, 5),
        (4, 5),
    ]


def test_a_view_has_the_values_in_it() -> None:
    ws = Workspace()
    ws.load("t", {"a": [1, 2, 3]})
    ws.create_view("large", "select a from t where a > $least", params={"least": 1})
    with ws.transaction() as tx:
        tx.insert("t", {"a": [4]})
    assert sorted(ws["large"]) == [(2,), (3,), (4,)]
    assert ws.views == {"large": "select a from t where a > 1"}
