"""oracle: a view of each text of the corpus has DuckDB's rows after every one of some random transactions.

Rows come and go in all tables that the text reads; texts take turns with the strategies, and ``LFTJ_SEED``
asks for other changes.  Where DuckDB fails over the changed tables, the transaction fails and leaves the view
and the tables as they were.
"""

from __future__ import annotations

import os
import zlib
from random import Random

import duckdb
import pyarrow as pa
import pytest

from maintenance import Workspace
from sql.answers import Row, difference, rows_of
from sql.statements import CORPUS, Statement
from sql.tables import TABLES, Table, Tables

if not hasattr(Workspace, "create_view"):
    pytest.skip("no views by SELECT", allow_module_level=True)

from lftj.errors import LftjError, UnsupportedSqlError

STRATEGIES = ("auto", "trace", "delta", "views", "recompute")
RECURSIVE = ("auto", "stages", "recompute")
COMMITS = 6

pytestmark = pytest.mark.compiled


def strategies(statement: Statement) -> tuple[str, str]:
    """Two for each text: the default, and one of the others in its turn."""
    others = RECURSIVE[1:] if "recursive" in statement.text else STRATEGIES[1:]
    return "auto", others[zlib.crc32(statement.name.encode()) % len(others)]


def workspace(tables: Tables, read: list[Table]) -> Workspace:
    ws = Workspace()
    for table in read:
        ws.load(table.name, tables.arrow(table), **table.options())
    return ws


def answer(tables: Tables, text: str) -> list[Row] | None:
    """DuckDB's; None where it fails."""
    try:
        return tables.connection.execute(text).fetchall()
    except duckdb.Error:
        return None


def apply(ws: Workspace, staged: list[tuple[str, pa.Table, pa.Table]]) -> None:
    """One transaction.  ``staged``: relations, the rows that go and those that come."""
    with ws.transaction() as tx:
        for name, erased, inserted in staged:
            tx.erase(name, erased)
            tx.insert(name, inserted)


def check(ws: Workspace, right: list[Row] | None, when: str) -> None:
    assert right is not None
    for strategy in ws.views:
        found = difference(rows_of(ws[strategy].to_arrow()), right)
        assert found is None, f"{strategy}, {when}: {found}"


def created(statement: Statement, ws: Workspace, strategy: str, right: list[Row] | None) -> bool:
    """Whether a view of the strategy's name is there; where none is, that is as it should be."""
    try:
        ws.create_view(strategy, statement.text, strategy=strategy)
    except UnsupportedSqlError as error:
        statement.check_refusal(str(error), kept=True)
        return False
    except LftjError as error:
        if not statement.is_departure(str(error)):
            if right is not None:
                raise
            assert statement.raises is not None
            assert strategy not in ws
        return False
    assert statement.refused is None and statement.kept is None, "taken, but listed as refused"
    return True


@pytest.mark.in_turns
@pytest.mark.parametrize("statement", CORPUS, ids=lambda statement: statement.name)
def test_kept(statement: Statement) -> None:
    """By two strategies side by side."""
    random = Random(f"{os.environ.get('LFTJ_SEED', 0)} {statement.name}")
    read = [table for name, table in TABLES.items() if statement.reads(name)]
    tables = Tables()
    ws = workspace(tables, read)
    right = answer(tables, statement.text)
    there = [created(statement, ws, strategy, right) for strategy in strategies(statement)]
    if right is None and statement.raises is not None:  # of these rows; of none there is an answer
        tables = Tables(filled=False)
        ws = workspace(tables, read)
        right = answer(tables, statement.text)
        there = [created(statement, ws, strategy, right) for strategy in strategies(statement)]
    if not any(there):
        return
    check(ws, right, "at first")
    for commit in range(COMMITS):
        before = right
        tables.connection.execute("begin")
        changes = [(table, *tables.change(table, random)) for table in read]
        right = answer(tables, statement.text)
        tables.connection.execute("rollback" if right is None else "commit")
        staged = [
            (t.name, tables.arrow(t, erased), tables.arrow(t, inserted)) for t, erased, inserted in changes
        ]
        if right is not None:
            apply(ws, staged)
        else:
            with pytest.raises(LftjError):
                apply(ws, staged)
            right = before
        check(ws, right, f"commit {commit}")
