"""Joins by what is computed: an equality that alone joins two parts of a body becomes an atom.

A search joins by variables, and tests an equality of what is computed on the rows that it found.  Where
nothing else joins two parts of a body, these would be all pairs.  So of::

    out(u, v) <- a(x, u), b(k, v), x % 10 = k.

the computed side has a head of its own, by which the parts are joined::

    out#computed1(x, key) <- a(x, _), key = x % 10.
    out(u, v)             <- a(x, u), out#computed1(x, k), b(k, v).

Invariants

1. What is computed is a function of a row of its part, and is not NULL: a body has the assignments it had.
2. It reads no floats and is none: NaN equals nothing, also where a row is found again by it.
3. A rule fails where it did, for an assignment.  What may fail is computed where it does not.  The values
   for which it does are a head, over which the body is evaluated as written: it gives nothing, but fails::

       out#computed1(x)      <- a(x, _), fails(10 / x) = true.
       out#computed2(x, key) <- a(x, _), fails(10 / x) = false, key = 10 / x.
       out#computed2(x, key) <- a(x, u), b(k, v), 10 / x = k, out#computed1(x), key = 10 / x.

4. These heads have the text of their rule, which errors name, and are kept as the rule's own heads are.

5. Nothing goes round that did not: in a recursion what computes a key reads nothing of it.

Cost: a head of the distinct values that a side reads, and a look-up in it for each row.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from lftj.language.body import Assignment, Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.conditionals import FAILS
from lftj.language.folding import fold
from lftj.language.parameters import constants_of
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import (
    NULL,
    Atom,
    Call,
    Comparison,
    Constant,
    Expression,
    Term,
    Variable,
    Wildcard,
)
from lftj.planning.lowering import difference
from lftj.rewriting.guard import Span, guard_of, unproven
from lftj.rewriting.head_sizes import safe_filters
from lftj.rewriting.joins import bound_by, of_atom, of_comparison, of_expression
from lftj.rewriting.rule_text import body_text, head_text
from lftj.rewriting.shared_views import arrow_type, free_name
from lftj.rewriting.stratified import stratified
from lftj.rewriting.summand import definitions, substituted
from lftj.values.domains import Domains
from lftj.values.kinds import digits_and_scale, kind, plain_type
from lftj.values.schema import Column, ColumnType, Schema

COMPUTED = "#computed"
"""Stands in the names of heads of computed keys, and in no other name."""


def holds_computed(relation: str) -> bool:
    """Whether this names a head of computed keys.

    >>> holds_computed("out#computed1"), holds_computed("out")
    (True, False)
    """
    return COMPUTED in relation


def shown_rule(rule: CheckedRule) -> str:
    """A rule on a line, as written; of a head of computed keys, which nobody wrote, as it is."""
    head = rule.heads[0]
    if not holds_computed(head.relation):
        return " ".join(rule.text.split())
    return f"{head_text(head.relation, head.variables, None)} <- {body_text(rule.bodies[0])}."


def with_computed_keys(
    program: CheckedProgram,
    schemas: Mapping[str, Schema],
    domains: Domains,
    ordered: Collection[str] = (),
) -> CheckedProgram:
    """The program whose bodies are joined where only an equality of what is computed joins two parts.

    ``schemas``: of loaded relations.  ``ordered``: heads whose key order is given, which is one of the rules
    as they are written.
    """
    if not any(_may_join(body) for stratum in program.strata for rule in stratum for body in rule.bodies):
        return program
    made = _Computed(program, {**schemas, **program.derived}, domains)
    strata: list[tuple[CheckedRule, ...]] = []
    for stratum in program.strata:
        rules = [
            rule if any(head.relation in ordered for head in rule.heads) else made.joined(rule)
            for rule in stratum
        ]
        below = made.taken()
        strata += [*(stratified(below)[0] if below else ()), tuple(rules)]
    if not made.derived:
        return program
    return replace(program, strata=tuple(strata), derived={**program.derived, **made.derived})


def _may_join(body: Body) -> bool:
    tests = (one for one in body.comparisons if one.operator == "=")
    return len(body.atoms) > 1 and any(of_comparison(one) for one in tests)


class _Computed:
    """The heads of one program."""

    def __init__(self, program: CheckedProgram, schemas: dict[str, Schema], domains: Domains) -> None:
        self._program = program
        self._schemas = schemas
        self._domains = domains
        self._joined: dict[tuple[int, ...], tuple[Body, ...]] = {}
        self._names: dict[str, str] = {}
        self._rules: list[CheckedRule] = []
        self.derived: dict[str, Schema] = {}

    def taken(self) -> list[CheckedRule]:
        """The rules made since it was asked."""
        found, self._rules = self._rules, []
        return found

    def joined(self, rule: CheckedRule) -> CheckedRule:
        """A rule as written, over these heads; in several strata it has the same bodies."""
        key = tuple(map(id, rule.bodies))
        if key not in self._joined:
            bodies = tuple(self._joined_body(rule, body) if _may_join(body) else body for body in rule.bodies)
            self._joined[key] = rule.bodies if all(map(operator.is_, bodies, rule.bodies)) else bodies
        bodies = self._joined[key]
        return rule if bodies is rule.bodies else replace(rule, bodies=bodies)

    def _joined_body(self, rule: CheckedRule, body: Body) -> Body:
        parts = _Parts(body)
        for test in body.comparisons:
            sides = self._sides(test, body, parts)
            if sides is None:
                continue
            computed = [side for side in sides if not isinstance(side, Variable)]
            if any(self._goes_round(rule, body, side, parts) for side in computed):
                continue
            plain = [side.name for side in sides if isinstance(side, Variable)]
            key = plain[0] if plain else free_name("key", body.types)
            atoms = [self._atom(rule, body, side, key, parts) for side in computed]
            types = body.types if plain else {**body.types, key: self._type(sides[0], body)}
            left = tuple(one for one in body.comparisons if one is not test)
            body = replace(body, atoms=(*body.atoms, *atoms), comparisons=left, types=types)
            parts = _Parts(body)
        return body

    def _sides(self, test: Comparison, body: Body, parts: _Parts) -> tuple[Expression, Expression] | None:
        """The sides of an equality by which a search could join if what it computes were there."""
        if test.operator != "=":
            return None
        left, right = parts.meant(test.left), parts.meant(test.right)
        places = parts.of(left), parts.of(right)
        if any(len(some) != 1 for some in places) or places[0] == places[1]:
            return None
        read = {self._type(side, body).domain.name for side in (left, right)}
        read |= {body.types[name].domain.name for name in of_expression(left) | of_expression(right)}
        same = self._type(left, body).domain is self._type(right, body).domain
        return (left, right) if same and "float" not in read else None

    def _type(self, expression: Expression, body: Body) -> ColumnType:
        found = arrow_type(expression, body.types)
        return ColumnType(self._domains.of(found), found)

    def _goes_round(self, rule: CheckedRule, body: Body, side: Expression, parts: _Parts) -> bool:
        """Whether a head of a side would.  One of what may fail reads the whole body."""
        made = self._body(body, side, parts)
        read = made.relations if _is_total(made) else body.relations
        return any(not {*read}.isdisjoint(self._program.component_of(head.relation)) for head in rule.heads)

    def _atom(self, rule: CheckedRule, body: Body, side: Expression, key: str, parts: _Parts) -> Atom:
        """What a body reads of the head of a side; ``key``: what it calls the value."""
        made = self._body(body, side, parts)
        (assignment,) = made.assignments
        read = tuple(name for name in bound_by(made.atoms) if name in of_expression(side))
        columns = (*read, assignment.variable)
        bodies = [made]
        if not _is_total(made):
            failing, computable = (
                replace(made, comparisons=(*made.comparisons, _fails(side, outcome)))
                for outcome in (True, False)
            )
            failed = self._head(rule, read, [replace(failing, assignments=())])
            atom = Atom(failed, tuple(map(Variable, read)))
            written = replace(
                body,
                atoms=(*body.atoms, atom),
                assignments=(*body.assignments, assignment),
                types={**body.types, assignment.variable: made.types[assignment.variable]},
            )
            bodies = [computable, written]
        return Atom(self._head(rule, columns, bodies), tuple(map(Variable, (*read, key))))

    def _body(self, body: Body, side: Expression, parts: _Parts) -> Body:
        """What computes a side: over one atom if that has all it reads, with ``_`` for what nothing reads."""
        names, part = of_expression(side), parts.atoms_of(side)
        atoms = next(([atom] for atom in part if of_atom(atom) >= names), part)
        tests = [*safe_filters(body, frozenset(bound_by(atoms)))]
        tested = {one.left for one in tests if one.tests_null}
        tests += [
            Comparison("<!=>", Variable(name), Constant(NULL))
            for name in sorted(names)
            if Variable(name) not in tested
            and not body.types[name].nullable
            and self._may_be_null(name, atoms)
        ]
        said = [term.name for atom in atoms for term in atom.terms if isinstance(term, Variable)]
        read = {name for name in said if said.count(name) > 1}.union(names, *map(of_comparison, tests))
        shown = (
            replace(atom, terms=tuple(Wildcard() if _is_unread(term, read) else term for term in atom.terms))
            for atom in atoms
        )
        value = free_name("key", body.types)
        types = {name: body.types[name] for name in read} | {value: self._type(side, body)}
        return Body(tuple(shown), (), tuple(tests), (Assignment(value, side, side.span),), types)

    def _may_be_null(self, name: str, atoms: Iterable[Atom]) -> bool:
        """Whether all that some atoms say of a variable may be NULL."""
        return all(
            column.type.nullable
            for atom in atoms
            for term, column in zip(atom.terms, self._schemas[atom.relation].columns, strict=True)
            if term == Variable(name)
        )

    def _head(self, rule: CheckedRule, names: tuple[str, ...], bodies: Sequence[Body]) -> str:
        """The name of the head with these bodies, which is made if there is none like it."""
        text = f"{names} {' ; '.join(map(body_text, bodies))}"
        if text in self._names:
            return self._names[text]
        owner = shown_name(rule.heads[0].relation)
        numbered = (f"{owner}{COMPUTED}{number}" for number in itertools.count(1))
        name = self._names[text] = next(one for one in numbered if one not in self._schemas)
        columns = (Column(one, replace(bodies[0].types[one], nullable=True)) for one in names)
        schema = self.derived[name] = self._schemas[name] = Schema(tuple(columns))
        head = CheckedHead(name, names, None, schema, rule.span)
        self._rules += [CheckedRule((head,), (body,), rule.text, rule.span) for body in bodies]
        return name


def _fails(expression: Expression, outcome: bool) -> Comparison:
    """The test whether an expression can't be computed."""
    return Comparison("=", Call(FAILS, (expression,), expression.span), Constant(outcome), expression.span)


def _is_unread(term: Term, read: Collection[str]) -> bool:
    return isinstance(term, Variable) and term.name not in read


# -- what can't fail ---------------------------------------------------------------------------


def _is_total(body: Body) -> bool:
    """Whether nothing that a body computes fails for any values of its columns' types."""
    guard = guard_of(body)
    if guard is None:
        return True
    if any(constant.parameter is not None for constant in constants_of(body)):
        return False
    spans = {
        source: _all_values(body.types[name].arrow)
        for name, sources in guard.sources.items()
        for source in sources
    }
    return unproven(guard, spans) is None


def _all_values(arrow: pa.DataType) -> Span:
    """The least and the largest value of a type that is computed with."""
    plain = plain_type(arrow)
    if kind(plain) == "decimal":
        digits, scale = digits_and_scale(plain)
        most = Fraction(10**digits - 1, 10**scale)
        return -most, most
    bits = plain.bit_width
    if pa.types.is_unsigned_integer(plain):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


# -- parts -------------------------------------------------------------------------------------


class _Parts:
    """The atoms of a body, in one part those that variables, or bounds of the search, join by any way."""

    def __init__(self, body: Body) -> None:
        self._definitions = definitions(body)
        self._atoms = body.atoms
        self._parent = list(range(len(body.atoms)))
        self._owner: dict[str, int] = {}
        for at, atom in enumerate(body.atoms):
            for name in of_atom(atom):
                self._unite(self._owner.setdefault(name, at), at)
        for test in body.comparisons:
            bounds = test.operator == "=" or (test.operator == "<=>" and not test.tests_null)
            pair = _bounded(test, body) if bounds else None
            if pair is not None:
                self._unite(self._owner[pair[0]], self._owner[pair[1]])

    def meant(self, expression: Expression) -> Expression:
        """An expression over the variables of atoms, and those that have several values."""
        return fold(substituted(expression, self._definitions))

    def of(self, expression: Expression) -> frozenset[int]:
        """The parts that an expression reads; none where it reads what no atom has."""
        names = of_expression(expression)
        if not names <= self._owner.keys():
            return frozenset()
        return frozenset(self._root(self._owner[name]) for name in names)

    def atoms_of(self, expression: Expression) -> list[Atom]:
        """All atoms of the part that an expression reads."""
        (part,) = self.of(expression)
        return [atom for at, atom in enumerate(self._atoms) if of_atom(atom) and self._root(at) == part]

    def _root(self, at: int) -> int:
        while self._parent[at] != at:
            at = self._parent[at]
        return at

    def _unite(self, one: int, other: int) -> None:
        self._parent[self._root(other)] = self._root(one)


def _bounded(test: Comparison, body: Body) -> tuple[str, str] | None:
    """The variables of which an equality bounds a search, if it does."""
    left, right = fold(test.left), fold(test.right)
    if test.is_null_safe and not (isinstance(left, Variable) and isinstance(right, Variable)):
        return None
    computed = {one.variable: fold(one.expression) for one in body.assignments if not one.each}
    pair = difference(left, right, body.types, computed, body.atom_variables())
    return None if pair is None else pair[:2]
