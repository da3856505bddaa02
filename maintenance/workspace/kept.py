"""`Kept`: a workspace that is kept in a folder, as far as that is the workspace's own business.

Invariants

1. A workspace in a folder is as one in memory, but that each change of it is in the folder when the call
   that made it returns (:mod:`maintenance.workspace.published` says how it gets there).
2. What opening does, but for deleting what is not needed any more, changes nothing of what the folder says.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import pyarrow as pa

from lftj.errors import (
    ClosedError,
    DamagedFolderError,
    DamagedFolderWarning,
    DurabilityError,
    LftjError,
)
from lftj.language.diagnostics import warn_caller
from lftj.process.interrupts import interruptible
from maintenance.durable.entries import Loaded
from maintenance.durable.reading import Damaged, Found, read_existing
from maintenance.durable.store import CHECKPOINT_BYTES, INTERVAL, Store
from maintenance.durable.tail import Tail
from maintenance.store.disk import Disk
from maintenance.workspace.checkpoints import Checkpoints
from maintenance.workspace.copying import write_copy
from maintenance.workspace.feed import FEED_BYTES
from maintenance.workspace.followed import Followed, HeadChange
from maintenance.workspace.image_cache import drop_caches, read_cache, write_cache
from maintenance.workspace.past_changes import Empty
from maintenance.workspace.past_loads import Scratch, loaded_rows
from maintenance.workspace.published import Published
from maintenance.workspace.ready_kernels import load_for
from maintenance.workspace.recovery import Recoverable, Replay, rebuild

_log = logging.getLogger(__name__)

REFRESH_SECONDS = 0.1
"""Between two looks into the folder of another process."""


class Kept(Followed):
    """The part of `Workspace` that knows of folders."""

    _published: Published
    _checkpoints: Checkpoints | None = None
    _found_in: Path | None = None
    _tail: Tail | None = None
    _disk: ClassVar[Disk] = Disk()

    @classmethod
    @interruptible()
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        read_only: bool = False,
        durability: Literal["commit", "interval", "none"] = "commit",
        interval: float = INTERVAL,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
        feed_bytes: int = FEED_BYTES,
        sensitivity_bytes: int | None = None,
        record_gap: int | None = None,
        view_bytes: int | None = None,
        damaged: Damaged = "refuse",
        threads: int = 1,
        progress: bool = False,
    ) -> Self:
        """The workspace that is kept in a folder, as the last change left it; a new one where there is none.

        Every change of it, be it a commit, a load or an installed rule, is in the folder when the call that
        made it returns, and there again when the folder is opened again, whatever ended the process.

        ``durability``: ``"commit"``, each change is on disk when its call returns (threads that commit at the
        same time share one wait for the disk); ``"interval"``, it is after ``interval`` seconds at the
        latest; ``"none"``, when the system thinks fit.  Of the last two a crash of the machine takes the
        youngest changes; the end of the process alone takes nothing.
        ``read_only``: look at it, also while another process has it open, as it is now, and `refresh`
        shows what that has done since; nothing can be changed here.  ``checkpoint_bytes``: a journal
        that is longer, and longer than the data, is cut by a checkpoint, which is written beside the commits.
        ``feed_bytes``: of the journal that stay behind a checkpoint, for `changes_since` and
        `follow`.  ``sensitivity_bytes``, ``record_gap``, ``view_bytes``: as of a workspace in memory;
        they are kept, and stay where none is given.  ``damaged``: what becomes of a folder of which
        changes are damaged or gone, and so all behind them: ``"refuse"`` raises; ``"set aside"`` opens it at
        the version before them, what is behind it being kept in files ``damaged-...`` beside.
        ``threads`` and ``progress``: for installing the rules where no image can be used.

        Bytes behind the last change that a crash may have left, but damage as well, are set aside, too, and a
        DamagedFolderWarning names the version that is opened and the one that is known to have been there.

        Raises FolderInUseError, DamagedFolderError, and DurabilityError where the folder can't be used, was
        written by a newer version, or holds rules that can't be installed here, such as with an aggregate
        that is not registered.

        Examples:
            >>> import tempfile
            >>> from maintenance import Workspace
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     with Workspace.open(folder) as ws:
            ...         ws.load("edge", [(1, 2)], columns=["src", "dst"])
            ...         ws.install("back(b, a) <- edge(a, b).")
            ...         with ws.transaction() as tx:
            ...             tx.insert("edge", [(2, 3)])
            ...     with Workspace.open(folder, read_only=True) as ws:
            ...         sorted(ws["back"])
            [(2, 1), (3, 2)]
        """
        started = time.monotonic()
        place = Path(os.path.abspath(folder))
        given = {
            "sensitivity_bytes": sensitivity_bytes,
            "record_gap": record_gap,
            "view_bytes": view_bytes,
        }
        wanted = {name: value for name, value in given.items() if value is not None}
        if read_only:
            found, workspace = cls._read(place, damaged, wanted, threads, progress)
            workspace._tail = Tail(found) if found.files else None
            workspace._published.feed.feed_bytes = feed_bytes
            workspace._published.refusal = DurabilityError(f"{place}: it is open for reading only")
            return workspace
        store, found, workspace = Store.opened(
            place,
            cls._disk,
            lambda found: cls._recovered(found, wanted, threads, progress),
            durability,
            interval,
            wanted,
            feed_bytes,
            damaged,
        )
        try:
            workspace._published.feed.feed_bytes = feed_bytes
            workspace._keep_in(store, checkpoint_bytes)
            if any(store.contents.settings.get(name) != value for name, value in wanted.items()):
                drop_caches(place)
                store.contents.settings = {**store.contents.settings, **wanted}
                workspace._made_checkpoints.make()
        except BaseException:
            store.close()
            raise
        _log.info("%s: opened at version %d, %.2f s", place, store.number, time.monotonic() - started)
        _warn_of(found, store.aside)
        return workspace

    @classmethod
    def _read(
        cls, place: Path, damaged: Damaged, wanted: Mapping[str, Any], threads: int, progress: bool
    ) -> tuple[Found, Self]:
        """What is in a folder, which another process may be changing, and the workspace as it has it."""
        found = read_existing(place, damaged)
        while True:
            try:
                workspace = cls._recovered(found, wanted, threads, progress)
            except DamagedFolderError:
                before, found = found, read_existing(place, damaged)
                if found.manifest.number == before.manifest.number:
                    raise
                continue  # a checkpoint was completed meanwhile, which deletes the files that it replaces
            _warn_of(found)
            return found, workspace

    @classmethod
    def _recovered(cls, found: Found, wanted: Mapping[str, Any], threads: int, progress: bool) -> Self:
        """The workspace as a folder has it, in memory only."""
        made: Any
        settings = {**found.manifest.settings, **wanted}
        if settings == found.manifest.settings and (image := read_cache(found)) is not None:
            made, number = image
            if type(made) is cls:
                try:
                    with Replay(cast(Recoverable, made), found.folder) as replay:
                        for _, entry in found.entries(number):
                            replay.take(entry)
                    return made._at(found)
                except LftjError as error:
                    _log.warning("%s: the image can't be used: %s", found.folder, error)
        made = cls(**settings)
        rebuild(made, found, threads, progress)
        return cast(Self, made._at(found))

    def _at(self, found: Found) -> Self:
        """This, recovered from a folder, with the version that this has, and none of what came before."""
        load_for(self._published.state.heads.values())  # those of an image were not installed here
        self._found_in = found.folder
        self._published.begin(found.number, found.contents.definitions)
        return self

    @interruptible()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the workspace, as it is now, as a folder: for `open`, or `load_from`.

        It is there whole or not at all.  Commits of other threads go on meanwhile, and are not in it; its
        versions go on from the one that it has.  Raises DurabilityError where something is there already,
        where it can't be written, and for a program that has no text.
        """
        write_copy(self._disk, Path(os.path.abspath(path)), self._published.shown, self._settings)

    @classmethod
    @interruptible()
    def load_from(cls, path: str | os.PathLike[str], *, threads: int = 1, progress: bool = False) -> Self:
        """A workspace in memory, with all that a folder has, of which nothing is changed from then on.

        The folder is one of `save` or `open`; another process may have it open.  ``threads``,
        ``progress`` and what is raised: as of `open`.

        Examples:
            >>> import tempfile
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
            >>> ws.install("back(b, a) <- edge(a, b).")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     ws.save(f"{folder}/copy")
            ...     again = Workspace.load_from(f"{folder}/copy")
            >>> sorted(again["back"])
            [(2, 1)]
        """
        _, workspace = cls._read(Path(os.path.abspath(path)), "refuse", {}, threads, progress)
        workspace._found_in = None
        return workspace

    @property
    def _settings(self) -> Mapping[str, Any]:
        """Those of the workspace that hold for all heads."""
        raise NotImplementedError

    @interruptible()
    def refresh(self) -> int:
        """Take in what another process has done since, where the folder is open for reading.

        Returns the version that is there now.  A workspace that changes its folder itself, or is in memory,
        has all already.  Raises CursorError where the journal of what came since is not kept any more, and
        DurabilityError; then it shows what it has shown, and the folder has to be opened again.
        """
        published = self._published
        if self._tail is not None:
            with published.lock:
                refusal, published.refusal = published.refusal, None
                try:
                    self._take_in(self._tail)
                finally:
                    published.refusal = refusal
        return published.shown.number

    def _take_in(self, tail: Tail) -> None:
        """What came behind the end that was read last, commit by commit, as far as it is not here already."""
        published = self._published
        entries, end = tail.read()
        for number, entry in entries:
            if number > published.state.number:
                rows = partial(self._loaded_rows, number)
                with Replay(cast(Recoverable, self), tail.folder, rows) as replay:
                    replay.take(entry)
                published.renumber(number)
        self._tail = end
        published.feed.wake()

    def _loaded_rows(self, number: int, loaded: Loaded) -> pa.Table:
        assert self._found_in is not None
        return loaded_rows(cast(Scratch, self._empty()), self._found_in, loaded, number)

    def _commits_behind(self, head: str, version: int) -> tuple[Iterator[HeadChange], int]:
        self.refresh()
        return super()._commits_behind(head, version)

    def _wait(self, version: int, seconds: float) -> bool:
        store = self._published.store
        if store is not None and store.failed:
            store.refuse_closed()
        return super()._wait(version, seconds if self._tail is None else min(seconds, REFRESH_SECONDS))

    @property
    def _read_folder(self) -> Path | None:
        return self._found_in

    def _empty(self) -> Empty:
        return cast(Empty, type(self)())

    def _keep_in(self, store: Store, checkpoint_bytes: int) -> None:
        """From now on changes go to a folder, which says what is here."""
        published = self._published
        self._checkpoints = Checkpoints(published, store, checkpoint_bytes)
        published.store, published.grown = store, self._checkpoints.make_when_grown

    @property
    def folder(self) -> Path | None:
        """Where the workspace is kept; None for one in memory."""
        return None if self._published.store is None else self._published.store.folder

    @interruptible()
    def checkpoint(self) -> None:
        """Write what changed to files of data, and an image of the engine, and begin a new journal.

        Opening is quick after it.  Commits of other threads go on while the data are written, and wait for
        the image.  Raises DurabilityError, and then the folder says what it said; ClosedError.
        """
        self._made_checkpoints.make()
        self._write_image()

    @interruptible()
    def compact(self) -> None:
        """Make the workspace small: in memory, and, where it has a folder, there, by a checkpoint.

        What changes have left in runs is merged into the base of each index, dictionaries give back the
        values that nobody holds.  Other threads wait meanwhile.  Cost: one pass over all that is in memory,
        and a checkpoint with an image.  Raises as `checkpoint`, and ClosedError.
        """
        published = self._published
        if published.refusal is not None:
            published.changeable()
        published.compact()
        if published.store is not None:
            self.checkpoint()

    def close(self) -> None:
        """Bring all changes to the disk, write an image of the engine, and let others open the folder.

        Nothing can be changed any more; what is there can still be read, and whoever follows a head gets what
        there is.  A workspace that is closed, or in memory only, stays as it is otherwise.  Raises
        ClosedError if the disk fails.
        """
        self._published.feed.close()
        published, store = self._published, self._published.store
        if store is None or published.refusal is not None:
            return
        if self._checkpoints is not None:
            self._checkpoints.end()
        with published.lock:
            try:
                if not store.failed:
                    self._write_image()
            finally:
                published.refusal = ClosedError(f"{store.folder}: the workspace is closed: open it again")
                store.close()
                _log.info("%s: closed at version %d", store.folder, store.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def _made_checkpoints(self) -> Checkpoints:
        if self._checkpoints is None:
            raise DurabilityError(
                "the workspace is in memory only: Workspace.open(folder) gives one in a folder"
            )
        return self._checkpoints

    def _write_image(self) -> None:
        published, store = self._published, self._published.store
        assert store is not None
        with published.paused():
            published.wait(store.number)
            store.sync()  # what an image is of is known to have been there
            write_cache(self, store.folder, store.number, store.chain)


def _warn_of(found: Found, kept: Sequence[str] = ()) -> None:
    """Warn of what is in a folder and is no whole change; ``kept``: where it was set aside."""
    doubt = found.doubt(kept)
    if doubt:
        warn_caller(doubt, DamagedFolderWarning)
