"""What is counted of a workspace for its figures (:mod:`maintenance.workspace.metrics`), in this process.

Cost: of a commit that of :class:`~maintenance.workspace.history.History`, of a snapshot an entry that
goes with it.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, field

from maintenance.workspace.history import History


class LivingSnapshots:
    """When snapshots were taken, and of which version, as long as they live."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: weakref.WeakKeyDictionary[object, tuple[int, float]] = weakref.WeakKeyDictionary()

    def add(self, snapshot: object, version: int) -> None:
        with self._lock:
            self._taken[snapshot] = version, time.monotonic()

    def older_than(self, version: int) -> list[float]:
        """The ages, in seconds, of those of versions before one."""
        now = time.monotonic()
        with self._lock:
            return [now - taken for number, taken in self._taken.values() if number < version]


@dataclass
class Watched:
    """What is counted of a workspace for its figures; of this process alone."""

    history: History = field(default_factory=History)
    snapshots: LivingSnapshots = field(default_factory=LivingSnapshots)

    def __reduce__(self) -> tuple[type[Watched], tuple[()]]:
        """For an image (:mod:`maintenance.image`)."""
        return Watched, ()
