"""`Disk`: the few steps by which files of this machine change that are to survive it.

All of them stand here, so that tests can put a disk in place of this one that fails at a step, or that
forgets what was not synced.

Invariants

1. What a step did is certain to be there after a crash of the machine only when it was synced: what a file
   holds by :meth:`DiskFile.sync`, names by :meth:`Disk.sync_folder`.
2. Steps raise OSError; then the file may hold any part of what was being written.

Reading goes by no step: it changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path


class DiskFile:
    """A file that is open for writing, at places that the caller gives."""

    def __init__(self, path: Path, flags: int) -> None:
        self.path = path
        self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)

    def write(self, data: bytes | memoryview, at: int) -> None:
        """Write all of ``data``, bytes, from byte ``at`` on."""
        written = os.pwrite(self._descriptor, data, at)
        if written < len(data):
            rest = memoryview(data)
            while written < len(rest):
                written += os.pwrite(self._descriptor, rest[written:], at + written)

    def sync(self) -> None:
        """Wait until the content, and the length, are on disk."""
        _sync_content(self._descriptor)

    def truncate(self, length: int) -> None:
        os.ftruncate(self._descriptor, length)

    def close(self) -> None:
        os.close(self._descriptor)


# macOS has no fdatasync; there fsync is what there is.
_sync_content = getattr(os, "fdatasync", os.fsync)
_sync_names = os.fsync


class Disk:
    """The disk of this machine.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Disk().create(Path(folder) / "note")
    ...     file.write(b"kept", 0)
    ...     file.sync()
    ...     file.close()
    ...     (Path(folder) / "note").read_bytes()
    b'kept'
    """

    def create(self, path: Path) -> DiskFile:
        """A new file.  Raises FileExistsError."""
        return DiskFile(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, path: Path) -> DiskFile:
        """A file that is there.  Raises FileNotFoundError."""
        return DiskFile(path, os.O_RDWR)

    def rename(self, path: Path, new: Path) -> None:
        """Give a file another name; one that has it goes."""
        os.rename(path, new)

    def link(self, path: Path, new: Path) -> None:
        """Give a file one name more.  Raises FileExistsError where something has it."""
        os.link(path, new)

    def delete(self, path: Path) -> bool:
        """Delete a file; False if there is none."""
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those above it, where there is none."""
        path.mkdir(parents=True, exist_ok=True)

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in a folder are on disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _sync_names(descriptor)
        finally:
            os.close(descriptor)
