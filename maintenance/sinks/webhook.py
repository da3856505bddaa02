"""`to_webhook`: the rows of a head that only grows as HTTP requests, at least one each, under a key.

    POST https://shop/hooks        Idempotency-Key: 8812:0
                                   {"i": "jug", "w": "2026-03-02T12:12:00", "sum": 7}

Invariants

1. A row has the same key whenever it is sent, the version and its number there, so that a receiver who passes
   over keys that he had has each row once.
2. A row that goes stops the push before anything of its version is sent.

How far it is stands in the workspace, behind what the receiver has answered: the version whose rows were all
sent, and of the one that is under way how many.

Cost: one request a row, one after the other, on a connection that is kept.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

from lftj.errors import SinkAwayError, SinkError
from maintenance.sinks.begun_rows import texts_at
from maintenance.sinks.json_text import json_text
from maintenance.sinks.sink import Sink, operations_of
from maintenance.sources.cursor import Cursor, Place
from maintenance.store.fault_points import reached
from maintenance.workspace.follower import HeadChange
from maintenance.workspace.workspace import Workspace

_WRITTEN, _UNDER_WAY = "written", "under way"
"""Parts of the cursor: the version that was sent; how many rows of a version, which is the mark, were."""

_ROWS = 1_000
"""After so many rows of a version it is kept how many were sent."""

_ANSWER = 30.0
"""Seconds for which a receiver may take to answer."""

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 30.0
"""Seconds before a second try, twice as many before each later one."""

_LATER = (408, 425, 429)
"""Answers beside those from 500 on that say: try again."""


def to_webhook(
    url: str,
    head: str,
    *,
    headers: Mapping[str, str] | None = None,
    tries: int = 5,
    name: str | None = None,
) -> WebhookSink:
    """The rows of a head as POST requests, each a JSON object.

    Args:
        url: ``http://`` or ``https://``; what stands behind the host is shown nowhere.
        head: Whose rows only come, as those of one of rows that have closed (``final``).
        headers: More of each request, such as ``Authorization``; they are shown nowhere.
        tries: Of one request that is not answered, or with 408, 425, 429 or from 500 on, before the push
            raises SinkError.
        name: Of the sink; by default ``<head>_to_webhook``.
    """
    return WebhookSink(url, head, headers or {}, tries, name)


class WebhookSink(Sink):
    """Made by `to_webhook`.  It sends each row at least once."""

    wants_each = True

    def __init__(self, url: str, head: str, headers: Mapping[str, str], tries: int, name: str | None) -> None:
        super().__init__(head, f"{head}_to_webhook" if name is None else name)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a webhook's url is http://HOST/... or https://HOST/...")
        if tries < 1:
            raise ValueError(f"tries is {tries}; it is to be 1 at least")
        self.url, self.headers, self.tries = parts, headers, tries

    def __repr__(self) -> str:
        return f"<{self.head!r} to {self.place}>"

    @property
    def place(self) -> str:
        """Of the receiver, what may be shown."""
        port = "" if self.url.port is None else f":{self.url.port}"
        return f"{self.url.scheme}://{self.url.hostname}{port}"

    @property
    def _way_out(self) -> str:
        return "take another name=, and all rows are sent"

    @contextmanager
    def _opened(self, workspace: Workspace, identifier: str, cursor: Cursor) -> Generator[_Receiver]:
        with closing(_Connection(self)) as connection:
            yield _Receiver(self, connection, workspace, cursor)


class _Receiver:
    """Who is told the rows."""

    def __init__(
        self, sink: WebhookSink, connection: _Connection, workspace: Workspace, cursor: Cursor
    ) -> None:
        self._sink, self._connection, self._workspace, self._cursor = sink, connection, workspace, cursor
        place = cursor.places.get(_WRITTEN)
        self.version = None if place is None else place.position

    def begin(self, all_rows: HeadChange) -> None:
        """All rows as of the version at which it was begun first, though others have come since."""
        place = self._cursor.places.get(_UNDER_WAY)
        if place is None:
            place = Place(0, str(all_rows.version))
            self._stage({_UNDER_WAY: place})
        version = int(place.mark)
        try:
            texts = texts_at(self._workspace, version, all_rows, json_text, self._sink._way_out)
        except SinkError as error:
            raise SinkError(f"sink {self._sink.name!r}: {error}") from None
        self._send(texts, version)

    def add(self, change: HeadChange) -> None:
        self._send(self._texts(change), change.version)

    def _texts(self, change: HeadChange) -> list[bytes]:
        """Rows that come, in an order of their own: that of rows is no part of a version."""
        rows = operations_of(change.table)
        label = rows.column_names[-1]
        ops = rows[label].to_pylist()
        if "D" in ops:
            raise SinkError(
                f"sink {self._sink.name!r}: with version {change.version} a row of {self._sink.head!r} goes,"
                " and who was told of it can't take it back: push a head of rows that have closed (final)"
            )
        return sorted(map(json_text, rows.drop_columns([label]).to_pylist()))

    def _send(self, texts: list[bytes], version: int) -> None:
        place = self._cursor.places.get(_UNDER_WAY)
        first = place.position if place is not None and place.mark == str(version) else 0
        for number in range(first, len(texts)):
            if number > first and number % _ROWS == 0:
                self._stage({_UNDER_WAY: Place(number, str(version))})
            self._connection.post(f"{version}:{number}", texts[number])
        reached("sink: messages sent, not kept")
        self._stage({_WRITTEN: Place(version, ""), _UNDER_WAY: None})
        self.version = version

    def _stage(self, places: Mapping[str, Place | None]) -> None:
        with self._workspace.transaction() as transaction:
            self._cursor.stage(transaction, places)
        self._cursor.moved(places)


class _Connection:
    """The connection, which is made again where it was lost."""

    def __init__(self, sink: WebhookSink) -> None:
        self._sink = sink
        kind = http.client.HTTPSConnection if sink.url.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(sink.url.hostname or "", sink.url.port, timeout=_ANSWER)
        self._path = (sink.url.path or "/") + (f"?{sink.url.query}" if sink.url.query else "")

    def post(self, key: str, text: bytes) -> None:
        """Raises SinkError where it is refused, SinkAwayError where all tries come to nothing."""
        wait, said = _FIRST_WAIT, ""
        headers = {**self._sink.headers, "Content-Type": "application/json", "Idempotency-Key": key}
        for number in range(self._sink.tries):
            if number:
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
            try:
                self._connection.request("POST", self._path, text, headers)
                answer = self._connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                said = str(error) or type(error).__name__
                continue
            if 200 <= answer.status < 300:
                return
            about = body[:200].decode(errors="replace").strip()
            said = f"{answer.status} {answer.reason}" + (f", {about!r}" if about else "")
            if answer.status < 500 and answer.status not in _LATER:
                raise self._failed(key, f"refused it, {said}: mend it there, and push again")
        tried = f"did not take it, tried {self._sink.tries} times, {said}: push again"
        raise self._failed(key, tried, SinkAwayError)

    def close(self) -> None:
        self._connection.close()

    def _failed(self, key: str, what: str, kind: type[SinkError] = SinkError) -> SinkError:
        return kind(f"sink {self._sink.name!r}: row {key}: {self._sink.place} {what}")
