"""`History`: what commits took, from the first to the last, as a bounded number of spans.

A span is a run of commits that follow each other.  When there are ``SPANS`` of them each two neighbours
become one, and those that follow are as long: all of the past is there, and of the whole the same detail.

Invariants

1. Every commit is in one span.  All but the last span have ``width`` commits; there are at most ``SPANS``.
2. What spans add up is exact; a span's memory is that of less than ``LOOK_EVERY`` commits before its end.
3. ``total`` never goes down, by no rounding either: it is added up by itself.

Cost: of a commit an entry in a list, of which at most ``WAITING`` wait to be added up.  Memory is looked at
where a span ends and ``LOOK_EVERY`` commits came since the last look: for n commits less than
``SPANS * (2 + log2(n / SPANS))`` times.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from maintenance.stats import TransactionStats

SPANS = 128

LOOK_EVERY = 16
"""A look at the memory takes a good part of what a commit of one row takes."""

WAITING = 64


class Span(NamedTuple):
    """Commits that followed each other, those that changed something.

    Attributes:
        commits: How many; one that commits many transactions (``apply_many``) counts once.
        seconds: What they took together, without waiting for the disk.
        longest: What the slowest of them took.
        disk_seconds: How long they waited for the disk.
        operations: Of evaluation, of all heads.
        housekeeping_rows: Rows that they read to be written anew.
        ended: When the last of them ended, in seconds since 1970.
        memory_bytes: By kind, at the last look.
    """

    commits: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    disk_seconds: float = 0.0
    operations: int = 0
    housekeeping_rows: int = 0
    ended: float = 0.0
    memory_bytes: Mapping[str, int] = MappingProxyType({})

    def then(self, other: Span) -> Span:
        """This span and the one behind it as one."""
        return Span(
            self.commits + other.commits,
            self.seconds + other.seconds,
            max(self.longest, other.longest),
            self.disk_seconds + other.disk_seconds,
            self.operations + other.operations,
            self.housekeeping_rows + other.housekeeping_rows,
            other.ended,
            other.memory_bytes,
        )


def one_commit(stats: TransactionStats) -> Span:
    """The span of a commit that has ended now."""
    operations = sum([figures.operations for figures in stats.rules.values()])
    return Span(1, stats.seconds, stats.seconds, 0.0, operations, stats.housekeeping_rows, time.time())


class History:
    """Of one workspace, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = Span()
        self._width = 1
        self._ended: tuple[Span, ...] = ()
        self._last = Span()
        """Of fewer commits than the width, perhaps none."""
        self._memory: Mapping[str, int] = {}
        self._looked_at = -LOOK_EVERY
        """So many commits had come at the last look."""
        self._waiting: list[Span] = []
        """Commits that are not added up yet."""
        self._room = 1
        """So many may wait: memory is looked at behind the last of them, or never."""

    @property
    def total(self) -> Span:
        """All commits."""
        with self._lock:
            self._add_up()
            return self._total

    def add(self, commit: Span, memory: Callable[[], Mapping[str, int]]) -> None:
        """Count a commit; ``memory`` says what all takes behind it, by kind, when asked."""
        with self._lock:
            self._waiting.append(commit)
            if len(self._waiting) >= self._room:
                self._add_up(memory)

    def _add_up(self, memory: Callable[[], Mapping[str, int]] | None = None) -> None:
        """Count all that waits; ``memory``: behind the last of it, where there is no more room."""
        while self._waiting:
            self._enter(self._waiting[0], memory)
        n_looked = self._looked_at + LOOK_EVERY - self._total.commits
        n_ended = self._width - self._last.commits
        n_ended += -(-max(0, n_looked - n_ended) // self._width) * self._width
        self._room = min(n_ended, WAITING)

    def _enter(self, commit: Span, memory: Callable[[], Mapping[str, int]] | None) -> None:
        total, last = self._total.then(commit), self._last.then(commit)
        ended, width, looked_at, taken = self._ended, self._width, self._looked_at, self._memory
        if last.commits == width:
            if total.commits - looked_at >= LOOK_EVERY:
                assert memory is not None
                taken, looked_at = memory(), total.commits
            ended, last = (*ended, last._replace(memory_bytes=taken)), Span()
            if len(ended) == SPANS:
                ended = tuple(one.then(other) for one, other in zip(ended[::2], ended[1::2], strict=True))
                width *= 2
        self._memory, self._looked_at = taken, looked_at
        # In one line without a call, for an interruption finds all of it done or nothing.
        self._total, self._last, self._ended, self._width = total, last, ended, width; del self._waiting[0]  # noqa: E702  # fmt: skip

    def add_many(
        self, commits: int, seconds: float, operations: int, memory: Callable[[], Mapping[str, int]]
    ) -> None:
        """Count commits of which it is known what they took together: each is taken for the mean of them."""
        mean, ended, done = seconds / max(1, commits), time.time(), 0
        with self._lock:
            self._add_up(memory)
            while done < commits:
                n = min(commits - done, self._width - self._last.commits)
                share = operations * (done + n) // commits - operations * done // commits
                self._waiting.append(Span(n, n * mean, mean, operations=share, ended=ended))
                self._add_up(memory)
                done += n

    def waited(self, seconds: float) -> None:
        """Count what a commit waited for the disk; where others came since, it is counted with the last."""
        with self._lock:
            if self._waiting:
                self._waiting[-1] = _with_wait(self._waiting[-1], seconds)
                return
            self._total = _with_wait(self._total, seconds)
            if self._last.commits or not self._ended:
                self._last = _with_wait(self._last, seconds)
            else:
                self._ended = (*self._ended[:-1], _with_wait(self._ended[-1], seconds))

    def spans(self, memory_bytes: Mapping[str, int]) -> tuple[Span, ...]:
        """All of them, the oldest first; ``memory_bytes``: what all takes now, by kind."""
        with self._lock:
            self._add_up()
            found = (*self._ended, self._last) if self._last.commits else self._ended
            return (*found[:-1], *(last._replace(memory_bytes=memory_bytes) for last in found[-1:]))


def _with_wait(span: Span, seconds: float) -> Span:
    return span._replace(disk_seconds=span.disk_seconds + seconds)
