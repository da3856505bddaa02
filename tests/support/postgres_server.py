"""A PostgreSQL that is thrown away; tests that need one are skipped where none is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench import postgres_server
from bench.postgres_server import Server


@contextmanager
def running(*settings: str) -> Iterator[Server]:
    """A server while the context is open."""
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with postgres_server.running(*settings) as server:
        yield server
