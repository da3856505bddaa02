"""A month in fast motion: streams in a folder for 30 days of event time, and whether anything grows.

    python -m bench.month [--events 50000000] [--quick]

writes ``windows/month.md`` into ``bench/results/`` (``--quick``: few events, only printed).

Trades and quotes, evenly over 30 days, up to 2,000 places out of order, come in transactions of 1,000 to
10,000.  Trades stay for a day, quotes for an hour.  Kept are a sum by item, sums by hour that are told once
when the hour is over, and pairs of a trade and a quote of its item that follows soon.  The journal is cut by
checkpoints that come by themselves.  A row of the page is a day; what grows by nature, the rows that have
closed, stands beside.  At the end these are compared with sums by numpy, and all heads are verified.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.report.machine import describe
from bench.report.markdown import number, table
from bench.report.memory import resident_bytes
from bench.report.page import show
from maintenance import Workspace

DAYS = 30
DAY = 86_400_000_000
"""Microseconds, as all times here."""

START = 1_767_225_600_000_000
HOUR = DAY // 24
ITEMS = 100
DISORDER = 2000
"""How many events a row may be late."""

EVENTS = 30_000_000
WHOLE = 50_000_000
"""So many events have journals of the default lengths; fewer have shorter ones, so that there are as many."""

QUICK = 200_000

RULES = """
sold[s] = sum(q) <- trade(s, q, _, _).
by_hour[s, w] = sum(q) <- trade(s, q, t, _), w = tumble(t, 1h).
final by_hour at w + 1h.
answered(e, f) <- trade(s, _, t, e), quote(s, _, u, f), u >= t, u <= t + {within}us.
"""


@dataclass
class Batch:
    """Of one transaction: rows of each stream, by column."""

    trade: pa.Table
    quote: pa.Table


@dataclass
class Day:
    """What was so at the end of a day."""

    events: int
    held: int
    pairs: int
    closed: int
    memory: int
    folder: int
    journal: int
    closed_bytes: int
    waited: list[float]
    worked: list[float]
    """Of each commit, in seconds by the clock and of the processor."""
    processor: float


class Feed:
    """Events in the order of their numbers, by transactions; and the sums that they must come to."""

    def __init__(self, n_events: int) -> None:
        self.n_events, self.spacing = n_events, DAYS * DAY // n_events
        self.disorder = min(DISORDER, HOUR // self.spacing)
        self.sums = np.zeros((ITEMS, DAYS * 24 + 1), np.int64)

    @property
    def lateness(self) -> int:
        return self.spacing * self.disorder

    def batches(self) -> Iterator[Batch]:
        random, first = np.random.default_rng(0), 0
        while first < self.n_events:
            size = min(int(random.integers(1000, 10_001)), self.n_events - first)
            numbers = np.arange(first, first + size)
            times = np.maximum(numbers - random.integers(0, self.disorder, size), 0) * self.spacing
            items, pieces = random.integers(0, ITEMS, size), random.integers(1, 10, size)
            is_trade = random.random(size) < 0.8
            np.add.at(self.sums, (items[is_trade], times[is_trade] // HOUR), pieces[is_trade])
            columns = [items, pieces, START + times, numbers]
            yield Batch(*(_table(columns, chosen) for chosen in (is_trade, ~is_trade)))
            first += size


def _table(columns: list[np.ndarray], chosen: np.ndarray) -> pa.Table:
    item, pieces, times, numbers = (column[chosen] for column in columns)
    return pa.table([item, pieces, pa.array(times, pa.timestamp("us")), numbers], names=["s", "q", "t", "e"])


def sizes(folder: Path) -> tuple[int, int, int]:
    """Bytes of all files, of the journal, and of the rows that have closed."""
    everything, journal, closed = 0, 0, 0
    for path in folder.rglob("*"):
        if path.is_file():
            size = path.stat().st_size
            everything += size
            journal += size if path.name.startswith("journal") else 0
            closed += size if "by_hour_final" in path.name else 0
    return everything, journal, closed


def month(n_events: int, folder: Path) -> list[Day]:
    """Raises AssertionError for sums that are not those of numpy."""
    feed, found = Feed(n_events), []
    journal = round((64 << 20) * n_events / WHOLE)
    with Workspace.open(folder, checkpoint_bytes=journal, feed_bytes=journal // 4) as workspace:
        none, late = _table([np.empty(0, np.int64)] * 4, np.empty(0, bool)), f"{feed.lateness}us"
        for name, keep in (("trade", "1d"), ("quote", "1h")):
            workspace.load(name, none, time="t", lateness=late, keep=keep)
        workspace.install(RULES.format(within=feed.spacing * 5 * ITEMS * 5))
        waited: list[float] = []
        worked: list[float] = []
        events, before, started, end = 0, 0, time.process_time(), 0
        for batch in feed.batches():
            begun, at_work = time.perf_counter(), time.process_time()
            with workspace.transaction() as tx:
                tx.insert("trade", batch.trade)
                tx.insert("quote", batch.quote)
            waited.append(time.perf_counter() - begun)
            worked.append(time.process_time() - at_work)
            events += len(batch.trade) + len(batch.quote)
            assert not tx.stats.late
            if events * feed.spacing >= (end + 1) * DAY:
                end += 1
                spent = time.process_time() - started
                found.append(_day(workspace, folder, events, (waited, worked), spent))
                print("  ".join(_row(end, found[-1], events - before)), flush=True)
                before = events
                waited, worked, started = [], [], time.process_time()
        _check(workspace, feed)
    return found


def _day(
    workspace: Workspace, folder: Path, events: int, commits: tuple[list[float], list[float]], spent: float
) -> Day:
    everything, journal, closed = sizes(folder)
    return Day(
        events,
        len(workspace["trade"]) + len(workspace["quote"]),
        len(workspace["answered"]),
        len(workspace["by_hour_final"]),
        resident_bytes(),
        everything,
        journal,
        closed,
        *commits,
        spent,
    )


def _check(workspace: Workspace, feed: Feed) -> None:
    now = pa.scalar(workspace.now, pa.timestamp("us")).value - START
    hours = now // HOUR
    right = {
        (int(s), START + int(w) * HOUR): int(feed.sums[s, w]) for s, w in np.argwhere(feed.sums[:, :hours])
    }
    rows = workspace["by_hour_final"].to_arrow()
    times = rows["w"].cast(pa.int64()).to_pylist()
    told = dict(zip(zip(rows["s"].to_pylist(), times, strict=True), rows["sum"].to_pylist(), strict=True))
    if told != right:
        raise AssertionError(f"{len(told)} sums of hours, not {len(right)}, or others")
    workspace.verify()


HEADS = ["day", "rows held", "pairs", "memory, MB", "folder, MB", "of it journal"]
HEADS += ["commit, ms of processor: median", "99 of 100", "by the clock: median", "99 of 100"]
HEADS += ["events/s", "closed rows", "their MB"]


def _row(number_: int, day: Day, events: int) -> list[str]:
    sizes_ = [f"{size / 1e6:,.0f}" for size in (day.memory, day.folder, day.journal)]
    commits = (day.worked, day.waited)
    times = [number(1000 * float(np.quantile(each, share))) for each in commits for share in (0.5, 0.99)]
    rate = f"{events / day.processor:,.0f}"
    last = [f"{day.closed:,}", f"{day.closed_bytes / 1e6:.1f}"]
    return [str(number_), f"{day.held:,}", f"{day.pairs:,}", *sizes_, *times, rate, *last]


def report(n_events: int) -> str:
    """The page."""
    machine = describe()
    with tempfile.TemporaryDirectory() as place:
        started = time.perf_counter()
        days = month(n_events, Path(place) / "month")
        took = time.perf_counter() - started
    before = [0, *(day.events for day in days)]
    rows = [_row(n + 1, day, day.events - before[n]) for n, day in enumerate(days)]
    return "\n\n".join(
        [
            "# A month in fast motion",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']}."
            f" Load at the start {machine['load']}.",
            f"{n_events:,} events over {DAYS} days of their time, in {took:,.0f} s, in a folder, each"
            " transaction on disk before the next. Rate: of processor time, with what makes the events."
            " Memory: of the process; the last two columns grow by nature: rows that have closed stay.",
            table(HEADS, rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    show(report(given.events or (QUICK if given.quick else EVENTS)), "windows/month.md")


if __name__ == "__main__":
    main()
