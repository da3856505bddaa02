"""Connections to a PostgreSQL whose errors do not show how they were to be made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection

SETTINGS = (
    "-c DateStyle=ISO -c TimeZone=UTC -c IntervalStyle=postgres -c extra_float_digits=3 -c bytea_output=hex"
)
"""As values are read (:mod:`maintenance.sources.postgres_types`) and written."""


def connected(dsn: str, settings: str = SETTINGS, **options: Any) -> Connection[Any]:
    """A connection.  Raises psycopg.Error, which shows no part of a ``dsn`` that can't be read."""
    from psycopg import OperationalError, ProgrammingError, connect
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(dsn)
    except ProgrammingError:
        raise OperationalError(
            "the connection string can't be read: write it as host=... dbname=..."
        ) from None
    return connect(dsn, options=settings, **options)
