"""What SELECTs give, by DuckDB; and by SQLite and PostgreSQL, which know nothing of DuckDB.

Statements are read in DuckDB's meaning.  Where dialects meet the other two say the same, or it is theirs to
argue about: the engine then is not judged.
"""

from __future__ import annotations

import datetime
import math
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from fuzz.case import Table
from fuzz.sql.draw_tables import SQL_TYPES
from fuzz.sql.postgres import FOLDER, Client, PostgresError
from fuzz.sql.tree import NotInDialect, literal, sql
from support.reference import Row

TOLERANCE = 1e-9
"""Of doubles, relative, and absolute near zero: sums of many are in another order elsewhere."""

SECONDS = 2.0
"""A statement that takes longer is left out."""

MOST_ROWS = 20_000
"""A result of more rows is not compared."""


@dataclass(frozen=True)
class Answer:
    rows: list[Row]
    types: tuple[str, ...] = ()
    """DuckDB's names of the columns' types."""


@dataclass(frozen=True)
class Refusal:
    """``binding``: the statement itself is refused, whatever the tables hold."""

    why: str
    binding: bool


def text_of(statement: Any) -> str:
    """In DuckDB's dialect; a statement may be text already."""
    return sql(statement)


class DuckDb:
    """The tables of a case, as they are now, and views."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("set threads = 1; set enable_progress_bar = false")
        for table in tables:
            columns = ", ".join(
                f"{name} {SQL_TYPES[type_]}{' not null' if name in table.not_null else ''}"
                for name, type_ in zip(table.columns, table.types, strict=True)
            )
            self._connection.execute(f"create table {table.name} ({columns})")
            self.fill(table.name, table.arrow())

    def fill(self, name: str, rows: pa.Table) -> None:
        """The relation has these rows from now on."""
        self._connection.execute(f"delete from {name}")
        self._connection.register("rows_of_now", rows)
        self._connection.execute(f"insert into {name} select * from rows_of_now")
        self._connection.unregister("rows_of_now")

    def create_view(self, name: str, text: str) -> None:
        self._connection.execute(f"create view {name} as {text}")

    def drop_view(self, name: str) -> None:
        """What reads it is refused from now on."""
        self._connection.execute(f"drop view {name}")

    def answer(self, text: str) -> Answer | Refusal:
        clock = threading.Timer(SECONDS, self._connection.interrupt)
        clock.start()
        try:
            cursor = self._connection.execute(text)
            types = tuple(str(one[1]) for one in cursor.description or ())
            return Answer(cursor.fetchall(), types)
        except (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException) as error:
            return Refusal(str(error), True)
        except (duckdb.NotImplementedException, duckdb.InternalException, duckdb.FatalException) as error:
            return Refusal(str(error), True)
        except duckdb.InterruptException:
            return Refusal("takes too long", True)
        except duckdb.Error as error:
            return Refusal(str(error), "Perfect hash aggregate" in str(error))  # a fault of DuckDB's own
        finally:
            clock.cancel()


class Sqlite:
    name = "SQLite"
    dialect = "sqlite"

    def __init__(self, tables: Sequence[Table]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("pragma case_sensitive_like = on")
        for table in tables:
            columns = ", ".join(
                f"{name} {_SQLITE_TYPES.get(SQL_TYPES[type_], 'text')}"
                for name, type_ in zip(table.columns, table.types, strict=True)
            )
            self._connection.execute(f"create table {table.name} ({columns})")
            marks = ", ".join("?" * len(table.types))
            told = [tuple(map(_for_sqlite, row)) for row in table.rows]
            self._connection.executemany(f"insert into {table.name} values ({marks})", told)

    def rows(self, text: str, types: Sequence[str]) -> list[Row]:
        """Values as those types of DuckDB have them."""
        steps = [0]

        def too_long() -> int:
            steps[0] += 1
            return int(steps[0] > 200)

        self._connection.set_progress_handler(too_long, 100_000)
        found = self._connection.execute(text).fetchall()
        return [tuple(map(_from_sqlite, row, types)) for row in found]


_SQLITE_TYPES = {"bigint": "integer", "integer": "integer", "double": "real", "boolean": "integer"}


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, (Decimal, datetime.date)):
        return str(value)
    return int(value) if isinstance(value, bool) else value


def _from_sqlite(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_ == "BOOLEAN":
        return bool(value)
    if type_ == "DATE":
        return datetime.date.fromisoformat(value)
    return datetime.datetime.fromisoformat(value) if type_ == "TIMESTAMP" else value


class Postgres:
    name = "PostgreSQL"
    dialect = "postgres"

    def __init__(self, tables: Sequence[Table]) -> None:
        self._client = _client()
        told = ["set statement_timeout = 5000; discard temp"]
        for table in tables:
            columns = ", ".join(
                f"{name} {_POSTGRES_TYPES.get(SQL_TYPES[type_], SQL_TYPES[type_])}"
                for name, type_ in zip(table.columns, table.types, strict=True)
            )
            told.append(f"create temp table {table.name} ({columns})")
            rows = [
                ", ".join(
                    "null" if value is None else literal(value, _literal_type(SQL_TYPES[type_]), "postgres")
                    for value, type_ in zip(row, table.types, strict=True)
                )
                for row in table.rows
            ]
            if rows:
                told.append(f"insert into {table.name} values " + ", ".join(f"({row})" for row in rows))
        for one in told[0].split("; ") + told[1:]:
            self._client.query(one)

    def rows(self, text: str, types: Sequence[str]) -> list[Row]:
        """Values as those types of DuckDB have them."""
        found = self._client.query(text)
        readers = [_reader(type_) for type_ in types]
        return [
            tuple(None if value is None else read(value) for read, value in zip(readers, row, strict=True))
            for row in found
        ]


_POSTGRES_TYPES = {"double": "double precision"}
_clients: dict[tuple[str, int], Client] = {}


def _client() -> Client:
    """One connection for a process."""
    key = (os.environ[FOLDER], os.getpid())
    if key not in _clients:
        _clients[key] = Client(key[0])
    return _clients[key]


def _literal_type(type_: str) -> str:
    return type_.partition("(")[0]


def _number(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else Decimal(text)


def _reader(type_: str) -> Callable[[str], Any]:
    if type_ in ("DOUBLE", "FLOAT"):
        return float
    if type_ == "BOOLEAN":
        return "t".__eq__
    if type_ == "VARCHAR":
        return str
    if type_ == "DATE":
        return lambda text: datetime.date.fromisoformat(text[:10])
    return datetime.datetime.fromisoformat if type_ == "TIMESTAMP" else _number


def others(tables: Sequence[Table]) -> list[Sqlite | Postgres]:
    """The oracles beside DuckDB; PostgreSQL where a cluster runs."""
    return [Sqlite(tables), *([Postgres(tables)] if os.environ.get(FOLDER) else [])]


def second_opinion(oracle: Sqlite | Postgres, statement: Any, types: Sequence[str]) -> list[Row] | str | None:
    """Another oracle's rows, why it refuses, or None where the dialects don't meet."""
    if isinstance(statement, str):
        return None
    try:
        text = sql(statement, oracle.dialect)
    except NotInDialect:
        return None
    try:
        return oracle.rows(text, types)
    except (sqlite3.Error, PostgresError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}: {text}"


# -- compared -----------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """What is compared exactly: whole numbers and decimals by their value, truth as no number."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value.normalize()
    if isinstance(value, datetime.datetime):
        return ("moment", value.replace(tzinfo=None).isoformat())
    if isinstance(value, datetime.date):
        return ("moment", datetime.datetime(value.year, value.month, value.day).isoformat())
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def near(left: Any, right: Any) -> bool:
    """Whether two values are one, doubles up to :data:`TOLERANCE`."""
    if (left is None) != (right is None):
        return False
    if isinstance(left, float) or isinstance(right, float):
        if isinstance(left, (str, bool, datetime.date)) or isinstance(right, (str, bool, datetime.date)):
            return False
        if left is None:
            return True
        left, right = float(left), float(right)
        return (math.isnan(left) and math.isnan(right)) or math.isclose(
            left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE
        )
    return bool(_plain(left) == _plain(right))


def rows_near(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(near, left, right))


def _key(row: Row, inexact: set[int]) -> str:
    return repr([_plain(value) for n, value in enumerate(row) if n not in inexact])


def difference(got: Sequence[Row], right: Sequence[Row], ordered: bool = False) -> str | None:
    """What is too much and what is missing, as far as it is shown; None where there is nothing."""
    if ordered:
        if len(got) == len(right) and all(map(rows_near, got, right)):
            return None
        return f"in the order {list(got)[:8]}, not {list(right)[:8]}"
    inexact = {n for row in (*got, *right) for n, value in enumerate(row) if isinstance(value, float)}
    ours: dict[str, list[Row]] = {}
    for row in got:
        ours.setdefault(_key(row, inexact), []).append(row)
    missing: list[Row] = []
    for row in sorted(right, key=_order) if inexact else right:
        same = ours.get(_key(row, inexact), [])
        place = next((n for n, one in enumerate(same) if rows_near(one, row)), None)
        if place is None:
            missing.append(row)
        else:
            same.pop(place)
    more = [row for rows in ours.values() for row in rows]
    if not more and not missing:
        return None
    return f"too many {more[:4]}, missing {missing[:4]}, {len(got)} rows for {len(right)}"


def _order(row: Row) -> str:
    return repr(row)
