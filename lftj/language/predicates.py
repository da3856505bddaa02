"""Tests: functions that stand in a body by themselves, as ``contains(s, "a")`` and ``!contains(s, "a")`` do.

A test is a comparison of its call with true or false.  It looks like an atom, and is one where the program or
the data has a relation of that name.
"""

from __future__ import annotations

from lftj.errors import ArityError, RuleSyntaxError
from lftj.language.diagnostics import error_at
from lftj.language.syntax import Atom, Call, Comparison, Constant, Disjunction, Program, Wildcard
from lftj.values.functions import FUNCTIONS


def is_test(name: str) -> bool:
    """Whether a function may stand in a body by itself.

    >>> is_test("contains"), is_test("lower")
    (True, False)
    """
    return name in FUNCTIONS and FUNCTIONS[name].is_test


def holds(call: Call, negated: bool = False) -> Comparison:
    """That a call gives true; ``negated``: false."""
    return Comparison("=", call, Constant(not negated, call.span), call.span)


def tests_of(program: Program) -> frozenset[str]:
    """The names of the tests that stand in a program's bodies."""
    found: set[str] = set()
    pending = [literal for rule in program.rules for literal in rule.body]
    while pending:
        literal = pending.pop()
        if isinstance(literal, Disjunction):
            pending.extend(one for alternative in literal.alternatives for one in alternative)
        elif isinstance(literal, Comparison) and isinstance(literal.left, Call):
            found.add(literal.left.function)
    return frozenset(name for name in found if is_test(name))


def tested(text: str, atom: Atom) -> Comparison | None:
    """What an atom tests, if its name is that of a test; ``text`` is the program's.

    Raises :class:`~lftj.errors.RuleError`.
    """
    if not is_test(atom.relation) or atom.functional:
        return None
    if atom.names:
        message = f"'{atom.relation}' is a function: its arguments stand by place"
        raise error_at(RuleSyntaxError, text, atom.names[0].span, message)
    arguments = []
    for term in atom.terms:
        if isinstance(term, Wildcard):
            raise error_at(
                RuleSyntaxError, text, term.span, "'_' has no value to compute with: name the variable"
            )
        arguments.append(term)
    function = FUNCTIONS[atom.relation]
    if not function.least <= len(arguments) <= function.most:
        raise error_at(ArityError, text, atom.span, f"'{atom.relation}' takes {function.arity}")
    return holds(Call(atom.relation, tuple(arguments), atom.span), atom.negated)
