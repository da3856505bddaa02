"""One term of a delta rule: the change of one atom, joined with the others (STRATEGIES.md section 1).

    d(A1 ... An) = SUM_i  new(A1) ... new(A_i-1) * dA_i * old(A_i+1) ... old(An)

The change of atom i are the branches of its last walked level that came or went; where its
further columns are counted, the branches below which their number changed, with the
difference.  They are *regions* of the search of the others (:mod:`lftj.search.regions`), all
of a transaction in one call: each row begins with the keys of its region, whose weight it gets.
Variables behind those that are wanted are counted, not listed.

Of a negated atom the branches weigh the other way round: what came forbids.

Cost: O(changed branches * path tests + operations below them); nothing is kept but the search's buffers.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from indices.compiled import kernel
from lftj.errors import RangeError
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.regions.evaluation import OverBudget, RegionSearch
from lftj.search.regions.plan import RegionPlan, compile_regions
from lftj.storage.catalog import Catalog, IndexUse, Side
from lftj.storage.index_version import IndexVersion
from lftj.storage.net_weights import multiply_weights
from lftj.storage.relation_version import levels_of
from lftj.storage.signed_rows import net_rows, table_of
from maintenance.stats import RuleStats
from maintenance.strategies.delta.term_order import TermChoice, choose_term_orders
from maintenance.strategies.strategy import Assignments, Round, Versions
from maintenance.strategies.surgery import surgeries_in


@dataclass(frozen=True, eq=False)
class TermPlan:
    """How a term is searched.

    ``atom``: the one that changed; ``sign``: -1 where it is negated.  ``change``, ``level``: an index and its
    level whose branches are the change.  ``search``: that of the other atoms, None where there is nothing
    to join or test.
    """

    atom: JoinAtom
    sign: int
    choice: TermChoice
    change: IndexUse
    level: int
    search: RegionPlan | None

    @property
    def uses(self) -> tuple[IndexUse, ...]:
        """The indices of the others."""
        return self.search.indexes if self.search else ()


def left_over(problem: JoinProblem) -> list[tuple[JoinAtom, JoinProblem]]:
    """For each term of a problem the atom that changed, and what is left: earlier atoms are new, later old.

    The atoms stand in the problem's order, the negated ones last.
    """
    every = (*problem.atoms, *problem.negations)
    terms = []
    for place, atom in enumerate(every):
        sided = [
            replace(other, side=Side.NEW if at < place else Side.OLD)
            for at, other in enumerate(every)
            if at != place
        ]
        cut = len(problem.atoms) - (place < len(problem.atoms))
        rest = replace(problem, atoms=tuple(sided[:cut]), negations=tuple(sided[cut:]))
        terms.append((atom, rest))
    return terms


def plan_term(atom: JoinAtom, negated: bool, rest: JoinProblem, choice: TermChoice) -> TermPlan:
    """A term in the key order that was chosen for it."""
    columns, _ = atom.levels(choice.order)
    levels = (*columns, *atom.counted)
    use = IndexUse(atom.relation, (levels_of(levels, atom.equal, atom.arity), atom.equal), Side.CHANGE)
    joins = bool(rest.atoms or rest.negations or rest.conditions)
    search = compile_regions(rest, choice.order, gap=0, listed=choice.listed(rest)) if joins else None
    return TermPlan(atom, -1 if negated else 1, choice, use, len(levels) - 1, search)


def plan_terms(problem: JoinProblem, catalog: Catalog) -> list[Term]:
    """The terms of a problem's delta rule, in the order of its atoms, the negated ones last."""
    parts = left_over(problem)
    orders = choose_term_orders(problem, parts, catalog)
    return [
        Term(plan_term(atom, place >= len(problem.atoms), rest, order))
        for place, ((atom, rest), order) in enumerate(zip(parts, orders, strict=True))
    ]


class Term:
    """A term at work: one search at a time."""

    def __init__(self, plan: TermPlan) -> None:
        self.plan = plan
        self._search: RegionSearch | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Those of the rows, in key order: all that are not only counted."""
        search = self.plan.search
        return self.plan.choice.order[: search.listed if search else None]

    def rows(self, change: Round, stats: RuleStats, budget: int | None = None) -> Assignments | None:
        """The term's signed rows in a round, in the term's key order; None where there is none.

        Raises OverBudget soon after more than ``budget`` operations.
        """
        found = self._change(change)
        if found is None:
            return None
        columns, weights = found
        if not len(weights):
            return None
        stats.surgeries += len(weights)
        if self.plan.search is None:
            return columns, weights
        stats.regions += len(weights)
        return self._joined(self.plan.search, columns, weights, change, stats, budget)

    def sampled_operations(self, change: Round, sample: int) -> tuple[float, int]:
        """What the term would take in a round, by some of its changed branches; and what these took."""
        found = self._change(change)
        if found is None or self.plan.search is None:
            return 0.0, 0
        columns, weights = found
        n_rows = len(weights)
        places = np.unique(np.linspace(0, n_rows - 1, min(n_rows, sample)).astype(np.int64))
        figures = RuleStats()
        chosen = np.ascontiguousarray(columns[:, places])
        self._joined(self.plan.search, chosen, weights[places], change, figures, None)
        taken = figures.operations
        return taken * n_rows / max(1, len(places)), taken

    def _change(self, change: Round) -> tuple[np.ndarray, np.ndarray] | None:
        """The changed branches, int64 (bound variables, n), sorted, and their weights."""
        plan = self.plan
        found = surgeries_in(change, plan.change.relation, plan.change.key)
        if found is None:
            return None
        columns, weights = found.at_level(plan.level)
        if plan.atom.counted:
            columns, weights = net_rows(columns[: plan.choice.bound], weights)
        return columns, weights if plan.sign > 0 else -weights

    def _joined(
        self,
        plan: RegionPlan,
        columns: np.ndarray,
        weights: np.ndarray,
        change: Round,
        stats: RuleStats,
        budget: int | None,
    ) -> Assignments | None:
        indexes = [_index(use, change) for use in plan.indexes]
        regions = regions_below(columns, plan.depths)
        (search, self._search) = (self._search or RegionSearch(plan), None)
        try:
            rows, weighted, operations = search.weighted(indexes, regions, weights, budget)
        except OverBudget as over:
            stats.count(over.operations)
            raise
        if search.rows.shape[1] <= KEPT_CAPACITY:
            self._search = search
        stats.count(operations)
        if not len(weighted):
            return None
        if plan.listed < plan.depths:
            weighted *= rows[plan.listed]
            rows = rows[: plan.listed]
        for participant, _ in plan.counted:
            path = table_of([rows[place] for place in participant.places], len(weighted))
            if not multiply_weights(indexes[participant.index].memory, path, weighted):
                raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
        return rows, weighted

    def prepare(self, versions: Versions) -> None:
        """Build the indices that the term reads, so that commits step them."""
        plan = self.plan
        for use in plan.uses:
            versions[use.relation].index_at(use.key)
        if plan.level + 1 < len(plan.change.key[0]):  # else the changed tuples are the branches
            versions[plan.change.relation].index_at(plan.change.key)


KEPT_CAPACITY = 1 << 14
"""Rows that a search which is kept has room for, at most: a large transaction's buffers go."""


def _index(use: IndexUse, change: Round) -> IndexVersion:
    versions = change.old if use.side is Side.OLD else change.new
    return versions[use.relation].index_at(use.key)


@kernel
def regions_below(columns, depths):
    """Sorted bindings of the first variables as regions of a search: int64 (n, 2 + depths).

    columns: int64 (bound variables, n).
    """
    bound, n = columns.shape
    regions = np.zeros((n, 2 + depths), np.int64)
    for region in range(n):
        regions[region, 0] = bound
        regions[region, 1] = columns[bound - 1, region]
        for depth in range(bound):
            regions[region, 2 + depth] = columns[depth, region]
    return regions
