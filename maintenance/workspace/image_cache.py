"""The image in a workspace's folder: the engine as it was at a change, so that opening evaluates nothing.

Invariants

1. It is a cache: without it, or with one that can't be used, the workspace is made from the checkpoint.
2. It is used only if the software that wrote it is this one (:mod:`maintenance.image`), if the folder has the
   very changes that it was made after (its name has the number and the chain of the last), and if this user
   wrote it and nobody else may: a pickle is a program.
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from lftj.errors import ImageError
from maintenance.durable.reading import IMAGE, FoundFolder
from maintenance.image import read_image, write_image

_log = logging.getLogger(__name__)


def write_cache(engine: object, folder: Path, number: int, chain: int) -> None:
    """Write the image of an engine as it is after a change; older ones go.  What fails is logged."""
    path = folder / f"image-{number:020d}-{chain:08x}.arrow"
    if path.exists():
        return
    try:
        write_image(engine, path)
        path.chmod(0o600)
    except Exception as error:  # whatever a disk, and a pickle of what a user added, may raise
        _log.warning("%s: no image was written, opening will take longer: %s", folder, error)
        return
    drop_caches(folder, path.name)


def drop_caches(folder: Path, but: str = "") -> None:
    """Delete the images of a folder, but the one of that name."""
    for name in os.listdir(folder):
        if IMAGE.fullmatch(name) and name != but:
            with suppress(OSError):
                (folder / name).unlink()


def read_cache(found: FoundFolder) -> tuple[Any, int] | None:
    """The engine of the newest image that can be used, and the number of the last change that is in it."""
    folder = found.folder
    for name in sorted(os.listdir(folder), reverse=True):
        match = IMAGE.fullmatch(name)
        if match is None or match[3] != ".arrow" or not found.manifest.number <= int(match[1]):
            continue
        number, chain = int(match[1]), int(match[2], 16)
        if found.chain_of(number) != chain:
            continue
        try:
            with (folder / name).open("rb") as file:
                if not _is_own(os.fstat(file.fileno())):
                    _log.warning(
                        "%s: not read: it is another user's, or others may write to it", folder / name
                    )
                    continue
                return read_image(file), number
        except (ImageError, OSError) as error:
            _log.info("%s: not used: %s", folder / name, error)
    return None


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
