"""The state of a maintained join: data files and versioned manifests below one path.

    <path>/manifest-000000000007.json                 one version (:mod:`spark_bridge.state.manifest`)
    <path>/manifest-000000000008.json.<uuid>.tmp      a commit in progress, or what a killed one left
    <path>/data/<token>/<kind>-<partition>-<uuid>     Arrow IPC, or bytes
    <path>/running-<token>                            a try of a batch that is not over

Workers write data files, the driver commits manifests.  A token, ``batch<version>-<uuid>``, names one try of
a batch, which is to make that version.

Invariants

1. A data file is written once, under a name that is never used again, and is
   complete before a manifest names it: it needs no renaming, and what is
   mapped into memory doesn't change.
2. A manifest gets its name when it is complete.  Where moving is copying, one
   that was cut short has its temporary file beside it still.  Cut short and
   without it, a manifest was damaged later, and is refused: to go on from an
   older version would lose batches that the source never sends again.
3. Versions grow: one that is not above all others is refused.  So of two
   applications on one path the slower one fails at its next commit, also when both
   commit in the same moment (but on object stores other than S3: there moving replaces).
4. ``clean`` deletes only files with names of these forms, so a path that holds
   something else, too, keeps it.
5. What a failed try wrote goes, however late a task of it writes.  A try is
   over when its marker ``running-<token>`` is gone: who ends it removes the
   marker first, then the files, and a task looks for the marker when it has
   written, and removes its own files if that is gone (:mod:`spark_bridge.state.task_files`).  The
   token's folder is made with the marker, and by nothing else: on file systems
   that have folders nothing can be written into one that was dropped, so that
   there a task may even be killed between writing and looking.
6. What a try left whose driver died, too, is swept when it can't be committed
   any more: when there is a manifest of its version or a later one (3), none of
   which names it.  Until then it may be in progress somewhere, and is not touched.

The state survives the death of any process at any moment, and on a local path that of the machine.

7. On a local path what a manifest names is on disk before it is, and it is when ``commit`` returns: each file
   when it is closed, the names of a try's files by one sync of its folder.

Cost: ``newest`` and ``sweep`` one listing, without the data files, and one file; ``clean`` a listing of
everything and the manifests that it keeps; on a local path one sync for each file, by who writes it, and
four of each commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Set
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs, ipc

from lftj.errors import StateError
from maintenance.store.fault_points import reached
from maintenance.store.new_file import NewFile
from maintenance.store.numbered import Numbered
from maintenance.store.path import StatePath
from spark_bridge.state.manifest import StateManifest, is_cut_short, manifest_of

MANIFESTS = Numbered("manifest-", 12, ".json", r"\.[0-9a-f]{32}\.tmp")
"""Names of manifests, by their versions."""

_PART = re.compile(r"(?!\.)[A-Za-z0-9_.=+-]+")
_DATA = re.compile(rf"data/{_PART.pattern}/{_PART.pattern}-[0-9a-f]{{32}}")
_TOKEN = re.compile(r"batch([0-9]{1,12})-[0-9a-f]{32}")
_MARKER = re.compile(rf"running-({_TOKEN.pattern})")


class _Listing(NamedTuple):
    """What is there: versions of complete manifests, newest first, of others, names of temporaries, tokens
    of tries that are marked as running."""

    complete: list[int]
    cut_short: list[int]
    temporaries: list[str]
    running: list[str]

    @property
    def newest(self) -> int:
        return self.complete[0] if self.complete else 0


class StateStore:
    """The state at a path: a local folder, or a URI such as ``hdfs://``.  It can be pickled.

    Every method that reaches the path raises StateError, which names the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     store = StateStore(path)
    ...     token = store.begin(1)
    ...     name = store.new_name(token, "snapshot", "0")
    ...     store.write_table(name, pa.table({"a": [1, 2]}))
    ...     store.commit(StateManifest(1, {}, {}, {"clicks": 1}, {}, ()))
    ...     store.end(token)
    ...     store.newest().applied, store.read_table(name).to_pydict(), store.clean(1)
    ({'clicks': 1}, {'a': [1, 2]}, 1)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = StatePath(path)

    @property
    def path(self) -> str:
        """The path as it was given, made absolute if it is local."""
        return self._path.text

    def __repr__(self) -> str:
        return f"StateStore({self._path.shown!r})"

    # -- manifests ------------------------------------------------------------

    def create(self) -> None:
        """Make the path and a file there, and delete the file: a wrong path fails before the first job."""
        self._path.prepare_names()
        probe = _temporary_name(0)
        self._path.write(probe, b"")
        self._path.delete(probe)
        with suppress(StateError):  # a folder that can't be read can't be synced either
            self._path.sync_folders([".."])

    def newest(self) -> StateManifest | None:
        """The manifest with the highest version; None if there is none."""
        complete = self._listing().complete
        return self._manifest(complete[0]) if complete else None

    def commit(self, manifest: StateManifest) -> None:
        """Make a version the newest; whoever looks sees all of it or nothing.

        Raises StateError when this version or a later one is there: another application uses the path.
        """
        name, data = MANIFESTS.name(manifest.version), manifest.to_bytes()
        cut_short = self.refuse_overtaken(manifest.version).cut_short
        reached("commit: before the manifest is written")
        self._sync_names(manifest)
        temporary = _temporary_name(manifest.version)
        self._path.write(temporary, data)
        reached("commit: manifest written, not moved")
        if manifest.version in cut_short:
            self._path.delete(name)
        if not self._path.name_at_last(temporary, name):
            with suppress(StateError):
                self._path.delete(temporary)
            raise self._overtaken(manifest.version, manifest.version)
        reached("commit: manifest moved")

    def refuse_overtaken(self, version: int) -> _Listing:
        """Raise StateError if a version or a later one is there: another application uses the path."""
        listing = self._listing()
        if listing.newest >= version:
            raise self._overtaken(version, listing.newest)
        return listing

    def clean(self, kept: int) -> int:
        """Delete all versions but the newest ``kept``, then every data file that none of these names.

        Files of tries stay that are to make a version after the newest: these may be in progress, and no
        manifest names them yet.  Returns the number of files deleted.
        """
        if kept < 1:
            raise ValueError(f"at least the newest version is kept, not {kept}")
        self.sweep()
        listing = self._listing()
        # Read before anything is deleted: a damaged one stops the cleaning.
        named = {file for version in listing.complete[:kept] for file in self._manifest(version).files()}
        outdated = (*reversed(listing.complete[kept:]), *listing.cut_short)
        # Temporaries last, for they tell which manifests are cut short.
        names = (*map(MANIFESTS.name, outdated), *listing.temporaries)
        deleted = sum(self._path.delete(name) for name in names)
        reached("clean: manifests deleted, data not")
        return deleted + self._clean_data(named, listing.newest)

    # -- tries of batches -----------------------------------------------------

    def begin(self, version: int) -> str:
        """Begin a try of a batch that is to make a version; returns its token, below which files can be
        written from now on."""
        self._path.prepare_names()
        token = f"batch{version}-{uuid4().hex}"
        self._path.write(_marker_name(token), b"")
        self._path.make_folder(f"data/{token}")
        return token

    def is_running(self, token: str) -> bool:
        """Whether a try is not over."""
        return self._path.is_file(_marker_name(token))

    def end(self, token: str) -> None:
        """Say that a try is over: what a task of it writes from now on, the task removes."""
        self._path.delete(_marker_name(token))

    def drop(self, token: str) -> None:
        """End a try, and delete what it wrote unless it was committed after all."""
        self.end(token)
        version = _version_of(token)
        committed = [self._manifest(number) for number in self._listing().complete if number >= version]
        if token not in {token_of(file) for manifest in committed for file in manifest.files()}:
            self._path.delete_folder(f"data/{token}")

    def sweep(self) -> None:
        """Drop tries that were left by their drivers, as far as they can't be in progress any more."""
        listing = self._listing()
        for token in listing.running:
            if _version_of(token) <= listing.newest:
                self.drop(token)

    # -- data files -----------------------------------------------------------

    def new_name(self, token: str, kind: str, partition: str) -> str:
        """The name of a data file to come.  Its three parts are of letters, digits and ``_ . = + -``."""
        return f"data/{_checked(token)}/{_checked(kind)}-{_checked(partition)}-{uuid4().hex}"

    def write_table(self, name: str, table: pa.Table | pa.RecordBatch) -> None:
        """Write an Arrow IPC file."""
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        table = table.unify_dictionaries()  # a file has one dictionary for a column, not one for a chunk
        with (
            self._path.writing(name),
            self.open_output(name) as stream,
            ipc.new_file(stream, table.schema) as file,
        ):
            file.write_table(table)

    def read_table(self, name: str) -> pa.Table:
        """A file's table.  Where it is local its columns are mapped, and read as they are touched."""
        with self._path.reading(name), self._path.input(self._data_name(name)) as stream:
            return ipc.open_file(stream).read_all()

    def read_batch(self, name: str, number: int) -> pa.RecordBatch:
        """One record batch of a file, by number; the others are not read."""
        with self._path.reading(name), self._path.input(self._data_name(name)) as stream:
            return ipc.open_file(stream).get_batch(number)

    def nbytes(self, names: Iterable[str]) -> int:
        """The bytes of data files together; of one that is gone none."""
        return self._path.nbytes([self._data_name(name) for name in names])

    def open_output(self, name: str) -> NewFile | pa.NativeFile:
        """A binary stream; the file is complete when it is closed.  Writing to it raises OSError.

        The token has begun: its folder is not made anew when it was dropped.
        """
        return self._path.output(self._data_name(name))

    def delete(self, name: str) -> None:
        """Delete a data file, if it is there."""
        self._path.delete(self._data_name(name))

    def read_buffer(self, name: str) -> pa.Buffer:
        """A file's bytes, mapped where it is local; whether they are all there, their reader has to see."""
        with self._path.reading(name), self._path.input(self._data_name(name)) as stream:
            return stream.read_buffer()

    def _data_name(self, name: str) -> str:
        """The name, if it is a data file's: one out of a manifest can't lead elsewhere."""
        if not _DATA.fullmatch(name):
            raise StateError(
                f"{self._path.full(name)}: no data file has such a name: use StateStore.new_name"
            )
        return name

    # -- how they are found ---------------------------------------------------

    def _listing(self) -> _Listing:
        files = [name for name, kind in self._path.listing() if kind == fs.FileType.File]
        versions = {number for number in map(MANIFESTS.number, files) if number is not None}
        begun = {name: MANIFESTS.number_of_part(name) for name in files}
        perhaps = versions.intersection(begun.values())
        cut_short = {version for version in perhaps if is_cut_short(self._path.read(MANIFESTS.name(version)))}
        temporaries = [name for name, number in begun.items() if number is not None]
        running = [match[1] for match in map(_MARKER.fullmatch, files) if match]
        return _Listing(sorted(versions - cut_short, reverse=True), sorted(cut_short), temporaries, running)

    def _manifest(self, version: int) -> StateManifest:
        name = MANIFESTS.name(version)
        manifest = manifest_of(self._path.read(name), self._path.full(name), self._path.shown)
        if manifest.version != version:
            raise StateError(
                f"{self._path.full(name)}: this is the manifest of version {manifest.version}:"
                " give it back its name"
            )
        return manifest

    def _sync_names(self, manifest: StateManifest) -> None:
        """See that the names of the files that a version adds are on disk."""
        tokens = {token_of(file) for file in manifest.files()}
        added = [token for token in tokens if _version_of(token) == manifest.version]
        if added:
            self._path.sync_folders([*(f"data/{token}" for token in sorted(added)), "data"])

    def _overtaken(self, version: int, newest: int) -> StateError:
        return StateError(
            f"state path {self._path.shown!r} has version {newest} already, so version {version} can't"
            " follow: another application uses this path; stop one of the two, or give it another state path"
            " and checkpoint"
        )

    def _clean_data(self, named: Set[str], newest: int) -> int:
        """Delete data files that are not named, and tokens' folders that are then empty, but none of tries
        of later versions than the newest."""
        deleted, folders, used = 0, set(), set()
        for inside, kind in self._path.listing("data", recursive=True):
            name, token = f"data/{inside}", inside.partition("/")[0]
            folders.add(token)
            if _version_of(token) > newest:
                used.add(token)
            elif kind != fs.FileType.Directory:
                if name in named or not _DATA.fullmatch(name):
                    used.add(token)
                else:
                    deleted += self._path.delete(name)
        for token in sorted(folders - used):
            self._path.delete_folder(f"data/{token}")
        return deleted


def token_of(name: str) -> str:
    """The token of the try that wrote a data file.

    >>> token_of("data/batch-1/snapshot-0-5f1d")
    'batch-1'
    """
    return name.split("/")[1]


def _version_of(token: str) -> int:
    """The version that a try is to make; 0 if the token is of another form, so that no try has it."""
    match = _TOKEN.fullmatch(token)
    return int(match[1]) if match else 0


def _marker_name(token: str) -> str:
    return f"running-{_checked(token)}"


def _temporary_name(version: int) -> str:
    return f"{MANIFESTS.name(version)}.{uuid4().hex}.tmp"


def _checked(part: str) -> str:
    if not _PART.fullmatch(part):
        raise ValueError(
            f"{part!r} can't be in a file name: letters, digits and '_ . = + -' can, '.' not first"
        )
    return part
