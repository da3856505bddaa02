"""Plans of SELECTs: relational nodes over expressions, as the reading room leaves them.

Nothing here knows where a plan comes from.  A plan is bound and typed: columns are referred to by their
place in what a node's child gives, casts are nodes, and correlated subqueries are joins.

Invariants

1. An expression's ``type`` is DuckDB's name of it, as :mod:`lftj.sql.types` reads it.
2. Expressions are equal when they say the same: places in the text take no part.
3. A table's rows, and those of every node, are a bag.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, dataclass_transform

Place = tuple[int, int]
"""Offsets into the SQL, half-open."""


def place_around(places: Iterable[Place | None]) -> Place | None:
    """From the first of some places to the end of the last; None where none is known."""
    known = [place for place in places if place is not None]
    return (min(start for start, _ in known), max(end for _, end in known)) if known else None


@dataclass(frozen=True, eq=False)
class Placed:
    """What comes from a place in the text."""

    place: Place | None = field(default=None, compare=False, repr=False, kw_only=True)


# -- expressions ------------------------------------------------------------------------------


@dataclass_transform(frozen_default=True)
class Expression(Placed):
    """A value of each row.  Each class of expressions is a frozen dataclass."""

    type: str

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Condition(Expression):
    """True, false or NULL."""

    type = "BOOLEAN"


class Column(Expression):
    """A column of the child, or of both sides of a join, by its place."""

    index: int
    type: str


class Constant(Expression):
    """``value``: None is NULL."""

    value: Any
    type: str


class Call(Expression):
    """An operator or function by DuckDB's name, NULL where an argument is."""

    function: str
    arguments: tuple[Expression, ...]
    type: str


SERIES = ("range", "generate_series")
"""Functions that give a list of different values, none of them NULL."""


class Cast(Expression):
    argument: Expression
    type: str
    fails: bool = True  # TRY_CAST gives NULL


class Compare(Condition):
    operator: str  # one of = != < <= > >= <=> <!=>
    left: Expression
    right: Expression


class Logic(Condition):
    operator: str  # "and" or "or"
    arguments: tuple[Expression, ...]


class Not(Condition):
    argument: Expression


class IsNull(Condition):
    argument: Expression


class In(Condition):
    argument: Expression
    items: tuple[Expression, ...]


class Case(Expression):
    """The first branch whose condition is true; COALESCE too."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: str


class Variable(Expression):
    """A value of a row: what :mod:`lftj.sql.translation.bodies` puts in the place of a column."""

    number: int
    name: str = field(compare=False)
    type: str = field(compare=False)
    nullable: bool = field(compare=False, default=True)


class Member(Condition):
    """That a variable is one of a list: a row for each, which are different and not NULL."""

    element: Variable
    list: Expression


class Defined(Condition):
    """What a variable is: a value too long to be written wherever it is read."""

    variable: Variable
    value: Expression


class Exists(Condition):
    """Whether a head has the tuple of these terms, where NULL is a value like others; true or false.

    ``absent``: another relation and its columns, which have no such values if the head has not.
    """

    relation: str
    terms: tuple[tuple[str, Expression], ...]
    absent: tuple[str, tuple[str, ...]] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool = False


class Term(Expression):
    """An aggregate among the terms of a head; ``settings``: literals behind the first argument."""

    function: str
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    default: str | None = None
    settings: tuple[str, ...] = ()
    nullable: bool = True


# -- relational nodes --------------------------------------------------------------------------


@dataclass_transform(eq_default=False, frozen_default=True)
class Node(Placed):
    """A bag of rows; equal to itself alone.  Each class of nodes is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)


class Scan(Node):
    """A table's columns, by name; None: one that nobody reads."""

    table: str
    columns: tuple[str | None, ...]
    types: tuple[str, ...]


class Values(Node):
    """Rows of constants; over ``child`` where they refer to it."""

    child: Node | None
    rows: tuple[tuple[Expression, ...], ...]
    types: tuple[str, ...]


class Filter(Node):
    child: Node
    conditions: tuple[Expression, ...]


class Project(Node):
    child: Node
    expressions: tuple[Expression, ...]


class Join(Node):
    """``conditions``: comparisons of an expression over the left with one over the right; ``general``: of
    both, the columns of the right behind those of the left.

    ``kind``: INNER, LEFT, RIGHT, FULL, SEMI, ANTI; MARK: the left, with whether there is a partner; SINGLE:
    LEFT, where two partners are an error; ASOF, ASOF LEFT: with the nearest partner, by the one comparison
    that is no equation.
    """

    kind: str
    left: Node
    right: Node
    conditions: tuple[Compare, ...] = ()
    general: Expression | None = None


@dataclass(frozen=True)
class AggregateCall(Placed):
    """``FILTER`` is in the first argument, which is NULL in rows that are left out."""

    function: str
    arguments: tuple[Expression, ...]
    type: str
    distinct: bool = False
    order: tuple[SortKey, ...] = ()


COUNT = AggregateCall("count", (), "BIGINT")
"""Of rows."""


class Aggregate(Node):
    """Rows of groups, aggregates and values of GROUPING, for each grouping set."""

    child: Node
    groups: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...]
    groupings: tuple[tuple[int, ...], ...] = ()


class SetOperation(Node):
    """``kind``: UNION, EXCEPT, INTERSECT; ``all``: by the number of copies."""

    kind: str
    left: Node
    right: Node
    all: bool = True


@dataclass(frozen=True)
class WindowCall(AggregateCall):
    """``frame``: unit, first and last row from the current one, None: no end."""

    partition: tuple[Expression, ...] = ()
    frame: tuple[str, Any, Any] | None = None


class Window(Node):
    """The child's columns, and a value for each call."""

    child: Node
    calls: tuple[WindowCall, ...]


class Limit(Node):
    """ORDER BY and LIMIT; ``partition``: of DISTINCT ON, each of whose parts is limited."""

    child: Node
    keys: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    partition: tuple[Expression, ...] = ()


class Unnest(Node):
    """The child's columns and elements of lists, a row for each; of several as many as the longest has."""

    child: Node
    lists: tuple[Expression, ...]
    types: tuple[str, ...]


class With(Node):
    """``definition`` by its number, for ``body``; ``correlates``: made of a correlated subquery."""

    number: int
    name: str
    definition: Node
    body: Node
    correlates: bool


class Recall(Node):
    """The rows of a With or Recursion."""

    number: int
    types: tuple[str, ...]


class Recursion(Node):
    """WITH RECURSIVE: the rows of ``base``, and of ``step`` over those that there are."""

    number: int
    name: str
    base: Node
    step: Node
    types: tuple[str, ...]
    all: bool


def types_of(node: Node) -> tuple[str, ...]:
    """The types of a node's columns."""
    if isinstance(node, Scan | Values | Recall | Recursion):
        return node.types
    if isinstance(node, Project):
        below = types_of(node.child)
        return tuple(below[one.index] if isinstance(one, Column) else one.type for one in node.expressions)
    if isinstance(node, Aggregate):
        calls = (call.type for call in node.calls)
        return (*(one.type for one in node.groups), *calls, *("BIGINT" for _ in node.groupings))
    if isinstance(node, Join):
        left = types_of(node.left)
        if node.kind == "MARK":
            return (*left, "BOOLEAN")
        return left if node.kind in ("SEMI", "ANTI") else (*left, *types_of(node.right))
    if isinstance(node, Window):
        return (*types_of(node.child), *(call.type for call in node.calls))
    if isinstance(node, Unnest):
        return (*types_of(node.child), *node.types)
    if isinstance(node, With):
        return types_of(node.body)
    if isinstance(node, SetOperation):
        return types_of(node.left)
    assert isinstance(node, Filter | Limit)
    return types_of(node.child)


def columns_of(node: Node) -> tuple[Column, ...]:
    """All that it shows."""
    return tuple(Column(place, type_) for place, type_ in enumerate(types_of(node)))


def grouped(node: Node, calls: tuple[AggregateCall, ...] = ()) -> Aggregate:
    """Its distinct rows, with what is asked of those that are equal."""
    columns = columns_of(node)
    return Aggregate(node, columns, calls, (tuple(range(len(columns))),))


@dataclass(frozen=True)
class Plan:
    """A SELECT: its node, names and types of the columns that it shows, and the tables that it names."""

    node: Node
    names: tuple[str, ...]
    types: tuple[str, ...]
    tables: frozenset[str]
    sql: str = field(repr=False, default="")
