"""Errors in SQL: the line, and a caret under the place."""

from __future__ import annotations

from lftj.errors import SqlError, UnsupportedSqlError
from lftj.language.diagnostics import error_at
from lftj.sql.nodes import Place


def sql_error(sql: str, place: Place | None, message: str, of: type[SqlError] = SqlError) -> SqlError:
    """The text is no statement, or names what is not there."""
    return of(message) if place is None else error_at(of, sql, place, message)


def unsupported(sql: str, place: Place | None, what: str, instead: str = "") -> SqlError:
    """A construct that has no rules; ``instead``: what to write."""
    message = f"{what} is not taken" + (f": {instead}" if instead else "")
    return sql_error(sql, place, message, UnsupportedSqlError)
