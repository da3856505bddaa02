"""`Journal`: changes are appended to a file, and wait there until they are on disk.

    append  ->  (others append)  ->  wait  ->  one of those who wait syncs for all of them

The journal is a row of files, each named after its first record; a checkpoint begins a new one, and the old
ones go when it is complete.

Invariants

1. :meth:`Journal.append` has appended a record when ``last`` is its mark, and not before: one that raises, or
   is interrupted, leaves the journal as it was, and the next one writes over what it left.
2. What :meth:`Journal.wait` returned for is on disk.
3. A sync that failed is never tried again: the system may have thrown away what it could not write, and
   say of the next sync that all is well.  The journal has *failed* then; it takes nothing any more, and what
   was not on disk is cut off, as far as that can still be done.
4. A file begins when all before it is on disk: only the last one can have a tail.

Cost: one write for each record, and where somebody waits at most one sync; threads that wait at the same
time share one.

Why a file of its own and not SQLite (WAL, synchronous=FULL), which does the same with more care for odd file
systems: a commit of one row takes 0.20 ms against 0.30, one of 1,000 rows 0.25 against 0.38 (medians of
seven rounds on ext4, spreads of a factor of two and more), and leaves 617 bytes against 5,726, for SQLite
writes pages; its log is folded into the database by a second write of all of it, where here a checkpoint
begins another file.  And its database has no checksums: they would be ours in either case.
``python -m bench.maintenance.journals`` measures it.
"""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import suppress
from pathlib import Path

from lftj.errors import ClosedError, DurabilityError
from maintenance.durable.records import FILE_HEADER_BYTES, End, FileHeader, ReadFile, record_bytes
from maintenance.store.disk import Disk, DiskFile
from maintenance.store.fault_points import reached
from maintenance.store.numbered import Numbered

_log = logging.getLogger(__name__)

FILES = Numbered("journal-", 20)
"""Names of the files, by the number of the first record."""


class Journal:
    """The end of a journal, for appending."""

    def __init__(
        self, disk: Disk, path: Path, file: DiskFile, header: FileHeader, read: ReadFile | None
    ) -> None:
        """Use :meth:`begun` and :meth:`continued`."""
        self._disk, self._path, self._file, self._header = disk, path, file, header
        self._lock = threading.Lock()  # of what is appended
        self._syncing = threading.Lock()  # of whoever brings it to the disk
        self.number = header.first - 1 if read is None else read.next - 1
        """Of the last record."""
        self.chain = header.chain if read is None else read.chain
        """Of the last record."""
        self._end = FILE_HEADER_BYTES if read is None else read.end
        self.synced = self.number
        """The number of the last record that is on disk."""
        self._synced_end = self._end
        self.last: object = None
        """What was given with the last record that was appended."""
        self.failed: str | None = None
        """Why nothing can be appended any more."""

    @classmethod
    def begun(cls, disk: Disk, folder: Path, first: int, chain: int) -> Journal:
        """A new file, on disk when this returns.  Raises OSError; then there is none."""
        header = FileHeader(first, chain, secrets.randbits(32))
        path = folder / FILES.name(first)
        file = disk.create(path)
        try:
            file.write(header.to_bytes(), 0)
            file.sync()
            disk.sync_folder(folder)
        except BaseException:
            file.close()
            with suppress(OSError):
                disk.delete(path)
            raise
        return cls(disk, path, file, header, None)

    @classmethod
    def continued(cls, disk: Disk, path: Path, read: ReadFile) -> Journal:
        """The last file, its tail cut off; all of it is on disk when this returns.  Raises OSError."""
        file = disk.open(path)
        try:
            if read.is_torn:
                file.truncate(read.end)
            file.sync()  # what was not waited for may be there, and not on disk
        except BaseException:
            file.close()
            raise
        return cls(disk, path, file, read.header, read)

    @property
    def nbytes(self) -> int:
        """Bytes of the records in the file that is appended to."""
        return self._end - FILE_HEADER_BYTES

    @property
    def ended(self) -> End:
        """Where it ends."""
        return End(self.number, self.chain, self._end)

    def append(self, content: bytes | bytearray, mark: object) -> int:
        """Append a record and return its number; the caller lets no other thread append meanwhile.

        Raises DurabilityError; then nothing was appended.
        """
        with self._lock:
            if self.failed is not None:
                self.refuse_failed()
            data, chain = record_bytes(self._header, self.number + 1, self._synced_end, self.chain, content)
            try:
                self._file.write(data, self._end)
                number, end = self.number + 1, self._end + len(data)
                # In one line without a call, so that an interruption finds all of it done or nothing.
                self._end, self.chain, self.number, self.last = end, chain, number, mark
                return number
            except BaseException as error:
                self._cut(self._end)
                if isinstance(error, OSError):
                    self.refuse_failed()
                    raise DurabilityError(
                        f"{self._path}: the change can't be written, and was not made: {_reason(error)}"
                    ) from error
                raise

    def wait(self, number: int) -> None:
        """Return when a record is on disk.  Raises ClosedError when that failed."""
        if self.synced >= number:
            return
        with self._syncing:  # who comes while one syncs waits here, and finds most often that it is done
            if self.synced >= number:
                return
            with self._lock:
                self.refuse_failed()
                upto, end = self.number, self._end
            reached("folder: change written, not on disk")
            try:
                self._file.sync()
            except OSError as error:
                with self._lock:
                    self._fail(error)
                self.refuse_failed()
            reached("folder: change on disk, not told")
            with self._lock:
                self.synced, self._synced_end = upto, end

    def rotate(self) -> None:
        """Begin a new file, all before it on disk.  The caller as for append.

        Raises DurabilityError; then the old one goes on, unless the journal has failed.
        """
        self.wait(self.number)
        with self._syncing:
            path = self._path.parent / FILES.name(self.number + 1)
            try:
                self._disk.delete(path)  # one that was begun, and not gone on with
                begun = Journal.begun(self._disk, self._path.parent, self.number + 1, self.chain)
            except OSError as error:
                raise DurabilityError(f"{path}: no journal can be begun: {_reason(error)}") from error
            old, new, header, end = self._file, begun._file, begun._header, begun._end
            # In one line without a call, for an interruption finds all of it done or nothing.
            self._file, self._path, self._header, self._end, self._synced_end = new, path, header, end, end
        with suppress(OSError):  # all of it is on disk
            old.close()

    def close(self) -> None:
        """Sync and close.  Raises ClosedError if what was appended can't be brought to the disk."""
        try:
            if self.failed is None:
                self.wait(self.number)
        finally:
            self._file.close()

    def refuse_failed(self) -> None:
        """Raise ClosedError if nothing can be appended any more."""
        if self.failed is not None:
            raise ClosedError(self.failed)

    def _cut(self, end: int) -> None:
        """Take away what stands behind a place; where that fails, nothing can be appended any more."""
        try:
            self._file.truncate(end)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self.failed is not None:
            return
        self.failed = (
            f"{self._path}: can't be written any more ({_reason(error)}), so the workspace takes no changes;"
            f" those after change {self.synced} were not kept: close it, see to the disk and open the folder"
            " again"
        )
        _log.error("%s", self.failed)
        with suppress(OSError):
            self._file.truncate(self._synced_end)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
