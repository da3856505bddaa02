"""Which variables of a body are summed away first, and what a change costs then.

Design: docs/design/strategies.md section 3.3.

A body is a hypergraph: its atoms are *edges*, comparisons and negated atoms *filters*.  To eliminate
variables is to join the edges in which they stand, sum them away, and have one edge, a *view*, in their
place: over the other variables of these edges.  What is left in the end is joined by the rule itself.

Invariants

1. Variables of the head are never eliminated.
2. A filter is applied where the first of its variables goes, and the edges joined there have all of them.
3. A *tail*, a variable in which one atom alone is interested, goes with its atom: nobody lists it.

Cost model: a change of an atom enters the view that its atom is joined in, finds ``matches`` there, and
the keys of the view that changed go on to the next; a view's change is twice as long, for the old value goes
and the new one comes.  Matches come from the relations' rows and distinct keys, columns taken to be
independent.  All atoms are taken to change equally often.

Evaluated once, nothing changes: joins cost the assignments that are listed on the way, and each row of a view
costs ``VIEW_ROW``.  Where relations say how many rows a key has at most (``Edge.most``), that is taken and
not the average: what is listed then is no more.

Independence hides what skew does to circles: listed together, those that meet in one variable take the
products of their numbers for each key.  Where nothing else gains by the model, each of them has a view; who
evaluates tries the body as it is first (:mod:`lftj.rewriting.one_off`).

Search: dynamic programming over the sets of eliminated variables, for the edges left depend on the set alone;
beyond ``EXACT`` groups of variables one after the other, each time the one whose elimination costs least.
O(2^n * n * edges) views are looked at, each once for the same edges; sets that cost more than the rule
as it is lead nowhere.
What is left is joined in O(edges^2) steps, which are counted after each view.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, reduce

EXACT = 10
EXACT_ONCE = 7
"""Up to so many groups of variables every order is looked at; the second is for one evaluation, which may
take less time than that."""

PASSES = 0.5
"""The share of rows that is taken to pass a filter."""

VIEW_ROW = 4.0
"""Operations that a row of a view is taken to cost where it is made for one evaluation."""

Names = frozenset[str]


@dataclass(frozen=True, eq=False)
class Edge:
    """An atom, or a view in the making.

    ``tails``: of its variables, those that only it knows.  ``distinct``: keys of each of the others.
    ``flow``: how many rows of it change when an atom changes by one, summed over the atoms.
    ``most``: rows of one key of a variable, at most, where that is to count.
    """

    variables: Names
    tails: Names
    rows: float
    distinct: Mapping[str, float]
    flow: float = 1.0
    is_view: bool = False
    most: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def listed(self) -> Names:
        return self.variables - self.tails

    def fanout(self, bound: Set[str]) -> float:
        """Rows, tails aside, for a binding of those of its variables."""
        keys = 1.0
        known = self.listed & bound
        if self.most:
            most = min((self.most[name] for name in known), default=self.listed_rows)
            return 1.0 if known == self.listed else min(most, self.listed_rows)
        for name in known:
            keys *= self.distinct[name]
        return self.listed_rows / keys

    @cached_property
    def listed_rows(self) -> float:
        """Rows, tails aside."""
        most = 1.0
        for name in self.listed:
            most = min(self.rows, most * self.distinct[name])
        return most


Ranges = Callable[[Sequence[Edge], Sequence[Names], Names], tuple[float, float] | None]
"""What a join of edges under filters costs by sums of ranges, for some keys, and at least without; None where
it is no such join."""


@dataclass(frozen=True)
class Graph:
    """A body.  ``head``: variables that stay.  ``once``: it is evaluated, and not maintained.

    ``ranges``: where filters may be inequalities that join two sides (:mod:`lftj.rewriting.range_join`).
    """

    edges: tuple[Edge, ...]
    filters: tuple[Names, ...]
    head: Names
    once: bool = False
    ranges: Ranges | None = None


@dataclass(frozen=True)
class Elimination:
    """``order``: the variables to eliminate, a group for each view; none where that costs no less.

    ``cost``: operations of a change, by the model, or of the evaluation; ``plain``: those without any view.
    ``by_ranges``: of the groups, those whose view is the sum of a range join.
    """

    order: tuple[Names, ...]
    cost: float
    plain: float
    by_ranges: frozenset[Names] = frozenset()


@dataclass(frozen=True)
class _Place:
    """A way to a set of eliminated variables: what it costs, and what is left."""

    graph: Graph
    cost: float
    edges: tuple[Edge, ...]
    filters: tuple[Names, ...]
    order: tuple[Names, ...]
    by_ranges: frozenset[Names]

    @cached_property
    def total(self) -> float:
        """With what the rule itself joins in the end."""
        return self.cost + self.join_cost(self.edges)

    def join_cost(self, edges: Sequence[Edge]) -> float:
        return listing_cost(edges) if self.graph.once else _join_cost(edges)

    def view_cost(self, edges: Sequence[Edge], applied: Sequence[Names], keys: Names) -> tuple[float, bool]:
        """What the join of a view costs, and whether that is by sums of ranges."""
        cost = self.join_cost(edges)
        found = self.graph.ranges(edges, applied, keys) if applied and self.graph.ranges else None
        return (found[0], True) if found is not None and found[0] < max(cost, found[1]) else (cost, False)


def tails(edges: Sequence[Names], needed: Names) -> Names:
    """Variables that stand in one edge, and are not needed for anything else."""
    seen: set[str] = set()
    twice: set[str] = set()
    for variables in edges:
        twice |= seen & variables
        seen |= variables
    return frozenset(seen - twice - needed)


def choose_elimination(graph: Graph) -> Elimination:
    """The order of least cost; none where the rule as it is costs no more.

    >>> many = {"a": 12.0, "b": 60.0}
    >>> star = [Edge(frozenset("a" + leaf), frozenset(), 150.0, {"a": 12.0, leaf: 60.0}) for leaf in "bcd"]
    >>> found = choose_elimination(Graph(tuple(star), (), frozenset()))
    >>> [sorted(names) for names in found.order], found.cost < found.plain / 4
    ([['b'], ['c'], ['d']], True)
    """
    start = _begin(graph)
    units = _units(graph)
    way = _all_places if len(units) <= (EXACT_ONCE if graph.once else EXACT) else _descent
    best = min(itertools.chain([start], way(start, units)), key=lambda place: place.total)
    if graph.once and best is start and (apart := _circles_apart(start)) is not start:
        return Elimination(apart.order, apart.total, max(start.total, apart.total))
    return Elimination(best.order, best.total, start.total, best.by_ranges)


def _all_places(start: _Place, units: Sequence[Names]) -> Iterator[_Place]:
    """The best place for each set of eliminated variables, of those that may cost less in the end."""
    places = {frozenset[Names](): start}
    views: _Views = {}
    while places:
        following: dict[frozenset[Names], _Place] = {}
        for gone, place in places.items():
            for chosen in _choices(units, gone, start.graph.filters):
                view = _view(place, frozenset().union(*chosen), views)
                if view is None or view.cost_after(place) >= start.total:
                    continue
                after = _with_view(place, view)
                now = gone | chosen
                if now not in following or after.cost < following[now].cost:
                    following[now] = after
        yield from following.values()
        places = following


def _descent(start: _Place, units: Sequence[Names]) -> Iterator[_Place]:
    """One elimination after another, each time the one that costs least."""
    place, gone = start, frozenset[Names]()
    views: _Views = {}
    while True:
        found = [
            (chosen, _view(place, frozenset().union(*chosen), views))
            for chosen in _choices(units, gone, start.graph.filters)
        ]
        possible = [(chosen, view) for chosen, view in found if view is not None]
        if not possible:
            return
        best, view = min(possible, key=lambda pair: pair[1].cost_after(place))
        place, gone = _with_view(place, view), gone | best
        yield place


def _circles_apart(place: _Place) -> _Place:
    """With a view of each circle that meets the others in one variable; the place itself where none does."""
    views: _Views = {}
    while (names := _circle(place)) is not None:
        view = _view(place, names, views)
        if view is None:
            break
        place = _with_view(place, view)
    return place


def _circle(place: _Place) -> Names | None:
    """The variables of edges in a circle that share one variable with the others, if these have one, too."""
    edges = [edge.listed for edge in place.edges]
    for name in sorted(frozenset().union(*edges)) if has_circle(edges) else ():
        left = [edge - {name} for edge in edges if edge - {name}]
        while left:
            inside = left.pop()
            while touched := [edge for edge in left if edge & inside]:
                inside = inside.union(*touched)
                left = [edge for edge in left if edge not in touched]
            here = [edge for edge in edges if edge & inside]
            others = [edge for edge in edges if not edge & inside]
            if not inside & place.graph.head and has_circle(here) and has_circle(others):
                return inside
    return None


def has_circle(edges: Iterable[Names]) -> bool:
    """Whether a body is cyclic, by what is left when ears are removed (Graham 1979; Yu and Ozsoyoglu 1979).

    >>> has_circle([frozenset("ab"), frozenset("bc")])
    False
    >>> has_circle([frozenset("ab"), frozenset("bc"), frozenset("ac")])
    True
    """
    left = list(dict.fromkeys(edges))
    while len(left) > 1:
        alone = tails(left, frozenset())
        shared = list(dict.fromkeys(edge - alone for edge in left))
        kept = [edge for edge in shared if not any(edge < other for other in shared)]
        if kept == left:
            return True
        left = kept
    return False


def _begin(graph: Graph) -> _Place:
    return _Place(graph, 0.0, graph.edges, graph.filters, (), frozenset())


def _units(graph: Graph) -> tuple[Names, ...]:
    """The variables to eliminate; those of the same edges go together."""
    by_edges: dict[tuple[int, ...], set[str]] = {}
    for name in sorted(frozenset().union(*(edge.listed for edge in graph.edges)) - graph.head):
        where = tuple(place for place, edge in enumerate(graph.edges) if name in edge.variables)
        by_edges.setdefault(where, set()).add(name)
    return tuple(frozenset(names) for names in by_edges.values())


def _choices(
    units: Sequence[Names], gone: frozenset[Names], filters: Sequence[Names]
) -> Iterator[frozenset[Names]]:
    """What may go next: each group of variables, and those that a filter ties together."""
    left = [unit for unit in units if unit not in gone]
    yield from (frozenset([unit]) for unit in left)
    for names in filters:
        tied = frozenset(unit for unit in left if unit & names)
        if len(tied) > 1:
            yield tied


@dataclass(frozen=True)
class _View:
    """What eliminating some variables does.  It depends on the edges that have them, and their filters."""

    names: Names
    joined: Sequence[Edge]
    applied: Sequence[Names]
    edge: Edge
    cost: float
    by_ranges: bool

    def cost_after(self, place: _Place) -> float:
        """Of the way to a place and over this view."""
        return place.cost + self.cost + (VIEW_ROW * self.edge.rows if place.graph.once else 0.0)


_Views = dict[tuple[Names, tuple[Edge, ...], tuple[Names, ...]], _View | None]
"""Those that were looked at, by what they depend on: the same edges are left on many ways."""


def _view(place: _Place, names: Names, known: _Views) -> _View | None:
    """None where a filter would read what the joined edges do not have."""
    joined = tuple(edge for edge in place.edges if edge.variables & names)
    applied = tuple(one for one in place.filters if one & names)
    key = names, joined, applied
    if key not in known:
        known[key] = _new_view(place, *key)
    return known[key]


def _new_view(
    place: _Place, names: Names, joined: tuple[Edge, ...], applied: tuple[Names, ...]
) -> _View | None:
    have = frozenset().union(*(edge.variables for edge in joined))
    if not frozenset().union(*applied) <= have:
        return None
    listed = frozenset().union(*(edge.listed for edge in joined))
    keys = listed - names
    distinct = {name: min(e.distinct[name] for e in joined if name in e.listed) for name in keys}
    rows = matches(joined, frozenset()) * PASSES ** len(applied)
    most = reduce(lambda size, name: size * distinct[name], keys, 1.0)
    once = place.graph.once
    flow = 0.0 if once else _flow(joined, distinct)
    n_rows = max(1.0, min(rows, most))
    fullest = {name: min(n_rows, most / distinct[name]) for name in keys if any(e.most for e in joined)}
    view = Edge(keys, frozenset(), n_rows, distinct, flow, is_view=True, most=fullest)
    return _View(names, joined, applied, view, *place.view_cost(joined, applied, keys))


def _with_view(place: _Place, view: _View) -> _Place:
    return _Place(
        place.graph,
        view.cost_after(place),
        (*(edge for edge in place.edges if edge not in view.joined), view.edge),
        tuple(one for one in place.filters if one not in view.applied),
        (*place.order, view.names),
        place.by_ranges | {view.names} if view.by_ranges else place.by_ranges,
    )


def view_cost(edges: Sequence[Edge], keys: Names) -> tuple[float, float]:
    """Operations of changes of all edges in the view of their join, and how many of its rows change."""
    distinct = {name: min(edge.distinct[name] for edge in edges if name in edge.listed) for name in keys}
    return _join_cost(edges), _flow(edges, distinct)


def _flow(edges: Sequence[Edge], distinct: Mapping[str, float]) -> float:
    """Changed rows of the view of these edges' join.  ``distinct``: keys of each of its variables."""
    flow = 0.0
    for edge in edges:
        reached = matches([other for other in edges if other is not edge], edge.listed)
        most = reduce(lambda size, name: size * distinct[name], distinct.keys() - edge.listed, 1.0)
        flow += edge.flow * min(reached, most)
    return flow


def listing_cost(edges: Sequence[Edge]) -> float:
    """Assignments that are met when the join of these edges is listed."""
    return matches(edges, frozenset(), counts_steps=True)


def _join_cost(edges: Sequence[Edge]) -> float:
    """Operations of all changes of these edges in their join."""
    cost = 0.0
    for edge in edges:
        others = [other for other in edges if other is not edge]
        rows = edge.flow * (2.0 if edge.is_view else 1.0)
        cost += rows * (1.0 + len(others) + matches(others, edge.listed, counts_steps=True))
    return cost


def matches(edges: Sequence[Edge], bound: Names, counts_steps: bool = False) -> float:
    """Assignments of the edges' variables, tails aside, for a binding; the most constrained edge comes first.

    ``counts_steps``: those of the joins on the way too.
    """
    left = {place: edge.fanout(bound) for place, edge in enumerate(edges)}
    having: dict[str, list[int]] = {}
    for place, edge in enumerate(edges):
        for name in edge.listed:
            having.setdefault(name, []).append(place)
    found, steps, given, known = 1.0, 0.0, bound, set(bound)
    while left:
        place = min(left, key=left.__getitem__)
        edge = edges[place]
        found *= left.pop(place)
        more = edge.listed - known
        known |= more
        for other in {other for name in more for other in having[name]}:
            if other in left:
                left[other] = edges[other].fanout(known)
        if not given and known == edge.listed:  # it has all of them
            found = min(found, edge.listed_rows)
        steps += found
    return steps if counts_steps else found
