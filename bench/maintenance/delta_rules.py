"""`DeltaRules`: maintenance of the existence rule by counting, with the operations it takes.

DBSP's bilinear join, n-ary (ENGINE.md section 7): for each atom i of the rule,
the change of i is joined with the atoms before i in their new version and those
after i in their old one.  The signed assignments add to the support counts of
the head; a head tuple comes or goes where its support leaves or reaches 0.

How the operations are counted: each term is searched by lftj's own kernel, in a
key order that starts with the variables of atom i, below the region that the
changed tuple names; so the change itself costs nothing and each other atom costs
its membership tests along the region and its leapfrog below.  The three
variables leave one such order per term: the third variable comes last.

Invariant: ``support[a]`` is the number of assignments behind hub(a) in the version now.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import lftj
from bench.maintenance.existence import RULE
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.regions.evaluation import Operations, RegionSearch
from lftj.search.regions.plan import compile_regions
from lftj.storage.catalog import Side
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion

ATOMS = (("a", "b"), ("b", "c"), ("a", "c"))
"""Variables of the rule's atoms e(a, b), e(b, c), e(a, c)."""

COUNTED = RULE.replace("hub(a)", "n[a] = count()")


class _Term:
    """The rule with the change in place of one atom, joined in a key order that starts with its variables.

    Of the other atoms those before it read the new version, those behind it the old one.
    """

    def __init__(self, changed: int, edges: Relation) -> None:
        atoms = [
            JoinAtom("e", edges.schema, (0, 1), variables, side=Side.NEW if place < changed else Side.OLD)
            for place, variables in enumerate(ATOMS)
            if place != changed
        ]
        (third,) = {"a", "b", "c"}.difference(ATOMS[changed])
        self.plan = compile_regions(JoinProblem(tuple(atoms)), (*ATOMS[changed], third), gap=0)
        self.search = RegionSearch(self.plan)
        self.head_place = self.plan.order.index("a")

    def run(
        self, edge: tuple[int, int], before: RelationVersion, after: RelationVersion
    ) -> tuple[np.ndarray, Operations]:
        """Values of ``a`` of the assignments that the changed edge takes part in as this atom."""
        indexes = [(after if use.side is Side.NEW else before).index_at(use.key) for use in self.plan.indexes]
        region = np.array([[2, edge[1], *edge, 0]], dtype=np.int64)
        columns, _, operations = self.search.run(indexes, region, record=False)
        return columns[self.head_place], operations


class DeltaRules:
    """The rule over a relation of edges, kept by support counts.

    >>> rules = DeltaRules(np.array([1, 2]), np.array([2, 3]))
    >>> rules.change((1, 3), 1), rules.change((1, 3), 1)
    ([(1, 1)], [])
    >>> rules.change((1, 3), -1)
    [(1, -1)]
    """

    def __init__(self, source: np.ndarray, destination: np.ndarray) -> None:
        """From distinct edges."""
        database = lftj.Database()
        database.load("e", {"src": source, "dst": destination})
        counts = database.query(COUNTED)
        self.support = dict(zip(*(column.to_pylist() for column in counts.columns), strict=True))
        self.version = RelationVersion(database["e"].relation)
        self.operations = Operations()
        self._terms = [_Term(changed, database["e"].relation) for changed in range(3)]

    def change(self, edge: tuple[int, int], sign: int) -> list[tuple[int, int]]:
        """Insert or erase an edge; returns the head tuples that came (+1) and went (-1), sorted.

        Inserting what is there and erasing what is not there change nothing and cost nothing.
        """
        columns: Sequence[np.ndarray] = [np.array([end]) for end in edge]
        if int(self.version.weights(columns)[0]) != (sign < 0):
            return []
        before, after = self.version, self.version.advance(columns, np.array([sign]))
        self.version = after
        signed: dict[int, int] = {}
        for term in self._terms:
            values, operations = term.run(edge, before, after)
            self.operations.add(operations)
            for value in values.tolist():
                signed[value] = signed.get(value, 0) + sign
        changes = []
        for value, weight in sorted(signed.items()):
            was = self.support.get(value, 0)
            now = self.support[value] = was + weight
            assert now >= 0
            if (was > 0) != (now > 0):
                changes.append((value, 1 if now else -1))
        return changes
