"""Evaluating regions of a rule's body over versions of its indices, from Python.

The kernel of :mod:`lftj.search.machine.search` writes rows and records into buffers that
stand here; they start small, for the small changes that maintenance mostly is
about, and grow when a search fills them.

Invariant: buffers belong to one search at a time; what leaves them is copied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from indices.compiled import kernel
from indices.keys import KEY_MAX, KEY_MIN
from indices.records import WORD
from lftj.memory import address
from lftj.process import debug
from lftj.search.machine import plan_check
from lftj.search.machine.plan import RegionPlan
from lftj.search.machine.search import search_regions
from lftj.search.records import (
    MOVE_BEGIN,
    STATUS_DONE,
    STATUS_FULL,
    STATUS_LOG_FULL,
    STATUS_PAUSED,
    Cursor,
    Node,
    NodeLog,
    Search,
    StreamLog,
)
from lftj.search.shares import SLICE, Share, cut_shares, each_share, share_count
from lftj.storage.catalog import SearchView
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


class RegionSearch:
    """One search at a time of one plan: its memory and its buffers."""

    def __init__(
        self,
        plan: RegionPlan,
        capacity: int | None = None,
        staged_over: Sequence[IndexVersion] | None = None,
    ) -> None:
        """``capacity``: rows that there is room for, at first; by default ``LEAST_CAPACITY``.

        ``staged_over``: the versions that it is for, alone, where stages may pay: in whole evaluations.
        """
        self._capacity = LEAST_CAPACITY if capacity is None else capacity
        self.plan = plan
        self._staged_over = staged_over
        self._make_rows(self._capacity)
        self._memories: dict[bool, SearchMemory] = {}
        """By whether records are wanted."""

    def run(
        self,
        indexes: Sequence[IndexVersion],
        regions: np.ndarray,
        record: bool,
        stop: threading.Event | None = None,
        budget: int | None = None,
        paths: np.ndarray | None = None,
        advance: Callable[[float], None] | None = None,
    ) -> Found:
        """Rows below the regions, one column per depth; records by stream number; what it took.

        Of a plan that does not list all depths, the column behind those listed counts the assignments.
        ``regions``: int64 (n, 2 + depths), sorted, none extending another; see run_search.
        ``paths``: int64, a :class:`~lftj.search.records.Path` per row, C order, of regions that bind single
        values; written for each region whose path is followed.
        ``advance`` hears the part of the regions that is done.
        Raises OverBudget soon after more than ``budget`` operations.
        """
        memory = self._begin(indexes, regions, record)
        search = memory.search
        if paths is not None:
            search.paths = address(paths)
        found = Gathered([], [[] for _ in self.plan.streams] if record else None)
        status = STATUS_PAUSED
        pause = SLICE if budget is None else min(SLICE, budget + 1)
        while status != STATUS_DONE:
            status = self._search_on(memory, regions, pause, found)
            if stop is not None and stop.is_set():
                break
            if advance:
                begun = int(search.region)
                advance((begun if status == STATUS_DONE else max(begun - 1, 0)) / len(regions))
            if status != STATUS_DONE:
                _refuse_over(memory, budget)
        return self._found(memory, found)

    def _begin(self, indexes: Sequence[IndexVersion], regions: np.ndarray, record: bool) -> SearchMemory:
        """Set a memory on the first region, over versions of the indices."""
        if debug.enabled and len(regions):
            plan_check.check_bindings(plan_check.fixed_by(regions), self.plan.least_bound)
        if record not in self._memories:
            self._memories[record] = SearchMemory(self.plan, record, self._capacity, self._staged_over)
        memory = self._memories[record]
        memory.begin(indexes)
        return memory

    def _search_on(self, memory: SearchMemory, regions: np.ndarray, pause: int, found: Gathered) -> int:
        """Search until soon after ``pause`` operations, or until buffers are full, and taken; a STATUS_*."""
        status = search_regions(memory.address, memory.versions, regions, self.rows, pause)
        if status != STATUS_PAUSED:
            self._take(memory, found, status)
        return int(status)

    def _take(self, memory: SearchMemory, found: Gathered, status: int) -> None:
        """Empty the buffers, and let those grow that the status says were full."""
        self._take_rows(memory.search, found.rows, grow=status == STATUS_FULL)
        if found.records is not None:
            memory.take_records(found.records, grow=status == STATUS_LOG_FULL)

    def _found(self, memory: SearchMemory, found: Gathered) -> Found:
        rows, records = found.rows, found.records or []
        columns = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1) if rows else self.rows[:, :0]
        return (
            list(columns),
            [(stream, Records.joined(parts)) for stream, parts in enumerate(records) if parts],
            operations_of(memory),
        )

    @property
    def log_capacity(self) -> int:
        """Records of each stream that there is room for."""
        return self._memories[True].capacity if True in self._memories else self._capacity

    def _make_rows(self, capacity: int) -> None:
        """A fresh buffer of rows."""
        self.rows = np.empty((self.plan.width, capacity), dtype=np.int64)

    def _take_rows(self, search: Search, rows: list[np.ndarray], grow: bool) -> None:
        filled = int(search.rows)
        capacity = self.rows.shape[1]
        hand_over = grow or capacity > MOST_CAPACITY
        if filled:
            rows.append(self.rows[:, :filled] if hand_over else self.rows[:, :filled].copy())
            search.rows = 0
        if hand_over:
            self._make_rows(_grown(capacity))


class SearchMemory:
    """The memory of one search (:mod:`lftj.search.records`), and the buffers of its logs."""

    def __init__(
        self,
        plan: RegionPlan,
        record: bool,
        capacity: int,
        staged_over: Sequence[IndexVersion] | None = None,
    ) -> None:
        """``capacity``: records of each stream that there is room for, at first."""
        self.plan = plan
        if staged_over is None:
            self.words = plan.new_memory(record)
        else:
            self.words = plan.staged_memory(record, [SearchView(index.base, None) for index in staged_over])
        self.address = address(self.words)
        self.search = Search.view(self.words)
        self.nodes = [Node.view(self.words, item) for item in plan.nodes]
        self.cursors = [Cursor.view(self.words, item) for item in plan.cursors]
        if record:
            self._logs = [StreamLog.view(self.words, item) for item in plan.stream_logs]
            self._node_logs = [NodeLog.view(self.words, item) for _, item, _ in plan.node_logs]
            self._node_counts = np.array([item for _, item, _ in plan.node_logs], np.int64)
            self._node_counts += NodeLog.place("count")
            self._make_buffers(capacity)

    def begin(self, indexes: Sequence[IndexVersion]) -> None:
        """Set the search on the first region, over versions of the plan's indices."""
        self.search.move, self.search.paths = MOVE_BEGIN, 0
        self.versions = np.array([index.address for index in indexes], np.int64)

    def keys_above(self, depth: int) -> np.ndarray:
        """The keys bound above a depth, int64."""
        first = (int(self.search.keys) - self.address) // WORD
        return self.words[first : first + depth]

    def stream_of(self, cursor: Cursor) -> int:
        """Number of the stream to which a cursor writes."""
        return self.plan.stream_logs.index(int(cursor.stream - self.address) // WORD)

    def take_records(self, records: list[list[Records]], grow: bool) -> None:
        """Empty the logs, and let them grow if they were full."""
        hand_over = grow or self.capacity > MOST_CAPACITY
        for at, n_nodes in enumerate(self.words[self._node_counts].tolist()):
            if not n_nodes:
                continue
            depth, _, streams = self.plan.node_logs[at]
            log, bindings = self._node_logs[at], self._bindings[at]
            for number, stream in enumerate(streams):
                its = self._logs[stream]
                count = int(its.count)
                if count:
                    ends = self._ends[stream][:, :count]
                    if not hand_over:
                        ends = ends.copy()
                    path = _spread(bindings, depth, depth + number, n_nodes, count)
                    records[stream].append(self.records_of(stream, path, ends))
                its.count = its.before = 0
            log.count = log.before = 0
            self.nodes[depth].logged = 0
        if hand_over:
            self._make_buffers(_grown(self.capacity))

    def records_of(self, stream: int, path: np.ndarray, ends: np.ndarray) -> Records:
        """Records of a stream: ``path``, int64 (depth, n), the keys above each; ``ends``: int64 (2, n)."""
        participant = self.plan.streams[stream]
        return Records(
            [path[place] for place in participant.places[:-1]],
            ends[0],
            ends[1],
            [path[place] for place in participant.context_places],
        )

    def _make_buffers(self, capacity: int) -> None:
        """Fresh, empty buffers; room for that many records per stream."""
        self.capacity = capacity
        self._ends = [np.empty((2, capacity), dtype=np.int64) for _ in self._logs]
        self._bindings = []
        for stream, ends in zip(self._logs, self._ends, strict=True):
            stream.lows, stream.highs, stream.capacity = address(ends[0]), address(ends[1]), capacity
            stream.count = stream.before = 0
        for (depth, _, streams), log in zip(self.plan.node_logs, self._node_logs, strict=True):
            bindings = np.empty((depth + len(streams), capacity), dtype=np.int64)
            self._bindings.append(bindings)
            log.bindings, log.capacity = address(bindings), capacity
            log.count = log.before = 0


def operations_of(memory: SearchMemory) -> Operations:
    """What a search has taken so far."""
    return Operations(*memory.words[_COUNTED].tolist())


def _refuse_over(memory: SearchMemory, budget: int | None) -> None:
    """Raise OverBudget where the search has taken more."""
    operations = operations_of(memory)
    if budget is not None and operations.total > budget:
        raise OverBudget(operations)


def _grown(capacity: int) -> int:
    return max(capacity, min(4 * capacity, MOST_CAPACITY))


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


_COUNTED = [Search.place(field) for field in ("opens", "nexts", "seeks", "failed_regions")]


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

    def begin() -> RegionSearch:
        return RegionSearch(plan, capacity, staged_over=indexes)

    def work(
        worker: RegionSearch, share: Share, stop: threading.Event
    ) -> Iterator[tuple[Share, Found] | None]:
        yield None
        yield share, worker.run(indexes, whole(plan.depths, *share), record, stop)

    if threads == 1:  # one search goes through all shares, and nothing has to be put together
        regions = np.concatenate([whole(plan.depths, *share) for share in shares])
        return begin().run(indexes, regions, record, advance=advance)
    found = sorted(each_share(shares, begin, work, threads, advance), key=itemgetter(0))
    operations = Operations()
    by_stream: list[list[Records]] = [[] for _ in plan.streams]
    for _, (_, records, counted) in found:
        operations.add(counted)
        for stream, part in records:
            by_stream[stream].append(part)
    columns = [np.concatenate(parts) for parts in zip(*(rows for _, (rows, _, _) in found), strict=True)]
    return columns, [(s, Records.joined(parts)) for s, parts in enumerate(by_stream) if parts], operations
