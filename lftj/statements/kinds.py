"""Which kind of statement a text is, by the DuckDB that is installed; what is said of those not taken."""

from __future__ import annotations

import functools
import os
from typing import Any

from lftj.errors import SqlError, UnsupportedSqlError
from lftj.statements.time_windows import MACROS, as_call

VERSIONS = ((2, 0), (3, 0))
"""Of DuckDB whose plans are read: from the first, below the second."""

CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE_INTO")
DEFINITIONS = ("CREATE", "DROP")

_INSTEAD = {
    "MULTI": "list the values, PIVOT t ON x IN (...), or write count(*) FILTER (x = ...) for each",
    "EXPLAIN": "explain_maintenance() says how a view is kept",
    "PREPARE": "give values of parameters with params=",
    "TRANSACTION": "the with block of ws.transaction() is one",
    "COPY": "load() reads files, and answers are Arrow tables, which write them",
    "ALTER": "load the relation anew",
}


_CONFIG = {"threads": 1, "python_enable_replacements": False, "enable_external_access": False}
"""It binds texts, and reads no files for them."""


def known_duckdb() -> Any:
    """The module.  Raises ImportError, and SqlError for a version whose plans nobody has read."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise ImportError("SQL is read by DuckDB: pip install 'lftj[sql]'", name="duckdb") from error
    version = tuple(int(part) for part in duckdb.__version__.split(".")[:2])
    least, below = VERSIONS
    if not least <= version < below:
        wanted = f"duckdb>={'.'.join(map(str, least))},<{'.'.join(map(str, below))}"
        raise SqlError(f"the plans of DuckDB {duckdb.__version__} are not known: install {wanted}")
    return duckdb


def connection() -> Any:
    """One of a DuckDB without data that serves the process: to open one takes 12 ms."""
    return _opened(os.getpid()).cursor()


@functools.cache
def _opened(process: int) -> Any:
    opened = known_duckdb().connect(config=_CONFIG)
    for macro in MACROS:
        opened.execute(macro)
    return opened


def kind(sql: str) -> str:
    """``SELECT``, ``MERGE_INTO``, ...; what is no SQL counts as a SELECT, whose plan says why it is none.

    Raises SqlError for several statements, and for none.

    >>> kind("values (1)"), kind("truncate t")
    ('SELECT', 'DELETE')
    """
    duckdb = known_duckdb()
    try:
        found = _opened(os.getpid()).extract_statements(as_call(sql))
    except duckdb.Error:
        return "SELECT"
    if len(found) != 1:
        raise SqlError(f"one statement at a time: there are {len(found) or 'none'}")
    return str(found[0].type.name)


def select_only(sql: str) -> None:
    """Raise UnsupportedSqlError where a statement is no SELECT, and SqlError as `kind` does."""
    of = kind(sql)
    if of in (*CHANGES, *DEFINITIONS):
        raise not_taken(of, "sql() of a Workspace changes what is there, and here a SELECT is read")
    if of != "SELECT":
        raise not_taken(of)


def not_taken(of: str, instead: str = "") -> UnsupportedSqlError:
    """What to say of a statement of a kind."""
    what = "PIVOT without its values" if of == "MULTI" else of.replace("_", " ")
    return UnsupportedSqlError(f"{what} is not taken: {instead or _INSTEAD.get(of, 'a SELECT is')}")
