"""`Feed`: the changes of heads by the last commits, for those who ask for them behind a version.

Invariants

1. What is here are all changes of heads by the commits behind version ``start``, less the oldest: of a head
   there are all behind :meth:`Feed.oldest` of it.
2. Nothing is kept before somebody asks (:meth:`Feed.begin`): nobody knows a version to ask from.
3. A commit is taken once, however often it is told (it may be told again after an interruption); what is
   not shown yet may be here, and whoever reads says up to which version.

Cost: of a commit none before anybody asks, then a reference to what it has worked out anyhow.
Memory: ``feed_bytes``, and at least the changes of the last commit; the values of their codes stay as well.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from maintenance.changes.coded_changes import CodedChanges

FEED_BYTES = 16 << 20
"""Of changes that are kept behind the last commit."""

_OF_EACH = 1 << 10
"""Bytes that changes take beside their rows, about."""


@dataclass(frozen=True)
class Told:
    """The changes of heads by the commit that led to a version."""

    version: int
    changes: CodedChanges

    @property
    def nbytes(self) -> int:
        return self.changes.nbytes + _OF_EACH


class Feed:
    """One workspace's."""

    def __init__(self, feed_bytes: int = FEED_BYTES, version: int = 0) -> None:
        """``version``: of the workspace as it is."""
        self.feed_bytes = feed_bytes
        self.arrived = threading.Condition()
        """Whoever waits for the next version waits here, and is woken when it is shown."""
        self._lock = threading.Lock()
        self._last = version
        self._start: int | None = None
        self._told: deque[Told] = deque()
        self._nbytes = 0
        self.is_closed = False
        """Whether whoever follows is to go when he has all that there is."""
        self._forgotten: dict[str, int] = {}  # by head the last version whose changes are not here any more

    @property
    def is_kept(self) -> bool:
        """Whether somebody has asked."""
        return self._start is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the changes that are here."""
        return self._nbytes

    def begin(self) -> None:
        """Keep changes from now on."""
        with self._lock:
            if self._start is None:
                self._start = self._last

    def restart(self, version: int) -> None:
        """The workspace is at a version; of how it got there nothing is kept."""
        with self._lock:
            self._last = version
            self._start = None if self._start is None else version
            self._told.clear()
            self._forgotten.clear()
            self._nbytes = 0

    def take(self, version: int, changes: Callable[[], CodedChanges]) -> None:
        """The changes of heads by the commit that led to a version, to be worked out where they are kept."""
        with self._lock:
            if version <= self._last:
                return
            if self._start is not None and (told := Told(version, changes())).changes.names:
                self._told.append(told)
                self._nbytes += told.nbytes
            self._last = version
            while self._nbytes > self.feed_bytes and len(self._told) > 1:
                oldest = self._told.popleft()
                self._nbytes -= oldest.nbytes
                self._forgotten.update(dict.fromkeys(oldest.changes.names, oldest.version))

    def oldest(self, head: str) -> int | None:
        """The oldest version behind which all changes of a head are here; None before anybody asked."""
        with self._lock:
            return None if self._start is None else max(self._start, self._forgotten.get(head, 0))

    def between(self, head: str, after: int, upto: int) -> list[Told] | None:
        """The commits behind a version, up to another, that changed a head; None if some are not here."""
        with self._lock:
            if self._start is None or after < max(self._start, self._forgotten.get(head, 0)):
                return None
            return [
                told for told in self._told if after < told.version <= upto and head in told.changes.names
            ]

    def __reduce__(self) -> tuple[type[Feed], tuple[int, int]]:
        """For an image (:mod:`maintenance.image`): one that keeps nothing yet."""
        return Feed, (self.feed_bytes, self._last)

    def close(self) -> None:
        """Let those go who follow."""
        self.is_closed = True
        self.wake()

    def wake(self) -> None:
        """A version was shown, or none will be any more."""
        with self.arrived:
            self.arrived.notify_all()
