"""`Body`: one alternative of what a node gives, and what is known of its rows.

A node is a *bag*: a list of bodies.  Each assignment of a body is a row, of the values that its columns have
then; so a row comes as often as SQL says.  A join of bodies is one longer body: a whole tree of joins is one
multiway join.  What has to be a relation of its own (groups, distinct rows, the inner side of EXISTS) is a
*head*, which bodies read by an atom.

Invariants

1. A variable stands in one place of one atom; what joins is a test.
2. Tests are folded, none of them is true or false whatever the row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lftj.sql import nodes
from lftj.sql.nodes import Compare, Constant, Exists, Expression, Logic, Member, Not, Placed, Variable
from lftj.sql.translation.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    children,
    known_by,
    mapped,
    over,
    variables,
    walked,
)
from lftj.values.names import usable_names


@dataclass(frozen=True)
class Atom(Placed):
    """``terms``: column and variable."""

    relation: str
    terms: tuple[tuple[str, Variable], ...]


@dataclass(frozen=True)
class Body:
    """``rows``: of definitions (:class:`lftj.sql.nodes.With`) that every assignment holds: number, columns.

    ``sides``: of outer joins, the condition that a row has a partner, and whether the rows are those.
    """

    atoms: tuple[Atom, ...] = ()
    tests: tuple[Expression, ...] = ()
    columns: tuple[Expression, ...] = ()
    rows: tuple[tuple[int, tuple[Expression, ...]], ...] = ()
    sides: tuple[tuple[Expression, bool], ...] = ()

    @property
    def place(self) -> nodes.Place | None:
        return nodes.place_around(one.place for one in (*self.tests, *self.columns, *self.atoms))

    @property
    def computed(self) -> Iterator[Expression]:
        """The columns that say more than a variable or a constant."""
        return (of for of in self.columns if not isinstance(of, Variable | Constant))

    def beside(self, other: Body) -> Body:
        """The product of two."""
        return Body(*(vars(self)[name] + of for name, of in vars(other).items()))

    def mapped(self, change: Callable[[Expression], Expression | None]) -> Body:
        """With other parts in the place of some."""

        def taken(part: Any) -> Any:
            if isinstance(part, Expression):
                return mapped(part, change)
            if isinstance(part, Atom):
                return replace(part, terms=taken(part.terms))
            return tuple(map(taken, part)) if isinstance(part, tuple) else part

        return Body(*map(taken, vars(self).values()))

    def showing(self, columns: Iterable[Expression]) -> Body:
        return replace(self, columns=tuple(columns))

    def has_row(self, of: tuple[int, tuple[int, ...]], values: Sequence[Expression | None]) -> bool:
        """Whether every assignment holds a row of a definition, with these values in these of its columns."""
        number, places = of
        return any(one == number and [row[at] for at in places] == list(values) for one, row in self.rows)

    def where(self, *tests: Expression) -> Bag:
        """With tests of its own variables; nothing where they fail whatever the row."""
        more: dict[Expression, None] = {}
        for test in tests:
            parts = test.arguments if isinstance(test, Logic) and test.operator == "and" else (test,)
            for part in parts:
                if part in (FALSE, UNKNOWN):
                    return []
                if part != TRUE and part not in self.tests:
                    more[part] = None
        known = {variable.number for test in more for variable in known_by(test) if variable.nullable}
        columns = tuple(_known(column, known) for column in self.columns)
        return [replace(self, tests=(*self.tests, *more), columns=columns)]


Bag = list[Body]


def _known(of: Expression, known: set[int]) -> Expression:
    """With the variables of these numbers as such that are not NULL."""

    def change(one: Expression) -> Expression | None:
        return replace(one, nullable=False) if isinstance(one, Variable) and one.number in known else None

    return mapped(of, change) if known else of


def filtered(bag: Bag, tests: Sequence[Expression]) -> Bag:
    """By tests over the columns."""
    return [kept for body in bag for kept in body.where(*(over(test, body.columns) for test in tests))]


def projected(bag: Bag, expressions: Sequence[Expression]) -> Bag:
    return [body.showing(over(one, body.columns) for one in expressions) for body in bag]


# -- how often a row comes ----------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """What bodies know of a relation: a key, which says all other columns; None: it has equal rows.

    ``always``: it has one row, whatever the data.  ``made_of``: of distinct rows, the definition and the
    places of its columns that they are.
    """

    key: tuple[str, ...] | None
    always: bool = False
    made_of: tuple[int, tuple[int, ...]] | None = None


@dataclass(frozen=True)
class Head:
    """A relation of rules: its columns, their types, and whether they may be NULL."""

    relation: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    nullable: tuple[bool, ...]


def names_of(columns: Iterable[Expression]) -> list[str]:
    """Names of a head's columns, after the variables that they show."""
    return usable_names(
        of.name if isinstance(of, Variable) else f"c{number}" for number, of in enumerate(columns, 1)
    )


def determined(body: Body, by: Iterable[Expression], shapes: Mapping[str, Shape]) -> bool:
    """Whether no two assignments agree in what ``by`` says.

    An atom whose key is known says all its variables, and what they are equal to.
    """
    return decided(body, by, shapes)[1]


def decided(body: Body, by: Iterable[Expression], shapes: Mapping[str, Shape]) -> tuple[set[int], bool]:
    """The variables whose values ``by`` decides, and whether it decides all of the body."""
    same: list[tuple[int, int]] = []
    known: set[int] = {one.number for one in by if isinstance(one, Variable)}
    for test in body.tests:
        if isinstance(test, Compare) and test.operator in ("=", "<=>"):
            left, right = test.left, test.right
            if isinstance(left, Variable) and isinstance(right, Variable):
                same.append((left.number, right.number))
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Variable) and isinstance(other, Constant):
                    known.add(one.number)
    waiting = list(body.atoms)
    while True:
        before = len(waiting), len(known)
        for pair in same:
            if not known.isdisjoint(pair):
                known.update(pair)
        left_over = []
        for atom in waiting:
            key = shapes[atom.relation].key
            terms = dict(atom.terms)
            if key is not None and all(name in terms and terms[name].number in known for name in key):
                known |= {variable.number for variable in terms.values()}
            else:
                left_over.append(atom)
        waiting = left_over
        if not waiting or before == (len(waiting), len(known)):
            return known, not waiting and known.issuperset(one.number for one in generated(body))


def generated(body: Body) -> list[Variable]:
    """What no atom says, but a list."""
    return [test.element for test in body.tests if isinstance(test, Member)]


def one_each(bag: Bag, keys: Sequence[Expression], shapes: Mapping[str, Shape]) -> bool:
    """Whether no two rows agree in what the keys, over the columns, say."""
    values = [[over(key, body.columns) for key in keys] for body in bag]
    each = all(determined(body, by, shapes) for body, by in zip(bag, values, strict=True))
    return each and separate(bag, values, shapes)


def separate(bag: Bag, values: Sequence[Sequence[Expression]], shapes: Mapping[str, Shape]) -> bool:
    """Whether no rows of two bodies agree in the values of these expressions.

    So it is with the two sides of an outer join, where the values decide whether there is a partner.
    """
    pairs = itertools.combinations(zip(bag, values, strict=True), 2)
    return all(_are_separate(*one, *other, shapes) for one, other in pairs)


def _are_separate(
    one: Body,
    by: Sequence[Expression],
    other: Body,
    others: Sequence[Expression],
    shapes: Mapping[str, Shape],
) -> bool:
    both = Body(
        tuple(atom for atom in one.atoms if atom in other.atoms),
        tuple(test for test in one.tests if test in other.tests),
    )
    known, _ = decided(both, (value for value, same in zip(by, others, strict=True) if value == same), shapes)
    conditions = [condition for condition, side in one.sides if (condition, not side) in other.sides]
    return any(known.issuperset(of.number for of in variables(condition)) for condition in conditions)


# -- conditions with EXISTS ------------------------------------------------------------------------


def apart(body: Body) -> Bag:
    """The body, with alternatives for each outcome of EXISTS in its values.

    An atom is a literal of a rule, not a value: where a value needs to know, there is one rule for each.
    """
    values = (*body.columns, *(value for test in body.tests for value in _values_in(test)))
    found = next((one for value in values for one in walked(value) if isinstance(one, Exists)), None)
    if found is None:
        return [body]
    bag: Bag = []
    for outcome, test in ((TRUE, found), (FALSE, Not(found))):
        for chosen in _with_outcome(body, found, outcome):
            for kept in chosen.where(test):
                bag += apart(kept)
    return bag


def _values_in(test: Expression) -> Iterator[Expression]:
    """The parts of a test that are values, and no literals of a rule."""
    if isinstance(test, Logic | Not):
        for part in children(test):
            yield from _values_in(part)
    elif not isinstance(test, Exists):
        yield test


def _with_outcome(body: Body, found: Exists, outcome: Constant) -> Bag:
    def change(one: Expression) -> Expression | None:
        return outcome if one == found else None

    known = replace(body, sides=()).mapped(change)
    return replace(known, tests=(), sides=body.sides).where(*known.tests)
