"""One conjunction against the data: every variable bound, of one domain, and compared with its like.

What a conjunction fails to bind although another alternative of the same
disjunction binds it is reported at the alternative; what nothing binds, at the
variable.

NULL equals nothing and is less than nothing.  So a variable that joins, or that a comparison, an assignment,
a negated atom or an aggregate reads, is never NULL: where its columns, or what it is computed by, may give
one, the body gets a test ``x is not null``.  What is left can be NULL, and stands in plain columns of heads,
in ``x is null`` and in expressions that know of NULL (:mod:`lftj.language.conditionals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lftj.errors import RuleError, TypeClashError, UnboundVariableError, UnsafeNegationError
from lftj.language.body import Assignment, Body
from lftj.language.conditionals import gives_null, read_strictly
from lftj.language.diagnostics import error_at
from lftj.language.expressions import comparison_types, result_type, text_of, variables_of
from lftj.language.folding import fold
from lftj.language.normal_form import Conjunction, order_assignments
from lftj.language.syntax import Atom, Comparison, Constant, Span, Variable
from lftj.values.comparisons import comparable
from lftj.values.domains import Domains
from lftj.values.kinds import plain_type
from lftj.values.literals import NULL
from lftj.values.schema import Column, ColumnType, Schema


class BodyChecker:
    """Checks the conjunctions of one rule's body.

    ``schema_of``: the schema of a relation that exists.  ``aggregated``: variables that aggregates of the
    rule's heads read.
    """

    def __init__(
        self,
        text: str,
        domains: Domains,
        schema_of: Callable[[str], Schema],
        parts: Sequence[Conjunction],
        aggregated: Collection[str] = (),
    ) -> None:
        self._text = text
        self._domains = domains
        self._schema_of = schema_of
        self._parts = parts
        self._aggregated = aggregated
        self._split = [order_assignments(part.comparisons, atom_variables(part)) for part in parts]
        self._bound = [
            atom_variables(part) | {assignment.variable for assignment in assignments}
            for part, (assignments, _) in zip(parts, self._split, strict=True)
        ]

    def bodies(self) -> list[Body]:
        """The checked conjunctions.  Raises a :class:`~lftj.errors.RuleError` at the first mistake."""
        return [self._body(number) for number in range(len(self._parts))]

    def require(self, variable: Variable, needed_by: str) -> None:
        """Refuse a variable that some conjunction does not bind; ``needed_by``: "head 'a' needs"."""
        for number in range(len(self._parts)):
            self._require(variable, number, needed_by, UnboundVariableError)

    def _require(self, variable: Variable, number: int, needed_by: str, error: type[RuleError]) -> None:
        if variable.name in self._bound[number]:
            return
        alternative = self._to_blame(variable.name, number)
        if alternative is not None:
            raise error_at(
                error,
                self._text,
                alternative,
                f"this alternative does not bind '{variable.name}', which {needed_by}",
            )
        hint = "; write _ for any value" if error is UnsafeNegationError else ""
        raise error_at(
            error,
            self._text,
            variable.span,
            f"'{variable.name}', which {needed_by}, is bound by no positive atom or assignment{hint}",
        )

    def _to_blame(self, name: str, number: int) -> Span | None:
        """The innermost alternative that the conjunction took where another one would bind the variable."""
        choices = self._parts[number].choices
        binding = [
            part.choices for part, bound in zip(self._parts, self._bound, strict=True) if name in bound
        ]
        for place in reversed(range(len(choices))):
            # One that made the same choices up to here bound the variable by another one here.
            if any(other[:place] == choices[:place] for other in binding):
                return choices[place].span
        return None

    def _body(self, number: int) -> Body:
        part = self._parts[number]
        assignments, tests = self._split[number]
        for atom in part.negations:
            for term in atom.terms:
                if isinstance(term, Variable):
                    needed_by = f"the negated atom '{atom.relation}' tests"
                    self._require(term, number, needed_by, UnsafeNegationError)
        for test in tests:
            for variable in (*variables_of(test.left), *variables_of(test.right)):
                self._require(variable, number, "the comparison needs", UnboundVariableError)
        if not part.atoms:
            raise self._no_atom_error(part)
        typing = _Typing(self._text, self._domains, self._schema_of)
        for atom in part.atoms:
            typing.add_atom(atom)
        for assignment in assignments:
            typing.add_assignment(assignment)
        for atom in part.negations:
            typing.add_atom(atom)
        for test in tests:
            typing.check_comparison(test)
        added = self._tests_of_null(part, assignments, tests, typing.types)
        for test in (*tests, *added):
            if test.tests_null and test.operator == "!=":
                (variable,) = variables_of(test.left)
                typing.types[variable.name] = replace(typing.types[variable.name], nullable=False)
        return Body(part.atoms, part.negations, (*tests, *added), tuple(assignments), typing.types)

    def _tests_of_null(
        self,
        part: Conjunction,
        assignments: Sequence[Assignment],
        tests: Sequence[Comparison],
        types: Mapping[str, ColumnType],
    ) -> list[Comparison]:
        """Tests of the variables that would be NULL where NULL is no value."""
        places = Counter(variable.name for atom in part.atoms for variable in _variables(atom))
        read = {name for name, count in places.items() if count > 1}.union(self._aggregated)
        read.update(variable.name for atom in part.negations for variable in _variables(atom))
        expressions = [assignment.expression for assignment in assignments]
        expressions += [side for test in tests if not test.tests_null for side in (test.left, test.right)]
        read = read.union(*map(read_strictly, expressions))
        computed = (assignment.variable for assignment in assignments)
        return [
            Comparison("!=", Variable(name), Constant(NULL))
            for name in dict.fromkeys((*places, *computed))
            if name in read and types[name].nullable
        ]

    def _no_atom_error(self, part: Conjunction) -> RuleError:
        spans = [atom.span for atom in part.negations] + [test.span for test in part.comparisons]
        written = sorted(spans)
        return error_at(
            RuleError,
            self._text,
            (written[0][0], written[-1][1]),
            "a body needs at least one positive atom",
        )


def atom_variables(part: Conjunction) -> set[str]:
    """Names bound by the conjunction's positive atoms."""
    return {variable.name for atom in part.atoms for variable in _variables(atom)}


def _variables(atom: Atom) -> list[Variable]:
    return [term for term in atom.terms if isinstance(term, Variable)]


class _Typing:
    """Types of one conjunction's variables, as they become known."""

    def __init__(self, text: str, domains: Domains, schema_of: Callable[[str], Schema]) -> None:
        self.types: dict[str, ColumnType] = {}
        self._text = text
        self._domains = domains
        self._schema_of = schema_of
        self._origins: dict[str, str] = {}  # what a message calls the variable
        self._computed: set[str] = set()

    def add_atom(self, atom: Atom) -> None:
        """Give the atom's new variables their types; check its other terms against its columns."""
        for term, column in zip(atom.terms, self._schema_of(atom.relation).columns, strict=True):
            place = f"{atom.relation}.{column.name}"
            if isinstance(term, Constant):
                self._check_literal(term, column.type, f"{place} is of type {plain_type(column.type.arrow)}")
            elif isinstance(term, Variable):
                self._add(term, column, place, atom.negated)

    def _add(self, variable: Variable, column: Column, place: str, negated: bool) -> None:
        name = variable.name
        known = self.types.setdefault(name, column.type)
        origin = self._origins.setdefault(name, place)
        if known.domain is column.type.domain:
            if known.nullable and not column.type.nullable and not negated:
                self.types[name] = replace(known, nullable=False)
            return
        message = (
            f"'{name}' is {origin} of type {plain_type(known.arrow)} "
            f"and {place} of type {plain_type(column.type.arrow)}: they can't be joined"
        )
        if comparable(known.arrow, column.type.arrow):
            message += f", only compared ({name} = {name}2)"
        raise error_at(TypeClashError, self._text, variable.span, message)

    def add_assignment(self, assignment: Assignment) -> None:
        """Type the assigned variable by its expression."""
        try:
            arrow = result_type(assignment.expression, self._arrow_types())
            nullable = gives_null(assignment.expression, self._nullable())
            type_ = ColumnType(self._domains.of(arrow), arrow, nullable)
        except TypeClashError as error:
            raise self._located(error, assignment.span) from None
        self.types[assignment.variable] = type_
        self._computed.add(assignment.variable)
        self._origins[assignment.variable] = text_of(assignment.expression)

    def check_comparison(self, comparison: Comparison) -> None:
        if comparison.tests_null:
            self._check_may_be_null(comparison)
            return
        left, right = fold(comparison.left), fold(comparison.right)
        for side, other in ((left, right), (right, left)):
            if isinstance(side, Variable) and isinstance(other, Constant):
                self._check_literal(other, self.types[side.name], f"'{side.name}' is {self._named(side)}")
        try:
            comparison_types(comparison, self._arrow_types())
        except TypeClashError as error:
            if isinstance(left, Variable) and isinstance(right, Variable):
                error = TypeClashError(
                    f"'{left.name}' is {self._named(left)} and '{right.name}' is {self._named(right)}: "
                    "they can't be compared",
                    error.span,
                )
            raise self._located(error, comparison.span) from None

    def _check_may_be_null(self, test: Comparison) -> None:
        (variable,) = variables_of(test.left)
        if variable.name in self._computed and not self.types[variable.name].nullable:
            message = f"'{variable.name}' is computed, so it is never NULL: test what it is computed from"
            raise error_at(RuleError, self._text, test.span, message)

    def _named(self, variable: Variable) -> str:
        return f"{self._origins[variable.name]} of type {plain_type(self.types[variable.name].arrow)}"

    def _check_literal(self, literal: Constant, type_: ColumnType, what: str) -> None:
        try:
            type_.domain.encode_constant(literal.value)
        except TypeClashError:
            raise error_at(
                TypeClashError,
                self._text,
                literal.span,
                f"{what}: it can't be compared with {text_of(literal)}",
            ) from None

    def _located(self, error: TypeClashError, span: Span) -> TypeClashError:
        return error_at(TypeClashError, self._text, error.span or span, str(error))

    def _nullable(self) -> set[str]:
        return {name for name, type_ in self.types.items() if type_.nullable}

    def _arrow_types(self) -> Mapping[str, pa.DataType]:
        return {name: type_.arrow for name, type_ in self.types.items()}
