"""Statements as trees that are printed in a dialect of SQL, walked, and made smaller; data only.

An expression's ``form`` is a template, whose ``{n}`` are its arguments and ``{n+}`` all of them from the nth,
or the name of one in :data:`FORMS`, where dialects say it in different words or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

DIALECTS = ("duckdb", "sqlite", "postgres")
APPROXIMATE = "approximate"
"""The type of doubles whose last bits depend on how they are computed: shown, and compared to nothing."""


class NotInDialect(Exception):
    """The dialect has no words for it, or means something else by them."""


@dataclass(frozen=True)
class E:
    """An expression of a type of SQL; arguments are expressions and queries."""

    form: str
    args: tuple[Any, ...] = ()
    type: str = ""


@dataclass(frozen=True)
class Sort:
    by: E
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Window:
    """What stands in the parentheses of ``over``; ``frame``: in words, by itself."""

    partition: tuple[E, ...] = ()
    order: tuple[Sort, ...] = ()
    frame: str = ""


@dataclass(frozen=True)
class Item:
    """A column of a SELECT; without a name, as it is called of itself."""

    value: E
    name: str = ""


@dataclass(frozen=True)
class Named:
    """A relation, a view or a common table expression."""

    name: str
    alias: str


@dataclass(frozen=True)
class Derived:
    query: Any
    alias: str
    columns: tuple[str, ...] = ()
    lateral: bool = False


@dataclass(frozen=True)
class Join:
    """``kind``: inner, left, right, full, cross or ``,``; natural without a condition and ``using``."""

    kind: str
    left: Any
    right: Any
    on: E | None = None
    using: tuple[str, ...] = ()


@dataclass(frozen=True)
class Select:
    """``sets``: "", "rollup", "cube", or "sets", of which ``group`` then says the members by number."""

    items: tuple[Item, ...]
    source: Any = None
    where: E | None = None
    group: tuple[E, ...] = ()
    sets: str = ""
    members: tuple[tuple[int, ...], ...] = ()
    having: E | None = None
    qualify: E | None = None
    distinct: bool = False
    distinct_on: tuple[E, ...] = ()
    order: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class SetOperation:
    op: str
    left: Any
    right: Any
    order: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Values:
    rows: tuple[tuple[E, ...], ...]


@dataclass(frozen=True)
class Cte:
    name: str
    query: Any
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class With:
    ctes: tuple[Cte, ...]
    body: Any
    recursive: bool = False


WRITTEN = (E, Sort, Window, Item, Named, Derived, Join, Select, SetOperation, Values, Cte, With)
QUERIES = (Select, SetOperation, Values, With)

FORMS: dict[str, dict[str, str]] = {
    "divide": {
        "duckdb": "({0} / {1})",
        "sqlite": "(cast({0} as real) / {1})",
        "postgres": "({0}::double precision / {1})",
    },
    "whole divide": {"duckdb": "({0} // {1})", "sqlite": "({0} / {1})", "postgres": "div({0}, {1})::bigint"},
    "date plus": {"duckdb": "({0} + cast({1} as integer))", "postgres": "({0} + {1}::integer)"},
    "date minus date": {"duckdb": "({0} - {1})", "postgres": "({0} - {1})"},
    "interval": {"duckdb": "({0} + interval {1} {2})", "postgres": "({0} + interval '{1} {2}')"},
    "minus interval": {"duckdb": "({0} - interval {1} {2})", "postgres": "({0} - interval '{1} {2}')"},
    "extract": {"duckdb": "extract({0} from {1})", "postgres": "extract({0} from {1})::bigint"},
    "date_trunc": {"duckdb": "date_trunc('{0}', {1})", "postgres": "date_trunc('{0}', {1})"},
    "date_trunc of date": {
        "duckdb": "cast(date_trunc('{0}', {1}) as date)",
        "postgres": "date_trunc('{0}', {1}::timestamp)::date",
    },
    "date and timestamp": {"duckdb": "({0} {1} {2})", "postgres": "({0} {1} {2})"},
    "ignore nulls": {"duckdb": "{0}({1} ignore nulls)"},
    "as date": {"duckdb": "cast({0} as date)", "postgres": "cast({0} as date)"},
    "as timestamp": {"duckdb": "cast({0} as timestamp)", "postgres": "cast({0} as timestamp)"},
    "as double": {
        "duckdb": "cast({0} as double)",
        "sqlite": "cast({0} as real)",
        "postgres": "({0})::double precision",
    },
    "greatest": {"duckdb": "greatest({0+})", "postgres": "greatest({0+})"},
    "least": {"duckdb": "least({0+})", "postgres": "least({0+})"},
    "position": {"duckdb": "strpos({0}, {1})", "sqlite": "instr({0}, {1})", "postgres": "strpos({0}, {1})"},
    "substring": {
        "duckdb": "substring({0} from {1} for {2})",
        "sqlite": "substr({0}, {1}, {2})",
        "postgres": "substring({0} from {1} for {2})",
    },
    "series": {"duckdb": "unnest(range(-1, {0} % 5))", "postgres": "generate_series(-1, {0} % 5 - 1)"},
    "concat": {"duckdb": "concat({0+})", "postgres": "concat({0+})"},
    "reverse": {"duckdb": "reverse({0})", "postgres": "reverse({0})"},
    "ilike": {"duckdb": "({0} ilike {1})", "postgres": "({0} ilike {1})"},
    "compared to any": {"duckdb": "({0} {1} any ({2}))", "postgres": "({0} {1} any ({2}))"},
    "compared to all": {"duckdb": "({0} {1} all ({2}))", "postgres": "({0} {1} all ({2}))"},
    "is distinct": {
        "duckdb": "({0} is distinct from {1})",
        "sqlite": "({0} is not {1})",
        "postgres": "({0} is distinct from {1})",
    },
    "is not distinct": {
        "duckdb": "({0} is not distinct from {1})",
        "sqlite": "({0} is {1})",
        "postgres": "({0} is not distinct from {1})",
    },
    "minimum of booleans": {"duckdb": "min({0})"},
    "maximum of booleans": {"duckdb": "max({0})"},
    "bool_and": {"duckdb": "bool_and({0})", "postgres": "bool_and({0})"},
    "bool_or": {"duckdb": "bool_or({0})", "postgres": "bool_or({0})"},
    "string_agg": {
        "duckdb": "string_agg({0}, '{1}' order by {2})",
        "postgres": "string_agg({0}, '{1}' order by {2})",
    },
    "distinct string_agg": {
        "duckdb": "string_agg(distinct {0}, '{1}' order by {2})",
        "postgres": "string_agg(distinct {0}, '{1}' order by {2})",
    },
    "list": {"duckdb": "list({0} order by {1})"},
    "deviation": {"duckdb": "{1}({0})", "postgres": "{1}({0}::double precision)"},
    "median": {
        "duckdb": "median({0})",
        "postgres": "percentile_cont(0.5) within group (order by {0}::double precision)",
    },
    "count_if": {"duckdb": "count_if({0})"},
    "grouping": {"duckdb": "grouping({0})", "postgres": "grouping({0})"},
}
"""What dialects have words of their own for."""

_HOLE = re.compile(r"\{(\d+)(\+?)\}")
_CASTS = {
    "duckdb": {"int": "bigint", "decimal": "decimal(8,2)", APPROXIMATE: "double"},
    "sqlite": {"int": "integer", "varchar": "text", "double": "real", APPROXIMATE: "real"},
    "postgres": {
        "int": "bigint",
        "decimal": "decimal(8,2)",
        "double": "double precision",
        APPROXIMATE: "double precision",
    },
}
"""What a family of types is cast to."""


def cast_type(dialect: str, family: str) -> str:
    if dialect == "sqlite" and family not in _CASTS["sqlite"]:
        raise NotInDialect(f"cast to {family}")
    return _CASTS[dialect].get(family, family)


def literal(value: Any, type_: str, dialect: str) -> str:
    if value is None:
        no_type = dialect == "sqlite" and type_ not in _CASTS["sqlite"]
        return "null" if no_type else f"cast(null as {cast_type(dialect, type_)})"
    if type_ == "varchar":
        return "'" + value.replace("'", "''") + "'"
    if type_ in ("date", "timestamp"):
        return f"'{value}'" if dialect == "sqlite" else f"{type_} '{value}'"
    if type_ == "boolean":
        return str(bool(value)).lower()
    if type_ == "double":
        return f"cast({value!r} as {cast_type(dialect, type_)})"
    if type_ == "decimal" and dialect == "sqlite":
        raise NotInDialect("decimals")
    return str(value) if not str(value).startswith("-") else f"({value})"


def sql(node: Any, dialect: str = "duckdb") -> str:
    """The statement's text.

    Raises:
        NotInDialect: for what the dialect lacks.
    """
    match node:
        case str():
            return node
        case int():
            return str(node)
        case E():
            return _expression(node, dialect)
        case Item(value, name):
            return sql(value, dialect) + (f" as {name}" if name else "")
        case Sort(by, descending, nulls_first):
            way = " desc" if descending else ""
            return f"{sql(by, dialect)}{way} nulls {'first' if nulls_first else 'last'}"
        case Window(partition, order, frame):
            parts = [
                f"partition by {', '.join(sql(one, dialect) for one in partition)}" if partition else "",
                f"order by {', '.join(sql(one, dialect) for one in order)}" if order else "",
                frame,
            ]
            return " ".join(filter(None, parts))
        case Named(name, alias):
            return name if alias == name else f"{name} as {alias}"
        case Derived(query, alias, columns, lateral):
            if dialect == "sqlite" and (lateral or columns):
                raise NotInDialect("lateral")
            of = f"({', '.join(columns)})" if columns else ""
            return f"{'lateral ' if lateral else ''}({sql(query, dialect)}) as {alias}{of}"
        case Join():
            return _join(node, dialect)
        case Select():
            return _select(node, dialect)
        case SetOperation(op, left, right, order, limit, offset):
            if dialect == "sqlite" and (
                op in ("except all", "intersect all") or isinstance(right, SetOperation)
            ):
                raise NotInDialect(op)
            sides = [
                sql(one, dialect)
                if dialect == "sqlite" or isinstance(one, Values)
                else f"({sql(one, dialect)})"
                for one in (left, right)
            ]
            if dialect == "sqlite" and any(_has_end(one) for one in (left, right)):
                raise NotInDialect("parentheses")
            return f"{sides[0]} {op} {sides[1]}" + _end(order, limit, offset, dialect)
        case Values(rows):
            return "values " + ", ".join(f"({', '.join(sql(one, dialect) for one in row)})" for row in rows)
        case With(ctes, body, recursive):
            told = ", ".join(f"{_called(one)} as ({sql(one.query, dialect)})" for one in ctes)
            return f"with {'recursive ' if recursive else ''}{told} {sql(body, dialect)}"
    raise TypeError(type(node))


def _called(one: Cte) -> str:
    return f"{one.name}({', '.join(one.columns)})" if one.columns else one.name


def _has_end(query: Any) -> bool:
    return isinstance(query, With) or bool(getattr(query, "order", ()))


def _expression(node: E, dialect: str) -> str:
    if node.form == "literal":
        return literal(node.args[0], node.type, dialect)
    if node.form == "column":
        if dialect == "sqlite" and node.type == "decimal":
            raise NotInDialect("decimals")
        return str(node.args[0])
    if node.form == "star":
        return (
            str(node.args[0])
            if dialect == "duckdb"
            else ", ".join(sql(one, dialect) for one in node.args[1:])
        )
    if node.form == "cast":
        return f"cast({sql(node.args[0], dialect)} as {cast_type(dialect, node.type)})"
    if node.form in FORMS:
        if dialect not in FORMS[node.form]:
            raise NotInDialect(node.form)
        template = FORMS[node.form][dialect]
    else:
        template = node.form

    def fill(hole: re.Match[str]) -> str:
        first = int(hole[1])
        chosen = node.args[first:] if hole[2] else node.args[first : first + 1]
        return ", ".join(sql(one, dialect) for one in chosen)

    return _HOLE.sub(fill, template)


def _join(node: Join, dialect: str) -> str:
    left, right = sql(node.left, dialect), sql(node.right, dialect)
    if isinstance(node.right, Join):
        right = f"({right})"
    if node.kind == ",":
        return f"{left}, {right}"
    if node.kind == "cross":
        return f"{left} cross join {right}"
    if node.using:
        return f"{left} {node.kind} join {right} using ({', '.join(node.using)})"
    if node.on is None:
        return f"{left} natural {node.kind} join {right}"
    return f"{left} {node.kind} join {right} on {sql(node.on, dialect)}"


def _end(order: tuple[Sort, ...], limit: int | None, offset: int | None, dialect: str) -> str:
    text = f" order by {', '.join(sql(one, dialect) for one in order)}" if order else ""
    text += f" limit {limit}" if limit is not None else ""
    return text + (f" offset {offset}" if offset is not None else "")


def _select(node: Select, dialect: str) -> str:
    if dialect == "sqlite" and (node.sets or node.distinct_on or node.qualify):
        raise NotInDialect("grouping sets")
    if dialect == "postgres" and node.qualify:
        raise NotInDialect("qualify")

    def listed(nodes: Any) -> str:
        return ", ".join(sql(one, dialect) for one in nodes)

    text = "select "
    text += f"distinct on ({listed(node.distinct_on)}) " if node.distinct_on else ""
    text += "distinct " if node.distinct else ""
    text += listed(node.items)
    text += f" from {sql(node.source, dialect)}" if node.source is not None else ""
    text += f" where {sql(node.where, dialect)}" if node.where is not None else ""
    if node.sets == "sets":
        members = ", ".join(
            f"({listed(node.group[n] for n in member if n < len(node.group))})" for member in node.members
        )
        text += f" group by grouping sets ({members})"
    elif node.group:
        text += (
            f" group by {node.sets}({listed(node.group)})" if node.sets else f" group by {listed(node.group)}"
        )
    text += f" having {sql(node.having, dialect)}" if node.having is not None else ""
    text += f" qualify {sql(node.qualify, dialect)}" if node.qualify is not None else ""
    return text + _end(node.order, node.limit, node.offset, dialect)


# -- walked and made smaller ------------------------------------------------------------------------------


def within(node: Any) -> Iterator[Any]:
    """The node and all below it, those above before those below."""
    yield node
    if isinstance(node, tuple):
        for one in node:
            yield from within(one)
    elif isinstance(node, WRITTEN):
        for one in fields(node):
            yield from within(getattr(node, one.name))


def constructs(node: Any) -> list[str]:
    """What the statement is made of, by names, each once: finds of one fault have them in common."""
    found: set[str] = set()
    for one in within(node):
        match one:
            case E("column" | "literal" | "({0})"):
                pass
            case E(form):
                found.add(" ".join(re.sub(r"\{\d+\+?\}|[(),:]|\b\d+\b", " ", form).split()))
            case Join(kind, _, _, on, using):
                how = "using" if using else "" if on is not None or kind in (",", "cross") else "natural"
                found.add(f"{how} {kind if kind != ',' else 'cross'} join".strip())
            case Derived():
                found.add("lateral" if one.lateral else "derived table")
            case SetOperation(op):
                found.add(op)
            case With():
                found.add("recursive" if one.recursive else "with")
            case Values():
                found.add("values")
            case Select():
                found |= {
                    name for name in ("distinct", "distinct_on", "having", "qualify") if getattr(one, name)
                }
                found |= {f"group by {one.sets}".strip()} if one.group or one.sets else set()
                found |= {"limit"} if one.limit is not None or one.offset is not None else set()
    return sorted(found)
