"""A progress bar on stderr for long calls, when someone is there to see it.

Invariants

1. Nothing is drawn, and rich is not imported, unless the caller asked for it
   and stderr is a terminal.
2. At most one bar is drawn at a time: a call made while another's bar stands
   (a load inside a query, or two streams read in turns) runs without one.
3. The bar is gone when its block ends, however it ends.

Cost: a call without a bar costs an attribute test; ``advance`` with a bar costs
some microseconds, so callers advance per batch, never per row.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_drawing = threading.Lock()


def _ignore(fraction: float) -> None:
    """``advance`` of a bar that is not drawn."""


@contextmanager
def bar(label: str, enabled: bool = True) -> Iterator[Callable[[float], None]]:
    """Show a bar named ``label`` for the length of the block.

    Args:
        label: What is going on, as a participle: ``"joining"``.
        enabled: What the user said, such as the ``progress=`` of a call.

    Yields:
        ``advance(fraction)``, which moves the bar to that fraction, 0 to 1, of the whole.

    >>> with bar("joining", enabled=False) as advance:
    ...     for step in range(4):
    ...         advance((step + 1) / 4)
    """
    stderr = sys.stderr
    if not enabled or stderr is None or not stderr.isatty() or not _drawing.acquire(blocking=False):
        yield _ignore
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        display = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=Console(file=stderr),
            transient=True,
        )
        with display:
            task = display.add_task(label, total=1.0)
            yield lambda fraction: display.update(task, completed=fraction)
    finally:
        _drawing.release()
