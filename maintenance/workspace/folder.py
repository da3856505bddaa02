"""The folder of a workspace: one that it is kept in, or one of another process, which it follows.

Invariants

1. A workspace in a folder is as one in memory, but that each change of it is in the folder when the call
   that made it returns (:mod:`maintenance.workspace.published` says how it gets there).
2. What opening does, but for deleting what is not needed any more, changes nothing of what the folder says.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lftj.errors import ClosedError, DamagedFolderError, DamagedFolderWarning, DurabilityError
from lftj.language.diagnostics import warn_caller
from maintenance.durable.reading import Damaged, FoundFolder, read_existing
from maintenance.durable.store import Store
from maintenance.durable.tail import Tail
from maintenance.workspace.checkpoints import Checkpoints
from maintenance.workspace.image_cache import drop_caches, write_cache
from maintenance.workspace.past_loads import loaded_rows
from maintenance.workspace.published import Published
from maintenance.workspace.recovery import Recoverable, Replay

Made = TypeVar("Made")

_log = logging.getLogger(__name__)


def folder_path(folder: str | os.PathLike[str]) -> Path:
    """The absolute path of a folder, be it there or not.  Raises DurabilityError for a file."""
    path = Path(os.path.abspath(folder))
    if path.is_file():
        raise DurabilityError(
            f"{path}: can't be opened: this is a file, and a workspace is kept in a folder: name one, which"
            " may be new; load() reads files"
        )
    return path


class Folder:
    """One that is open; its methods get the workspace, which nothing here holds."""

    look_again = math.inf
    """Seconds after which there may be something new in it."""

    def __init__(self, path: Path, published: Published) -> None:
        self.path = path
        self._published = published

    def refresh(self, workspace: Recoverable) -> None:
        """Take in what another process has done since.  Raises CursorError and DurabilityError."""


class ReadFolder(Folder):
    """One that another process may be changing."""

    look_again = 0.1

    def __init__(self, found: FoundFolder, published: Published) -> None:
        super().__init__(found.folder, published)
        self._tail = Tail(found) if found.files else None
        published.refusal = DurabilityError(f"{self.path}: it is open for reading only")

    def refresh(self, workspace: Recoverable) -> None:
        published = self._published
        with published.lock:
            refusal, published.refusal = published.refusal, None
            try:
                if self._tail is not None:
                    self._take_in(workspace, self._tail)
            finally:
                published.refusal = refusal

    def _take_in(self, workspace: Recoverable, tail: Tail) -> None:
        """What came behind the end that was read last, commit by commit, as far as it is not here already."""
        published = self._published
        entries, end = tail.read()
        for number, entry in entries:
            if number > published.state.number:
                rows = partial(loaded_rows, type(workspace), self.path, number)
                with Replay(workspace, self.path, rows) as replay:
                    replay.take(entry)
                published.renumber(number)
        self._tail = end
        published.feed.wake()


class KeptFolder(Folder):
    """One that changes go to, from now on."""

    def __init__(
        self, store: Store, published: Published, checkpoint_bytes: int, wanted: Mapping[str, Any]
    ) -> None:
        """``wanted``: settings that it is to have; the store is closed where that fails."""
        super().__init__(store.folder, published)
        self._store = store
        self.checkpoints = Checkpoints(published, store, checkpoint_bytes)
        published.store, published.grown = store, self.checkpoints.make_when_grown
        try:
            if any(store.contents.settings.get(name) != value for name, value in wanted.items()):
                drop_caches(self.path)
                store.contents.settings = {**store.contents.settings, **wanted}
                self.checkpoints.make()
        except BaseException:
            store.close()
            raise

    def checkpoint(self, workspace: Recoverable) -> None:
        """Write what changed to files of data, and an image.  Raises DurabilityError."""
        self.checkpoints.make()
        self.write_image(workspace)

    def write_image(self, workspace: Recoverable) -> None:
        """Write an image of the workspace as it is; what fails is logged."""
        published, store = self._published, self._store
        with published.paused():
            published.wait(store.number)
            store.sync()  # what an image is of is known to have been there
            write_cache(workspace, self.path, store.number, store.chain)

    def close(self, workspace: Recoverable) -> None:
        """As `Workspace.close`."""
        published, store = self._published, self._store
        if published.refusal is not None:
            return
        self.checkpoints.end()
        with published.lock:
            try:
                if not store.failed:
                    self.write_image(workspace)
            finally:
                published.refusal = ClosedError(f"{self.path}: the workspace is closed: open it again")
                store.close()
                _log.info("%s: closed at version %d", self.path, store.number)


def read_with(
    path: Path, damaged: Damaged, understood: Callable[[FoundFolder], Made]
) -> tuple[FoundFolder, Made]:
    """What is in a folder, which another process may be changing, and what is made of it."""
    found = read_existing(path, damaged)
    while True:
        try:
            made = understood(found)
        except DamagedFolderError:
            before, found = found, read_existing(path, damaged)
            if found.manifest.number == before.manifest.number:
                raise
            continue  # a checkpoint was completed meanwhile, which deletes the files that it replaces
        warn_of(found)
        return found, made


def warn_of(found: FoundFolder, kept: Sequence[str] = ()) -> None:
    """Warn of what is in a folder and is no whole change; ``kept``: where it was set aside."""
    doubt = found.doubt(kept)
    if doubt:
        warn_caller(doubt, DamagedFolderWarning)
