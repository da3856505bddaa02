"""Engines that this worker process keeps between batches.

Spark may send a partition to any worker, so that an engine is here does not mean that it
is up to date: it is used only for the state that it holds, which is named by the file that the
task's try wrote last (``PartitionState.steps``).

Invariants

1. An engine is taken out while it is used, and put back when its step succeeded:
   one that failed half-way is gone.
2. After each ``put`` the engines kept have the bytes at most that it was given, which are those of their
   images: an engine that has more is not kept.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

from lftj.errors import LimitError

MOST_BYTES = 1 << 30
"""Of the engines that a worker keeps, where Spark does not limit its memory."""

KEPT_PART = 0.25
"""Of a worker's memory, where ``spark.executor.pyspark.memory`` limits it: the engine at work, its packets
and the interpreter need the rest."""

E = TypeVar("E")


class CachedEngine(NamedTuple, Generic[E]):
    """An engine with the name of its state and its bytes."""

    state: str
    engine: E
    nbytes: int


class EngineCache(Generic[E]):
    """Engines by key; the ones not used for longest go first.

    >>> cache = EngineCache()
    >>> cache.put("p0", CachedEngine("log-1", "an engine", 10), most_bytes=100)
    >>> cache.put("p1", CachedEngine("log-1", "a large one", 95), most_bytes=100)
    >>> cache.take("p0"), cache.take("p1").state, cache.take("p1")
    (None, 'log-1', None)
    """

    def __init__(self) -> None:
        self._engines: OrderedDict[str, CachedEngine[E]] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Of all engines kept."""
        return sum(cached.nbytes for cached in self._engines.values())

    def take(self, key: str) -> CachedEngine[E] | None:
        """The engine, which is no more kept."""
        return self._engines.pop(key, None)

    def put(self, key: str, cached: CachedEngine[E], most_bytes: int) -> None:
        """Keep an engine; others go where all have more than ``most_bytes``."""
        self._engines.pop(key, None)
        if cached.nbytes <= most_bytes:
            self._engines[key] = cached
        total = self.nbytes
        while total > most_bytes:
            _, gone = self._engines.popitem(last=False)
            total -= gone.nbytes


def kept_bytes(asked: int | None) -> int:
    """How many bytes of engines this worker may keep: those asked for, but no more than KEPT_PART of what
    ``spark.executor.pyspark.memory`` gives it."""
    most = MOST_BYTES if asked is None else asked
    limit = int(os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB", "-1"))  # Spark's, by worker
    return most if limit < 0 else min(most, int(KEPT_PART * limit * (1 << 20)))


def check_engine_bytes(asked: int | None) -> None:
    """Raise LimitError for what ``engine_bytes=`` can't be."""
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int) or asked < 0):
        raise LimitError(f"engine_bytes is {asked!r}; it is a number of bytes from 0, or None")
