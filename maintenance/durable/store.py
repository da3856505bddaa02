"""`Store`: a workspace's folder, open for writing.

    folder/  lock                      who writes
             manifest-<number>.json    what the workspace was at change <number>
             journal-<number>          the changes from <number> on
             data/<relation>-<id>.arrow
             image-<number>-<chain>.arrow   a cache (:mod:`maintenance.workspace.image_cache`)
             damaged-<name>-<byte>          what was found and is no whole change

Invariants

1. A change is made when the journal has it (:mod:`maintenance.durable.journal`); with durability
   ``commit`` it is on disk when :meth:`Store.wait` returns.
2. A checkpoint changes nothing of what the folder says: the journal goes on in a new file, the manifest
   of all before is made, and then what it replaces is deleted.  One that is stopped at any step leaves
   the folder saying the same.
3. Only the process that opened the folder writes.
4. Closing says in the manifest where the journal ended, and so does opening where it went on since: whoever
   finds less knows that it was damaged.  What is found behind the last whole change is never deleted.

Cost: of a checkpoint the rows of those relations that changed since the last.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import pyarrow as pa

from lftj.errors import ClosedError, DurabilityError
from maintenance.durable import damaged_bytes
from maintenance.durable.data_files import FOLDER, NAME, write_rows
from maintenance.durable.definitions import Definition
from maintenance.durable.entries import Entry, Loaded, entry_bytes
from maintenance.durable.folder_lock import FolderLock
from maintenance.durable.journal import Journal
from maintenance.durable.manifest import Manifest, write_manifest
from maintenance.durable.reading import Damaged, FoundFolder, leftovers, read_folder
from maintenance.durable.records import FORMAT
from maintenance.store.disk import Disk
from maintenance.store.fault_points import reached

_log = logging.getLogger(__name__)

Durability = Literal["commit", "interval", "none"]

Understood = TypeVar("Understood")

INTERVAL = 0.1
"""Seconds between two syncs of ``interval``."""

CHECKPOINT_BYTES = 64 << 20
"""A journal that is longer than this, and than the data of the last checkpoint, wants another."""


_forks = 0  # that led to this process since the module was imported: to ask for its number takes a while


def _note_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_note_fork)


@dataclass(frozen=True)
class CheckpointCut:
    """Where a checkpoint divides the changes, and what was so there (:class:`Contents`)."""

    number: int
    chain: int
    settings: Mapping[str, Any]
    relations: Mapping[str, Loaded]
    changed: frozenset[str]
    definitions: tuple[Definition, ...]
    streams: Mapping[str, Mapping[str, Any]]
    obsolete: frozenset[str]


class Store:
    """Made by :meth:`opened`."""

    def __init__(
        self,
        folder: Path,
        disk: Disk,
        durability: Durability,
        feed_bytes: int,
        lock: FolderLock,
        found: FoundFolder,
    ) -> None:
        self.folder = folder
        self.durability = durability
        self._feed_bytes = feed_bytes
        self._disk = disk
        self._lock = lock
        self._forks = _forks
        self.contents = found.contents
        self.aside = [self._set_aside(name, at) for name, at in found.aside]
        """Names of the files that have what was found and is no whole change."""
        if found.files:
            self._journal = Journal.continued(disk, *found.files[-1])
        else:
            self._journal = Journal.begun(disk, folder, found.number + 1, found.chain)
        self._before = found.journal_bytes - self._journal.nbytes
        self._entry: tuple[Entry, int] | None = None  # the last, which is not taken yet
        self._manifest = found.manifest
        self._closed = False
        self._stop = threading.Event()

    @classmethod
    def opened(
        cls,
        folder: Path,
        disk: Disk,
        understood: Callable[[FoundFolder], Understood],
        durability: Durability = "commit",
        interval: float = INTERVAL,
        settings: Mapping[str, Any] | None = None,
        feed_bytes: int = 0,
        damaged: Damaged = "refuse",
    ) -> tuple[Store, FoundFolder, Understood]:
        """Open a folder, which is made where there is none; also gives what was in it.

        ``understood``: what is made of that, before anything is changed.  ``settings``: those of a new
        workspace.  ``feed_bytes``: of the journal that are kept behind a checkpoint, for those who ask what
        changed.  ``damaged``: whether damaged changes are refused, or set aside with all behind them.  Raises
        FolderInUseError, DamagedFolderError, DurabilityError, and what ``understood`` raises.
        """
        if durability not in get_args(Durability):
            raise ValueError(f"durability is {durability!r}; it can be {', '.join(get_args(Durability))}")
        if damaged not in get_args(Damaged):
            raise ValueError(f"damaged is {damaged!r}; it can be {', '.join(get_args(Damaged))}")
        try:
            disk.make_folder(folder)
            lock = FolderLock(folder)
            try:
                found = read_folder(folder) or _made(folder, disk, settings or {})
                if damaged == "refuse":
                    found.refuse_damage()
                made = understood(found)
                store = cls(folder, disk, durability, feed_bytes, lock, found)
                store._begin(found)
            except BaseException:
                lock.release()
                raise
        except OSError as error:
            raise DurabilityError(f"{folder}: can't be opened: {error.strerror or error}") from error
        if durability == "interval":
            threading.Thread(
                target=store._sync_often, args=(interval,), name="lftj-sync", daemon=True
            ).start()
        return store, found, made

    def _begin(self, found: FoundFolder) -> None:
        """Go on behind what was found; what a process that was stopped has left is deleted.

        Raises OSError.
        """
        try:
            self._note_end()
        except BaseException:
            self._journal.close()
            raise
        self._delete(found.unbegun)
        self._delete(leftovers(self.folder, self._manifest.number, self._feed_bytes))
        needed = {loaded.file.name for loaded in self.contents.relations.values()} | self.contents.obsolete
        there = set(os.listdir(self.folder / FOLDER))
        unneeded = [f"{FOLDER}/{name}" for name in there - needed if NAME.fullmatch(name)]
        if not found.aside and not found.problem:
            self._delete(unneeded)
            return
        for name in unneeded:  # what is not whole, or gone, may be a load that names them
            self._set_aside(name, 0)

    def _set_aside(self, name: str, at: int) -> str:
        new_name = damaged_bytes.set_aside(self._disk, self.folder / name, at).name
        _log.info("%s: from byte %d on no whole changes: set aside as %s", self.folder / name, at, new_name)
        return new_name

    def _note_end(self) -> None:
        """Say in the manifest where the journal ends, all of which is on disk.  Raises OSError.

        Also makes a folder of an older format one of this.
        """
        manifest, ended = self._manifest, self._journal.ended
        end = None if ended.number == manifest.number else ended
        if (manifest.format, manifest.end) != (FORMAT, end):
            manifest = replace(manifest, format=FORMAT, end=end)
            write_manifest(self._disk, self.folder, manifest)
            self._manifest = manifest

    # -- changes ------------------------------------------------------------------

    @property
    def number(self) -> int:
        """Of the last change."""
        return self._journal.number

    @property
    def chain(self) -> int:
        """Of the last change."""
        return self._journal.chain

    @property
    def last(self) -> object:
        """What was given with the last change."""
        return self._journal.last

    @property
    def durable(self) -> int:
        """The number of the last change that may be shown: it is on disk, or that is not waited for."""
        return self._journal.synced if self.durability == "commit" else self._journal.number

    @property
    def journal_bytes(self) -> int:
        """Bytes of the journal behind the last checkpoint."""
        return self._before + self._journal.nbytes

    @property
    def figures(self) -> dict[str, int]:
        """What the folder holds, for those who watch it."""
        return {
            "journal_bytes": self.journal_bytes,
            "data_bytes": self._manifest.nbytes,
            "checkpoint_version": self._manifest.number,
            "changes_not_on_disk": self._journal.number - self._journal.synced,
        }

    def append(self, entry: Entry, mark: object) -> int:
        """Append a change and return its number, ``mark`` being the ``last`` from now on.

        The caller lets no other thread append meanwhile.  Raises DurabilityError; then it was not made.
        """
        self.refuse_closed()
        return self.append_bytes(entry, entry_bytes(entry), mark)

    def append_bytes(self, entry: Entry, content: bytes | bytearray, mark: object) -> int:
        """The same where the bytes of the change are there; ``entry``: without the rows of changes.

        One that follows itself, as of many small commits, is taken once, with the number of the last.
        """
        self.refuse_closed()
        before = self._entry
        if before is not None and before[0] is not entry:
            self._catch_up()
            before = None
        journal = self._journal
        self._entry = entry, journal.number + 1
        try:
            return journal.append(content, mark)
        except BaseException:
            if journal.last != mark:
                self._entry = before
            raise

    def _catch_up(self) -> None:
        """Take the last entry."""
        if self._entry is not None:
            self.contents.take(*self._entry)
            self._entry = None

    def wait(self, number: int) -> None:
        """Return when a change is as safe as ``durability`` says.  Raises ClosedError where it can't be."""
        if self.durability == "commit":
            self._journal.wait(number)

    def sync(self) -> None:
        """Return when all changes are on disk, however durable.  Raises ClosedError where they can't be."""
        self._journal.wait(self._journal.number)

    def write_rows(self, relation: str, rows: pa.Table) -> Any:
        """A file with the rows of a relation, to be named by an entry.  Raises DurabilityError."""
        self.refuse_closed()
        try:
            return write_rows(self._disk, self.folder, relation, rows)
        except OSError as error:
            raise DurabilityError(
                f"{self.folder}: {relation!r} can't be written: {error.strerror}"
            ) from error

    def refuse_closed(self) -> None:
        """Raise ClosedError if nothing can be written any more."""
        if self._closed:
            raise ClosedError(f"{self.folder}: the workspace is closed: open it again")
        if self._forks != _forks:
            raise ClosedError(
                f"{self.folder}: another process opened the workspace, and this is a fork of it"
            )
        self._journal.refuse_failed()

    # -- checkpoints --------------------------------------------------------------

    def wants_checkpoint(self, least: int) -> bool:
        """Whether the journal has grown beyond ``least`` bytes, and beyond the data."""
        return self.journal_bytes > max(least, self._manifest.nbytes)

    def cut(self) -> CheckpointCut:
        """Begin a checkpoint: the changes so far, all on disk, are what it is of.  The caller as for append.

        Raises DurabilityError; then there is none.
        """
        self.refuse_closed()
        self._catch_up()
        before = self.journal_bytes
        if self._journal.nbytes:
            self._journal.rotate()
        self._before = before - self._journal.nbytes
        reached("folder: journal begun anew, no checkpoint")
        contents = self.contents
        return CheckpointCut(
            self.number,
            self.chain,
            contents.settings,
            dict(contents.relations),
            frozenset(contents.changed),
            tuple(contents.definitions),
            dict(contents.streams),
            frozenset(contents.obsolete),
        )

    def complete(
        self, cut: CheckpointCut, rows: Callable[[str], pa.Table], lock: AbstractContextManager[Any]
    ) -> None:
        """Complete a checkpoint.  ``rows``: of a base relation, as they were at the cut.

        ``lock``: held by whoever appends, and by this method while it looks at what came since.  One
        checkpoint is completed at a time.  Raises DurabilityError; then the folder says what it said.
        """
        try:
            written = self._written(cut, rows)
            reached("folder: data written, no manifest")
            relations = tuple({**cut.relations, **written}.values())
            manifest = Manifest(
                cut.number, cut.chain, cut.settings, relations, cut.definitions, streams=cut.streams
            )
            write_manifest(self._disk, self.folder, manifest)
        except OSError as error:
            why = error.strerror or error
            raise DurabilityError(f"{self.folder}: no checkpoint was made: {why}") from error
        reached("folder: manifest in place, the rest not gone")
        replaced = {cut.relations[name].file.name for name in written} | cut.obsolete
        with lock:
            self._catch_up()
            for loaded in written.values():
                self.contents.written(loaded, cut.relations[loaded.relation], cut.number)
            self.contents.obsolete -= replaced
            self._before, self._manifest = 0, manifest
        self._delete([f"{FOLDER}/{name}" for name in replaced])
        with suppress(OSError):
            self._delete(leftovers(self.folder, manifest.number, self._feed_bytes))
        _log.info("%s: checkpoint at change %d", self.folder, cut.number)

    def _written(self, cut: CheckpointCut, rows: Callable[[str], pa.Table]) -> dict[str, Loaded]:
        """The relations that changed, in new files; none is left where one of them can't be written."""
        written: dict[str, Loaded] = {}
        try:
            for name in sorted(cut.changed):
                file = write_rows(self._disk, self.folder, name, rows(name))
                written[name] = replace(cut.relations[name], file=file)
        except BaseException:
            self._delete([f"{FOLDER}/{loaded.file.name}" for loaded in written.values()])
            raise
        return written

    def _delete(self, names: Iterable[str]) -> None:
        """Delete what nothing needs; what can't be deleted now goes when the folder is opened again."""
        for name in names:
            with suppress(OSError):
                self._disk.delete(self.folder / name)

    # -- opening and closing ----------------------------------------------------------

    @property
    def failed(self) -> bool:
        """Whether the disk failed, so that nothing can be written any more."""
        return self._journal.failed is not None

    def _sync_often(self, interval: float) -> None:
        while not self._stop.wait(interval):
            with suppress(ClosedError):  # the next change is refused, and says why
                self._journal.wait(self._journal.number)

    def close(self) -> None:
        """Bring all changes to the disk and let others open the folder.  Raises ClosedError if it fails."""
        if self._closed:
            return
        self._closed = True
        self._stop.set()
        try:
            try:
                if not self.failed and self._forks == _forks:
                    self.sync()
                    self._note_end_quietly()
            finally:
                self._journal.close()
        except OSError as error:
            raise ClosedError(f"{self.folder}: can't be closed: {error.strerror or error}") from error
        finally:
            self._lock.release()

    def _note_end_quietly(self) -> None:
        try:
            self._note_end()
        except OSError as error:
            _log.warning("%s: where the journal ends was not noted: %s", self.folder, error.strerror or error)


def begin_folder(disk: Disk, folder: Path, manifest: Manifest) -> None:
    """Write manifest and journal of a folder that has files of data.  Raises OSError."""
    Journal.begun(disk, folder, manifest.number + 1, manifest.chain).close()
    write_manifest(disk, folder, manifest)


def _made(folder: Path, disk: Disk, settings: Mapping[str, Any]) -> FoundFolder:
    """A new workspace's folder.  Raises OSError."""
    for name in os.listdir(folder):
        if name.startswith(("journal-", "manifest-")):  # of one whose making was stopped
            disk.delete(folder / name)
    disk.make_folder(folder / FOLDER)
    begin_folder(disk, folder, Manifest(0, 0, settings))
    disk.sync_folder(folder.parent)
    found = read_folder(folder)
    assert found is not None
    return found
