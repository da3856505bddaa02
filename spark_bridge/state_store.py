"""The state of a maintained join: data files and versioned manifests below one path.

    <path>/manifest-000000000007.json                 one version (:mod:`spark_bridge.manifest`)
    <path>/manifest-000000000008.json.<uuid>.tmp      a commit in progress, or what a killed one left
    <path>/data/<token>/<kind>-<partition>-<uuid>     Arrow IPC, or bytes; a token names one try of a batch

Workers write data files, the driver commits manifests.

Invariants

1. A data file is written once, under a name that is never used again, and is
   complete before a manifest names it: it needs no renaming, and what is
   mapped into memory doesn't change.
2. A manifest gets its name when it is complete.  Where moving is copying, one
   that was cut short has its temporary file beside it still.  Cut short and
   without it, a manifest was damaged later, and is refused: to go on from an
   older version would lose batches that the source never sends again.
3. Versions grow: one that is not above all others is refused.  So of two
   applications on one path the slower one fails at its next commit (where
   moving replaces, as in object stores, unless both commit in the same moment).
4. ``clean`` deletes only files with names of these forms, so a path that holds
   something else, too, keeps it.

The state survives the death of any process at any moment.

Cost: ``newest`` one listing, without the data files, and one file; ``clean`` a listing of everything and the
manifests that it keeps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Set
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs, ipc

from lftj.errors import StateError
from spark_bridge.fault_points import reached
from spark_bridge.manifest import Manifest, is_cut_short, manifest_of
from spark_bridge.state_path import StatePath

MOST_VERSIONS = 10**12

_MANIFEST = re.compile(r"manifest-([0-9]{12})\.json(\.[0-9a-f]{32}\.tmp)?")
_PART = re.compile(r"(?!\.)[A-Za-z0-9_.=+-]+")
_DATA = re.compile(rf"data/{_PART.pattern}/{_PART.pattern}-[0-9a-f]{{32}}")


class _Manifests(NamedTuple):
    """What is there: versions of complete manifests, newest first, of others, and names of temporaries."""

    complete: list[int]
    cut_short: list[int]
    temporaries: list[str]


class StateStore:
    """The state at a path: a local folder, or a URI such as ``hdfs://``.  It can be pickled.

    Every method that reaches the path raises StateError, which names the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     store = StateStore(path)
    ...     name = store.new_name("batch-1", "snapshot", "0")
    ...     store.write_table(name, pa.table({"a": [1, 2]}))
    ...     store.commit(Manifest(1, {}, {}, {"clicks": 1}, {}, ()))
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
        probe = _temporary_name(0)
        self._path.write(probe, b"")
        self._path.delete(probe)

    def newest(self) -> Manifest | None:
        """The manifest with the highest version; None if there is none."""
        complete = self._manifests().complete
        return self._manifest(complete[0]) if complete else None

    def commit(self, manifest: Manifest) -> None:
        """Make a version the newest; whoever looks sees all of it or nothing.

        Raises StateError when this version or a later one is there: another application uses the path.
        """
        name, data = _manifest_name(manifest.version), manifest.to_bytes()
        complete, cut_short, _ = self._manifests()
        if complete and complete[0] >= manifest.version:
            raise self._overtaken(manifest.version, complete[0])
        reached("commit: before the manifest is written")
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

    def clean(self, kept: int, protect: Set[str] = frozenset()) -> int:
        """Delete all versions but the newest ``kept``, then every data file that none of these names.

        Files of the tokens in ``protect`` stay: those of batches in progress, which no manifest names yet.
        Returns the number of files deleted.  To be called after a commit of one's own: with another
        application's batch in progress, its files would go.
        """
        if kept < 1:
            raise ValueError(f"at least the newest version is kept, not {kept}")
        complete, cut_short, temporaries = self._manifests()
        # Read before anything is deleted: a damaged one stops the cleaning.
        named = {file for version in complete[:kept] for file in self._manifest(version).files()}
        outdated = [_manifest_name(version) for version in (*reversed(complete[kept:]), *cut_short)]
        # Temporaries last, for they tell which manifests are cut short.
        deleted = sum(self._path.delete(name) for name in (*outdated, *temporaries))
        reached("clean: manifests deleted, data not")
        return deleted + self._clean_data(named, protect)

    def drop(self, token: str) -> None:
        """Delete everything below ``data/<token>/``: the files of a batch that was refused."""
        self._path.delete_folder(f"data/{_checked(token)}")

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

    def open_output(self, name: str) -> pa.NativeFile:
        """A binary stream; the file is complete when it is closed.  Writing to it raises OSError."""
        return self._path.output(self._data_name(name))

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

    def _manifests(self) -> _Manifests:
        files = [name for name, kind in self._path.listing() if kind == fs.FileType.File]
        found = [match for match in map(_MANIFEST.fullmatch, files) if match]
        versions = {int(match[1]) for match in found if not match[2]}
        perhaps = versions & {int(match[1]) for match in found if match[2]}
        cut_short = {version for version in perhaps if is_cut_short(self._path.read(_manifest_name(version)))}
        temporaries = [match[0] for match in found if match[2]]
        return _Manifests(sorted(versions - cut_short, reverse=True), sorted(cut_short), temporaries)

    def _manifest(self, version: int) -> Manifest:
        name = _manifest_name(version)
        manifest = manifest_of(self._path.read(name), self._path.full(name), self._path.shown)
        if manifest.version != version:
            raise StateError(
                f"{self._path.full(name)}: this is the manifest of version {manifest.version}:"
                " give it back its name"
            )
        return manifest

    def _overtaken(self, version: int, newest: int) -> StateError:
        return StateError(
            f"state path {self._path.shown!r} has version {newest} already, so version {version} can't"
            " follow: another application uses this path; stop one of the two, or give it another state path"
            " and checkpoint"
        )

    def _clean_data(self, named: Set[str], protect: Set[str]) -> int:
        """Delete data files that are neither named nor protected, and tokens' folders that are then empty."""
        deleted, folders, used = 0, set(), set()
        for inside, kind in self._path.listing("data", recursive=True):
            name, token = f"data/{inside}", inside.partition("/")[0]
            folders.add(token)
            if kind == fs.FileType.Directory:
                continue
            if name in named or token in protect or not _DATA.fullmatch(name):
                used.add(token)
            else:
                deleted += self._path.delete(name)
        for token in sorted(folders - used - protect):
            self._path.delete_folder(f"data/{token}")
        return deleted


def token_of(name: str) -> str:
    """The token of the try that wrote a data file.

    >>> token_of("data/batch-1/snapshot-0-5f1d")
    'batch-1'
    """
    return name.split("/")[1]


def _manifest_name(version: int) -> str:
    if not 0 <= version < MOST_VERSIONS:
        raise ValueError(f"a version is a number from 0 to below 10**12, not {version}")
    return f"manifest-{version:012d}.json"


def _temporary_name(version: int) -> str:
    return f"{_manifest_name(version)}.{uuid4().hex}.tmp"


def _checked(part: str) -> str:
    if not _PART.fullmatch(part):
        raise ValueError(
            f"{part!r} can't be in a file name: letters, digits and '_ . = + -' can, '.' not first"
        )
    return part
