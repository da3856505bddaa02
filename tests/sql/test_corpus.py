"""The corpus itself: DuckDB binds and runs every text, and where SQLite takes one, its answer is the same.

So the answers that the engine is held to are not of one binder alone.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from sql import answers, plans
from sql.statements import CORPUS, Statement
from sql.tables import TABLES, Tables

LEAST_AT_SQLITE = 200
"""Texts that both take; fewer are a corpus, or a test, that has changed."""


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables()


@pytest.fixture(scope="module")
def lite(tables: Tables) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for table in TABLES.values():
        connection.execute(
            f"create table {table.name} ({', '.join(f'{n} {t}' for n, t, _ in table.columns)})"
        )
        marks = ", ".join("?" for _ in table.columns)
        rows = tables.rows(table)
        connection.executemany(
            f"insert into {table.name} values ({marks})", [tuple(map(_plain, r)) for r in rows]
        )
    return connection


def _plain(value: Any) -> Any:
    """As SQLite has it: decimals as doubles, dates as texts."""
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def test_names_are_said_once() -> None:
    names = Counter(statement.name for statement in CORPUS)
    assert [name for name, often in names.items() if often > 1] == []
    assert len(CORPUS) >= 150


@pytest.mark.parametrize("statement", CORPUS, ids=lambda s: s.name)
def test_duckdb_runs_it(tables: Tables, statement: Statement) -> None:
    bound = plans.plan(tables.connection, statement.text)
    if bound["plans"][0]["type"] in ("LOGICAL_ORDER_BY", "LOGICAL_LIMIT"):
        assert statement.ordered is not None or statement.refused is not None
    if statement.raises is None:
        tables.connection.execute(statement.text).fetchall()
    else:
        with pytest.raises(duckdb.Error, match=statement.raises):
            tables.connection.execute(statement.text).fetchall()


def test_sqlite_agrees(tables: Tables, lite: sqlite3.Connection) -> None:
    taken, wrong = 0, []
    for statement in CORPUS:
        try:
            theirs = lite.execute(statement.text).fetchall()
        except sqlite3.Error:
            continue
        if statement.raises is not None:
            continue
        taken += 1
        mine = [tuple(map(_plain, row)) for row in tables.connection.execute(statement.text).fetchall()]
        mine = [tuple(int(v) if isinstance(v, bool) else v for v in row) for row in mine]
        found = answers.difference(theirs, mine, statement.ordered)
        if (found is None) != (statement.sqlite is None):
            wrong.append(f"{statement.name}: {found}")
    assert wrong == [], "\n".join(wrong)
    assert taken >= LEAST_AT_SQLITE
