"""laws: shares hold every key once, and threads take each of them once, until one fails."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from indices.keys import KEY_MAX, KEY_MIN
from lftj.search.shares import Share, cut_shares, each_share
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
def test_results_come_in_the_order_of_the_shares(threads: int) -> None:
    done: list[float] = []
    workers, results = each_share(SHARES, list[Share], took, threads, done.append)
    assert results == SHARES
    assert len(workers) == min(threads, len(SHARES))
    assert sorted(itertools.chain.from_iterable(workers)) == SHARES
    assert sorted(done) == [number / 20 for number in range(1, 21)]


def took(worker: list[Share], share: Share, stop: threading.Event) -> Share:
    worker.append(share)
    return share


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_stops_all_threads(failing: int) -> None:
    """Whichever thread it comes up in: the other waits for the word to stop, and takes no further share."""
    both = threading.Barrier(2)
    taken = []

    def work(worker: None, share: Share, stop: threading.Event) -> None:
        taken.append(share)
        both.wait(60)
        if (threading.current_thread() is threading.main_thread()) == (failing == 0):
            raise ZeroDivisionError
        assert stop.wait(60)

    with pytest.raises(ZeroDivisionError):
        each_share(SHARES, lambda: None, work, 2)
    assert sorted(taken) == SHARES[:2]
