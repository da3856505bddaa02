"""Running a plan of a query: search states, counts and batches of rows, by threads that take shares.

A share (:mod:`lftj.search.shares`) is here a range of keys of the first depth that no
constant pins.

``counters``, of every function here that runs a search: int64 (depths, 3), the plan's
``new_counters``, to which the operations are added: the machine-independent cost of an
evaluation.
"""

from __future__ import annotations

import concurrent.futures as futures
import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.errors import RangeError
from lftj.memory import address
from lftj.search.machine.search import search_regions
from lftj.search.queries.plan import BoundPlan
from lftj.search.records import START, STARTED, STATUS_DONE
from lftj.search.records import Search as SearchRecord
from lftj.search.shares import SLICE, THREAD_NAME, Share, cut_shares, each_share, share_count

COUNT_ROOM = 1 << 10
"""Matches of the last depth that are counted at once."""


class Search:
    """One resumable search of a plan over one share."""

    def __init__(self, plan: BoundPlan, low: int = KEY_MIN, high: int = KEY_MAX) -> None:
        self.plan = plan
        self.memory = plan.new_memory()
        self._address = address(self.memory)
        self._state = SearchRecord.view(self.memory)
        self._found = 0
        self._share = low, high
        self._region: np.ndarray | None = None  # not asked for yet
        self.done = plan.empty

    def run(self, rows: np.ndarray, budget: int = SLICE) -> int:
        """One kernel call; returns the number of rows filled so far.

        ``rows``: int64 (``width`` of the plan's layout, capacity).  Raises RangeError when a number of
        assignments exceeds int64.
        """
        plan, state = self.plan.plan, self._state
        if self._region is None:
            self._region = self.plan.region(*self._share)
        before = int(state.rows)
        status = search_regions(self._address, self.plan.versions, self._region, rows, budget)
        self.done = status == STATUS_DONE
        filled = int(state.rows)
        found = filled - before
        if plan.weighs and found:
            weights = rows[-1, before:filled]
            if weights[weights.argmin()] < 0:
                raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
            if not plan.writes:
                found = sum(weights.tolist())
        self._found += found
        return filled

    def count_only(self, budget: int) -> None:
        """Run a plan that writes no rows until done or ``budget`` operations are spent."""
        self.restart_rows()
        self.run(np.empty((1, COUNT_ROOM), np.int64), budget)

    def restart(self, low: int, high: int) -> None:
        """Begin anew over another share.

        The counters and the number of rows go on.
        """
        self.memory[STARTED] = START
        self._share = low, high
        self._region = None
        self.done = self.plan.empty

    def restart_rows(self) -> None:
        """The next call fills fresh buffers from their start."""
        self._state.rows = 0

    @property
    def counters(self) -> np.ndarray:
        """Operations so far, int64 (depths, 3): opens, nexts, seeks."""
        return self.memory[self.plan.plan.counter_places]

    @property
    def total(self) -> int:
        """Rows found so far, written or not."""
        return self._found + (0 if self.plan.plan.writes else int(self._state.weight))


def shares(plan: BoundPlan, wanted: int) -> list[Share]:
    """Cut the split depth's keys into at most ``wanted`` shares."""
    if wanted < 2 or not plan.depths:
        return cut_shares(None, wanted)
    name = plan.order[plan.plan.split]
    # two shares of an existential key would prove one row twice
    is_proof = name in plan.problem.existentials and not plan.plan.needs_distinct
    return cut_shares(None if is_proof else plan.first_trie, wanted)


BATCH_ROWS = 1 << 16
"""Rows that are searched for at once where all are wanted."""

Batch = tuple[list[np.ndarray], np.ndarray | None]
"""Code columns, one per emitted variable, and weights where the problem is counted."""


def count(
    plan: BoundPlan, counters: np.ndarray, threads: int = 1, advance: Callable[[float], None] | None = None
) -> int:
    """Number of rows, or of the assignments that they stand for where the problem is counted.

    For a plan that puts nothing out: one with ``write=False``, or of a counted problem that emits nothing.
    """
    if plan.empty:
        return 0
    if plan.depths == 0:
        return plan.factor
    totals = []

    def work(one: Search) -> None:
        rows = np.empty((1, COUNT_ROOM), np.int64)
        one.restart_rows()
        if one.run(rows):
            totals.append(int(rows[0, 0]))

    _search_shares(plan, threads, work, counters, advance)
    return sum(totals) * plan.factor


def _search_shares(
    plan: BoundPlan,
    threads: int,
    work: Callable[[Search], object],
    counters: np.ndarray,
    advance: Callable[[float], None] | None,
) -> list[Search]:
    """Call ``work`` on searches until every share is done; the searches, one per thread."""

    def search_share(one: Search, share: Share, stop: threading.Event) -> None:
        one.restart(*share)
        while not one.done and not stop.is_set():
            work(one)

    pieces = shares(plan, share_count(threads, advance))
    searches, _ = each_share(pieces, lambda: Search(plan), search_share, threads, advance)
    for one in searches:
        counters += one.counters
    return searches


def all_rows(
    plan: BoundPlan,
    counters: np.ndarray,
    threads: int = 1,
    advance: Callable[[float], None] | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """All rows, in the plan's key order, and their weights: the assignments of a counted problem, else 1.

    Memory: the rows twice, in the end.
    """
    width = len(plan.problem.emitted)
    if plan.empty:
        return [np.empty(0, np.int64) for _ in range(width)], np.empty(0, np.int64)
    if plan.depths == 0:
        return [], np.array([plan.factor], dtype=np.int64)

    def search_share(one: Search, share: Share, stop: threading.Event) -> list[Batch]:
        one.restart(*share)
        found = []
        while not one.done and not stop.is_set():
            batch = _fill(one, BATCH_ROWS, stop.is_set)
            if batch is not None:
                found.append(batch)
        return found

    pieces = shares(plan, share_count(threads, advance))
    searches, parts = each_share(pieces, lambda: Search(plan), search_share, threads, advance)
    for one in searches:
        counters += one.counters
    found = [batch for part in parts for batch in part]
    sizes = [len(columns[0]) if columns else 1 for columns, _ in found]
    n_rows = sum(sizes)
    rows = np.empty((width, n_rows), dtype=np.int64)
    weights = np.ones(n_rows, dtype=np.int64)
    end = 0
    for (columns, counted), size in zip(found, sizes, strict=True):
        start, end = end, end + size
        for row, column in zip(rows, columns, strict=True):
            row[start:end] = column
        if counted is not None:
            weights[start:end] = counted
    return list(rows), weights


def batches(
    plan: BoundPlan,
    counters: np.ndarray,
    batch_rows: int,
    threads: int = 1,
    advance: Callable[[float], None] | None = None,
) -> Iterator[Batch]:
    """The plan's rows in batches of at most ``batch_rows``; with several threads in no fixed order.

    Memory: one batch per thread at a time.  Leaving the iterator early stops the threads.
    """
    if plan.empty:
        return
    if plan.depths == 0:
        yield [], np.array([plan.factor], dtype=np.int64) if plan.problem.counted else None
        return
    pieces = shares(plan, share_count(threads, advance))
    stopped = False

    fill = partial(_fill, batch_rows=batch_rows, is_stopped=lambda: stopped)
    if threads == 1 or len(pieces) == 1:
        for done, (low, high) in enumerate(pieces, 1):
            one = Search(plan, low, high)
            while not one.done:
                batch = fill(one)
                if batch is not None:
                    yield batch
            counters += one.counters
            if advance:
                advance(done / len(pieces))
        return
    waiting = iter(pieces)
    with futures.ThreadPoolExecutor(threads, THREAD_NAME) as pool:
        running: dict[futures.Future[Batch | None], Search] = {}
        finished = 0
        try:
            for low, high in itertools.islice(waiting, threads):
                one = Search(plan, low, high)
                running[pool.submit(fill, one)] = one
            while running:
                done_now, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
                for future in done_now:
                    one = running.pop(future)
                    batch = future.result()
                    if one.done:
                        counters += one.counters
                        finished += 1
                        if advance:
                            advance(finished / len(pieces))
                        piece = next(waiting, None)
                        one = Search(plan, *piece) if piece else one
                    if not one.done:
                        running[pool.submit(fill, one)] = one
                    if batch is not None:
                        yield batch
        finally:
            stopped = True


def _fill(one: Search, batch_rows: int, is_stopped: Callable[[], bool]) -> Batch | None:
    """The next rows of a search, at most ``batch_rows``; None where there are none."""
    plan = one.plan
    rows = np.empty((plan.plan.layout.width, batch_rows), dtype=np.int64)
    one.restart_rows()
    filled = 0
    while not one.done and filled < batch_rows and not is_stopped():
        filled = one.run(rows)
    if filled == 0:
        return None
    columns = [column[:filled] for column in rows[: len(plan.problem.emitted)]]
    return columns, _scaled(rows[-1, :filled], plan.factor) if plan.problem.counted else None


def _scaled(weights: np.ndarray, factor: int) -> np.ndarray:
    """Weights times the plan's constant factor; RangeError where that exceeds int64."""
    if factor == 1:
        return weights
    if len(weights) and int(weights.max()) * factor > KEY_MAX:
        raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
    return weights * factor
