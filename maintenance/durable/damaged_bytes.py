"""Bytes of a folder that can't be used are *set aside*: kept under another name.

For whoever can make something of them, and for whoever wants to know what was lost.

    journal-<number>  from byte 646 on  ->  damaged-journal-<number>-646

Invariants

1. They are on disk under the new name before they go under the old one.
2. Nothing here reads them again, or deletes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from maintenance.store.disk import Disk
from maintenance.store.new_file import NewFile

_PREFIX = "damaged-"


def is_name(name: str) -> bool:
    """Whether a file was set aside."""
    return name.startswith(_PREFIX)


def set_aside(disk: Disk, path: Path, at: int) -> Path:
    """Keep the bytes of a file from a place on, and return where; from 0 on, the file goes there itself.

    Else whoever calls cuts them off.  Raises OSError.
    """
    rest = path.read_bytes()[at:]
    new = next(each for each in _names(path, at) if not each.exists() or (at and each.read_bytes() == rest))
    if not at:
        disk.rename(path, new)
    elif not new.exists():  # or all of it is there, from one who was stopped before he cut it off
        with NewFile(disk, new) as file:
            file.write(rest)
    disk.sync_folder(path.parent)
    return new


def _names(path: Path, at: int) -> Iterator[Path]:
    plain = f"{_PREFIX}{path.name}-{at}"
    yield path.with_name(plain)
    for number in count(2):
        yield path.with_name(f"{plain}-{number}")
