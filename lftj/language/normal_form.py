"""Disjunctive normal form of a body, and the order of its assignments.

Invariants

1. The body's result is the union of its conjunctions'; each keeps the literals
   in the order of writing and remembers which alternatives it chose.
2. An assignment's sources are bound by positive atoms or by assignments before it.
3. There are at most :data:`MAX_CONJUNCTIONS`; they are counted before they are made.
4. Each has a positive atom: of the relation of one row, where the program writes none
   (:mod:`lftj.language.one_row`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lftj.errors import RuleError
from lftj.language.body import Assignment
from lftj.language.diagnostics import error_at
from lftj.language.expressions import variables_of
from lftj.language.one_row import ONE_ROW
from lftj.language.syntax import (
    Atom,
    Call,
    Comparison,
    Constant,
    Disjunction,
    Literal,
    Span,
    Variable,
    Wildcard,
)

MAX_CONJUNCTIONS = 4096


@dataclass(frozen=True)
class Choice:
    """The alternative that a conjunction took of a disjunction."""

    disjunction: Disjunction
    number: int

    @property
    def span(self) -> Span:
        alternative = self.disjunction.alternatives[self.number]
        return (alternative[0].span[0], alternative[-1].span[1])


@dataclass(frozen=True)
class Conjunction:
    """Literals of one conjunction by kind, each kind in the order of writing."""

    atoms: tuple[Atom, ...] = ()
    negations: tuple[Atom, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    choices: tuple[Choice, ...] = ()

    def with_literal(self, literal: Atom | Comparison) -> Conjunction:
        if isinstance(literal, Comparison):
            return replace(self, comparisons=(*self.comparisons, literal))
        if literal.negated:
            return replace(self, negations=(*self.negations, literal))
        return replace(self, atoms=(*self.atoms, literal))


def conjunctions(body: Sequence[Literal], text: str) -> list[Conjunction]:
    """The disjunctive normal form of a body; ``text`` is the program's, for the message.

    Raises :class:`~lftj.errors.RuleError` when there are more than :data:`MAX_CONJUNCTIONS`.

    >>> from lftj.language.parser import parse
    >>> program = parse("a(x) <- c(x), (d(x) ; e(x), (f(x) ; g(x))).")
    >>> [[atom.relation for atom in c.atoms] for c in conjunctions(program.rules[0].body, program.text)]
    [['c', 'd'], ['c', 'e', 'f'], ['c', 'e', 'g']]
    """
    number = _count(body)
    if number > MAX_CONJUNCTIONS:
        first = next(literal for literal in body if isinstance(literal, Disjunction))
        raise error_at(
            RuleError,
            text,
            first.span,
            f"the alternatives multiply to {_shown(number)} conjunctions, more than {MAX_CONJUNCTIONS}; "
            "split the rule",
        )
    one = Atom(ONE_ROW, (Wildcard(),))
    return [part if part.atoms else part.with_literal(one) for part in _expand(body, [Conjunction()])]


def name_wildcards(
    body: Sequence[Literal], is_wide: Callable[[str], bool] = lambda relation: False
) -> tuple[Literal, ...]:
    """The body with a variable ``_1``, ``_2``, ... for every wildcard of a positive atom.

    An aggregate counts them.  Of a wide relation it counts rows: the first wildcard is the row's code.
    Named before the disjunctions are multiplied out, a wildcard that stands outside of all alternatives is
    one variable in every conjunction, one inside only in its own.

    >>> from lftj.language.parser import parse
    >>> named = name_wildcards(parse("a(x) <- b(x, _), !c(_), d(_1, _).").rules[0].body)
    >>> [[term.name for term in atom.terms] for atom in named if not atom.negated]
    [['x', '_2'], ['_1', '_3']]
    """
    taken = set(_names(body))
    fresh = (name for number in itertools.count(1) if (name := f"_{number}") not in taken)

    def named(literals: Iterable[Literal]) -> tuple[Literal, ...]:
        result: list[Literal] = []
        for literal in literals:
            if isinstance(literal, Disjunction):
                result.append(replace(literal, alternatives=tuple(map(named, literal.alternatives))))
            elif isinstance(literal, Atom) and not literal.negated:
                n_named = 1 if is_wide(literal.relation) else len(literal.terms)
                terms = tuple(
                    Variable(next(fresh), term.span)
                    if isinstance(term, Wildcard) and place < n_named
                    else term
                    for place, term in enumerate(literal.terms)
                )
                result.append(replace(literal, terms=terms))
            else:
                result.append(literal)
        return tuple(result)

    return named(body)


def order_assignments(
    comparisons: Sequence[Comparison], bound: Collection[str]
) -> tuple[list[Assignment], list[Comparison]]:
    """Splits comparisons into assignments, in an order in which they can be carried out, and tests.

    ``v = expression`` or ``expression = v`` assigns when v is unbound and the expression's variables are
    not, and so does ``v in expression``, which is ``list_contains(expression, v)``, each element.  Of several
    that could assign one variable the first as written does, one without variables only if there is no other
    (a constant's type says less than a column's), and so does one that gives several values.  The others
    test.

    >>> from lftj.language.parser import parse
    >>> body = parse("a(w) <- b(x), w = v + 1, x * 2 = v, v < 9.").rules[0].body
    >>> assignments, tests = order_assignments(body[1:], {"x"})
    >>> [a.variable for a in assignments], [t.operator for t in tests]
    (['v', 'w'], ['<'])
    """
    known = set(bound)
    tests = list(comparisons)
    waiting = _assigned_without_constant(comparisons, known)
    assignments: list[Assignment] = []
    while True:
        ready = _ready(tests, known)
        if not ready:
            return assignments, tests
        number, assignment = min(
            ready, key=lambda pair: (pair[1].variable in waiting and _is_constant(pair[1]), pair[1].each)
        )
        assignments.append(assignment)
        known.add(assignment.variable)
        del tests[number]


def _ready(tests: Sequence[Comparison], known: Collection[str]) -> list[tuple[int, Assignment]]:
    """What can be assigned now, with the number of the equality that does, in the order of writing."""
    return [
        (number, assignment)
        for number, test in enumerate(tests)
        for assignment in _either_way(test)
        if assignment.variable not in known
        and all(variable.name in known for variable in variables_of(assignment.expression))
    ]


def _either_way(comparison: Comparison) -> Iterable[Assignment]:
    """What an equality would assign if the one side were unbound and the other bound."""
    if comparison.operator == "=":
        of = comparison.left
        if isinstance(of, Call) and of.function == "list_contains" and comparison.right == Constant(True):
            lists, element = of.arguments
            if isinstance(element, Variable):
                yield Assignment(element.name, lists, comparison.span, each=True)
        for target, source in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
            if isinstance(target, Variable):
                yield Assignment(target.name, source, comparison.span)


def _is_constant(assignment: Assignment) -> bool:
    return not variables_of(assignment.expression)


def _assigned_without_constant(comparisons: Sequence[Comparison], bound: Collection[str]) -> set[str]:
    """Variables that are equal to a constant and would be assigned as well if they were not."""
    found = set()
    possible = [(test, assignment) for test in comparisons for assignment in _either_way(test)]
    constants = {assignment.variable for _, assignment in possible if _is_constant(assignment)}
    others = {assignment.variable for _, assignment in possible if not _is_constant(assignment)}
    for name in constants & others - set(bound):
        own = [test for test, source in possible if source.variable == name and _is_constant(source)]
        rest = [test for test in comparisons if test not in own]
        known = set(bound)
        while name not in known and (ready := _ready(rest, known)):
            known.update(assignment.variable for _, assignment in ready)
        if name in known:
            found.add(name)
    return found


def _count(body: Sequence[Literal]) -> int:
    """Conjunctions that the body multiplies out to."""
    return math.prod(
        sum(_count(alternative) for alternative in literal.alternatives)
        for literal in body
        if isinstance(literal, Disjunction)
    )


def _expand(body: Sequence[Literal], found: list[Conjunction]) -> list[Conjunction]:
    """Every conjunction of ``found`` continued by the body in every way."""
    for literal in body:
        if isinstance(literal, Disjunction):
            found = [
                continued
                for conjunction in found
                for number, alternative in enumerate(literal.alternatives)
                for continued in _expand(
                    alternative,
                    [replace(conjunction, choices=(*conjunction.choices, Choice(literal, number)))],
                )
            ]
        else:
            found = [conjunction.with_literal(literal) for conjunction in found]
    return found


def _names(body: Sequence[Literal]) -> Iterable[str]:
    for literal in body:
        if isinstance(literal, Disjunction):
            for alternative in literal.alternatives:
                yield from _names(alternative)
        elif isinstance(literal, Atom):
            yield from (term.name for term in literal.terms if isinstance(term, Variable))
        else:
            yield from (variable.name for variable in variables_of(literal.left))
            yield from (variable.name for variable in variables_of(literal.right))


def _shown(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"about 10^{len(str(number)) - 1}"
