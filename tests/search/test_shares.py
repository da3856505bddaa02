"""laws: shares hold every key once, and threads take each of them once, until one fails."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from indices.keys import KEY_MAX, KEY_MIN
from lftj.search.shares import THREAD_NAME, Share, cut_shares, each_share
from lftj.storage.trie import Trie

SHARES: list[Share] = [(number, number) for number in range(20)]


@pytest.mark.parametrize("wanted", [1, 2, 8, 1000])
def test_shares_hold_every_key_once(wanted: int) -> None:
    keys = np.repeat(np.arange(50, dtype=np.int64), 10)
    shares = cut_shares(Trie.from_sorted([keys, np.tile(np.arange(10, dtype=np.int64), 50)]), wanted)
    assert len(shares) == min(wanted, 50)
    assert (shares[0][0], shares[-1][1]) == (KEY_MIN, KEY_MAX)
    assert all(low <= high for low, high in shares)
    assert all(high + 1 == low for (_, high), (low, _) in itertools.pairwise(shares))


@pytest.mark.parametrize("threads", [1, 3, 100])
def test_every_share_is_searched_once_and_to_its_end(threads: int) -> None:
    done: list[float] = []
    workers: list[list[Share]] = []

    def begin() -> list[Share]:
        workers.append([])
        return workers[-1]

    results = list(each_share(SHARES, begin, found_in, threads, done.append))
    assert sorted(results) == [(share, place) for share in SHARES for place in range(share[0] % 3)]
    for share in SHARES:
        assert [place for its, place in results if its == share] == list(range(share[0] % 3))
    assert len(workers) <= threads
    assert sorted(done) == [number / 20 for number in range(1, 21)]
    assert sorted(itertools.chain.from_iterable(workers)) == SHARES


def found_in(worker: list[Share], share: Share, stop: threading.Event) -> Iterator[tuple[Share, int] | None]:
    worker.append(share)
    yield None
    for place in range(share[0] % 3):
        yield share, place


def test_what_is_over_soon_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lftj.process.debug.enabled", False)
    begun = []

    def found_soon(worker: None, share: Share, stop: threading.Event) -> Iterator[Share]:
        yield share

    assert list(each_share(SHARES, lambda: begun.append(1), found_soon, 3)) == SHARES
    assert begun == [1]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_stops_all_threads(failing: int) -> None:
    """Whichever thread it comes up in: the other waits for the word to stop, and takes no further share."""
    both = threading.Barrier(2)
    taken = []

    def work(worker: None, share: Share, stop: threading.Event) -> Iterator[int | None]:
        taken.append(share)
        yield None
        both.wait(60)
        if (threading.current_thread() is threading.main_thread()) == (failing == 0):
            raise ZeroDivisionError
        assert stop.wait(60)

    with pytest.raises(ZeroDivisionError):
        list(each_share(SHARES, lambda: None, work, 2))
    assert sorted(taken) == SHARES[:2]


def test_who_leaves_stops_all_threads() -> None:
    def work(worker: None, share: Share, stop: threading.Event) -> Iterator[Share]:
        while not stop.is_set():
            yield share

    found = each_share(SHARES, lambda: None, work, 2)
    while next(found) != SHARES[1]:
        pass
    assert len(searching()) == 1
    found.close()
    assert searching() == []


def searching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)]
