"""A few steps that belong together, which Ctrl-C does not tear apart."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let SIGINT wait until the block is through.

    Signals only reach the main thread, so in others there is nothing to do.  The block has to be short.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[Any, ...]] = []
    before = signal.signal(signal.SIGINT, lambda *call: waiting.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting and callable(before):
            before(*waiting[0])
