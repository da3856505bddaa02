"""`Tick`: what one transaction does to the streams: which rows it takes, how far the clock goes, what leaves.

Invariants

1. Rows are judged by the waterline of before the transaction, so their order in it is of no account.
2. What is in the journal was judged when it was written: a transaction that is done again takes all its rows,
   and what it made of the streams is told.  The rows that leave follow from that, and are in no journal.
3. Nothing here changes what is there: it is published with the commit, or dropped with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lftj.storage.relation_version import RelationVersion
from lftj.storage.wide_columns import WideColumns
from lftj.values.schema import Schema
from lftj.values.streams import earlier
from maintenance.changes.change import Change
from maintenance.changes.changes import change_table
from maintenance.changes.signed import Signed
from maintenance.changes.write_buffer import WriteBuffer
from maintenance.event_time.expiry import with_expiry
from maintenance.event_time.stream_buffer import StreamBuffer
from maintenance.event_time.stream_state import NEVER, Late, RecentState, StreamState, clock

Streams = Mapping[str, StreamState]
Moving = Sequence[int | None]


@dataclass
class Clockwork:
    """What a transaction says of time beside its rows.

    ``advanced``: the clock is there at least.  ``told``: what its rows did to the streams, where it is done
    again.
    """

    advanced: int | None = None
    told: dict[str, Moving] | None = None


@dataclass
class Tick:
    """``streams`` and ``recents``: as they are after the transaction, when all is told.

    ``extents``: of streams whose rows have a part in what closes, how long they are needed before that: they
    leave by the clock of before the transaction.  ``late_rows``: of each stream that has some, as a table
    with a column ``weight``.
    """

    before: Streams
    recents: Mapping[str, RecentState] = field(default_factory=dict)
    extents: Mapping[str, int] = field(default_factory=dict)
    clockwork: Clockwork = field(default_factory=Clockwork)
    late_rows: dict[str, pa.Table] = field(default_factory=dict)
    expired: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.streams = {name: state.raised(self.clockwork.advanced) for name, state in self.before.items()}
        for name, moving in (self.clockwork.told or {}).items():
            if name in self.streams:  # it may be about to be declared one
                self.streams[name] = self.streams[name].moved(moving)

    def judged(self, name: str, buffer: WriteBuffer) -> WriteBuffer:
        """What is taken of staged changes: all but late rows of a stream.  Raises StreamError."""
        if not isinstance(buffer, StreamBuffer) or self.clockwork.told is not None:
            return buffer
        taken, late, latest = buffer.judged(name, self.before[name], self.clockwork.advanced)
        self.enter(name, buffer.schema, latest, late)
        return taken

    def enter(self, name: str, schema: Schema, latest: int | None, late: Signed) -> None:
        """Note the latest time of a stream's rows, and those that are late."""
        inserted = int((late.weights > 0).sum())
        self.note(name, latest, Late(inserted, len(late.weights) - inserted))
        if len(late.weights):
            columns = WideColumns(name, schema, late.columns[0]) if schema.wide else late.columns
            self.late_rows[name] = change_table(schema.shown if schema.bag else schema, columns, late.weights)

    def note(self, name: str, latest: int | None, late: Late) -> None:
        """Note the latest time of a stream's rows, and how many are late."""
        state = self.streams[name]
        if latest is not None:
            state = state.raised(earlier(latest, state.stream.lateness))
        of_all = Late(state.late.inserted + late.inserted, state.late.erased + late.erased)
        self.streams[name] = replace(state, late=of_all)

    @property
    def late(self) -> dict[str, int]:
        """How many rows are late, by stream."""
        return {name: table.num_rows for name, table in self.late_rows.items()}

    @property
    def moved(self) -> dict[str, Moving]:
        """What changes of the streams, of those of which something does."""
        states = self.streams.items()
        return {name: state.moving for name, state in states if state != self.before[name]}

    @property
    def clocks(self) -> tuple[int | None, int | None]:
        """The clock before the transaction, and behind it."""
        return clock(self.before), clock(self.streams)

    def _needed_from(self, name: str) -> int | None:
        """The time from which a stream's rows have a part in what may close with the transaction."""
        extent, before = self.extents.get(name), clock(self.before)
        if extent is None:
            return None
        return NEVER if before is None else earlier(before, extent)

    def leave(self) -> None:
        """Note what leaves, when all rows are told: what the clock has passed."""
        now = clock(self.streams)
        self.streams = {
            name: state.left_by(now, self._needed_from(name)) for name, state in self.streams.items()
        }

    def expire(self, versions: Mapping[str, RelationVersion], changes: dict[str, Change]) -> None:
        """Let what the clock has passed leave with the transaction: ``changes`` get it, by relation."""
        now, given = clock(self.streams), dict(changes)
        if self.clockwork.told is None:
            self.leave()
        for name, state in self.streams.items():
            before = self.before[name].left
            if state.left is None or state.left == before:
                continue
            change, n_left = with_expiry(versions[name], changes.pop(name, None), before, state.left)
            if change is not None:
                changes[name] = change
            if n_left:
                self.expired[name] = n_left
        before_each = self.recents
        self.recents = {name: each.left_by(now) for name, each in before_each.items()}
        for name, each in self.recents.items():
            change, left = given.get(each.recent.stream), before_each[name].left
            if each.left is not None and (change is not None or each.left != left):
                change, _ = with_expiry(versions[name], change, left, each.left)
            if change is not None:
                changes[name] = change


STILL = Tick({})
"""Of a workspace without streams."""
