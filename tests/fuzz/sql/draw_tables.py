"""Random tables for random SQL: small and dense, with NULLs and equal rows, of every type that is drawn."""

from __future__ import annotations

import datetime
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

from fuzz.case import Table
from support.reference import Row

_day = datetime.date.fromisoformat
_moment = datetime.datetime.fromisoformat

POOLS: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, 2, 3, 4, 5, -1, -2, 7),
    "decimal": tuple(map(Decimal, ("0.00", "1.50", "0.25", "-2.00", "3.00", "1.00"))),
    "double": (0.0, 1.0, 0.25, -1.5, 2.0, 3.75),
    "varchar": ("a", "b", "ab", "B", "", "abc", "a b", "%"),
    "date": tuple(map(_day, ("2024-01-31", "2024-02-29", "2023-12-31", "2024-03-01", "2024-01-01"))),
    "timestamp": tuple(
        map(
            _moment,
            ("2024-01-31 12:30:00", "2024-02-29 00:00:00", "2023-12-31 23:59:59", "2024-03-01 00:00:00"),
        )
    ),
    "boolean": (True, False),
}
"""Values by the family of a type, so few that they meet.  Sums of these doubles are exact."""

FAMILIES = {
    "int64": "int",
    "int32": "int",
    "string": "varchar",
    "decimal128(8, 2)": "decimal",
    "decimal128(6, 2)": "decimal",
    "double": "double",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "bool": "boolean",
}
SQL_TYPES = {
    "int64": "bigint",
    "int32": "integer",
    "string": "varchar",
    "decimal128(8, 2)": "decimal(8,2)",
    "decimal128(6, 2)": "decimal(6,2)",
    "double": "double",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "bool": "boolean",
}

_NAMES = {
    "a": "int64",
    "b": "int64",
    "k": "int64",
    "i": "int32",
    "s": "string",
    "t": "string",
    "p": "decimal128(8, 2)",
    "q": "decimal128(6, 2)",
    "x": "double",
    "d": "date32[day]",
    "e": "date32[day]",
    "m": "timestamp[us]",
    "f": "bool",
    "g": "bool",
}
"""The type of a column by its name: what has one name has one type, so that USING and NATURAL meet."""

_COMMON = ("a", "b", "k", "s")


def _names(r: random.Random) -> list[str]:
    chosen = r.sample(_COMMON, r.choice((1, 2, 2, 3)))
    chosen += r.sample([name for name in _NAMES if name not in chosen], r.choice((0, 0, 1, 1, 2, 3)))
    return chosen


def row_of(r: random.Random, values: tuple[tuple[Any, ...], ...]) -> Row:
    return tuple(r.choice(column) for column in values)


def table(r: random.Random, name: str) -> tuple[Table, tuple[tuple[Any, ...], ...]]:
    """A table, and which values its columns hold."""
    names = _names(r)
    types = tuple("int32" if _NAMES[one] == "int64" and r.random() < 0.05 else _NAMES[one] for one in names)
    nullable = [r.random() < 0.7 for _ in names] if r.random() < 0.75 else [False] * len(names)
    values: tuple[tuple[Any, ...], ...] = ()
    for type_, may_be_null in zip(types, nullable, strict=True):
        pool = POOLS[FAMILIES[type_]]
        chosen = tuple(r.sample(pool, min(len(pool), r.choice((1, 2, 3, 3, 4, 6)))))
        values = (*values, (*chosen, *((None,) * may_be_null)))
    key = (
        tuple(r.sample(range(len(names)), r.choice((1, 1, 2)))) if r.random() < 0.2 and len(names) > 1 else ()
    )
    for place in key:
        nullable[place] = False
        present = tuple(value for value in values[place] if value is not None)
        values = (*values[:place], present, *values[place + 1 :])
    size = r.choice((0, 1, 2, 3, 3, 5, 5, 5, 8, 8, 8, 12, 12, 12, 20, 30))
    rows = [row_of(r, values) for _ in range(size)]
    if rows and r.random() < 0.6:
        rows += r.choices(rows, k=r.choice((1, 2, 3)))
    declared = tuple(
        one for place, one in enumerate(names) if place in key or (not nullable[place] and r.random() < 0.5)
    )
    made = Table(name, types, (), nulls=True, bag=not key, names=tuple(names), not_null=declared, key=key)
    if key:
        rows = list({made.key_of(row): row for row in rows}.values())
    made = replace(made, rows=tuple(rows))
    return made, values
