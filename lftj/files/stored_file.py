"""`StoredFile`: one file's bytes, on disk, in memory or far away, to be opened as often as wanted.

Invariants

1. Opening again begins at the first byte again, so that a reader that failed
   can look for the place.
2. Compression shows in the first bytes, never in the name.

Of a local file that is not taken from beginning to end the system maps what is
read; a pipe is read into memory once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import cached_property
from pathlib import Path, PurePosixPath

import pyarrow as pa

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"(\xb5/\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_BZIP2_BLOCK = b"1AY&SY"
_PACKED_SUFFIXES = (".gz", ".bz2", ".zst", ".lz4")


class StoredFile:
    """A file that can be opened.

    Attributes:
        label: The file as messages name it.
        by_content: Whether its name tells nothing, so that text of an unknown suffix is looked into.
    """

    def __init__(
        self,
        label: str,
        open_file: Callable[[], pa.NativeFile],
        name: str | None = None,
        by_content: bool = False,
        map_file: Callable[[], pa.NativeFile] | None = None,
    ) -> None:
        """``open_file``: gives the whole file, which can be sought in; ``name``: for the suffix.

        ``map_file``: gives the same without reading it.
        """
        self.by_content = by_content
        self._map = map_file
        self.label = label
        self.name = PurePosixPath(label).name if name is None else name
        self._open = open_file

    @classmethod
    def at(cls, path: Path) -> StoredFile:
        """A file of this machine.  Raises OSError."""
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return cls.of_bytes(str(path), path.read_bytes(), by_content=True)
        if not status.st_size:
            return cls.of_bytes(str(path), b"")  # nothing can be mapped
        with path.open("rb"):
            pass  # what forbids it says so now
        place = os.fspath(path)
        return cls(place, lambda: pa.OSFile(place), path.name, map_file=lambda: pa.memory_map(place))

    @classmethod
    def of_bytes(cls, label: str, content: bytes | pa.Buffer, by_content: bool = False) -> StoredFile:
        return cls(label, lambda: pa.BufferReader(content), by_content=by_content)

    @cached_property
    def suffix(self) -> str:
        """Of its name, as :func:`suffix_of` says."""
        return suffix_of(self.name)

    @cached_property
    def codec(self) -> str | None:
        """What the file is compressed with, as pyarrow calls it."""
        with self._open() as file:
            start = file.read(10)
        if start[:3] == b"BZh" and start[4:] == _BZIP2_BLOCK:
            return "bz2"
        return next((codec for magic, codec in _MAGIC.items() if start.startswith(magic)), None)

    @cached_property
    def size(self) -> int:
        """In bytes, as it is stored."""
        with self._open() as file:
            return file.size()

    def head(self, n_bytes: int) -> bytes:
        """The first bytes of the content."""
        raw, stream = self.streams()
        with raw, stream:
            return stream.read(n_bytes)

    def streams(self) -> tuple[pa.NativeFile, pa.NativeFile]:
        """The stored bytes, whose position tells how far one is, and over them the content."""
        raw = self._open()
        return raw, raw if self.codec is None else pa.CompressedInputStream(raw, self.codec)

    def open(self) -> pa.NativeFile:
        """The content, which can be sought in; what is compressed is unpacked in memory."""
        raw, stream = self.streams()
        if stream is raw:
            if self._map is None:
                return raw
            raw.close()
            return self._map()
        with raw, stream:
            return pa.BufferReader(stream.read())


def suffix_of(name: str) -> str:
    """In lower case, without that of a compression.

    >>> suffix_of("edges.TSV.gz")
    '.tsv'
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    if suffixes and suffixes[-1] in _PACKED_SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
