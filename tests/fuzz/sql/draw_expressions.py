"""Random expressions of SQL, right by their types, over what is in scope.

Types are families: int, decimal, double, varchar, date, timestamp, boolean; beside them :data:`APPROXIMATE`,
which is shown and not compared.  Whole numbers stay small, so that nothing overflows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fuzz.sql.draw_tables import POOLS
from fuzz.sql.tree import APPROXIMATE, E, Sort, Window

FAMILIES = ("int", "int", "int", "varchar", "varchar", "decimal", "double", "date", "timestamp", "boolean")
COMPARED = ("=", "=", "=", "<>", "<", "<=", ">", ">=")
UNITS = ("day", "day", "month", "year", "hour")
PARTS = ("year", "month", "day", "quarter", "week", "dow", "doy")


@dataclass
class Scope:
    """What an expression may read.

    ``columns``: of this level.  ``outer``: the scopes of the queries around, from the inside.
    ``grouped``: the scope below a GROUP BY, of which there may be aggregates.
    """

    columns: list[E]
    outer: tuple[Scope, ...] = ()
    grouped: Scope | None = None

    def of(self, family: str) -> list[E]:
        return [one for one in self.columns if one.type == family]

    def without_outer(self) -> Scope:
        return Scope(self.columns)

    @property
    def families(self) -> list[str]:
        return [one.type for one in self.columns if one.type != APPROXIMATE]


Subquery = Callable[[list[str], Scope, int], Any]
"""Draws a query with columns of these families that may read a scope around it, to a depth."""


@dataclass
class Expressions:
    """``scalar``, ``rows``: draw queries of one row, and of any.

    ``subqueries``, ``conditional``: how often there is a query, or a CASE or the like, where one may be.
    """

    r: random.Random
    scalar: Callable[[str, Scope, int], Any]
    rows: Subquery
    subqueries: float = 0.1
    conditional: float = field(default=0.12)

    # -- leaves -------------------------------------------------------------------------------------

    def literal(self, family: str) -> E:
        r = self.r
        if family in (APPROXIMATE, "double"):
            return E("literal", (r.choice(POOLS["double"]),), "double")
        value = None if r.random() < 0.05 else r.choice(POOLS[family])
        return E("literal", (value,), family)

    def leaf(self, family: str, scope: Scope) -> E:
        r = self.r
        if scope.outer and r.random() < 0.12:
            around = r.choice(scope.outer).of(family)
            if around:
                return r.choice(around)
        if scope.grouped is not None and r.random() < 0.6:
            return self.aggregate(family, scope.grouped)
        here = scope.of(family)
        if here and r.random() < 0.88:
            return r.choice(here)
        return self.literal(family)

    # -- of a family ----------------------------------------------------------------------------------

    def draw(self, family: str, scope: Scope, depth: int) -> E:
        """An expression of the family; ``depth``: of operators, and of queries inside."""
        r = self.r
        if family == "boolean":
            return self.condition(scope, depth)
        if depth <= 0 or r.random() < 0.45:
            return self.leaf(family, scope)
        if r.random() < self.subqueries:
            return E("({0})", (self.scalar(family, scope, depth - 1),), family)
        if r.random() < self.conditional:
            return self.conditional_of(family, scope, depth)
        one: dict[str, Callable[[Scope, int], E]] = {
            "int": self._int,
            "decimal": self._decimal,
            "double": self._double,
            APPROXIMATE: self._approximate,
            "varchar": self._varchar,
            "date": self._date,
            "timestamp": self._timestamp,
        }
        return one[family](scope, depth - 1)

    def conditional_of(self, family: str, scope: Scope, depth: int) -> E:
        r = self.r

        def part() -> E:
            return self.draw(family, scope, depth - 1)

        args: tuple[E, ...]
        match r.randrange(6):
            case 0:
                return E("coalesce({0+})", tuple(part() for _ in range(r.choice((2, 2, 3)))), family)
            case 1:
                return E("nullif({0}, {1})", (part(), part()), family)
            case 2:
                args = (
                    self.condition(scope, depth - 1),
                    part(),
                    self.condition(scope, depth - 1),
                    part(),
                    part(),
                )
                return E("case when {0} then {1} when {2} then {3} else {4} end", args, family)
            case 3:
                args = (self.condition(scope, depth - 1), part())
                return E("case when {0} then {1} end", args, family)
            case 4:
                of = r.choice(FAMILIES[:6])
                args = (self.leaf(of, scope), self.literal(of), part(), part())
                return E("case {0} when {1} then {2} else {3} end", args, family)
        return E(
            "case when {0} then {1} else {2} end", (self.condition(scope, depth - 1), part(), part()), family
        )

    def _int(self, scope: Scope, depth: int) -> E:
        r = self.r

        def part() -> E:
            return self.draw("int", scope, depth)

        small = E("literal", (r.choice((2, 3)),), "int")
        match r.randrange(15):
            case 0 | 1 | 2:
                return E("({0} + {1})", (part(), part()), "int")
            case 3 | 4:
                return E("({0} - {1})", (part(), part()), "int")
            case 5:
                return E("({0} * {1})", (self.leaf("int", scope), small), "int")
            case 6:
                return E("({0} % {1})", (part(), small), "int")
            case 7:
                return E("whole divide", (part(), small), "int")
            case 8:
                return E("abs({0})", (part(),), "int")
            case 9:
                return E("(- {0})", (part(),), "int")
            case 10:
                return E("length({0})", (self.draw("varchar", scope, depth),), "int")
            case 11:
                return E(
                    "extract", (r.choice(PARTS), self.leaf(r.choice(("date", "timestamp")), scope)), "int"
                )
            case 12:
                return E("date minus date", (self.leaf("date", scope), self.leaf("date", scope)), "int")
            case 13:
                form = r.choice(("greatest", "least"))
                return E(form, tuple(part() for _ in range(r.choice((2, 3)))), "int")
        if r.random() < 0.5:
            return E("cast({0} as integer)", (self.condition(scope, depth - 1),), "int")
        args = (self.leaf("varchar", scope), E("literal", (r.choice(("a", "b", "")),), "varchar"))
        return E("position", args, "int")

    def _decimal(self, scope: Scope, depth: int) -> E:
        r = self.r

        def part() -> E:
            return self.draw("decimal", scope, depth)

        match r.randrange(8):
            case 0 | 1:
                return E("({0} + {1})", (part(), part()), "decimal")
            case 2:
                return E("({0} - {1})", (part(), part()), "decimal")
            case 3:
                return E("({0} * {1})", (self.leaf("decimal", scope), self.leaf("decimal", scope)), "decimal")
            case 4:
                return E("({0} * {1})", (part(), self.leaf("int", scope)), "decimal")
            case 5:
                return E("abs({0})", (part(),), "decimal")
            case 6:
                return E("cast", (self.leaf("int", scope),), "decimal")
        return E("({0} + {1})", (self.leaf("int", scope), part()), "decimal")

    def _double(self, scope: Scope, depth: int) -> E:
        r = self.r

        def part() -> E:
            return self.draw("double", scope, depth)

        match r.randrange(6):
            case 0 | 1:
                return E("({0} + {1})", (part(), part()), "double")
            case 2:
                return E("({0} - {1})", (part(), self.draw("int", scope, depth)), "double")
            case 3:
                return E("({0} * {1})", (self.leaf("double", scope), self.leaf("double", scope)), "double")
            case 4:
                return E("abs({0})", (part(),), "double")
        return E("as double", (self.draw("int", scope, depth),), "double")

    def _approximate(self, scope: Scope, depth: int) -> E:
        r = self.r
        family = r.choice(("int", "double", "decimal"))
        match r.randrange(5):
            case 0 | 1:
                zero = E("literal", (0,), "int")
                below = E("nullif({0}, {1})", (self.draw(family, scope, depth), zero), family)
                return E("divide", (self.draw(family, scope, depth), below), APPROXIMATE)
            case 2:
                return E("sqrt(abs({0}))", (self.draw("double", scope, depth),), APPROXIMATE)
            case 3:
                two = E("literal", (2,), "int")
                return E("divide", (self.draw("int", scope, depth), two), APPROXIMATE)
        return E("({0} + {1})", (self.leaf(APPROXIMATE, scope), self.leaf("double", scope)), APPROXIMATE)

    def _varchar(self, scope: Scope, depth: int) -> E:
        r = self.r

        def part() -> E:
            return self.draw("varchar", scope, depth)

        match r.randrange(10):
            case 0 | 1:
                return E("({0} || {1})", (part(), part()), "varchar")
            case 2:
                return E("upper({0})", (part(),), "varchar")
            case 3:
                return E("lower({0})", (part(),), "varchar")
            case 4:
                return E("substring", (part(), r.choice(("1", "2")), r.choice(("0", "1", "2"))), "varchar")
            case 5:
                return E("trim({0})", (part(),), "varchar")
            case 6:
                return E("replace({0}, 'a', 'xy')", (part(),), "varchar")
            case 7:
                of = r.choice(("int", "int", "decimal", "date", "timestamp"))
                return E("cast", (self.leaf(of, scope),), "varchar")
            case 8:
                return E("concat", (part(), part()), "varchar")
        return E("reverse", (part(),), "varchar")

    def _date(self, scope: Scope, depth: int) -> E:
        r = self.r
        part = self.draw("date", scope, depth)
        match r.randrange(4):
            case 0:
                return E("date plus", (part, self.leaf("int", scope)), "date")
            case 1:
                return E("as date", (self.draw("timestamp", scope, depth),), "date")
            case 2:
                return E("date_trunc of date", (r.choice(("month", "year", "week")), part), "date")
        form = r.choice(("greatest", "least"))
        return E(form, (part, self.leaf("date", scope)), "date")

    def _timestamp(self, scope: Scope, depth: int) -> E:
        r = self.r
        of = r.choice(("date", "timestamp"))
        match r.randrange(4):
            case 0 | 1:
                form = r.choice(("interval", "interval", "minus interval"))
                return E(
                    form,
                    (self.draw(of, scope, depth), str(r.choice((1, 2, 13))), r.choice(UNITS)),
                    "timestamp",
                )
            case 2:
                return E("as timestamp", (self.draw("date", scope, depth),), "timestamp")
        args = (r.choice(("month", "day", "hour")), self.draw("timestamp", scope, depth))
        return E("date_trunc", args, "timestamp")

    # -- conditions ------------------------------------------------------------------------------------

    def comparable(self, scope: Scope) -> str:
        """A family of which there is something to compare."""
        families = scope.families
        return self.r.choice(families if families and self.r.random() < 0.9 else FAMILIES)

    def condition(self, scope: Scope, depth: int) -> E:
        r = self.r
        if depth > 0 and r.random() < self.subqueries * 2:
            return self.subquery_condition(scope, depth - 1)
        if depth > 0 and r.random() < 0.4:
            match r.randrange(8):
                case 0 | 1 | 2:
                    args = (self.condition(scope, depth - 1), self.condition(scope, depth - 1))
                    return E("({0} and {1})", args, "boolean")
                case 3 | 4:
                    args = (self.condition(scope, depth - 1), self.condition(scope, depth - 1))
                    return E("({0} or {1})", args, "boolean")
                case 5 | 6:
                    return E("(not {0})", (self.condition(scope, depth - 1),), "boolean")
                case 7:
                    form = r.choice(("{0} is true", "{0} is not true", "{0} is false", "{0} is null"))
                    return E(f"({form})", (self.condition(scope, depth - 1),), "boolean")
        return self.test(scope, depth - 1)

    def test(self, scope: Scope, depth: int) -> E:
        """A condition that is not made of others."""
        r = self.r
        family = self.comparable(scope)

        def part() -> E:
            return self.draw(family, scope, depth) if family != "boolean" else self.leaf(family, scope)

        if family == "varchar" and r.random() < 0.3:
            pattern = E("literal", (r.choice(("a%", "%b", "%a%", "_", "%", "a_%", "")),), "varchar")
            form = r.choice(("({0} like {1})", "({0} like {1})", "({0} not like {1})", "ilike"))
            return E(form, (part(), pattern), "boolean")
        match r.randrange(16):
            case 0 | 1:
                return E(f"({{0}} is {r.choice(('null', 'not null'))})", (part(),), "boolean")
            case 2:
                form = r.choice(("is distinct", "is not distinct"))
                return E(form, (part(), part()), "boolean")
            case 3:
                members = tuple(self.literal(family) for _ in range(r.choice((1, 2, 3))))
                return E(f"({{0}} {r.choice(('in', 'not in'))} ({{1+}}))", (part(), *members), "boolean")
            case 4:
                form = r.choice(("between", "between", "not between"))
                return E(f"({{0}} {form} {{1}} and {{2}})", (part(), part(), part()), "boolean")
            case 5:
                here = scope.of("boolean")
                return r.choice(here) if here else E("literal", (r.choice((True, False, None)),), "boolean")
            case 6 if family in ("int", "decimal", "double"):
                other = r.choice(("int", "decimal", "double"))
                return E(f"({{0}} {r.choice(COMPARED)} {{1}})", (part(), self.leaf(other, scope)), "boolean")
            case 7 if family in ("date", "timestamp"):
                other = "date" if family == "timestamp" else "timestamp"
                return E(
                    "date and timestamp", (part(), r.choice(COMPARED), self.leaf(other, scope)), "boolean"
                )
        left, right = part(), part()
        right = part() if right == left else right
        return E(f"({{0}} {r.choice(COMPARED)} {{1}})", (left, right), "boolean")

    def subquery_condition(self, scope: Scope, depth: int) -> E:
        r = self.r
        family = self.comparable(scope)
        match r.randrange(10):
            case 0 | 1 | 2:
                form = r.choice(("exists ({0})", "exists ({0})", "not exists ({0})"))
                return E(f"({form})", (self.rows([family], scope, depth),), "boolean")
            case 3 | 4 | 5:
                args = (self.leaf(family, scope), self.rows([family], scope, depth))
                return E(f"({{0}} {r.choice(('in', 'in', 'not in', 'not in'))} ({{1}}))", args, "boolean")
            case 6:
                other = self.comparable(scope)
                inside = (
                    scope if r.random() < 0.1 else Scope(scope.columns)
                )  # DuckDB has it uncorrelated only
                query = self.rows([family, other], inside, depth)
                two = (self.leaf(family, scope), self.leaf(other, scope), query)
                return E(f"(({{0}}, {{1}}) {r.choice(('in', 'not in'))} ({{2}}))", two, "boolean")
            case 7 | 8:
                form = r.choice(("compared to any", "compared to all"))
                three = (self.leaf(family, scope), r.choice(COMPARED), self.rows([family], scope, depth))
                return E(form, three, "boolean")
        args = (self.leaf(family, scope), self.scalar(family, scope, depth))
        return E(f"({{0}} {r.choice(COMPARED)} ({{1}}))", args, "boolean")

    # -- aggregates ----------------------------------------------------------------------------------------

    def aggregate(self, family: str, below: Scope) -> E:
        """An aggregate of the family over the rows of ``below``."""
        r = self.r
        below = below.without_outer()
        made = self._aggregate(family, below)
        if r.random() < 0.12 and made.form not in ("median",):
            keep = Expressions(r, self.scalar, self.rows, 0.0).condition(below, 1)
            return E("{0} filter (where {1})", (made, keep), family)
        return made

    def _aggregate(self, family: str, below: Scope) -> E:
        r = self.r
        inside = Expressions(r, self.scalar, self.rows, 0.0)

        def part(of: str) -> E:
            return inside.draw(of, below, r.choice((0, 0, 0, 1, 2)))

        distinct = "distinct " if r.random() < 0.15 else ""
        match family:
            case "int" if r.random() < 0.75:
                if r.random() < 0.4:
                    return E("count(*)", (), "int")
                if r.random() < 0.5:
                    return E(f"count({distinct}{{0}})", (part(self.comparable(below)),), "int")
                return E(f"sum({distinct}{{0}})", (part("int"),), "int")
            case "decimal" | "double" if r.random() < 0.5:
                return E(f"sum({distinct}{{0}})", (part(family),), family)
            case "boolean":
                form = r.choice(
                    ("bool_and", "bool_or", "bool_or", "minimum of booleans", "maximum of booleans")
                )
                return E(form, (part("boolean"),), "boolean")
            case "varchar" if r.random() < 0.4:
                column = part("varchar")
                column = column if reads(column) else E("({0} || {1})", (column, self._any(below)), "varchar")
                sort = Sort(column, r.random() < 0.3)
                form = r.choice(("string_agg", "string_agg", "distinct string_agg"))
                return E(form, (column, r.choice((",", "")), sort), "varchar")
            case "approximate":
                of = r.choice(("int", "int", "double", "decimal"))
                match r.randrange(6):
                    case 0 | 1 | 2:
                        return E(f"avg({distinct}{{0}})", (part(of),), APPROXIMATE)
                    case 3:
                        return E("median", (part(r.choice(("int", "double"))),), APPROXIMATE)
                form = r.choice(("stddev_samp", "stddev_pop", "var_samp", "var_pop"))
                return E("deviation", (part("double" if of == "decimal" else of), form), APPROXIMATE)
        return E(f"{r.choice(('min', 'max'))}({{0}})", (part(family),), family)

    # -- windows -------------------------------------------------------------------------------------------

    def window(self, family: str, scope: Scope, places: bool) -> E:
        """A function over a window.

        ``places``: it may depend on the place of a row, by an order of all columns.  Equal rows still tie,
        which nobody sees where it is one function alone.
        """
        r = self.r
        inside = Expressions(r, self.scalar, self.rows, 0.0)
        over = Scope([one for one in scope.columns if one.type != APPROXIMATE])

        def part(of: str) -> E:
            return inside.draw(of, over, r.choice((0, 0, 0, 1)))

        partition = tuple(
            inside.draw(self.comparable(over), over, r.choice((0, 0, 1)))
            for _ in range(r.choice((0, 1, 1, 2)))
        )
        partition = tuple(filter(reads, partition))
        total = self.total_order(over)
        match r.randrange(12) if places else 3:
            case 0 | 1 if family == "int":
                return E("row_number() over ({0})", (Window(partition, total),), "int")
            case 2 if family == "int":
                return E(f"ntile({r.choice((1, 2, 3))}) over ({{0}})", (Window(partition, total),), "int")
            case 3 | 4 if family == "int":
                form = r.choice(("rank()", "dense_rank()"))
                order = total[: r.choice((1, 1, 2))] or total
                return E(f"{form} over ({{0}})", (Window(partition, order),), "int")
            case 3 if family == APPROXIMATE:
                form = r.choice(("percent_rank()", "cume_dist()"))
                return E(f"{form} over ({{0}})", (Window(partition, total[:1]),), family)
            case 5 | 6 | 0 | 1 if family != APPROXIMATE:
                form = r.choice(("lag", "lead"))
                by = r.choice(("", "", f", {r.choice((0, 1, 2, 3))}"))
                args: tuple[E, ...] = (part(family),)
                default = ""
                if by and r.random() < 0.4:
                    args, default = (*args, self.literal(family)), ", {1}"
                hole = f"{{{len(args)}}}"
                return E(
                    f"{form}({{0}}{by}{default}) over ({hole})", (*args, Window(partition, total)), family
                )
            case 7 | 8 | 2 if family != APPROXIMATE:
                form = r.choice(("first_value", "last_value", "nth_value"))
                window = Window(partition, total, self.frame(total, rows=True))
                if form != "nth_value" and r.random() < 0.15:
                    value = E("ignore nulls", (form, part(family)), family)
                    return E("{0} over ({1})", (value, window), family)
                more = f", {r.choice((1, 2))}" if form == "nth_value" else ""
                return E(f"{form}({{0}}{more}) over ({{1}})", (part(family), window), family)
        function = inside.aggregate(family, over)
        while (
            "distinct" in function.form
            or function.form in ("median", "string_agg")
            or (
                function.form.endswith("(where {1})")
                and ("distinct" in function.args[0].form or function.args[0].form in ("median", "string_agg"))
            )
        ):
            function = inside.aggregate(family, over)
        match r.randrange(4 if places else 3):
            case 0:
                return E("{0} over ({1})", (function, Window(partition)), family)
            case 1:
                return E(
                    "{0} over ({1})", (function, Window(partition, total[: r.choice((1, 1, 2))])), family
                )
            case 2:
                measured = [one for one in total if one.by.type in ("int", "date", "timestamp")]
                if measured:
                    order = (measured[0],)
                    return E(
                        "{0} over ({1})",
                        (function, Window(partition, order, self.frame(order, rows=False))),
                        family,
                    )
        frame = self.frame(total, rows=True) if places else ""
        return E("{0} over ({1})", (function, Window(partition, total, frame)), family)

    def frame(self, order: tuple[Sort, ...], rows: bool) -> str:
        """``rows``: the order is a total one, else it is of one whole number, date or timestamp."""
        r = self.r
        if rows and r.random() < 0.3:
            return ""
        unit = r.choice(("rows", "rows", "groups") if rows else ("range", "range", "groups"))
        in_time = unit == "range" and order[0].by.type != "int"

        def away(*numbers: int) -> str:
            number = r.choice(numbers)
            return f"interval {number * 30} {r.choice(('days', 'hours'))}" if in_time else str(number)

        starts = ["unbounded preceding", f"{away(1, 2)} preceding", "current row", f"{away(1)} following"]
        ends = ["unbounded following", f"{away(1, 3)} following", "current row", f"{away(1)} preceding"]
        start = r.choice(starts)
        end = r.choice([one for one in ends if not (start in starts[2:] and one == ends[3])])
        if start == starts[3] and end == ends[2]:
            end = "unbounded following"
        exclude = f" exclude {r.choice(('current row', 'group', 'ties'))}" if r.random() < 0.06 else ""
        if not order:
            return ""
        return f"{unit} between {start} and {end}{exclude}"

    def _any(self, scope: Scope) -> E:
        """A column as text."""
        return E("cast", (self.r.choice(scope.columns),), "varchar")

    def total_order(self, scope: Scope) -> tuple[Sort, ...]:
        """By all columns, in some order: rows that tie are equal."""
        r = self.r
        columns = list(dict.fromkeys(scope.columns))
        r.shuffle(columns)
        return tuple(Sort(one, r.random() < 0.4, r.random() < 0.3) for one in columns)


def reads(value: Any) -> bool:
    """Whether a column is in it: by a constant SQL has no order, and a number alone is a column's place."""
    return isinstance(value, E) and (value.form == "column" or any(map(reads, value.args)))
