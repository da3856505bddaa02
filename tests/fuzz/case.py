"""A case: what is loaded, a program over it, and what is done then; data only, as text a Python expression.

Nothing of the engine is imported.  A case is made by :mod:`fuzz.draw`, played by :mod:`fuzz.play`, made
smaller by :mod:`fuzz.minimise`, and kept as a script by :mod:`fuzz.scripts`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa

from fuzz.sql import tree
from support.kinds import LISTS, Listed
from support.reference import Row
from support.rules import (
    Aggregate,
    Arithmetic,
    Atom,
    Call,
    Comparison,
    Constant,
    Either,
    Head,
    Minus,
    Program,
    Rule,
    Variable,
    Wildcard,
    render,
)

TYPES: dict[str, pa.DataType] = {
    str(type_): type_
    for type_ in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.bool_(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.time64("us")),
        *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.duration("ms")),
        *(pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")),
        *(pa.decimal128(6, 2), pa.decimal128(8, 2), pa.decimal128(10, 1), pa.decimal256(20, 3)),
        *(pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())),
        *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)),
        *(type_ for kind in LISTS for type_ in kind.types),
    )
}
"""The types of columns, by name."""


@dataclass(frozen=True)
class Table:
    """A relation as it is loaded.  Equal rows may be among the rows.

    ``nulls``: it keeps NULLs, which are None.  ``functional``: rules may read it as a function.
    ``names``: of its columns, c0, c1, ... where there are none.  ``not_null``: those declared so.
    ``key``: columns that tell rows apart, by place; ``declared``: among the rules, not where it is loaded.
    """

    name: str
    types: tuple[str, ...]
    rows: tuple[Row, ...]
    nulls: bool = False
    bag: bool = False
    functional: bool = False
    names: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    key: tuple[int, ...] = ()
    declared: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Those of ``load`` and, for what is not the default alone, of a script that loads it."""
        return {
            **({"nulls": "keep"} if self.nulls else {}),
            **({"bag": True} if self.bag else {}),
            **({"not_null": list(self.not_null)} if self.not_null else {}),
            **({"key": self.key_columns} if self.key and not self.declared else {}),
        }

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names or tuple(f"c{i}" for i in range(len(self.types)))

    @property
    def key_columns(self) -> list[str]:
        return [self.columns[place] for place in self.key]

    def key_of(self, row: Row) -> Row:
        return tuple(row[place] for place in self.key)

    def arrow(self, rows: tuple[Row, ...] | None = None) -> pa.Table:
        """Its rows, or others of its columns, as an Arrow table."""
        chosen = self.rows if rows is None else rows
        columns = [[row[i] for row in chosen] for i in range(len(self.types))]
        return pa.table(
            [pa.array(columns[i], type=TYPES[name]) for i, name in enumerate(self.types)],
            names=list(self.columns),
        )


@dataclass(frozen=True)
class Many:
    """A relation of so many rows of integers or words that nobody writes them down.

    ``distinct``: so many values each column has.  ``skew``: which share has a column's first.
    """

    name: str
    types: tuple[str, ...]
    n_rows: int
    distinct: tuple[int, ...]
    skew: tuple[float, ...]
    seed: int

    def written(self) -> Table:
        """The relation with its rows, each once."""
        generator = random.Random(self.seed)
        columns = []
        for type_, distinct, skew in zip(self.types, self.distinct, self.skew, strict=True):
            places = [
                0 if generator.random() < skew else generator.randrange(distinct) for _ in range(self.n_rows)
            ]
            columns.append([f"w{place}" for place in places] if type_ == "string" else places)
        rows = tuple(dict.fromkeys(zip(*columns, strict=True))) if columns else ()
        return Table(self.name, self.types, rows)


Staged = tuple[str, Row, int | str]
"""Relation, row, weight; of a relation with a key also "upsert" and, of the row's key, "erase_keys"."""


@dataclass(frozen=True)
class Commit:
    """One transaction.  ``way``: "apply", "rows" (insert and erase, tuple by tuple) or "tables"."""

    staged: tuple[Staged, ...]
    way: str = "apply"


@dataclass(frozen=True)
class ApplyMany:
    """Transactions in one call."""

    transactions: tuple[tuple[Staged, ...], ...]


@dataclass(frozen=True)
class Do:
    """Anything else: ``what`` names a method of :class:`fuzz.kept.Kept`, with arguments."""

    what: str
    arguments: tuple[Any, ...] = ()


Step = Commit | ApplyMany | Do


@dataclass(frozen=True)
class Case:
    """``kind``: which of :data:`fuzz.play.PLAYS` plays it.  ``options``: what that one is told.

    ``statements``: of SQL, as trees or as text, where it is no program.
    """

    kind: str
    tables: tuple[Table | Many, ...]
    program: Program
    steps: tuple[Step, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    statements: tuple[Any, ...] = ()

    @property
    def rules(self) -> str:
        """The program's text."""
        if self.statements:
            return "\n".join(f"{tree.sql(one)};" for one in self.statements)
        return self.declarations + render(self.program)

    @property
    def declarations(self) -> str:
        """The keys that are declared among the rules, a line each."""
        return "".join(
            f"key {table.name}({', '.join(table.key_columns)}).\n"
            for table in self.tables
            if isinstance(table, Table) and table.declared
        )

    @property
    def heads(self) -> list[str]:
        return list(dict.fromkeys(head.relation for rule in self.program for head in rule.heads))


def text(node: Any) -> str:
    """A Python expression for a case, or a part of one, with what has its default left out."""
    if isinstance(node, tuple) and not isinstance(node, Listed):
        return f"({', '.join(text(part) for part in node)}{',' if len(node) == 1 else ''})"
    if isinstance(node, dict):
        return "{" + ", ".join(f"{key!r}: {text(value)}" for key, value in node.items()) + "}"
    if type(node) in WRITTEN:
        told = [
            f"{one.name}={text(getattr(node, one.name))}"
            for one in fields(node)
            if getattr(node, one.name) != one.default and getattr(node, one.name) != {}
        ]
        return f"{type(node).__name__}({', '.join(told)})"
    return repr(node)


WRITTEN = (
    *(Case, Table, Many, Commit, ApplyMany, Do),
    *(Rule, Head, Atom, Comparison, Either, Aggregate),
    *(Arithmetic, Minus, Call, Variable, Wildcard, Constant),
    *tree.WRITTEN,
)
"""The classes that a case is made of."""
