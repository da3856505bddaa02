"""Random SELECTs: joins, subqueries, groups, windows, set operations, recursion, over tables that are given.

Names of tables are drawn once for a statement, so no name hides another.  What SQL leaves open is not drawn:
LIMIT, row numbers and DISTINCT ON have orders of all that can be told apart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from fuzz.sql.draw_expressions import COMPARED, FAMILIES, Expressions, Scope, reads
from fuzz.sql.tree import (
    APPROXIMATE,
    Cte,
    Derived,
    E,
    Item,
    Join,
    Named,
    Select,
    SetOperation,
    Sort,
    Values,
    With,
)

KINDS = ("inner", "inner", "left", "left", "right", "full", "full", "cross", ",")


@dataclass(frozen=True)
class Source:
    """A relation, view or common table expression, with its columns' names and families."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: int = 10
    """About so many it has."""


def column(text: str, family: str) -> E:
    return E("column", (text,), family)


def position(n: int) -> E:
    return E("column", (str(n + 1),))


MOST_ROWS = (1_500, 200)
"""About so many rows has what stands after FROM, at the top and in queries inside: a product of some tables
of 30 rows, read by another of them, would be all that there is time for.
"""


class Queries:
    """Draws one statement.  ``size``: 1 to 3, how much there is in it."""

    def __init__(self, r: random.Random, sources: list[Source], size: int) -> None:
        self.r, self.sources, self.size = r, list(sources), size
        self._aliases = 0
        self.drawn = 0
        """About so many rows has the query that was drawn last."""
        self.left = (1, 3, 6)[size - 1]
        """So many queries may yet be drawn inside."""
        rate = (0.04, 0.09, 0.13)[size - 1]
        self.expressions = Expressions(r, self.scalar, self.rows, rate, (0.06, 0.1, 0.14)[size - 1])

    def alias(self, stem: str = "x") -> str:
        self._aliases += 1
        return f"{stem}{self._aliases}"

    # -- statements ---------------------------------------------------------------------------------------

    def statement(self, approximate: bool = True) -> tuple[Any, list[str]]:
        """A statement, and the families of its columns."""
        r = self.r
        if r.random() < 0.05:
            return self._recursive(approximate)
        ctes = []
        if r.random() < 0.1 * self.size:
            for _ in range(r.choice((1, 1, 2))):
                query, families = self.query(None, (), self.size - 1)
                name, columns = self.alias("w"), tuple(f"c{n}" for n in range(len(families)))
                ctes.append(
                    Cte(name, query, columns if r.random() < 0.3 or not isinstance(query, Select) else ())
                )
                source = Source(name, tuple(zip(columns, families, strict=True)), self.drawn)
                self.sources = [source, *self.sources, source]
        query, families = self.query(None, (), self.size, approximate, top=True)
        return (With(tuple(ctes), query) if ctes else query), families

    def _recursive(self, approximate: bool) -> tuple[Any, list[str]]:
        """Steps along a relation, or numbers that grow to an end."""
        r = self.r
        edges = [
            (source, a, b)
            for source in self.sources
            for a, of in source.columns
            for b, other in source.columns
            if of == other == "int" and a != b
        ]
        if not edges:
            return self.query(None, (), self.size, approximate, top=True)
        source, a, b = r.choice(edges)
        name, x, y = self.alias("w"), self.alias(), self.alias()
        counted = r.random() < 0.5
        op = "union all" if counted and r.random() < 0.6 else "union"
        n = Item(E("cast({0} as bigint)", (E("literal", (0,), "int"),), "int"), "n")
        more = Item(E("({0} + 1)", (column(f"{x}.n", "int"),), "int"), "n")
        first = Select(
            (
                Item(column(f"{y}.{a}", "int"), "u"),
                Item(column(f"{y}.{b}", "int"), "v"),
                *((n,) if counted else ()),
            ),
            Named(source.name, y),
        )
        if r.random() < 0.4:
            scope = self._scope_of(source, y)
            first = replace(first, where=self.expressions.test(scope, 1))
        z = self.alias()
        meet = E("({0} = {1})", (column(f"{x}.v", "int"), column(f"{z}.{a}", "int")), "boolean")
        step = Select(
            (
                Item(column(f"{x}.u", "int"), "u"),
                Item(column(f"{z}.{b}", "int"), "v"),
                *((more,) if counted else ()),
            ),
            Join("inner", Named(name, x), Named(source.name, z), meet),
        )
        if counted:
            small = E(f"({{0}} < {r.choice((1, 2))})", (column(f"{x}.n", "int"),), "boolean")
            step = replace(step, where=small)
            if op == "union all":
                first, step = self._repeated(first, step, x, more)
        columns = ("u", "v", "n") if counted else ("u", "v")
        cte = Cte(name, SetOperation(op, first, step), columns)
        made = Source(name, tuple((one, "int") for one in columns), 3 * source.rows)
        self.sources = [made] * (1 + len(self.sources)) + self.sources
        body, families = self.query(None, (), min(self.size, 2), approximate, top=True)
        return With((cte,), body, True), families

    def _repeated(self, first: Select, step: Select, x: str, more: Item) -> tuple[Any, Any]:
        """What UNION ALL tells apart: steps that pass rows on, or read none of a table, and branches."""
        r = self.r
        u, v = (column(f"{x}.{name}", "int") for name in "uv")
        found: list[Any] = []
        for _ in range(r.choice((1, 1, 2))):
            joined = r.choice(("", "inner", "inner", "left", "itself", "cross"))
            source, items = step.source, step.items
            if joined in ("", "cross"):
                half = E("({0} // 2)", (u,), "int") if r.random() < 0.5 else u
                items = (Item(half, "u"), Item(v, "v"), more)
                source = replace(source, kind="cross", on=None) if joined else source.left
            elif joined == "left":
                source = replace(source, kind="left")
            elif joined == "itself":
                y = self.alias()
                meet = E("({0} = {1})", (v, column(f"{y}.{r.choice('uv')}", "int")), "boolean")
                items = (Item(u, "u"), Item(column(f"{y}.v", "int"), "v"), more)
                source = Join("inner", source.left, Named(source.left.name, y), meet)
            found.append(replace(step, source=source, items=items))
        base = SetOperation("union all", first, first) if r.random() < 0.2 else first
        return base, found[0] if len(found) == 1 else SetOperation("union all", *found)

    def query(
        self,
        wanted: list[str] | None,
        outer: tuple[Scope, ...],
        depth: int,
        approximate: bool = False,
        top: bool = False,
    ) -> tuple[Any, list[str]]:
        """A query with columns of the families that are wanted, or of some."""
        r = self.r
        if depth > 0 and r.random() < (0.12 if top else 0.06):
            return self._set_operation(wanted, outer, depth)
        if r.random() < 0.02 and not top:
            families = wanted or [r.choice(FAMILIES) for _ in range(r.choice((1, 2)))]
            rows = tuple(
                tuple(self.expressions.literal(family) for family in families)
                for _ in range(r.choice((1, 2, 4)))
            )
            self.drawn = len(rows)
            return self._of_values(rows, families), families
        return self.select(wanted, outer, depth, approximate, top)

    def _of_values(self, rows: tuple[tuple[E, ...], ...], families: list[str]) -> Select:
        """VALUES with the names that other queries give their columns."""
        name = self.alias()
        columns = tuple(f"c{n}" for n in range(len(families)))
        items = tuple(
            Item(column(f"{name}.{one}", of), one) for one, of in zip(columns, families, strict=True)
        )
        return Select(items, Derived(Values(rows), name, columns))

    def _set_operation(
        self, wanted: list[str] | None, outer: tuple[Scope, ...], depth: int
    ) -> tuple[Any, list[str]]:
        r = self.r
        left, families = self.query(wanted, outer, depth - 1)
        rows = self.drawn
        right, _ = self.query(families, outer, depth - 1)
        self.drawn += rows
        forms = ("union", "union all", "union all", "except", "except all", "intersect", "intersect all")
        made = SetOperation(r.choice(forms), left, right)
        if r.random() < 0.1:
            order = tuple(Sort(position(n), r.random() < 0.4) for n in range(len(families)))
            made = replace(made, order=order, limit=r.choice((1, 2, 5)))
        return made, families

    # -- FROM ---------------------------------------------------------------------------------------------

    def _scope_of(self, source: Source, alias: str) -> Scope:
        return Scope([column(f"{alias}.{name}", family) for name, family in source.columns])

    def _relation(
        self, depth: int, outer: tuple[Scope, ...] = (), lateral: bool = False
    ) -> tuple[Any, list[E], int]:
        """A table, or a query in its place; its columns; about how many rows it has."""
        r = self.r
        alias = self.alias()
        if depth > 0 and self.left > 0 and (lateral or r.random() < 0.08 * self.size):
            self.left -= 1
            query, families = self.query(None, outer, depth - 1)
            names = [f"c{n}" for n in range(len(families))]
            plain = isinstance(query, Select) and r.random() < 0.8
            named = () if plain else tuple(names)
            made = Derived(query, alias, named, lateral)
            return made, [column(f"{alias}.{n}", f) for n, f in zip(names, families, strict=True)], self.drawn
        source = r.choice(self.sources)
        return Named(source.name, alias), self._scope_of(source, alias).columns, source.rows

    def _condition_of_join(self, left: list[E], right: list[E], depth: int) -> E:
        """Mostly an equality; else any comparison, or anything."""
        r = self.r
        pairs = [(a, b) for a in left for b in right if a.type == b.type != APPROXIMATE]
        scope = Scope(left + right)
        if not pairs or r.random() < 0.07:
            return self.expressions.condition(scope, min(depth, 1))
        a, b = r.choice(pairs)
        chance = r.random()
        if chance < 0.1:
            made = E("is not distinct", (a, b), "boolean")
        else:
            made = E(f"({{0}} {'=' if chance < 0.75 else r.choice(COMPARED)} {{1}})", (a, b), "boolean")
        if r.random() < 0.25:
            form = r.choice(("({0} and {1})", "({0} and {1})", "({0} or {1})"))
            made = E(form, (made, self.expressions.condition(scope, min(depth, 1))), "boolean")
        return made

    def source(self, depth: int, inside: bool) -> tuple[Any, list[E], int]:
        """What stands after FROM, the columns that it has, and about how many rows."""
        r = self.r
        made, columns, rows = self._relation(depth)
        for _ in range(r.choice(((0, 0, 1), (0, 0, 1, 1, 2), (0, 1, 1, 2, 2))[self.size - 1])):
            if r.random() < 0.05 * self.size and depth > 0:
                made, columns, more_rows = self._lateral(made, columns, depth)
                rows *= max(1, more_rows // 3)
                continue
            right, more, more_rows = self._relation(depth)
            kind = r.choice(KINDS)
            if rows * more_rows > MOST_ROWS[inside]:
                break
            rows *= max(1, more_rows if kind in ("cross", ",") else more_rows // 3)
            if kind in ("cross", ","):
                made = Join(kind, made, right)
                columns = columns + more
                continue
            made = _crossed(made)
            merged = self._merged(made, columns, right, more, kind)
            if merged is not None and r.random() < 0.35:
                made, columns = merged
                continue
            made = Join(kind, made, right, self._condition_of_join(columns, more, depth - 1))
            columns = columns + more
        return made, columns, rows

    def _merged(
        self, left: Any, columns: list[E], right: Any, more: list[E], kind: str
    ) -> tuple[Any, list[E]] | None:
        """A join by columns of one name; only of two relations, whose names then are no riddle."""
        r = self.r
        if isinstance(left, Join):
            return None
        here = {str(one.args[0]).partition(".")[2]: one for one in columns}
        there = {str(one.args[0]).partition(".")[2]: one for one in more}
        common = [name for name in here if name in there]
        if not common or any(here[n].type != there[n].type or here[n].type == APPROXIMATE for n in common):
            return None
        natural = r.random() < 0.4
        using = tuple(common if natural else r.sample(common, r.randrange(1, len(common) + 1)))
        joined = [column(name, here[name].type) for name in using]
        rest = [one for n, one in here.items() if n not in using] + [
            one for n, one in there.items() if n not in using
        ]
        return Join(kind, left, right, None, () if natural else using), joined + rest

    def _lateral(self, left: Any, columns: list[E], depth: int) -> tuple[Any, list[E], int]:
        around = self._around(Scope(columns))
        whole = [one for one in columns if one.type == "int"]
        if whole and self.r.random() < 0.3:
            alias, each = self.alias("s"), E("series", (self.r.choice(whole),), "int")
            right: Any = Derived(Select((Item(each, "n"),)), alias, (), True)
            more, rows = [column(f"{alias}.n", "int")], 3
        else:
            right, more, rows = self._relation(depth, around, lateral=True)
        if isinstance(right, Named):
            return Join("cross", left, right), columns + more, rows
        if self.r.random() < 0.4:
            always = E("literal", (True,), "boolean")
            return Join("left", left, right, always), columns + more, rows
        return Join(self.r.choice((",", "cross")), left, right), columns + more, rows

    # -- SELECT -------------------------------------------------------------------------------------------

    def select(
        self,
        wanted: list[str] | None,
        outer: tuple[Scope, ...],
        depth: int,
        approximate: bool = False,
        top: bool = False,
    ) -> tuple[Select, list[str]]:
        source, columns, rows = self.source(depth, not top)
        made = self._select_of(wanted, source, Scope(columns, outer), depth, approximate, top)
        self.drawn = rows
        return made

    def _select_of(
        self, wanted: list[str] | None, source: Any, scope: Scope, depth: int, approximate: bool, top: bool
    ) -> tuple[Select, list[str]]:
        r = self.r
        columns, outer = scope.columns, scope.outer
        where = None
        if outer and r.random() < 0.75:
            where = self._correlation(columns, outer)
        if r.random() < 0.38:
            also = self.expressions.condition(scope, min(depth, 2))
            where = also if where is None else E("({0} and {1})", (where, also), "boolean")
        inexact = any(one.type == APPROXIMATE for one in columns)
        if r.random() < 0.3:
            return self._grouped(wanted, Select((), source, where), scope, depth, approximate)
        plain = all("." in str(one.args[0]) for one in columns)
        if top and wanted is None and plain and r.random() < 0.08:
            star = E("star", ("*", *columns))
            return Select((Item(star),), source, where), [one.type for one in columns]
        windows = not inexact and (top or r.random() < 0.3) and r.random() < 0.3
        items: list[E] = []
        families: list[str] = []
        place = r.randrange(3)
        for family in wanted or self._some_families(scope, approximate):
            if windows and r.random() < 0.6 and family != "boolean":
                value = self.expressions.window(family, scope, len(items) == place)
                if r.random() < 0.1 and family == "int":
                    value = E(
                        "({0} + {1})", (value, self.expressions.leaf("int", scope.without_outer())), "int"
                    )
            else:
                value = self.expressions.draw(family, scope, depth)
            items.append(value)
            families.append(family)
        made = Select(self._named(items, top), source, where)
        if windows and r.random() < 0.4:
            number = self.expressions.window("int", scope, len(items) <= place)
            small = E("({0} <= {1})", (number, E("literal", (r.choice((1, 2, 3)),), "int")), "boolean")
            made = replace(made, qualify=small)
        if APPROXIMATE in families or inexact:
            return made, families
        return self._ended(made, scope, len(families)), families

    def _some_families(self, scope: Scope, approximate: bool) -> list[str]:
        r = self.r
        chosen = []
        for _ in range(r.choice((1, 2, 2, 3, 3, 4))):
            family = r.choice(scope.families) if scope.families and r.random() < 0.8 else r.choice(FAMILIES)
            chosen.append(APPROXIMATE if approximate and r.random() < 0.05 else family)
        return chosen

    def _named(self, values: list[E], top: bool) -> tuple[Item, ...]:
        r = self.r
        plain = [n for n, value in enumerate(values) if top and value.form == "column" and r.random() < 0.1]
        return tuple(Item(value, "" if n in plain else f"c{n}") for n, value in enumerate(values))

    def _ended(self, made: Select, scope: Scope, width: int) -> Select:
        """DISTINCT, or the first rows of an order that leaves nothing open."""
        r = self.r
        chance = r.random()
        if chance < 0.12:
            return replace(made, distinct=True)
        if chance < 0.15 and made.qualify is None:
            total = self.expressions.total_order(scope)
            of = total[: r.randrange(1, len(total) + 1)]
            # Equal rows may have other values of windows.
            order = (*total, *(Sort(position(n)) for n in range(width)))
            return replace(made, distinct_on=tuple(one.by for one in of), order=order)
        if chance < 0.25:
            return self._limited(made, scope, width)
        return made

    def _limited(self, made: Select, scope: Scope, width: int) -> Select:
        r = self.r
        order = [Sort(position(n), r.random() < 0.4, r.random() < 0.3) for n in range(width)]
        r.shuffle(order)
        if r.random() < 0.3 and not made.group and not made.sets:
            first = self.expressions.draw(r.choice(scope.families or ["int"]), scope.without_outer(), 1)
            if first.form != "column" and reads(first):
                order = [Sort(first, r.random() < 0.4, r.random() < 0.3), *order]
        limit = r.choice((None, 1, 1, 2, 3, 5, 10))
        return replace(made, order=tuple(order), limit=limit, offset=r.choice((None, None, None, 1, 2)))

    def _correlation(self, columns: list[E], outer: tuple[Scope, ...]) -> E | None:
        """A column of this level beside one of a level around."""
        r = self.r
        around = outer[0] if r.random() < 0.8 else r.choice(outer)
        pairs = [(a, b) for a in columns for b in around.columns if a.type == b.type != APPROXIMATE]
        if not pairs:
            return None
        operator = "=" if r.random() < 0.65 else r.choice(("<>", "<", "<=", ">"))
        a, b = r.choice(pairs)
        if r.random() < 0.06:
            return E("is not distinct", (a, b), "boolean")
        return E(f"({{0}} {operator} {{1}})", (a, b), "boolean")

    def _grouped(
        self, wanted: list[str] | None, made: Select, scope: Scope, depth: int, approximate: bool
    ) -> tuple[Select, list[str]]:
        r = self.r
        inner = scope.without_outer()
        keys: list[E] = []
        for _ in range(r.choice((0, 1, 1, 1, 2, 2, 3))):
            family = self.expressions.comparable(inner)
            here = inner.of(family)
            if here and r.random() < 0.75:
                keys.append(r.choice(here))
            else:
                keys.append(self._plain().draw(family, inner, 1))
        keys = list(dict.fromkeys(key for key in keys if reads(key)))
        sets = ""
        members: tuple[tuple[int, ...], ...] = ()
        if len(keys) > 0 and r.random() < 0.12:
            sets = r.choice(("rollup", "cube", "sets"))
            if sets == "sets":
                subsets = [
                    tuple(n for n in range(len(keys)) if r.random() < 0.5) for _ in range(r.choice((1, 2, 3)))
                ]
                members = (*subsets, tuple(range(len(keys))))
        shown = keys if not sets else [key for key in keys if key.form == "column"]
        above = Scope(list(shown), (), inner)
        families = []
        items: list[E] = []
        chosen = wanted
        if chosen is None:
            items = [key for key in shown if r.random() < 0.8]
            chosen = []
            for _ in range(r.choice((1, 1, 2, 3))):
                rare = approximate and r.random() < 0.2
                chosen.append(APPROXIMATE if rare else self.expressions.comparable(inner))
            families = [key.type for key in items]
        for family in chosen:
            shallow = self._plain() if sets else self.expressions
            if family == "boolean" or r.random() < 0.7:
                value = shallow.leaf(family, above)
            else:
                value = shallow.draw(family, above, min(depth, 2))
            items.append(value)
            families.append(family)
        if sets and r.random() < 0.3 and shown and wanted is None:
            items.append(E("grouping", (r.choice(shown),), "int"))
            families.append("int")
        if not keys and not any(map(_aggregates, items)):
            items[0] = self.expressions.aggregate(families[0], inner)
        having = None
        if r.random() < 0.25:
            having = self.expressions.condition(above, min(depth, 1))
        made = replace(
            made,
            items=tuple(Item(value, f"c{n}") for n, value in enumerate(items)),
            group=tuple(keys),
            sets=sets,
            members=members,
            having=having,
        )
        if APPROXIMATE in families:
            return made, families
        chance = r.random()
        if chance < 0.08:
            made = replace(made, distinct=True)
        elif chance < 0.16:
            made = self._limited(made, above, len(families))
        return made, families

    def _plain(self) -> Expressions:
        """Expressions without queries inside."""
        return Expressions(self.r, self.scalar, self.rows, 0.0)

    # -- subqueries ---------------------------------------------------------------------------------------

    def _around(self, scope: Scope) -> tuple[Scope, ...]:
        """What a query inside may read; of a GROUP BY its columns that are no expressions.

        Not what USING gives, which other relations inside may have, too.
        """
        here = Scope([one for one in scope.columns if "." in str(one.args[:1]) and one.type != APPROXIMATE])
        return (here, *scope.outer)

    def rows(self, families: list[str], scope: Scope, depth: int) -> Any:
        """A query of any number of rows."""
        if self.left <= 0:
            return self._few(families)
        self.left -= 1
        outer = self._around(scope) if self.r.random() < 0.75 else ()
        return self.query(families, outer, depth)[0]

    def _few(self, families: list[str]) -> Select:
        """The smallest query: columns of a table."""
        name = self.r.choice(self.sources)
        alias = self.alias()
        scope = self._scope_of(name, alias)
        values = [self._plain().leaf(family, scope) for family in families]
        return Select(tuple(Item(value, f"c{n}") for n, value in enumerate(values)), Named(name.name, alias))

    def scalar(self, family: str, scope: Scope, depth: int) -> Any:
        """A query of one column and one row at most; seldom one of more, which is an error."""
        r = self.r
        if self.left <= 0 or family == APPROXIMATE:
            few = self._few([family])
            alias = few.source.alias
            source = next(one for one in self.sources if one.name == few.source.name)
            value = self._plain().aggregate(family, self._scope_of(source, alias))
            return replace(few, items=(Item(value, "c0"),))
        self.left -= 1
        outer = self._around(scope) if r.random() < 0.75 else ()
        source, columns, _ = self.source(depth, True)
        here = Scope(columns, outer)
        where = self._correlation(columns, outer) if outer and r.random() < 0.85 else None
        if r.random() < 0.25:
            also = self.expressions.condition(here, min(depth, 1))
            where = also if where is None else E("({0} and {1})", (where, also), "boolean")
        made = Select((), source, where)
        chance = r.random()
        if chance < 0.75:
            value = self.expressions.leaf(family, Scope([], (), here.without_outer()))
            if not _aggregates(value):
                value = self.expressions.aggregate(family, here)
            return replace(made, items=(Item(value, "c0"),))
        value = self.expressions.draw(family, here, min(depth, 1))
        made = replace(made, items=(Item(value, "c0"),))
        if chance > 0.97:
            return made
        return replace(made, order=(Sort(position(0), r.random() < 0.5),), limit=1)


_AGGREGATES = (
    "count",
    "sum",
    "min(",
    "max(",
    "avg",
    "bool_",
    "string_agg",
    "deviation",
    "median",
    "minimum",
    "maximum",
)


def _aggregates(value: Any) -> list[E]:
    """The aggregates in an expression, not those of queries inside."""
    if not isinstance(value, E):
        return []
    name = value.form.removeprefix("distinct ")
    here = [value] if name.startswith(_AGGREGATES) else []
    return here + [one for part in value.args for one in _aggregates(part)]


def _crossed(source: Any) -> Any:
    """Without commas, which bind less than what is joined to the right of them."""
    if not isinstance(source, Join):
        return source
    return replace(source, kind="cross" if source.kind == "," else source.kind, left=_crossed(source.left))
