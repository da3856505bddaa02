"""Columns that only the engine sees: an atom has a wildcard for each.

* Of a *bag* the number of the copy is last (:mod:`lftj.storage.bags`).
* Of a *wide* relation the row's code is first (:mod:`lftj.values.rows`).

So counts and sums, which name their wildcards, take every copy and every row, and all that only asks what
exists takes one.

Cost: linear in the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lftj.language.syntax import Atom, Disjunction, Literal, Program, Wildcard

IsSuch = Callable[[str], bool]


def with_hidden_columns(program: Program, is_bag: IsSuch, is_wide: IsSuch) -> Program:
    """The program with those wildcards; its atoms have a term for each shown column.

    >>> from lftj.language.parser import parse
    >>> program = parse("n[a] = count() <- sale(a, _), !edge(a, a).")
    >>> written = with_hidden_columns(program, {"sale"}.__contains__, {"edge"}.__contains__)
    >>> [len(atom.terms) for atom in written.rules[0].body]
    [3, 3]
    """
    rules = tuple(replace(rule, body=_body(rule.body, is_bag, is_wide)) for rule in program.rules)
    return replace(program, rules=rules)


def _body(body: Sequence[Literal], is_bag: IsSuch, is_wide: IsSuch) -> tuple[Literal, ...]:
    written: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom):
            hidden = (Wildcard(literal.span),)
            if is_bag(literal.relation):
                literal = replace(literal, terms=(*literal.terms, *hidden))
            elif is_wide(literal.relation):
                literal = replace(literal, terms=(*hidden, *literal.terms))
        elif isinstance(literal, Disjunction):
            alternatives = tuple(_body(each, is_bag, is_wide) for each in literal.alternatives)
            literal = replace(literal, alternatives=alternatives)
        written.append(literal)
    return tuple(written)
