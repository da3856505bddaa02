"""A progress bar for long calls, when someone is there to see it: on stderr, or below a notebook's cell.

Invariants

1. Nothing is drawn, and rich is not imported, unless the caller asked for it
   and stderr is a terminal or a Jupyter kernel runs; on a terminal, unless the
   block takes longer than ``SHOWN_AFTER_SECONDS``.
2. At most one bar is drawn at a time: a call made while another's bar stands
   (a load inside a query, or two streams read in turns) runs without one.
3. The bar is gone when its block ends, however it ends.

Cost: a call without a bar costs an attribute test; one that may get a bar starts
a thread, which waits; ``advance`` with a bar costs some microseconds, so callers
advance per batch, never per row.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOWN_AFTER_SECONDS = 2.0
"""What takes less draws nothing on a terminal."""

REDRAWN_SECONDS = 0.1
"""A notebook's bar is drawn anew at most so often."""

_drawing = threading.Lock()


class Advance(Protocol):
    """Moves a bar."""

    def __call__(self, fraction: float | None, note: str = "") -> None:
        """Move it to a fraction, 0 to 1, of the whole, None where that is not known.

        ``note``: what is being done, shown behind the bar's label until the next call.
        """


def _ignore(fraction: float | None, note: str = "") -> None:
    """``advance`` of a bar that is not drawn."""


@contextmanager
def bar(label: str, enabled: bool = True) -> Iterator[Advance]:
    """Show a bar named ``label``, and how long it goes on, for the length of the block.

    Args:
        label: What is going on, as a participle: ``"joining"``.
        enabled: What the user said, such as the ``progress=`` of a call.

    Yields:
        ``advance(fraction)``, which moves the bar to that fraction, 0 to 1, of the whole; where nobody knows
        how much there is to do, ``advance(None, "round 3")`` says what is done.

    >>> with bar("joining", enabled=False) as advance:
    ...     for step in range(4):
    ...         advance((step + 1) / 4)
    """
    notebook = enabled and _in_notebook()
    terminal = enabled and not notebook and sys.stderr is not None and sys.stderr.isatty()
    if not (notebook or terminal) or not _drawing.acquire(blocking=False):
        yield _ignore
        return
    try:
        with _below_cell(label) if notebook else _on_terminal(label) as advance:
            yield advance
    finally:
        _drawing.release()


@contextmanager
def no_bars() -> Iterator[None]:
    """No bar is drawn during the block, whose own picture stands there."""
    with _drawing:
        yield


def _drawing_of(label: str) -> tuple[Progress, TaskID]:
    """A bar that is not shown yet: what is done, how long it has taken, and how long the rest will."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(file=sys.stderr),
        transient=True,
    )
    return progress, progress.add_task(label, total=1.0)


def _mover(progress: Progress, task: TaskID, label: str) -> Advance:
    def move(fraction: float | None, note: str = "") -> None:
        described = f"{label}, {note}" if note else label
        total = None if fraction is None else 1.0
        progress.update(task, description=described, total=total, completed=fraction or 0.0)

    return move


@contextmanager
def _on_terminal(label: str) -> Iterator[Advance]:
    """A bar that comes when the block has taken its time: a thread draws it then, whatever this one does."""
    begun = time.monotonic()
    lock = threading.Lock()
    place: tuple[float | None, str] = (0.0, "")
    drawn: Progress | None = None
    move: Advance | None = None
    is_over = False

    def show() -> None:
        nonlocal drawn, move
        progress, task = _drawing_of(label)
        progress.tasks[0].start_time = begun
        with lock:
            if not is_over:
                drawn, move = progress, _mover(progress, task, label)
                move(*place)
                progress.start()

    def advance(fraction: float | None, note: str = "") -> None:
        nonlocal place
        with lock:
            place = fraction, note
            if move is not None:
                move(fraction, note)

    waiting = threading.Timer(SHOWN_AFTER_SECONDS, show)
    waiting.daemon = True
    waiting.start()
    try:
        yield advance
    finally:
        waiting.cancel()
        with lock:
            is_over = True
            if drawn is not None:
                drawn.stop()


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this: its stderr is no terminal, yet someone looks."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


@contextmanager
def _below_cell(label: str) -> Iterator[Advance]:
    """Show a bar below the running cell for the length of the block.

    rich draws it and IPython shows it; rich by itself would need the package ipywidgets and warn without.
    """
    from IPython.display import display

    progress, task = _drawing_of(label)
    move = _mover(progress, task, label)
    shown = display(progress, display_id=True)
    drawn = time.monotonic()

    def advance(fraction: float | None, note: str = "") -> None:
        nonlocal drawn
        move(fraction, note)
        if time.monotonic() - drawn > REDRAWN_SECONDS:
            drawn = time.monotonic()
            shown.update(progress)

    try:
        yield advance
    finally:
        shown.update({"text/plain": ""}, raw=True)
