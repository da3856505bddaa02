"""Errors in SQL: the line, and a caret under the place."""

from __future__ import annotations

from lftj.errors import UnsupportedSqlError
from lftj.language.diagnostics import error_at
from lftj.sql.nodes import Place


def unsupported(sql: str, place: Place | None, what: str, instead: str = "") -> UnsupportedSqlError:
    """A construct that has no rules; ``instead``: what to write."""
    return error_at(UnsupportedSqlError, sql, place, f"{what} is not taken" + (instead and f": {instead}"))
