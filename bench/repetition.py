"""`repeated`: timed runs, as many as are worth making."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

Times = tuple[float, float]
"""Seconds that passed, and seconds of processor time of all threads."""

LONG_RUN_SECONDS = 10.0
"""When no run was shorter, one is enough."""


def percentiles(seconds: Sequence[float] | np.ndarray) -> dict[str, float]:
    """Milliseconds below which half, nine tenths, ... of many short runs stay.

    >>> percentiles(np.array([0.001, 0.002, 0.003]))["p50 ms"]
    2.0
    """
    shares = {"p50 ms": 50, "p90 ms": 90, "p99 ms": 99, "max ms": 100}
    return {name: 1000 * float(np.percentile(seconds, share)) for name, share in shares.items()}


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
