"""Cartesian products: two parts of a body that multiply the rows and share no variable.

They are allowed, and warned of: mostly a variable was misspelt.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from lftj.language.body import Body, CheckedRule
from lftj.language.expressions import variables_of
from lftj.language.several_aggregates import joins_auxiliary
from lftj.language.syntax import Atom, Variable
from lftj.rewriting.key_relations import holds_keys
from lftj.rewriting.summand import definitions, substituted
from lftj.search.problem import connected

expected = ContextVar("expected", default=False)
"""Whether a product is what a text says: SQL has a word for it."""


def product_warning(rule: CheckedRule, body: Body, wanted: Sequence[str], counted: bool) -> str | None:
    """What to say when two parts of a body that multiply the rows share no variable."""
    if expected.get() or len(body.atoms) < 2 or joins_auxiliary(body) or holds_keys(rule.heads[0].relation):
        return None  # auxiliary heads have at most one tuple each, and keys are read where they join
    inlined = definitions(body)
    tied = [_atom_variables(atom) for atom in body.atoms]
    for one in body.comparisons:
        tied.append([v for side in (one.left, one.right) for v in variables_of(substituted(side, inlined))])
    edges = [tuple(variable.name for variable in variables) for variables in tied]
    parts = connected(frozenset(body.atom_variables()), edges)
    multiplying = [part for part in parts if counted or part & set(wanted)]
    if len(multiplying) < 2:
        return None
    shown = " x ".join("{" + ", ".join(sorted(part)) + "}" for part in multiplying)
    return f"cartesian product: the parts {shown} of the body share no variable\n  {rule.text}"


def _atom_variables(atom: Atom) -> list[Variable]:
    return [term for term in atom.terms if isinstance(term, Variable)]
