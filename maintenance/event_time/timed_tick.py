"""The streams of a batch: what each of many transactions takes of its rows, and what leaves with each.

Invariant: all is as if each transaction were committed by itself (:mod:`maintenance.event_time.tick`).

Cost: one sort of the changes of each stream, and O(rows that leave); no step for each transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import gathered, net_rows
from lftj.storage.wide_columns import with_read_columns
from lftj.values.schema import Schema
from lftj.values.streams import earlier
from maintenance.changes.signed import Signed
from maintenance.changes.timed_change import TimedChange
from maintenance.event_time.stream_buffer import on_time, times_of
from maintenance.event_time.stream_state import NEVER, RecentState, StreamState, clock
from maintenance.event_time.tick import Streams, Tick


class TimedTick(Tick):
    """Of ``n`` transactions."""

    def __init__(
        self, before: Streams, recents: Mapping[str, RecentState], extents: Mapping[str, int], n: int
    ) -> None:
        super().__init__(before, recents, extents)
        self.nows = np.full(n, NEVER)
        """The clock behind each transaction."""
        self._n = n
        self._waterlines: dict[str, np.ndarray] = {}
        """Of streams that have rows, behind each transaction."""

    def taken(self, name: str, schema: Schema, rows: Signed, numbers: np.ndarray) -> np.ndarray:
        """Which of a stream's rows are taken: bool (n,); ``numbers``: each one's transaction.

        Raises StreamError, whose ``time`` is that of the transaction.
        """
        state, times = self.before[name], times_of(name, schema, rows.columns)
        waterlines = np.full(self._n + 1, NEVER)
        np.maximum.at(waterlines[1:], numbers, times)
        came = waterlines > NEVER
        waterlines[came] = earlier(waterlines[came], state.stream.lateness)
        waterlines[0] = NEVER if state.waterline is None else state.waterline
        waterlines = np.maximum.accumulate(waterlines)
        taken = on_time(name, schema, state.stream, times, waterlines[numbers], NEVER, numbers)
        self._waterlines[name] = waterlines[1:]
        late = Signed([column[~taken] for column in rows.columns], rows.weights[~taken])
        self.enter(name, schema, int(times.max()) if len(times) else None, late)
        return taken

    def expire_each(self, versions: Mapping[str, RelationVersion], changes: dict[str, TimedChange]) -> None:
        """Let what the clock has passed leave with each transaction: ``changes`` get it, by relation."""
        if not self.before or not self._n:
            return
        given = dict(changes)
        nows = np.minimum.reduce([self._behind_each(name, state) for name, state in self.before.items()])
        self.nows, known = nows, nows > NEVER
        now = clock(self.before)
        before = np.append(NEVER if now is None else now, nows[:-1])
        for name, state in self.streams.items():
            if state.stream.keep is None:
                continue
            bounds = np.full(self._n, NEVER if state.left is None else state.left)
            extent, moved = self.extents.get(name), known
            kept_from = state.stream.kept_from(nows)
            if extent is not None:
                moved, kept_from = before > NEVER, np.minimum(kept_from, earlier(before, extent))
            bounds[moved] = np.maximum(bounds[moved], kept_from[moved])
            left = int(bounds[-1])
            if left == NEVER or left == state.left:
                continue
            change, n_left = _with_expiry(versions[name], changes.pop(name, None), state.left, bounds)
            if len(change):
                changes[name] = change
            if n_left:
                self.expired[name] = n_left
            self.streams[name] = replace(state, left=left)
        for name, each in self.recents.items():
            bounds = np.full(self._n, NEVER if each.left is None else each.left)
            bounds[known] = np.maximum(bounds[known], earlier(nows[known], each.recent.span))
            came = given.get(each.recent.stream)
            if bounds[-1] != NEVER and (came is not None or bounds[-1] != each.left):
                came, _ = _with_expiry(versions[name], came, each.left, bounds)
            if came is not None and len(came):
                changes[name] = came
        now = clock(self.streams)
        self.recents = {name: each.left_by(now) for name, each in self.recents.items()}

    def _behind_each(self, name: str, state: StreamState) -> np.ndarray:
        """A stream's waterline behind each transaction."""
        there = NEVER if state.waterline is None else state.waterline
        return self._waterlines.get(name, np.full(self._n, there))


def _with_expiry(
    version: RelationVersion, change: TimedChange | None, left: int | None, bounds: np.ndarray
) -> tuple[TimedChange, int]:
    """A change of a stream and what leaves with it, and how many rows these are.

    ``version``: the one before; ``left``: before it nothing is there.  ``bounds``: int64 (transactions,),
    rising: before it nothing is there behind each.
    """
    schema = version.schema
    gone = version.rows_between(left, int(bounds[-1]))
    leaves = np.searchsorted(bounds, times_of(version.name, schema, gone), side="right")
    parts = [([*gone, leaves], np.ones(len(leaves), np.int64))]
    if change is None:
        empty = np.empty(0, np.int64)
        rows, times, signs, n_left = gone[:, :0], empty, empty, 0
    else:
        rows = np.array([change.columns[number] for number in schema.identity])
        leaves = np.searchsorted(bounds, change.columns[schema.time_number], side="right")
        before, leaving = change.times < leaves, leaves < len(bounds)
        n_left = int(change.signs[change.times == leaves].sum())
        both = before & leaving
        parts.append(([*rows[:, both], leaves[both]], change.signs[both]))
        rows, times, signs = rows[:, before], change.times[before], change.signs[before]
    going, there = net_rows(*gathered(parts))
    assert (there == 1).all(), "of what leaves, each row is there before"
    rows, times = np.concatenate([rows, going[:-1]], axis=1), np.concatenate([times, going[-1]])
    signs = np.concatenate([signs, -there])
    order = np.lexsort((times, *rows[::-1]))
    rows = np.ascontiguousarray(rows[:, order])
    if schema.wide:
        rows = with_read_columns(version.name, schema, rows[0], version.read_columns)
    return TimedChange(rows, times[order], signs[order]), n_left + len(there)
