"""`Binder`: an empty DuckDB that has the tables' names and types, and binds texts over them.

``json_serialize_plan(..., optimize := false)`` gives a bound and typed plan in which correlated subqueries
are joins already.  Nothing is ever run over the tables: they have no rows.

Invariants

1. The tables are some of those that the caller has at the moment, under the names and types that they have
   now: those that a text may name, and all before it is refused.  They are temporary ones of a cursor, as
   one DuckDB serves a process (to open one takes 12 ms, a table 1).
2. A DuckDB whose plans nobody has read in the tests is refused.
"""

from __future__ import annotations

import datetime
import json
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from lftj.errors import SqlError, UnsupportedSqlError
from lftj.language.diagnostics import error_at, suggestion
from lftj.language.syntax import Span
from lftj.statements.kinds import connection, known_duckdb, select_only
from lftj.statements.time_windows import NAMES, as_call

BEYOND = "a moment before the year 1, after 9999 or at infinity is not taken: write NULL"

_LINES = 8
"""Of an error: what is more are functions that might have been meant."""

_PLAN = (
    "select json_serialize_plan(?::varchar, skip_null := true, skip_default := true, skip_empty := true,"
    " optimize := false)"
)

_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|\b(?:nan|inf(?:inity)?)\b', re.IGNORECASE)
_NUMBERS = {"nan": "NaN", "inf": "Infinity", "infinity": "Infinity"}

_TREE = _PLAN.replace("_plan", "_sql").replace(", optimize := false", "")


class Binder:
    """One for each database.  Safe to use from several threads."""

    def __init__(self) -> None:
        self._connection = connection()
        self._tables: dict[str, pa.Schema] = {}
        self._lock = threading.Lock()

    def plan(self, sql: str, tables: Mapping[str, pa.Schema]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The plan of one SELECT as DuckDB writes it, and the names and types of its columns.

        Raises SqlError, in DuckDB's words, with the place.
        """
        select_only(sql)
        with self._lock:
            folded = sql.casefold()
            for some in ({name: of for name, of in tables.items() if name.casefold() in folded}, tables):
                self._take(some, tables)
                found = self._bound(sql)
                if not found["error"]:
                    break
            if found["error"]:
                raise _refused(sql, found, tables)
            described = self._connection.execute(f"describe {as_call(sql)}").fetchall()
            return found["plans"][0], [(name, type_) for name, type_, *_ in described]

    @contextmanager
    def over(self, tables: Mapping[str, pa.Schema]) -> Iterator[Any]:
        """DuckDB's connection, in which these are the tables, for a block; others wait."""
        with self._lock:
            self._take(tables, tables)
            yield self._connection

    def check(self, sql: str, tables: Mapping[str, pa.Schema]) -> None:
        """Raise SqlError for a statement that DuckDB refuses to bind, with the place."""
        with self.over(tables):
            found = self._bound(sql)
        if found["error"]:
            raise _refused(sql, found, tables)

    def _bound(self, sql: str) -> dict[str, Any]:
        return _loaded(self._connection.execute(_PLAN, [as_call(sql)]).fetchall()[0][0])

    def tables(self, sql: str) -> frozenset[str]:
        """The names of the tables that a text reads, there or not, as it has them.  Raises SqlError."""
        return frozenset(_tables(self.parsed(sql), frozenset()))

    def parsed(self, sql: str) -> Any:
        """The trees of syntax of a text's statements, with no name bound.  Raises SqlError."""
        with self._lock:
            found = _loaded(self._connection.execute(_TREE, [as_call(sql)]).fetchall()[0][0])
        if found["error"]:
            raise _refused(sql, found, ())
        return found["statements"]

    def value(self, expression: str) -> Any:
        """The value of an expression of constants.  Raises SqlError, in DuckDB's words."""
        duckdb = known_duckdb()
        with self._lock:
            try:
                found = self._connection.execute(f"select {expression}").fetchall()[0][0]
                at_end = isinstance(found, datetime.date) and found.year in (1, 9999)
                if at_end and not self._connection.execute(f"select isfinite({expression})").fetchall()[0][0]:
                    raise UnsupportedSqlError(BEYOND)
                return found
            except duckdb.Error as error:
                raise SqlError(str(error).partition("\n\nLINE ")[0]) from None
            except OverflowError:
                raise UnsupportedSqlError(BEYOND) from None

    def _take(self, wanted: Mapping[str, pa.Schema], tables: Mapping[str, pa.Schema]) -> None:
        """Have these tables, and others as they are now or not at all."""
        for name in [name for name, schema in self._tables.items() if tables.get(name) != schema]:
            self._connection.execute(f"drop table {quoted(name)}")
            del self._tables[name]
        there = {name.casefold(): name for name in self._tables}
        for name in [name for name in wanted if name not in self._tables]:
            other = there.setdefault(name.casefold(), name)
            if other != name:
                message = (
                    f"relations {other!r} and {name!r} are one for SQL, which takes any case: rename one"
                )
                raise SqlError(message)
            self._connection.register("incoming", wanted[name].empty_table())
            try:
                self._connection.execute(f"create temp table {quoted(name)} as select * from incoming")
            finally:
                self._connection.unregister("incoming")
            self._tables[name] = wanted[name]


def quoted(name: str) -> str:
    """A name as SQL takes any.

    >>> quoted('my "t"')
    '"my ""t\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def _loaded(text: str) -> dict[str, Any]:
    """JSON as DuckDB writes it: NaN and infinity in capitals, and nothing where it can't write a value."""
    if not text:
        raise UnsupportedSqlError("a value that DuckDB can't write into a plan is not taken")
    try:
        return dict(json.loads(text))
    except json.JSONDecodeError:
        return dict(json.loads(_NO_NUMBER.sub(lambda found: _NUMBERS.get(found[0].lower(), found[0]), text)))
    except RecursionError:
        what = "an expression nested so deeply is not taken: compute parts of it in a WITH"
        raise UnsupportedSqlError(what) from None


def _refused(sql: str, found: Mapping[str, Any], tables: Collection[str]) -> SqlError:
    place: Span | None = None
    if "position" in found:
        start = int(found["position"])
        length = json.loads(found["location"])[1] if "location" in found else 1
        place = _characters(sql, start, start + max(length, 1))
    message, _, candidates = found["error_message"].strip().partition("\nCandidate bindings: ")
    if candidates:
        message = f"{message.rstrip()}; there is {candidates.lstrip(': ')}"
    elif found.get("type") == "Table" and "name" in found:
        known = [name for name in tables if "#" not in name]  # of the engine's own
        message = f"there is no relation {found['name']!r}{suggestion(found['name'], known)}"
    if any(sign in message for sign in ("not support serialization", "not implemented", "file system op")):
        raise UnsupportedSqlError(
            "a table function that reads files is not taken: load its rows as a relation"
        )
    if found.get("error_type") == "internal":  # DuckDB answers it, but can't write its plan
        raise UnsupportedSqlError(
            "a text whose plan DuckDB can't write is not taken, such as one with subqueries in the ON of an"
            " outer join and in that of one in a side of it: write that side in a WITH"
        )
    lines = message.replace("\t", "  ").splitlines()
    message = "\n".join([*lines[:_LINES], "  ..."] if len(lines) > _LINES + 1 else lines)
    return error_at(SqlError, sql, place, message)


def _tables(tree: Any, named: frozenset[str]) -> Iterator[str]:
    """Of a tree of syntax; ``named``: by WITH, further out."""
    parts = tree if isinstance(tree, list) else ()
    if isinstance(tree, dict):
        for each in tree.get("cte_map", {}).get("map", ()):
            is_recursive = each["value"]["query_node"]["type"] == "RECURSIVE_CTE_NODE"
            yield from _tables(each["value"], named | {each["key"].lower()} if is_recursive else named)
            named |= {each["key"].lower()}
        parts = [part for name, part in tree.items() if name != "cte_map"]
        if tree.get("type") == "BASE_TABLE" and tree["table_name"].lower() not in named:
            yield tree["table_name"]
        if tree.get("type") == "TABLE_FUNCTION" and tree["function"]["function_name"].lower() in NAMES:
            yield from {_data_of(tree["function"]["arguments"])} - named
    for part in parts:
        yield from _tables(part, named)


def _data_of(arguments: Sequence[Mapping[str, Any]]) -> str:
    """The table whose rows a window function gives: a name, or a text."""
    of = next((one for one in arguments if one.get("name", "").lower() == "data"), arguments[0])["expression"]
    return str(of["column_names"][-1] if "column_names" in of else of["literal"]["text"])


def _characters(sql: str, start: int, end: int) -> Span:
    """Spans of DuckDB count bytes of UTF-8."""
    if sql.isascii():
        return start, min(end, len(sql))
    encoded = sql.encode()
    return len(encoded[:start].decode(errors="ignore")), len(encoded[:end].decode(errors="ignore"))


def character_place(sql: str, found: Mapping[str, Any]) -> Span | None:
    """The place of a node of a plan in the text; None: it has none, or is in the text of a macro."""
    start = found.get("query_location")
    if start is None or start >= len(sql.encode()):
        return None
    return _characters(sql, start, start + max(found.get("query_location_length", 1), 1))
