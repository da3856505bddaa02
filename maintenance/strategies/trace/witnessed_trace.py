"""A body kept by short circuit: one witness for each binding of the head variables that holds.

All existential variables stand behind the head variables in the key order, in the plan's
*tail* (:mod:`lftj.search.machine.tail`).  A binding that holds depends on its witness alone; one
that fails depends on its whole failed search, whose records are kept (docs/design/engine.md section
5.5; ILFTJ 2.2.1).  So a region inside of the tail matters only in two cases:

* a branch went and the witness passes through it: the binding is searched anew, first from the witness's
  own first key on, then before it.  What lies before had failed when the witness was found, and the next
  one is likely to come after;
* a branch came and the binding fails: the region alone is searched.

Invariants

1. The witnesses are one row of all depths for each head binding that holds.
2. Coverage (docs/design/engine.md section 4), where in tails that hold the witness is covered.
3. Witnesses that a step finds are staged.

Witnesses lie in an index version in key order, so the prefix of a region tells by two
look-ups whether the binding holds and whether its witness passes through the region.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from indices.compiled import kernel
from indices.keys import KEY_MAX, KEY_MIN
from lftj.planning.lowered import Lowered
from lftj.search.machine.plan import RegionPlan, compile_regions
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.regions.evaluation import RegionSearch, whole
from lftj.storage.index_version import IndexVersion
from lftj.storage.net_weights import net_weights
from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.trie import Trie
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Assignments, BodyTest, Building, Round
from maintenance.strategies.trace.body_trace import BodyTrace, Built
from maintenance.strategies.trace.cut_records import no_paths
from maintenance.strategies.trace.dead_records import Followed
from maintenance.strategies.trace.oracle import MINUS, PLUS

HOLDS = 1  # the head binding above the region has a witness
PASSES = 2  # and the witness passes through the region
NEARS = 4  # or at least through the node of the region's last key


class WitnessedTrace(BodyTrace, BodyTest):
    """A body whose assignments are the bindings of its head variables that hold."""

    def __init__(self, lowered: Lowered, plan: RegionPlan) -> None:
        super().__init__(lowered, plan)
        self.tail = plan.tail
        self._built.witnesses = _as_index([np.empty(0, np.int64) for _ in plan.order])
        self._staged: IndexVersion | None = None
        self._listing_plan = _listing_plan(plan.order)
        self._listing: RegionSearch | None = None

    @property
    def lists_assignments(self) -> bool:
        return False

    @property
    def witnesses(self) -> IndexVersion:
        """A row of all depths for each head binding that holds."""
        assert self._built.witnesses is not None
        return self._built.witnesses

    @property
    def variables(self) -> tuple[str, ...]:
        return self.plan.order[: self.tail]

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.witnesses.nbytes

    @property
    def holds(self) -> bool:
        """Whether any head binding holds; where there is no head variable, whether the body does."""
        return self.witnesses.n_tuples > 0

    @property
    def will_hold(self) -> bool:
        """:attr:`holds`, after what is staged."""
        return (self._staged or self.witnesses).n_tuples > 0

    def build(self, building: Building) -> Assignments:
        if self.lowered.empty:
            return self.nothing
        columns, self._built = self._evaluated(building)
        return columns[: self.tail], np.broadcast_to(np.int64(1), len(columns[0]))

    def _evaluated(self, building: Building) -> tuple[list[np.ndarray], Built]:
        """The witnesses come together with the records: others would not be covered."""
        columns, built = super()._evaluated(building)
        built.witnesses = _as_index(columns)
        return columns, built

    def step(self, change: Round, stats: RuleStats) -> Assignments:
        regions = self._regions(change, stats)
        if not len(regions):
            return self.nothing
        rows, signs = regions.rows, regions.signs
        found = np.empty(len(rows), dtype=np.int64)
        look_up(self.witnesses.memory, np.ascontiguousarray(rows.T), self.tail, self.holds, found)
        inside = rows[:, 0] > self.tail
        followed = Followed.nowhere(regions, self.plan)
        followed.aside[inside & (found == HOLDS)] = 1
        lost = inside & (signs == MINUS) & (found & PASSES != 0)
        tried = inside & (signs == PLUS) & (found == 0)
        skipped = inside & ~lost & ~tried
        stats.skipped_regions += int(skipped.sum())
        self._built.wasted_operations += int((skipped & (found != HOLDS)).sum())
        lost_witnesses = self._listed(self._head_regions(rows[lost]))
        went = np.concatenate([self._listed(rows[~inside & (signs == MINUS)]), lost_witnesses])
        own = np.flatnonzero(tried | (~inside & (signs == PLUS)))
        after, before = self._resumed(lost_witnesses)
        searched = np.concatenate([rows[own], after, before])
        came = went[:0]
        if len(searched):
            placed = searched.copy()
            placed[len(own) : len(own) + len(after), 2 + self.tail] = KEY_MIN
            order = _key_order(placed)  # equal ones as they come: what is after a witness, then before
            asked = np.concatenate([followed.came[own], no_paths(len(after) + len(before))])
            paths = asked[order]
            columns = self._search_below(searched[order], change.new, True, stats, paths)
            came = np.stack(columns, axis=1)
            followed.came[own] = paths[np.argsort(order)[: len(own)]]
        self._stage_judged(regions, followed, stats)
        return self._stage(went, came)

    def _stage(self, went: np.ndarray, came: np.ndarray) -> Assignments:
        """Stage the change of witnesses; rows of all depths.  Returns the change of the head bindings."""
        columns = np.ascontiguousarray(np.concatenate([went, came]).T)
        signs = np.ones(len(went) + len(came), dtype=np.int64)
        signs[: len(went)] = -1
        if not len(signs):
            return self.nothing
        self._staged = self.witnesses.advance(*net_rows(columns, signs))
        return net_rows(columns[: self.tail], signs)

    def rows(self, change: Round, after: bool) -> Assignments:
        witnesses = (self._staged or self.witnesses) if after else self.witnesses
        return witnesses.columns()[: self.tail], np.ones(witnesses.n_tuples, dtype=np.int64)

    def _renew_rows(self, columns: Columns) -> None:
        """The witnesses that were recorded take the place of those that the same head bindings had."""
        came = np.stack(list(columns), axis=1)
        if not len(came):
            return
        bindings = np.empty((len(came), 2 + self.plan.depths), np.int64)
        bindings[:, 2:] = came
        went = self._listed(self._head_regions(bindings))
        rows = np.ascontiguousarray(np.concatenate([went, came]).T)
        signs = np.ones(rows.shape[1], np.int64)
        signs[: len(went)] = -1
        rows, signs = net_rows(rows, signs)
        if len(signs):
            self._built.witnesses = self.witnesses.advance(rows, signs)

    def _keep_own(self) -> None:
        super()._keep_own()
        if self._staged is not None:
            self._built.witnesses = self._staged
            self._staged = None

    def _drop_own(self) -> None:
        super()._drop_own()
        self._staged = None

    def _check_own(self) -> None:
        super()._check_own()
        assert self._staged is None
        self.witnesses.check_invariants()
        bindings = list(zip(*(c.tolist() for c in self.witnesses.columns()[: self.tail]), strict=True))
        assert len(set(bindings)) == len(bindings) and (self.tail or self.witnesses.n_tuples <= 1)

    def _head_regions(self, rows: np.ndarray) -> np.ndarray:
        """The head bindings of sorted regions inside of the tail, as regions, each once."""
        if not len(rows):
            return rows
        if not self.tail:
            return whole(self.plan.depths)
        heads = rows.copy()
        heads[:, 0] = self.tail
        heads[:, 1] = heads[:, 1 + self.tail]
        heads[:, 2 + self.tail :] = KEY_MIN
        first = np.ones(len(heads), dtype=bool)
        first[1:] = (heads[1:] != heads[:-1]).any(axis=1)
        return heads[first]

    def _resumed(self, witnesses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The regions of their head bindings from the witnesses' first keys on, and those before them.

        witnesses: int64 (n, depths).
        """
        after = np.full((len(witnesses), 2 + self.plan.depths), KEY_MIN)
        after[:, 0], after[:, 1] = self.tail + 1, KEY_MAX
        after[:, 2 : 3 + self.tail] = witnesses[:, : self.tail + 1]
        before = after[after[:, 2 + self.tail] > KEY_MIN]
        before[:, 1] = before[:, 2 + self.tail] - 1
        before[:, 2 + self.tail] = KEY_MIN
        return after, before

    def _listed(self, regions: np.ndarray) -> np.ndarray:
        """The witnesses below regions: int64 (n, depths)."""
        if not len(regions):
            return np.empty((0, self.plan.depths), dtype=np.int64)
        (search, self._listing) = (self._listing or RegionSearch(self._listing_plan), None)
        columns, _, _ = search.run([self.witnesses], regions, record=False)
        self._listing = search
        return np.stack(columns, axis=1)


def _as_index(columns: Sequence[np.ndarray]) -> IndexVersion:
    """Sorted rows as an index that nothing else holds; the last column is copied."""
    return IndexVersion(Trie.from_sorted([*columns[:-1], columns[-1].copy()]))


def _key_order(regions: np.ndarray) -> np.ndarray:
    """The numbers of regions none of which extends another, in the order of their keys."""
    return np.lexsort(regions.T[:1:-1])


def _listing_plan(order: tuple[str, ...]) -> RegionPlan:
    """A plan with one atom, to list the rows of an index below regions."""
    any_type = ColumnType(Domains().of(pa.int64()), pa.int64())
    schema = Schema(tuple(Column(name, any_type) for name in order))
    every = tuple(range(len(order)))
    problem = JoinProblem((JoinAtom("witness#", schema, every, order),), emitted=order)
    return compile_regions(problem, order, 0)


@kernel(makes_arrays=True)
def look_up(memory, regions, tail, any_holds, found):
    """What is known of the head binding above each region that is inside of the tail.

    memory: that of the version of the witnesses; any_holds: whether there is one; regions: int64
    (2 + depths, n), a region per column.
    found: int64 (n,), written: HOLDS, PASSES and NEARS bits; 0 for regions that are not inside of the tail.
    """
    keys = regions[2:]
    weights = np.empty(keys.shape, dtype=np.int64)
    net_weights(memory.ctypes.data, keys, weights)
    for number in range(regions.shape[1]):
        bound = regions[0, number]
        found[number] = 0
        if bound <= tail:
            continue
        if any_holds if tail == 0 else weights[tail - 1, number] > 0:
            found[number] = HOLDS
            if bound == tail + 1 or weights[bound - 2, number] > 0:
                found[number] |= NEARS
        if weights[bound - 1, number] > 0:
            found[number] |= PASSES
