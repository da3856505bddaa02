"""How many rows and keys the atoms of a rule have, for the choice of what is eliminated first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lftj.language.syntax import Atom, Constant, Variable
from lftj.planning.statistics import histogram
from lftj.rewriting.elimination import Edge, Names
from lftj.storage.catalog import Table

FEW_ROWS = 32
"""A relation of fewer rows says nothing of what it will be."""

UNKNOWN_ROWS = 1024.0
UNKNOWN_KEYS = 128.0
"""Keys of each column of a relation that is not known: eight rows each."""


def is_unknown(table: Table | None) -> bool:
    """Whether a relation's rows say nothing of what a body costs."""
    return table is None or table.n_rows < FEW_ROWS


def edge_of(atom: Atom, table: Table | None, tails: Names) -> Edge:
    """The edge of a positive atom.  ``table``: its relation, if it is there already."""
    names = [term.name for term in atom.terms if isinstance(term, Variable)]
    variables = frozenset(names)
    if table is None or is_unknown(table):
        keys = dict.fromkeys(variables - tails, UNKNOWN_KEYS)
        if atom.functional and names and len(atom.terms) == 2:
            keys = dict.fromkeys(keys, UNKNOWN_ROWS)
        return Edge(variables, variables & tails, UNKNOWN_ROWS, keys)
    return Edge(variables, variables & tails, _rows(atom, table), _distinct(atom, table, variables - tails))


def _rows(atom: Atom, table: Table) -> float:
    """Rows with the atom's constants, columns taken to be independent."""
    rows = float(table.n_rows)
    for column, term in enumerate(atom.terms):
        if isinstance(term, Constant):
            rows /= max(1, histogram(table, column).n_keys)
    return max(1.0, rows)


def _distinct(atom: Atom, table: Table, names: Names) -> Mapping[str, float]:
    columns: dict[str, int] = {}
    terms: Sequence[object] = atom.terms
    for column, term in enumerate(terms):
        if isinstance(term, Variable) and term.name in names:
            columns.setdefault(term.name, column)
    found = {}
    for name, column in columns.items():
        seen = histogram(table, column)  # of the base, which may be far smaller than the table
        known = seen.n_rows >= FEW_ROWS
        found[name] = max(1.0, float(seen.n_keys)) if known else min(UNKNOWN_KEYS, float(table.n_rows))
    return found
