"""`Peer`: DuckDB with the relations and the same changes, and `check`: an answer against DuckDB's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from bench.tpch.tables import KEYS, Changes

Row = tuple[Any, ...]


class Peer:
    """A database in memory, one thread."""

    def __init__(self, loaded: Mapping[str, pa.Table]) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        for name, table in loaded.items():
            self._connection.register("incoming", table)
            self._connection.execute(f"create table {name} as select * from incoming")
            self._connection.unregister("incoming")

    def apply(self, changes: Changes) -> None:
        """Erase rows by their keys, then insert, in one transaction."""
        self._connection.execute("begin")
        for name, (erased, inserted) in changes.items():
            keys = " and ".join(f"{name}.{column} = gone.{column}" for column in KEYS[name])
            self._connection.register("gone", erased.select(list(KEYS[name])))
            self._connection.execute(f"delete from {name} using gone where {keys}")
            self._connection.register("came", inserted)
            self._connection.execute(f"insert into {name} select * from came")
        self._connection.execute("commit")

    def answer(self, sql: str) -> pa.Table:
        """By ``execute``, which plans once, where ``sql`` plans when called and again when read."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")
            return self._connection.execute(sql).to_arrow_table()


def check(
    title: str, found: pa.Table, expected: pa.Table, order_by: str | None = None, *, sums: bool = True
) -> None:
    """Compare the rows in any order, but for the columns of ``order_by``, which have to come in the same one.

    ``sums``: whether the row of NULLs is there that SQL has for sums over nothing, and rules have not.

    Whole numbers, decimals of whatever scales, texts and dates are equal exactly; where one side is a float,
    it is within 1e-12 of the other.

    Raises:
        AssertionError: They differ.
    """
    types = zip(found.schema.types, expected.schema.types, strict=True)
    floats = [number for number, pair in enumerate(types) if any(map(pa.types.is_floating, pair))]
    exact = [number for number in range(found.num_columns) if number not in floats]
    columns = exact + floats
    rows, theirs_sorted = (sorted(_rows(table, columns, sums), key=_sorting) for table in (found, expected))
    if len(rows) != len(theirs_sorted):
        raise AssertionError(f"{title}: {len(rows)} rows, DuckDB {len(theirs_sorted)}")
    for mine, theirs in zip(rows, theirs_sorted, strict=True):
        if mine[: len(exact)] != theirs[: len(exact)] or not _close(mine[len(exact) :], theirs[len(exact) :]):
            raise AssertionError(f"{title}: {mine}, DuckDB {theirs}")
    if order_by is not None:
        names = [term.split()[0] for term in order_by.split(",")]
        columns = [found.column_names.index(name) for name in names]
        if _rows(found, columns, sums) != _rows(expected, columns, sums):
            raise AssertionError(f"{title}: the rows are in another order than DuckDB's")


def _rows(table: pa.Table, columns: list[int], sums: bool) -> list[Row]:
    rows = zip(*(table.column(number).to_pylist() for number in columns), strict=True)
    return [row for row in rows if sums or any(value is not None for value in row)]


def _sorting(row: Row) -> list[tuple[bool, Any]]:
    return [(value is None, 0 if value is None else value) for value in row]


def _close(mine: Row, theirs: Row) -> bool:
    return all(
        one is other if one is None or other is None else math.isclose(one, other, rel_tol=1e-12)
        for one, other in zip(mine, theirs, strict=True)
    )
