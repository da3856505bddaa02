"""The tables of a SELECT: whose a column is, and which columns are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lftj.errors import RuleSyntaxError, UnknownColumnError, UnknownRelationError
from lftj.language.diagnostics import suggestion


@dataclass(frozen=True)
class FromColumn:
    """A column of the table with a number."""

    table: int
    name: str


@dataclass(frozen=True)
class FromTable:
    """A table of the FROM clause: ``alias``, and the relation that it is."""

    alias: str
    relation: str
    columns: Sequence[str]


class FromClause:
    """The tables of a FROM clause, in order.

    Names are found as Spark does it: in any case, where no other differs from them by case alone.
    """

    def __init__(self, relations: Mapping[str, Sequence[str]]) -> None:
        self._relations = relations
        self._tables: list[FromTable] = []
        self._same: dict[FromColumn, FromColumn] = {}
        self._using: set[FromColumn] = set()
        self._equal: list[FromColumn] = []  # of each `=` a side

    def __len__(self) -> int:
        return len(self._tables)

    def __getitem__(self, number: int) -> FromTable:
        return self._tables[number]

    def __iter__(self) -> Iterator[FromTable]:
        return iter(self._tables)

    def add(self, table: exp.Expr) -> None:
        """A table behind the ones before."""
        if (
            not isinstance(table, exp.Table)
            or table.args.get("db")
            or not isinstance(table.this, exp.Identifier)
        ):
            raise refused(table, "give a DataFrame of it among the relations, and name that")
        if any(part for name, part in table.args.items() if name not in ("this", "alias")):
            raise refused(table, "do that with its DataFrame")
        relation = _named(table.name, self._relations)
        if relation is None:
            raise UnknownRelationError(
                f"`{table.sql(dialect='spark')}`: there is no relation '{table.name}'"
                f"{suggestion(table.name, self._relations)}"
            )
        alias = table.alias or table.name
        if alias.lower() in (other.alias.lower() for other in self._tables):
            raise refused(table, f"another table is called '{alias}': give it an alias")
        if table.alias and table.args["alias"].args.get("columns"):
            raise refused(table, "rename the columns of its DataFrame, by toDF()")
        self._tables.append(FromTable(alias, relation, self._relations[relation]))

    def use(self, name: exp.Identifier) -> None:
        """JOIN ... USING: the last table's column of the name is that of the tables before."""
        last = len(self._tables) - 1
        left, right = self._find(name, range(last)), self._find(name, range(last, last + 1))
        self.join(left, right)
        self._using |= {left, right}

    def column(self, column: exp.Column) -> FromColumn:
        """The column that an expression names."""
        tables = range(len(self._tables))
        if isinstance(column.this, exp.Star) or column.args.get("db"):
            raise refused(column, "name the columns")
        if not column.table:
            return self._find(column.this, tables)
        for number in tables:
            if self._tables[number].alias.lower() == column.table.lower():
                known = self._tables[number].columns
                name = _named(column.name, known)
                if name is None:
                    raise UnknownColumnError(
                        f"`{column.sql(dialect='spark')}`: '{column.table}' has no column"
                        f" '{column.name}'{suggestion(column.name, known)}"
                    )
                return FromColumn(number, name)
        aliases = [table.alias for table in self._tables]
        raise UnknownRelationError(
            f"`{column.sql(dialect='spark')}`: no table of this SELECT is called '{column.table}'"
            f"{suggestion(column.table, aliases)}"
        )

    def _find(self, name: exp.Identifier, tables: range) -> FromColumn:
        found = [
            FromColumn(number, column)
            for number in tables
            if (column := _named(name.this, self._tables[number].columns)) is not None
        ]
        if not found:
            known = [column for number in tables for column in self._tables[number].columns]
            raise UnknownColumnError(f"no table has a column '{name.this}'{suggestion(name.this, known)}")
        roots = {self.root(column) for column in found}
        if len(roots) > 1 or (len(found) > 1 and not self._using.issuperset(found)):
            raise refused(name, f"{len(found)} tables have a column of that name: say whose")
        return found[0]

    def root(self, column: FromColumn) -> FromColumn:
        """The first of the columns that are the same as one."""
        while column in self._same:
            column = self._same[column]
        return column

    def join(self, left: FromColumn, right: FromColumn, *, null_safe: bool = False) -> None:
        """From now on the two are one; but for ``null_safe``, by ``<=>``, they are not NULL."""
        if not null_safe:
            self._equal.append(left)
        first, second = sorted((self.root(left), self.root(right)), key=lambda one: one.table)
        if first != second:
            self._same[second] = first

    def null_safe(self, column: FromColumn) -> bool:
        """Whether a column is one with others before it by ``<=>`` alone."""
        root = self.root(column)
        return column != root and all(self.root(side) != root for side in self._equal)

    def joined(self, column: FromColumn) -> bool:
        """Whether others are the same as a root."""
        return column in self._same.values()

    def all(self, alias: str) -> Iterator[FromColumn]:
        """All columns of a table or, without an alias, of all tables, those of USING once."""
        numbers = [
            number
            for number, table in enumerate(self._tables)
            if not alias or table.alias.lower() == alias.lower()
        ]
        if not numbers:
            raise UnknownRelationError(
                f"`{alias}.*`: no table of this SELECT is called '{alias}'"
                f"{suggestion(alias, [table.alias for table in self._tables])}"
            )
        shown = set()
        for number in numbers:
            for name in self._tables[number].columns:
                column = FromColumn(number, name)
                if not alias and column in self._using and self.root(column) in shown:
                    continue
                shown.add(self.root(column))
                yield column


def refused(what: exp.Expr, way_out: str) -> RuleSyntaxError:
    """What shows the part of the SQL that a rule cannot say, and the way out."""
    return RuleSyntaxError(f"a rule can't say `{what.sql(dialect='spark')}`: {way_out}")


def _named(name: str, known: Mapping[str, object] | Sequence[str]) -> str | None:
    """The one that is called so, in any case where no other differs from it by case alone."""
    if name in known:
        return name
    found = [one for one in known if one.lower() == name.lower()]
    return found[0] if len(found) == 1 else None
