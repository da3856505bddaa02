"""The rule language's syntax tree, as the parser leaves it and the checker reads it.

Every node keeps its ``span``: the half-open range ``(start, end)`` of offsets
into the program's text, so that errors can point at the place.  Spans take no
part in comparisons: two trees are equal when they say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from lftj.values.literals import NULL, Value
from lftj.values.names import DISTINCT_COUNT
from lftj.values.operators import NULL_SAFE

Span = tuple[int, int]


def _span() -> Span:
    return field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True)
class Variable:
    """``null_safe``: written ``<=> a`` in an atom, where NULL is a value like others.  It is read by the
    checker alone, which says by tests where a variable is not NULL.
    """

    name: str
    span: Span = _span()
    null_safe: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Wildcard:
    """``_``: an anonymous variable, different at each occurrence."""

    span: Span = _span()


class _Unset(Enum):
    UNSET = "unset"


UNSET: Any = _Unset.UNSET
"""The value of a parameter that has none yet."""


@dataclass(frozen=True)
class Constant:
    """A literal, or a parameter (``$day``) with the value that a call gave it; ``null``, too.

    Until then a parameter's value is ``UNSET`` (:mod:`lftj.language.parameters`).
    """

    value: Value
    span: Span = _span()
    parameter: str | None = None


@dataclass(frozen=True)
class BinaryOperation:
    operator: str  # one of + - * / %
    left: Expression
    right: Expression
    span: Span = _span()


@dataclass(frozen=True)
class Negative:
    operand: Expression
    span: Span = _span()


@dataclass(frozen=True)
class Call:
    """``lower(s)``, ``least(a, b + 1)``; ``x in (1, 2)`` and ``s like "a%"`` with x and s first."""

    function: str  # one of lftj.values.functions.FUNCTIONS, or "in"
    arguments: tuple[Expression, ...]
    span: Span = _span()


Term = Variable | Wildcard | Constant
Expression = Variable | Constant | BinaryOperation | Negative | Call


@dataclass(frozen=True)
class ColumnName:
    """The name in front of a term: ``orderkey`` in ``orders(orderkey: o)``."""

    name: str
    span: Span = _span()


@dataclass(frozen=True)
class Atom:
    """``e(a, _)``, ``!e(a, 5)`` or, when ``functional``, ``price[p] = v`` with v as the last term.

    ``names``: of the columns that the terms are for, in ``orders(orderkey: o)``; the value of a functional
    atom has none.  Empty where terms count by their place, as they all do behind
    :func:`lftj.language.by_name.by_place`.  ``as_of_now``: ``rate[s] = p asof now``.
    """

    relation: str
    terms: tuple[Term, ...]
    functional: bool = False
    negated: bool = False
    span: Span = _span()
    name_span: Span = _span()
    names: tuple[ColumnName, ...] = ()
    as_of_now: bool = False


@dataclass(frozen=True)
class Comparison:
    """Of two expressions.  A test such as ``contains(s, "a")`` is compared with true, or false if negated.

    ``x is null`` is ``x <=> null``, and ``x is not null`` is ``x <!=> null``.
    """

    operator: str  # one of < <= > >= = != <=> <!=>
    left: Expression
    right: Expression
    span: Span = _span()

    @property
    def tests_null(self) -> bool:
        """Whether it is ``x is null`` or ``x is not null``."""
        return self.is_null_safe and isinstance(self.right, Constant) and self.right.value is NULL

    @property
    def is_null_safe(self) -> bool:
        """Whether NULL equals NULL in it, and nothing else."""
        return self.operator in NULL_SAFE


@dataclass(frozen=True)
class Disjunction:
    """``(d(x, _) ; e(x))``: alternatives, each a conjunction of literals."""

    alternatives: tuple[tuple[Literal, ...], ...]
    span: Span = _span()


Literal = Atom | Comparison | Disjunction


@dataclass(frozen=True)
class Aggregate:
    """``count()``, ``sum(c)``, ``concat(s, ", ", o)``, ``count(distinct c)``: function and argument terms.

    ``default``: of ``count() default 0``.  ``written``: the call as the program has it, where this one stands
    in its place (:mod:`lftj.language.filtered_aggregates`, :mod:`lftj.language.composed_aggregates`).
    """

    function: str  # one of lftj.values.names.AGGREGATES, or registered; DISTINCT_COUNT
    arguments: tuple[Variable | Constant, ...] = ()
    span: Span = _span()
    distinct: bool = False
    default: Constant | None = None
    written: str | None = field(default=None, compare=False, repr=False)

    @property
    def skips(self) -> tuple[str, ...]:
        """The variables whose NULL leaves an assignment out; a list keeps the NULLs among its elements."""
        read = self.arguments[1:] if self.function == "list" else self.arguments
        return tuple(one.name for one in read if isinstance(one, Variable))

    @property
    def counts_distinct(self) -> bool:
        """Whether it is a count of distinct values, as written or as evaluated."""
        return self.function == DISTINCT_COUNT or (self.distinct and self.function == "count")

    @property
    def name(self) -> str:
        """What the program calls the function."""
        return self.function if self.written is None else self.written.partition("(")[0].rstrip()


@dataclass(frozen=True)
class SortKey:
    """``p desc nulls first``: a variable by which rows are ordered.  NULLs are last where nothing is said."""

    variable: Variable
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Frame:
    """``rows: (-3, 0)``: the rows around each that a window aggregate reads.

    ``unit``: ``rows``, ``groups`` of rows that are equal in the order, or ``range`` of the values that they
    are ordered by.  ``first`` and ``last`` count from the row, negative before it; None: all.  ``in_time``:
    in microseconds, behind the checker in units of the order's column.
    """

    unit: str
    first: int | float | Decimal | Fraction | None
    last: int | float | Decimal | Fraction | None
    in_time: bool = False


@dataclass(frozen=True)
class Window:
    """``row_number(by: (p desc, i), per: c)``: a value of each row, among the rows of its partition.

    ``per`` has each variable once.  ``most``: rows of a higher number are left out.
    """

    function: str  # one of lftj.values.names.WINDOWS
    arguments: tuple[Variable | Constant, ...]
    per: tuple[Variable, ...]
    by: tuple[SortKey, ...]
    frame: Frame | None = None
    most: int | None = None
    span: Span = _span()

    @property
    def name(self) -> str:
        """What the program calls the function."""
        return self.function

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All that it reads."""
        read = (argument for argument in self.arguments if isinstance(argument, Variable))
        return *self.per, *(one.variable for one in self.by), *read


def rank_of(call: Aggregate) -> int:
    """The k of ``kth_largest(v, k)``."""
    _, rank = call.arguments
    assert isinstance(rank, Constant) and isinstance(rank.value, int)
    return rank.value


def share_of(call: Aggregate) -> Fraction:
    """The q of ``quantile(v, q)``, as it was written: 0.1 is a tenth."""
    share = call.arguments[1]
    assert isinstance(share, Constant) and isinstance(share.value, int | float | Decimal)
    return Fraction(str(share.value))


def extremum_of(value: object) -> str | None:
    """The function of a head's value, where that is the least or the largest of its values."""
    return value.function if isinstance(value, Aggregate) and value.function in ("min", "max") else None


@dataclass(frozen=True)
class Head:
    """``tri(a, b)``: value None.  ``price[p] = v``: value Variable.  ``n[a] = count()``: value Aggregate.

    Only a head without value has aggregates among its terms: ``stats(a, count(), sum(b))``.
    ``bag``: each assignment gives a copy of the tuple, or as many as ``copies`` says, which is no column.
    ``windows``: behind the terms, of heads that :mod:`lftj.language.window_rows` makes.
    ``names``: what the columns are called, ``stats(a, n: count())``, with None where that follows from the
    term; empty where it always does.
    """

    relation: str
    terms: tuple[Variable | Aggregate, ...]
    value: Variable | Aggregate | None = None
    span: Span = _span()
    name_span: Span = _span()
    names: tuple[ColumnName | None, ...] = ()
    windows: tuple[Window, ...] = ()
    bag: bool = False
    copies: Variable | None = None

    @property
    def columns(self) -> tuple[Variable | Aggregate, ...]:
        """What each column that is written holds: the terms, and then the value if there is one."""
        return self.terms if self.value is None else (*self.terms, self.value)

    @property
    def all_columns(self) -> tuple[Variable | Aggregate | Window, ...]:
        """What each column holds."""
        return (*self.columns, *self.windows)

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates of all its columns."""
        return tuple(column for column in self.columns if isinstance(column, Aggregate))

    @property
    def extremum(self) -> str | None:
        """``"min"`` or ``"max"`` of a head ``dist[x] = min(d)``, which may depend on itself; else None."""
        return extremum_of(self.value)

    @property
    def counts(self) -> bool:
        """Whether it depends on how many assignments there are."""
        return self.bag or bool(self.aggregates or self.windows)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables that the head takes from the body, also as arguments of aggregates and windows."""
        taken: list[Variable | Constant] = []
        for column in self.columns:
            taken += column.arguments if isinstance(column, Aggregate) else [column]
        for window in self.windows:
            taken += window.variables
        if self.copies is not None:
            taken.append(self.copies)
        return tuple(term for term in taken if isinstance(term, Variable))


def aggregated_variables(heads: Iterable[Head]) -> frozenset[str]:
    """The names of the variables whose NULL leaves out what a head aggregates: those of functions.

    A count of distinct values is 0 of nothing; several aggregates skip NULL each for itself.
    """
    values = (head.value for head in heads if isinstance(head.value, Aggregate))
    calls = (call for call in values if not call.counts_distinct)
    return frozenset(name for call in calls for name in call.skips)


def flat(body: Iterable[Literal]) -> Iterator[Literal]:
    """All literals of a body, those within alternatives too."""
    for literal in body:
        if isinstance(literal, Disjunction):
            for alternative in literal.alternatives:
                yield from flat(alternative)
        else:
            yield literal


@dataclass(frozen=True)
class Rule:
    """``written``: the place of the rule that the program has, where this one stands for a part of it."""

    heads: tuple[Head, ...]
    body: tuple[Literal, ...]
    span: Span = _span()
    written: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Key:
    """``key orders(id).``: no two rows of a loaded relation agree in these columns."""

    relation: str
    columns: tuple[ColumnName, ...]
    span: Span = _span()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class DeclaredStream:
    """``stream trade(t) late 5s keep 2h ahead 1d.``; spans are None where they are not said."""

    relation: str
    time: ColumnName
    lateness: int | timedelta | None = None
    keep: int | timedelta | None = None
    ahead: int | timedelta | None = None
    span: Span = _span()

    @property
    def columns(self) -> tuple[ColumnName, ...]:
        return (self.time,)


@dataclass(frozen=True)
class DeclaredFinal:
    """``final vol at w + 5m.``; ``after`` is None where nothing is added."""

    head: str
    column: ColumnName
    after: int | timedelta | None = None
    span: Span = _span()
    close_span: Span = _span()


@dataclass(frozen=True)
class Program:
    """``keys``, ``streams``: what it declares of loaded relations; ``finals``: of its heads.

    ``nearest``: where it has ``latest(u)`` or ``next(u)``, which would be atoms of relations of that name.
    """

    rules: tuple[Rule, ...]
    text: str = field(default="", compare=False, repr=False)
    keys: tuple[Key, ...] = ()
    streams: tuple[DeclaredStream, ...] = ()
    finals: tuple[DeclaredFinal, ...] = ()
    nearest: tuple[ColumnName, ...] = ()
