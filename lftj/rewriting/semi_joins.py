"""Existence and projection by semi-joins: variables that no head asks for go into views that are sets.

    h(a) <- R(a, b), S(b, c), T(c, d), d > 9.

becomes::

    h#view1(c) <- T(c, d), d > 9.
    h#view2(b) <- S(b, c), h#view1(c).
    h(a) <- R(a, b), h#view2(b).

It is the elimination of sums (:mod:`lftj.rewriting.view_tree`) over truth values, where *and* is the product
and *or* the sum.

Invariants

1. The body has the rows of the one as written, projected to the variables that are wanted.
2. Each view joins atoms of the body and views below; none is without columns, for what exists at all is found
   sooner by the search of the head, which ends with its first success.
3. What is computed is computed in the body of the head, of variables that stay.

Cost: where the body is acyclic, and each view's keys stand in one of the atoms that it joins, that of reading
each atom once, and of the last join.
"""

from __future__ import annotations

from collections.abc import Iterable

from lftj.language.body import Body
from lftj.language.expressions import variables_of
from lftj.rewriting.elimination import Elimination, Graph, Names, choose_elimination, tails
from lftj.rewriting.joins import Join, bound_by, of_atom, of_comparison, types_below
from lftj.rewriting.relation_sizes import edge_of
from lftj.rewriting.shared_views import SharedViews, ViewBody
from lftj.rewriting.summand import NotRewritten, compared
from lftj.storage.catalog import Catalog


class SemiJoins:
    """The rewriting of one body for the variables that its head asks for."""

    def __init__(self, body: Body, wanted: Iterable[str], catalog: Catalog) -> None:
        """Choose what to eliminate; nothing is made yet.

        ``catalog``: the relations that are there.  Raises NotRewritten.
        """
        types = {name: type_.arrow for name, type_ in body.types.items()}
        comparisons = tuple(compared(one, {}, types) for one in body.comparisons)
        self._body = body
        self._join = Join(body.atoms, body.negations, comparisons, ())
        self._wanted = self._staying(wanted)
        self._elimination = self._chosen(catalog)
        if not self._elimination.order:
            raise NotRewritten("no variable is eliminated for less than what is listed then")

    def _staying(self, wanted: Iterable[str]) -> Names:
        """The variables that the head asks for, and all that computed ones depend on or are compared with."""
        computed = {one.variable for one in self._body.assignments}
        staying = {*wanted, *computed}
        for assignment in self._body.assignments:
            staying.update(variable.name for variable in variables_of(assignment.expression))
        for read in (*map(of_atom, self._body.negations), *map(of_comparison, self._join.comparisons)):
            if read & computed:
                staying |= read
        return frozenset(staying)

    @property
    def cost(self) -> float:
        """Operations with views, at most, by the model."""
        return self._elimination.cost

    @property
    def plain(self) -> float:
        """Operations as written, at most, by the model."""
        return self._elimination.plain

    def _chosen(self, catalog: Catalog) -> Elimination:
        join = self._join
        free = self._tails(join)
        edges = tuple(edge_of(atom, catalog.get(atom.relation), free, at_most=True) for atom in join.atoms)
        filters = (*map(of_atom, join.negations), *map(of_comparison, join.comparisons))
        return choose_elimination(Graph(edges, tuple(filter(None, filters)), self._wanted, once=True))

    def _tails(self, join: Join) -> frozenset[str]:
        return tails([of_atom(atom) for atom in join.atoms], self._wanted | join.needed)

    def body(self, shared: SharedViews, owner: str) -> Body:
        """The body over views, which are made or found.  ``owner``: the head that wants them."""
        join = self._join
        free, below = self._tails(join), types_below(self._body)
        for names in self._elimination.order:
            here, rest = join.split(names)
            keys = frozenset().union(*map(of_atom, here.atoms)) - names - free
            if keys:
                view = ViewBody(here.atoms, here.negations, here.comparisons, (), keys, is_set=True)
                atom = shared.atom(view, below, None, owner)
                join = Join((*rest.atoms, atom), rest.negations, rest.comparisons, ())
        assignments = self._body.assignments
        bound = [*bound_by(join.atoms), *(one.variable for one in assignments)]
        types = {name: self._body.types[name] for name in bound}
        return Body(join.atoms, join.negations, join.comparisons, assignments, types)
