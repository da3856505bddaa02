"""One body of a recursive rule, round by round: the terms of its delta rule over the recursive atoms.

    new rows = SUM_i  new(R1) ... new(R_i-1) * frontier(R_i) * old(R_i+1) ... old(Rn) * rest

R1 ... Rn are the body's recursive atoms.  The frontier of the last round goes first; what of the rest fits is
found by the search, or only listed (:mod:`lftj.search.regions.listing`), one kernel call per term and
piece of the frontier, which is sorted for a search.  Rows leave in pieces of about ``PIECE_ROWS``, so what a
round derives over and over takes no memory.

Invariant: of the assignments of the body over all tuples each is found in exactly one round, by one term.

Cost: the operations below the frontier; orders are chosen anew when a relation that a term reads beside its
frontier is ``ALIKE`` times as large.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lftj.errors import EvaluationError, RangeError
from lftj.evaluation.finishing import Finishing
from lftj.evaluation.growing_relation import GrowingRelation
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.diagnostics import with_rule
from lftj.language.parameters import with_values
from lftj.language.syntax import Atom, Variable, Wildcard
from lftj.planning.kept_orders import ALIKE
from lftj.planning.lowering import lower
from lftj.planning.term import TermPlan, left_over, plan_term
from lftj.planning.term_order import choose_term_orders
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.regions.evaluation import Operations
from lftj.search.regions.weighted import WeightedSearch, WeightedSearches
from lftj.storage.catalog import Catalog, IndexKey, IndexUse, Table
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values.literals import Value
from lftj.values.schema import Schema

PIECE_ROWS = 1 << 16
"""Rows that a term is to find in one call, about."""

LEAST_PIECE = 1 << 8
"""Bindings of a piece, at least."""

LEAST_ROWS = 16
"""Growing relations below this size are alike to the choice of a term's order."""


def with_variables(body: Body, schemas: Mapping[str, Schema], every: bool = False) -> Body:
    """The body with a variable for the first wildcard of atoms that have nothing else, of some relations.

    An atom that goes first has to bind something.  ``every``: for all wildcards of their atoms.  Such
    variables are called ``_0``, ``_1``, ...
    """
    types = dict(body.types)

    def named(atom: Atom) -> Atom:
        wild = [place for place, term in enumerate(atom.terms) if isinstance(term, Wildcard)]
        if atom.relation not in schemas or not (every or len(wild) == len(atom.terms)):
            return atom
        terms = list(atom.terms)
        for place in wild if every else wild[:1]:
            name = next(name for number in itertools.count() if (name := f"_{number}") not in types)
            types[name] = schemas[atom.relation].columns[place].type
            terms[place] = Variable(name)
        return replace(atom, terms=tuple(terms))

    atoms = tuple(map(named, body.atoms))
    return replace(body, atoms=atoms, types=types) if len(types) > len(body.types) else body


def _first_variables(body: Body, relations: Collection[str]) -> list[str]:
    """The first variable of every atom of some relations that has one."""
    named = [
        [term.name for term in atom.terms if isinstance(term, Variable)]
        for atom in body.atoms
        if atom.relation in relations
    ]
    return [names[0] for names in named if names]


@dataclass
class _Term:
    """A planned term.  ``rows``: of each growing relation that it reads, when its order was chosen."""

    plan: TermPlan
    searches: WeightedSearches
    rows: dict[str, int]


class RecursiveBody:
    """A body with at least one atom of the component."""

    def __init__(
        self,
        rule: CheckedRule,
        head: CheckedHead,
        body: Body,
        growing: Mapping[str, GrowingRelation],
        relations: Catalog,
        values: Mapping[str, Value],
    ) -> None:
        """``growing``: the component's relations; ``relations``: complete ones."""
        self.rule = rule
        self.head = head
        self.operations = Operations()
        self.n_found = 0
        """Rows that its terms gave so far."""
        self._growing = growing
        self._relations = relations
        self._complete: dict[IndexUse, IndexVersion] = {}  # indices of relations that do not grow
        own = {name: relation.schema for name, relation in growing.items()}
        schemas = {name: own[name] if name in own else relations[name].schema for name in body.relations}
        body = with_values(with_variables(body, own), values)
        self._names = list(head.columns)
        grouped = head.variables if head.schema.functional else ()
        self.lowered = lower(body, schemas, self._names, counted=False, grouped=grouped, lasting=True)
        if any(not atom.variables and atom.relation in growing for atom in self.lowered.problem.atoms):
            # Nobody asks for a variable of that atom, but it has to bind one to go first.
            wanted = [*self._names, *_first_variables(body, growing)]
            self.lowered = lower(body, schemas, wanted, counted=False, grouped=grouped, lasting=True)
        self._finishing = Finishing(self.lowered)
        self._check_complete()
        problem = self.lowered.problem
        self._unbound = problem.unbound
        self._problem = replace(problem.without_unbound(), counted=True)
        self._columns = tuple(self._names) if self.lowered.finishes_in_search else problem.emitted
        self._parts: list[tuple[JoinAtom, JoinProblem]] = [
            part for part in left_over(self._problem) if part[0].relation in growing
        ]
        self._terms: list[_Term | None] = [None] * len(self._parts)

    def _check_complete(self) -> None:
        """Look at the complete relations; the growing ones are looked at as they grow."""
        lowered = self.lowered
        outside = replace(
            lowered,
            functions=frozenset(name for name in lowered.functions if name not in self._growing),
            nan_free=frozenset(place for place in lowered.nan_free if place[0] not in self._growing),
        )
        outside.check(self._relations)

    @cached_property
    def is_empty(self) -> bool:
        """Whether nothing that the recursion finds gives the body a row."""
        return bool(self.lowered.empty) or any(
            (atom.n_rows(self._relations[atom.relation]) > 0) == negated for atom, negated in self._unbound
        )

    def rows(self) -> Iterator[np.ndarray]:
        """What the frontiers give of the head, int64 (columns, n), in pieces; tuples may repeat."""
        for place, (atom, _) in enumerate(self._parts):
            growing = self._growing[atom.relation]
            if growing.n_frontier:
                yield from self._rows_of(self._term(place), growing)

    def _rows_of(self, term: _Term, growing: GrowingRelation) -> Iterator[np.ndarray]:
        indexes = [self._index(use) for use in term.searches.uses]
        bound = term.plan.choice.bound
        in_order = not term.searches.lists(indexes, bound)
        bindings = growing.bindings(term.plan.change.key, bound, in_order)
        n, done, size = bindings.shape[1], 0, LEAST_PIECE
        while done < n:
            piece = np.ascontiguousarray(bindings[:, done : done + size])
            taken = 0
            for rows, _ in term.searches.pieces(indexes, piece, np.ones(piece.shape[1], np.int64)):
                taken += rows.shape[1]
                yield from self._finished(rows)
            self.operations.add(term.searches.operations)
            self.n_found += taken
            done += piece.shape[1]
            size = max(LEAST_PIECE, min(4 * size, PIECE_ROWS * piece.shape[1] // max(1, taken)))

    def _finished(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        if not rows.shape[1]:
            return
        if self.lowered.finishes_in_search:
            yield rows
            return
        found: Mapping[str, np.ndarray] = dict(zip(self._columns, rows, strict=True))
        try:
            found, weights = self._finishing.finish(found, np.ones(rows.shape[1], np.int64), self._relations)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self.rule.text) from error.__cause__
        if len(weights):
            yield np.array([found[name] for name in self._names])

    def _index(self, use: IndexUse) -> IndexVersion:
        growing = self._growing.get(use.relation)
        if growing is not None:
            return growing.index(use.key, use.side)
        if use not in self._complete:
            self._complete[use] = index_of(self._relations[use.relation], use.key)
        return self._complete[use]

    # -- orders ---------------------------------------------------------------------

    def _term(self, place: int) -> _Term:
        known = self._terms[place]
        atom, rest = self._parts[place]
        if known is None or any(
            self._growing[name].n_rows > ALIKE * max(LEAST_ROWS, rows) for name, rows in known.rows.items()
        ):
            known = self._terms[place] = self._planned(atom, rest)
        return known

    def _planned(self, atom: JoinAtom, rest: JoinProblem) -> _Term:
        read = {atom.relation, *rest.relations}
        rows = {name: self._growing[name].n_rows for name in rest.relations if name in self._growing}
        catalog: dict[str, Table] = {
            name: _Seen(self._growing[name]) if name in self._growing else self._relations[name]
            for name in read
        }
        (choice,) = choose_term_orders(rest, [(atom, rest)], catalog)
        plan = plan_term(atom, False, rest, choice)
        places = tuple(map(choice.order.index, self._columns))
        return _Term(plan, WeightedSearches([WeightedSearch(plan.search, 1, places)]), rows)

    @property
    def read_keys(self) -> Iterator[IndexUse]:
        """The indices of growing relations that its terms read."""
        for term in self._terms:
            if term is not None:
                yield from (use for use in term.searches.uses if use.relation in self._growing)

    def describe(self) -> list[str]:
        """For ``explain``: a line for each term and index."""
        lines = []
        for (atom, _), term in zip(self._parts, self._terms, strict=True):
            if term is None:
                lines.append(f"change of {atom.label}: nothing came")
                continue
            order, bound = term.plan.choice.order, term.plan.choice.bound
            free = f" | {self._shown(order[bound:])}" if order[bound:] else ""
            lines.append(f"change of {atom.label}: {self._shown(order[:bound])}{free}")
            for use in term.searches.uses:
                columns = ", ".join(str(column) for column in use.key[0])
                side = f"{use.side.value} " if use.relation in self._growing else ""
                lines.append(f"  {side}{use.relation} by columns ({columns})")
        return lines

    def _shown(self, names: Sequence[str]) -> str:
        labels = self._problem.labels
        return ", ".join(labels.get(name, name) for name in names)


def index_of(table: Table, key: IndexKey) -> IndexVersion:
    """An index of a complete relation, as the search reads it."""
    if isinstance(table, RelationVersion):
        return table.index_at(key)
    assert isinstance(table, Relation)
    return IndexVersion(table.index(*key))


class _Seen:
    """What the choice of an order looks at of a relation that grows."""

    def __init__(self, growing: GrowingRelation) -> None:
        relation = growing.for_statistics()
        self.name, self.schema, self.n_rows = growing.name, growing.schema, growing.n_rows
        self.index_keys = growing.index_keys
        self.statistics_of: object = relation
        self.statistics_column, self.code = relation.statistics_column, relation.code
        self.view, self.n_branches, self.columns = relation.view, relation.n_branches, relation.columns
        self.refuse_nan, self.check_functional = relation.refuse_nan, relation.check_functional
        self.refuse_null = relation.refuse_null
