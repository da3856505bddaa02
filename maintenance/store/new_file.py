"""`NewFile`: a file that is written once, and on disk before anything names it; or it is gone.

    NewFile      under its own name, which is used once: others name it when it is complete
    replacing    under another name first: one step puts it in the place of what was there before

Invariants

1. When a block over either of them has ended well the content is on disk; when an error has ended it the file
   is deleted, as far as that can still be done.
2. Behind :func:`replacing` the name is on disk, too.  That of a new file is when its folder was synced, which
   one call can do for many files (:meth:`~maintenance.store.disk.Disk.sync_folder`).

Cost: a sync for each file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from maintenance.store.disk import Disk


class NewFile:
    """An open file, from its beginning, as Arrow and pickle write to one.  Raises OSError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with NewFile(Disk(), Path(folder) / "rows") as file:
    ...         n = file.write(b"some") + file.write(b"thing")
    ...     (Path(folder) / "rows").read_bytes(), file.nbytes, file.closed
    (b'something', 9, True)
    """

    def __init__(self, disk: Disk, path: Path) -> None:
        self.path = path
        self.nbytes = 0
        self.closed = False
        self._disk = disk
        self._file = disk.create(path)

    def write(self, data: Any) -> int:
        """Append bytes, or what has their memory; all of it."""
        view = memoryview(data).cast("B")
        self._file.write(view, self.nbytes)
        self.nbytes += len(view)
        return len(view)

    def tell(self) -> int:
        return self.nbytes

    def flush(self) -> None:
        """What is written is synced at the end."""

    def close(self) -> None:
        """Wait until the content is on disk; where that fails the file is deleted."""
        if self.closed:
            return
        try:
            self._file.sync()
        except BaseException:
            self.discard()
            raise
        self.closed = True
        self._file.close()

    def discard(self) -> None:
        """Close the file and delete it."""
        if not self.closed:
            self.closed = True
            self._file.close()
        with suppress(OSError):
            self._disk.delete(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()


@contextmanager
def replacing(disk: Disk, part: Path, path: Path) -> Iterator[NewFile]:
    """A new file ``part`` that becomes ``path`` when the block ends well, and is on disk then.

    What stood at ``path`` is there as it was until then.  Raises OSError.
    """
    disk.delete(part)  # of a process that was stopped
    with NewFile(disk, part) as file:
        yield file
    try:
        disk.rename(part, path)
    except BaseException:
        file.discard()
        raise
    disk.sync_folder(path.parent)
