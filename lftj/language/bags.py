"""Bags in rules: an atom of one has one more term, a wildcard for the number of the copy.

So counts and sums, which name their wildcards, take every copy, and all that only asks what exists takes one.

Cost: linear in the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lftj.language.syntax import Atom, Disjunction, Literal, Program, Wildcard


def with_copies(program: Program, is_bag: Callable[[str], bool]) -> Program:
    """The program with a last wildcard in every atom of a bag; its atoms have a term for each shown column.

    >>> from lftj.language.parser import parse
    >>> program = parse("n[a] = count() <- sale(a, _), !edge(a, a).")
    >>> [len(atom.terms) for atom in with_copies(program, {"sale"}.__contains__).rules[0].body]
    [3, 2]
    """
    rules = tuple(replace(rule, body=_body(rule.body, is_bag)) for rule in program.rules)
    return replace(program, rules=rules)


def _body(body: Sequence[Literal], is_bag: Callable[[str], bool]) -> tuple[Literal, ...]:
    written: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom) and is_bag(literal.relation):
            literal = replace(literal, terms=(*literal.terms, Wildcard(literal.span)))
        elif isinstance(literal, Disjunction):
            alternatives = tuple(_body(alternative, is_bag) for alternative in literal.alternatives)
            literal = replace(literal, alternatives=alternatives)
        written.append(literal)
    return tuple(written)
