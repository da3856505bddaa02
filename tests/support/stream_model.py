"""The reference for streams: the whole history of accepted rows, filtered; it imports nothing of the engine.

wl[k]  =  max(wl[k-1], latest time of k - lateness), or the time that k says has come
now[k] =  min over all streams
R[k]   =  the accepted rows with a time from now[k] - keep on, down to the beginning of a bucket;
              where rows close, from now[k-1] - extent on, if that is earlier
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = tuple[Any, ...]
"""The first item is its time, a whole number."""

Batch = list[tuple[Row, int]]
"""Rows and how often each comes, or goes."""


@dataclass
class ModelStream:
    """``history``: all that was ever accepted, and was not erased by a transaction; of a bag all copies."""

    lateness: int
    keep: int
    is_bag: bool = False
    extent: int | None = None
    """How long rows are needed before what they have a part in closes."""
    waterline: int | None = None
    inserted_late: int = 0
    erased_late: int = 0
    history: Counter[Row] = field(default_factory=Counter)
    bound: int | None = None

    @property
    def bucket(self) -> int:
        return max(self.keep // 64, 1)

    @property
    def contents(self) -> Counter[Row]:
        held = self.bound
        return Counter({row: n for row, n in self.history.items() if held is None or row[0] >= held})

    def load(self, rows: Iterable[Row], now: int | None) -> None:
        self.history = Counter(rows) if self.is_bag else Counter(set(rows))
        latest = [row[0] - self.lateness for row in self.history]
        self.waterline = max([*latest, *([] if now is None else [now])], default=None)
        self.bound, self.inserted_late, self.erased_late = None, 0, 0

    def take(self, batch: Batch) -> list[tuple[Row, int]]:
        """Judge a transaction's rows, by the waterline of before, and take them; returns the late ones."""
        line, net, late = self.waterline, Counter[Row](), []
        for row, weight in batch:
            if line is not None and row[0] < line:
                late.append((row, weight))
                self.inserted_late += weight > 0
                self.erased_late += weight < 0
            else:
                net[row] += weight
        there = self.contents
        for row, weight in net.items():
            n = (
                max(0, there[row] + weight)
                if self.is_bag
                else int(weight > 0 or (weight == 0 and there[row]))
            )
            if n != there[row]:
                self.history[row] = n
        self.history = +self.history
        self.raise_to(max((row[0] - self.lateness for row, _ in batch), default=None))
        return late

    def raise_to(self, time: int | None) -> None:
        if time is not None and (self.waterline is None or time > self.waterline):
            self.waterline = time


class Model:
    """All streams of a workspace, as they are loaded."""

    def __init__(self) -> None:
        self.streams: dict[str, ModelStream] = {}

    @property
    def now(self) -> int | None:
        lines = [stream.waterline for stream in self.streams.values()]
        known = [line for line in lines if line is not None]
        return min(known) if known and len(known) == len(lines) else None

    def load(self, name: str, stream: ModelStream, rows: Iterable[Row]) -> None:
        stream.load(rows, self.now)
        self.streams[name] = stream

    def commit(
        self, batches: Mapping[str, Batch], advance: int | None = None
    ) -> tuple[dict[str, list[tuple[Row, int]]], dict[str, int]]:
        """The late rows of each stream, and how many rows leave each."""
        earlier = self.now
        late = {name: self.streams[name].take(batch) for name, batch in batches.items()}
        for stream in self.streams.values():
            stream.raise_to(advance)
        now, expired = self.now, {}
        for name, stream in self.streams.items():
            before = stream.contents
            if now is not None:
                bound: int | None = (now - stream.keep) // stream.bucket * stream.bucket
                if stream.extent is not None:
                    bound = None if earlier is None else min(bound, earlier - stream.extent)
                if bound is not None:
                    stream.bound = bound if stream.bound is None else max(stream.bound, bound)
            expired[name] = sum((before - stream.contents).values())
        return {name: rows for name, rows in late.items() if rows}, {n: k for n, k in expired.items() if k}
