"""One conjunction against the data: every variable bound, of one domain, and compared with its like.

What a conjunction fails to bind although another alternative of the same
disjunction binds it is reported at the alternative; what nothing binds, at the
variable.

NULL equals nothing and is less than nothing.  So a variable that joins, or that a comparison, an assignment,
a negated atom or an aggregate reads, is never NULL: where its columns, or what it is computed by, may give
one, the body gets a test ``x is not null``.  What is left can be NULL, and stands in plain columns of heads,
on the sides of ``<=>``, behind it in an atom, and in expressions that know of NULL
(:mod:`lftj.language.conditionals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from lftj.errors import RuleError, TypeClashError, UnboundVariableError, UnsafeNegationError
from lftj.language.body import Assignment, Body
from lftj.language.conditionals import gives_null, may_be_null, read_strictly
from lftj.language.diagnostics import error_at
from lftj.language.expressions import comparison_types, result_type, text_of, variables_of
from lftj.language.folding import fold
from lftj.language.normal_form import Conjunction, order_assignments
from lftj.language.several_aggregates import holds_groups
from lftj.language.syntax import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Expression,
    Head,
    Span,
    Variable,
    aggregated_variables,
    extremum_of,
)
from lftj.language.ways_out import as_joined, as_literal
from lftj.values.binding import string_type
from lftj.values.comparisons import comparable
from lftj.values.domains import Domains
from lftj.values.kinds import kind, plain_type
from lftj.values.literals import NULL
from lftj.values.schema import Column, ColumnType, Schema


class BodyChecker:
    """Checks the conjunctions of one rule's body.

    ``schema_of``: the schema of a relation that exists.  ``heads``: those of the rule whose aggregates read
    variables of the body.
    """

    def __init__(
        self,
        text: str,
        domains: Domains,
        schema_of: Callable[[str], Schema],
        parts: Sequence[Conjunction],
        heads: Sequence[Head] = (),
    ) -> None:
        self._text = text
        self._domains = domains
        self._schema_of = schema_of
        self._parts = parts
        self._elsewhere: dict[str, ColumnType] = {}  # types of variables in other conjunctions
        self._aggregated = aggregated_variables(heads)
        calls = [call for head in heads for call in head.aggregates]
        self._fed = _read_by(calls)
        self._typed = _read_by([call for call in calls if extremum_of(call) is None])
        self._split = [order_assignments(part.comparisons, atom_variables(part)) for part in parts]
        self._bound = [
            atom_variables(part) | {assignment.variable for assignment in assignments}
            for part, (assignments, _) in zip(parts, self._split, strict=True)
        ]

    def bodies(self) -> list[Body]:
        """The checked conjunctions.  Raises a :class:`~lftj.errors.RuleError` at the first mistake.

        Those with literals come last: what another alternative gives a variable is the literal's type.
        """
        numbers = range(len(self._parts))
        order = sorted(numbers, key=lambda number: any(map(_literal, self._split[number][0])))
        found = {number: self._body(number) for number in order}
        return [found[number] for number in numbers]

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
        typing = _Typing(self._text, self._domains, self._schema_of, self._elsewhere)
        for atom in part.atoms:
            typing.add_atom(atom)
        for assignment in assignments:
            typing.add_assignment(assignment)
        for atom in part.negations:
            typing.add_atom(atom)
        for test in tests:
            typing.check_comparison(test)
        for name, type_ in typing.types.items():
            if not type_.literal:
                self._elsewhere.setdefault(name, type_)
        self._settle_literals(typing.types, assignments, [*tests, *part.negations])
        added = self._tests_of_null(part, assignments, tests, typing.types)
        for test in (*tests, *added):
            if test.tests_null and test.operator == "<!=>" and isinstance(test.left, Variable):
                name = test.left.name
                typing.types[name] = replace(typing.types[name], nullable=False)
        return Body(part.atoms, part.negations, (*tests, *added), tuple(assignments), typing.types)

    def _settle_literals(
        self,
        types: dict[str, ColumnType],
        assignments: Sequence[Assignment],
        readers: Sequence[Comparison | Atom],
    ) -> None:
        """Let heads decide the types of those literals alone that nothing else reads."""
        for one in assignments:
            if one.variable in self._fed:
                self._refuse_untyped(one.variable, one.span, types)
        read = {one.variable: one.span for one in assignments if one.variable in self._typed}
        for reader in (*readers, *(assignment.expression for assignment in assignments)):
            if isinstance(reader, Atom):
                variables = _variables(reader)
            elif isinstance(reader, Comparison):
                variables = [*variables_of(reader.left), *variables_of(reader.right)]
            else:
                variables = variables_of(reader)
            read |= {variable.name: variable.span for variable in variables}
        for name, span in read.items():
            self._refuse_untyped(name, span, types)
            types[name] = replace(types[name], literal=False)

    def _refuse_untyped(self, name: str, span: Span, types: Mapping[str, ColumnType]) -> None:
        if types[name].arrow == pa.null():
            way_out = 'write null or cast(null, "int64") in its place'
            message = f"'{name}' is null, which has no type here: {way_out}"
            raise error_at(TypeClashError, self._text, span, message)

    def _tests_of_null(
        self,
        part: Conjunction,
        assignments: Sequence[Assignment],
        tests: Sequence[Comparison],
        types: Mapping[str, ColumnType],
    ) -> list[Comparison]:
        """Tests of the variables that would be NULL where NULL is no value."""
        stands = [variable for atom in part.atoms for variable in _strictly(atom)]
        read = {name for name, count in Counter(stands).items() if count > 1}.union(self._aggregated)
        read.update(name for atom in part.negations for name in _strictly(atom))
        expressions = [assignment.expression for assignment in assignments]
        expressions += [side for test in tests if not test.is_null_safe for side in (test.left, test.right)]
        read = read.union(*map(read_strictly, expressions))
        computed = (assignment.variable for assignment in assignments)
        return [
            Comparison("<!=>", Variable(name), Constant(NULL))
            for name in dict.fromkeys((*(v.name for atom in part.atoms for v in _variables(atom)), *computed))
            if name in read and types[name].nullable
        ]


def atom_variables(part: Conjunction) -> set[str]:
    """Names bound by the conjunction's positive atoms."""
    return {variable.name for atom in part.atoms for variable in _variables(atom)}


def _read_by(calls: Sequence[Aggregate]) -> set[str]:
    """The variables that aggregates read."""
    return {one.name for call in calls for one in call.arguments if isinstance(one, Variable)}


def _element_type(assignment: Assignment, arrow: pa.DataType) -> pa.DataType:
    """Of the elements of lists of a type; text is computed as one that is not encoded."""
    lists = plain_type(arrow)
    if kind(lists) != "list":
        lists_of = text_of(assignment.expression)
        message = f"'{assignment.variable} in {lists_of}' takes lists, and {lists_of} is of type {lists}"
        raise TypeClashError(message)
    element = plain_type(lists.value_type)
    return string_type(element) if kind(element) == "string" else element


def _literal(assignment: Assignment) -> bool:
    """Whether this gives a variable a value that may be of several types."""
    constant = fold(assignment.expression)
    return isinstance(constant, Constant) and isinstance(constant.value, Decimal | type(NULL))


def _strictly(atom: Atom) -> list[str]:
    """The variables of an atom that are not NULL where they join; in groups NULL is one, too."""
    groups = holds_groups(atom.relation)
    return [variable.name for variable in _variables(atom) if not (groups or variable.null_safe)]


def _variables(atom: Atom) -> list[Variable]:
    return [term for term in atom.terms if isinstance(term, Variable)]


class _Typing:
    """Types of one conjunction's variables, as they become known."""

    def __init__(
        self,
        text: str,
        domains: Domains,
        schema_of: Callable[[str], Schema],
        elsewhere: Mapping[str, ColumnType],
    ) -> None:
        """``elsewhere``: types that variables have in other alternatives."""
        self.types: dict[str, ColumnType] = {}
        self._elsewhere = elsewhere
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
                self._refuse_null(term, f"write a variable x here, and 'x is null' beside '{atom.relation}'")
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
        else:
            message += as_joined(name, known.arrow, column.type.arrow)
        raise error_at(TypeClashError, self._text, variable.span, message)

    def add_assignment(self, assignment: Assignment) -> None:
        """Type the assigned variable by its expression."""
        try:
            arrow = result_type(assignment.expression, self._arrow_types())
            nullable = gives_null(assignment.expression, self._nullable())
            if assignment.each:
                arrow, nullable = _element_type(assignment, arrow), False
            literal = _literal(assignment)
            domain = self._domains.of(pa.int64() if arrow == pa.null() else arrow)
            type_ = ColumnType(domain, arrow, nullable, literal)
            elsewhere = self._elsewhere.get(assignment.variable)
            if literal and elsewhere is not None:
                type_ = replace(type_.joined(elsewhere) or type_, nullable=nullable)
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
        for side, other in ((left, comparison.right), (right, comparison.left)):
            self._refuse_null(side, f"ask '{text_of(other)} is null'")
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
        tested, loaded = test.left, {name for name in self.types if name not in self._computed}
        if (
            isinstance(tested, Call)
            and tested.function == "coalesce"
            and tested.arguments[-1] == Constant(NULL)
        ):
            return  # written by who knows of NULL: coalesce(x, null)
        if not may_be_null(tested, loaded | self._nullable()):
            message = f"'{text_of(tested)}' is computed, so it is never NULL: test what it is computed from"
            raise error_at(RuleError, self._text, test.span, message)

    def _named(self, variable: Variable) -> str:
        return f"{self._origins[variable.name]} of type {plain_type(self.types[variable.name].arrow)}"

    def _check_literal(self, literal: Constant, type_: ColumnType, what: str) -> None:
        try:
            type_.domain.encode_constant(literal.value)
        except TypeClashError:
            way_out = as_literal(literal.value, type_.arrow)
            message = f"{what}: it can't be compared with {text_of(literal)}{way_out}"
            raise error_at(TypeClashError, self._text, literal.span, message) from None

    def _refuse_null(self, side: Expression, way_out: str) -> None:
        if isinstance(side, Constant) and side.value is NULL:
            raise error_at(TypeClashError, self._text, side.span, f"null equals nothing: {way_out}")

    def _located(self, error: TypeClashError, span: Span) -> TypeClashError:
        return error_at(TypeClashError, self._text, error.span or span, str(error))

    def _nullable(self) -> set[str]:
        return {name for name, type_ in self.types.items() if type_.nullable}

    def _arrow_types(self) -> Mapping[str, pa.DataType]:
        return {name: type_.arrow for name, type_ in self.types.items()}
