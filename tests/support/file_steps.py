"""Writing a file, stopped at any of its steps."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock


@contextmanager
def at_step(number: int, act: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """``act`` in place of, or halfway through, one of the steps of writing a file; gives how many there were.

    Steps are writes, the flush before the file is on disk, waiting for the disk, and the renaming.
    """
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return steps == number + 1

    opened = Path.open

    class Failing(io.FileIO):
        def write(self, data: Any) -> int:
            if step():
                super().write(memoryview(data).cast("B")[: len(data) // 2])
                act()
            return super().write(data)

    def open_(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        return Failing(path, "xb") if mode == "xb" else opened(path, mode, *arguments, **options)

    def acting(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any) -> Any:
            if step():
                act()
            return call(*arguments)

        return instead

    with (
        mock.patch.object(Path, "open", open_),
        mock.patch.object(os, "fsync", acting(os.fsync)),
        mock.patch.object(Path, "replace", acting(Path.replace)),
    ):
        yield lambda: steps
