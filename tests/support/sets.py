"""Loading drawn rows, some of which may be equal: the relation is their set, and that is what is wanted."""

from __future__ import annotations

import warnings
from typing import Any

from lftj.database.database import Database
from lftj.errors import EqualRowsWarning


def load_set(
    database: Database, name: str, source: Any, columns: list[str] | None = None, **how: Any
) -> None:
    """As ``database.load``, and no word of equal rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EqualRowsWarning)
        database.load(name, source, columns, **how)
