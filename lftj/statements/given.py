"""`given`: the SQL of what a user gives, with the values of its parameters in it.

A text is DuckDB's or of another dialect, which sqlglot translates; a frame is whatever can say its SQL: an
ibis expression, a DuckDB relation, a narwhals frame over one of these.  A polars frame can't.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lftj.errors import SqlError, UnsupportedSqlError
from lftj.language.diagnostics import error_at, suggestion
from lftj.statements.parameters import filled

_RULE = re.compile(
    r"(?:\s|//[^\n]*\n)*((?:bag\s+)?(?!(?:select|with|from|values|pivot|unpivot)\b)\w+\s*[(\[][^;]*?<-)",
    re.IGNORECASE,
)
"""A head and its arrow: a bracket stands behind the first word, as in no other statement of SQL."""


@contextmanager
def given(source: Any, params: Any = None, dialect: str | None = None) -> Iterator[str]:
    """The statement, for a block: errors with places in it have them in the given text when they leave.

    Of a text of another dialect, places are in what it becomes in DuckDB's.
    Raises SqlError, ParameterError, and ImportError where the dialect needs sqlglot.
    """
    if isinstance(source, str) and (rule := _RULE.match(source)) is not None:
        raise error_at(
            SqlError,
            source,
            rule.span(1),
            "this is a rule, where SQL stands; query() takes it, and install() of a Workspace keeps it up to"
            " date",
        )
    written = text_of(source) if dialect is None else _translated(source, dialect)
    statement = filled(written, params)
    try:
        yield statement.text
    except SqlError as error:
        if error.span is None or not statement.replaced or not error.reason:
            raise
        raise error_at(type(error), written, statement.place(error.span), error.reason) from error


def text_of(source: Any) -> str:
    """The SQL of a text or a frame.  Raises UnsupportedSqlError for what has none."""
    if isinstance(source, str):
        return source
    package = type(source).__module__.partition(".")[0]
    if package == "ibis":
        import ibis

        return str(ibis.to_sql(source, dialect="duckdb"))
    if package == "narwhals":
        return text_of(source.to_native())
    if callable(getattr(source, "sql_query", None)):
        return str(source.sql_query())
    raise UnsupportedSqlError(
        f"a {package} {type(source).__name__} has no SQL: give a text, an ibis expression, a DuckDB relation"
        " or a narwhals frame over one, that read relations by their names; load() takes frames as data"
    )


def _translated(text: Any, dialect: str) -> str:
    if not isinstance(text, str):
        raise SqlError(f"dialect= says what a text is written in, and this is a {type(text).__name__}")
    try:
        import sqlglot
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{dialect!r} is translated by sqlglot: pip install 'lftj[sql]', or write DuckDB's SQL",
            name="sqlglot",
        ) from error
    if dialect not in sqlglot.Dialect.classes:
        raise SqlError(
            f"unknown dialect {dialect!r}{suggestion(dialect, filter(None, sqlglot.Dialect.classes))}"
        )
    try:
        found = sqlglot.transpile(
            text, read=dialect, write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE, comments=False
        )
    except sqlglot.errors.UnsupportedError as error:
        raise UnsupportedSqlError(f"{dialect} has what DuckDB has not: {error}") from None
    except sqlglot.errors.SqlglotError as error:
        raise placed(SqlError, text, error, f"no {dialect}") from None
    if len(found) != 1:
        raise SqlError(f"one statement at a time: there are {len(found)}")
    return found[0]


def placed(kind: type[SqlError], text: str, error: Any, what: str) -> SqlError:
    """What sqlglot says of a text, with the place where it says one."""
    at: dict[str, Any] = next(iter(getattr(error, "errors", ())), {})
    if not at.get("line"):
        return kind(f"{what}: {error}")
    marked = at.get("highlight") or " "
    start = (
        sum(len(line) for line in text.splitlines(keepends=True)[: at["line"] - 1]) + at["col"] - len(marked)
    )
    return error_at(kind, text, (start, start + len(marked)), f"{what}: {at['description']}")
