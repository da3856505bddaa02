"""Who may write in a folder: one process at a time.

The lock is the system's, on a file in the folder: it goes with the process that holds it, however that ends.
Invariant: two workspaces of one process are two holders.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from lftj.errors import FolderInUseError

NAME = "lock"


class FolderLock:
    """Held from when it is made until :meth:`release`.  Raises FolderInUseError, and OSError."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip()
            os.close(self._file)
            by = f" by {holder}" if holder else ""
            raise FolderInUseError(
                f"{folder}: the workspace is open already{by}: close it there,"
                " or open it here with read_only=True"
            ) from None
        except BaseException:
            os.close(self._file)
            raise
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
