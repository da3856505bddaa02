"""oracle: TPC-H Q1, Q3, Q5, Q6, Q10, Q12, Q14 and Q19 as rules against DuckDB's SQL, as loaded and changed.

Sums and counts are equal exactly, decimals by value: DuckDB and lftj may give
them other scales.  An average is the correctly rounded quotient of the exact
sum and count.  The heads are asked for with strategy ``trace``; one that is
recomputed is checked all the same.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lftj
from bench import tpch
from maintenance import Workspace
from support.business import Business
from support.rows import rows_of

pytestmark = pytest.mark.compiled

SIZES = [1, 20, 10, 120, 40, 500, 1, 1, 30, 16]


@cache
def loaded(data_folder: Path) -> dict[str, pa.Table]:
    pytest.importorskip("duckdb")
    try:
        return tpch.tables(data_folder)
    except FileNotFoundError:
        pytest.skip("no TPC-H tables in the data folder")


@cache
def untouched(data_folder: Path) -> tuple[lftj.Database, tpch.Sql]:
    """The engine and DuckDB with the data as published."""
    db = lftj.Database()
    for name, table in loaded(data_folder).items():
        db.load(name, table)
    return db, tpch.Sql(loaded(data_folder))


def by_key(table: pa.Table) -> dict[tuple[Any, ...], Any]:
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    found = {row[:-1]: row[-1] for row in rows}
    assert len(found) == len(rows), "one key has two values"
    return found


def check(query: tpch.Query, heads: dict[str, dict[tuple[Any, ...], Any]], sql: tpch.Sql) -> None:
    """Every head against its SQL column."""
    answers = sql.answers(query)
    for name in query.heads:
        assert heads[name] == answers[name], name
    for name, (total, count) in query.averages.items():
        exact = {key: float(Fraction(answers[total][key]) / answers[count][key]) for key in answers[total]}
        assert heads[name] == exact, name
        assert heads[name] == pytest.approx(answers[name], rel=1e-12), name


def names_of(query: tpch.Query) -> tuple[str, ...]:
    return (*query.heads, *query.averages)


@pytest.mark.parametrize("name", tpch.QUERIES)
def test_a_query_of_the_data_as_loaded_is_that_of_sql(name: str, data_folder: Path) -> None:
    db, sql = untouched(data_folder)
    query = tpch.QUERIES[name]
    check(query, {head: by_key(db.query(query.rules, head=head)) for head in names_of(query)}, sql)


@pytest.mark.parametrize("name", tpch.QUERIES)
def test_installed_heads_are_those_of_sql_after_every_transaction(name: str, data_folder: Path) -> None:
    query, names = tpch.QUERIES[name], names_of(tpch.QUERIES[name])
    workspace = Workspace()
    for relation, table in loaded(data_folder).items():
        workspace.load(relation, table)
    workspace.install(query.rules)
    sql = tpch.Sql(loaded(data_folder))
    before = {head: by_key(workspace[head]) for head in names}
    check(query, before, sql)
    changed = dict.fromkeys(names, False)
    # Q19 chooses so few line items that random transactions would miss them.
    chosen = rows_of(workspace["chosen"])[:3] if name == "Q19" else []
    for changes in Business(loaded(data_folder), 5, chosen).transactions(SIZES):
        with workspace.transaction() as transaction:
            for relation, (erased, inserted) in changes.items():
                transaction.erase(relation, sql.table(relation, erased))
                transaction.insert(relation, sql.table(relation, inserted))
        sql.apply(changes)
        assert not sum(transaction.stats.no_changes.values())
        now = {head: by_key(workspace[head]) for head in names}
        check(query, now, sql)
        for head in names:
            reported = transaction.changes[head]
            signed: dict[int, dict[tuple[Any, ...], Any]] = {1: {}, -1: {}}
            for row in zip(*(column.to_pylist() for column in reported.columns), strict=True):
                signed[row[-1]][row[:-2]] = row[-2]
            changed[head] |= reported.num_rows > 0
            assert signed[1] == dict(now[head].items() - before[head].items())
            assert signed[-1] == dict(before[head].items() - now[head].items())
        before = now
    assert all(changed.values())
    workspace.verify()
