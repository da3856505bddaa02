"""Key orders for the terms of a delta rule, and by them the indices that the terms read.

A term begins with the variables of the atom that changed, in any order, for a changed tuple
binds them all; then come the others, each order of which has its price.  An order says by
which permutation of its columns every other atom is read, and each permutation is an
index that every commit has to step.  So of the orders that are estimated near the best one,
those are taken that need the fewest indices, over all terms of the body together and with
the indices that the relations have already: those of other rules are shared.

What to choose is a covering: Soufflé solves it by chains for sets of bound columns; here the
orders within an atom's columns have to agree over the atoms of a term too.  So indices are taken
greedily, those first by which most terms per index can be searched, and then the choice is improved
term by term until none gets better.  Rules are covered one after another, as they are installed:
of 200 random programs of up to three rules over relations of two and three columns 180 got as few
indices as the best choice for the whole program, the others one more
(``tests/planning/test_term_order.py`` compares with all choices).

Cost: ``PERMUTED``! orders of bound variables times ``TAILS`` of the others are looked at, once per term; then
O(terms * candidates) sets of indices are compared per index that is taken, and O(terms) per improvement.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lftj.planning.cost_model import CostModel
from lftj.planning.kept_orders import answered, is_kept, shape_of, sizes_of
from lftj.planning.planner import candidates
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.catalog import Catalog, IndexKey
from lftj.storage.relation_version import levels_of

NEAR = 1.5
"""An order that is estimated at this many times the best one may be taken for the sake of an index."""

TAILS = 12
"""The best orders of the variables that a change leaves free which are looked at for the sake of an index."""

PERMUTED = 4
"""The variables of a changed atom are tried in all orders up to this many; of more in one order alone."""

Index = tuple[str, IndexKey]
"""A relation, and the levels of one of its indices."""


@dataclass(frozen=True)
class TermChoice:
    """The key order of one term.  ``bound``: how many variables the change binds.  ``operations``: below one
    changed tuple, estimated."""

    order: tuple[str, ...]
    bound: int
    operations: float

    def listed(self, problem: JoinProblem) -> int:
        """How many variables rows have to hold: the assignments of those behind are only counted."""
        needed = {
            *problem.emitted,
            *(name for atom in problem.atoms if atom.counted for name in atom.variables),
        }
        last = max((place + 1 for place, name in enumerate(self.order) if name in needed), default=0)
        return max(last, self.bound)


class _Candidate(NamedTuple):
    choice: TermChoice
    reads: frozenset[Index]


def choose_term_orders(
    problem: JoinProblem, terms: Sequence[tuple[JoinAtom, JoinProblem]], catalog: Catalog
) -> list[TermChoice]:
    """A key order for each term: the atom that changed, and the problem that is left when it is bound."""
    there = frozenset((name, key) for name in problem.relations for key in catalog[name].index_keys)
    if not is_kept():
        return _chosen(terms, catalog, there)
    question = "terms", shape_of(problem), sizes_of(problem, catalog), there
    return answered(question, lambda: _chosen(terms, catalog, there))


def _chosen(
    terms: Sequence[tuple[JoinAtom, JoinProblem]], catalog: Catalog, there: frozenset[Index]
) -> list[TermChoice]:
    possible = [_candidates(atom, rest, catalog) for atom, rest in terms]
    taken = _cover(possible, there)
    chosen = [
        min((option for option in options if option.reads <= taken), key=_operations) for options in possible
    ]
    improved = True
    while improved:
        improved = False
        for place, options in enumerate(possible):
            others = there.union(*(other.reads for at, other in enumerate(chosen) if at != place))
            best = min(options, key=lambda option: _price(option, others))
            if _price(best, others) < _price(chosen[place], others):
                chosen[place], improved = best, True
    return [option.choice for option in chosen]


def _cover(possible: Sequence[Sequence[_Candidate]], there: frozenset[Index]) -> frozenset[Index]:
    """Indices by which every term can be searched, those that are there among them."""
    taken = there
    left = list(possible)
    while left := [options for options in left if not _is_searched(options, taken)]:
        missing = dict.fromkeys(option.reads - taken for options in left for option in options)
        searched = {more: sum(_is_searched(options, taken | more) for options in left) for more in missing}
        best = max(missing, key=lambda more: (searched[more] / len(more), -len(more)))
        taken |= best
    return taken


def _is_searched(options: Sequence[_Candidate], indices: frozenset[Index]) -> bool:
    return any(option.reads <= indices for option in options)


def _operations(option: _Candidate) -> float:
    return option.choice.operations


def _price(option: _Candidate, others: frozenset[Index]) -> tuple[int, float]:
    """Indices that only this term needs, then operations."""
    return len(option.reads - others), option.choice.operations


def _candidates(atom: JoinAtom, rest: JoinProblem, catalog: Catalog) -> list[_Candidate]:
    """The best order for each set of indices by which the others can be read; the best first."""
    first = tuple(dict.fromkeys(atom.variables))
    costs = _tails(atom, rest, catalog)
    near = NEAR * min(costs.values())
    tails = [tail for tail in sorted(costs, key=lambda tail: costs[tail]) if costs[tail] <= near][:TAILS]
    heads = list(itertools.permutations(first)) if len(first) <= PERMUTED else [first]
    reads = [_Reads(other) for other in (*rest.atoms, *rest.negations)]
    own_heads = [[read.own(places) for read in reads] for places in map(_places, heads)]
    found: dict[frozenset[Index], _Candidate] = {}
    for tail in tails:
        places = _places(tail)
        own_tails = [read.own(places) for read in reads]
        for head, own_head in zip(heads, own_heads, strict=True):
            indices = frozenset(map(_Reads.index, reads, own_head, own_tails))
            if indices not in found:
                choice = TermChoice((*head, *tail), len(first), costs[tail])
                found[indices] = _Candidate(choice, indices)
    return list(found.values())


def _places(order: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(order)}


class _Reads:
    """The indices by which an atom is read: they depend on the order of its own variables alone."""

    def __init__(self, atom: JoinAtom) -> None:
        self._atom = atom
        self._known: dict[tuple[str, ...], Index] = {}

    def own(self, places: Mapping[str, int]) -> tuple[str, ...]:
        """The atom's variables among some that have places, in this order."""
        return tuple(
            sorted({name for name in self._atom.variables if name in places}, key=places.__getitem__)
        )

    def index(self, head: tuple[str, ...], tail: tuple[str, ...]) -> Index:
        order = head + tail
        if order not in self._known:
            self._known[order] = self._atom.relation, read_key(self._atom, order)
        return self._known[order]


def read_key(atom: JoinAtom, order: Sequence[str]) -> IndexKey:
    """The index by which an atom is read under an order."""
    columns = (*atom.levels(order)[0], *atom.counted)
    return levels_of(columns, atom.equal, atom.identity), atom.equal


def _tails(atom: JoinAtom, rest: JoinProblem, catalog: Catalog) -> dict[tuple[str, ...], float]:
    """Orders of the variables that a changed tuple leaves free, with the operations below one such tuple.

    Changed tuples are taken to be like those that are there: they hold frequent keys often.  Where there are
    none, the bound variables run over what the other atoms hold of them.
    """
    first = tuple(dict.fromkeys(atom.variables))
    if set(rest.variables) <= set(first):
        return {(): 1.0}
    n_rows = catalog[atom.relation].n_rows
    atoms = (atom, *rest.atoms) if n_rows else rest.atoms
    bound = first if n_rows else tuple(name for name in first if name in rest.variables)
    emitted = tuple(dict.fromkeys((*rest.emitted, *bound)))
    below = replace(rest, atoms=atoms, emitted=emitted, labels={**dict.fromkeys(bound, ""), **rest.labels})
    model = CostModel(below, catalog)
    begun = model.path(bound)
    n_tuples = n_rows or max(1.0, begun.nodes)
    return {
        tuple(name for name in order if name not in bound): max(0.0, cost - begun.cost) / n_tuples
        for order, cost in candidates(model, searched_from=0.0).items()
    }
