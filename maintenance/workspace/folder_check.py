"""What is whole in a workspace's folder, file by file; nothing is changed, and no rule evaluated.

    manifest-... 40      whole
    journal-... 41       damaged at byte 646
    data/edge-...        whole
    version              43 can be read, 47 is known to have been there

Invariant: what is said to be whole was read, all of it, and compared with its checksums.

Cost: one pass over all files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lftj.errors import DamagedFolderError, ImageError
from maintenance.durable import damaged_bytes, journal
from maintenance.durable.data_files import FOLDER, read_rows
from maintenance.durable.entries import loaded_by
from maintenance.durable.reading import IMAGE, FoundFolder, read_existing
from maintenance.durable.whole_files import WholeFiles
from maintenance.image import check_image


@dataclass(frozen=True)
class FileCheck:
    """A file of a folder, or ``version``; ``text``: what it is, or what is damaged."""

    name: str
    is_whole: bool
    text: str


def check_folder(folder: str | os.PathLike[str]) -> list[FileCheck]:
    """What is whole in a folder, which another process may be changing.

    Raises DurabilityError where it is no workspace's, or a newer version's.
    """
    path = Path(os.path.abspath(folder))
    before = None
    while True:
        try:
            found = read_existing(path, "set aside")
        except DamagedFolderError as error:  # without a manifest nothing else says anything
            return [FileCheck("manifest", False, str(error))]
        checked = list(_checked(found))
        if before == found.manifest.number or all(each.is_whole for each in checked):
            return checked
        before = found.manifest.number  # unless a checkpoint was completed meanwhile, and deleted files


def _checked(found: FoundFolder) -> Iterator[FileCheck]:
    manifest = found.manifest
    end = manifest.end
    ended = "" if end is None else f"; the journal ended at version {end.number} when it was noted"
    held = f"relations: {len(manifest.relations)}, programs: {len(manifest.definitions)}"
    yield FileCheck("manifest", True, f"version {manifest.number}, {held}{ended}")
    yield from _journal(found)
    yield from _data(found)
    for name in sorted(os.listdir(found.folder)):
        if (match := IMAGE.fullmatch(name)) and match[3] == ".arrow":
            yield _image(found.folder / name, int(match[1]) > found.number)
        elif damaged_bytes.is_name(name):
            yield FileCheck(name, True, "set aside when the folder was opened; it is not read")
    text = f"{found.number} can be read, {found.least} is known to have been there at least"
    yield FileCheck("version", not found.problem, f"{text}; {found.problem}" if found.problem else text)


def _journal(found: FoundFolder) -> Iterator[FileCheck]:
    """Its files, those also that are kept for whoever asks what changed."""
    names = os.listdir(found.folder)
    firsts = sorted(first for name in names if (first := journal.FILES.number(name)) is not None)
    past = WholeFiles(found.folder).take([first for first in firsts if first <= found.manifest.number])
    if past.problem:
        yield FileCheck("journal", False, f"{past.problem}; what changed before is not to be had")
    tails = {name: at for name, at in (*past.aside, *found.aside) if at}
    for path, read in (*past.files, *found.files):
        what = f"changes {read.header.first} to {read.next - 1}" if read.records else "no changes"
        at = tails.get(path.name, read.end)
        tail = f"; no whole change from byte {at:,} on, of {read.nbytes:,}"
        yield FileCheck(
            path.name, not read.is_torn, f"{what}, {read.end:,} bytes{tail if read.is_torn else ''}"
        )
    for name, at in (*past.aside, *found.aside):
        if not at and not IMAGE.fullmatch(name):
            yield FileCheck(name, False, "not whole, or not of these changes")


def _data(found: FoundFolder) -> Iterator[FileCheck]:
    """Files of data that the manifest names, or a change behind it."""
    loaded = {each.file.name: each for each in found.manifest.relations}
    try:
        loaded |= {each.file.name: each for _, entry in found.entries(0) for each in loaded_by(entry)}
    except DamagedFolderError as error:
        yield FileCheck("journal", False, str(error))
    for name, each in sorted(loaded.items()):
        try:
            read_rows(found.folder, each.file)
        except (DamagedFolderError, OSError) as error:
            yield FileCheck(f"{FOLDER}/{name}", False, str(error))
        else:
            yield FileCheck(f"{FOLDER}/{name}", True, f"{each.file.rows:,} rows of {each.relation!r}")


def _image(path: Path, is_ahead: bool) -> FileCheck:
    if is_ahead:
        return FileCheck(path.name, False, "an image of changes that can't be read any more")
    try:
        check_image(path)
    except (ImageError, OSError) as error:
        return FileCheck(path.name, False, f"{error}; it is a cache, and may be deleted")
    return FileCheck(path.name, True, "an image, which saves evaluating")
