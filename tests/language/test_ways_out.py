"""What people write who come from SQL, pandas and Spark, and the way out that the message names.

Each case: what is asked, and what its message has to contain, before the text that it shows.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import lftj
from lftj.errors import RuleSyntaxError, TypeClashError


@pytest.fixture(scope="module")
def db() -> lftj.Database:
    database = lftj.Database()
    database.load("e", {"a": [1, 1, 1, 2], "b": [5, 5, 6, 7], "c": [1, 2, 3, 4]})
    database.load("p", pa.table({"id": ["1"], "d": [dt.date(2026, 1, 1)]}))
    moment = [dt.datetime(2026, 1, 1)]
    database.load("local", pa.table({"t": pa.array(moment, pa.timestamp("us"))}))
    database.load("zoned", pa.table({"t": pa.array(moment, pa.timestamp("us", "Asia/Tokyo"))}))
    database.load("later", pa.table({"t": pa.array([dt.datetime(2026, 1, 1, 9)], pa.timestamp("us"))}))
    return database


@pytest.mark.parametrize(
    "text",
    [
        "select * from e",
        "SELECT a FROM e;",
        "  (select a from e)",
        "with x as (select 1) select 1",
        "from e",
        "insert into e values (1, 2, 3)",
        "delete from e",
        "create view v as select 1",
    ],
)
def test_sql_where_a_rule_stands(db: lftj.Database, text: str) -> None:
    for take in (db.query, db.count, db.explain, lftj.Workspace().install):
        with pytest.raises(RuleSyntaxError, match=r"this is SQL.* sql\(\) takes it, .*create_view\(\)"):
            take(text)


def test_heads_may_be_called_as_keywords_of_sql(db: lftj.Database) -> None:
    for name in ("select", "with", "from", "values"):
        assert db.count(f"{name}(a) <- e(a, _, _).") == 2
        with pytest.raises(RuleSyntaxError, match="expected"):
            db.count(f"{name}(a) <- e(a, _, _) b.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q(a) <- e(a, b, _) AND b = 5.", "expected ',' or '.', not 'AND'; literals are separated by ','"),
        ("q(a) <- e(a, b, _), b = 5 and a = 1.", "not 'and'; literals are separated by ','"),
        ("q(a) <- e(a, b, _), b = 5 OR b = 6.", "alternatives stand in parentheses: (a(x) ; b(x))"),
        ("q(a) <- e(a, b, _), NOT e(b, a, _).", "negation is written !"),
        ("q(a) <- e(a, b, _), b IN (5, 6).", "keywords have small letters: in"),
        ("q[a] = count(DISTINCT b) <- e(a, b, _).", "keywords have small letters: distinct"),
        ("q[a] = count(distinct(b)) <- e(a, b, _).", "unknown function 'distinct'; write count(distinct x)"),
        ("q[a] = mean(b) <- e(a, b, _).", "unknown aggregate 'mean'; it is called 'avg'"),
        ("q[a] = average(b) <- e(a, b, _).", "it is called 'avg'"),
        ("q[a] = nunique(b) <- e(a, b, _).", "write count(distinct x)"),
        ("q[a] = size(b) <- e(a, b, _).", "write count()"),
        ("q[a] = madian(b) <- e(a, b, _).", "did you mean 'median'?"),
    ],
)
def test_words_of_elsewhere(db: lftj.Database, text: str, message: str) -> None:
    with pytest.raises(RuleSyntaxError) as raised:
        db.query(text)
    assert message in raised.value.reason


def test_distinct_values_are_counted(db: lftj.Database) -> None:
    found = db.query("q[a] = count(distinct b) <- e(a, b, _).").to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(1, 2), (2, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('q(i) <- p(i, d), d = "2026-01-01".', "a date is written without quotes: 2026-01-01"),
        ('q(i) <- p(i, "2026-01-01").', 'compared with "2026-01-01"; a date is written without quotes'),
        ('q(t) <- local(t), t > "2026-01-01 10:00:00".', "without quotes: 2026-01-01T10:00:00"),
        ('q(a) <- e(a, b, _), b = "5".', "an integer is written without quotes: 5"),
        ("q(i) <- p(i, _), i = 1.", 'a string stands in double quotes: "1"'),
    ],
)
def test_literals_of_another_kind(db: lftj.Database, text: str, message: str) -> None:
    with pytest.raises(TypeClashError) as raised:
        db.query(text)
    assert message in raised.value.reason


@pytest.mark.parametrize(
    ("wrong", "message", "right", "rows"),
    [
        (
            "q(a) <- e(a, _, _), p(a, _).",
            'call it a2 here, and write a2 = cast(a, "string") beside it',
            'q(a) <- e(a, _, _), p(a2, _), a2 = cast(a, "string").',
            [1],
        ),
        (
            "q(a) <- p(a, _), e(a, _, _).",
            'call it a2 here, and write a = cast(a2, "string") beside it',
            'q(a) <- p(a, _), e(a2, _, _), a = cast(a2, "string").',
            ["1"],
        ),
        (
            "q(t) <- later(t), zoned(t).",
            'call it t2 here, and write t = cast(t2, "timestamp[us]") beside it',
            'q(t) <- later(t), zoned(t2), t = cast(t2, "timestamp[us]").',
            [dt.datetime(2026, 1, 1, 9)],
        ),
    ],
    ids=["integer and string", "string and integer", "zones"],
)
def test_columns_of_other_types_are_joined_by_a_cast(
    db: lftj.Database, wrong: str, message: str, right: str, rows: list[object]
) -> None:
    """What the message says is written so, and does what was meant (a zoned time by its local one)."""
    with pytest.raises(TypeClashError) as raised:
        db.query(wrong)
    assert message in raised.value.reason
    assert [*db.query(right).to_pydict().values()] == [rows]
