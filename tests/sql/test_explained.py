"""What is shown of SQL: each rule behind its place in the text, the plans, how views are kept."""

from __future__ import annotations

import pytest

import lftj
from lftj.errors import SqlError, UnsupportedSqlError
from maintenance import Workspace

pytest.importorskip("duckdb")

SQL = "select c, sum(p) total\nfrom o join l on l.o = o.id\ngroup by c\nhaving sum(p) > 100"


@pytest.fixture
def ws() -> Workspace:
    made = Workspace()
    made.load("o", [(1, 7), (2, 8)], columns=["id", "c"])
    made.load("l", [(1, 3), (1, 3), (1, 120), (2, 5)], columns=["o", "p"], bag=True)
    return made


def test_a_select_is_explained(ws: Workspace) -> None:
    told = ws.explain_sql(SQL + "\norder by total desc limit 1")
    sql, rules, *plans = str(told).split("\n\n")
    assert sql == SQL + "\norder by total desc limit 1"
    lines = rules.splitlines()
    assert lines[-2].startswith("answer(c: c, total: ") and lines[-3] == "// line 4: sum(p) > 100"
    assert lines[-1] == "// of its rows: order by total desc, limit 1"
    assert any("key order" in plan for plan in plans) and told.svg().startswith("<svg")
    assert all(each.rows is None for each in told.bodies)
    assert any(each.rows for each in ws.explain_sql(SQL, analyze=True).bodies)
    with pytest.raises(SqlError, match=r'"q"'):
        ws.explain_sql("select q from o")
    with pytest.raises(UnsupportedSqlError, match="random"):
        lftj.Database().explain_sql("select random()")


def test_a_view_is_explained_rule_by_rule(ws: Workspace) -> None:
    ws.create_view("dear", SQL, strategy="delta")
    told = str(ws.explain_maintenance("dear"))
    view, *parts = told.split("\n\n")
    assert view == "view dear:\n  " + SQL.replace("\n", "\n  ")
    assert parts[-1].startswith("// line 4: sum(p) > 100\ndear(c: c, total: ")
    assert "dear: strategy delta" in parts[-1]
    assert sum(": strategy delta" in part for part in parts) == len(parts)
    assert "strategy" in ws.explain_maintenance("dear_groups")


def test_triggers_of_a_view_are_of_what_it_reads(ws: Workspace) -> None:
    """Down to the relations that transactions change, whatever heads stand between."""
    ws.create_view("dear", SQL, strategy="delta")
    triggers = str(ws.triggers("dear")).splitlines()
    assert [line.partition("(")[0] for line in triggers if line.startswith("on ")] == [
        "on +o",
        "on -o",
        "on +l",
        "on -l",
    ]
    assert all("dear" in line for line in triggers if not line.startswith("on "))
    ws.create_view("seen", "select c from dear")
    assert str(ws.triggers("seen")).startswith("on +dear(c, ")
