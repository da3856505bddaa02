"""oracle: `Database.sql` has DuckDB's rows for every text of the corpus, or refuses what the corpus says."""

from __future__ import annotations

import duckdb
import pytest

import lftj
from sql.answers import difference, rows_of
from sql.statements import CORPUS, Statement
from sql.tables import TABLES, Tables

pytest.importorskip("lftj.sql")

from lftj.errors import LftjError, SqlError, UnsupportedSqlError


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables()


@pytest.fixture(scope="module")
def database(tables: Tables) -> lftj.Database:
    database = lftj.Database()
    for name, table in TABLES.items():
        database.load(name, tables.arrow(table), **table.options())
    return database


@pytest.mark.in_turns
@pytest.mark.parametrize("statement", CORPUS, ids=lambda s: s.name)
def test_once(tables: Tables, database: lftj.Database, statement: Statement) -> None:
    try:
        right = tables.connection.execute(statement.text).fetchall()
    except duckdb.Error:
        right = None
    try:
        table = database.sql(statement.text)
    except UnsupportedSqlError as error:
        statement.check_refusal(str(error))
        return
    except SqlError:
        raise
    except LftjError as error:
        if right is not None and not statement.is_departure(str(error)):
            raise
        return
    assert statement.departs is None, "has an answer, but listed as a departure"
    assert statement.refused is None, "taken, but listed as refused"
    assert right is not None, f"DuckDB raises {statement.raises}, here are {table.num_rows} rows"
    names = [column[0] for column in tables.connection.execute(statement.text).description or ()]
    assert table.column_names == names
    assert (found := difference(rows_of(table), right, statement.ordered)) is None, (
        f"{found}\n{statement.text}"
    )
