"""`connection`: to DuckDB, beside which answers are tested; one of a process, for another takes 20 ms."""

from __future__ import annotations

from functools import cache

import duckdb


@cache
def _process() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    return connection


def connection() -> duckdb.DuckDBPyConnection:
    """What is registered with it and its temporary tables are its own; other tables all connections share."""
    return _process().cursor()
