"""Shares of a search: closed ranges of the first variable's keys, and threads that take them.

The kernels hold no Python object and release the GIL; they are called in slices of
``SLICE`` operations (some tens of milliseconds), so that an interrupt, a stop or progress
never waits longer than that.

Invariant: the shares of a search are disjoint, in key order, and together hold every
int64; each has about the same number of tuples of one participant.
"""

from __future__ import annotations

import concurrent.futures as futures
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.storage.trie import Trie

Share = tuple[int, int]
"""Least and largest key."""

Worker = TypeVar("Worker")
Result = TypeVar("Result")

SLICE = 1 << 24
"""Operations of one kernel call."""

SHARES_PER_THREAD = 16

THREAD_NAME = "lftj-search"
"""What the names of threads begin with that take shares; none of them outlives the call that started it."""


def share_count(threads: int, advance: Callable[[float], None] | None) -> int:
    """How many shares to cut: a single one where one thread works and nobody asks for progress."""
    return threads * SHARES_PER_THREAD if threads > 1 or advance else 1


def cut_shares(trie: Trie | None, wanted: int) -> list[Share]:
    """At most ``wanted`` shares with about the same number of tuples of ``trie``; a single one without it."""
    if wanted < 2 or trie is None or len(trie.keys[0]) < 2:
        return [(KEY_MIN, KEY_MAX)]
    keys, offsets = trie.keys[0], trie.leaf_offsets(0)
    targets = np.linspace(0, offsets[-1], wanted + 1)[1:-1]
    cuts = np.unique(keys[np.clip(np.searchsorted(offsets, targets), 1, len(keys) - 1)]).tolist()
    return list(zip([KEY_MIN, *cuts], [*(cut - 1 for cut in cuts), KEY_MAX], strict=True))


def each_share(
    shares: Sequence[Share],
    begin: Callable[[], Worker],
    work: Callable[[Worker, Share, threading.Event], Result],
    threads: int = 1,
    advance: Callable[[float], None] | None = None,
) -> tuple[list[Worker], list[Result]]:
    """Call ``work`` on every share; the workers, one per thread, and the results in the order of the shares.

    ``begin`` makes a thread's worker.  ``work`` returns early when the event is set, which tells all threads
    to stop: one has failed or was interrupted, and the error is raised here.  ``advance`` hears the part of
    the shares that is done.
    """
    waiting = iter(enumerate(shares))
    taking = threading.Lock()
    stop = threading.Event()
    results: dict[int, Result] = {}

    def next_share() -> tuple[int, Share] | None:
        with taking:
            return next(waiting, None)

    def keep(number: int, result: Result) -> float:
        with taking:
            results[number] = result
            return len(results) / len(shares)

    def take_shares() -> Worker:
        try:
            worker = begin()
            while not stop.is_set() and (taken := next_share()) is not None:
                number, share = taken
                done = keep(number, work(worker, share, stop))
                if advance and not stop.is_set():
                    advance(done)
        except BaseException:
            stop.set()
            raise
        return worker

    helpers = min(threads, len(shares)) - 1
    if not helpers:
        workers = [take_shares()]
    else:
        with futures.ThreadPoolExecutor(helpers, THREAD_NAME) as pool:
            try:
                others = [pool.submit(take_shares) for _ in range(helpers)]
                workers = [take_shares(), *(other.result() for other in others)]
            except BaseException:
                stop.set()  # interrupted while the others are waited for
                raise
    return workers, [results[number] for number in range(len(shares))]
