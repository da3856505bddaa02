"""oracle: INSERT with ON CONFLICT, OR REPLACE or OR IGNORE leaves the rows that DuckDB leaves."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lftj.errors import (
    ChangeError,
    ConflictError,
    KeyConflictError,
    SqlError,
    TransactionError,
    UnsupportedSqlError,
)
from lftj.values import schema
from maintenance import Workspace

TABLES = (
    "create table t (b varchar, id int, part varchar, c int, d decimal(8, 2), primary key (part, id))",
    "create table s (a integer, c integer)",
    "insert into t values ('x', 1, 'é', 10, 1.5), ('y', 2, 'é', null, null), (null, 1, '', 30, 2.25)",
    "insert into s values (1, 5), (2, 6), (9, null), (9, null)",
)
VIEWS = {
    "by_part": "select part, count(*) as n, cast(sum(c) as bigint) as total from t group by part",
    "met": "select t.b, s.c from t left join s on t.id = s.a",
}

STATEMENTS = (
    "insert or replace into t values ('z', 1, 'é', 11, 1), ('new', 7, '', 12, 0.25)",
    "insert or ignore into t values ('z', 1, 'é', 11, 1), ('new', 8, '', 12, 0.25)",
    "INSERT OR REPLACE INTO T (ID, PART, B) VALUES (1, 'é', 'given'), (5, 'é', 'alone')",
    "insert or replace into t by name (select 'é' as part, 2 as id, 3 as c)",
    "insert or replace /* not: */ into t select 'f', a, 'é', c, 0 from s where a < 9;",
    "insert into t values ('q', 1, 'é', 5, 5) on conflict do nothing",
    "insert into t values ('q', 1, 'é', 5, 5), ('q', 3, 'é', 5, 5) on conflict (id, part) do nothing"
    " returning *",
    "insert into t values ('q', 1, 'é', 5, 5), ('s', 7, 'é', 7, 7) on conflict (part, id) do update"
    " set b = excluded.b, c = t.c + excluded.c returning id, c + 1 as more",
    "insert into t as u values ('q', 1, 'é', 5, 5) on conflict do update set b = u.b || excluded.b || c",
    "insert into t values ('q', 1, 'é', 5, 5), ('q', 2, 'é', 5, 5) on conflict do update set c = excluded.c"
    " where t.c > excluded.c",
    "insert into t values ('q', 1, 'é', 5, 5) on conflict do update set (b, c) = ('u', default), d = default",
    "insert into t values (default, 1, 'é', '6', 1.005) on conflict do update"
    " set b = excluded.b, d = excluded.d",
    "insert into t values ('q', 1, 'é', 5, 5) on conflict do update set id = 100",
    "insert into t (id, part) values (2, 'é') on conflict do update set c = -1",
    "insert into t select b, id, part, c + 1, d from t on conflict do update set c = excluded.c",
    "insert into t select 'f', s.a, 'é', max(t.c), null from s left join t on s.a = t.id group by s.a"
    " on conflict do update set b = excluded.b, c = coalesce(t.c, 0) + 1 returning *",
    "with w as (select a, min(c) as c from s group by a) insert into t select 'w', a, '', c, 1 from w"
    " on conflict (id, part) do update set c = excluded.c -- on conflict do nothing",
    "insert into t select 'f', n, 'é', n, n from range(4) r(n) on conflict do nothing",
    "insert into t select * from t where false on conflict do nothing",
    "insert into t values ('a', 1, 'é', 5, 5), ('a', 1, 'é', 5, 5) on conflict do update set c = t.c + 1",
    "insert into t values (' on conflict do nothing ', 1, 'é', 5, 5) on conflict do update"
    " set b = ' returning ' || excluded.b",
)


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, zip(*table.to_pydict().values(), strict=True)))


def opened(place: Path | None = None) -> tuple[Workspace, duckdb.DuckDBPyConnection]:
    workspace = Workspace() if place is None else Workspace.open(place)
    peer = duckdb.connect()
    for statement in TABLES:
        workspace.sql(statement)
        peer.sql(statement)
    for name, select in VIEWS.items():
        workspace.create_view(name, select)
    return workspace, peer


def assert_same(workspace: Workspace, peer: duckdb.DuckDBPyConnection, statement: str) -> None:
    answer = workspace.sql(statement)
    said = peer.sql(statement).to_arrow_table()
    assert (answer.column_names, rows(answer)) == (said.column_names, rows(said)), statement
    assert rows(workspace["t"].table) == rows(peer.sql("from t").to_arrow_table()), statement
    for name, select in VIEWS.items():
        assert rows(workspace[name].to_arrow()) == rows(peer.sql(select).to_arrow_table()), statement


@pytest.mark.parametrize("wide", [False, True])
def test_oracle_each_statement(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MOST_NARROW", 0 if wide else 100)
    workspace, peer = opened()
    assert workspace["t"].tuples.schema.wide == wide
    for statement in STATEMENTS:
        assert_same(workspace, peer, statement)
        for again in ("delete from t", TABLES[2]):
            assert_same(workspace, peer, again)
    workspace.verify()
    workspace.check_invariants()


@pytest.mark.in_turns
@pytest.mark.parametrize("seed", range(3))
def test_oracle_many_statements(seed: int, tmp_path: Path) -> None:
    """Random rows and clauses, in a folder that is opened again."""
    chance = Random(seed)
    workspace, peer = opened(tmp_path)
    for _ in range(25):
        keys = chance.sample(
            [(id_, part) for id_ in range(5) for part in ("", "é", "o")], chance.randrange(1, 6)
        )
        values = ", ".join(
            f"({chance.choice(QUOTED)}, {id_}, '{part}', {chance.choice((1, 2, 'null'))}, 1)"
            for id_, part in keys
        )
        instead, behind = chance.choice(
            (
                ("or replace", ""),
                ("or ignore", ""),
                ("", "on conflict do nothing"),
                ("", "on conflict (part, id) do update set c = excluded.c, b = t.b || '+'"),
                ("", "on conflict do update set d = coalesce(t.d, 0) + 1 where t.c is not null"),
            )
        )
        returning = chance.choice(("", "", "returning *", "returning part, c"))
        assert_same(workspace, peer, f"insert {instead} into t values {values} {behind} {returning}")
        if chance.random() < 0.3:
            assert_same(workspace, peer, f"delete from t where id = {chance.randrange(5)}")
        if chance.random() < 0.1:
            workspace.close()
            workspace = Workspace.open(tmp_path)
    workspace.verify()
    workspace.close()


QUOTED = ("'v'", "null")
ROW = "into t values ('q', 1, 'é', 5, 5)"

REFUSED: tuple[tuple[str, type[Exception], str], ...] = (
    (
        f"insert {ROW} on conflict (b) do nothing",
        SqlError,
        "The specified columns as conflict target are not referenced by a UNIQUE/PRIMARY KEY CONSTRAINT or"
        " INDEX\n"
        f"  insert {ROW} on conflict (b) do nothing\n"
        "                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (f"insert {ROW} on conflict do update set e = 3", SqlError, "column e not found in table"),
    (f"insert {ROW} on conflict do update set c = excluded.e", SqlError, 'not have a column named "e"'),
    (f"insert {ROW} on conflict do update set c = (select 1)", SqlError, "cannot contain a subquery"),
    (f"insert {ROW} on conflict (id, part) where c > 1 do nothing", SqlError, "partial indexes"),
    (f"insert {ROW} on conflict on constraint k do nothing", SqlError, "ON CONSTRAINT conflict target"),
    (
        "insert or replace into t values ('q', nope, 'é', 5, 5)",
        SqlError,
        '"nope" was not found because the FROM clause is missing\n'
        "  insert or replace into t values ('q', nope, 'é', 5, 5)\n"
        "                                        ^^^^",
    ),
    ("insert or ignore into nope values (1)", SqlError, "there is no relation 'nope'"),
    (
        "insert or replace into s values (1, 2)",
        UnsupportedSqlError,
        "'s' has no key, by which a row would be there already: CREATE TABLE with a PRIMARY KEY gives one,"
        " and load() with key=[...]\n  insert or replace into s values (1, 2)\n         ^^^^^^^^^^",
    ),
    ("insert into s values (1, 2) on conflict do nothing", UnsupportedSqlError, "'s' has no key"),
    ("insert or replace into met values ('a', 2)", ChangeError, "derived by a rule"),
    ("insert into t default values on conflict do nothing", UnsupportedSqlError, "DEFAULT VALUES"),
    ("insert or replace into t (b) values ('part')", ChangeError, "'part': NULL in row 0 .* one of the key"),
    (
        "insert into t values ('q', 7, 'é', 5, 5), ('r', 7, 'é', 5, 5) on conflict do nothing",
        ChangeError,
        "different rows come of key part='é', id=7, and which of them counts is not said",
    ),
    (
        "insert or replace into t select 'f', s.a, 'é', t.c, 0 from s, t",
        ChangeError,
        "different rows come of key",
    ),
    (f"insert {ROW} on conflict do update set id = 2", KeyConflictError, 'two rows of key part="é", id=2'),
    (f"insert {ROW} on conflict do update set id = null", SqlError, "NOT NULL constraint failed"),
    (f"insert {ROW} on conflict do update set c = 'word'", SqlError, "Could not convert"),
)


@pytest.mark.parametrize(("statement", "kind", "message"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_is_refused(statement: str, kind: type[Exception], message: str) -> None:
    workspace, _ = opened()
    before = rows(workspace["t"].table)
    with pytest.raises(kind) as raised:
        workspace.sql(statement)
    text = str(raised.value)
    if ".*" in message:
        raised.match(message)
    else:
        assert message in text
    assert rows(workspace["t"].table) == before
    workspace.sql(
        "insert or replace into t values ('after', 1, 'é', 5, 5)"
    )  # DuckDB's tables are as they were
    workspace.verify()


def test_a_key_of_lists_is_not_looked_up_by_duckdb() -> None:
    workspace = Workspace()
    workspace.load("t", {"k": pa.array([[1], [2]], pa.list_(pa.int64())), "v": [1, 2]}, key=["k"])
    with pytest.raises(SqlError, match=r"Invalid type for index key"):
        workspace.sql("insert or replace into t values ([1], 5)")


def test_in_a_transaction() -> None:
    """A row that is replaced whole is not read, so that one statement may follow another."""
    workspace, _ = opened()
    with workspace.transaction() as tx:
        tx.sql("insert or replace into t values (?, 1, 'é', 1, 1)", ["first"])
        tx.sql("insert or replace into t values (?, 1, 'é', 1, 1)", ["second"])
        with pytest.raises(TransactionError, match="reads 't', which the transaction has changed"):
            tx.sql("insert or ignore into t values ('third', 1, 'é', 1, 1)")
    assert [row[0] for row in workspace["t"] if row[1:3] == (1, "é")] == ["second"]
    tx = workspace.transaction()
    tx.sql("insert into t values ('mine', 1, 'é', 1, 1) on conflict do update set b = t.b || excluded.b")
    workspace.sql("insert or replace into t values ('other', 1, 'é', 1, 1)")
    with pytest.raises(ConflictError):
        tx.commit()
    workspace.verify()


def test_few_rows_of_many_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB has the rows of the keys that come, of 100,000."""
    from maintenance.workspace.sql_target import SqlTarget

    workspace = Workspace()
    workspace.load("t", {"id": range(100_000), "v": [0] * 100_000}, key=["id"])
    taken: list[Any] = []
    rows_of_keys = SqlTarget.rows_of_keys
    monkeypatch.setattr(
        SqlTarget, "rows_of_keys", lambda *given: taken.append(rows_of_keys(*given)) or taken[-1]
    )
    workspace.sql("insert into t values (5, 1), (7, 1), (100000, 1) on conflict do update set v = t.v + 1")
    assert [each.num_rows for each in taken] == [2]
    assert workspace.query("h(i, v) <- t(i, v), v > 0.").to_pydict() == {"i": [5, 7, 100_000], "v": [1, 1, 1]}
