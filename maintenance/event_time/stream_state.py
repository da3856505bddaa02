"""`StreamState`: how far a stream has come, and the clock of all streams together.

    waterline[k]  =  max(waterline[k-1], latest time of transaction k - lateness)
    now[k]        =  the least waterline of all streams

Invariants

1. A waterline never falls; a stream that is new begins at the clock or above it.  So the clock never goes
   back, and is nothing that would have to be kept beside the waterlines.
2. To say that the clock is at some time is to raise all waterlines to it: no row that comes later is earlier.
3. Times are codes: whole numbers, which all streams of a workspace count in one unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lftj.language.recent import Recent
from lftj.values.streams import EARLIEST, Stream, earlier

NEVER = EARLIEST - 1
"""Before all times: no row has this one, whose code is that of NULL."""


class Late(NamedTuple):
    """How many rows came too late: to be inserted, and to be erased."""

    inserted: int = 0
    erased: int = 0


@dataclass(frozen=True)
class StreamState:
    """``waterline``: rows with an earlier time are late; None: none is, for nothing has come yet.

    ``late``: those so far.  ``left``: all rows with an earlier time have left; None: none has.
    """

    stream: Stream
    waterline: int | None = None
    late: Late = Late()
    left: int | None = None

    def raised(self, to: int | None) -> StreamState:
        """The same with a waterline at some place, if it is not above that already."""
        if to is None or (self.waterline is not None and self.waterline >= to):
            return self
        return replace(self, waterline=to)

    def left_by(self, now: int | None, needed_from: int | None) -> StreamState:
        """The same when the clock is there and what it has passed has left.

        ``needed_from``: the time from which rows are needed beyond that, NEVER: all; None: none is.
        """
        if now is None or self.stream.keep is None or needed_from == NEVER:
            return self
        bound = self.stream.kept_from(now)
        bound = bound if needed_from is None else min(bound, needed_from)
        return self if self.left is not None and bound <= self.left else replace(self, left=bound)

    @property
    def moving(self) -> list[int | None]:
        """What transactions change of it, as the journal has it."""
        return [self.waterline, *self.late, self.left]

    def moved(self, moving: Sequence[Any]) -> StreamState:
        """The inverse."""
        waterline, *late, left = moving
        return replace(self, waterline=waterline, late=Late(*late), left=left)

    @property
    def record(self) -> dict[str, Any]:
        """All of it, as the journal has a stream that is declared."""
        stream = self.stream
        spans = {"lateness": stream.lateness, "keep": stream.keep, "ahead": stream.ahead}
        return {"time": stream.time, **spans, "moving": self.moving}


@dataclass(frozen=True)
class RecentState:
    """``left``: of a relation of recent rows, all that are earlier have left; None: none has."""

    recent: Recent
    left: int | None = None

    def left_by(self, now: int | None) -> RecentState:
        """The same when the clock is there."""
        bound = None if now is None else earlier(now, self.recent.span)
        if bound is None or (self.left is not None and bound <= self.left):
            return self
        return replace(self, left=bound)


def stream_state_of(record: Mapping[str, Any]) -> StreamState:
    """The inverse.

    >>> state = StreamState(Stream("t", 5, 600), 40, Late(2, 1), -570)
    >>> stream_state_of(state.record) == state
    True
    """
    settings = {name: value for name, value in record.items() if name != "moving"}
    return StreamState(Stream(**settings)).moved(record["moving"])


def states_of(records: Mapping[str, Mapping[str, Any]]) -> dict[str, StreamState]:
    """The same of several, by relation."""
    return {name: stream_state_of(record) for name, record in records.items()}


def clock(streams: Mapping[str, StreamState]) -> int | None:
    """The time that has come in all streams; None where there is none, or one in which nothing came yet."""
    waterlines = [state.waterline for state in streams.values()]
    known = [waterline for waterline in waterlines if waterline is not None]
    return min(known) if known and len(known) == len(waterlines) else None
