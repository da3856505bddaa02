"""`Tail`: the end of a journal that another process writes, for reading on from where it was read.

Invariant: what is read follows what was read before, by number and chain; whatever else is found there, for
the one who writes has deleted what was to be read, or has taken it back, or for it was damaged, is said by an
error.  A record that is not whole and has none behind it is being written.

Cost: one look at the folder, and of what came one pass.
"""

from __future__ import annotations

import os
from copy import copy

import pyarrow as pa

from lftj.errors import CursorError, DamagedFolderError, DurabilityError
from maintenance.durable import journal
from maintenance.durable.entries import Entry, entry_of
from maintenance.durable.reading import FoundFolder
from maintenance.durable.records import (
    FILE_HEADER_BYTES,
    file_header,
    headers_behind,
    records_from,
)


class Tail:
    """Behind what was found in a folder."""

    def __init__(self, found: FoundFolder) -> None:
        path, read = found.files[-1]
        self.folder = found.folder
        self._path, self._header = path, read.header
        self._at = read.end
        self._nbytes = read.nbytes  # when the folder was opened
        self.number, self._chain = found.number, read.chain

    def read(self) -> tuple[list[tuple[int, Entry]], Tail]:
        """The changes behind this, with their numbers, and the end behind them; this stays what it is.

        Raises CursorError where they were deleted by now, DurabilityError where some were taken back that had
        been read, or can't be read, and DamagedFolderError.
        """
        entries: list[tuple[int, Entry]] = []
        end = copy(self)
        try:
            while True:
                try:
                    entries += end._appended()
                except FileNotFoundError:  # with all that is here
                    if not end._goes_on():
                        raise
                else:
                    if not end._goes_on():
                        break
        except FileNotFoundError:
            raise CursorError(
                f"{self.folder}: the changes behind version {self.number} are not kept any more: open the"
                " folder again",
                self.number,
            ) from None
        except OSError as error:
            raise DurabilityError(f"{self._path}: can't be read: {error.strerror or error}") from error
        return entries, end

    def _appended(self) -> list[tuple[int, Entry]]:
        """What was appended to the file."""
        with self._path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == self._at:
                return []
            file.seek(self._at)
            data = file.read()
        records = records_from(data, 0, self._header, self.number + 1, self._chain)
        if size < self._at or (not records and self._is_other(data)):
            raise DurabilityError(
                f"{self._path}: change {self.number} was taken back, for it could not be brought to the disk:"
                " open the folder again"
            )
        if not records:
            self._refuse_damage(data)
        entries = []
        for record in records:
            try:
                entries.append((record.number, entry_of(record.content)))
            except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
                raise DamagedFolderError(
                    f"{self._path}: change {record.number} can't be read: {error}"
                ) from error
        if records:
            self._at += records[-1].end
            self.number, self._chain = records[-1].number, records[-1].chain
        return entries

    def _refuse_damage(self, data: bytes) -> None:
        """Raise DamagedFolderError where a record is not whole, and has others behind it.

        But for what was found so when the folder was opened, and is not known to have been on disk: of that a
        warning told.
        """
        for later, number, known in headers_behind(data, 1, self._header):
            if known > self._at or self._at + later >= self._nbytes:
                raise DamagedFolderError(
                    f"{self._path}: damaged at byte {self._at}, where change {self.number + 1} begins: change"
                    f" {number} follows, from byte {self._at + later} on; put back a copy of the folder"
                )

    def _is_other(self, data: bytes) -> bool:
        """Whether a whole record stands there that does not follow."""
        return bool(records_from(data, 0, self._header, None, None))

    def _goes_on(self) -> bool:
        """Whether a file follows, to which it goes over.

        One without changes may have been begun and not gone on with, as long as there is the one before.
        """
        path = self.folder / journal.FILES.name(self.number + 1)
        if path == self._path or not path.exists():
            return False
        with path.open("rb") as file:
            header = file_header(file.read(FILE_HEADER_BYTES), path)
            has_more = os.fstat(file.fileno()).st_size > FILE_HEADER_BYTES
        if header is None or (not has_more and self._path.exists()):
            return False
        if (header.first, header.chain) != (self.number + 1, self._chain):
            raise DamagedFolderError(f"{path}: does not follow {self._path.name}")
        self._path, self._header, self._at, self._nbytes = path, header, FILE_HEADER_BYTES, 0
        return True
