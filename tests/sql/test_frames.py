"""oracle: what can say its SQL, frames and texts of other dialects, gives what DuckDB gives for it."""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import ibis
import narwhals as nw
import polars
import pyarrow as pa
import pytest

import lftj
from lftj.errors import SqlError, UnsupportedSqlError
from maintenance import Workspace
from sql.answers import difference, rows_of
from sql.tables import TABLES, Tables

GROUPED = "select a, sum(b) as total from r where b > 6 group by a"


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables()


@pytest.fixture
def ws(tables: Tables) -> Workspace:
    ws = Workspace()
    for name in ("r", "s", "m"):
        ws.load(name, tables.arrow(TABLES[name]), **TABLES[name].options())
    return ws


def check(ws: Workspace, frame: Any, right: list[tuple[Any, ...]]) -> None:
    """Asked and kept."""
    assert (found := difference(rows_of(ws.sql(frame)), right)) is None, found
    ws.create_view("kept", frame)
    assert (found := difference(rows_of(ws["kept"].to_arrow()), right)) is None, found


def test_a_relation_of_duckdb(ws: Workspace, tables: Tables) -> None:
    relation = tables.connection.sql("select * from r").filter("b > 6").aggregate("a, sum(b) as total", "a")
    check(ws, relation, tables.connection.execute(GROUPED).fetchall())


def test_an_expression_of_ibis(ws: Workspace, tables: Tables) -> None:
    r = ibis.table({"a": "int64", "b": "int64"}, name="r")
    s = ibis.table({"c": "int64", "d": "int64"}, name="s")
    check(
        ws,
        r.filter(r.b > 6).group_by("a").agg(total=r.b.sum()),
        tables.connection.execute(GROUPED).fetchall(),
    )
    joined = r.left_join(s, r.a == s.c).filter(lambda t: t.b > 6)[["a", "d"]]
    right = tables.connection.execute("select a, d from r left join s on a = c where b > 6").fetchall()
    assert (found := difference(rows_of(ws.sql(joined)), right)) is None, found


def test_a_frame_of_narwhals(ws: Workspace, tables: Tables) -> None:
    frame = nw.from_native(tables.connection.sql("select * from r"))
    lazy = frame.filter(nw.col("b") > 6).group_by("a").agg(nw.col("b").sum().alias("total"))
    check(ws, lazy, tables.connection.execute(GROUPED).fetchall())


@pytest.mark.parametrize(
    "given", [polars.LazyFrame({"a": [1]}), polars.DataFrame({"a": [1]}), pa.table({}), 3]
)
def test_what_has_no_sql_is_refused(ws: Workspace, given: Any) -> None:
    for asked in (ws.sql, lambda frame: ws.create_view("v", frame)):
        with pytest.raises(
            UnsupportedSqlError, match=f"{type(given).__name__} has no SQL: give a text, an ibis"
        ):
            asked(given)


DIALECTS = (
    ("spark", "SELECT a, NVL(b, 0) AS b FROM r WHERE b <=> a OR b % 2 = 0"),
    ("postgres", "SELECT a, b::text || '!' AS t FROM r WHERE b IS NOT DISTINCT FROM 20 OR a ~ '1'"),
    ("snowflake", "SELECT IFF(a > 1, 'big', 'small') AS size, COUNT(*) AS n FROM r GROUP BY 1"),
    ("bigquery", "SELECT `a`, SAFE_DIVIDE(b, 2) AS half FROM `r` WHERE b IS NOT NULL"),
    ("mysql", "SELECT IFNULL(g, 'none') AS `the name`, k FROM m WHERE day >= '2026-01-01'"),
    ("tsql", "SELECT TOP 2 a, ISNULL(b, 0) AS b FROM r ORDER BY a DESC, b DESC"),
)


@pytest.mark.parametrize(("dialect", "text"), DIALECTS, ids=[name for name, _ in DIALECTS])
def test_a_text_of_a_dialect(ws: Workspace, tables: Tables, dialect: str, text: str) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    try:
        right = tables.connection.execute(sqlglot.transpile(text, read=dialect, write="duckdb")[0]).fetchall()
    except duckdb.Error:
        with pytest.raises(SqlError):
            ws.sql(text, dialect=dialect)
        return
    assert (found := difference(rows_of(ws.sql(text, dialect=dialect)), right)) is None, found


def test_a_view_of_a_dialect_with_parameters(ws: Workspace) -> None:
    ws.create_view(
        "v", "SELECT `a` FROM r WHERE IFNULL(b, 0) > :least", params={"least": 10}, dialect="mysql"
    )
    with ws.transaction() as tx:
        tx.insert("r", [(9, 11)])
    assert sorted(ws["v"].to_arrow()["a"].to_pylist()) == [2, 4, 4, 9]


def test_refusals_of_dialects(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SqlError, match="unknown dialect 'sprak'; did you mean 'spark'"):
        ws.sql("SELECT 1", dialect="sprak")
    with pytest.raises(SqlError, match="this is a LazyFrame"):
        ws.sql(polars.LazyFrame({"a": [1]}), dialect="spark")
    with pytest.raises(SqlError, match="one statement at a time: there are 2"):
        ws.sql("SELECT 1; SELECT 2", dialect="spark")
    text = "SELECT a\nFROM r\nWHERE (b > 1 GROUP BY a"
    with pytest.raises(SqlError, match=r"no spark: .*\(line 3\)") as raised:
        ws.sql(text, dialect="spark")
    assert raised.value.span is not None
    assert text[slice(*raised.value.span)] == "GROUP BY"
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ImportError, match=r"pip install 'lftj\[sql\]', or write DuckDB's SQL"):
        ws.sql("SELECT 1", dialect="spark")
    with pytest.raises(ImportError, match=r"taken apart by sqlglot: pip install 'lftj\[sql\]'"):
        ws.sql("DELETE FROM r")
    assert lftj.Database().sql("select 1 as one").to_pylist() == [{"one": 1}]
