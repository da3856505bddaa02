"""laws: what can't be asked is refused with line, caret and candidates in DuckDB's words, without a trace."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import lftj
from lftj.errors import EvaluationError, LftjError, SqlError, UnsupportedSqlError
from maintenance import Workspace

EDGES = [(1, 2), (2, 3), (2, 3)]


@pytest.fixture
def ws() -> Workspace:
    ws = Workspace()
    ws.load("edge", EDGES, columns=["src", "dst"], bag=True)
    ws.load("name", {"id": [1, 2], "text": ["a", "b"]})
    return ws


PLACED = (
    ("select src frm edge whre", "syntax error", "edge"),
    ("select src,\n  from edge where", r"syntax error .* \(line 2\)", "where"),
    ("select *\nfrom egde", r"there is no relation 'egde'; did you mean 'edge'\? \(line 2\)", "egde"),
    ("select * from pg_tabls", "there is no relation 'pg_tabls'; there are 'edge' and 'name'", "pg_tabls"),
    ("select srk from edge", 'Referenced column "srk" not found .*; there is "src"', "srk"),
    ("select e.srk from edge e", '"srk"; there is "src", "dst"', "e.srk"),
    ("select src\nfrom edge, edge f", r"Ambiguous reference to column name \"src\" .*\(line 1\)", "src"),
    ("select src from edge where text = 1", '"text" not found', "text"),
    ("select id + text from name", r"(?s)No function matches.*\.\.\.", "+"),
    ("select nosuch(src) from edge", "nosuch", "nosuch(src)"),
    ("select id from name where text > date '2020-01-01'", "Cannot compare", "text > date '2020-01-01'"),
    ("select 'äöü', srk from edge", "srk", "srk"),
)


@pytest.mark.parametrize(("text", "words", "marked"), PLACED, ids=[text for text, _, _ in PLACED])
def test_an_error_has_its_place(ws: Workspace, text: str, words: str, marked: str) -> None:
    for ask in (ws.sql, lambda sql: ws.create_view("v", sql)):
        with pytest.raises(SqlError) as raised:
            ask(text)
        assert not isinstance(raised.value, UnsupportedSqlError)
        message = str(raised.value)
        assert re.search(words, message)
        assert raised.value.span is not None, message
        assert text[slice(*raised.value.span)] == marked, message
        assert message.splitlines()[-1].strip() == "^" * len(marked)
        assert len(message.splitlines()) < 14
    assert sorted(ws) == ["edge", "name"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "one statement at a time: there are none"),
        ("-- nothing", "there are none"),
        ("select 1; select 2", "there are 2"),
    ],
)
def test_it_is_one_statement(ws: Workspace, text: str, words: str) -> None:
    for ask in (ws.sql, ws.snapshot().sql, lambda sql: ws.create_view("v", sql)):
        with pytest.raises(SqlError, match=words):
            ask(text)


OTHERS = {
    "create index i on edge(src)": r"sql\(\) of a Workspace",
    "insert into edge values (1, 2)": r"INSERT is not taken: sql\(\) of a Workspace changes",
    "merge into edge using name on src = id when matched then delete": "MERGE INTO is not taken",
    "pivot edge on src using count(*)": r"PIVOT without its values is not taken: list the values",
    "explain select 1": r"EXPLAIN is not taken: explain_maintenance\(\)",
    "prepare p as select 1": "params=",
    "begin": r"ws.transaction\(\)",
    "copy edge to 'x.csv'": r"load\(\) reads files",
    "alter table edge add column x int": "load the relation anew",
    "set threads = 2": "SET is not taken: a SELECT is",
}


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_select_is_refused_by_its_kind(ws: Workspace, text: str) -> None:
    database = lftj.Database()
    database.load("edge", {"src": [1], "dst": [2]})
    database.load("name", {"id": [1]})
    for ask in (database.sql, lambda sql: ws.create_view("v", sql)):
        with pytest.raises(UnsupportedSqlError, match=OTHERS[text]):
            ask(text)
    assert sorted(ws) == ["edge", "name"]
    assert sorted(ws["edge"]) == EDGES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("select * from 'x.csv'", "reads files is not taken: load its rows"),
        ("select * from read_csv('x.csv')", "reads files is not taken: load its rows"),
        ("select " + "+".join(["src"] * 600) + " from edge", "nested so deeply is not taken: .* in a WITH"),
        ("select date '2026-01-01' = src from edge", "a cast of BIGINT to DATE is not taken"),
        ("select src::timestamp from edge", "a cast of BIGINT to TIMESTAMP is not taken"),
    ],
    ids=("a file", "a function of a file", "600 operators", "a date beside a number", "a number as a time"),
)
def test_what_is_not_taken_says_what_to_do(ws: Workspace, text: str, words: str) -> None:
    for ask in (ws.sql, lambda sql: ws.create_view("v", sql)):
        with pytest.raises(UnsupportedSqlError, match=words):
            ask(text)
    assert sorted(ws) == ["edge", "name"]


def test_names_of_ones_own_are_told_and_no_others(ws: Workspace) -> None:
    ws.sql("with recursive t(n) as (select 1 union all select n + 1 from t where n < 3) select * from t")
    ws.create_view("v", "select src from edge where exists (select 1 from name)")
    with pytest.raises(SqlError, match="there is no relation 'nope'") as raised:
        ws.sql("select a from nope")
    assert "#" not in str(raised.value)


def test_a_subquery_of_two_rows_says_so_in_few_words(ws: Workspace) -> None:
    with pytest.raises(LftjError, match="More than one row returned by a subquery") as raised:
        ws.sql("select (select src from edge) from name")
    assert "SET scalar" not in str(raised.value)


def test_a_plan_that_duckdb_can_not_write(ws: Workspace) -> None:
    side = "name a left join name b on a.id = (select min(src) from edge)"
    on = "full join name c on {} = (select max(src) from edge)"
    for ask in (ws.sql, lambda sql: ws.create_view("v", sql)):
        with pytest.raises(UnsupportedSqlError, match=r"can't write .*: write that side in a WITH"):
            ask(f"select a.id as a, b.id as b, c.id as c from {side} {on.format('a.id')}")
    assert sorted(ws) == ["edge", "name"]
    ab = f"with ab as (select a.id as a, b.id as b from {side})"
    instead = f"{ab} select a, b, c.id as c from ab {on.format('a')}"
    expected = {(1, 1, None), (1, 2, None), (2, None, 1), (2, None, 2)}
    assert set(map(tuple, map(dict.values, ws.sql(instead).to_pylist()))) == expected


def test_variables_of_python_are_no_tables(ws: Workspace) -> None:
    secret = pa.table({"a": [1]})
    assert secret.num_rows
    with pytest.raises(SqlError, match="there is no relation 'secret'"):
        ws.sql("select * from secret")


def test_names_that_differ_in_case_alone_are_refused(ws: Workspace) -> None:
    ws.load("Edge", {"a": [1]})
    assert ws.sql("select id from name").num_rows == 2
    with pytest.raises(SqlError, match=r"relations '[eE]dge' and '[eE]dge' are one for SQL"):
        ws.sql("select * from edge")


def test_a_view_that_can_not_be_computed_is_not_there(ws: Workspace) -> None:
    with pytest.raises(EvaluationError):
        ws.create_view("v", "select dst, (select src from edge e where e.dst = edge.dst) as src from edge")
    assert sorted(ws) == ["edge", "name"]
    assert dict(ws.views) == {}
    ws.create_view("v", "select src from edge where dst = 3")
    with pytest.raises(SqlError):
        ws.create_view("v", "select nope from edge", replace=True)
    with pytest.raises(EvaluationError):
        ws.create_view("v", "select (select src from edge) as src from name", replace=True)
    assert list(ws["v"]) == [(2,), (2,)]
    ws.verify()
    ws.check_invariants()


def test_a_view_that_fails_rolls_its_transaction_back(ws: Workspace) -> None:
    ws.create_view("one", "select id, (select dst from edge where src = id) as dst from name where id = 1")
    before = sorted(ws["edge"])
    with (
        pytest.raises(EvaluationError, match="More than one row returned by a subquery") as raised,
        ws.transaction() as tx,
    ):
        tx.insert("name", [(3, "c")])
        tx.insert("edge", [(1, 9)])
    assert "one" in str(raised.value)
    assert sorted(ws["edge"]) == before
    assert sorted(ws["name"]) == [(1, "a"), (2, "b")]
    assert list(ws["one"]) == [(1, 2)]
    ws.verify()


@pytest.mark.parametrize(
    ("rule", "head"),
    [
        ("h(x) <- edge(x, _).", "h(x) <-"),
        ("  // all\nbag h(x) <- edge(x, y), x > $k.", "bag h(x) <-"),
        ("h[x] = count() <- edge(x, _).", "h[x] = count() <-"),
        ("h(x), g(y) <- edge(x, y).", "h(x), g(y) <-"),
    ],
)
def test_a_rule_says_who_takes_it(ws: Workspace, rule: str, head: str) -> None:
    db = lftj.Database()
    asked = (db.sql, db.explain_sql, ws.sql, ws.transaction().sql, lambda text: ws.create_view("v", text))
    for ask in asked:
        with pytest.raises(
            SqlError, match=r"^this is a rule, .*query\(\) takes it, and install\(\)"
        ) as raised:
            ask(rule)
        assert raised.value.span is not None
        start, end = raised.value.span
        assert rule[start:end] == head
    with pytest.raises(SqlError, match="this is a rule"):
        db.sql(rule, dialect="spark")


def test_sql_with_an_arrow_is_no_rule(ws: Workspace) -> None:
    assert ws.sql("values (1 <-1)").to_pylist() == [{"col0": False}]
    assert ws.sql("select(src <-1) as low from edge where src <-0").num_rows == 0
    assert ws.sql("(select src from edge where src <-1)").num_rows == 0
