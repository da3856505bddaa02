"""Evaluating regions of a rule's body over versions of its indices, from Python.

The kernel of :mod:`lftj.search.regions.search` writes rows and records into buffers that
stand here; they start small, for the small changes that maintenance mostly is
about, and grow when a search fills them.

Invariant: buffers belong to one search at a time; what leaves them is copied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import address
from lftj.process import debug
from lftj.search import layout as L
from lftj.search import plan_check
from lftj.search.marks import mark_words
from lftj.search.regions.plan import RegionPlan
from lftj.search.regions.search import search_regions
from lftj.search.shares import SLICE, Share, cut_shares, each_share, share_count
from lftj.storage.index_version import IndexVersion

LEAST_CAPACITY = 1 << 10
MOST_CAPACITY = 1 << 19
"""Rows, and records of each stream, that a search has room for, at first and at most."""

WHOLE_CAPACITY = 1 << 25
"""The same for a whole evaluation: memory that is not written to is not taken."""


@dataclass
class Records:
    """Sensitivity records of one stream: int64 columns of one length (prefix, lo, hi, context)."""

    prefix: list[np.ndarray]
    lo: np.ndarray
    hi: np.ndarray
    context: list[np.ndarray]

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        if len(parts) == 1:
            return parts[0]
        return cls(
            [np.concatenate(columns) for columns in zip(*(part.prefix for part in parts), strict=True)],
            np.concatenate([part.lo for part in parts]),
            np.concatenate([part.hi for part in parts]),
            [np.concatenate(columns) for columns in zip(*(part.context for part in parts), strict=True)],
        )


@dataclass
class Operations:
    """Counted operations of the leapfrog, and regions whose path failed."""

    opens: int = 0
    nexts: int = 0
    seeks: int = 0
    failed_regions: int = 0

    @property
    def total(self) -> int:
        return self.opens + self.nexts + self.seeks

    def add(self, other: Operations) -> None:
        self.opens += other.opens
        self.nexts += other.nexts
        self.seeks += other.seeks
        self.failed_regions += other.failed_regions


class OverBudget(Exception):
    """A search was given up when it had taken more operations than it was allowed; ``operations``: those."""

    def __init__(self, operations: Operations) -> None:
        super().__init__(operations.total)
        self.operations = operations


Found = tuple[list[np.ndarray], list[tuple[int, Records]], Operations]
"""Rows, one column per depth; records by stream number; what it took."""


@dataclass
class Gathered:
    """What left the buffers so far: rows, and by stream records, None where nothing records."""

    rows: list[np.ndarray]
    records: list[list[Records]] | None


@dataclass
class Marks:
    """A bit map of the last depth's keys for whole evaluations; ``marked``: the base range it holds now."""

    words: np.ndarray
    base: int
    marked: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, plan: RegionPlan, indexes: Sequence[IndexVersion]) -> Marks | None:
        """None where keys are too sparse for a bit map."""
        last = [p for p in plan.participants if p.depth + 1 == plan.depths and not p.negated]
        ranges = [indexes[p.index].base.key_ranges[p.level] for p in last]
        if len(ranges) < 2:
            return None
        largest = max(len(indexes[p.index].base.keys[p.level]) for p in last)
        base, words = mark_words(ranges, largest)
        return cls(np.zeros(words, dtype=np.int64), base) if words else None


class RegionSearch:
    """One search at a time of one plan: its state and its buffers."""

    def __init__(self, plan: RegionPlan, capacity: int | None = None) -> None:
        """``capacity``: rows that there is room for, at first; by default ``LEAST_CAPACITY``."""
        capacity = LEAST_CAPACITY if capacity is None else capacity
        self.plan = plan
        self.state = plan.new_state()
        self.log = np.zeros(plan.log_length, dtype=np.int64)
        self._make_rows(capacity)
        self._make_log(capacity)

    def run(
        self,
        indexes: Sequence[IndexVersion],
        regions: np.ndarray,
        record: bool,
        stop: threading.Event | None = None,
        marks: Marks | None = None,
        budget: int | None = None,
        paths: np.ndarray | None = None,
        advance: Callable[[float], None] | None = None,
    ) -> Found:
        """Rows below the regions, one column per depth; records by stream number; what it took.

        Of a plan that does not list all depths, the column behind those listed counts the assignments.
        ``regions``: int64 (n, 2 + depths), sorted, none extending another; see search_regions.
        ``paths``: int64 (n, PATH_FIELDS), C order, of regions that bind single values: what is asked and told
        of their paths (:mod:`lftj.search.layout`); written for each region whose path is followed.
        ``advance`` hears the part of the regions that is done.
        Raises OverBudget soon after more than ``budget`` operations.
        """
        state = self.state
        memories = self._begin(indexes, regions)
        if paths is not None:
            state[L.R_PATHS] = address(paths)
        if marks is not None:
            state[L.R_MARKS], state[L.R_MARKS_WORDS] = address(marks.words), len(marks.words)
            state[L.R_MARKS_BASE] = marks.base
            state[L.R_MARKED_FROM], state[L.R_MARKED_TO] = marks.marked
        found = Gathered([], [[] for _ in self.plan.streams] if record else None)
        status = L.STATUS_PAUSED
        pause = SLICE if budget is None else min(SLICE, budget + 1)
        while status != L.STATUS_DONE:
            status = self._search_on(memories, regions, pause, found)
            if stop is not None and stop.is_set():
                break
            if advance:
                begun = int(state[L.R_REGION])
                advance((begun if status == L.STATUS_DONE else max(begun - 1, 0)) / len(regions))
            if status != L.STATUS_DONE:
                self._refuse_over(budget)
        if marks is not None:
            marks.marked = int(state[L.R_MARKED_FROM]), int(state[L.R_MARKED_TO])
        return self._found(found)

    def _begin(self, indexes: Sequence[IndexVersion], regions: np.ndarray) -> np.ndarray:
        """Set the state on the first region; returns where the indices' memories stand."""
        if debug.enabled and len(regions):
            plan_check.check_bindings(plan_check.fixed_by(regions), self.plan.least_bound)
        self.state[: L.REGISTERS] = _FRESH
        return np.array([index.address for index in indexes], dtype=np.int64)

    def _search_on(self, memories: np.ndarray, regions: np.ndarray, pause: int, found: Gathered) -> int:
        """Search until soon after ``pause`` operations, or until buffers are full, and taken; a STATUS_*."""
        memory = self.plan.unrecorded if found.records is None else self.plan.memory
        status = search_regions(memory, self.state, memories, self.log, regions, self.rows, pause)
        if status != L.STATUS_PAUSED:
            self._take(found, status)
        return int(status)

    def _take(self, found: Gathered, status: int) -> None:
        """Empty the buffers, and let those grow that the status says were full."""
        self._take_rows(found.rows, grow=status == L.STATUS_FULL)
        if found.records is not None:
            self._take_records(found.records, grow=status == L.STATUS_LOG_FULL)

    def _found(self, found: Gathered) -> Found:
        rows, records = found.rows, found.records or []
        columns = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1) if rows else self.rows[:, :0]
        return (
            list(columns),
            [(stream, Records.joined(parts)) for stream, parts in enumerate(records) if parts],
            self._operations(),
        )

    def _operations(self) -> Operations:
        """What the search has taken so far."""
        opens, nexts, seeks = self.state[_COUNTERS].tolist()
        return Operations(opens, nexts, seeks, int(self.state[L.R_FAILED_REGIONS]))

    def _refuse_over(self, budget: int | None) -> None:
        """Raise OverBudget where the search has taken more."""
        operations = self._operations()
        if budget is not None and operations.total > budget:
            raise OverBudget(operations)

    def _make_rows(self, capacity: int) -> None:
        """A fresh buffer of rows."""
        self.rows = np.empty((self.plan.depths, capacity), dtype=np.int64)

    @staticmethod
    def _grown(capacity: int) -> int:
        return max(capacity, min(4 * capacity, MOST_CAPACITY))

    def _take_rows(self, rows: list[np.ndarray], grow: bool) -> None:
        filled = int(self.state[L.R_ROWS])
        capacity = self.rows.shape[1]
        hand_over = grow or capacity > MOST_CAPACITY
        if filled:
            rows.append(self.rows[:, :filled] if hand_over else self.rows[:, :filled].copy())
            self.state[L.R_ROWS] = 0
        if hand_over:
            self._make_rows(self._grown(capacity))

    def _take_records(self, records: list[list[Records]], grow: bool) -> None:
        hand_over = grow or self.capacity > MOST_CAPACITY
        for (depth, row, streams), nodes in zip(self.plan.node_logs, self.nodes, strict=True):
            n_nodes = int(self.log[row + L.L_COUNT])
            if not n_nodes:
                continue
            for number, stream in enumerate(streams):
                offset = self.plan.stream_rows[stream]
                count = int(self.log[offset + L.L_COUNT])
                if count:
                    ends = self.streams[stream][:, :count]
                    if not hand_over:
                        ends = ends.copy()
                    path = _spread(nodes, depth, depth + number, n_nodes, count)
                    records[stream].append(self._records_of(stream, path, ends))
                self.log[offset + L.L_COUNT] = self.log[offset + L.L_BEFORE] = 0
            self.log[row + L.L_COUNT] = self.log[row + L.L_BEFORE] = 0
            self.state[self.plan.node_rows[depth] + L.N_LOGGED] = 0
        if hand_over:
            self._make_log(self._grown(self.capacity))

    def _records_of(self, stream: int, path: np.ndarray, ends: np.ndarray) -> Records:
        participant = self.plan.streams[stream]
        return Records(
            [path[place] for place in participant.places[:-1]],
            ends[0],
            ends[1],
            [path[place] for place in participant.context_places],
        )

    def _make_log(self, capacity: int) -> None:
        """Fresh, empty buffers; room for that many records per stream."""
        self.capacity = capacity
        self.streams = [np.empty((2, capacity), dtype=np.int64) for _ in self.plan.streams]
        self.nodes = []
        for row, buffer in zip(self.plan.stream_rows, self.streams, strict=True):
            self.log[row + L.L_LO], self.log[row + L.L_HI] = address(buffer[0]), address(buffer[1])
            self.log[row + L.L_COUNT], self.log[row + L.L_CAPACITY] = 0, capacity
            self.log[row + L.L_BEFORE] = 0
        for depth, row, streams in self.plan.node_logs:
            nodes = np.empty((depth + len(streams), capacity), dtype=np.int64)
            self.nodes.append(nodes)
            self.log[row + L.L_NODES], self.log[row + L.L_COUNT] = address(nodes), 0
            self.log[row + L.L_CAPACITY], self.log[row + L.L_DEPTH] = capacity, depth
            self.log[row + L.L_BEFORE] = 0


@kernel(makes_arrays=True)
def _spread(nodes, depth, starts, n_nodes, count):  # type: ignore[no-untyped-def]
    """The keys above each record, int64 (depth, count).

    nodes: int64, a logged node per column: its keys in the rows before ``depth``, its first record in the row
    ``starts``; count: number of records.
    """
    path = np.empty((depth, count), np.int64)
    for node in range(n_nodes):
        end = nodes[starts, node + 1] if node + 1 < n_nodes else count
        for level in range(depth):
            path[level, nodes[starts, node] : end] = nodes[level, node]
    return path


_COUNTERS = slice(L.R_COUNTERS, L.R_COUNTERS + L.SEEKS + 1)
_FRESH = np.zeros(L.REGISTERS, np.int64)
_FRESH[[L.R_MOVE, L.R_FAILED, L.R_MARKED]] = L.MOVE_REGION, -1, -1


def whole(depths: int, low: int = KEY_MIN, high: int = KEY_MAX) -> np.ndarray:
    """The region of everything, or of a closed range of the first variable's keys."""
    region = np.zeros((1, 2 + depths), dtype=np.int64)
    region[0, :3] = 1, high, low
    return region


def evaluate_whole(
    plan: RegionPlan,
    indexes: Sequence[IndexVersion],
    record: bool,
    threads: int = 1,
    advance: Callable[[float], None] | None = None,
) -> Found:
    """All rows of the body in key order, its records, and what it took; by several threads."""
    n_tuples = sum(index.n_tuples for index in indexes)
    capacity = min(WHOLE_CAPACITY, max(LEAST_CAPACITY, 64 * n_tuples))
    first = [p for p in plan.participants if p.depth == 0 and not p.negated and plan.tail > 0]
    trie = indexes[first[0].index].base if first else None
    shares = cut_shares(trie, share_count(threads, advance))

    def begin() -> tuple[RegionSearch, Marks | None]:
        return RegionSearch(plan, capacity), Marks.of(plan, indexes)

    def work(worker: tuple[RegionSearch, Marks | None], share: Share, stop: threading.Event) -> Found:
        search, marks = worker
        return search.run(indexes, whole(plan.depths, *share), record, stop, marks)

    if threads == 1:  # one search goes through all shares, and nothing has to be put together
        search, marks = begin()
        regions = np.concatenate([whole(plan.depths, *share) for share in shares])
        return search.run(indexes, regions, record, marks=marks, advance=advance)
    _, results = each_share(shares, begin, work, threads, advance)
    if len(results) == 1:
        return results[0]
    operations = Operations()
    by_stream: list[list[Records]] = [[] for _ in plan.streams]
    for _, records, counted in results:
        operations.add(counted)
        for stream, part in records:
            by_stream[stream].append(part)
    columns = [np.concatenate(parts) for parts in zip(*(rows for rows, _, _ in results), strict=True)]
    return columns, [(s, Records.joined(parts)) for s, parts in enumerate(by_stream) if parts], operations
