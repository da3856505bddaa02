"""`KeptWorkspace`: a workspace in a folder of the driver, with an account of the batches that it has.

    <state>/workspace/      a folder as :mod:`maintenance` keeps it: relations, rules, journal, image
    <state>/told/           what the last batches changed (:mod:`spark_bridge.places.told_changes`)

Two relations beside those of the program, of names that no rule can write: what the state was made for, and
of each source the last batch and the version that it made.

Invariants

1. A batch and its number are one transaction: the journal's record of it decides.
2. A state is made when it has its account, which is loaded last.  What was begun before and not made is
   deleted by whoever opens it.
3. A process has a folder open once, and until it is closed; all who ask for it share it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from lftj.errors import ClosedError, FolderInUseError, StateError
from lftj.storage.relation import Relation
from maintenance import Workspace
from spark_bridge.places.told_changes import ToldChanges
from spark_bridge.state.manifest import StateManifest

ACCOUNT = "last batch of each source"
IDENTITY = "what the state is made for"

_ACCOUNT_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
    ]
)

_DELETED = "workspace-deleted"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptWorkspace:
    """``state_id``: of all versions of this state, and of no other's."""

    path: Path
    workspace: Workspace
    identity: Mapping[str, Any]
    state_id: str
    told: ToldChanges
    lock_file: int
    """The inode of the workspace's lock: another one is another folder at the path."""

    def manifest(self) -> StateManifest:
        """The version that there is, as a state in files would have it."""
        version = version_in(self.workspace)
        rows = self.workspace[ACCOUNT].table.to_pylist()
        applied = {row["source"]: row["batch"] for row in rows}
        batches = self.told.batches(version)
        streams = {name: state.moving for name, state in self.workspace.stream_states.items()}
        identity, path = dict(self.identity), str(self.path)
        return StateManifest(version, identity, {}, applied, {}, batches, self.state_id, streams, origin=path)


_open: dict[str, KeptWorkspace] = {}
"""Those of this process, by their real paths; whoever looks has the state's turn."""


def version_in(workspace: Workspace) -> int:
    """The version of a state, by its account."""
    return max(workspace[ACCOUNT].table["version"].to_pylist(), default=1)


def has_workspace(path: Path) -> bool:
    """Whether there is a state of the driver at a path, be it made or only begun."""
    return (path / "workspace" / "lock").exists()


def kept_at(path: Path) -> KeptWorkspace | None:
    """The state at a path; None where none was made.

    Raises StateError where another process has it, and what opening a workspace raises.
    """
    name = os.path.realpath(path)
    known = _open.get(name)
    if known is not None:
        with suppress(OSError):
            if os.stat(path / "workspace" / "lock").st_ino == known.lock_file:
                return known
        close_at(path)
    if not has_workspace(path):
        return None
    workspace = _opened(path)
    if ACCOUNT not in workspace.relations:
        workspace.close()
        _delete(path)
        return None
    return _taken(path, workspace)


def made_at(
    path: Path, identity: Mapping[str, Any], applied: Mapping[str, int], fill: Callable[[Workspace], None]
) -> KeptWorkspace:
    """A new state.

    ``fill``: loads the relations and installs the rules.  What it raises leaves nothing.
    """
    _sweep(path)
    workspace = _opened(path)
    try:
        fill(workspace)
        said = pa.table({"identity": [json.dumps(identity)], "state": [uuid4().hex]})
        workspace.add(Relation.from_table(IDENTITY, said, workspace.domains))
        rows = [{"source": source, "batch": batch, "version": 1} for source, batch in applied.items()]
        account = pa.Table.from_pylist(rows, _ACCOUNT_SCHEMA)
        workspace.add(Relation.from_table(ACCOUNT, account, workspace.domains, key=["source"]))
    except BaseException:
        with suppress(ClosedError):
            workspace.close()
        _delete(path)
        raise
    workspace.checkpoint()  # with an image: whoever opens it does not install the rules again
    return _taken(path, workspace)


def close_at(path: Path) -> None:
    """Close what this process has open at a path."""
    known = _open.pop(os.path.realpath(path), None)
    if known is not None:
        try:
            known.workspace.close()
        except (ClosedError, OSError) as error:
            _log.warning("%s: closed, but not tidied up: %s", path, error)


def delete_at(path: Path) -> None:
    """Close and delete a state, of which nothing is left then."""
    close_at(path)
    _delete(path)


def _sweep(path: Path) -> None:
    """Delete what a process was deleting that was stopped."""
    shutil.rmtree(path / _DELETED, ignore_errors=True)


def _opened(path: Path) -> Workspace:
    try:
        return Workspace.open(path / "workspace")
    except FolderInUseError as error:
        raise StateError(
            f"state path {str(path)!r} is in the driver of another process, and one at a time has it: close"
            f" it there, or give another state path ({error})"
        ) from None


def _taken(path: Path, workspace: Workspace) -> KeptWorkspace:
    (said,) = workspace[IDENTITY].table.to_pylist()
    lock = os.stat(path / "workspace" / "lock").st_ino
    identity = json.loads(said["identity"])
    kept = KeptWorkspace(path, workspace, identity, said["state"], ToldChanges(path / "told"), lock)
    _open[os.path.realpath(path)] = kept
    return kept


def _delete(path: Path) -> None:
    """Delete a workspace that nobody has open; one step takes its name, so that no part of one is opened."""
    _sweep(path)
    with suppress(OSError):
        (path / "workspace").rename(path / _DELETED)
    shutil.rmtree(path / "told", ignore_errors=True)
    _sweep(path)
    with suppress(OSError):
        path.rmdir()  # where it has something else, it stays
