"""Which way the edges of a clique lead, and whether the other way would be cheaper.

Cliques of a graph are asked for over a relation that has each edge once.  Which end stands first is up to who
loads it, and decides what the search costs: it looks at pairs of edges with one first end, so their number is
its bound (Chiba and Nishizeki, 1985).  It is least, or nearly so, where each edge leads from the end with
fewer edges to the one with more.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from lftj.search.problem import JoinProblem
from lftj.storage.catalog import Catalog

WORTH = 2.0
"""How many times fewer pairs of edges are worth a word ..."""

MANY = 100_000
"""... where there are at least so many."""


def cheaper_orientation(problem: JoinProblem, order: Sequence[str], tables: Catalog) -> str | None:
    """What to say of the edges that a body's cliques are searched in; None: nothing.

    O(edges) and a sort of them.
    """
    levels = [atom.levels(order) for atom in problem.atoms]
    pairs = sorted(variables for _, variables in levels)
    relations = {atom.relation for atom in problem.atoms}
    if len(order) < 3 or pairs != sorted(itertools.combinations(order, 2)) or len(relations) > 1:
        return None
    first = {columns[0] for columns, _ in levels}
    if len(first) > 1:
        return None
    (relation,), (column,) = relations, first
    columns = tables[relation].columns()
    if len(columns) != 2:
        return None
    start, end = columns[column], columns[1 - column]
    nodes, ends = np.unique(np.concatenate([start, end]), return_inverse=True)
    start, end = np.split(ends, 2)
    low, high = np.minimum(start, end), np.maximum(start, end)
    if (low == high).any() or len(np.unique(low * len(nodes) + high)) < len(low):
        return None  # both ways are there: another orientation has other cliques
    degree = np.bincount(ends)
    is_less = np.lexsort((np.arange(len(nodes)), degree)).argsort()
    fewer = np.where(is_less[low] < is_less[high], low, high)
    now, then = (int((np.bincount(its).astype(np.int64) ** 2).sum()) for its in (start, fewer))
    if now < max(MANY, WORTH * then):
        return None
    return (
        f"{problem.atoms[0].label.partition('(')[0]}: if each edge led from its end with fewer edges to the "
        f"other, this would look at up to {then:,} pairs of edges, and now at up to {now:,}"
    )
