"""Engines that this worker process keeps between batches.

Spark may send a partition to any worker, so that an engine is here does not mean that it
is up to date: it is used only for the state that it holds, which is named by the file that the
task's try wrote last (``PartitionState.steps``).

Invariant: an engine is taken out while it is used, and put back when its step succeeded:
one that failed half-way is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

MOST_ROWS = 50_000_000
"""Rows of all engines kept; the ones not used for longest go first."""

E = TypeVar("E")


class EngineCache(Generic[E]):
    """Engines by key, each with the name of its state.

    >>> cache = EngineCache()
    >>> cache.put("p0", "log-1", "an engine", rows=10)
    >>> cache.take("p0"), cache.take("p0")
    (('log-1', 'an engine'), None)
    """

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most_rows = most_rows
        self._engines: OrderedDict[str, tuple[str, E, int]] = OrderedDict()

    def take(self, key: str) -> tuple[str, E] | None:
        """The engine with the name of its state; it is no more kept."""
        found = self._engines.pop(key, None)
        return found and found[:2]

    def put(self, key: str, state: str, engine: E, rows: int) -> None:
        """Keep an engine; others go where there are more than ``most_rows`` rows."""
        self._engines[key] = (state, engine, rows)
        total = sum(kept for _, _, kept in self._engines.values())
        while total > self._most_rows and len(self._engines) > 1:
            _, (_, _, gone) = self._engines.popitem(last=False)
            total -= gone
