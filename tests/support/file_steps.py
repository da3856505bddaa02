"""Writing a file, stopped at any of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from maintenance.store.disk import Disk, DiskFile


@contextmanager
def at_step(number: int, act: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """``act`` in place of, or halfway through, one of the steps of writing a file; gives how many there were.

    Steps are making the file, writes, waiting for the disk, and the renaming.
    """
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return steps == number + 1

    write_all = DiskFile.write

    def write(file: DiskFile, data: bytes | memoryview, at: int) -> None:
        if step():
            write_all(file, memoryview(data)[: len(data) // 2], at)
            act()
        write_all(file, data, at)

    def acting(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any) -> Any:
            if step():
                act()
            return call(*arguments)

        return instead

    with (
        mock.patch.object(DiskFile, "write", write),
        mock.patch.object(DiskFile, "sync", acting(DiskFile.sync)),
        mock.patch.object(Disk, "create", acting(Disk.create)),
        mock.patch.object(Disk, "rename", acting(Disk.rename)),
        mock.patch.object(Disk, "sync_folder", acting(Disk.sync_folder)),
    ):
        yield lambda: steps
