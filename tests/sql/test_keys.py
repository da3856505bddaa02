"""SQL over tables with a key: PRIMARY KEY, what it refuses, and what a SELECT need not do because of it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from lftj import Database
from lftj.errors import ChangeError, KeyConflictError, UnsupportedSqlError
from maintenance import Workspace

ORDERS = [(1, "Ann", 10), (2, "Bo", 10), (3, "Ann", None)]
QUERIES = {
    "select id, customer from orders": False,
    "select customer from orders": True,
    "select distinct id, customer from orders": False,
    "select o.id, p.id as other from orders o join orders p on o.customer = p.customer": False,
    "select o.id, p.customer from orders o join orders p on o.customer = p.customer": True,
    "select o.customer, p.amount, o.id from orders o left join orders p on o.id = p.id": True,
}
"""And whether copies are counted: of the last one needlessly, its two bodies are not seen to be apart."""


def test_a_key_says_that_rows_differ() -> None:
    """As DuckDB answers, with and without the key; with it no copies are counted where it is shown."""
    keyed, plain, peer = Workspace(), Database(), duckdb.connect()
    keyed.sql("create table orders(id bigint primary key, customer varchar, amount bigint)")
    peer.sql("create table orders(id bigint primary key, customer varchar, amount bigint)")
    with keyed.transaction() as tx:
        tx.upsert("orders", ORDERS)
    plain.load("orders", keyed["orders"].table, nulls="keep")
    peer.executemany("insert into orders values (?, ?, ?)", ORDERS)
    for query, repeats in QUERIES.items():
        expected = sorted(map(str, peer.sql(query).fetchall()))
        for database in (keyed, plain):
            answer = database.sql(query)
            assert sorted(map(str, zip(*answer.to_pydict().values(), strict=True))) == expected, query
        assert ("bag " in str(keyed.explain_sql(query))) == repeats, query
        keyed.create_view(f"v{len(keyed.views)}", query)
    with keyed.transaction() as tx:
        tx.upsert("orders", [(1, "Cy", 5), (4, "Bo", 7)])
        tx.erase_keys("orders", [(3,)])
    peer.sql("delete from orders where id in (1, 3)")
    peer.executemany("insert into orders values (?, ?, ?)", [(1, "Cy", 5), (4, "Bo", 7)])
    for view, query in zip(keyed.views, QUERIES, strict=True):
        rows = zip(*keyed[view].table.to_pydict().values(), strict=True)
        assert sorted(map(str, rows)) == sorted(map(str, peer.sql(query).fetchall())), query
    keyed.verify()


def test_statements_keep_the_key(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as ws:
        ws.sql("create table t (a bigint, b varchar, c bigint, primary key (c, a))")
        ws.sql("insert into t values (1, 'x', 1), (1, 'y', 2)")
        with pytest.raises(KeyConflictError, match=r"key c=1, a=1, \(1, \"x\", 1\) and \(1, \"z\", 1\)"):
            ws.sql("insert into t values (2, 'w', 1), (1, 'z', 1)")
        with pytest.raises(KeyConflictError):
            ws.sql("update t set c = 1")
        ws.sql("update t set c = c + 1")
        merge = (
            "merge into t using (values (1, 'new', 2), (5, 'new', 5)) s(a, b, c) on t.a = s.a and t.c = s.c"
        )
        ws.sql(f"{merge} when matched then update set b = s.b when not matched then insert values (a, b, c)")
        rows = [(1, "new", 2), (1, "y", 3), (5, "new", 5)]
        assert sorted(ws["t"]) == rows
        with pytest.raises(ChangeError, match=r"'a': NULL in row 0 .* one of the key"):
            ws.sql("insert into t values (null, 'n', 1)")
        for text in (
            "create table u (a bigint unique)",
            "create table u (a bigint primary key, check (a > 0))",
        ):
            with pytest.raises(UnsupportedSqlError, match="would not be kept"):
                ws.sql(text)
        ws.sql("insert into t values (9, 'or replace', 9)")
        ws.sql("delete from t where a = 9")
    with Workspace.open(tmp_path) as ws:
        assert sorted(ws["t"]) == rows
        with pytest.raises(KeyConflictError):
            ws.sql("insert into t values (5, 'z', 5)")
