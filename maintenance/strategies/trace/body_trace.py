"""One body of a rule, kept by its trace (docs/design/engine.md sections 4 and 5).

``build`` evaluates it whole, with recording; ``step`` takes the change from one
version of its relations to the next and gives the assignments that came and
went.  Nothing is evaluated on both sides: a region where a branch came had
nothing before, one where a branch went has nothing now.

Invariants

1. Coverage: after ``build`` and every ``step`` the records cover the trace over
   the newest version stepped to (docs/design/engine.md section 4).  A step that is rolled
   back leaves more records than needed, which is sound; what it found dead or cut is
   staged, and dropped when the step is kept; then what is left of those that are cut is recorded.
2. ``regions <= surgeries + matches`` in every step.
3. What a build makes takes its place by one assignment; a search is taken away while it runs, so
   one that was left half way is never used again.

Records below branches that are gone are dropped when a change matches them
(:mod:`maintenance.strategies.trace.dead_records`).  Those of reached nodes are cut where another participant
covers the key as well (:mod:`maintenance.strategies.trace.cut_records`).  Those that are matched in vain and
stay cost a failed path test each time.  When such tests since the last build have cost as much as building,
or the records are twice as many as then, the body is worn.  Then it is *renewed*, a piece after each commit:
all records become old, a whole evaluation goes on where the last piece left it, over the versions that are
published by then, and when it has come to its end the old records are dropped.

4. Coverage by the records that are not old, while a body is renewed: of every node reached, at every key that
   is not left (:mod:`lftj.search.regions.pieces`).  For changes are matched against all records, and what a
   step records is never old.  Of two records that hold the same, an old one does not stand for a new one.
5. A piece takes RENEWED_LEAST operations and as many as the commit took.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from indices.housekeeping import housekeeping
from indices.sensitivity import SensitivityIndex
from lftj.errors import RangeError
from lftj.planning.lowered import Lowered
from lftj.search.machine.plan import RegionPlan
from lftj.search.regions.evaluation import OverBudget, Records, evaluate_whole
from lftj.search.regions.pieces import PieceSearch
from lftj.storage.index_version import IndexVersion
from lftj.storage.net_weights import multiply_weights
from lftj.storage.signed_rows import Columns, gathered, table_of
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Assignments, BodySearch, Building, Read, Round, Versions
from maintenance.strategies.surgery import surgeries_in
from maintenance.strategies.trace.built import Built
from maintenance.strategies.trace.cut_records import pieces_of
from maintenance.strategies.trace.dead_records import Followed, judge_matched
from maintenance.strategies.trace.oracle import MINUS, PLUS, Regions, find_regions


@dataclass(frozen=True)
class Settled:
    """What a step makes of matched records.

    ``dropped``: int64 (3, n): stream, run and record of those that go, ascending by stream; ``pieces``: by
    stream, what is left of those that are cut.
    """

    sensitivity: list[SensitivityIndex]
    dropped: np.ndarray
    pieces: list[tuple[int, Records]]

    def settle(self) -> None:
        """Drop them and record the pieces; done twice, pieces are there twice, which is sound.

        In this order: records that are packed or merged with new ones can be dropped no more.
        """
        streams, runs, records = self.dropped
        ends = np.searchsorted(streams, np.arange(len(self.sensitivity) + 1))
        for index, start, end in zip(self.sensitivity, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if start < end:
                index.drop(runs[start:end], records[start:end])
        _enter(self.sensitivity, self.pieces)


class BodyTrace(BodySearch):
    """A body with its sensitivity records, which need no publishing: more than needed are sound."""

    def __init__(self, lowered: Lowered, plan: RegionPlan) -> None:
        self.lowered = lowered
        self.plan = plan
        self._built = Built.of(self._no_records())
        self._search: PieceSearch | None = None
        self.taken = 0
        """What the next piece takes beside RENEWED_LEAST: as many operations as steps took since the last."""
        self._settled: Settled | None = None

    def _no_records(self) -> list[SensitivityIndex]:
        return [SensitivityIndex(len(p.places) - 1, len(p.context_places)) for p in self.plan.streams]

    @property
    def sensitivity(self) -> list[SensitivityIndex]:
        """The records, by stream."""
        return self._built.sensitivity

    @property
    def n_records(self) -> int:
        """How many records it keeps."""
        return sum(index.n_records for index in self.sensitivity)

    @property
    def nbytes(self) -> int:
        return sum(index.nbytes for index in self.sensitivity)

    @property
    def lists_assignments(self) -> bool:
        return True

    @property
    def variables(self) -> tuple[str, ...]:
        return self.plan.order

    @property
    def reads(self) -> Iterable[Read]:
        return [(use.relation, use.key) for use in self.plan.indexes]

    @property
    def nothing(self) -> Assignments:
        return [np.empty(0, np.int64) for _ in self.variables], np.empty(0, np.int64)

    def build(self, building: Building) -> Assignments:
        """All assignments; the records are those of this evaluation alone."""
        rows, built = self.rebuilt(building)
        self.take(built)
        return rows

    def rebuilt(self, building: Building) -> tuple[Assignments, Built]:
        """All assignments over the versions, and this evaluation's records, for :meth:`take`."""
        if self.lowered.empty:
            return self.nothing, Built.of(self._no_records())
        columns, built = self._evaluated(building)
        return (columns, self._weights(columns, building.versions, 1)), built

    def take(self, built: Built | None) -> None:
        """Go on from what an evaluation over the newest versions left; None: without records."""
        self._built = built or Built.of(self._no_records())

    def begin(self) -> None:
        """Go on from no records: those of a whole evaluation come in pieces, by :meth:`tidy`.

        Until :attr:`is_whole` a step follows what is recorded, and the rows that it finds are not all.
        """
        built = Built.of(self._no_records())
        if self.plan.streams and not self.lowered.empty:
            built.begin(self.plan.depths)
        self._built = built

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be recorded."""
        return self._built.left is None

    @property
    def renewed_operations(self) -> int:
        """What recording in pieces has taken so far."""
        return self._built.renewed_operations

    def _evaluated(self, building: Building) -> tuple[list[np.ndarray], Built]:
        """All rows over the versions, and what is to be kept of them; nothing here changes."""
        columns, records, operations = evaluate_whole(
            self.plan, self._indexes(building.versions), True, building.threads, building.advance
        )
        sensitivity = self._no_records()
        _enter(sensitivity, records)
        return columns, Built.of(sensitivity, operations.total)

    def step(self, change: Round, stats: RuleStats) -> Assignments:
        return self.step_within(change, stats, None)

    def step_within(self, change: Round, stats: RuleStats, budget: int | None) -> Assignments:
        """:meth:`step`; raises OverBudget soon after more than ``budget`` operations."""
        if self.plan.lists_an_index:
            return self._listed_change(change, stats)
        regions = self._regions(change, stats)
        followed = Followed.nowhere(regions, self.plan)
        parts: list[Assignments] = []
        for sign, versions, weight in ((PLUS, change.new, 1), (MINUS, change.old, -1)):
            rows, numbers = regions.of_sign(sign)
            if not len(rows):
                continue
            told = followed.came if sign == PLUS else followed.went
            paths = told[numbers]
            columns = self._search_below(rows, versions, sign == PLUS, stats, paths, budget)
            told[numbers] = paths
            parts.append((columns, self._weights(columns, versions, weight)))
        self._stage_judged(regions, followed, stats)
        return gathered(parts) if parts else self.nothing

    def _weights(self, columns: Columns, versions: Versions, sign: int) -> np.ndarray:
        """The signed number of assignments that each row stands for.

        Raises RangeError for one beyond int64.
        """
        weights = np.full(len(columns[0]), sign, np.int64)
        for participant, _ in self.plan.counted:
            use = self.plan.indexes[participant.index]
            index = versions[use.relation].index_at(use.key)
            path = table_of([columns[place] for place in participant.places], len(weights))
            if not multiply_weights(index.memory, path, weights):
                raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
        return weights

    def _listed_change(self, change: Round, stats: RuleStats) -> Assignments:
        """The rows of a body that is one atom: a branch that came or went is a row that did."""
        (use,) = self.plan.indexes
        surgeries = None if self.lowered.empty else surgeries_in(change, use.relation, use.key)
        if surgeries is None:
            return self.nothing
        columns, signs = surgeries.at_level(self.plan.depths - 1)
        stats.surgeries += len(signs)
        return columns, signs

    def rows(self, change: Round, after: bool) -> Assignments:
        if self.lowered.empty:
            return self.nothing
        versions = change.new if after else change.old
        columns = evaluate_whole(self.plan, self._indexes(versions), False)[0]
        return columns, self._weights(columns, versions, 1)

    def _regions(self, change: Round, stats: RuleStats) -> Regions:
        """The change oracle's regions; they are counted."""
        uses = self.plan.indexes
        if self.lowered.empty:
            return Regions.none(self.plan.depths, 0, 0)
        regions = find_regions(
            self.plan,
            lambda index: surgeries_in(change, uses[index].relation, uses[index].key),
            self.sensitivity,
        )
        stats.surgeries += regions.surgeries
        stats.matches += regions.matches
        stats.regions += len(regions)
        return regions

    def _search_below(
        self,
        regions: np.ndarray,
        versions: Versions,
        record: bool,
        stats: RuleStats,
        paths: np.ndarray,
        budget: int | None = None,
    ) -> list[np.ndarray]:
        """Rows below regions; records are entered, operations counted.

        ``paths``: int64 (regions, PATH_FIELDS), what is asked of their paths; what is told is written.
        """
        search = self._taken_search()
        try:
            columns, records, operations = search.run(
                self._indexes(versions), regions, record, budget=budget, paths=paths
            )
        except OverBudget as over:
            stats.count(over.operations)
            raise
        self._give_back(search)
        _enter(self.sensitivity, records)
        stats.count(operations)
        self.taken += operations.total
        return columns

    def _taken_search(self) -> PieceSearch:
        """A search, which nobody else has until it is given back."""
        (search, self._search) = (self._search or PieceSearch(self.plan), None)
        return search

    def _give_back(self, search: PieceSearch) -> None:
        if search.log_capacity <= KEPT_CAPACITY:
            self._search = search

    def _stage_judged(self, regions: Regions, followed: Followed, stats: RuleStats) -> None:
        """Stage what becomes of the matched records; those that were tested in vain and stay are wear."""
        self._settled = None
        if not regions.matches:
            return
        is_renewed = self._built.left is not None
        old = [index.old_serials for index in self.sensitivity] if is_renewed else []
        judged = judge_matched(regions, followed, old)
        if judged.dropped.shape[1]:
            cut = len(judged.cut) > 0
            pieces = pieces_of(regions, followed.came, judged.cut, self.plan) if cut else []
            self._settled = Settled(self.sensitivity, judged.dropped, pieces)
        stats.dropped_records += judged.dead
        self._built.wasted_operations += judged.vain * self.plan.depths
        self.taken += judged.vain * self.plan.depths

    def _keep_own(self) -> None:
        if self._settled is not None:
            self._settled.settle()
            self._settled = None

    def _drop_own(self) -> None:
        self._settled = None

    def tidy(self, versions: Versions) -> bool:
        """Renew a piece of a body that is worn, over versions that are published; True for the last one."""
        built = self._built
        most, self.taken = RENEWED_LEAST + self.taken, 0
        if built.left is None:
            if not built.is_worn:
                return False
            built.begin(self.plan.depths)
        assert built.left is not None
        search = self._taken_search()
        (columns, records, operations), left = search.run_piece(self._indexes(versions), built.left, most)
        self._give_back(search)
        _enter(built.sensitivity, records)
        self._renew_rows(columns)
        housekeeping.rows += operations.total
        built.renewed_operations += operations.total
        built.left = left  # decides: until here the piece is made again
        if not len(left):
            built.end()
        return not len(left)

    def _renew_rows(self, columns: Columns) -> None:
        """Rows that a piece has found, which are there already."""

    def describe(self) -> list[str]:
        """The key order, and the records by participant."""
        plan = self.plan
        labels = self.lowered.problem.labels
        names = [labels.get(name, name) for name in plan.order]
        order = ", ".join(names[: plan.tail])
        if plan.tail < len(names):
            order = f"{order} | {', '.join(names[plan.tail :])}   (behind the bar: until the first success)"
        lines = [order]
        for part, label in plan.counted:
            lines.append(f"tuples of {label} are counted below {', '.join(names[p] for p in part.places)}")
        for participant in plan.participants:
            sign = "!" if participant.negated else ""
            what = "no records, a surgery is the region"
            if participant.stream is not None:
                index = self.sensitivity[participant.stream]
                what = f"{index.n_records:,} records, {index.nbytes:,} bytes"
            elif participant.negated and not participant.tested:
                what = "no records, its last level has them"
            lines.append(f"{sign}{participant.label} level {participant.level}: {what}")
        if self._built.left is not None:
            lines.append(f"worn, being renewed: {self.renewed_operations:,} operations so far")
        return lines

    def _check_own(self) -> None:
        for index in self.sensitivity:
            index.check_invariants()

    def _indexes(self, versions: Versions) -> list[IndexVersion]:
        return [versions[use.relation].index_at(use.key) for use in self.plan.indexes]


RENEWED_LEAST = 1 << 10
"""Operations of a piece, however small the change: about as many as an ordinary commit has time for."""

KEPT_CAPACITY = 1 << 14
"""Rows that a search which is kept has room for, at most: a large transaction's buffers go."""


def _enter(sensitivity: list[SensitivityIndex], records: list[tuple[int, Records]]) -> None:
    for stream, found in records:
        sensitivity[stream].record(found.prefix, found.lo, found.hi, found.context)
