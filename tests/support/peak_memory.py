"""What a call takes of memory, as Python allocates it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def least_peak(function: Callable[[], object], times: int = 3) -> int:
    """Bytes that a call holds at most beside what was there; of several calls the least.

    Other threads of the process, Spark's among them, may allocate meanwhile.
    """
    peaks = []
    for _ in range(times):
        tracemalloc.start()
        try:
            function()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)
