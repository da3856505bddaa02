"""`repeated`: timed runs, as many as are worth making."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

Times = tuple[float, float]
"""Seconds that passed, and seconds of processor time of all threads."""

LONG_RUN_SECONDS = 10.0
"""When no run was shorter, one is enough."""


def repeated(
    run: Callable[[], object],
    least: int,
    spend: float,
    most: int = 100,
    prepare: Callable[[], object] = lambda: None,
) -> Iterator[Times]:
    """Times of each run: ``least`` runs, and more of quick ones until ``spend`` seconds or ``most`` runs.

    ``prepare`` comes before each run and is not timed.  Runs end early when none was shorter than ten
    seconds.

    >>> len(list(repeated(lambda: None, least=5, spend=0.0)))
    5
    """
    total, fastest = 0.0, math.inf
    for number in range(most):
        if number >= least and total >= spend:
            return
        prepare()
        started, busy = time.perf_counter(), time.process_time()
        run()
        seconds = time.perf_counter() - started
        total, fastest = total + seconds, min(fastest, seconds)
        yield seconds, time.process_time() - busy
        if fastest >= LONG_RUN_SECONDS:
            return
