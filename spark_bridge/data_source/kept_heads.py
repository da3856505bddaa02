"""`kept_head`: a head that is kept at a path, read beside whoever keeps it.

    a state on the executors   files of its newest manifest, a part each           version: of the state
    a state in the driver      the workspace, in one part; told changes            version: of the state
    a workspace in a folder    the same; changes by its journal                    version: of the workspace

Invariants

1. Nothing is written, and no lock taken.
2. Changes behind one version up to another are the same whenever they are asked for, or an error.

Cost: a workspace is opened by each process that reads it, from its image; files of a state are mapped.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from lftj.errors import CursorError, SourceError, StateError
from maintenance import Workspace
from spark_bridge.places.kept_workspace import IDENTITY, has_workspace, version_in
from spark_bridge.places.told_changes import ToldChanges
from spark_bridge.stages.state_versions import KEPT_BATCHES
from spark_bridge.state.frames import head_rows
from spark_bridge.state.manifest import Batch, PartitionState
from spark_bridge.state.store import StateStore

Batches = Iterator[pa.RecordBatch]

BATCH_ROWS = 1 << 16


class KeptHead(ABC):
    """A head at a path, as it was when it was looked at last.

    A *part* is what one task reads: it can be pickled, and another process's head of the same path reads it.
    """

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Of its rows, without weights."""

    @abstractmethod
    def look(self) -> int:
        """Look what is there now; its version."""

    @abstractmethod
    def whole(self) -> Sequence[Any]:
        """The parts of all rows."""

    @abstractmethod
    def changes(self, since: int, until: int) -> Sequence[Any]:
        """The parts of what changed behind a version, up to one.

        Raises StateError and CursorError where that is not known any more, or not yet.
        """

    @abstractmethod
    def rows(self, part: Any) -> Batches:
        """The rows of a part of the whole."""

    @abstractmethod
    def changed_rows(self, part: Any) -> Batches:
        """The rows of a part of changes, with their weights behind."""


def kept_head(path: str, head: str | None) -> KeptHead:
    """The head at a path.  ``head``: its name, which a workspace needs.

    Raises StateError where there is none, and SourceError for a name that is missing, or another head's.
    """
    if "://" not in path:
        folder = Path(os.path.abspath(path))
        if has_workspace(folder):
            return DriverHead(folder, head)
        if (folder / "lock").exists():
            return WorkspaceHead(folder, head)
    return ExecutorHead(path, head)


class ExecutorHead(KeptHead):
    """Of a state in files of many partitions."""

    def __init__(self, path: str, head: str | None) -> None:
        self._store = StateStore(path)
        self.look()
        self._head, self._other = _chosen(path, head, self._manifest.identity)

    def look(self) -> int:
        newest = self._store.newest()
        if newest is None:
            raise StateError(f"{self._store.path}: there is no state, and no workspace")
        self._manifest = newest
        return newest.version

    @cached_property
    def schema(self) -> pa.Schema:
        """By the file of one partition."""
        name = self.whole()[0].head
        assert name is not None
        return self._store.read_table(name).schema

    def whole(self) -> Sequence[PartitionState]:
        stages = self._manifest.placement.get("results", {self._head: ""})
        prefix = f"{stages[self._head]}-" if len(stages) > 1 else ""
        found = sorted(self._manifest.partitions.items())
        return [state for name, state in found if name.startswith(prefix) and state.head is not None]

    def changes(self, since: int, until: int) -> Sequence[str]:
        newest = self._manifest
        return _told(self._store.path, newest.version, newest.batches, since, until, self._other)

    def rows(self, part: PartitionState) -> Batches:
        yield from head_rows(self._store, self.schema, [part])

    def changed_rows(self, part: str) -> Batches:
        yield from self._store.read_table(part).to_batches(max_chunksize=BATCH_ROWS)


class WorkspaceHead(KeptHead):
    """Of a workspace in a folder, which another process may have."""

    def __init__(self, folder: Path, head: str | None) -> None:
        self._folder = folder
        self._workspace = self._opened()
        self._head = self._head_of(head)
        self._workspace[self._head]  # raises for one that is not there

    def _opened(self) -> Workspace:
        return Workspace.open(self._folder, read_only=True)

    def _head_of(self, asked: str | None) -> str:
        if asked is None:
            known = ", ".join(self._workspace.heads)
            raise SourceError(f"{self._folder}: it has the heads {known}: say which by the option head")
        return asked

    @property
    def schema(self) -> pa.Schema:
        return self._workspace[self._head].table.schema

    def look(self) -> int:
        try:
            return self._workspace.refresh()
        except CursorError:  # it has gone on by more than its journal has
            self._workspace = self._opened()
            return self._workspace.version

    def whole(self) -> Sequence[Any]:
        return [self._head]

    def rows(self, part: Any) -> Batches:
        yield from self._workspace[self._head].table.to_batches(max_chunksize=BATCH_ROWS)

    def changes(self, since: int, until: int) -> Sequence[Any]:
        self._workspace.follow(self._head, since, timeout=0)  # raises for a version that is none
        return [(since, until)] if since < until else []

    def changed_rows(self, part: Any) -> Batches:
        since, until = part
        for change in self._workspace.follow(self._head, since, timeout=0):
            if change.version > until:
                return
            yield from change.table.to_batches(max_chunksize=BATCH_ROWS)


class DriverHead(WorkspaceHead):
    """Of a state in the driver: its workspace, and what its last batches changed."""

    def __init__(self, path: Path, head: str | None) -> None:
        self._path, self._last = path, ToldChanges(path / "told")
        super().__init__(path / "workspace", head)

    def _head_of(self, asked: str | None) -> str:
        (said,) = self._workspace[IDENTITY].table.to_pylist()
        head, self._other = _chosen(str(self._path), asked, json.loads(said["identity"]))
        return head

    def look(self) -> int:
        super().look()
        return version_in(self._workspace)

    def changes(self, since: int, until: int) -> Sequence[Any]:
        version = version_in(self._workspace)
        batches = self._last.batches(version)
        return _told(str(self._path), version, batches, since, until, self._other)

    def changed_rows(self, part: Any) -> Batches:
        yield from self._last.read_table(part).to_batches(max_chunksize=BATCH_ROWS)


def _chosen(path: str, asked: str | None, identity: Mapping[str, Any]) -> tuple[str, str | None]:
    """A result of a state, and as which its changes are told apart.  Raises SourceError."""
    first, others = identity["head"], identity.get("others", [])
    if asked in (None, first):
        return first, None
    if asked not in others:
        its = f"its heads are {', '.join([first, *others])}" if others else f"its head is {first!r}"
        raise SourceError(f"{path}: {its}, not {asked!r}")
    return str(asked), asked


def _told(
    path: str,
    version: int,
    batches: Sequence[Batch],
    since: int,
    until: int,
    other: str | None,
) -> list[str]:
    """The files of changes behind a version, up to one, of a state that is at ``version``."""
    if not max(version - KEPT_BATCHES, 1) <= since <= version:
        raise StateError(
            f"{path}: changes since version {since} are not there: it is at version {version}, and has those"
            f" of its last {KEPT_BATCHES} versions: read the head whole, and go on from there"
        )
    return [name for batch in batches if since < batch.version <= until for name in batch.changes_of(other)]
