"""Shares of a search: closed ranges of the first variable's keys, and threads that take them.

The kernels hold no Python object and release the GIL; they are called in slices of
``SLICE`` operations (some tens of milliseconds), so that an interrupt, a stop or progress
never waits longer than that.

Whoever searches takes shares by one generator, :func:`each_share`: a count, rows, batches, regions.

Invariant: the shares of a search are disjoint, in key order, and together hold every
int64; each has about the same number of tuples of one participant.
"""

from __future__ import annotations

import concurrent.futures as futures
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeVar

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.process import allowance, debug
from lftj.storage.trie import Trie

Share = tuple[int, int]
"""Least and largest key."""

Worker = TypeVar("Worker")
Result = TypeVar("Result")

SLICE = 1 << 24
"""Operations of one kernel call."""

SHARES_PER_THREAD = 16

WAITING = 0.001
"""Seconds after which a thread looks again whether what it has found is taken."""

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
    work: Callable[[Worker, Share, threading.Event], Iterator[Result | None]],
    threads: int = 1,
    advance: Callable[[float], None] | None = None,
) -> Generator[Result, None, None]:
    """What is found in every share: what is in one comes in order, with several threads mixed with others'.

    ``begin`` makes a thread's worker, which takes one share after the other.  ``work`` gives what it finds in
    one, None now and then where that takes long, and ends early when the event is set: an error came up, or
    nobody asks for more.  ``advance`` hears the part of the shares that is done.

    One thread is the caller's: it works when more is asked for than others have found.  These begin with the
    first None, or at once in tests.  Memory: of each two results that nobody has taken yet.
    """
    waiting = iter(shares)
    taking = threading.Lock()
    stop = threading.Event()
    done = 0

    def next_share() -> Share | None:
        with taking:
            return None if stop.is_set() else next(waiting, None)

    def part_done() -> float:
        nonlocal done
        with taking:
            done += 1
            return done / len(shares)

    def take_shares() -> Iterator[Result | None]:
        worker = begin()
        while (share := next_share()) is not None:
            yield from work(worker, share, stop)
            part = part_done()
            if advance and not stop.is_set():
                advance(part)

    others = min(threads, len(shares)) - 1
    own = take_shares()
    for result in own:
        allowance.spend()
        if result is not None:
            yield result
        if others and (result is None or debug.enabled):
            yield from _together(own, take_shares, others, stop)


def _together(
    own: Iterator[Result | None],
    others: Callable[[], Iterator[Result | None]],
    n_others: int,
    stop: threading.Event,
) -> Generator[Result, None, None]:
    """What is left to find by the caller's thread, and what is found by so many others."""
    found: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
    searching = n_others

    def search() -> None:
        try:
            for result in others():
                if result is not None:
                    found.put(result)
                while found.qsize() > n_others and not stop.wait(WAITING):
                    pass
        except BaseException:
            stop.set()
            raise
        finally:
            found.put(None)

    def of_others(wait: bool) -> Iterator[Result]:
        nonlocal searching
        while searching and (wait or not found.empty()):
            try:
                result = found.get(timeout=allowance.LOOK_AGAIN if allowance.is_limited() else None)
            except queue.Empty:
                allowance.spend()
                continue
            if result is None:
                searching -= 1
            else:
                yield result

    with futures.ThreadPoolExecutor(n_others, THREAD_NAME) as pool:
        helping = [pool.submit(search) for _ in range(n_others)]
        try:
            for result in own:
                allowance.spend()
                if result is not None:
                    yield result
                yield from of_others(wait=False)
            yield from of_others(wait=True)
            for one in helping:
                one.result()
        finally:
            stop.set()
