"""`CommitFeed`: the changes of heads by the last commits, for those who ask for them behind a version.

Invariants

1. What is here are all changes of heads by the commits behind version ``start``, less the oldest: of a head
   there are all behind :meth:`CommitFeed.oldest` of it.
2. Nothing is kept before somebody asks (:meth:`CommitFeed.begin`): nobody knows a version to ask from.
3. What leads to a version is *offered* before the version is published, and *taken* once, when that commit
   is settled or a reader comes who was shown the version, whatever is first.  So of what is shown nothing is
   ever missing.
4. What is not shown yet may be here, and may never be: whoever reads says up to which version, and of several
   offers of one version the last holds.

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
class CommitChanges:
    """The changes of heads by the commit that led to a version."""

    version: int
    changes: CodedChanges

    @property
    def nbytes(self) -> int:
        return self.changes.nbytes + _OF_EACH


class CommitFeed:
    """One workspace's."""

    def __init__(self, feed_bytes: int = FEED_BYTES, version: int = 0) -> None:
        """``version``: of the workspace as it is."""
        self.feed_bytes = feed_bytes
        self.arrived = threading.Condition()
        """Whoever waits for the next version waits here, and is woken when it is shown."""
        self.n_waiting = 0
        """Who is about to wait, each counted under the lock before he looks whether the version is shown."""
        self._lock = threading.Lock()
        self._last = version
        self._start: int | None = None
        self._offered: tuple[int, Callable[[], CodedChanges] | None] | None = None
        self._commits: deque[CommitChanges] = deque()
        self._nbytes = 0
        self.is_kept = False
        """Whether somebody has asked."""
        self.is_closed = False
        """Whether whoever follows is to go when he has all that there is."""
        self._forgotten: dict[str, int] = {}  # by head the last version whose changes are not here any more

    @property
    def nbytes(self) -> int:
        """Bytes of the changes that are here."""
        return self._nbytes

    def begin(self) -> None:
        """Keep changes from now on."""
        with self._lock:
            if self._start is None:
                self._start, self.is_kept = self._last, True

    def restart(self, version: int) -> None:
        """The workspace is at a version; of how it got there nothing is kept."""
        with self._lock:
            self._last = version
            self._start = None if self._start is None else version
            self._offered = None
            self._commits.clear()
            self._forgotten.clear()
            self._nbytes = 0

    def offer(self, version: int, changes: Callable[[], CodedChanges] | None) -> None:
        """What leads to a version that is to be published now; in place of what was offered and not taken.

        ``changes``: of heads, to be worked out where they are kept, by any thread; None where it is no commit
        that leads there.
        """
        with self._lock:
            self._offered = version, changes

    def withdraw(self) -> None:
        """What was offered will not be published."""
        with self._lock:
            self._offered = None

    def skip(self, version: int) -> None:
        """The workspace is at a version; what led to it is not here, and nobody has asked for it."""
        with self._lock:
            self._last = version
            self._start = None if self._start is None else version

    def take(self, upto: int) -> None:
        """Take what was offered, unless it leads to a later version than this, which is published."""
        with self._lock:
            self._take(upto)

    def take_offered(self) -> None:
        """Take what was offered, which is published."""
        with self._lock:
            if self._offered is not None:
                self._take(self._offered[0])

    def _take(self, upto: int) -> None:
        if self._offered is None or self._offered[0] > upto:
            return
        version, changes = self._offered
        if version > self._last and changes is not None and self._start is not None:
            commit = CommitChanges(version, changes())
            if commit.changes.names:
                nbytes = self._nbytes + commit.nbytes
                # In one line without a call, for an interruption finds all of it done or nothing.
                self._commits += (commit,); self._nbytes, self._last = nbytes, version  # noqa: E702  # fmt: skip
        self._last = max(self._last, version)
        self._offered = None
        while self._nbytes > self.feed_bytes and len(self._commits) > 1:
            oldest = self._commits[0]
            self._forgotten.update(dict.fromkeys(oldest.changes.names, oldest.version))
            nbytes = self._nbytes - oldest.nbytes
            del self._commits[0]; self._nbytes = nbytes  # noqa: E702  # fmt: skip

    def oldest(self, head: str) -> int | None:
        """The oldest version behind which all changes of a head are here; None before anybody asked."""
        with self._lock:
            return None if self._start is None else max(self._start, self._forgotten.get(head, 0))

    def between(self, head: str, after: int, upto: int) -> list[CommitChanges] | None:
        """The commits behind a version, up to another, that changed a head; None if some are not here.

        ``upto``: a version that was shown.
        """
        with self._lock:
            self._take(upto)
            if self._start is None or after < max(self._start, self._forgotten.get(head, 0)):
                return None
            return [
                commit
                for commit in self._commits
                if after < commit.version <= upto and head in commit.changes.names
            ]

    def __reduce__(self) -> tuple[type[CommitFeed], tuple[int, int]]:
        """For an image (:mod:`maintenance.image`): one that keeps nothing yet."""
        return CommitFeed, (self.feed_bytes, self._last)

    def close(self) -> None:
        """Let those go who follow."""
        self.is_closed = True
        self.wake()

    def wake(self) -> None:
        """A version was shown, or none will be any more."""
        if self.n_waiting:
            with self.arrived:
                self.arrived.notify_all()
