"""`defined`: CREATE and DROP of views and tables in a workspace."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from lftj.errors import ChangeError, SqlError, UnsupportedSqlError
from lftj.statements.binder import quoted
from lftj.statements.kinds import known_duckdb
from maintenance.sql.parts import parsed

_AS = re.compile(rb"as\b", re.IGNORECASE)


class Defining(Protocol):
    """A workspace, as statements define what is in it."""

    def __contains__(self, name: object) -> bool: ...

    @property
    def views(self) -> Any: ...

    def sql(self, text: str) -> Any: ...

    @property
    def load(self) -> Callable[..., None]: ...

    def create_view(self, name: str, sql: str, *, replace: bool = False) -> None: ...

    def drop_view(self, name: str) -> None: ...


def defined(sql: str, workspace: Defining) -> None:
    """Do what a CREATE or DROP says.

    Raises SqlError, UnsupportedSqlError, and what the workspace raises; then nothing is changed."""
    found = parsed(sql)
    kind = str(found.args.get("kind") or "").upper()
    if kind not in ("VIEW", "TABLE") or found.args.get("materialized"):
        what = " ".join(sql.split()[:2]).upper()
        raise UnsupportedSqlError(f"{what} is not taken: CREATE and DROP are of VIEW and TABLE")
    if found.key == "drop":
        _drop(found, kind, workspace)
    elif kind == "VIEW":
        _create_view(sql, found, workspace)
    else:
        _create_table(sql, found, workspace)


def _drop(drop: Any, kind: str, workspace: Defining) -> None:
    if kind == "TABLE":
        raise UnsupportedSqlError(
            "DROP TABLE is not taken: TRUNCATE empties a relation, load() gives it anew"
        )
    for name in (each.name for each in drop.args["tables"]):
        if not (drop.args.get("exists") and name not in workspace.views):
            workspace.drop_view(name)


def _create_view(sql: str, create: Any, workspace: Defining) -> None:
    name = _name(create)
    if create.args.get("exists") and name in workspace:
        return
    columns = [each.name for each in getattr(create.this, "expressions", ())]
    select = _behind_as(sql)
    if columns:
        select = f"SELECT * FROM (\n{select}\n) AS {quoted(name)}({', '.join(map(quoted, columns))})"
    workspace.create_view(name, select, replace=bool(create.args.get("replace")))


def _behind_as(sql: str) -> str:
    """The SELECT of a CREATE, as it is written.

    >>> _behind_as("create view v(as_of) as -- dear\\n select 1;")
    'select 1'
    """
    duckdb, encoded = known_duckdb(), sql.encode()
    tokens = [at for at, type_ in duckdb.tokenize(sql) if type_ != duckdb.token_type.comment]
    depth = 0
    for at, behind in itertools.pairwise(tokens):
        depth += (encoded[at : at + 1] == b"(") - (encoded[at : at + 1] == b")")
        if depth == 0 and _AS.match(encoded, at):
            return encoded[behind:].decode().strip().rstrip(";").rstrip()
    raise SqlError("there is no SELECT behind AS")


def _name(create: Any) -> str:
    return str(create.this.this.name if create.this.key == "schema" else create.this.name)


def _create_table(sql: str, create: Any, workspace: Defining) -> None:
    name = _name(create)
    if name in workspace and not create.args.get("replace"):
        if create.args.get("exists"):
            return
        raise ChangeError(f"{name!r} is there already: CREATE OR REPLACE TABLE makes it anew")
    if create.expression is not None:
        if create.this.key == "schema":
            raise UnsupportedSqlError("columns of CREATE TABLE AS are named in its SELECT")
        workspace.load(name, workspace.sql(_behind_as(sql)), bag=True, nulls="keep")
        return
    table, not_null, key = _declared(sql, name)
    workspace.load(name, table, bag=not key, nulls="keep", not_null=not_null, key=key)


def _declared(sql: str, name: str) -> tuple[pa.Table, list[str], list[str]]:
    """The table that a CREATE TABLE makes, empty, its columns that are NOT NULL, and those of its key."""
    duckdb = known_duckdb()
    with duckdb.connect(config={"threads": 1}) as connection:
        try:
            connection.execute(sql)
        except duckdb.Error as error:
            raise SqlError(str(error)) from None
        found = connection.sql(f"select * from {quoted(name)}").to_arrow_table()
        constraints = connection.execute(
            "select constraint_type, constraint_column_names from duckdb_constraints()"
        ).fetchall()
        defaults = connection.execute(
            "select column_name from duckdb_columns() where column_default is not null and not internal"
        ).fetchall()
    keys = [columns for kind, columns in constraints if kind == "PRIMARY KEY"]
    other = sorted({kind for kind, _ in constraints} - {"NOT NULL", "PRIMARY KEY"})
    other += [f"DEFAULT of {column}" for (column,) in defaults]
    if other:
        raise UnsupportedSqlError(f"{', '.join(other)} of table {name!r} would not be kept: leave it out")
    return found, [column for _, columns in constraints for column in columns], keys[0] if keys else []
