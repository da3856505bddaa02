"""`Part`: a source or a sink of a pipeline that runs, with what it has done and how far it is behind.

Invariants

1. One thread takes its steps; others look at its figures, which are each one attribute.
2. It is away from the error that says so until it was heard of again, and not as long as it merely tries; a
   source that does not tell how much waits is taken for heard when it gives something, or tries for long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from maintenance.sinks.sink import Sink
from maintenance.sources.source import Source
from maintenance.workspace.metrics import Samples, metric_lines
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.workspace import Workspace

_LONG = 30.0
"""Seconds."""

_MOST_PARTS = 100
"""Positions of a source with more, as of a folder with many files, are no metrics of their own."""


class Part:
    """``made``: the source or sink.

    Attributes:
        steps, rows: Transactions or changes, and the rows in them.
        restarts: How often it was begun again after it was away.
        error: Why it is away; None: it is not.
        version: Of a sink, up to which all is written; None: it is not known yet.
    """

    def __init__(self, made: Source | Sink) -> None:
        self.made = made
        self.steps = self.rows = self.restarts = 0
        self.error: str | None = None
        self.version: int | None = None
        self._away_since = self._all_since = time.monotonic()
        self._waits_for: tuple[int, float] | None = None  # a version, and since when there is that
        self._has_all = False
        self._tells = not isinstance(made, Source) or type(made).backlog is not Source.backlog

        self._began = self._all_since
        self._stopped = threading.Event()

    def anew(self, made: Sink) -> Part:
        """The same sink, made again: figures go on."""
        part = Part(made)
        part.steps, part.rows, part.restarts = self.steps, self.rows, self.restarts
        return part

    def stop(self) -> None:
        """End its steps, and its waiting, for good."""
        self._stopped.set()
        self.made.stop()

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def wait(self, seconds: float) -> None:
        """So long, or until it is stopped."""
        self._stopped.wait(seconds)

    @property
    def name(self) -> str:
        return self.made.name

    @property
    def is_source(self) -> bool:
        return isinstance(self.made, Source)

    @property
    def step_name(self) -> str:
        return "transaction" if self.is_source else "change"

    def take_steps(self, workspace: Workspace, timeout: float | None) -> Iterator[None]:
        """As `Source.pull` and `Sink.push` take them."""
        self._began = time.monotonic()
        if isinstance(self.made, Source):
            for transaction in self.made.pull(workspace, timeout=timeout):
                self._count(_rows_of(transaction))
                yield
        else:
            for change in self.made.push(workspace, timeout=timeout):
                self._count(change.table.num_rows)
                self.version = change.version
                yield

    def _count(self, rows: int) -> None:
        self.steps += 1
        self.rows += rows
        self.error = None

    def went(self, error: str) -> None:
        """It is away."""
        if self.error is None:
            self._away_since = time.monotonic()
        self.error = error

    @property
    def away_seconds(self) -> float:
        """For how long it is away."""
        return 0.0 if self.error is None else time.monotonic() - self._away_since

    def look(self, version: int) -> None:
        """See how far it is, now and then; ``version``: the workspace's."""
        now = time.monotonic()
        if isinstance(self.made, Source):
            backlog = self.made.backlog()
            if backlog is not None or not (self._tells or now - self._began < _LONG):
                self.error = None
            self._has_all = backlog == 0
            if self._has_all:
                self._all_since = now
            return
        written = self.made.version
        if written is not None:
            self.version, self.error = written, None
        if self._waits_for is not None and written is not None and written >= self._waits_for[0]:
            self._waits_for = None
        if self._waits_for is None and (written is None or written < version):
            self._waits_for = version, now

    @property
    def behind_seconds(self) -> float | None:
        """For how long at most it has not had all that there is, as looked at; None: it does not tell."""
        if not self._tells:
            return None
        now = time.monotonic()
        if self.is_source:
            return 0.0 if self._has_all and self.error is None else now - self._all_since
        waits_for = self._waits_for
        return 0.0 if waits_for is None else now - waits_for[1]

    @property
    def position(self) -> str:
        """How far it is, in words."""
        if not isinstance(self.made, Source):
            return "" if self.version is None else f"version {self.version:,}"
        places = self.made.places
        if len(places) > 3:
            return f"{len(places):,} parts"
        return ", ".join(f"{part} at {place.position:,}" for part, place in places.items())

    @property
    def lag(self) -> str:
        """How far it is behind, in words."""
        if self.behind_seconds is None:
            return "unknown"
        seconds = f"{self.behind_seconds:.1f} s"
        backlog = self.made.backlog() if isinstance(self.made, Source) else None
        return f"{backlog:,} {self.made.backlog_unit}, {seconds}" if backlog else seconds  # type: ignore[union-attr]


def _rows_of(transaction: Transaction) -> int:
    """Rows that came and went in what is no cursor."""
    stats = transaction.stats
    return sum(
        n
        for each in (stats.inserted, stats.erased)
        for name, n in each.items()
        if not name.endswith("#cursor")
    )


def health_of(parts: list[Part]) -> tuple[bool, dict[str, object]]:
    """Whether all are there, and what is said of each."""
    shown = {
        part.name: {"up": part.error is None}
        | ({} if part.behind_seconds is None else {"behind_seconds": round(part.behind_seconds, 1)})
        | ({} if part.error is None else {"away_seconds": round(part.away_seconds, 1), "error": part.error})
        for part in parts
    }
    is_up = all(part.error is None for part in parts)
    return is_up, {"status": "up" if is_up else "away", "parts": shown}


def openmetrics_of(parts: list[Part], workspace: Workspace) -> str:
    """The figures of the workspace and of the parts, as OpenMetrics text."""
    lines = workspace.stats.openmetrics_lines()

    def add(metric: str, kind: str, text: str, samples: Samples, *more: str) -> None:
        label = metric.split("_")[0]
        if samples:
            lines.extend(metric_lines(f"lftj_{metric}", kind, text, (label, *more), samples))

    for label, step, what in (
        ("source", "transactions", "Transactions that a source gave."),
        ("sink", "changes", "Changes that a sink has written."),
    ):
        its = [part for part in parts if part.is_source == (label == "source")]
        by: dict[str, Samples] = {
            name: {(part.name,): float(n) for part in its if (n := getattr(part, name)) is not None}
            for name in ("steps", "rows", "restarts", "behind_seconds", "away_seconds")
        }
        add(f"{label}_{step}", "counter", what, by["steps"])
        add(f"{label}_rows", "counter", "Rows in them.", by["rows"])
        add(f"{label}_restarts", "counter", "How often it was begun again.", by["restarts"])
        up: Samples = {(part.name,): float(part.error is None) for part in its}
        add(f"{label}_up", "gauge", "1, or 0 while it does not answer.", up)
        add(f"{label}_away_seconds", "gauge", "For how long it has not answered.", by["away_seconds"])
        add(f"{label}_behind_seconds", "gauge", "For how long it has not had all.", by["behind_seconds"])
    sources = [part.made for part in parts if isinstance(part.made, Source)]
    for unit in ("rows", "bytes"):
        waiting: Samples = {
            (source.name,): float(backlog)
            for source in sources
            if source.backlog_unit == unit and (backlog := source.backlog()) is not None
        }
        add(f"source_backlog_{unit}", "gauge", "What waits upstream, as last heard.", waiting)
    positions: Samples = {
        (source.name, part): place.position
        for source in sources
        for part, place in (source.places.items() if len(source.places) <= _MOST_PARTS else ())
    }
    add("source_position", "gauge", "How far its parts are read: offset, byte, LSN.", positions, "part")
    aside: Samples = {
        (source.name,): workspace[source.aside].count for source in sources if source.aside in workspace
    }
    add("source_aside_rows", "gauge", "Rows that were set aside, and are there.", aside)
    versions: Samples = {(part.name,): part.version for part in parts if part.version is not None}
    add("sink_version", "gauge", "The version up to which all is written.", versions)
    return "\n".join([*lines, "# EOF", ""])
