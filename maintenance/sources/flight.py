"""`flight`: a head of another workspace behind Arrow Flight as a relation, each commit of it once.

The one part of the cursor is the head, its position the version of the other workspace up to which its
changes are here, and the mark that workspace's identifier.

    first      the head's rows, and the version that they are of
    then       what commits did to it, in a stream; those that wait together in one commit

Invariants

1. A stream is taken only from the workspace that the cursor names.
2. A cursor behind which changes are not kept, or that is ahead, stops the pull by name.

Cost: a thread that reads ahead, some hundred commits at most, so that a slow reader slows the stream.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as arrow_flight

from lftj.errors import LftjError, SourceAwayError, SourceError
from maintenance.changes.labels import WEIGHT, label_beside
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.flight_client import (
    VERSION,
    WORKSPACE,
    Client,
    Server,
    class_of,
    connected,
    words_of,
)
from maintenance.sources.patience import Patience
from maintenance.sources.source import BATCH_ROWS, Batch, Pieces, Source, columns_of, make_relation
from maintenance.workspace.workspace import Workspace

_BEGUN = -1
"""The position of a head that is to be taken as it is, whatever was read of it."""

_ANEW = "restart() begins anew"

_AHEAD = 256
"""So many commits are read ahead."""

_ANSWER = 5.0
"""Seconds for which what there is may take to come."""

_IDLE = 60.0
"""Seconds without a change after which the cursor goes on to where the other workspace is."""


def flight(
    location: str,
    head: str,
    relation: str | None = None,
    *,
    key: Sequence[str] = (),
    token: str | None = None,
    tls_roots: str | os.PathLike[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    name: str | None = None,
) -> FlightSource:
    """A head of a workspace that ``lftj serve`` or a FlightService serves, as a relation.

    Args:
        location: ``grpc://HOST:PORT``, ``grpc+tls://HOST:PORT``.
        head: Which head there.
        relation: Which takes it; by default of the head's name.  Where it is not there it is made, with
            ``key``, or without one as a bag.
        token: For reading; it is shown nowhere.
        tls_roots: A file of certificates, PEM, that are trusted; by default those of the system.
        batch_rows: Where so many rows wait they are committed; a commit of the other workspace is not split.
        name: Of the cursor; by default the relation's.
    """
    roots = None if tls_roots is None else Path(tls_roots)
    return FlightSource(location, head, relation, key, token, roots, batch_rows, name)


class FlightSource(Source):
    """Made by `flight`."""

    def __init__(
        self,
        location: str,
        head: str,
        relation: str | None,
        key: Sequence[str],
        token: str | None,
        tls_roots: Path | None,
        batch_rows: int,
        name: str | None,
    ) -> None:
        self.relation = head if relation is None else relation
        super().__init__(self.relation if name is None else name, "stop")
        self.location, self.head = location, head
        self._key, self._token, self._roots, self._batch_rows = key, token, tls_roots, batch_rows

    def __repr__(self) -> str:
        return f"<{self.head!r} of {self.location} into {self.relation!r}>"

    def restart(self, workspace: Workspace) -> None:
        """Let the next pull take the head as it is, in one commit that has what is different."""
        cursor = Cursor(workspace, self.name)
        with workspace.transaction() as transaction:
            cursor.stage(transaction, {**dict.fromkeys(cursor.places), self.head: Place(_BEGUN, "")})

    def _batches(self, workspace: Workspace, cursor: Cursor, patience: Patience) -> Generator[Batch]:
        try:
            server = Server(
                self.location, self._token, None if self._roots is None else self._roots.read_bytes()
            )
        except OSError as error:
            raise self._wrong(f"{self._roots}: {error.strerror or error}") from None
        with connected(server, self._wrong, self._away, "pull again, it goes on behind the cursor") as client:
            place = cursor.places.get(self.head)
            if place is None or place.position == _BEGUN:
                yield self._all_rows(workspace, client, place)
            while True:
                reached = self._version(client, cursor.places[self.head])
                yield from self._changes(workspace, client, cursor, 0, patience)
                place = cursor.places[self.head]
                if reached > place.position:
                    yield Batch({}, {self.head: Place(reached, place.mark)})
                if patience.is_over:
                    return
                yield from self._changes(workspace, client, cursor, _IDLE, patience)
                if patience.is_stopped:
                    return

    def _version(self, client: Client, place: Place) -> int:
        """The version that the other workspace is at, and not yet gone by."""
        answer = client.answer("version")
        self._refuse_other(place, answer.get("workspace"))
        version = int(answer["version"])
        if version < place.position:
            raise self._wrong(
                f"{self.location} is at version {version}, and the cursor at {place.position} already: its"
                f" workspace was put back from a copy: {_ANEW}"
            )
        return version

    def _all_rows(self, workspace: Workspace, client: Client, place: Place | None) -> Batch:
        reached = client.answer("version")["version"]
        client.rows(changes=self.head, since=reached).read_all()  # which says where it is no head
        stream = client.rows(relation=self.head)
        schema, about = stream.schema.remove_metadata(), stream.schema.metadata
        make_relation(workspace, self.relation, schema, self._key, "keep", bag=not self._key)
        self._check_relation(workspace, schema)
        if place is None and workspace[self.relation].count:
            raise self._wrong(
                f"relation {self.relation!r} has rows already, and no cursor says where they are from:"
                " restart() takes what the head has in their place"
            )
        label = label_beside(WEIGHT, schema.names)
        pieces = (
            pa.Table.from_batches([chunk.data]).append_column(
                label, pa.array(np.ones(chunk.data.num_rows, np.int64))
            )
            for chunk in stream
        )
        found = Place(int(about[VERSION]), about[WORKSPACE].decode())
        return Batch({self.relation: Pieces(pieces)}, {self.head: found}, begins=True)

    def _changes(
        self, workspace: Workspace, client: Client, cursor: Cursor, quiet: float, patience: Patience
    ) -> Generator[Batch]:
        """What happened behind the cursor, until nothing did for so many seconds."""
        place = cursor.places[self.head]
        try:
            stream = client.rows(follow=self.head, since=place.position, seconds=quiet)
            self._refuse_other(place, (stream.schema.metadata or {}).get(WORKSPACE, b"").decode())
            schema = stream.schema.remove_metadata()
            columns = schema.remove(len(schema) - 1)
            self._check_relation(workspace, columns)
            labels = [*columns.names, label_beside(WEIGHT, columns.names)]
            with closing(_Ahead(stream, 0.0 if quiet else _ANSWER)) as ahead:
                while not (patience.is_stopped or (quiet and patience.is_over)):
                    changes = ahead.taken(self._batch_rows, patience)
                    if changes is None:
                        return
                    if changes:
                        version = changes[-1][1]
                        rows = pa.Table.from_batches([batch for batch, _ in changes], schema)
                        rows = rows.rename_columns(labels)
                        yield Batch({self.relation: rows}, {self.head: Place(version, place.mark)})
                        patience.renew()
        except arrow_flight.FlightError as error:
            if class_of(error) == "CursorError":
                raise self._wrong(f"{self.location} says: {words_of(error)}: {_ANEW}") from None
            raise

    def _refuse_other(self, place: Place, found: str | None) -> None:
        if found != place.mark:
            raise self._wrong(
                f"{self.location} serves another workspace than the one that was read before (it is {found},"
                f" not {place.mark}): follow that one, or {_ANEW}"
            )

    def _check_relation(self, workspace: Workspace, wanted: pa.Schema) -> None:
        """Raise SourceError where a relation is not such as the head's rows need."""
        schema = workspace.base_version(self.relation).schema
        found = columns_of(schema)
        if found.names != wanted.names or found.types != wanted.types:
            raise self._wrong(
                f"{self.head!r} of {self.location} has columns ({_shown(wanted)}), and relation"
                f" {self.relation!r} has ({_shown(found)}): load it anew, empty, and restart()"
            )

    def _wrong(self, text: str) -> LftjError:
        return SourceError(f"source {self.name!r}: {text}")

    def _away(self, text: str) -> LftjError:
        return SourceAwayError(f"source {self.name!r}: {text}")


class _Ahead:
    """A stream of changes that is read ahead, by a thread of its own.

    ``linger``: seconds for which a batch that has begun waits for more.
    """

    def __init__(self, stream: arrow_flight.FlightStreamReader, linger: float) -> None:
        self._stream, self._linger = stream, linger
        self._waiting: queue.Queue[tuple[pa.RecordBatch, int] | Exception | None] = queue.Queue(_AHEAD)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._read, name="flight source", daemon=True)
        self._thread.start()

    def taken(self, most: int, patience: Patience) -> list[tuple[pa.RecordBatch, int]] | None:
        """Changes and the versions that they lead to, until there are so many rows; None: there are no more.

        Raises what the stream raised, behind what came before it.
        """
        found: list[tuple[pa.RecordBatch, int]] = []
        n_rows = 0
        try:
            each = self._waiting.get(timeout=max(patience.left, 0.05))
            while isinstance(each, tuple):
                found.append(each)
                n_rows += each[0].num_rows
                if n_rows >= most:
                    return found
                each = self._waiting.get(timeout=self._linger)
        except queue.Empty:
            return found
        if found:
            self._waiting.put(each)  # it is the last, so there is room
            return found
        if each is not None:
            raise each
        return None

    def close(self) -> None:
        self._is_closed.set()
        self._stream.cancel()
        self._thread.join()

    def _read(self) -> None:
        try:
            for chunk in self._stream:
                self._put((chunk.data, int(json.loads(chunk.app_metadata.to_pybytes())["version"])))
            self._put(None)
        except Exception as error:
            self._put(error)

    def _put(self, each: tuple[pa.RecordBatch, int] | Exception | None) -> None:
        while not self._is_closed.is_set():
            try:
                self._waiting.put(each, timeout=0.5)
                return
            except queue.Full:
                continue


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
