"""`play`: one file's statements in DuckDB, and its queries on an engine over the tables that they made.

The engine gets the tables as Arrow, as bags, with the columns that are declared NOT NULL.  What a view of
SQL shows is given as a table.  Outcomes, by the answer:

    passed    the published one
    as DuckDB not the published one, and the one that DuckDB gives: another dialect, or a setting of the file
    wrong     neither
    raised    an error that is no refusal, where there is an answer
    refused   by the translator, with its words
    unbound   by DuckDB's binder: another dialect
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
    return re.match(r"\s*\(*\s*(select|with|values|from)\b", text, re.IGNORECASE) is not None


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
        with seconds(most_seconds):
            mine = engine(given(connection, ask.text), ask.text)
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
        found = difference(rows_of(mine), rows_of(right))
    except Exception as error:
        return outcome("crashed", f"comparing: {type(error).__name__}: {error}")
    return outcome("as DuckDB") if found is None else outcome("wrong", found)
