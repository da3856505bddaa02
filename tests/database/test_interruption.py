"""Leaving a long join: a stream that is dropped, Ctrl-C in any call; the database stays usable.

Times are the processor's, not the clock's: what else the machine does is no part of them.  (A call that waits
for ever without computing would hang the test.)
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

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def dense() -> Database:
    """A graph on which LONG has 10^14 assignments."""
    n = 700
    db = lftj.Database()
    db.load("e", {"a": np.repeat(np.arange(n), n), "b": np.tile(np.arange(n), n)})
    return db


LONG = "long(a, b, c, d, f) <- e(a, b), e(b, c), e(a, c), e(c, d), e(a, d), e(d, f)."


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("leave", ["close", "forget"])
def test_a_stream_may_be_left(dense: Database, threads: int, leave: str) -> None:
    n_threads = threading.active_count()
    stream = dense.stream(LONG, batch_rows=1000, threads=threads)
    assert next(stream).num_rows == 1000
    started = time.process_time()
    if leave == "close":
        stream.close()  # type: ignore[attr-defined]
    del stream
    assert time.process_time() - started < 2
    assert threading.active_count() == n_threads
    assert dense.count("h(a) <- e(a, a).") == 700


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


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", INTERRUPTED)
def test_ctrl_c_in_a_long_join(dense: Database, way: str, threads: int) -> None:
    """The call ends within a second of it, its threads too, and the database goes on."""
    small = Database()
    small.load("e", {"a": [0, 1, 2, 0], "b": [1, 2, 2, 2]})
    INTERRUPTED[way](small, threads)  # kernels are compiled
    assert dense.count("h(a) <- e(a, a).") == 700
    n_threads = threading.active_count()
    over = threading.Event()
    sent: list[float] = []

    def interrupt() -> None:
        """Once the join has computed for 0.4 seconds."""
        started = time.process_time()
        while time.process_time() - started < 0.4 * threads:
            if over.wait(0.01):
                return
        sent.append(time.process_time())
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
    assert time.process_time() - sent[0] < threads
    assert threading.active_count() == n_threads
    assert dense.count("h(a) <- e(a, a).") == 700
    assert dense.count("h(a, b, c) <- e(a, b), e(b, c), e(a, c).") == 700**3
