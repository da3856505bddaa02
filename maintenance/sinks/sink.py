"""`Sink`: the protocol by which a head is kept elsewhere, from version to version.

    for change in sink.push(ws):        each is there: change.version, change.table

Invariants

1. A target says itself which version of the head it holds, in the step that writes the rows: what was written
   is not written again.  Where a target can't, its class says so.
2. A target belongs to one workspace, by an identifier that is kept in it: another one is refused, and so is a
   target that is ahead, as where the workspace was put back from a copy.
3. A target begins with all rows of the head, and so does one for whose version the changes are not kept.

Cost: of changes that wait together one step, where the target does not want each by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import pyarrow as pa

from lftj.errors import CursorError, SinkError
from maintenance.changes.labels import label_beside
from maintenance.sources.cursor import Cursor
from maintenance.store.fault_points import reached
from maintenance.workspace.follower import Following, HeadChange
from maintenance.workspace.workspace import Workspace


class Target(Protocol):
    """Where a sink writes, while it is open.  ``version``: which it holds; None where it is empty."""

    @property
    def version(self) -> int | None: ...

    def begin(self, all_rows: HeadChange) -> None:
        """Hold these rows, all of which come, in place of what is there."""

    def add(self, change: HeadChange) -> None:
        """Go on to a later version."""


class Sink(ABC):
    """Something outside that holds a head.

    ``name``: of the sink; each of a workspace has another.  ``wants_each``: whether it takes each commit by
    itself, or what they come to where several wait.  ``begins_anew``: whether its rows can take the place of
    others.
    """

    wants_each = begins_anew = False

    def __init__(self, head: str, name: str) -> None:
        self.head, self.name = head, name
        self._following: Following | None = None
        self._caught_up: int | None = None  # with what happened before it was followed
        self._is_stopped = False

    def push(self, workspace: Workspace, *, timeout: float | None = None) -> Iterator[HeadChange]:
        """Write what has changed since, and what changes; each change is there when it is given.

        ``timeout``: seconds after which the loop ends when nothing changes; None: never, 0: when all is
        written that there is.  Raises UnknownRelationError, SinkAwayError for a target that does not answer,
        and SinkError for one that can't be written, or holds another workspace's rows; the next push goes on
        behind what was written.
        """
        cursor = Cursor(workspace, self.name)
        with self._opened(workspace, cursor.identifier(workspace), cursor) as target:
            version = target.version
            if version is not None and version > workspace.version:
                raise SinkError(
                    f"sink {self.name!r}: it holds version {version}, and the workspace is at"
                    f" {workspace.version}: it was put back from a copy: {self._way_out}"
                )
            if version is None:
                yield self._begun(workspace, target)
            while not self._is_stopped:
                try:
                    yield from self._followed(workspace, target, timeout)
                    return
                except CursorError:
                    if not self.begins_anew:
                        raise SinkError(
                            f"sink {self.name!r}: the changes behind version {target.version} are not kept"
                            f" any more: {self._way_out}"
                        ) from None
                yield self._begun(workspace, target)

    def stop(self) -> None:
        """End the loops over `push` behind a change, those of later ones too; also from another thread."""
        self._is_stopped = True
        if (following := self._following) is not None:
            following.close()

    @property
    def version(self) -> int | None:
        """Up to which all is written, while it is followed, or None; also for other threads."""
        following = self._following
        return self._caught_up if following is None else following.version

    @abstractmethod
    def _opened(
        self, workspace: Workspace, identifier: str, cursor: Cursor
    ) -> AbstractContextManager[Target]:
        """The target.  Raises SinkError where it is of a workspace with another identifier."""

    @property
    @abstractmethod
    def _way_out(self) -> str:
        """What to do with a target that can't be gone on with."""

    def _begun(self, workspace: Workspace, target: Target) -> HeadChange:
        workspace.version  # noqa: B018  from here on changes are kept
        snapshot = workspace.snapshot()
        rows = snapshot[self.head].to_arrow()
        weight = label_beside("weight", rows.column_names)
        table = rows.append_column(weight, pa.array(np.ones(rows.num_rows, np.int64)))
        change = HeadChange(self.head, snapshot.version, table)
        reached("sink: rows read, not written")
        target.begin(change)
        reached("sink: written, not told")
        return change

    def _followed(self, workspace: Workspace, target: Target, timeout: float | None) -> Iterator[HeadChange]:
        """What happens behind the target's version.  Raises CursorError where that is not kept."""
        version = target.version
        assert version is not None
        if not self.wants_each:  # of what happened before now once what it comes to, and not each commit, too
            change = workspace.changes_since(version, self.head)
            version = change.version
            yield from self._written(target, change)
        self._following = following = workspace.follow(self.head, since=version, timeout=timeout)
        if self._is_stopped:  # looked at behind the line above, so that no stop between is missed
            following.close()
        try:
            for change in following:
                if self._is_stopped:
                    return
                if change.version <= version:
                    continue  # it was in what the one before came to
                if not self.wants_each:
                    change = workspace.changes_since(version, self.head)
                version = change.version
                yield from self._written(target, change)
        finally:
            self._following = self._caught_up = None

    def _written(self, target: Target, change: HeadChange) -> Iterator[HeadChange]:
        if change.table.num_rows:
            reached("sink: rows read, not written")
            target.add(change)
            reached("sink: written, not told")
        self._caught_up = change.version
        if change.table.num_rows:
            yield change


def operations_of(change: pa.Table) -> pa.Table:
    """A change table with ``op`` in place of ``weight``: rows that go, ``D``, before those that come, ``I``.

    A row is there as often as it comes or goes.

    >>> operations_of(pa.table({"a": [1, 2], "weight": [2, -1]})).to_pylist()
    [{'a': 2, 'op': 'D'}, {'a': 1, 'op': 'I'}, {'a': 1, 'op': 'I'}]
    """
    weights = change.column(change.num_columns - 1).to_numpy()
    rows = change.select(change.column_names[:-1])
    order = np.argsort(weights > 0, kind="stable")
    places = np.repeat(order, np.abs(weights[order]))
    taken = rows.take(pa.array(places))
    words = pa.array(np.where(weights[places] > 0, "I", "D").tolist(), pa.string())
    return taken.append_column(label_beside("op", rows.column_names), words)
