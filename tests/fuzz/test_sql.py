"""Random SQL itself: what is drawn means something everywhere, and answers that are wrong are noticed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import lftj
from fuzz.case import Case, Table, text
from fuzz.difference import Difference
from fuzz.draw import draw
from fuzz.minimise import minimise
from fuzz.play import play
from fuzz.sql import tally
from fuzz.sql.oracles import Answer, DuckDb, Sqlite, difference, near, others, second_opinion
from fuzz.sql.postgres import cluster
from fuzz.sql.tree import E, Item, Named, NotInDialect, Select, constructs, sql

ROWS = ((1, "a"), (1, "a"), (2, None), (None, "b"))
TABLE = Table("r", ("int64", "string"), ROWS, nulls=True, bag=True, names=("a", "s"))
CASE = Case("sql", (TABLE,), (), statements=("select a, s from r", "select count(*) from r"))


def _cases(n: int) -> list[Case]:
    return [draw(11, number, "sql") for number in range(n)]


def test_a_case_is_its_number() -> None:
    assert text(draw(3, 5, "sql")) == text(draw(3, 5, "sql"))


def test_duckdb_takes_nearly_all_that_is_drawn() -> None:
    """And most of it has rows; SQLite and PostgreSQL have words for a part."""
    refused, empty, total = 0, 0, 0
    meets: dict[str, int] = {"sqlite": 0, "postgres": 0}
    for case in _cases(25):
        duckdb = DuckDb([table for table in case.tables if isinstance(table, Table)])
        for n, statement in enumerate(case.statements):
            answer = duckdb.answer(sql(statement))
            total += 1
            refused += not isinstance(answer, Answer)
            empty += isinstance(answer, Answer) and not answer.rows
            if case.options.get("kept", False) and isinstance(answer, Answer):
                duckdb.create_view(f"v{n}", sql(statement))
            for dialect in meets:
                with contextlib.suppress(NotInDialect):
                    meets[dialect] += bool(sql(statement, dialect))
    assert refused < 0.05 * total and empty < 0.5 * total
    assert meets["sqlite"] > 0.2 * total and meets["postgres"] > 0.7 * total


def test_everything_is_drawn_now_and_then() -> None:
    drawn = {one for case in _cases(150) for statement in case.statements for one in constructs(statement)}
    asked = {
        "left join",
        "full join",
        "natural inner join",
        "using left join",
        "lateral",
        "with",
        "recursive",
    }
    asked |= {"exists", "not in", "in", "compared to any", "compared to all", "is not distinct", "group by"}
    asked |= {
        "group by rollup",
        "group by cube",
        "group by sets",
        "having",
        "qualify",
        "distinct_on",
        "values",
    }
    asked |= {"union", "union all", "except", "except all", "intersect", "intersect all", "limit", "over"}
    asked |= {"string_agg", "deviation", "median", "filter where", "row_number over", "lag over", "extract"}
    assert asked <= drawn, asked - drawn


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda table: table.slice(1), "other rows"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "other rows"),
        (lambda table: table.set_column(0, "a", pa.nulls(table.num_rows, pa.int64())), "other rows"),
    ],
)
def test_rows_that_are_wrong_are_noticed(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[[pa.Table], pa.Table], said: str
) -> None:
    assert play(CASE)
    right = lftj.Database.sql
    monkeypatch.setattr(lftj.Database, "sql", lambda self, text: broken(right(self, text)))
    with pytest.raises(Difference, match=said):
        play(CASE)


def test_an_error_of_the_engine_is_noticed_and_what_is_not_taken_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(error: Exception) -> Callable[..., Any]:
        def asked(*_: object) -> None:
            raise error

        return asked

    monkeypatch.setattr(lftj.Database, "sql", fails(KeyError("from inside")))
    with pytest.raises(Difference, match="KeyError"):
        play(CASE)
    tally.taken()
    monkeypatch.setattr(lftj.Database, "sql", fails(lftj.errors.UnsupportedSqlError("PIVOT is not taken")))
    assert play(CASE)
    assert tally.taken()[0]["refused: PIVOT is not taken"] == 2


def test_an_error_that_sql_asks_for_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    two_rows = replace(CASE, statements=("select a // 0 as x from r",))
    monkeypatch.setattr(lftj.Database, "sql", lambda *_: pa.table({"x": [1]}))
    with pytest.raises(Difference, match="not refused"):
        play(two_rows)


def test_the_least_statement_is_found() -> None:
    """Of a case of many statements the one that needs it, of its parts and the tables what it takes."""
    case = next(one for one in _cases(40) if not one.options and "left join" in one.rules)

    def finds(one: Case) -> bool:
        duckdb = DuckDb([table for table in one.tables if isinstance(table, Table)])
        answers = [duckdb.answer(sql(statement)) for statement in one.statements]
        return "left join" in one.rules and all(isinstance(answer, Answer) for answer in answers)

    smaller = minimise(case, finds, 20.0)
    assert len(smaller.statements) == 1 and len(smaller.rules) < 120
    assert not any(table.rows for table in smaller.tables if isinstance(table, Table))


def test_doubles_are_near_and_all_else_is_equal() -> None:
    assert near(0.1 + 0.2, 0.3) and near(float("nan"), float("nan")) and near(1, 1.0)
    assert not near(True, 1) and not near(None, 0.0) and not near("1", 1)
    assert difference([(1, 0.3), (2, 0.1)], [(2, 0.1), (1, 0.1 + 0.2)]) is None
    assert difference([(1, 0.3)], [(2, 0.1), (1, 0.3)]) is not None
    assert difference([(1,), (2,)], [(2,), (1,)]) is None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=True) is not None


def test_sqlite_has_its_own_words() -> None:
    column, other = E("column", ("x.a",), "int"), E("column", ("x.s",), "varchar")
    same = E("is not distinct", (column, column), "boolean")
    statement = Select(
        (Item(same, "c0"), Item(E("({0} || {1})", (other, other), "varchar"), "c1")), Named("r", "x")
    )
    rows = second_opinion(Sqlite([TABLE]), statement, ("BOOLEAN", "VARCHAR"))
    answer = DuckDb([TABLE]).answer(sql(statement))
    assert isinstance(answer, Answer) and isinstance(rows, list)
    assert difference(rows, answer.rows) is None
    assert second_opinion(Sqlite([TABLE]), "select 1", ("INTEGER",)) is None


def test_postgresql_where_it_is_installed() -> None:
    with cluster() as there:
        if not there:
            pytest.skip("PostgreSQL is not installed")
        for oracle in others([TABLE]):
            statement = Select((Item(E("column", ("x.s",), "varchar"), "c0"),), Named("r", "x"))
            rows = second_opinion(oracle, statement, ("VARCHAR",))
            assert isinstance(rows, list)
            assert difference(rows, [(one[1],) for one in ROWS]) is None


def test_what_is_drawn_has_one_meaning() -> None:
    """SQLite differs from DuckDB in nothing that is drawn."""
    tally.taken()
    for case in _cases(12):
        if case.options.get("kept", False):
            continue
        tables = [table for table in case.tables if isinstance(table, Table)]
        duckdb, sqlite = DuckDb(tables), Sqlite(tables)
        for statement in case.statements:
            answer = duckdb.answer(sql(statement))
            if isinstance(answer, Answer):
                rows = second_opinion(sqlite, statement, answer.types)
                assert not isinstance(rows, list) or difference(rows, answer.rows) is None
