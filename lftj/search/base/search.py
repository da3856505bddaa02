"""Running a plan: search states, counts and batches of rows, by threads that take shares of the first key.

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
from lftj.search.base.kernel import search
from lftj.search.base.plan import BoundPlan
from lftj.search.base.records import MOVE_OPEN
from lftj.search.base.records import Search as SearchRecord
from lftj.search.records import STATUS_DONE, STATUS_OVERFLOW
from lftj.search.shares import SLICE, THREAD_NAME, Share, cut_shares, each_share, share_count


class Search:
    """One resumable search of a plan over one share."""

    def __init__(self, plan: BoundPlan, low: int = KEY_MIN, high: int = KEY_MAX) -> None:
        self.plan = plan
        self.memory, self._address = plan.new_memory()
        self._state = SearchRecord.view(self.memory)
        self._state.low, self._state.high = low, high
        self.done = plan.empty

    def run(self, rows: np.ndarray, weights: np.ndarray, budget: int = SLICE) -> int:
        """One kernel call; returns the number of columns of ``rows`` filled so far.

        Raises RangeError when a number of assignments exceeds int64.
        """
        status = search(self._address, rows, weights, budget)
        if status == STATUS_OVERFLOW:
            raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
        self.done = status == STATUS_DONE
        return int(self._state.rows)

    def count_only(self, budget: int) -> None:
        """Run a plan that writes no rows until done or ``budget`` operations are spent."""
        nothing = np.empty((len(self.plan.problem.emitted), 0), dtype=np.int64)
        self.run(nothing, np.empty(0, dtype=np.int64), budget)

    def restart(self, low: int, high: int) -> None:
        """Begin anew over another share.

        The counters, the number of rows and stamps go on: differences count, and no stage is up to date.
        """
        state = self._state
        state.depth, state.move = 0, MOVE_OPEN
        state.weight, state.rows = 0, 0
        state.low, state.high = low, high
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
        """Rows emitted so far."""
        return int(self._state.total)


def shares(plan: BoundPlan, wanted: int) -> list[Share]:
    """Cut the split depth's keys into at most ``wanted`` shares."""
    if not plan.depths:
        return cut_shares(None, wanted)
    name = plan.order[plan.plan.search.split]
    # two shares of an existential key would prove one row twice
    is_proof = name in plan.problem.existentials and not plan.plan.needs_distinct
    return cut_shares(None if is_proof else plan.first_trie, wanted)


BATCH_ROWS = 1 << 16
"""Rows that are searched for at once where all are wanted."""

Batch = tuple[list[np.ndarray], np.ndarray | None]
"""Code columns, one per emitted variable, and weights where they were asked for."""


def count_rows(
    plan: BoundPlan, counters: np.ndarray, threads: int = 1, advance: Callable[[float], None] | None = None
) -> int:
    """Number of rows, nothing written; for a plan with ``write=False`` whose problem is not counted."""
    if plan.empty:
        return 0
    if plan.depths == 0:
        return 1
    nothing = np.empty((len(plan.problem.emitted), 0), dtype=np.int64), np.empty(0, dtype=np.int64)
    searches = _search_shares(plan, threads, lambda one: one.run(*nothing), counters, advance)
    return sum(one.total for one in searches)


def count_assignments(
    plan: BoundPlan, counters: np.ndarray, threads: int = 1, advance: Callable[[float], None] | None = None
) -> int:
    """Number of assignments; for a plan whose problem is counted and emits no variable."""
    if plan.empty:
        return 0
    if plan.depths == 0:
        return plan.factor
    rows, totals = np.empty((0, 1), dtype=np.int64), []

    def work(one: Search) -> None:
        weights = np.zeros(1, dtype=np.int64)
        one.restart_rows()
        if one.run(rows, weights):
            totals.append(int(weights[0]) * plan.factor)

    _search_shares(plan, threads, work, counters, advance)
    return sum(totals)


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
    weighted: bool = False,
    advance: Callable[[float], None] | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """All rows, in the plan's key order, and their weights: how often each is found, 1 unless ``weighted``.

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
            batch = _fill(one, BATCH_ROWS, weighted, stop.is_set)
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
    weighted: bool = False,
    advance: Callable[[float], None] | None = None,
) -> Iterator[Batch]:
    """The plan's rows in batches of at most ``batch_rows``; with several threads in no fixed order.

    Memory: one batch per thread at a time.  Leaving the iterator early stops the threads.
    """
    if plan.empty:
        return
    if plan.depths == 0:
        yield [], np.array([plan.factor], dtype=np.int64) if weighted else None
        return
    pieces = shares(plan, share_count(threads, advance))
    stopped = False

    fill = partial(_fill, batch_rows=batch_rows, weighted=weighted, is_stopped=lambda: stopped)
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


def _fill(one: Search, batch_rows: int, weighted: bool, is_stopped: Callable[[], bool]) -> Batch | None:
    """The next rows of a search, at most ``batch_rows``; None where there are none."""
    plan = one.plan
    rows = np.empty((len(plan.problem.emitted), batch_rows), dtype=np.int64)
    weights = np.empty(batch_rows if weighted else 0, dtype=np.int64)
    one.restart_rows()
    filled = 0
    while not one.done and filled < batch_rows and not is_stopped():
        filled = one.run(rows, weights)
    if filled == 0:
        return None
    return [column[:filled] for column in rows], _scaled(weights[:filled], plan.factor) if weighted else None


def _scaled(weights: np.ndarray, factor: int) -> np.ndarray:
    """Weights times the plan's constant factor; RangeError where that exceeds int64."""
    if factor == 1:
        return weights
    if len(weights) and int(weights.max()) * factor > KEY_MAX:
        raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
    return weights * factor
