"""What a batch does to the clock of the streams: told by the tasks of its input, made out by one task.

    tasks of the input    latest time and late rows of each stream  --+
    the driver            a packet, so that there is one              +-->  stage of the clock
    stage of the clock    bounds  -->  all partitions of the stages of streams and of rows that close

All is as in the transaction of a workspace (:class:`~maintenance.event_time.tick.Tick`): rows are judged by
the waterlines of before the batch, which the manifest has, wherever they are read; one clock is made out of
them all, before any row goes on; and what leaves follows from that.

Cost: a packet from each task of the input, and to each partition where a bound has moved, or rules have
``now()`` or ``final``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from lftj.values.schema import ColumnType, Schema
from maintenance.event_time.closing import extents_of
from maintenance.event_time.stream_buffer import on_time
from maintenance.event_time.stream_state import NEVER, Late, StreamState, clock
from maintenance.event_time.tick import Clockwork, Moving, Tick
from spark_bridge.cells.stream_engine import Bounds
from spark_bridge.placing.head_plan import ProgramText

Told = Mapping[str, Sequence[int | None]]
"""By stream the latest time, and how many rows are late: to be inserted, to be erased."""


@dataclass(frozen=True)
class BatchClock:
    """Where the streams are when a batch begins.

    ``advanced``: the clock is there at least; ``is_told``: the rows are those of a version, and move nothing.
    """

    text: ProgramText
    before: Mapping[str, StreamState] = field(default_factory=dict)
    advanced: int | None = None
    is_told: bool = False

    @classmethod
    def of(cls, text: ProgramText, moving: Mapping[str, Moving], **more: int | bool | None) -> BatchClock:
        """``moving``: of streams that have begun, as the manifest has it."""
        states = {name: StreamState(stream) for name, stream in text.streams}
        before = {name: each.moved(moving[name]) if name in moving else each for name, each in states.items()}
        return cls(text, before, **more)  # type: ignore[arg-type]

    @property
    def now(self) -> int | None:
        return clock(self.before)

    def taken(self, name: str, schema: Schema, rows: pa.Table) -> tuple[np.ndarray, list[int | None]]:
        """Which rows of a stream are not late, bool (n,), and what is told of them.  Raises StreamError."""
        column = schema.columns[schema.time_number]
        times = np.asarray(column.type.encode(rows.column(column.name)))
        latest = int(times.max()) if len(times) else None
        if self.is_told:
            return np.ones(len(times), bool), [None, 0, 0]
        state = self.before[name]
        line, raised = (NEVER if each is None else each for each in (state.waterline, self.advanced))
        is_taken = on_time(name, schema, state.stream, times, np.int64(line), raised)
        late = rows.column(rows.num_columns - 1).to_numpy()[~is_taken]
        inserted = int((late > 0).sum())
        return is_taken, [latest, inserted, len(late) - inserted]

    def ticked(self, told: Iterable[Told]) -> Ticked:
        """Behind the batch."""
        tick = Tick(
            self.before,
            extents=extents_of({final.name: final for final in self.text.finals}),
            clockwork=Clockwork(self.advanced),
        )
        if not self.is_told:
            for one in told:
                for name, (latest, inserted, erased) in one.items():
                    tick.note(name, latest, Late(inserted or 0, erased or 0))
            tick.leave()
        was, now = tick.clocks
        bounds = {name: (self.before[name].left, state.left) for name, state in tick.streams.items()}
        for recent in self.text.recents:
            bounds[recent.name] = _less(was, recent.span), _less(now, recent.span)
        if (final := self.text.final) is not None:
            bounds[final.head] = _less(was, final.after - 1), _less(now, final.after - 1)
        moved = any(low != high for low, high in bounds.values())
        goes = moved or self.is_told or bool(self.text.recents) or final is not None
        return Ticked({name: state.moving for name, state in tick.streams.items()}, bounds if goes else None)


@dataclass(frozen=True)
class Ticked:
    """``moving``: of all streams, as the manifest has it.  ``bounds``: None where no partition needs them."""

    moving: dict[str, list[int | None]]
    bounds: Bounds | None


def _less(now: int | None, units: int) -> int | None:
    return None if now is None else now - units


def stream_schemas(text: ProgramText) -> dict[str, Schema]:
    """The schemas of streams, with dictionaries of their own."""
    schemas = dict(text.relations)
    return {
        name: Relation.from_table(name, schemas[name].empty_table(), Domains(), "keep")
        .with_stream(stream)
        .schema
        for name, stream in text.streams
    }


def clock_type(text: ProgramText) -> ColumnType:
    """The type of all streams' times."""
    schema = next(iter(stream_schemas(text).values()))
    return schema.columns[schema.time_number].type


def told_of(packets: Iterable[bytes]) -> Iterator[Told]:
    """What packets for the stage of the clock say; that of the driver says nothing."""
    return (json.loads(packet) for packet in packets if packet)
