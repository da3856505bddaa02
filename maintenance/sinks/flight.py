"""`to_flight`: a head as a relation of another workspace behind Arrow Flight, each version of it once.

Invariant: the other workspace keeps up to which version it has the head, in the commit that has the rows
(:mod:`maintenance.serving.writers`); what is put again after a kill of either side is passed over.

Cost: a change is one stream, in batches, and one transaction there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.flight as arrow_flight

from lftj.errors import LftjError, SinkAwayError, SinkError
from maintenance.sinks.sink import Sink
from maintenance.sources.cursor import Cursor
from maintenance.sources.flight_client import Client, Server, connected
from maintenance.workspace.follower import HeadChange
from maintenance.workspace.workspace import Workspace

_BATCH_ROWS = 1 << 16
"""Of a change that is put: a service takes no larger batches than it says."""


def to_flight(
    location: str,
    head: str,
    relation: str | None = None,
    *,
    token: str | None = None,
    tls_roots: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> FlightSink:
    """A head as a relation of a workspace that ``lftj serve`` or a FlightService serves.

    Args:
        location: ``grpc://HOST:PORT``, ``grpc+tls://HOST:PORT``.
        head: Which head of the workspace.
        relation: Which takes it, and is there, empty, with the head's columns; by default of the head's name.
        token: For writing; it is shown nowhere.
        tls_roots: A file of certificates, PEM, that are trusted; by default those of the system.
        name: Of the sink; by default ``<head>_to_flight``.
    """
    roots = None if tls_roots is None else Path(tls_roots)
    return FlightSink(location, head, head if relation is None else relation, token, roots, name)


class FlightSink(Sink):
    """Made by `to_flight`."""

    begins_anew = True

    def __init__(
        self,
        location: str,
        head: str,
        relation: str,
        token: str | None,
        tls_roots: Path | None,
        name: str | None,
    ) -> None:
        super().__init__(head, f"{head}_to_flight" if name is None else name)
        self.location, self.relation = location, relation
        self._token, self._roots = token, tls_roots

    def __repr__(self) -> str:
        return f"<{self.head!r} to {self.relation!r} of {self.location}>"

    @property
    def _way_out(self) -> str:
        return "take another name= and another relation, and it is written anew"

    @contextmanager
    def _opened(self, workspace: Workspace, identifier: str, cursor: Cursor) -> Generator[_Relation]:
        try:
            roots = None if self._roots is None else self._roots.read_bytes()
        except OSError as error:
            raise self._wrong(f"{self._roots}: {error.strerror or error}") from None
        server = Server(self.location, self._token, roots)
        with connected(
            server, self._wrong, self._away, "push again, it goes on behind what is written"
        ) as client:
            yield _Relation(client, self.relation, f"{identifier} {self.name}")

    def _wrong(self, text: str) -> LftjError:
        return SinkError(f"sink {self.name!r}: {text}")

    def _away(self, text: str) -> LftjError:
        return SinkAwayError(f"sink {self.name!r}: {text}")


class _Relation:
    """The relation, by a client; ``writer``: as whom it is written to."""

    def __init__(self, client: Client, relation: str, writer: str) -> None:
        self._client, self._relation, self._writer = client, relation, writer
        self.version: int | None = client.answer("version", writer=writer)["written"]

    def begin(self, all_rows: HeadChange) -> None:
        self._put(all_rows, None)

    def add(self, change: HeadChange) -> None:
        self._put(change, self.version)

    def _put(self, change: HeadChange, since: int | None) -> None:
        """The rows in one transaction there, and the version with them."""
        asked = {"relation": self._relation, "mode": "apply", "writer": self._writer, "since": since}
        asked |= {"version": change.version, "rows": change.table.num_rows}
        command = json.dumps(asked).encode()
        descriptor = arrow_flight.FlightDescriptor.for_command(command)
        writer, acknowledged = self._client.connection.do_put(
            descriptor, change.table.schema, self._client.options()
        )
        with writer:
            for batch in change.table.to_batches(_BATCH_ROWS):
                writer.write_batch(batch)
            writer.done_writing()
            if acknowledged.read() is None:
                writer.close()  # which raises what was wrong
                raise arrow_flight.FlightUnavailableError("it did not acknowledge")
        self.version = change.version
