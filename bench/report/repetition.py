"""`repeated`: timed runs, as many as are worth making."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

Times = tuple[float, float]
"""Seconds that passed, and seconds of processor time of all threads."""

LONG_RUN_SECONDS = 10.0
"""When no run was shorter, few are enough."""


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
    busy: Callable[[], float] = time.process_time,
    least_long: int = 1,
) -> Iterator[Times]:
    """Times of each run: ``least`` runs, and more of quick ones until ``spend`` seconds or ``most`` runs.

    ``prepare`` comes before each run and is not timed.  Runs end early, after ``least_long`` of them, when
    none was shorter than ten seconds.  ``busy`` reads the seconds of processor time.

    >>> len(list(repeated(lambda: None, least=5, spend=0.0)))
    5
    """
    total, fastest = 0.0, math.inf
    for number in range(most):
        if number >= least and total >= spend:
            return
        prepare()
        started, busy_before = time.perf_counter(), busy()
        run()
        seconds = time.perf_counter() - started
        total, fastest = total + seconds, min(fastest, seconds)
        yield seconds, busy() - busy_before
        if fastest >= LONG_RUN_SECONDS and number + 1 >= least_long:
            return
