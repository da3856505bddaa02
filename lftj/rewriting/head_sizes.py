"""How large heads and joins are, for the choice of what is evaluated for some keys only.

Tables are known by their histograms, heads by those of what they read, columns taken to be independent; one
that depends on itself is as large as it can be.  Comparisons with literals leave what the histogram says.

Cost: a histogram for each column that joins or is compared, once; of a join O(atoms^2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lftj.language.body import Body, CheckedProgram
from lftj.language.syntax import Atom, Call, Comparison, Constant, Expression, Variable
from lftj.rewriting.elimination import PASSES, Edge, Names, listing_cost, matches, tails
from lftj.rewriting.joins import bound_by, of_atom, of_comparison
from lftj.rewriting.relation_sizes import column_histogram, distinct_keys
from lftj.rewriting.summand import NEVER_FAIL
from lftj.storage.catalog import Catalog
from lftj.values.operators import FLIPPED
from lftj.values.schema import ColumnType


@dataclass(frozen=True)
class Size:
    """``distinct``: keys of each column."""

    rows: float
    distinct: tuple[float, ...]


@dataclass(frozen=True)
class Listing:
    """Of a join: operations, and how many of the rows that are wanted there are."""

    cost: float
    rows: float


MOST_ROWS = 1e12
"""Of a head: beyond that an estimate says nothing."""


@dataclass
class Sizes:
    """How large the relations of a program are, heads as written."""

    program: CheckedProgram
    catalog: Catalog
    known: dict[str, Size] = field(default_factory=dict)

    def of(self, name: str) -> Size:
        """Of a head or a relation of keys."""
        if name not in self.known:
            component = self.program.component_of(name) or (name,)
            for one in component:  # what the rules say that do not go round
                self.known[one] = Size(1.0, (1.0,) * len(self.program.derived[one].columns))
            for _ in range(2 if self.program.component_of(name) else 1):
                for one in component:
                    self.known[one] = self._of_rules(one)
        return self.known[name]

    def _of_rules(self, name: str) -> Size:
        component = self.program.component_of(name)
        rows, distinct = 0.0, [1.0] * len(self.program.derived[name].columns)
        for rule, head in self.program.rules_of(name):
            names = (*head.variables, *([head.value] if isinstance(head.value, str) else []))
            for body in rule.bodies:
                keys = [self.distinct(one, body) for one in names]
                distinct = [max(pair) for pair in itertools.zip_longest(distinct, keys, fillvalue=1.0)]
                rows += self.listing(body.atoms, body, names).rows
        if component:  # as many as there can be
            rows = math.prod(distinct[: len(distinct) - self.program.derived[name].functional])
        rows = min(max(1.0, rows), MOST_ROWS)
        return Size(rows, tuple(min(rows, keys) for keys in distinct))

    def rows(self, name: str) -> float:
        return float(self.catalog[name].n_rows) if name in self.catalog else self.of(name).rows

    def keys(self, name: str, column: int) -> float:
        """Distinct keys of a column."""
        if name in self.catalog:
            return distinct_keys(self.catalog[name], column)
        return self.of(name).distinct[column]

    def keys_of(self, name: str, columns: Iterable[int]) -> float:
        """Distinct keys of some columns of a head."""
        size = self.of(name)
        return min(size.rows, math.prod(size.distinct[column] for column in columns))

    def distinct(self, variable: str, body: Body) -> float:
        """Keys of a variable of a body."""
        found = [
            self.keys(atom.relation, column)
            for atom in body.atoms
            for column, term in enumerate(atom.terms)
            if isinstance(term, Variable) and term.name == variable
        ]
        if not found:  # it is computed, from as many rows
            constant = any(
                one.variable == variable and isinstance(one.expression, Constant) for one in body.assignments
            )
            return 1.0 if constant else max(1.0, *(self.rows(atom.relation) for atom in body.atoms))
        return min(found)

    def listing(
        self,
        atoms: Sequence[Atom],
        body: Body,
        wanted: Sequence[str],
        keys: tuple[Sequence[str], Size] | None = None,
    ) -> Listing:
        """Of atoms of a body under its filters, for variables.  ``keys``: some that are restricted."""
        bound = frozenset(bound_by(atoms))
        filters = [one for one in safe_filters(body, bound) if not one.tests_null]
        names, size = keys or ((), Size(1.0, ()))
        needed = frozenset((*wanted, *names)).union(*map(of_comparison, filters))
        free = tails([*map(of_atom, atoms)], needed)
        shares = self._shares(atoms, body, filters)
        edges = [self._edge(atom, free, shares) for atom in atoms if of_atom(atom)]
        if names:
            edges.append(
                Edge(frozenset(names), frozenset(), size.rows, dict(zip(names, size.distinct, strict=True)))
            )
        if not edges:
            return Listing(1.0, 1.0)
        joining = sum(len(of_comparison(one)) > 1 for one in filters)
        rows = matches(edges, frozenset()) * PASSES**joining
        most = math.prod(
            min(e.distinct[name] for e in edges if name in e.listed) for name in bound & {*wanted}
        )
        return Listing(listing_cost(edges), max(1.0, min(rows, most)))

    def _shares(self, atoms: Sequence[Atom], body: Body, filters: Sequence[Comparison]) -> dict[str, float]:
        """The share of the rows of variables that comparisons with literals leave."""
        spans: dict[str, list[tuple[int, int]]] = {}
        shares: dict[str, float] = {}
        for one in filters:
            compared = list(of_comparison(one))
            if len(compared) != 1:
                continue
            (name,) = compared
            span = _span(one, body.types[name])
            if span is None:
                shares[name] = shares.get(name, 1.0) * PASSES
            else:
                spans.setdefault(name, []).append(span)
        for name, some in spans.items():
            low, high = max(span[0] for span in some), min(span[1] for span in some)
            columns = (
                (atom.relation, column)
                for atom in atoms
                if atom.relation in self.catalog
                for column, term in enumerate(atom.terms)
                if term == Variable(name)
            )
            place = next(columns, None)
            share = PASSES
            if place is not None:
                seen = column_histogram(self.catalog[place[0]], place[1])
                share = float(seen.share_between(np.array([low]), np.array([high]), of_rows=True)[0])
            shares[name] = shares.get(name, 1.0) * share
        return shares

    def _edge(self, atom: Atom, free: Names, shares: dict[str, float]) -> Edge:
        """``shares``: those that no edge has yet."""
        rows = self.rows(atom.relation)
        distinct: dict[str, float] = {}
        for column, term in enumerate(atom.terms):
            if isinstance(term, Constant):
                rows *= self._share_of(atom.relation, column, term)
            elif isinstance(term, Variable):
                share = shares.pop(term.name, 1.0)
                rows *= share
                if term.name not in free:
                    keys = max(1.0, share * self.keys(atom.relation, column))
                    distinct[term.name] = min(keys, distinct.get(term.name, keys))
        return Edge(of_atom(atom), of_atom(atom) & free, max(1.0, rows), distinct)

    def _share_of(self, name: str, column: int, value: Constant) -> float:
        """The share of the rows with a literal, or the value that a parameter had first."""
        if name not in self.catalog:
            return 1.0 / self.keys(name, column)
        seen = column_histogram(self.catalog[name], column)
        code = self.catalog[name].schema.columns[column].type.domain.encode_constant(value.value)
        return 0.0 if code is None or not seen.n_keys else float(seen.at(np.array([code]))[0]) / seen.n_rows


def _span(comparison: Comparison, type_: ColumnType) -> tuple[int, int] | None:
    """The codes that a comparison of a variable with a literal leaves; None where it is none, or they are no
    interval.
    """
    operator, left, right = comparison.operator, comparison.left, comparison.right
    if isinstance(left, Constant):
        operator, left, right = FLIPPED[operator], right, left
    if not (isinstance(left, Variable) and isinstance(right, Constant) and type_.domain.ordered):
        return None
    return (
        None if operator == "!=" or comparison.is_null_safe else type_.domain.interval(operator, right.value)
    )


def safe_filters(body: Body, known: Names) -> tuple[Comparison, ...]:
    """The comparisons of variables that are known which fail for nothing."""
    return tuple(
        one
        for one in body.comparisons
        if of_comparison(one) <= known and _never_fails(one.left) and _never_fails(one.right)
    )


def _never_fails(expression: Expression) -> bool:
    if isinstance(expression, Call):
        fails = expression.function not in NEVER_FAIL or expression.function == "abs"
        return not fails and all(map(_never_fails, expression.arguments))
    return isinstance(expression, Variable | Constant)
