"""Running a plan of a query: search states, counts and batches of rows, by threads that take shares.

A share (:mod:`lftj.search.shares`) is here a range of keys of the first depth that no
constant pins.

``counters``, of every function here that runs a search: int64 (depths, 3), the plan's
``new_counters``, to which the operations are added: the machine-independent cost of an
evaluation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from operator import itemgetter

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.errors import RangeError
from lftj.memory import address
from lftj.process import allowance
from lftj.search.machine.search import search_regions
from lftj.search.queries.plan import BoundPlan
from lftj.search.records import MOVE_BEGIN, STATUS_DONE
from lftj.search.records import Search as SearchRecord
from lftj.search.shares import SLICE, Share, cut_shares, each_share, share_count

FIRST_SLICE = 1 << 12
"""Operations of a search's first kernel call: some tens of microseconds, what another thread takes to begin.
Where a share takes more, later calls have more, up to ``SLICE``."""

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
        self.slice = FIRST_SLICE  # operations of the next call, where it grows from one to the next

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
        self._state.move = MOVE_BEGIN
        self._state.rows = self._state.weight = 0
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
    is_proof = name in plan.problem.existentials - plan.problem.determined and not plan.plan.needs_distinct
    return cut_shares(None if is_proof else plan.first_trie, wanted)


BATCH_ROWS = 1 << 16
"""Rows that are searched for at once where all are wanted."""

_Found = tuple[Share, np.ndarray]
"""A share, and rows of it: int64 (``width`` of the plan's layout, n)."""

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
    total = 0
    for _, rows in _found(plan, counters, COUNT_ROOM, threads, advance):
        total += sum(rows[0].tolist())
    return total * plan.factor


def all_rows(
    plan: BoundPlan, counters: np.ndarray, threads: int = 1, advance: Callable[[float], None] | None = None
) -> tuple[list[np.ndarray], np.ndarray]:
    """All rows of a counted problem, in the plan's key order, and the assignments that they stand for.

    Memory: the rows twice, in the end.
    """
    if plan.empty:
        return [np.empty(0, np.int64) for _ in plan.problem.emitted], np.empty(0, np.int64)
    if plan.depths == 0:
        return [], np.array([plan.factor], dtype=np.int64)
    found = sorted(_found(plan, counters, BATCH_ROWS, threads, advance), key=itemgetter(0))
    parts = [np.empty((plan.plan.layout.width, 0), np.int64), *(rows for _, rows in found)]
    *columns, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    return columns, _scaled(weights, plan.factor)


def batches(
    plan: BoundPlan,
    counters: np.ndarray,
    batch_rows: int,
    threads: int = 1,
    advance: Callable[[float], None] | None = None,
) -> Iterator[Batch]:
    """The plan's rows in batches of at most ``batch_rows``; with several threads in no fixed order.

    Memory: two batches per thread at a time.  Leaving the iterator early stops the threads.
    """
    counted, width = plan.problem.counted, len(plan.problem.emitted)
    if plan.empty:
        return
    if plan.depths == 0:
        yield [], np.array([plan.factor], dtype=np.int64) if counted else None
        return
    with closing(_found(plan, counters, batch_rows, threads, advance)) as found:
        for _, rows in found:
            yield list(rows[:width]), _scaled(rows[-1], plan.factor) if counted else None


def _found(
    plan: BoundPlan,
    counters: np.ndarray,
    batch_rows: int,
    threads: int,
    advance: Callable[[float], None] | None,
) -> Generator[_Found, None, None]:
    """The rows of each share."""
    searches: list[Search] = []

    def begin() -> Search:
        searches.append(Search(plan))
        return searches[-1]

    enough = (
        batch_rows - batch_rows // 64
    )  # a call finds at most what it has room for: the last rows take many

    def search_share(one: Search, share: Share, stop: threading.Event) -> Iterator[_Found | None]:
        one.restart(*share)
        while not one.done and not stop.is_set():
            rows = np.empty((plan.plan.layout.width, batch_rows), dtype=np.int64)
            one.restart_rows()
            filled = 0
            while not one.done and filled < enough and not stop.is_set():
                filled = one.run(rows, one.slice)
                if not one.done:
                    one.slice = min(SLICE, 8 * one.slice)
                    yield None
            if filled:
                found = rows[:, :filled]
                yield share, found.copy() if filled < batch_rows // 8 else found  # the room comes back

    pieces = shares(plan, share_count(threads, advance))
    with closing(each_share(pieces, begin, search_share, threads, advance)) as found_rows:
        for found in found_rows:
            allowance.spend(found[1].nbytes)
            yield found
    for one in searches:
        counters += one.counters


def _scaled(weights: np.ndarray, factor: int) -> np.ndarray:
    """Weights times the plan's constant factor; RangeError where that exceeds int64."""
    if factor == 1:
        return weights
    if len(weights) and int(weights.max()) * factor > KEY_MAX:
        raise RangeError("the number of assignments of one result row exceeds 2**63 - 1")
    return weights * factor
