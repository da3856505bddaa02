"""Columns by name: what an atom or a head says by name, said by place.

``orders(orderkey: o, orderdate: d)`` reads two columns of a relation; for the others it has wildcards.
A head's names are those of its relation's columns, as its first rule says: ``stats(a, n: count())``.
A later rule may name them too, all of them in any order; the value of a functional head stays its value.

Invariants

1. Behind :func:`by_place` no atom has names, and an atom has as many terms as its relation has columns
   wherever it had names.
2. The columns of all heads of a relation stand in the order of its first rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lftj.errors import ArityError, UnknownColumnError
from lftj.language.diagnostics import error_at, suggestion
from lftj.language.predicates import tested
from lftj.language.syntax import (
    Aggregate,
    Atom,
    ColumnName,
    Disjunction,
    Head,
    Literal,
    Program,
    Term,
    Variable,
    Wildcard,
)

Columns = Callable[[str], Sequence[str] | None]
"""The names of a relation's columns by its name; None of one that is not there."""


def column_names(head: Head) -> list[str]:
    """What the columns of a head's relation are called, if this is its first rule.

    As written; else like the variable, or the aggregate.  A name that is taken gets a number.

    >>> from lftj.language.parser import parse
    >>> column_names(parse("h(a, a, n: b, count(), m: count()) <- edge(a, b).").rules[0].heads[0])
    ['a', 'a_2', 'n', 'count', 'm']
    """
    written = head.names or (None,) * len(head.columns)
    taken = {column.name for column in written if column is not None}
    names: list[str] = []
    for term, column in zip(head.all_columns, written, strict=True):
        if column is not None:
            names.append(column.name)
            continue
        name = wanted = term.name
        number = 2
        while name in taken:
            name = f"{wanted}_{number}"
            number += 1
        taken.add(name)
        names.append(name)
    return names


def by_place(program: Program, first_heads: Mapping[str, Head], columns: Columns) -> Program:
    """The program with every atom's terms, and every head's columns, by place.

    What looks like an atom of no relation, and is a test, becomes one (:mod:`lftj.language.predicates`).
    ``first_heads``: of each derived relation; ``columns``: of loaded and derived relations.
    Raises UnknownColumnError, and ArityError for a head with other columns than its first rule has.

    >>> from lftj.language.parser import parse
    >>> program = parse("late(o) <- orders(day: d, key: o), d < 5.")
    >>> by_place(program, {}, lambda name: ["key", "day", "price"]).rules[0].body[0].terms
    (Variable(name='o'), Variable(name='d'), Wildcard())
    """
    rules = tuple(
        replace(
            rule,
            heads=tuple(
                _head(program.text, head, first_heads.get(head.relation, head)) for head in rule.heads
            ),
            body=_body(program.text, rule.body, columns),
        )
        for rule in program.rules
    )
    return replace(program, rules=rules)


def _body(text: str, body: Sequence[Literal], columns: Columns) -> tuple[Literal, ...]:
    placed: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom):
            known = columns(literal.relation)
            if known is None:
                literal = tested(text, literal) or literal
            else:
                literal = _atom(text, literal, known)
        elif isinstance(literal, Disjunction):
            alternatives = tuple(_body(text, alternative, columns) for alternative in literal.alternatives)
            literal = replace(literal, alternatives=alternatives)
        placed.append(literal)
    return tuple(placed)


def _atom(text: str, atom: Atom, known: Sequence[str]) -> Atom:
    if not atom.names:
        return atom
    keys = known[:-1] if atom.functional else known
    terms: list[Term] = [Wildcard(atom.span) for _ in keys]
    for column, term in zip(atom.names, atom.terms, strict=False):
        terms[_place(text, column, keys, atom.relation)] = term
    return replace(atom, terms=(*terms, *atom.terms[len(atom.names) :]), names=())


def _place(text: str, column: ColumnName, known: Sequence[str], relation: str) -> int:
    if column.name not in known:
        message = f"'{relation}' has no column '{column.name}'{suggestion(column.name, known)}"
        raise error_at(UnknownColumnError, text, column.span, message)
    return known.index(column.name)


def _head(text: str, head: Head, first: Head) -> Head:
    """A head's columns in the order of the first rule's."""
    if head is first or not head.names:
        return head
    known = column_names(first)
    places = [None if column is None else _place(text, column, known, head.relation) for column in head.names]
    order = [number if place is None else place for number, place in enumerate(places)]
    fixed = None in places or (head.value is not None and order[-1] + 1 != len(order))
    for number, place in enumerate(order):
        column = head.names[number]
        if column is not None and place != number and fixed:
            message = (
                f"'{column.name}' is column {place + 1} of '{head.relation}' in its first rule:"
                " put it there, or write all columns by name"
            )
            raise error_at(ArityError, text, column.span, message)
    columns: list[Variable | Aggregate] = list(head.columns)
    for term, place in zip(head.columns, order, strict=True):
        columns[place] = term
    if head.value is None:
        return replace(head, terms=tuple(columns), names=())
    return replace(head, terms=tuple(columns[:-1]), value=columns[-1], names=())
