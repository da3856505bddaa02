"""Bytes that come over a pipe, or from a terminal: standard input (``-``), named pipes, ``<(command)``."""

from __future__ import annotations

import io
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

STDIN = "-"

READ_BYTES = 1 << 20
"""Read at a time, at most."""

POLL_SECONDS = 0.1
"""While nothing comes, an interruption is looked for so often."""


def is_feed(path: str) -> bool:
    """Whether what stands at the path can be read once only, as it comes."""
    place = Path(path)
    return path == STDIN or (place.exists() and not place.is_file() and not place.is_dir())


def feed_name(path: str) -> str:
    """The feed as messages name it."""
    return "standard input" if path == STDIN else path


def _open(path: str) -> IO[bytes]:
    if path != STDIN:
        return open(path, "rb", buffering=0)
    if sys.stdin is None:
        raise OSError("it is closed")
    return sys.stdin.buffer


class NamedBytes(io.BytesIO):
    """All of a feed, as a file object whose ``name`` is the feed's."""

    def __init__(self, path: str) -> None:
        """Read a feed to its end.  Raises OSError."""
        with _open(path) as file:
            super().__init__(file.read())
        self.name = feed_name(path)


class Incoming(io.RawIOBase):
    """A feed's bytes, given out as they come.

    Attributes:
        interrupted: Asked while nothing comes, and at the end; when it holds, the reading ends.
        stopped: Whether it ended so: what came last may then be a part of more.
    """

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self.interrupted: Callable[[], bool] = lambda: False
        self.stopped = False
        self._ahead = b""
        self._file: Any = _open(path)
        self._ours = path != STDIN

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if self._ours and not self.closed:
            self._file.close()
        super().close()

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end, without taking them."""
        while len(self._ahead) < size and (data := self._next()):
            self._ahead += data
        return self._ahead[:size]

    def some(self) -> bytes:
        """What has come, or when nothing has, what comes next; empty at the end."""
        data, self._ahead = self._ahead or self._next(), b""
        return data

    def read(self, size: int = -1) -> bytes:
        """``size`` bytes, fewer only at the end; all that come when it is negative."""
        parts: list[bytes] = []
        missing = size
        while missing and (data := self.some()):
            if size >= 0:
                data, self._ahead = data[:missing], data[missing:]
                missing -= len(data)
            parts.append(data)
        return b"".join(parts)

    def _next(self) -> bytes:
        while not self._has_come():
            if self.interrupted():
                self.stopped = True
                return b""
        data: bytes = getattr(self._file, "read1", self._file.read)(READ_BYTES)
        if not data and self.interrupted():
            self.stopped = True  # the writer was interrupted too, perhaps amid a row
        return data

    def _has_come(self) -> bool:
        try:
            return bool(select.select([self._file], [], [], POLL_SECONDS)[0])
        except (OSError, ValueError):  # no file of the system: it never waits
            return True
