"""`TABLES`: the small tables of the corpus, in DuckDB, as Arrow, and with random changes.

They are dense: few values, so that rows meet, many equal rows where a table is a bag, NULLs wherever a column
has them.  A change erases rows that are there and inserts rows of the same pools.
"""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa

from support import peer

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        columns: Name, DuckDB's type, and the values that random rows have there; None among them: it may be
            NULL.
        rows: At first.
        bag: Whether equal rows may be in it.
        key: Whether the first column's values differ.
    """

    name: str
    columns: tuple[tuple[str, str, tuple[Any, ...]], ...]
    rows: tuple[Row, ...]
    bag: bool = True
    key: bool = False

    @property
    def not_null(self) -> list[str]:
        return [name for name, _, pool in self.columns if None not in pool]

    @property
    def declaration(self) -> str:
        columns = (f"{n} {t}" + (" not null" if n in self.not_null else "") for n, t, _ in self.columns)
        return f"create table {self.name} ({', '.join(columns)})"

    def draw(self, random: Random) -> Row:
        return tuple(random.choice(pool) for _, _, pool in self.columns)

    def options(self) -> dict[str, Any]:
        """What ``Database.load`` takes."""
        nullable = len(self.not_null) < len(self.columns)
        options: dict[str, Any] = {"nulls": "keep", "not_null": self.not_null} if nullable else {}
        return options | ({"bag": True} if self.bag else {})


_SMALL = (1, 2, 3, 4, 5)
_TENS = (5, 7, 10, 11, 20, None)

TABLES = {
    table.name: table
    for table in (
        Table(
            "r",
            (("a", "bigint", (*_SMALL, None)), ("b", "bigint", _TENS)),
            ((1, 10), (2, 20), (3, None), (None, 5), (4, 20), (4, 20), (1, 10), (1, 7)),
        ),
        Table(
            "s",
            (("c", "bigint", (*_SMALL, None)), ("d", "bigint", _TENS)),
            ((1, 10), (1, 11), (2, None), (5, 20), (None, 7), (1, 10)),
        ),
        Table(
            "e",
            (("a", "bigint", _SMALL), ("b", "bigint", _SMALL)),
            ((1, 2), (2, 3), (3, 1), (4, 5), (2, 5)),
            bag=False,
        ),
        Table(
            "dt",
            (("d", "date", ("2025-12-31", "2026-01-31", "2026-02-03", "2028-02-29")),),
            (("2026-01-31",), ("2026-02-03",)),
            bag=False,
        ),
        Table("tx", (("t", "varchar", ("abc", "xyz", "a", "ab", "")),), (("abc",), ("xyz",)), bag=False),
        Table(
            "m",
            (
                ("k", "bigint", (1, 2, 3)),
                ("g", "varchar", ("abc", "b", "a_c", "5%", "", "äöü", None)),
                ("p", "decimal(12, 2)", ("0.00", "1.50", "-2.25", "1000.10", None)),
                ("q", "integer", (0, 1, 2, -3, None)),
                ("x", "double", (0.1, 0.5, -1.25, 1e10, None)),
                ("f", "boolean", (True, False, None)),
                ("day", "date", ("2026-01-01", "2026-01-31", "2024-02-29", None)),
                ("moment", "timestamp", ("2026-01-01 00:00:00", "2026-01-02 13:30:05.25", None)),
            ),
            (
                (1, "abc", "1.50", 2, 0.1, True, "2026-01-01", "2026-01-01 00:00:00"),
                (1, "abc", "1.50", 2, 0.1, True, "2026-01-01", "2026-01-01 00:00:00"),
                (1, "b", "0.00", 1, 0.5, False, "2026-01-31", None),
                (2, None, "-2.25", None, 1e10, None, None, "2026-01-02 13:30:05.25"),
                (2, "a_c", None, 0, None, True, "2024-02-29", "2026-01-01 00:00:00"),
                (3, "5%", "1000.10", -3, -1.25, False, None, None),
                (3, "", "1.50", 2, 0.5, None, "2026-01-31", "2026-01-02 13:30:05.25"),
            ),
        ),
        Table(
            "emp",
            (
                ("id", "bigint", tuple(range(1, 13))),
                ("name", "varchar", ("ann", "bob", "ada", "carl", "Eve")),
                ("dept", "bigint", (1, 2, 3, None)),
                ("salary", "decimal(9, 2)", ("1000.00", "1500.50", "2000.00", None)),
                ("boss", "bigint", (1, 2, 3, None)),
                ("hired", "date", ("2025-11-30", "2025-12-24", "2026-01-01", "2026-01-15")),
            ),
            (
                (1, "ann", 1, "2000.00", None, "2025-11-30"),
                (2, "bob", 1, "1500.50", 1, "2025-12-24"),
                (3, "ada", 2, "2000.00", 1, "2026-01-01"),
                (4, "carl", 2, "1000.00", 3, "2026-01-01"),
                (5, "Eve", 3, "1500.50", 3, "2026-01-15"),
                (6, "bob", 1, "1500.50", 2, "2026-01-15"),
                (7, "ada", None, None, 2, "2025-12-24"),
            ),
            bag=False,
            key=True,
        ),
        *(
            Table(
                name,
                (
                    ("t", "bigint", tuple(range(8))),
                    ("id", "bigint", tuple(range(4))),
                    ("broker_id", "bigint", (1, 2, 3)),
                    ("volume", "bigint", (1, 5, 10, 100)),
                    ("price", "bigint", (90, 95, 100, 105, 120)),
                ),
                rows,
            )
            for name, rows in (
                ("bids", ((0, 0, 1, 10, 95), (1, 1, 2, 5, 100), (2, 2, 1, 100, 90), (3, 3, 3, 1, 105))),
                ("asks", ((0, 0, 1, 5, 105), (1, 1, 2, 100, 120), (2, 2, 3, 10, 100), (2, 2, 3, 10, 100))),
            )
        ),
    )
}


_NUMBERS = itertools.count()


class Tables:
    """The tables in DuckDB, which holds what is so."""

    def __init__(self, filled: bool = True) -> None:
        self.connection, self.name = peer.connection(), f"tables_{next(_NUMBERS)}"
        self.connection.execute(f"attach ':memory:' as {self.name}")
        weakref.finalize(self, _detach, self.name)
        if filled:
            self.connection.execute(f"copy from database {_first().name} to {self.name}")
        self.connection.execute(f"use {self.name}")
        if not filled:
            for table in TABLES.values():
                self.connection.execute(table.declaration)

    def arrow(self, table: Table, rows: list[Row] | None = None) -> pa.Table:
        """All rows, or these of DuckDB's, of DuckDB's types."""
        if rows is None:
            return plain(self.connection.sql(f"from {table.name}").to_arrow_table())
        schema = _schema(table.name)
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    def insert(self, table: Table, rows: list[Row] | tuple[Row, ...]) -> list[Row]:
        """The rows as they are there."""
        marks = f"({', '.join('?' for _ in table.columns)})"
        return self.connection.execute(
            f"insert into {table.name} values {', '.join(marks for _ in rows)} returning *",
            [value for row in rows for value in row],
        ).fetchall()

    def erase(self, table: Table, row: Row) -> None:
        """One of the rows that equal this one."""
        same = " and ".join(f"{name} is not distinct from ?" for name, _, _ in table.columns)
        self.connection.execute(
            f"delete from {table.name} where rowid = (select min(rowid) from {table.name} where {same})", row
        )

    def rows(self, table: Table) -> list[Row]:
        return self.connection.execute(f"select * from {table.name} order by all").fetchall()

    def change(self, table: Table, random: Random, most: int = 3) -> tuple[list[Row], list[Row]]:
        """Erases and inserts some rows here; those erased and those inserted."""
        here = self.connection.execute(f"select *, rowid from {table.name} order by all").fetchall()
        places = set(random.sample(range(len(here)), min(len(here), random.randint(0, most))))
        if places:
            numbers = ", ".join(str(here[place][-1]) for place in places)
            self.connection.execute(f"delete from {table.name} where rowid in ({numbers})")
        erased = [row[:-1] for place, row in enumerate(here) if place in places]
        left = [row[:-1] for place, row in enumerate(here) if place not in places]
        drawn = [
            random.choice(erased) if erased and random.random() < 0.2 else table.draw(random)
            for _ in range(random.randint(0, most))
        ]
        inserted: list[Row] = []
        for added in self.insert(table, drawn) if drawn else ():
            if (not table.bag and added in left) or (table.key and any(added[0] == row[0] for row in left)):
                self.erase(table, added)
                continue
            inserted.append(added)
            left.append(added)
        return erased, inserted


@cache
def _first() -> Tables:
    """With their rows at first, which others copy."""
    tables = Tables(filled=False)
    for table in TABLES.values():
        tables.insert(table, table.rows)
    return tables


@cache
def _schema(name: str) -> pa.Schema:
    return _first().arrow(TABLES[name]).schema


def _detach(name: str) -> None:
    peer.connection().execute(f"detach {name}")


def plain(table: pa.Table) -> pa.Table:
    """With strings of the plain kind and one chunk a column."""
    fields = [pa.field(f.name, pa.string() if f.type == pa.string_view() else f.type) for f in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()
