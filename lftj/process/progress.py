"""A progress bar for long calls, when someone is there to see it: on stderr, or below a notebook's cell.

Invariants

1. Nothing is drawn, and rich is not imported, unless stderr is a terminal and the block takes longer than
   ``SHOWN_AFTER_SECONDS``, or the caller asked for it and a Jupyter kernel runs.
2. At most one bar is drawn at a time: a call made while another's bar stands
   (a load inside a query, or two streams read in turns) runs without one.
3. The bar is gone when its block ends, however it ends.

Cost: a call that nobody sees looks whether stderr is a terminal.  On one, a thread of all bars looks
``LOOKED_AT_SECONDS`` apart whether one is due, and ends a second behind the last, so a call takes some
microseconds more.  ``advance`` takes as much where the bar is drawn: call it per batch, never per row.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOWN_AFTER_SECONDS = 2.0
"""What takes less draws nothing on a terminal."""

LOOKED_AT_SECONDS = 0.1
"""So often the thread looks at the bar that stands."""

IDLE_SECONDS = 1.0
"""The thread ends when no bar has stood for so long."""

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


def is_seen(wanted: bool | None) -> bool:
    """Whether a bar can be drawn.

    ``wanted``: the ``progress=`` of a call.  None: on a terminal, for calls of the main thread, whose user
    sits there; True: below a notebook's cell, too; False: nowhere.
    """
    if wanted is False:
        return False
    if sys.stderr is not None and sys.stderr.isatty():
        return wanted or threading.current_thread() is threading.main_thread()
    return bool(wanted) and _in_notebook()


@contextmanager
def bar(
    label: str, wanted: bool | None = True, told: Callable[[], tuple[float | None, str]] | None = None
) -> Iterator[Advance]:
    """Show a bar named ``label``, and how long it goes on, for the length of the block.

    Args:
        label: What is going on, as a participle: ``"joining"``.
        wanted: As of `is_seen`.
        told: Says on a terminal what ``advance`` would, whenever it is asked, from another thread.

    Yields:
        ``advance(fraction)``, which moves the bar to that fraction, 0 to 1, of the whole; where nobody knows
        how much there is to do, ``advance(None, "round 3")`` says what is done.

    >>> with bar("joining", wanted=False) as advance:
    ...     for step in range(4):
    ...         advance((step + 1) / 4)
    """
    if not is_seen(wanted) or not _drawing.acquire(blocking=False):
        yield _ignore
        return
    try:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        with _on_terminal(label, told) if terminal else _below_cell(label) as advance:
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


class _Standing:
    """A bar that comes when its block has taken its time; another thread draws it, whatever this one does."""

    def __init__(self, label: str, told: Callable[[], tuple[float | None, str]] | None) -> None:
        self._label, self._told = label, told
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._place: tuple[float | None, str] = (0.0, "")
        self._drawn: Progress | None = None
        self._move: Advance | None = None
        self._is_over = False

    def advance(self, fraction: float | None, note: str = "") -> None:
        with self._lock:
            self._place = fraction, note
            if self._move is not None:
                self._move(fraction, note)

    def look(self) -> None:
        """Draw it if it is due, and move it to where ``told`` says."""
        if time.monotonic() - self._begun < SHOWN_AFTER_SECONDS:
            return
        if self._told is not None:
            self._place = self._told()
        if self._drawn is None:
            progress, task = _drawing_of(self._label)
            progress.tasks[0].start_time = self._begun
            with self._lock:
                if not self._is_over:
                    self._drawn, self._move = progress, _mover(progress, task, self._label)
                    self._move(*self._place)
                    progress.start()
        elif self._told is not None:
            self.advance(*self._place)

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            if self._drawn is not None:
                self._drawn.stop()


_standing: _Standing | None = None
_looking: threading.Thread | None = None
_changing = threading.Lock()


def _look() -> None:
    """Look at the bar that stands, until none has for a while."""
    global _looking
    last = time.monotonic()
    while True:
        time.sleep(LOOKED_AT_SECONDS)
        standing = _standing
        if standing is not None:
            standing.look()
            last = time.monotonic()
        elif time.monotonic() - last > IDLE_SECONDS:
            with _changing:
                if _standing is None:
                    _looking = None
                    return


@contextmanager
def _on_terminal(label: str, told: Callable[[], tuple[float | None, str]] | None) -> Iterator[Advance]:
    global _standing, _looking
    standing = _Standing(label, told)
    try:
        with _changing:
            _standing = standing
            if _looking is None or not _looking.is_alive():  # a forked process has none
                _looking = threading.Thread(target=_look, name="lftj-progress", daemon=True)
                _looking.start()
        yield standing.advance
    finally:
        _standing = None
        standing.end()


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
