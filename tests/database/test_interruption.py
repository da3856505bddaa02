"""Leaving a long join: a stream that is dropped, Ctrl-C in any call; the database stays usable.

The joins are so long that a call which was not left would take years.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lftj
from lftj.database.database import Database
from lftj.search.shares import THREAD_NAME

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def dense() -> Database:
    """A graph on which LONG has 10^14 assignments."""
    n = 700
    db = lftj.Database()
    db.load("e", {"a": np.repeat(np.arange(n), n), "b": np.tile(np.arange(n), n)})
    return db


LONG = "long(a, b, c, d, f) <- e(a, b), e(b, c), e(a, c), e(c, d), e(a, d), e(d, f)."


def searching() -> list[str]:
    """The names of the threads that search now: other threads are none of the engine's."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("leave", ["close", "forget"])
def test_a_stream_may_be_left(dense: Database, threads: int, leave: str) -> None:
    assert searching() == []
    stream = dense.stream(LONG, batch_rows=1000, threads=threads)
    assert next(stream).num_rows == 1000
    while len(searching()) < threads - 1:
        assert next(stream).num_rows == 1000
    if leave == "close":
        stream.close()  # type: ignore[attr-defined]
    del stream
    assert searching() == []
    assert dense.count("h(a) <- e(a, a).") == 700


@pytest.mark.parametrize("rule", [LONG, LONG + " long(a, b, c, d, f) <- e(a, b), e(b, c), e(c, d), e(d, f)."])
def test_an_error_amid_a_batch_leaves_no_threads(
    dense: Database, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """Not even as long as somebody has the error, whose traceback holds what the stream's frames do."""

    def fail(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lftj.database.record_batches.record_batch", fail)
    monkeypatch.setattr("lftj.evaluation.evaluation.Distinct.add", fail)
    with pytest.raises(KeyboardInterrupt) as caught:
        next(dense.stream(rule, batch_rows=1000, threads=2))
    assert caught.value.__traceback__ is not None
    assert searching() == []


# -- interruption -----------------------------------------------------------------------------------

INTERRUPTED: dict[str, Callable[[Database, int], Any]] = {
    "query": lambda db, threads: db.query(LONG.replace("d, f).", "d, f), a + f = -1."), threads=threads),
    "count": lambda db, threads: db.count(LONG.replace("d, f).", "d, f), d != 3, f != a."), threads=threads),
    "stream": lambda db, threads: [batch.num_rows for batch in db.stream(LONG, threads=threads)],
    "aggregate": lambda db, threads: db.query(
        "n[a] = count() <- e(a, b), e(b, c), e(a, c), e(c, d), e(a, d), d != b.", threads=threads
    ),
    "analyze": lambda db, threads: db.explain(LONG, analyze=True, threads=threads),
}


@pytest.mark.in_turns
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", INTERRUPTED)
def test_ctrl_c_in_a_long_join(dense: Database, way: str, threads: int) -> None:
    """The call ends, its threads too, and the database goes on."""
    small = Database()
    small.load("e", {"a": [0, 1, 2, 0], "b": [1, 2, 2, 2]})
    INTERRUPTED[way](small, threads)  # kernels are compiled
    assert dense.count("h(a) <- e(a, a).") == 700
    assert searching() == []
    over = threading.Event()

    def interrupt() -> None:
        """Once the join has computed for 0.4 seconds."""
        started = time.process_time()
        while time.process_time() - started < 0.4 * threads:
            if over.wait(0.01):
                return
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupting = threading.Thread(target=interrupt)
    try:
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            INTERRUPTED[way](dense, threads)
    finally:
        over.set()
        interrupting.join()
        signal.signal(signal.SIGINT, before)
    assert searching() == []
    assert dense.count("h(a) <- e(a, a).") == 700
    assert dense.count("h(a, b, c) <- e(a, b), e(b, c), e(a, c).") == 700**3
