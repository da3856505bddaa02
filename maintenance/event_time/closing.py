"""Rows that close: those of a head whose close the clock passes with a transaction.

    close of a row  =  its column ``number`` + ``after``        closed by k: now[k-1] < close <= now[k]

Invariant: a row closes once, for the clock does not go back, and is as it stays then: what has a part in it
came before, and leaves later (:mod:`lftj.language.finals`).

Cost: O(log n) and the rows that close.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import asdict
from typing import Any

import numpy as np

from lftj.language.finals import Final
from lftj.storage.relation_version import RelationVersion, levels_of
from lftj.storage.signed_rows import gathered, net_rows
from lftj.storage.time_range import rows_between
from lftj.values.streams import EARLIEST
from maintenance.changes.change import Change
from maintenance.changes.timed_change import TimedChange
from maintenance.event_time.stream_state import NEVER
from maintenance.heads.grown import Grown, Moment
from maintenance.strategies.strategy import Round
from maintenance.strategies.timed_round import TimedRound


class ClosedRows(Grown):
    """The relation of the rows of a head that have closed."""

    def __init__(self, final: Final) -> None:
        self.final, self.name, self.reads = final, final.name, frozenset([final.head])

    @property
    def what(self) -> str:
        return f"the rows of {self.final.head!r} that have closed"

    @property
    def record(self) -> Mapping[str, Any]:
        return {"final": asdict(self.final)}

    @property
    def explanation(self) -> str:
        return f"{self.name}: only grows\n  by rows of {self.final.head}, each once, when it closes"

    def may_gain(self, changed: Set[str], moves: bool) -> bool:
        return moves

    def gained(self, change: Round, moment: Moment) -> Change | None:
        return closed(self.final, change.new[self.final.head], moment.before, moment.now)

    def gained_each(self, batch: TimedRound, before: int | None, nows: np.ndarray) -> TimedChange:
        head = batch.total.old[self.final.head]
        return closed_each(self.final, head, batch.changes.get(head.name), before, nows)


def extents_of(finals: Mapping[str, Final]) -> dict[str, int]:
    """By stream, how long rows are needed before what they have a part in closes."""
    extents: dict[str, int] = {}
    for final in finals.values():
        for stream, extent in final.extents.items():
            extents[stream] = max(extent, extents.get(stream, extent))
    return extents


def closed(final: Final, head: RelationVersion, before: int | None, now: int | None) -> Change | None:
    """The rows of a head that close when the clock moves on; None where none does."""
    if now is None or now == before:
        return None
    rows = _in_range(final, head, before, now)
    rows, weights = net_rows(rows, np.ones(rows.shape[1], np.int64))
    return Change(rows, weights) if len(weights) else None


def closed_each(
    final: Final, head: RelationVersion, change: TimedChange | None, before: int | None, nows: np.ndarray
) -> TimedChange:
    """The same of many transactions.

    ``head``: before all of them; ``change``: what each does to it; ``nows``: int64 (transactions,), the clock
    behind each, NEVER where there is none.
    """
    empty = np.empty(0, np.int64)
    nothing = TimedChange(np.empty((len(head.schema.columns), 0), np.int64), empty, empty)
    if not len(nows) or nows[-1] == NEVER or nows[-1] == before:
        return nothing
    change = nothing if change is None else change
    now = int(nows[-1])
    there = _in_range(final, head, before, now)
    passed = np.where(nows < EARLIEST + final.after, NEVER, nows - final.after)
    closes = np.searchsorted(passed, there[final.number])
    parts = [([*there, closes], np.ones(len(closes), np.int64))]
    times = change.columns[final.number]
    chosen = (times <= passed[-1]) & (True if before is None else times > before - final.after)
    closes = np.searchsorted(passed, times)
    chosen &= change.times <= closes
    parts.append(([*change.columns[:, chosen], closes[chosen]], change.signs[chosen]))
    rows, weights = net_rows(*gathered(parts))
    assert (weights == 1).all(), "a row that closes is there then"
    return TimedChange(np.ascontiguousarray(rows[:-1]), rows[-1].copy(), weights)


def _in_range(final: Final, head: RelationVersion, before: int | None, now: int) -> np.ndarray:
    identity = head.schema.identity
    levels = levels_of((final.number,), (), identity)
    low, high = (None if time is None else max(time - final.after + 1, EARLIEST) for time in (before, now))
    rows = rows_between(head.index_at((levels, ())), low, high)
    return rows[[levels.index(number) for number in identity]]
