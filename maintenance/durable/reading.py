"""What is in a folder: its newest manifest, and the changes behind it; nothing is changed by reading.

    manifest of change 40  (journal ended at 43)      journal-...41: 41      journal-...42: 42 43 (tail)

A manifest is made when the journal's file behind it has begun: changes of a file are before it, or behind it.
Before the manifest there may be more of the journal, for those who ask what changed (:func:`read_changes`).

What is known of how far the changes went: by the files of the journal themselves
(:mod:`maintenance.durable.whole_files`); by the manifest, which says where the journal ended when the folder
was closed; and by the names of images, which are made of changes that are on disk.

Invariant: the changes follow the manifest without a gap, and behind the last one there is only what a crash
may have left.  Whatever else is found, also fewer changes than are known to have been there, is refused by
DamagedFolderError.  A crash that left a tail is told from damage by nothing, and a warning says both.

Cost: one pass over the journal's files that have changes behind the manifest.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import pyarrow as pa

from lftj.errors import CursorError, DamagedFolderError, DurabilityError
from maintenance.durable import damaged_bytes, data_files, folder_lock, journal, manifest
from maintenance.durable.contents import Contents
from maintenance.durable.entries import Changed, Entry, entry_of
from maintenance.durable.manifest import Manifest, newest_manifest
from maintenance.durable.records import FILE_HEADER_BYTES, JournalRecord, ReadFile
from maintenance.durable.whole_files import WholeFiles

IMAGE = re.compile(r"\.?image-([0-9]{20})-([0-9a-f]{8})(\.arrow|\.arrow\..*\.part)")
_ATTEMPTS = 20
_LOOK_AGAIN = 0.005
"""Seconds between two looks at a folder that another process may be writing."""

Damaged = Literal["refuse", "set aside"]
"""What becomes of changes that are damaged, and of those behind them."""


@dataclass(frozen=True)
class FoundFolder:
    """``files``: of the journal, with their paths: those that have changes behind the manifest, or will.

    ``unbegun``: names of files that were begun, and not gone on with.  ``aside``: names of files that hold
    what is not whole, or not of these changes, and the byte from which on.  ``least``: a version that is
    known to have been there.  ``problem``: what is known to be damaged behind the last change; empty where
    nothing is.
    """

    folder: Path
    manifest: Manifest
    files: tuple[tuple[Path, ReadFile], ...]
    unbegun: tuple[str, ...] = ()
    aside: tuple[tuple[str, int], ...] = ()
    least: int = 0
    problem: str = ""

    @property
    def number(self) -> int:
        """Of the last change."""
        return self.files[-1][1].next - 1 if self.files else self.manifest.number

    @property
    def chain(self) -> int:
        """Of the last change."""
        return self.files[-1][1].chain if self.files else self.manifest.chain

    def refuse_damage(self) -> None:
        """Raise DamagedFolderError if changes that had been there are not whole any more, or gone."""
        if self.problem:
            raise DamagedFolderError(
                f"{self.problem}; put back a copy of the folder, or open it with damaged='set aside' at"
                f" version {self.number}, which is whole: what is behind it is kept beside (`lftj open"
                f" {self.folder} check` says what is whole)"
            )

    def doubt(self, kept: Sequence[str] = ()) -> str:
        """What to say of bytes that are not whole changes; empty where there are none.

        ``kept``: the names that they were given, where they were set aside.
        """
        if not self.aside and not self.problem:
            return ""
        seen = max((read.seen for _, read in self.files), default=0)
        traces = f", with traces of changes up to {seen}" if seen > self.number else ""
        places = ", ".join(f"{name} from byte {at}" if at else name for name, at in self.aside)
        why = self.problem or "as where the machine stopped while they were written, or as after damage"
        where = f"; they are kept in {', '.join(kept)}" if kept else ""
        return (
            f"{self.folder}: bytes behind change {self.number} are no whole changes ({places}{traces}),"
            f" {why}: it is opened at version {self.number}, and version {self.least} is known to have been"
            f" there at least{where}"
        )

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

    def _records(self) -> Iterator[tuple[Path, JournalRecord]]:
        for path, read in self.files:
            for record in read.records:
                yield path, record


def read_folder(folder: Path) -> FoundFolder | None:
    """What is in a folder; None if it is there and empty, or was being made when that was stopped.

    Another process may write meanwhile.  Of damage to the journal `FoundFolder` tells; for other files raises
    DamagedFolderError, also DurabilityError, and OSError.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _found(folder)
        except FileNotFoundError:  # a checkpoint was completed meanwhile, which deletes what it replaces
            if not folder.is_dir() or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def read_existing(folder: str | os.PathLike[str], damaged: Damaged = "refuse") -> FoundFolder:
    """What a workspace's folder holds, which another process may be changing.

    ``damaged``: whether changes that are damaged are refused, or those before them taken.  Raises
    DurabilityError if it is none, DamagedFolderError, and as :func:`read_folder`.
    """
    path = Path(os.path.abspath(folder))
    try:
        found = _at_rest(path)
    except OSError as error:
        raise DurabilityError(f"{path}: can't be opened: {error.strerror or error}") from error
    if found is None:
        raise DurabilityError(f"{path}: there is no workspace in this folder: open it once for writing")
    if damaged == "refuse":
        found.refuse_damage()
    return found


def _at_rest(folder: Path) -> FoundFolder | None:
    """What is in a folder; what is not whole is looked at until it stays so, for it may be being written."""
    found = read_folder(folder)
    while found is not None and (found.aside or found.problem):
        before = found
        time.sleep(_LOOK_AGAIN)
        found = read_folder(folder)
        if found is not None and _outline(found) == _outline(before):
            break
    return found


def _outline(found: FoundFolder) -> tuple[object, ...]:
    return found.number, found.aside, found.problem, [read.nbytes for _, read in found.files]


def _found(folder: Path) -> FoundFolder | None:
    names = sorted(os.listdir(folder))
    newest = newest_manifest(folder, names)
    if newest is None:
        _refuse_foreign(folder, names)
        return None
    firsts = sorted(first for first in _firsts(names) if first > newest.number)
    whole = WholeFiles(folder, newest.number + 1, newest.chain).take(firsts)
    found = FoundFolder(
        folder,
        newest,
        tuple(whole.files),
        tuple(whole.unbegun),
        tuple(whole.aside),
        newest.number,
        whole.problem,
    )
    return _with_proofs(found, names)


def _with_proofs(found: FoundFolder, names: Iterable[str]) -> FoundFolder:
    """What was found, and what else the folder says of how far its changes went."""
    images = [
        (int(match[1]), name) for name in names if (match := IMAGE.fullmatch(name)) and match[3] == ".arrow"
    ]
    ahead = tuple((name, 0) for number, name in images if number > found.number)
    least, why = max(((number, f"{name} is of it") for number, name in images), default=(0, ""))
    if found.manifest.format < 5:  # with durability "interval" and "none" the journal was not on disk then
        least = min(least, found.number)
    end = found.manifest.end
    if end is not None and end.number >= least:
        least, why = end.number, f"the journal's last file had {end.nbytes:,} bytes then"
    problem = found.problem
    if not problem and least > found.number:
        path, at = _where(found)
        problem = (
            f"{path}: damaged at byte {at:,}: change {found.number + 1} was there, for version {least} was"
            f" ({why}), and only version {found.number} can be read"
        )
    elif not problem and end is not None and found.chain_of(end.number) not in (None, end.chain):
        problem = f"{found.files[-1][0]}: not the journal that was closed at version {end.number}"
    least = max(least, found.manifest.number)
    return replace(found, aside=found.aside + ahead, least=least, problem=problem)


def _where(found: FoundFolder) -> tuple[Path, int]:
    """Where the change behind the last one should be."""
    path, last = found.files[-1]
    return path, last.end


def read_changes(folder: Path, after: int, upto: int) -> list[tuple[int, Changed]]:
    """The commits among :func:`read_entries`."""
    entries = read_entries(folder, after, upto)
    return [(number, entry) for number, entry in entries if isinstance(entry, Changed)]


def read_entries(folder: Path, after: int, upto: int) -> list[tuple[int, Entry]]:
    """The changes behind one, up to another, with their numbers, as far as the journal still has them.

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
    found = FoundFolder(folder, Manifest(after, 0), tuple(files))
    entries = [(number, entry) for number, entry in found.entries(after) if number <= upto]
    if [number for number, _ in entries] != list(range(after + 1, upto + 1)):
        raise DamagedFolderError(
            f"{files[-1][0]}: damaged at byte {files[-1][1].end}: change {upto} was there and is not any more"
        )
    return entries


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
    whole = WholeFiles(folder).take([first for first in firsts if start <= first <= upto])
    if whole.problem:
        raise DamagedFolderError(f"{whole.problem}; put back a copy of the folder")
    return whole.files


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
    kept_bytes = 0
    for first in firsts:
        if first < start and kept_bytes < feed_bytes:
            kept_bytes += (folder / journal.FILES.name(first)).stat().st_size
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
        is_data = name == data_files.FOLDER and any((folder / name).iterdir())
        if IMAGE.fullmatch(name) or is_data or damaged_bytes.is_name(name):
            raise DamagedFolderError(f"{folder}: there is {name!r}, and no manifest; put it back")
        is_journal = (number := journal.FILES.number(name)) is not None
        is_begun = is_journal or manifest.FILES.number_of_part(name) is not None
        if not is_begun and name not in (data_files.FOLDER, folder_lock.NAME):
            raise DurabilityError(
                f"{folder}: this folder holds {name!r} and no workspace: give an empty folder,"
                " or one that is to be made"
            )
        has_changes = is_journal and (folder / name).stat().st_size > FILE_HEADER_BYTES
        if has_changes or number not in (None, 1):  # a folder is made with the journal of its first change
            raise DamagedFolderError(f"{folder}: there are changes in {name}, and no manifest; put it back")
