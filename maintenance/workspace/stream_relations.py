"""`StreamRelations`: relations of a workspace whose rows come with a time, and leave by it.

What a stream is, and what transactions do to it: :mod:`maintenance.event_time`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lftj.database.loading import load_relation
from lftj.errors import StreamError, UnknownRelationError
from lftj.language.diagnostics import unknown_name
from lftj.process.enough_memory import enough_memory
from lftj.process.interrupts import interruptible
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values.streams import Span, stream_of
from maintenance.event_time.moments import code_of, moment_of
from maintenance.event_time.stream_state import Late, StreamState, clock
from maintenance.heads.grown import Grown
from maintenance.workspace.declaring import clock_type, with_streams
from maintenance.workspace.entries import loaded_entry
from maintenance.workspace.growing import with_grown
from maintenance.workspace.published import Published
from maintenance.workspace.sql_views import SqlViews
from maintenance.workspace.subscribers import Subscriber, late_rows_of


class StreamRelations(SqlViews):
    """What a workspace does with streams."""

    _published: Published

    @interruptible()
    @enough_memory("the relation does not fit into memory: load the columns that rules need, columns=[...]")
    def load(
        self,
        name: str,
        source: Any,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        *,
        time: str | None = None,
        lateness: Span = 0,
        keep: Span | None = None,
        ahead: Span | None = None,
        on_late: Subscriber | None = None,
        **options: Any,
    ) -> None:
        """Load a relation, replacing one of the same name; ``options``: as of `lftj.Database.load`.

        ``time``: a column of timestamps, dates or integers, NOT NULL, that makes it a *stream*.  A row that a
        transaction brings, or erases, may be earlier than the latest of those before by ``lateness``; one
        that is earlier still is not taken, but counted (`late`, ``tx.stats.late``) and handed to ``on_late``.
        ``keep``: how long rows stay behind `now`, the time that has come in all streams; then they leave, in
        the transaction that moves it on, and heads follow; None: for ever.  ``ahead``: a row that is further
        than this beyond the latest of before is refused; None: none is.  These are a duration, as ``"10s"``
        or a timedelta, or of integers a whole number.  All streams have a time of one type.

        What is loaded is taken as it is.  Also raises StreamError for settings that can't be, or are others
        than those that a stream of this name has.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("trade", {"t": [100, 104], "price": [5, 6]}, time="t", lateness=5, keep=18)
            >>> with ws.transaction() as tx:
            ...     tx.insert("trade", [(125, 7), (98, 8)])
            >>> sorted(ws["trade"]), ws.now, ws.late("trade"), tx.stats.expired
            ([(104, 6), (125, 7)], 120, Late(inserted=1, erased=0), {'trade': 1})
        """
        spans = {"lateness": lateness or None, "keep": keep, "ahead": ahead, "on_late": on_late}
        if time is None:
            for option, value in spans.items():
                if value is not None:
                    raise StreamError(
                        f"relation {name!r}: {option}= is about a stream: name its column, time="
                    )
            super().load(name, source, columns, **options)
            return
        if options.get("key"):
            raise StreamError(
                f"stream {name!r}: key= replaces rows, and rows of a stream leave by their time: choose one"
            )
        self._refuse_load(name)
        relation = load_relation(name, source, columns, self.domains, time=time, **options)
        arrow = next(column.type.arrow for column in relation.schema.columns if column.name == time)
        self.add(relation.with_stream(stream_of(name, time, arrow, lateness, keep, ahead)))
        self._published.subscribers.drop([late_rows_of(name)])
        if on_late is not None:
            self.on_late(name, on_late)

    @property
    def now(self) -> Any:
        """The time that has come in all streams; None where there is none, or nothing came in one."""
        state = self._state
        type_ = clock_type(state.versions, state.streams)
        return None if type_ is None else moment_of(type_, clock(state.streams))

    @property
    def stream_states(self) -> Mapping[str, StreamState]:
        """Where each stream stands."""
        return self._state.streams

    def late(self, stream: str) -> Late:
        """How many rows of a stream came too late, to be inserted and to be erased, since it was loaded.

        Raises UnknownRelationError.
        """
        return self._stream(stream).late

    def on_late(self, stream: str, callback: Subscriber) -> Callable[[], None]:
        """Call ``callback`` with the late rows of each commit, a table with ``weight``, as `subscribe` does.

        Returns a function that ends that.  Raises UnknownRelationError.
        """
        self._stream(stream)
        return self._published.subscribers.add(late_rows_of(stream), callback)

    def time_code(self, moment: Any) -> int:
        """A time to which the clock may be advanced, as clocks have it.  Raises StreamError."""
        state = self._state
        type_ = clock_type(state.versions, state.streams)
        if type_ is None:
            raise StreamError("advance() moves the clock of streams, and there is none: load one with time=")
        code, now = code_of(type_, moment), clock(state.streams)
        if now is not None and code < now:
            raise StreamError(
                f"advance({type_.spelled(code)}): the clock is at {type_.spelled(now)} already, and does not"
                " go back: advance it to a later time"
            )
        return code

    @property
    def grown(self) -> tuple[str, ...]:
        """Names of the relations that only grow: of rows that have closed, and that were joined as of now."""
        return tuple(self._state.strata.grown)

    def add_grown(self, relation: Relation, one: Grown) -> None:
        """Take a relation that grows; what it reads may come later."""
        published = self._published
        with published.lock:
            following = with_grown(published.changeable(), RelationVersion(relation), one)
            published.change(following, lambda: loaded_entry(published, relation, None, one))

    def restore_streams(self, streams: Mapping[str, StreamState]) -> None:
        """Relations become streams, as these were left; called when a folder is opened, before rules are."""
        published = self._published
        with published.lock:
            published.state = with_streams(published.changeable(), streams)

    def _stream(self, name: str) -> StreamState:
        state = self._state
        found = state.streams.get(name)
        if found is None:
            if name in state.versions:
                raise UnknownRelationError(f"{name!r} is no stream: load it with time=, or declare it one")
            raise unknown_name("stream", name, list(state.streams))
        return found
