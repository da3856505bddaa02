"""The time that a thread has spent on compiling: what it does is told without it.

How long a commit takes is a figure of its rules and rows; a kernel is compiled once per installation.
"""

from __future__ import annotations

import threading
import time

from numba.core import event


class _Compilations(event.Listener):
    """Of this thread; one compilation may be within another."""

    def __init__(self) -> None:
        self.of = threading.local()

    def on_start(self, happened: event.Event) -> None:
        self.of.depth = getattr(self.of, "depth", 0) + 1
        if self.of.depth == 1:
            self.of.began = time.perf_counter()

    def on_end(self, happened: event.Event) -> None:
        self.of.depth -= 1
        if self.of.depth == 0:
            self.of.seconds = getattr(self.of, "seconds", 0.0) + time.perf_counter() - self.of.began


_compilations = _Compilations()
event.register("numba:compile", _compilations)


def seconds_without_compiling() -> float:
    """A clock like :func:`time.perf_counter` that stands still while this thread compiles."""
    return time.perf_counter() - getattr(_compilations.of, "seconds", 0.0)
