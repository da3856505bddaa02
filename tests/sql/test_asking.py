"""A text is translated once while what it reads has the same schemas, and anew when one changes."""

from __future__ import annotations

import warnings

import pytest

import lftj
from lftj.database import asking
from lftj.errors import CartesianProductWarning, SqlError

TEXT = "select a, count(*) n from t group by a order by a"


@pytest.fixture
def translated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were translated, in order."""
    texts: list[str] = []
    translate = asking.translated

    def noted(sql: str, *more: object, **options: object) -> object:
        texts.append(sql)
        return translate(sql, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(asking, "translated", noted)
    return texts


def database() -> lftj.Database:
    db = lftj.Database()
    db.load("t", [(1, 2), (1, 3)], columns=["a", "b"])
    db.load("u", [(1,)], columns=["c"])
    return db


def test_data_may_change(translated: list[str]) -> None:
    db = database()
    for rows in ([(1, 2), (1, 3)], [(2, 5)], [(4, 1), (7, 2)]):
        db.load("t", rows, columns=["a", "b"])
        expected = [{"a": a, "n": sum(a == other for other, _ in rows)} for a in sorted({a for a, _ in rows})]
        assert db.sql(TEXT).to_pylist() == expected
    assert translated == [TEXT]


def test_schemas_that_are_read_decide(translated: list[str]) -> None:
    db = database()
    db.sql(TEXT)
    db.load("u", [("x",)], columns=["c"])
    db.sql(TEXT)
    assert translated == [TEXT]
    db.load("t", [("x", 3)], columns=["a", "b"])
    assert db.sql(TEXT).to_pylist() == [{"a": "x", "n": 1}]
    db.load("t", [(3, "x")], columns=["b", "a"])
    assert db.sql(TEXT).to_pylist() == [{"a": "x", "n": 1}]
    assert translated == [TEXT] * 3


def test_a_relation_of_a_heads_name_decides(translated: list[str]) -> None:
    db = database()
    before = db.sql(TEXT)
    for name in ("answer", "answer_groups"):
        db.load(name, [(5,)], columns=["v"])
        assert db.sql(TEXT) == before
    assert db.sql("select v from answer").to_pylist() == [{"v": 5}]


def test_a_column_that_is_gone_is_missed_where_no_rule_reads_it() -> None:
    db = database()
    text = "select 1 one from t where false and b = 1"
    assert db.sql(text).num_rows == 0
    db.load("t", [(1,)], columns=["a"])
    with pytest.raises(SqlError, match='"b" not found'):
        db.sql(text)


def test_the_last_ones_are_remembered(translated: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "REMEMBERED", 2)
    db = database()
    one, two, three = (f"select a + {number} v from t" for number in range(3))
    for text in (one, two, one, three, one, two):
        db.sql(text)
    assert translated == [one, two, three, two]


def test_a_cross_join_is_no_warning() -> None:
    database = lftj.Database()
    database.load("t", {"a": [1, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("error", CartesianProductWarning)
        assert database.sql("select count(*) n from t x, t y").to_pylist() == [{"n": 4}]
    with pytest.warns(CartesianProductWarning):
        database.query("n[] = count() <- t(a), t(b).")
