"""`play`: one file's statements in DuckDB, and its queries on an engine over the tables that they made.

The engine gets the tables as Arrow, as bags, with the columns that are declared NOT NULL.  What a view of
SQL shows is given as a table.  Outcomes, by the answer:

    passed    the published one
    as DuckDB not the published one, and the one that DuckDB gives: another dialect, or a setting of the file
    open      neither, of a text whose rows SQL leaves open: LIMIT in no order, the first of a group, ...
    wrong     neither
    raised    an error that is no refusal, where there is an answer
    refused   by the translator, with its words
    unbound   by DuckDB's binder: another dialect
    elsewhere DuckDB itself has another answer over the tables that the engine gets: macros and sequences of
              the file, types that Arrow has not, dates that Python has not, other values each time
    unloaded  a table whose columns the engine does not take
    too long  more than the seconds that it was given
    crashed   an exception that is none of the engine's
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from sql.answers import difference, rows_of
from sql.logic.published import agrees
from sql.logic.records import Ask, Do, read
from sql.tables import plain

Given = Mapping[str, tuple[pa.Table, list[str]]]
"""Tables by name, and their columns that are NOT NULL."""

Engine = Callable[[Given, str], pa.Table]
"""The rows of a text over tables.  Raises LftjError."""


@dataclass(frozen=True)
class Outcome:
    """Of one query.  ``said``: a refusal's or an error's first line, or what differs."""

    line: int
    text: str
    what: str
    said: str = ""


class TooLong(BaseException):
    """The time of a query is over; no error that an engine would catch."""


@contextmanager
def seconds(most: int) -> Iterator[None]:
    """Raises TooLong in the block."""

    def stop(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(most)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def play(text: str, engine: Engine, most_seconds: int = 20, most: int | None = None) -> Iterator[Outcome]:
    """The outcomes of a file's queries, of the first ``most`` of them."""
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    asked = 0
    try:
        for record in read(text):
            if isinstance(record, Do):
                _do(connection, record)
                continue
            asked += 1
            if most is not None and asked > most:
                return
            if _selects(record.text):
                yield _ask(connection, record, engine, most_seconds)
    finally:
        connection.close()


def _selects(text: str) -> bool:
    if re.match(r"\s*\(*\s*(select|with|values|from)\b", text, re.IGNORECASE) is None:
        return False
    try:
        return [one.type for one in duckdb.extract_statements(text)] == [duckdb.StatementType.SELECT]
    except duckdb.Error:  # which asking says
        return True


_OPEN = re.compile(
    r"\b(limit|offset|fetch|first|last|any_value|arbitrary|string_agg|group_concat|listagg|list|array_agg|mode"
    r"|arg_m..|m.._by|distinct\s+on|over)\b",
    re.IGNORECASE,
)
"""What makes an answer depend on which row comes first (docs/sql.md, departures)."""


def duck(given: Given, text: str) -> pa.Table:
    """DuckDB over the tables of an engine: what the runner itself is right in."""
    connection = duckdb.connect(config={"threads": 1})
    for name, (table, _) in given.items():
        connection.register("given", table)
        connection.execute(f'create table "{name}" as from given')
        connection.unregister("given")
    return connection.sql(text).to_arrow_table()


def _do(connection: duckdb.DuckDBPyConnection, record: Do) -> None:
    if record.fails or re.match(
        r"\s*(set|pragma|call|attach|use|copy|install|load|export|import)\b", record.text, re.I
    ):
        return
    try:
        connection.execute(record.text)
    except duckdb.Error:  # another dialect: what needs it fails as well
        return


def given(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, tuple[pa.Table, list[str]]]:
    """The tables that a text mentions, by the names in it."""
    listed = connection.execute(
        "select table_name, list(column_name) filter (where not is_nullable::boolean) "
        "from information_schema.columns where table_schema = 'main' group by all"
    ).fetchall()
    return {
        name: (plain(connection.sql(f'from "{name}"').to_arrow_table()), not_null or [])
        for name, not_null in listed
        if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
    }


def _ask(connection: duckdb.DuckDBPyConnection, ask: Ask, engine: Engine, most_seconds: int) -> Outcome:
    from lftj.errors import DataError, LftjError, SqlError, UnsupportedSqlError

    def outcome(what: str, said: object = "") -> Outcome:
        return Outcome(ask.line, ask.text, what, str(said).strip().partition("\n")[0])

    try:
        with seconds(most_seconds):
            right = connection.sql(ask.text).to_arrow_table()
    except duckdb.Error as error:
        return outcome("unbound", error)
    except TooLong:
        return outcome("too long", "in DuckDB")
    try:
        tables = given(connection, ask.text)
        with seconds(most_seconds):
            rows = rows_of(duck(tables, ask.text))
        if (found := difference(rows, rows_of(right))) is not None and not _OPEN.search(ask.text):
            return outcome("elsewhere", found)
    except (duckdb.Error, OverflowError, TypeError, pa.ArrowException) as error:
        return outcome("elsewhere", error)
    except TooLong:
        return outcome("too long", "in DuckDB")
    try:
        with seconds(most_seconds):
            mine = engine(tables, ask.text)
    except TooLong:
        return outcome("too long")
    except UnsupportedSqlError as error:
        return outcome("refused", error)
    except SqlError as error:
        return outcome("raised", error)
    except DataError as error:
        return outcome("unloaded", error)
    except LftjError as error:
        return outcome("raised", error)
    except Exception as error:
        return outcome("crashed", f"{type(error).__name__}: {error}")
    try:
        if agrees(ask, mine):
            return outcome("passed")
        found = difference(rows_of(mine), rows)
    except Exception as error:
        return outcome("crashed", f"comparing: {type(error).__name__}: {error}")
    if found is None:
        return outcome("as DuckDB")
    is_open = _OPEN.search(ask.text) and mine.num_rows == len(rows)
    return outcome("open" if is_open else "wrong", found)
