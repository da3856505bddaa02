"""Checked rules in normal form: what the checker hands to the evaluation.

Invariants

1. A rule's ``bodies`` are its body in disjunctive normal form: each is a
   conjunction without disjunctions; the rule's result is their union.
2. In each body every variable of a negated atom, comparison, assignment
   source or head is bound by a positive atom or by an earlier assignment.
3. All positions at which a variable stands have the same domain object.
4. Strata are in evaluation order: a relation's rules stand in a stratum after
   those of every relation that they read, but for relations of the same recursive
   component (:mod:`lftj.language.strata`), whose rules all stand in one stratum.
5. A rule, head or body is equal to itself alone: it stands for its place in a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from lftj.language.syntax import (
    Aggregate,
    Atom,
    Comparison,
    Expression,
    Program,
    Span,
    Variable,
    Window,
    extremum_of,
)
from lftj.values.schema import ColumnType, Schema

MAX_ROUNDS = 1_000_000
"""Rounds of a recursion that give new tuples, unless the caller says how many."""


@dataclass(frozen=True)
class Assignment:
    """``variable = expression``, where no positive atom binds the variable.

    ``each``: the variable is each element of a list in turn, ``variable in expression``, but for NULL and
    NaN, and equal ones once.
    """

    variable: str
    expression: Expression
    span: Span = field(default=(0, 0), compare=False)
    each: bool = False

    @property
    def sign(self) -> str:
        return "in" if self.each else "="


@dataclass(frozen=True, eq=False)
class Body:
    """One conjunction."""

    atoms: tuple[Atom, ...]  # positive, in the order of writing
    negations: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]
    assignments: tuple[Assignment, ...]  # in evaluation order
    types: dict[str, ColumnType]  # of every named variable bound in this body

    @property
    def generated(self) -> frozenset[str]:
        """The variables that have several values for one binding of those in atoms."""
        return frozenset(one.variable for one in self.assignments if one.each)

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations that it reads, each once."""
        return tuple(dict.fromkeys(atom.relation for atom in (*self.atoms, *self.negations)))

    def atom_variables(self) -> list[str]:
        """Names bound by positive atoms, in the order of first occurrence."""
        seen: dict[str, None] = {}
        for atom in self.atoms:
            for term in atom.terms:
                if isinstance(term, Variable):
                    seen.setdefault(term.name)
        return list(seen)


@dataclass(frozen=True, eq=False)
class CheckedHead:
    """A head with its output schema.

    ``schema.columns`` has the value column last, if there is one; of a bag, the numbers of copies.
    """

    relation: str
    variables: tuple[str, ...]  # key variables, in the order of writing
    value: str | Aggregate | None
    schema: Schema
    span: Span
    windows: tuple[Window, ...] = ()
    """Of the last columns, behind the variables; of one partition and order."""
    copies: str | None = None
    """Of a bag, how often an assignment gives a tuple: a variable of the body; None: once."""

    @property
    def aggregates_rows(self) -> bool:
        """Whether its tuples depend on how many assignments stand behind each row."""
        return isinstance(self.value, Aggregate) or bool(self.windows) or self.schema.bag

    @property
    def extremum(self) -> str | None:
        """``"min"`` or ``"max"`` where its value is that; else None."""
        return extremum_of(self.value)

    @property
    def columns(self) -> tuple[str, ...]:
        """The body's variable of each column: where a head's value is an extremum, its argument's."""
        if isinstance(self.value, Aggregate):
            (argument,) = self.value.arguments
            assert isinstance(argument, Variable) and self.extremum
            return (*self.variables, argument.name)
        return (*self.variables, *([self.value] if self.value is not None else []))


@dataclass(frozen=True, eq=False)
class CheckedRule:
    heads: tuple[CheckedHead, ...]
    bodies: tuple[Body, ...]
    text: str  # the rule's own text, for messages
    span: Span


class ViewCosts(NamedTuple):
    """Operations per changed row of an atom, by the model of the rewriting: by views, and without."""

    by_views: float
    without: float


Source = tuple[str, int]
"""A column of a relation, by name and number."""


@dataclass(frozen=True)
class Guard:
    """A body of which all that it computes has to fit its types, for all values of its columns.

    ``sources``: by variable of an expression, the columns in which it stands (:mod:`lftj.rewriting.guard`).
    """

    body: Body
    sources: Mapping[str, tuple[Source, ...]]

    @property
    def columns(self) -> frozenset[Source]:
        """All of whose values it depends."""
        return frozenset(source for some in self.sources.values() for source in some)


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a program: ``results``, for which it keeps ``others``, as the user named them.

    ``whole``: the program as written, which evaluates no head for some keys only.  ``choices``: by which it
    comes out again as it is, as JSON has them.
    """

    results: tuple[str, ...]
    others: frozenset[str]
    whole: CheckedProgram
    choices: Mapping[str, Any]


@dataclass(frozen=True)
class CheckedProgram:
    """``strata``: lists of rules in evaluation order.  ``derived``: schema of every head relation.

    ``components``: relations that depend on each other and themselves, in evaluation order.
    Among the first two are auxiliary heads (:mod:`lftj.language.several_aggregates`).
    ``tree``: the program as it was written, all columns by place (:mod:`lftj.language.by_name`).
    """

    strata: tuple[tuple[CheckedRule, ...], ...]
    derived: dict[str, Schema]
    text: str
    tree: Program

    @property
    def result(self) -> tuple[str, ...]:
        """Head relations of the last rule as written."""
        return self.last_heads

    last_heads: tuple[str, ...] = ()
    components: tuple[tuple[str, ...], ...] = ()
    written: CheckedProgram | None = None
    """The program of which rules were rewritten into this one (:mod:`lftj.rewriting`), if so."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What the rewriting has to say of a head."""
    demand: Mapping[str, str] = field(default_factory=dict)
    """Of heads that are read with bound keys: for which they are evaluated (:mod:`lftj.rewriting.demand`)."""
    view_costs: Mapping[str, ViewCosts] = field(default_factory=dict)
    """Of heads with views."""
    guards: Mapping[str, Guard] = field(default_factory=dict)
    """Of heads that have views as long as what they compute fits, whether they have some now or not."""
    wide_views: bool = False
    """Whether its partial sums of whole numbers hold 128 bits."""
    wanted: Wanted | None = None
    """Where some of its heads are wanted, and others kept for them (:mod:`lftj.rewriting.wanted_heads`)."""

    @property
    def as_written(self) -> CheckedProgram:
        return self if self.written is None else self.written

    def component_of(self, name: str) -> tuple[str, ...]:
        """The relations that are evaluated together with a recursive one; none for any other."""
        return next((component for component in self.components if name in component), ())

    def rules_of(self, name: str) -> list[tuple[CheckedRule, CheckedHead]]:
        """The rules of a head, in evaluation order, each with that head of it."""
        return self._rules.get(name, [])

    def read_by(self, name: str) -> set[str]:
        """The derived relations that a head depends on, directly or not."""
        found: set[str] = set()
        todo = [name]
        while todo:
            for rule, _ in self.rules_of(todo.pop()):
                for read in (read for body in rule.bodies for read in body.relations):
                    if read in self.derived and read not in found:
                        found.add(read)
                        todo.append(read)
        return found

    @cached_property
    def _rules(self) -> dict[str, list[tuple[CheckedRule, CheckedHead]]]:
        found: dict[str, list[tuple[CheckedRule, CheckedHead]]] = {}
        for rule in (rule for stratum in self.strata for rule in stratum):
            for head in rule.heads:
                found.setdefault(head.relation, []).append((rule, head))
        return found
