"""How many rows and keys the atoms of a rule have, for the choice of what is eliminated first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.language.syntax import Atom, Constant, Variable
from lftj.planning.statistics import DrawnHistogram, Histogram, about
from lftj.rewriting.elimination import Edge, Names
from lftj.storage.catalog import Table

FEW_ROWS = 32
"""A relation of fewer rows says nothing of what it will be."""

UNKNOWN_ROWS = 1024.0
UNKNOWN_KEYS = 128.0
"""Keys of each column of a relation that is not known: eight rows each."""


def is_unknown(atom: Atom, table: Table | None) -> bool:
    """Whether an atom's relation does not say what a body costs: it has few rows, and may have many."""
    return not _is_single(atom) and (table is None or table.n_rows < FEW_ROWS)


def edge_of(atom: Atom, table: Table | None, tails: Names, at_most: bool = False) -> Edge:
    """The edge of a positive atom.

    ``table``: its relation, if it is there already.  ``at_most``: with the rows that a key has at most.
    """
    names = [term.name for term in atom.terms if isinstance(term, Variable)]
    variables = frozenset(names)
    if _is_single(atom):
        return Edge(variables, variables & tails, 1.0, dict.fromkeys(variables - tails, 1.0))
    if table is None or is_unknown(atom, table):
        keys = dict.fromkeys(variables - tails, UNKNOWN_KEYS)
        if atom.functional and names and len(atom.terms) == 2:
            keys = dict.fromkeys(keys, UNKNOWN_ROWS)
        return Edge(variables, variables & tails, UNKNOWN_ROWS, keys)
    columns = _columns(atom, variables - tails)
    most = {name: _fullest(table, column) for name, column in columns.items()} if at_most else {}
    return Edge(variables, variables & tails, _rows(atom, table), _distinct(table, columns), most=most)


def _is_single(atom: Atom) -> bool:
    """Whether it is a function without keys, ``total[] = t``."""
    return atom.functional and len(atom.terms) == 1


def _rows(atom: Atom, table: Table) -> float:
    """Rows with the atom's constants, columns taken to be independent."""
    rows = float(table.n_rows)
    for column, term in enumerate(atom.terms):
        if isinstance(term, Constant):
            rows /= max(1, column_histogram(table, column).n_keys)
    return max(1.0, rows)


def _columns(atom: Atom, names: Names) -> dict[str, int]:
    """The first column of each variable."""
    columns: dict[str, int] = {}
    terms: Sequence[object] = atom.terms
    for column, term in enumerate(terms):
        if isinstance(term, Variable) and term.name in names:
            columns.setdefault(term.name, column)
    return columns


def _distinct(table: Table, columns: Mapping[str, int]) -> Mapping[str, float]:
    return {name: distinct_keys(table, column) for name, column in columns.items()}


def distinct_keys(table: Table, column: int) -> float:
    """Of a column; about so many where it has no codes yet, which then get none."""
    return max(1.0, float(column_histogram(table, column).n_keys))


def column_histogram(table: Table, column: int) -> Histogram:
    """Of the base, or where that says nothing, for the table was empty once, of all rows."""
    seen = about(table, column)
    if seen.n_rows >= min(FEW_ROWS, table.n_rows):
        return seen
    return Histogram.of(np.ascontiguousarray(table.columns()[column]))


def _fullest(table: Table, column: int) -> float:
    """Rows of the key of a column that has most of them, but for what the base does not have yet."""
    seen = column_histogram(table, column)
    grown = 0.0 if isinstance(seen, DrawnHistogram) else max(0.0, table.n_rows - seen.n_rows)
    return seen.fullest + grown
