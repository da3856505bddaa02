"""`Follower`: what heads did since a version, for those who keep a cursor and lose nothing.

    version   10       11       12       13 = now
    change         +2 -1     none     +1
    changes_since(10, head)  ->  one table, up to 13          follow(head, since=10)  ->  11, 13, then waits

Invariants

1. Changes come from memory (:mod:`maintenance.workspace.commit_feed`), or, in a folder, where they are not
   there any more, from the journal (:mod:`maintenance.workspace.past_changes`); either way they are the same.
2. Nobody is given what is not shown yet.
3. Whoever follows holds nothing of the workspace but a version: one who stops leaves nothing behind.
4. A change that :class:`Following` gave is done with when the next is asked for; until then ``version`` is
   that of before it, and a loop that begins again gets it again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from lftj.errors import CursorError
from lftj.storage.signed_rows import gathered, net_rows
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import table_of_change
from maintenance.workspace.commit_feed import CommitChanges
from maintenance.workspace.folder import Folder
from maintenance.workspace.past_changes import Past, past_of
from maintenance.workspace.published import Published
from maintenance.workspace.recovery import Recoverable
from maintenance.workspace.state import State

_LOOK_AGAIN = 1.0
"""Seconds after which whoever waits looks whether something came, though nobody woke him."""


@dataclass(frozen=True)
class HeadChange:
    """What a head's rows did.  ``table``: its columns and ``weight``, +1 or -1; ``version``: it led to."""

    head: str
    version: int
    table: pa.Table


class Follower:
    """What heads of a workspace did.  ``folder``: has the journal of it, where there is one."""

    def __init__(self, workspace: Recoverable, published: Published, folder: Folder | None) -> None:
        self._workspace, self._published, self._folder = workspace, published, folder

    def since(self, version: int, head: str) -> HeadChange:
        """As `Workspace.changes_since`."""
        found, state = self._found(head, version)
        upto = state.number
        if isinstance(found, Past):
            return HeadChange(head, upto, found.all())
        if not found:
            return HeadChange(head, upto, table_of_change(state.shown[head], None))
        changes = [commit.changes.change(head) for commit in found]
        columns, weights = net_rows(*gathered([(change.columns, change.weights) for change in changes]))
        schema = found[-1].changes.schema(head)
        return HeadChange(head, upto, table_of_change(schema, Change(columns, weights)))

    def follow(self, head: str, since: int, timeout: float | None) -> Following:
        """As `Workspace.follow`."""
        self._refuse_cursor(head, since, self._published.shown)
        return Following(self._commits_behind, self._wait, head, since, timeout)

    # -- where changes come from ----------------------------------------------------------

    def _commits_behind(self, head: str, version: int) -> tuple[Iterator[HeadChange], int]:
        """The changes of a head behind a version, one for each commit, and the version that they reach."""
        self._workspace.refresh()
        found, state = self._found(head, version)
        if isinstance(found, Past):
            return (HeadChange(head, number, table) for number, table in found.each()), state.number
        return (HeadChange(head, commit.version, commit.changes(head)) for commit in found), state.number

    def _found(self, head: str, version: int) -> tuple[list[CommitChanges] | Past, State]:
        """What changed a head behind a version, and the state that this reaches."""
        feed = self._published.feed
        feed.begin()
        state = self._published.shown
        self._refuse_cursor(head, version, state)
        commits = [] if version == state.number else feed.between(head, version, state.number)
        if commits is not None:
            return commits, state
        return self._past(head, version)

    def _past(self, head: str, version: int) -> tuple[Past, State]:
        """The same, of what is not in memory."""
        published, folder = self._published, self._folder
        if folder is None:
            oldest = published.feed.oldest(head) or 0
            raise CursorError(
                f"the changes of {head!r} behind version {version} are not kept; the oldest version that can"
                f" be asked for is {oldest}: read {head!r} as it is now and go on from there, or keep more,"
                " feed_bytes=",
                oldest,
            )
        with published.paused():
            published.wait(published.state.number)
            state = published.state
        self._refuse_cursor(head, version, state)
        try:
            return past_of(type(self._workspace)(), folder.path, head, version, state), state
        except CursorError as error:
            oldest = max(error.oldest, state.since[head])
            raise CursorError(f"{head!r}: {error}", oldest) from None

    def _refuse_cursor(self, head: str, version: int, state: State) -> None:
        """Raise CursorError for a version that was never there, or not with this head."""
        state.refuse_unknown(head)
        since = state.since[head]
        if version > state.number:
            raise CursorError(
                f"there is no version {version} of {head!r} yet: the last one is {state.number}",
                since,
            )
        if version < since:
            raise CursorError(
                f"{head!r} was installed, as it is, by version {since}, and has no changes behind version"
                f" {version}: read it as it is now and go on from there",
                since,
            )

    def _wait(self, version: int, seconds: float) -> bool:
        """Wait until there is a later version, or some time; whether there may come any more."""
        feed, store, folder = self._published.feed, self._published.store, self._folder
        if store is not None and store.failed:
            store.refuse_closed()
        if folder is not None:
            seconds = min(seconds, folder.look_again)
        with feed.arrived:
            feed.n_waiting += 1
            try:
                if self._published.shown.number <= version and not feed.is_closed:
                    feed.arrived.wait(seconds)
            finally:
                feed.n_waiting -= 1
        return not feed.is_closed


class Following:
    """An iterator over the changes of a head; made by `Workspace.follow`, and used by one thread.

    Attributes:
        version: Up to which all that came was given, and is done with: go on from here.
    """

    def __init__(
        self,
        behind: Callable[[str, int], tuple[Iterator[HeadChange], int]],
        wait: Callable[[int, float], bool],
        head: str,
        since: int,
        timeout: float | None,
    ) -> None:
        """``behind`` gives the changes behind a version; ``wait`` waits for a later one, for some time."""
        self.head = head
        self.version = since
        self._behind, self._wait, self._timeout = behind, wait, timeout
        self._given = since  # the version of what was given last
        self._found: Iterator[HeadChange] = iter(())
        self._upto = since  # the version that this reaches
        self._is_closed = False

    def __iter__(self) -> Self:
        self._go_back()
        return self

    def __next__(self) -> HeadChange:
        self.version = self._given
        end = math.inf if self._timeout is None else time.monotonic() + self._timeout
        is_last_look = False
        while not self._is_closed:
            try:
                change = next(self._found, None)
                if change is not None:
                    self._given = change.version
                    return change
                self.version = self._given = max(self._given, self._upto)
                self._found, self._upto = self._behind(self.head, self._given)
            except BaseException:
                self._go_back()
                raise
            if self._upto > self._given:
                continue
            left = end - time.monotonic()
            if is_last_look or left <= 0:
                break
            is_last_look = not self._wait(self._given, min(left, _LOOK_AGAIN))
        raise StopIteration

    def _go_back(self) -> None:
        """Begin again behind what is done with."""
        self._found, self._given, self._upto = iter(()), self.version, self.version

    def close(self) -> None:
        """End the loop, also from another thread."""
        self._is_closed = True

    def __repr__(self) -> str:
        return f"<following {self.head!r} behind version {self.version:,}>"
