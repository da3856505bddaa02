"""Rules of a head, each with what a cell evaluates of it (:mod:`spark_bridge.placing.head_plan`).

Invariants

1. Axes are variables that a positive atom of *every* body of the rule binds, so that an
   assignment, also one that several alternatives have in common, is found in one cell.
2. The value of a functional atom is no axis: both tuples of a conflict meet in a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lftj.aggregates.whole import argument_names
from lftj.evaluation.products import product_warning
from lftj.evaluation.wanted import wanted_variables
from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.strata import atoms_of
from lftj.language.syntax import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Head,
    Literal,
    Program,
    Rule,
    Variable,
)
from lftj.values.literals import NULL
from lftj.values.schema import ColumnType
from spark_bridge.placing.shares import Read

Axes = tuple[tuple[int, str], ...]
"""Columns of a relation and the axis that each holds."""

Marks = Mapping[str, str]
"""What a grid does with an axis: CUT, or it is not cut and takes HEAVY or LIGHT values only; else nothing."""

CUT, HEAVY, LIGHT = "", " heavy", " light"

_HIDDEN = ("now()", "now")  # a workspace's own relations have it in their names


@dataclass(frozen=True)
class Role:
    """An atom: the relation that it reads, and at which columns it has which axes."""

    relation: str
    arity: int
    axes: Axes

    def placement(self, marks: Marks) -> Placement:
        """What this atom reads in the cells of a grid."""
        axes = tuple((column, name, marks[name]) for column, name in self.axes if name in marks)
        return Placement(self.relation, self.arity, axes)


@dataclass(frozen=True)
class Placement:
    """Tuples of a relation, chosen and sent by the marked columns.

    >>> Placement("edge", 3, ((0, "a", CUT), (2, "b", HEAVY))).label
    'edge(a, _, b heavy)'
    """

    relation: str
    arity: int
    axes: tuple[tuple[int, str, str], ...]  # column, axis, mark

    @property
    def label(self) -> str:
        """Its name in a cell's program: as the atom would be written, ``_`` for columns without mark."""
        names = {column: name + mark for column, name, mark in self.axes}
        relation = self.relation.replace(*_HIDDEN)
        return f"{relation}({', '.join(names.get(column, '_') for column in range(self.arity))})"


def _typed(test: Comparison, names: set[str]) -> Comparison:
    """What sets one of some variables to null gives it a type, which is any: null is cast to the head's."""
    sides = [test.left, test.right]
    if test.operator != "=" or not any(isinstance(side, Variable) and side.name in names for side in sides):
        return test
    null = Call("cast", (Constant(NULL), Constant("int64")))
    left, right = (null if _is_null(side) else side for side in sides)
    return replace(test, left=left, right=right)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value is NULL


def cell_name(relation: str) -> str:
    """What a cell calls a head, or recent rows of a stream: nothing that its workspace hides.

    >>> cell_name("stats#of1"), cell_name("trade from now() - 5")
    ('stats of1', 'trade from now - 5')
    """
    return relation.replace("#", " ").replace(*_HIDDEN)


@dataclass(frozen=True)
class HeadRule:
    """A rule, one of its heads, and how both are evaluated in cells."""

    syntax: Rule  # of the rule with this head alone
    text: str
    checked: CheckedRule
    heads: tuple[CheckedHead, ...]  # the head; of one with aggregates among its terms, one for each of them
    axes: tuple[str, ...]
    roles: tuple[Role, ...]

    @property
    def aggregates(self) -> bool:
        return isinstance(self.heads[0].value, Aggregate)

    @property
    def keys(self) -> tuple[str, ...]:
        """Of an aggregate head: the variables that make its groups."""
        return self.heads[0].variables

    @property
    def weighed(self) -> tuple[str, ...]:
        """Of an aggregate head: keys and arguments, the columns of what a cell counts."""
        names = list(self.keys)
        for head in self.heads:
            assert isinstance(head.value, Aggregate)
            names += argument_names(head.value)
        return tuple(dict.fromkeys(names))

    @property
    def types(self) -> dict[str, ColumnType]:
        """Of the variables that every body binds; where these give one several types, their common one."""
        first, *others = [body.types for body in self.checked.bodies]
        types = {name: type_ for name, type_ in first.items() if all(name in other for other in others)}
        for other in others:
            for name, type_ in types.items():
                types[name] = type_.joined(other[name]) or type_
        return types

    @property
    def texts(self) -> tuple[str, ...]:
        """What is evaluated, as it was written."""
        return (self.checked.text,)

    @property
    def written(self) -> tuple[Rule, ...]:
        """What is evaluated, as rules."""
        return (self.syntax,)

    def products(self) -> list[str]:
        """What to say of parts of its bodies that share no variable."""
        warnings = (
            product_warning(self.checked, body, wanted_variables(head), self.aggregates)
            for head in self.heads
            for body in self.checked.bodies
        )
        return [warning for warning in dict.fromkeys(warnings) if warning]

    def reads(self, rows: Mapping[str, float]) -> list[Read]:
        """The atoms as the choice of shares sees them; ``rows`` by relation."""
        return [Read(role.relation, rows[role.relation], role.axes) for role in self.roles]

    def placements(self, marks: Marks) -> tuple[Placement, ...]:
        """What is sent to the cells of a grid, each once."""
        return tuple(dict.fromkeys(role.placement(marks) for role in self.roles))

    def program(self, marks: Marks) -> Program:
        """What a cell of a grid evaluates."""
        (head,) = self.syntax.heads
        if self.aggregates:
            columns = tuple(Variable(name, head.span) for name in self.weighed)
            head = Head(head.relation, columns, Aggregate("count", (), head.span), head.span, head.name_span)
        head = replace(head, relation=cell_name(head.relation))
        body = tuple(self._placed(literal, marks) for literal in (*self.syntax.body, *self._known()))
        return Program((replace(self.syntax, heads=(head,), body=body),), self.text)

    def _known(self) -> tuple[Comparison, ...]:
        """Tests of what the aggregates of the rule read, be it for another head, and may be NULL."""
        calls = [head.value for head in self.checked.heads if isinstance(head.value, Aggregate)]
        read = {name for call in calls for name in argument_names(call)}
        tests = (test for body in self.checked.bodies for test in body.comparisons if test.tests_null)
        left_out = (
            test
            for test in tests
            if test.operator == "<!=>" and isinstance(test.left, Variable) and test.left.name in read
        )
        return tuple(dict.fromkeys(left_out))

    def _placed(self, literal: Literal, marks: Marks) -> Literal:
        if isinstance(literal, Disjunction):
            alternatives = tuple(
                tuple(self._placed(one, marks) for one in alternative) for alternative in literal.alternatives
            )
            return replace(literal, alternatives=alternatives)
        if isinstance(literal, Atom):
            return replace(
                literal, relation=role_of(literal, {axis: axis for axis in self.axes}).placement(marks).label
            )
        return _typed(literal, self._null)

    @property
    def _null(self) -> set[str]:
        """The variables that every body sets to null: other rules of the head give them a type."""
        set_to_null = (
            {one.variable for one in body.assignments if _is_null(one.expression)}
            for body in self.checked.bodies
        )
        return set.intersection(*set_to_null)


def axes_of(rule: Rule, checked: CheckedRule) -> tuple[str, ...]:
    """The variables that may be cut (invariants 1 and 2), in the order of first occurrence."""
    common = checked.bodies[0].atom_variables()
    for body in checked.bodies[1:]:
        common = [name for name in common if name in body.atom_variables()]
    values = {
        atom.terms[-1].name
        for atom in atoms_of(rule.body)
        if atom.functional and isinstance(atom.terms[-1], Variable)
    }
    named = {term.name for atom in atoms_of(rule.body) for term in atom.terms if isinstance(term, Variable)}
    return tuple(name for name in common if name not in values and name in named)


def role_of(atom: Atom, axes: Mapping[str, str]) -> Role:
    """What an atom reads; ``axes``: by variable, what the axis is called."""
    first: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if isinstance(term, Variable) and term.name in axes:
            first.setdefault(axes[term.name], column)
    return Role(atom.relation, len(atom.terms), tuple((column, name) for name, column in first.items()))
