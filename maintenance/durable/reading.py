"""What is in a folder: its newest manifest, and the changes behind it; nothing is changed by reading.

    manifest of change 40      journal-...38: 38 39 40 41      journal-...42: 42 43 (tail)

Behind the manifest there may be more of the journal, for those who ask what changed (:func:`read_changes`).

Invariant: the changes follow the manifest without a gap, each knows those before it by its chain, and only
behind the last one there may be a tail.  Whatever else is found raises DamagedFolderError.

Cost: one pass over the journal's files that have changes behind the manifest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from lftj.errors import CursorError, DamagedFolderError, DurabilityError
from maintenance.durable import data_files, folder_lock, journal, manifest
from maintenance.durable.contents import Contents
from maintenance.durable.entries import Changed, Entry, entry_of
from maintenance.durable.manifest import Manifest, newest_manifest
from maintenance.durable.records import FILE_HEADER_BYTES, ReadFile, Record, read_records

IMAGE = re.compile(r"\.?image-([0-9]{20})-([0-9a-f]{8})(\.arrow|\.arrow\..*\.part)")
_ATTEMPTS = 20


@dataclass(frozen=True)
class Found:
    """``files``: of the journal, with their paths: those that have changes behind the manifest, or will.

    ``unbegun``: names of files that were begun, and not gone on with.
    """

    folder: Path
    manifest: Manifest
    files: tuple[tuple[Path, ReadFile], ...]
    unbegun: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """Of the last change."""
        return self.files[-1][1].next - 1

    def chain_of(self, number: int) -> int | None:
        """The chain of a change behind the manifest, or of the manifest's own; None if there is none."""
        if number == self.manifest.number:
            return self.manifest.chain
        return next((record.chain for _, record in self._records() if record.number == number), None)

    def entries(self, after: int) -> Iterator[tuple[int, Entry]]:
        """The changes behind one, with their numbers, in their order.  Raises DamagedFolderError."""
        for path, record in self._records():
            if record.number <= max(after, self.manifest.number):
                continue
            try:
                yield record.number, entry_of(record.content)
            except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
                raise DamagedFolderError(
                    f"{path}: change {record.number} can't be read: {error}; put back a copy of the folder"
                ) from error

    @cached_property
    def contents(self) -> Contents:
        """What the folder says at the last change.  Raises DamagedFolderError."""
        contents = Contents(self.manifest)
        for number, entry in self.entries(self.manifest.number):
            contents.take(entry, number)
        return contents

    @property
    def journal_bytes(self) -> int:
        return sum(read.end for _, read in self.files)

    def _records(self) -> Iterator[tuple[Path, Record]]:
        for path, read in self.files:
            for record in read.records:
                yield path, record


def read_folder(folder: Path) -> Found | None:
    """What is in a folder; None if it is there and empty, or was being made when that was stopped.

    Another process may write meanwhile.  Raises DurabilityError, DamagedFolderError, and OSError.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _found(folder)
        except FileNotFoundError:  # a checkpoint was completed meanwhile, which deletes what it replaces
            if not folder.is_dir() or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def read_existing(folder: str | os.PathLike[str]) -> Found:
    """What a workspace's folder holds.  Raises DurabilityError if it is none, and as :func:`read_folder`."""
    place = Path(os.path.abspath(folder))
    try:
        found = read_folder(place)
    except OSError as error:
        raise DurabilityError(f"{place}: can't be opened: {error.strerror or error}") from error
    if found is None:
        raise DurabilityError(f"{place}: there is no workspace in this folder: open it once for writing")
    return found


def _found(folder: Path) -> Found | None:
    names = sorted(os.listdir(folder))
    newest = newest_manifest(folder, names)
    if newest is None:
        _refuse_foreign(folder, names)
        return None
    firsts = _firsts(names)
    needed = [first for first in firsts if first > newest.number + 1]
    start = max((first for first in firsts if first <= newest.number + 1), default=None)
    if start is None:
        raise DamagedFolderError(
            f"{folder}: the journal with change {newest.number + 1} is not there; put back a copy of the"
            " folder"
        )
    files, unbegun = _files(folder, [start, *needed])
    found = Found(folder, newest, tuple(files), tuple(unbegun))
    if found.files[0][1].header.first == newest.number + 1:
        chain: int | None = found.files[0][1].header.chain
    else:
        chain = next((r.chain for r in found.files[0][1].records if r.number == newest.number), None)
    if chain != newest.chain:
        raise DamagedFolderError(
            f"{found.files[0][0]}: not the journal of manifest {newest.number}: that change is another"
            " one there, or none; put back a copy of the folder"
        )
    return found


def _files(folder: Path, firsts: list[int]) -> tuple[list[tuple[Path, ReadFile]], list[str]]:
    """The files of a journal with these first changes, one behind the other, and names of those unbegun."""
    files: list[tuple[Path, ReadFile]] = []
    unbegun: list[str] = []
    for first in firsts:
        path = folder / journal.FILES.name(first)
        read = read_records(path.read_bytes(), path)
        if read is None:
            if first == firsts[-1] and files:
                unbegun.append(path.name)
                break
            raise DamagedFolderError(f"{path}: damaged: it ends within its header; put back a copy of it")
        if files and not read.records and not read.is_torn and files[-1][1].next > first:
            unbegun.append(path.name)
            continue
        _refuse_gap(files, path, first, read)
        files.append((path, read))
    return files, unbegun


def _refuse_gap(files: list[tuple[Path, ReadFile]], path: Path, first: int, read: ReadFile) -> None:
    if read.header.first != first:
        raise DamagedFolderError(f"{path}: its first change is {read.header.first}: give it back its name")
    if not files:
        return
    before, last = files[-1]
    if last.next < first:
        raise DamagedFolderError(
            f"{before}: damaged at byte {last.end}, where change {last.next} begins: {path.name} follows, so"
            " it had been written whole; put back a copy of the folder"
        )
    if (last.next, last.chain) != (first, read.header.chain):
        raise DamagedFolderError(f"{path}: does not follow {before.name}; put back a copy of the folder")


def read_changes(folder: Path, after: int, upto: int) -> list[tuple[int, Changed]]:
    """The commits behind a change, up to another, with their numbers, as far as the journal still has them.

    Another process may write meanwhile.  Raises CursorError where some are not there any more, and
    DamagedFolderError.
    """
    for attempt in range(_ATTEMPTS):
        try:
            files = _journal_behind(folder, after, upto)
            break
        except FileNotFoundError:  # a checkpoint was completed meanwhile
            if not folder.is_dir() or attempt == _ATTEMPTS - 1:
                raise
    found = Found(folder, Manifest(after, 0), tuple(files))
    entries = [(number, entry) for number, entry in found.entries(after) if number <= upto]
    if [number for number, _ in entries] != list(range(after + 1, upto + 1)):
        raise DamagedFolderError(
            f"{files[-1][0]}: damaged at byte {files[-1][1].end}: change {upto} was there and is not any more"
        )
    return [(number, entry) for number, entry in entries if isinstance(entry, Changed)]


def oldest_change(folder: Path) -> int:
    """The number of the change behind which the journal of a folder has all."""
    return min((first for first in _firsts(os.listdir(folder))), default=1) - 1


def _journal_behind(folder: Path, after: int, upto: int) -> list[tuple[Path, ReadFile]]:
    """The files of the journal that have the changes behind one, up to another, all that there are."""
    firsts = sorted(_firsts(os.listdir(folder)))
    start = max((first for first in firsts if first <= after + 1), default=None)
    if start is None:
        oldest = oldest_change(folder)
        raise CursorError(
            f"{folder}: the changes behind version {after} are not kept any more; the oldest version that"
            f" can be asked for is {oldest}: read the relation as it is now, and go on from there",
            oldest,
        )
    return _files(folder, [first for first in firsts if start <= first <= upto])[0]


def _firsts(names: Iterable[str]) -> list[int]:
    """The first changes of the files of a journal."""
    return [number for number in map(journal.FILES.number, names) if number is not None]


def leftovers(folder: Path, newest: int, feed_bytes: int) -> Iterator[str]:
    """Names of those files that are not needed any more where the newest manifest has a number.

    ``feed_bytes``: so much of the journal is kept behind the manifest, in whole files that come to that at
    least.  Raises OSError.
    """
    names = os.listdir(folder)
    firsts = sorted(_firsts(names), reverse=True)
    start = max((first for first in firsts if first <= newest + 1), default=0)
    kept = 0
    for first in firsts:
        if first < start and kept < feed_bytes:
            kept += (folder / journal.FILES.name(first)).stat().st_size
            start = first
    for name in sorted(names):  # of journals the oldest first, so that what is left has no gap
        if (number := manifest.FILES.number(name)) is not None:
            outdated = number < newest
        elif (number := journal.FILES.number(name)) is not None:
            outdated = number < start
        elif match := IMAGE.fullmatch(name):
            outdated = match[3] != ".arrow" or int(match[1]) < newest
        else:
            outdated = manifest.FILES.number_of_part(name) is not None
        if outdated:
            yield name


def _refuse_foreign(folder: Path, names: list[str]) -> None:
    """A folder without a manifest holds nothing, or what was there when its making was stopped."""
    for name in names:
        if IMAGE.fullmatch(name) or (name == data_files.FOLDER and any((folder / name).iterdir())):
            raise DamagedFolderError(f"{folder}: there is {name!r}, and no manifest; put it back")
        is_journal = journal.FILES.number(name) is not None
        is_begun = is_journal or manifest.FILES.number_of_part(name) is not None
        if not is_begun and name not in (data_files.FOLDER, folder_lock.NAME):
            raise DurabilityError(
                f"{folder}: this folder holds {name!r} and no workspace: give an empty folder,"
                " or one that is to be made"
            )
        if is_journal and (folder / name).stat().st_size > FILE_HEADER_BYTES:
            raise DamagedFolderError(f"{folder}: there are changes in {name}, and no manifest; put it back")
