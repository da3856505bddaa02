"""Measuring one family: commits by trace and by recomputation in lockstep, and the exact distance of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.distance.bound_fit import Point
from bench.distance.edit_distance import Trace, distance, full_trace
from bench.distance.workloads import Changes, Data, Family, after, columns
from lftj.errors import LimitError
from maintenance import Transaction, Workspace
from maintenance.heads.keeping import RECORD_GAP
from maintenance.strategies.trace.body_trace import BodyTrace

GAPS = (0, RECORD_GAP)
"""Exact records first, then the default."""

_HEAD = "h"
_TRACED = "t"  # the rule's head where it is traced: the workspace has a relation called h


@dataclass(frozen=True)
class Skipped:
    """A size that was not measured, and why."""

    family: str
    size: int
    reason: str


class _Kept:
    """One workspace that keeps the family's rule."""

    def __init__(self, family: Family, data: Data, strategy: str, gap: int, order: list[str] | None) -> None:
        self.workspace = Workspace(record_gap=gap)
        for name, rows in data.items():
            self.workspace.load(name, _table(rows))
        orders = None if order is None else {_HEAD: order}
        self.workspace.install(family.rule, strategy, order=orders)

    @property
    def order(self) -> list[str]:
        (trace,) = self.workspace._heads[_HEAD].searches
        assert isinstance(trace, BodyTrace)
        return list(trace.plan.order)

    @property
    def touched(self) -> int:
        return sum(i.touched for search in self.workspace._heads[_HEAD].searches for i in search.sensitivity)

    def commit(self, changes: Changes) -> tuple[Transaction, float]:
        """Commit a change; the transaction, and seconds from its beginning to its end."""
        tables = {name: (_table(gone), _table(came)) for name, (gone, came) in changes.items()}
        started = time.perf_counter()
        with self.workspace.transaction() as transaction:
            for name, (gone, came) in tables.items():
                if gone.num_rows:
                    transaction.erase(name, gone)
                if came.num_rows:
                    transaction.insert(name, came)
        return transaction, time.perf_counter() - started


def _table(rows: np.ndarray) -> pa.Table:
    return pa.table(dict(zip(("c0", "c1"), columns(rows), strict=True)))


class FamilyMeasurement:
    """Commits of one family at one size of the data.

    Every change is made in three workspaces, one for each gap and one that recomputes.
    """

    def __init__(self, family: Family, size: int, limit: int) -> None:
        """Raises LimitError when the full trace has more than ``limit`` operations."""
        self.family = family
        self.size = size
        self.limit = limit
        self.data = family.data(size)
        pinned = None if family.order is None else list(family.order)
        self.kept = {GAPS[0]: _Kept(family, self.data, "trace", GAPS[0], pinned)}
        self.order = self.kept[GAPS[0]].order
        self.trace = self._traced()
        for gap in GAPS[1:]:
            self.kept[gap] = _Kept(family, self.data, "trace", gap, self.order)
        self.recomputed = _Kept(family, self.data, "recompute", RECORD_GAP, None)
        for changes in family.before(self.data) if family.before is not None else []:
            for kept in (*self.kept.values(), self.recomputed):
                kept.commit(changes)
            self.data = after(self.data, changes)
        if family.before is not None:
            self.trace = self._traced()

    def _traced(self) -> Trace:
        workspace = self.kept[GAPS[0]].workspace
        rule = self.family.rule.replace(_HEAD + "(", _TRACED + "(", 1)
        return full_trace(workspace.snapshot(), rule, self.order, self.limit)

    @property
    def tuples(self) -> int:
        return sum(len(rows) for rows in self.data.values())

    def commits(self, generator: np.random.Generator, change: int, repeats: int) -> Iterator[Point]:
        """Points of so many random changes of a size, one per gap."""
        for repeat in range(repeats):
            changed = 0
            while not changed:  # rows drawn to be inserted may all be there
                changes = self.family.next_change(generator, self.data, self.size, change)
                changed = sum(len(rows) for pair in changes.values() for rows in pair)
            tuples, before = self.tuples, self.trace
            _, recompute_seconds = self.recomputed.commit(changes)
            done = {}
            order = GAPS if repeat % 2 == 0 else GAPS[::-1]  # the first one finds colder caches
            for gap in order:
                kept = self.kept[gap]
                touched = kept.touched
                transaction, seconds = kept.commit(changes)
                done[gap] = transaction, seconds, max(0, kept.touched - touched)
            self.data = after(self.data, changes)
            self.trace = self._traced()
            edits = distance(before, self.trace)
            for gap in GAPS:
                transaction, seconds, touched = done[gap]
                stats = transaction.stats.rules[_HEAD]
                yield Point(
                    family=self.family.name,
                    tuples=tuples,
                    change=changed,
                    gap=gap,
                    distance=edits,
                    trace=len(self.trace),
                    operations=stats.operations,
                    surgeries=stats.surgeries,
                    matches=stats.matches,
                    regions=stats.regions,
                    empty_regions=stats.empty_regions,
                    dropped=stats.dropped_records,
                    touched=touched,
                    head_changes=stats.head_changes,
                    records=stats.records,
                    record_bytes=stats.index_bytes,
                    rebuilt=stats.rebuilt,
                    seconds=seconds,
                    recompute_seconds=recompute_seconds,
                )

    def verify(self) -> None:
        """All heads against their recomputation.  Raises VerificationError."""
        for kept in self.kept.values():
            kept.workspace.verify()


def measure(
    family: Family,
    size: int,
    repeats: dict[int, int],
    limit: int,
    progress: Callable[[str], None] = lambda stage: None,
) -> list[Point] | Skipped:
    """All points of a family at one size: ``repeats`` of each change size that the data is large enough for.

    Raises VerificationError when a head was wrong in the end.
    """
    if size > family.largest:
        return Skipped(family.name, size, f"this workload is measured up to {family.largest:,} tuples")
    try:
        progress("installing")
        measurement = FamilyMeasurement(family, size, limit)
        generator = np.random.default_rng(2)
        points: list[Point] = []
        fixed = family.change is not None  # its changes have one size
        for change, number in repeats.items():
            if change > measurement.tuples or (fixed and change > 1):
                continue
            progress(f"changes of {change:,}")
            points += measurement.commits(generator, change, number)
    except LimitError:
        return Skipped(family.name, size, f"the full trace has more than {limit:,} operations")
    progress("verifying")
    measurement.verify()
    return points
