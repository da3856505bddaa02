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
from typing import Any

Place = tuple[int, int]
"""Offsets into the SQL, half-open."""


def place_around(places: Iterable[Place | None]) -> Place | None:
    """From the first of some places to the end of the last; None where none is known."""
    known = [place for place in places if place is not None]
    return (min(start for start, _ in known), max(end for _, end in known)) if known else None


def _place() -> Any:
    return field(default=None, compare=False, repr=False)


# -- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the child, or of both sides of a join, by its place."""

    index: int
    type: str
    place: Place | None = _place()


@dataclass(frozen=True)
class Constant:
    """``value``: None is NULL."""

    value: Any
    type: str
    place: Place | None = _place()


@dataclass(frozen=True)
class Call:
    """An operator or function by DuckDB's name, NULL where an argument is."""

    function: str
    arguments: tuple[Expression, ...]
    type: str
    place: Place | None = _place()


@dataclass(frozen=True)
class Cast:
    argument: Expression
    type: str
    fails: bool = True  # TRY_CAST gives NULL
    place: Place | None = _place()


@dataclass(frozen=True)
class Compare:
    operator: str  # one of = != < <= > >= <=> <!=>
    left: Expression
    right: Expression
    place: Place | None = _place()
    type: str = "BOOLEAN"


@dataclass(frozen=True)
class Logic:
    operator: str  # "and" or "or"
    arguments: tuple[Expression, ...]
    place: Place | None = _place()
    type: str = "BOOLEAN"


@dataclass(frozen=True)
class Not:
    argument: Expression
    place: Place | None = _place()
    type: str = "BOOLEAN"


@dataclass(frozen=True)
class IsNull:
    argument: Expression
    place: Place | None = _place()
    type: str = "BOOLEAN"


@dataclass(frozen=True)
class In:
    argument: Expression
    items: tuple[Expression, ...]
    place: Place | None = _place()
    type: str = "BOOLEAN"


@dataclass(frozen=True)
class Case:
    """The first branch whose condition is true; COALESCE too."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: str
    place: Place | None = _place()


@dataclass(frozen=True)
class Variable:
    """A value of a row: what :mod:`lftj.sql.bags` puts in the place of a column."""

    number: int
    name: str = field(compare=False)
    type: str = field(compare=False)
    nullable: bool = field(compare=False, default=True)
    place: Place | None = _place()


@dataclass(frozen=True)
class Exists:
    """Whether a head has the tuple of these terms, where NULL is a value like others; true or false.

    ``absent``: another relation and its columns, which have no such values if the head has not.
    """

    relation: str
    terms: tuple[tuple[str, Expression], ...]
    absent: tuple[str, tuple[str, ...]] | None = field(default=None, compare=False)
    place: Place | None = _place()
    type: str = "BOOLEAN"


Expression = Column | Constant | Call | Cast | Compare | Logic | Not | IsNull | In | Case | Variable | Exists


# -- relational nodes --------------------------------------------------------------------------


@dataclass(frozen=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, eq=False)
class Scan:
    """A table's columns, by name; None: one that nobody reads."""

    table: str
    columns: tuple[str | None, ...]
    types: tuple[str, ...]
    place: Place | None = None


@dataclass(frozen=True, eq=False)
class Values:
    """Rows of constants; over ``child`` where they refer to it."""

    child: Node | None
    rows: tuple[tuple[Expression, ...], ...]
    types: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Filter:
    child: Node
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Project:
    child: Node
    expressions: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Join:
    """``conditions``: comparisons of an expression over the left with one over the right; ``general``: of
    both, the columns of the right behind those of the left.

    ``kind``: INNER, LEFT, RIGHT, FULL, SEMI, ANTI; MARK: the left, with whether there is a partner; SINGLE:
    LEFT, where two partners are an error.
    """

    kind: str
    left: Node
    right: Node
    conditions: tuple[Compare, ...] = ()
    general: Expression | None = None
    place: Place | None = None


@dataclass(frozen=True)
class AggregateCall:
    function: str
    arguments: tuple[Expression, ...]
    type: str
    distinct: bool = False
    condition: Expression | None = None
    order: tuple[SortKey, ...] = ()
    place: Place | None = _place()


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Rows of groups, aggregates and values of GROUPING, for each grouping set."""

    child: Node
    groups: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...]
    groupings: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class Distinct:
    """``targets``: of DISTINCT ON, whose first row in the order stays."""

    child: Node
    targets: tuple[Expression, ...] = ()
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True, eq=False)
class Union:
    left: Node
    right: Node
    all: bool = True


@dataclass(frozen=True, eq=False)
class Without:
    """EXCEPT, or INTERSECT where ``keeps``; ``all``: by the number of copies."""

    left: Node
    right: Node
    keeps: bool
    all: bool
    place: Place | None = None


@dataclass(frozen=True)
class WindowCall:
    """``frame``: unit, first and last row from the current one, None: no end."""

    function: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    type: str
    frame: tuple[str, Any, Any] | None = None
    condition: Expression | None = None
    place: Place | None = _place()


@dataclass(frozen=True, eq=False)
class Window:
    """The child's columns, and a value for each call."""

    child: Node
    calls: tuple[WindowCall, ...]


@dataclass(frozen=True, eq=False)
class Ordered:
    child: Node
    keys: tuple[SortKey, ...]


@dataclass(frozen=True, eq=False)
class Limit:
    child: Node
    limit: int | None
    offset: int


@dataclass(frozen=True, eq=False)
class Unnest:
    """The child's columns and elements of lists, a row for each; of several as many as the longest has."""

    child: Node
    lists: tuple[Expression, ...]
    types: tuple[str, ...]
    place: Place | None = None


@dataclass(frozen=True, eq=False)
class With:
    """``definition`` by its number, for ``body``; ``correlates``: made of a correlated subquery."""

    number: int
    name: str
    definition: Node
    body: Node
    correlates: bool


@dataclass(frozen=True, eq=False)
class Recall:
    """The rows of a With or Recursion."""

    number: int
    types: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Recursion:
    """WITH RECURSIVE: the rows of ``base``, and of ``step`` over those that there are."""

    number: int
    name: str
    base: Node
    step: Node
    types: tuple[str, ...]
    all: bool
    place: Place | None = None


Node = (
    Scan
    | Values
    | Filter
    | Project
    | Join
    | Aggregate
    | Distinct
    | Union
    | Without
    | Window
    | Ordered
    | Limit
    | Unnest
    | With
    | Recall
    | Recursion
)


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
    return types_of(node.left if isinstance(node, Union | Without) else node.child)


@dataclass(frozen=True)
class Plan:
    """A SELECT: its node, names and types of the columns that it shows, and the tables that it names."""

    node: Node
    names: tuple[str, ...]
    types: tuple[str, ...]
    tables: frozenset[str]
    sql: str = field(repr=False, default="")
