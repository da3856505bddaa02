"""A table of a pipeline's parts that moves on a terminal; elsewhere a line now and then in the log.

Invariant: the table is gone when its block ends, and lines of the log stand above it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lftj.process.progress import no_bars
from lftj.values.shown_text import counted
from maintenance.shell.pipeline_log import Log
from maintenance.shell.pipeline_parts import Part

if TYPE_CHECKING:
    from rich.table import Table

_DRAWN_EVERY, _SAID_EVERY = 0.5, 60.0
"""Seconds."""


@contextmanager
def shown(log: Log, parts: Callable[[], Sequence[Part]]) -> Iterator[Callable[[], None]]:
    """Gives what is to be called often, and draws or says now and then how far the parts are."""
    last = time.monotonic()
    if log.as_json or not sys.stderr.isatty():
        said = 0

        def say() -> None:
            nonlocal last, said
            steps = sum(part.steps for part in parts())
            if time.monotonic() - last > _SAID_EVERY and steps != said:
                last, said = time.monotonic(), steps
                for part in parts():
                    done = f"{counted(part.steps, part.step_name)}, {counted(part.rows, 'row')}"
                    log.say(
                        f"{done}; {part.position}; behind {part.lag}",
                        part.name,
                        steps=part.steps,
                        rows=part.rows,
                        behind_seconds=part.behind_seconds,
                    )

        yield say
        return

    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stderr)
    with no_bars(), Live(_table(parts()), console=console, auto_refresh=False, transient=True) as live:
        before = log.write
        log.write = lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)

        def draw() -> None:
            nonlocal last
            if time.monotonic() - last > _DRAWN_EVERY:
                last = time.monotonic()
                live.update(_table(parts()), refresh=True)

        live.refresh()
        try:
            yield draw
        finally:
            log.write = before


def _table(parts: Sequence[Part]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("", "done", "rows", "at", "behind", "restarts"):
        table.add_column(title, justify="left" if title in ("", "at") else "right")
    for part in parts:
        behind = part.lag if part.error is None else f"away {part.away_seconds:.0f} s"
        cells = (part.name, f"{part.steps:,}", f"{part.rows:,}", part.position, behind, f"{part.restarts:,}")
        table.add_row(*map(Text, cells))
    return table
