"""Random relations: dense, skewed, empty, wide and narrow, of every type, with NULLs and equal rows.

Dense is the rule and not the exception: columns draw from few values, so that joins, repeated variables and
negations hit and miss about as often.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from fuzz.case import Many, Table
from support.kinds import INTEGER, KINDS, LISTS, SIGNED, STRING, WIDE, Kind
from support.reference import Row

_COMMON = (INTEGER, INTEGER, INTEGER, SIGNED, STRING)
_KINDS = (*KINDS, *LISTS)
_NULLABLE = tuple(kind for kind in _KINDS if kind is not WIDE)
"""Without the kind that holds the value which stands for NULL."""

Values = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Source:
    """What a rule needs to know of a relation that it reads."""

    name: str
    kinds: tuple[Kind, ...]
    functional: bool = False


@dataclass(frozen=True)
class Drawn:
    """A relation with the kinds of its columns, and what each column may hold."""

    table: Table
    kinds: tuple[Kind, ...]
    values: Values

    @property
    def source(self) -> Source:
        return Source(self.table.name, self.kinds, self.table.functional)


def palette(r: random.Random, nulls: bool) -> list[Kind]:
    """The kinds of a case's columns: one, so that all columns may meet, or two."""
    rare = _NULLABLE if nulls else _KINDS
    kinds = [r.choice(_COMMON if r.random() < 0.6 else rare)]
    if r.random() < 0.4:
        kinds.append(r.choice(_COMMON if r.random() < 0.5 else rare))
    return kinds


def row_of(r: random.Random, values: Values, skewed: bool = False) -> Row:
    """A row of the columns' values; a skewed one has mostly the first of each."""
    return tuple(column[0] if skewed and r.random() < 0.7 else r.choice(column) for column in values)


def relation(r: random.Random, name: str, kinds: list[Kind], most: int, nulls: bool) -> Drawn:
    """A relation of at most so many rows, a few of them equal where it is a bag."""
    columns = tuple(r.choice(kinds) for _ in range(r.choice((1, 2, 2, 2, 3, 3, 4))))
    types = [r.choice(kind.types) for kind in columns]
    nullable = nulls and r.random() < 0.7
    values: Values = ()
    for kind, type_ in zip(columns, types, strict=True):
        pool = kind.values(type_)
        chosen = tuple(r.sample(pool, r.randint(min(len(pool), r.choice((1, 2, 2, 2))), len(pool))))
        values = (*values, (*chosen, *((None,) if nullable else ())))
    size = r.choice((0, 1, r.randint(2, 4), most // 3, most // 2, most, most))
    skewed = r.random() < 0.3
    drawn = [row_of(r, values, skewed) for _ in range(size)]
    bag = r.random() < 0.12
    functional = len(columns) > 1 and not bag and r.random() < 0.2
    if functional:
        drawn = list({row[:-1]: row for row in drawn}.values())
    table = Table(name, tuple(map(str, types)), (), nullable, bag, functional)
    if not bag and r.random() < 0.2:
        table = _with_key(r, table)
        values = tuple(_without_null(pool) if n in table.key else pool for n, pool in enumerate(values))
        drawn = [row for row in drawn if None not in table.key_of(row)]
        drawn = list({table.key_of(row): row for row in drawn}.values())
    rows = tuple(drawn) if bag else tuple(dict.fromkeys(drawn))
    return Drawn(replace(table, rows=rows), columns, values)


def _with_key(r: random.Random, table: Table) -> Table:
    """The table with a key of some of its columns, mostly of more than one."""
    width = len(table.types)
    key = tuple(r.sample(range(width), r.choice((1, max(1, width - 1), max(1, width - 1), width))))
    required = tuple(table.columns[place] for place in key) if table.nulls else ()
    return replace(table, key=key, not_null=required, declared=r.random() < 0.3)


def _without_null(pool: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value for value in pool if value is not None)


def many(r: random.Random, name: str) -> Many:
    """A relation of up to 100,000 rows, two or three columns of integers or words, dense or not."""
    n_rows = round(10 ** r.choice((r.uniform(2.0, 4.0), r.uniform(2.0, 4.0), r.uniform(3.0, 5.0))))
    width = r.choice((1, 2, 2, 2, 3))
    word = r.random() < 0.3
    types = tuple("string" if word else r.choice(("int64", "int64", "int32")) for _ in range(width))
    fan_out = r.choice((1, 3, 10, 30))
    distinct = tuple(max(2, min(n_rows // fan_out, 200_000)) for _ in range(width))
    skew = tuple(r.choice((0.0, 0.0, 0.0, 0.01, 0.05)) for _ in range(width))
    return Many(name, types, n_rows, distinct, skew, r.randrange(2**32))
