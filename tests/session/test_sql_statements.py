"""SQL as it is typed and as files hold it: told from rules, cut into statements, read as views, ordered."""

from __future__ import annotations

import pytest

from lftj.errors import ChangeError, SqlError
from lftj.session.session import is_complete, statements
from lftj.session.sql_statements import (
    ViewText,
    by_dependency,
    created_view,
    dropped_view,
    is_sql,
    is_whole,
    sql_statements,
    views_of,
)


def cut(text: str) -> list[tuple[str, bool]]:
    return [(text[start:end].strip(), whole) for start, end, whole in sql_statements(text)]


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "  SELECT a from t where a <-1",
        "select (a) from t where a <-1",
        "((select 1) union all select 2)",
        "/* all;\nof */ -- it\nfrom t",
        "with r as (from t) from r",
        "values (1)",
        "pivot t on a",
        'create view "my view" as from t',
        "create or replace materialized view v as from t",
        "drop view v",
        "insert or ignore into t values (1)",
        "merge into t using s on t.a = s.a when matched then delete",
        "create table t (a int)",
    ],
)
def test_sql(text: str) -> None:
    assert is_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "p(a) <- select(a).",
        "select(a) <- p(a).",
        "from[a] = count() <- p(a, _).",
        "values(a, count(distinct b)) <- p(a, b).",
        "// select\nwithout(a) <- p(a).",
        "bag p(a) <- q(a).",
        "create_(a) <- p(a).",
        "update(a) <- p(a).",
        ".sql select 1",
        "",
    ],
)
def test_rules(text: str) -> None:
    assert not is_sql(text)


def test_statements_end_at_semicolons_that_stand_in_nothing() -> None:
    assert cut(
        "select ';', \";\" -- ;\n, $$;$$, $a$ ;$$ $a$, E'\\';', 'it''s;' /* ; */; from t ;; -- end"
    ) == [
        ("select ';', \";\" -- ;\n, $$;$$, $a$ ;$$ $a$, E'\\';', 'it''s;' /* ; */", True),
        ("from t", True),
    ]
    assert cut("  -- nothing\n/* ; */ ") == []
    for open_one in ("select 'a;", 'select "a;', "select $$ a;", "select /* a;", "select 1 -- ;", "select 1"):
        assert not is_whole(open_one)


def test_typed_statements_are_rules_and_sql_in_turn() -> None:
    text = (
        "\nselect a\nfrom e\n\nwhere a < 2;\np(a) <- e(a, _).\n.count select a\nfrom e;\n.relations\nfrom e"
    )
    assert [" ".join(one.split()) for one in statements(text.splitlines())] == [
        "select a from e where a < 2;",
        "p(a) <- e(a, _).",
        ".count select a from e;",
        ".relations",
        "from e",
    ]
    assert is_complete(".load select x.csv")  # a command that takes no SQL ends with its line


def test_views_are_created_and_dropped_by_name() -> None:
    assert dropped_view(' -- gone\ndrop view "a ""b"" c" ') == 'a "b" c'
    assert dropped_view("drop materialized view v") == "v"
    assert dropped_view("select 1") is None and created_view("select 1") is None
    view = created_view('create or replace view "v w" as -- rows\n  select 1 -- all')
    assert view is not None
    assert (view.name, view.sql, view.replace) == ("v w", "select 1 -- all", True)
    assert view.text[view.start :] == view.sql


def test_a_file_is_a_view_or_creates_several() -> None:
    (view,) = views_of("-- dear ones\n\nselect a from t -- now\n;\n", "models/dear.v1.sql")
    assert (view.name, view.sql, view.start) == ("dear.v1", "select a from t -- now", 14)
    assert [view.name for view in views_of("select 1", "-e")] == ["view"]
    both = views_of("create view a as\nfrom t;\ncreate view b as from a;", "two.sql")
    assert [(one.name, one.sql, one.text[one.start :][:4]) for one in both] == [
        ("a", "from t", "from"),
        ("b", "from a", "from"),
    ]
    with pytest.raises(
        SqlError, match=r"two.sql: of several statements each is CREATE VIEW .* \(line 2\)\n  from"
    ):
        views_of("create view a as from t;\nfrom a;", "two.sql")
    with pytest.raises(SqlError, match=r"none.sql: there is no SELECT"):
        views_of("-- nothing yet", "none.sql")


def test_an_error_has_its_place_in_the_file() -> None:
    (view,) = views_of("-- first\nselect a,\n  b from t", "models/v.sql")
    at = view.sql.index("b")
    with pytest.raises(SqlError) as raised, view.placed():
        raise SqlError("no b (line 2)\nor c\n    b from t\n    ^", (at, at + 1))
    assert str(raised.value) == "models/v.sql: no b (line 3)\nor c\n    b from t\n    ^"
    assert raised.value.span is not None and view.text[slice(*raised.value.span)] == "b"
    with pytest.raises(ChangeError, match=r"models/v.sql: view 'v': taken"), view.placed():
        raise ChangeError("taken")


def test_views_come_behind_those_that_they_read() -> None:
    views = [ViewText(name, "", f"{name}.sql", "") for name in ("a", "B", "c")]
    reads = {"a": ["C", "t"], "B": ["a", "b"], "c": []}
    assert [view.name for view in by_dependency(views, reads)] == ["c", "a", "B"]
    assert [view.name for view in by_dependency(views, {"a": [], "B": [], "c": []})] == ["a", "B", "c"]
    with pytest.raises(
        SqlError, match=r"each other: a \(a.sql\) reads B \(B.sql\) reads c \(c.sql\) reads a"
    ):
        by_dependency(views, {"a": ["b"], "B": ["c"], "c": ["a"]})
