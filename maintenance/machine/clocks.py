"""The streams of a workspace as the machine commits: which rows go by it, and where waterlines are.

Invariants

1. What is late or too far ahead, what erases rows of a stream, and what moves the clock past the end of a
   bucket (:mod:`lftj.values.streams`), so that rows may leave, is left to the general way.  So a commit moves
   waterlines, and only where a row is new.
2. A waterline is where the log says: what a transaction would have moved counts when it is published.

Cost: of a row of a stream a few comparisons, of a transaction that moves a waterline a few for each stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lftj.values.streams import earlier
from maintenance.event_time.stream_state import NEVER, StreamState, clock
from maintenance.machine.piece import Piece
from maintenance.machine.program import Layout

Streams = Mapping[str, StreamState]


class Clocks:
    """From a state on, to which a program was bound."""

    def __init__(self, layout: Layout, streams: Streams) -> None:
        self._streams, self._states = streams, list(streams.values())
        self._settings = [state.stream for state in self._states]
        self._waterlines = [_or_never(state.waterline) for state in self._states]
        self._left = [_or_never(state.left) for state in self._states]
        self._next = self._waterlines
        self._tried: tuple[Piece, list[int]] | None = None
        self._items: dict[int, tuple[int, int, int]] = {}
        """By relation: how many items a row has that is staged, where its time is, and which stream it is."""
        for name, (number, width, _, schema) in layout.staged.items():
            stream = list(streams).index(name) if name in streams else -1
            time = 0 if stream < 0 else 2 + schema.time_number
            self._items[number] = 2 + width + schema.wide, time, stream
        now = clock(streams)
        self._is_due = any(state.left_by(now, None) is not state for state in self._states)

    def passes(self, rows: Sequence[int]) -> bool:
        """Whether what is staged may go by the machine; as :meth:`Machine.commit` takes it."""
        self._adopt()
        if self._is_due:
            return False
        waterlines, following, at = self._waterlines, self._waterlines, 0
        while at < len(rows):
            n_items, place, stream = self._items[rows[at]]
            if stream >= 0:
                time, waterline, settings = rows[at + place], waterlines[stream], self._settings[stream]
                if time < waterline or rows[at + 1] != 1:
                    return False
                reached = earlier(time, settings.lateness)
                if settings.ahead is not None and earlier(reached, settings.ahead) > waterline > NEVER:
                    return False
                if reached > following[stream]:
                    if following is waterlines:
                        following = [*waterlines]
                    following[stream] = reached
            at += n_items
        self._next = following
        return following is waterlines or not self._leave(min(following))

    def _leave(self, now: int) -> bool:
        """Whether rows may leave when the clock is there."""
        return now > NEVER and any(
            stream.keep is not None and stream.kept_from(now) > left
            for stream, left in zip(self._settings, self._left, strict=True)
        )

    def begin(self, piece: Piece) -> None:
        """What passed is about to be published."""
        self._tried = piece, self._next

    def _adopt(self) -> None:
        """Have the waterlines of what was published; any number of times."""
        if self._tried is not None and self._tried[0].is_published:
            self._waterlines = self._tried[1]
        self._tried = None

    def states(self) -> Streams:
        """The streams with all that was published; any number of times."""
        self._adopt()
        return {name: self._at(number, self._waterlines) for number, name in enumerate(self._streams)}

    def _at(self, number: int, waterlines: Sequence[int]) -> StreamState:
        state, waterline = self._states[number], waterlines[number]
        return state if waterline == _or_never(state.waterline) else replace(state, waterline=waterline)

    @property
    def moved(self) -> Mapping[str, Sequence[int | None]]:
        """What the journal is to say of the transaction that passed: of the streams that it moves."""
        before, after = self._waterlines, self._next
        return {
            name: self._at(number, after).moving
            for number, name in enumerate(self._streams)
            if before[number] != after[number]
        }


def _or_never(time: int | None) -> int:
    return NEVER if time is None else time
