"""Rules that nobody wrote, as text: what `explain` shows of them."""

from __future__ import annotations

import re

from lftj.language.body import Body
from lftj.language.expressions import comparison_text, text_of
from lftj.language.syntax import Aggregate, Atom, Term, Wildcard

_WILDCARD_NAME = re.compile(r"_\d+")


def head_text(relation: str, keys: tuple[str, ...], value: Aggregate | str | None) -> str:
    """A head, of a function with its value behind ``=``.

    >>> head_text("n", ("a",), Aggregate("count"))
    'n[a] = count()'
    """
    if value is None:
        return f"{relation}({', '.join(keys)})"
    if isinstance(value, Aggregate):
        value = call_text(value)
    return f"{relation}[{', '.join(keys)}] = {value}"


def call_text(call: Aggregate) -> str:
    """An aggregate, as it was written."""
    return call.written or f"{call.function}({', '.join(text_of(term) for term in call.arguments)})"


def body_text(body: Body) -> str:
    """A conjunction, in the order of its parts."""
    return ", ".join(
        [
            *map(atom_text, body.atoms),
            *map(atom_text, body.negations),
            *map(comparison_text, body.comparisons),
            *(f"{one.variable} {one.sign} {text_of(one.expression)}" for one in body.assignments),
        ]
    )


def atom_text(atom: Atom) -> str:
    """An atom, of a function with its value behind ``=``."""
    sign = "!" if atom.negated else ""
    terms = [term_text(term) for term in atom.terms]
    if not atom.functional:
        return f"{sign}{atom.relation}({', '.join(terms)})"
    *keys, value = terms
    return f"{sign}{atom.relation}[{', '.join(keys)}] = {value}"


def term_text(term: Term) -> str:
    """A term; the name of a wildcard is the engine's affair.

    >>> from lftj.language.syntax import Variable
    >>> term_text(Variable("_2")), term_text(Variable("a"))
    ('_', 'a')
    """
    text = "_" if isinstance(term, Wildcard) else text_of(term)
    return "_" if _WILDCARD_NAME.fullmatch(text) else text
