"""Records: how changes stand in a journal's file, and what is read of a file that a crash may have cut.

    file     header  record  record ...
    header   magic, format, number of the first record, chain before it, salt, checksum
    record   magic, length, number, synced, chain before it, checksum of content, checksum of this; content

Numbers are little-endian.  A record's *chain* is the checksum of its header, in which the one before it
stands: so it says what all records before it were.  *synced* is the place up to which the file was known to
be on disk when the record was written.

Invariants

1. What is read is records that are whole and follow each other; what comes behind them is a *tail*.
2. A tail is what a crash may have left only if nothing says that it had been on disk: a later record, by
   *synced*, would.  Else the file is damaged, and DamagedFolderError names the place.
3. No content looks like a record: a file's salt goes into the checksums of its headers.

So by a file alone all damage is told from a crash but that to the last records that were written, those
behind which none was written that knew them on disk: this looks as if the machine had stopped while they were
written.  What else the folder says of them: :mod:`maintenance.durable.reading`.

Cost: one pass over the file; where there is a tail, another over that.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lftj.errors import DamagedFolderError, DurabilityError

FORMAT = 9
"""Of a whole folder; goes up when something in it changes its meaning.

1: a manifest does not say when programs were installed, nor are journals kept behind a checkpoint.
2: no relation keeps NULL.
3: no relation is a bag.
4: a manifest does not say where the journal ended, and there may be images of changes that never were on
disk.
5: all heads of a program are wanted.
6: no relation has a key.
7: no relation is a stream."""

_FILE_MAGIC = b"LFTJJRNL"
_FILE_HEADER = struct.Struct("<8sIQIII")
_MAGIC = b"\xa7lj\n"
_HEADER = struct.Struct("<4sQQQIII")
_FIELDS = struct.Struct("<4sQQQII")  # those before its checksum

FILE_HEADER_BYTES = _FILE_HEADER.size
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True)
class FileHeader:
    """``first``: the number of the first record; ``chain``: before it."""

    first: int
    chain: int
    salt: int

    def to_bytes(self) -> bytes:
        fields = _FILE_HEADER.pack(_FILE_MAGIC, FORMAT, self.first, self.chain, self.salt, 0)[:-4]
        return fields + struct.pack("<I", zlib.crc32(fields))


@dataclass(frozen=True)
class JournalRecord:
    """A record of a file: its number, its content, its chain, and the place at which it ends."""

    number: int
    content: memoryview
    chain: int
    end: int


def record_bytes(
    header: FileHeader, number: int, synced: int, chain: int, content: bytes | bytearray
) -> tuple[bytes, int]:
    """A record as it stands in a file with this header, and its chain.

    >>> header = FileHeader(first=1, chain=0, salt=77)
    >>> data, chain = record_bytes(header, 1, FILE_HEADER_BYTES, header.chain, b"content")
    >>> [(r.number, bytes(r.content)) for r in read_records(header.to_bytes() + data, Path("j")).records]
    [(1, b'content')]
    """
    fields = _FIELDS.pack(_MAGIC, len(content), number, synced, chain, zlib.crc32(content))
    own = zlib.crc32(fields, header.salt)
    return b"".join((fields, own.to_bytes(4, "little"), content)), own


@dataclass(frozen=True)
class ReadFile:
    """A file.

    ``end``: where its last whole record ends; ``nbytes``: all that it has.  ``seen``: the highest number of a
    change of which the tail has the header, 0 where it has none.  ``damage``: what says that the tail had
    been whole, and so is not what a crash left; empty where nothing does.
    """

    header: FileHeader
    records: list[JournalRecord]
    end: int
    nbytes: int
    seen: int = 0
    damage: str = ""

    @property
    def is_torn(self) -> bool:
        """Whether there is a tail."""
        return self.end < self.nbytes

    @property
    def next(self) -> int:
        """The number of the record that comes next."""
        return self.header.first + len(self.records)

    @property
    def chain(self) -> int:
        return self.records[-1].chain if self.records else self.header.chain


@dataclass(frozen=True)
class End:
    """Where a journal ended, all of it on disk: the last change, its chain, the bytes of the last file."""

    number: int
    chain: int
    nbytes: int


def read_records(data: bytes, path: Path) -> ReadFile | None:
    """The records of a file, ``path`` for messages; None where it ends within its header.

    Raises DamagedFolderError, and DurabilityError where a newer version wrote it.
    """
    read = read_beginning(data, path)
    if read is not None and read.damage:
        raise DamagedFolderError(f"{read.damage}; put back a copy of the folder")
    return read


def read_beginning(data: bytes, path: Path) -> ReadFile | None:
    """The same, also of a file whose records are damaged: those before the damage."""
    header = file_header(data, path)
    if header is None:
        return None
    records = records_from(data, FILE_HEADER_BYTES, header, header.first, header.chain)
    number, at = header.first + len(records), records[-1].end if records else FILE_HEADER_BYTES
    seen, damage = 0, ""
    for later, has, known in headers_behind(data, at, header):
        seen = max(seen, has)
        if known > at and not damage:
            damage = (
                f"{path}: damaged at byte {at}, where change {number} begins: there are later ones from byte"
                f" {later} on, so it had been written whole"
            )
    return ReadFile(header, records, at, len(data), seen, damage)


def records_from(
    data: bytes, at: int, header: FileHeader, number: int | None, chain: int | None
) -> list[JournalRecord]:
    """The whole records that follow each other from a place on.

    ``number`` and ``chain``: what the first has, and before it; None for any.
    """
    view = memoryview(data)
    records: list[JournalRecord] = []
    while (read := _record_at(view, at, header)) is not None:
        record, before, _ = read
        if number is not None and (record.number, before) != (number, chain):
            break
        records.append(record)
        number, chain, at = record.number + 1, record.chain, record.end
    return records


def file_header(data: bytes, path: Path) -> FileHeader | None:
    """The header of a file, ``path`` for messages; None where it ends within it.  Raises as read_records."""
    if len(data) < FILE_HEADER_BYTES:
        return None
    magic, format_, first, chain, salt, checksum = _FILE_HEADER.unpack_from(data)
    if magic == _FILE_MAGIC and format_ > FORMAT:
        raise newer_format(path, format_)
    if magic != _FILE_MAGIC or checksum != zlib.crc32(data[: FILE_HEADER_BYTES - 4]):
        if len(data) == FILE_HEADER_BYTES:
            return None  # a part of it was on disk: records are written when all of it is
        raise DamagedFolderError(f"{path}: damaged at byte 0: no journal begins so")
    return FileHeader(first, chain, salt)


def newer_format(path: Path, format_: int) -> DurabilityError:
    """The error about a file that a newer version wrote."""
    return DurabilityError(
        f"{path}: its format is {format_}, and this version of lftj reads formats up to {FORMAT}:"
        " open the folder with the version that wrote it"
    )


def _record_at(view: memoryview, at: int, header: FileHeader) -> tuple[JournalRecord, int, int] | None:
    """The whole record at a place, the chain before it, and what it knew to be on disk."""
    fields = _header_at(view, at, header)
    if fields is None:
        return None
    length, number, synced, before, checksum, own = fields
    end = at + HEADER_BYTES + length
    if end > len(view):
        return None
    content = view[at + HEADER_BYTES : end]
    if zlib.crc32(content) != checksum:
        return None
    return JournalRecord(number, content, own, end), before, synced


def _header_at(view: memoryview, at: int, header: FileHeader) -> tuple[int, int, int, int, int, int] | None:
    if at + HEADER_BYTES > len(view):
        return None
    magic, length, number, synced, before, checksum, own = _HEADER.unpack_from(view, at)
    if magic != _MAGIC or own != zlib.crc32(view[at : at + HEADER_BYTES - 4], header.salt):
        return None
    return length, number, synced, before, checksum, own


def headers_behind(data: bytes, start: int, header: FileHeader) -> Iterator[tuple[int, int, int]]:
    """Where headers of records stand from a place on, of which change, and what each knew to be on disk."""
    view = memoryview(data)
    at = data.find(_MAGIC, start)
    while at >= 0:
        fields = _header_at(view, at, header)
        if fields is not None:
            yield at, fields[1], fields[2]
        at = data.find(_MAGIC, at + 1)
