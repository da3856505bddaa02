"""A workspace as an Arrow Flight service: rows, answers, and changes out; transactions in.

Invariants

1. A batch that is put is one transaction, or as many rows of one; it is acknowledged, with its version, when
   the workspace would say so to its own process.  What was not acknowledged may have been committed: whoever
   puts it again does so by key, or under a version of his own, which is taken once; then a stream is one
   transaction.
2. What is read is of one version, which the schema's metadata name (``lftj.version``).
3. An error of the engine comes as FlightServerError in its own words, its class in ``extra_info``; nothing of
   the process is in it.

Tickets and commands are those of :mod:`maintenance.serving.asked`.  Reads and writes run in threads of gRPC;
a slow reader slows its own stream, and one that follows falls behind until the feed ends it (CursorError).
Source: Arrow Flight RPC (arrow.apache.org/docs/format/Flight.html).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.flight as flight

from lftj.errors import LftjError, ServiceError
from lftj.process.allowance import allowed
from maintenance.serving.access import Access, AccessFactory, Tokens, refuse_open_door, refuse_reader
from maintenance.serving.asked import (
    Answer,
    Follow,
    Put,
    Query,
    Reading,
    Rows,
    Since,
    put,
    reading,
    writer_of,
)
from maintenance.serving.writers import Writer, identifier_of
from maintenance.sources.flight_client import VERSION, WORKSPACE
from maintenance.workspace.workspace import Snapshot, Workspace

Result = TypeVar("Result")

_HEARTBEAT = 1.0
"""Seconds after which a stream that has nothing to say looks whether anybody listens."""

_ACTIONS = {
    "version": "The version of the workspace, its identifier, and up to which version a writer has put.",
    "stats": "Its figures, as OpenMetrics text.",
}


@dataclass(frozen=True)
class Limits:
    """Of one call, so that it takes no more than its share.

    ``calls``: at once; more are refused as unavailable.  Whoever follows waits without being one of them, and
    ``followers`` may.  ``seconds``: of an answer, ``search_bytes``: of what its joins find, 8 for each
    value, and ``rows``: that it has; ``batch_rows``, ``batch_bytes``: of a batch that is put.
    """

    calls: int = 64
    followers: int = 1_000
    seconds: float = 60.0
    search_bytes: int = 1 << 31
    rows: int = 50_000_000
    batch_rows: int = 1_000_000
    batch_bytes: int = 1 << 28


def _told(method: Callable[..., Result]) -> Callable[..., Result]:
    """The engine's errors as Flight's."""

    @wraps(method)
    def within(*arguments: Any) -> Result:
        with _as_flight():
            return method(*arguments)

    return within


def _without_path(method: Callable[..., Result]) -> Callable[..., Result]:
    """A function that tells nobody in which folder it is."""
    method.__code__ = method.__code__.replace(co_filename="lftj")
    return method


@contextmanager
def _as_flight() -> Iterator[None]:
    try:
        yield
    except LftjError as error:
        about = json.dumps({"error": type(error).__name__}).encode()
        raise flight.FlightServerError(str(error), about) from None
    except flight.FlightError:
        raise
    except Exception as error:  # a fault of ours; what it says may be about anything
        raise flight.FlightInternalError(f"{type(error).__name__} in the service") from error


class FlightService(flight.FlightServerBase):
    """Serves a workspace; made once it listens.  A context manager, which ends it.

    Args:
        workspace: Stays the caller's: it is not closed.
        location: ``grpc://HOST:PORT``, ``grpc+tls://HOST:PORT``; port 0: any that is free (``port``).
        tokens: Who may read and write; needed where others than this machine reach the location.
        tls: Files of the certificate and of its key, PEM.
        read_only: Nobody may write.
        limits: See :class:`Limits`.

    Raises ServiceError for an address that can't be listened on, or would be open to everybody.

    Examples:
        >>> import json
        >>> import pyarrow.flight as flight
        >>> from maintenance import Workspace
        >>> ws = Workspace()
        >>> ws.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"])
        >>> with FlightService(ws) as service, flight.connect(service.address) as client:
        ...     client.do_get(flight.Ticket(b'{"sql": "select sum(dst) as s from edge"}')).read_all()["s"]
        <pyarrow.lib.ChunkedArray object at ...>
        [
          [
            5
          ]
        ]
    """

    def __init__(
        self,
        workspace: Workspace,
        location: str = "grpc://127.0.0.1:0",
        *,
        tokens: Tokens | None = None,
        tls: tuple[str | Path, str | Path] | None = None,
        read_only: bool = False,
        limits: Limits | None = None,
    ) -> None:
        tokens = tokens or Tokens({})
        if tls is not None and location.startswith("grpc://"):
            location = location.replace("grpc://", "grpc+tls://", 1)
        refuse_open_door(location, bool(tokens.roles))
        if location.startswith("grpc+tls") and tls is None:
            raise ServiceError("TLS takes a certificate and its key: tls=(CERT, KEY)")
        self._workspace, self._read_only, self._limits = workspace, read_only, limits or Limits()
        self._calls = threading.Semaphore(self._limits.calls)
        self._followers = threading.Semaphore(self._limits.followers)
        self._is_ending = threading.Event()
        self._location = location
        self._identifier = identifier_of(workspace)
        workspace.version  # noqa: B018  # from now on changes are kept
        try:
            certificates = None if tls is None else [tuple(Path(file).read_bytes() for file in tls)]
            super().__init__(
                location,
                tls_certificates=certificates,
                middleware={Access.NAME: AccessFactory(tokens)},
            )
        except (OSError, pa.ArrowException) as error:
            raise ServiceError(f"{location} can't be listened on: {error}") from error

    @property
    def address(self) -> str:
        """Where it is reached, the port that was free in place of 0."""
        return f"{self._location.rpartition(':')[0]}:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """End streams and calls, and listen no more; called by another thread than theirs."""
        self._is_ending.set()
        super().shutdown()

    # -- what there is ------------------------------------------------------------------------

    @_told
    def list_flights(self, context: Any, criteria: bytes) -> Iterator[flight.FlightInfo]:
        snapshot = self._workspace.snapshot()
        return iter([self._info(Rows(name), snapshot) for name in snapshot.relations])

    @_told
    def get_flight_info(self, context: Any, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        with self._one_of(self._calls, "calls"):
            return self._info(self._described(descriptor), self._workspace.snapshot(), descriptor)

    @_without_path
    def get_schema(self, context: Any, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        # pyarrow sends the traceback of what is raised in here, and of no other call: of this frame alone.
        try:
            return self._schema_result(descriptor)
        except flight.FlightError as error:
            told = error
        raise told.with_traceback(None) from None

    @_told
    def _schema_result(self, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        with self._one_of(self._calls, "calls"):
            asked = self._described(descriptor)
            return flight.SchemaResult(self._schema(asked, self._workspace.snapshot()))

    def _described(self, descriptor: flight.FlightDescriptor) -> Reading:
        if descriptor.command:
            return reading(descriptor.command)
        return Rows(_relation(descriptor))

    def _schema(self, asked: Reading, snapshot: Snapshot) -> pa.Schema:
        if isinstance(asked, Rows):
            return _narrowed(snapshot[asked.relation].table.schema.empty_table(), asked).schema
        if isinstance(asked, Since | Follow):
            head = asked.changes if isinstance(asked, Since) else asked.follow
            return snapshot[head].table.schema.append(pa.field("weight", pa.int64()))
        return self._answer(asked, snapshot).schema

    def _info(
        self, asked: Reading, snapshot: Snapshot, descriptor: flight.FlightDescriptor | None = None
    ) -> flight.FlightInfo:
        given = {name: value for name, value in vars(asked).items() if value is not None}
        endpoint = flight.FlightEndpoint(json.dumps(given).encode(), [])
        rows = snapshot[asked.relation].count if isinstance(asked, Rows) and asked.limit is None else -1
        if descriptor is None:
            assert isinstance(asked, Rows)
            descriptor = flight.FlightDescriptor.for_path(asked.relation)
        return flight.FlightInfo(self._schema(asked, snapshot), descriptor, [endpoint], rows, -1)

    @_told
    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        return list(_ACTIONS.items())

    @_told
    def do_action(self, context: Any, action: flight.Action) -> list[bytes]:
        if action.type == "version":
            about = {"version": self._workspace.version, "workspace": self._identifier}
            if action.body:
                writer = writer_of(action.body.to_pybytes())
                about["written"] = Writer(self._workspace, writer).version
            return [json.dumps(about).encode()]
        if action.type == "stats":
            return [self._workspace.stats.openmetrics().encode()]
        raise ServiceError(f"no action {action.type!r}: there are {', '.join(_ACTIONS)}")

    # -- rows out ------------------------------------------------------------------------------

    @_told
    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.FlightDataStream:
        asked = reading(ticket.ticket)
        if isinstance(asked, Follow):
            return self._following(context, asked)
        with self._one_of(self._calls, "calls"):
            if isinstance(asked, Since):
                change = self._workspace.changes_since(asked.since, asked.changes)
                return self._stream(change.table, change.version)
            snapshot = self._workspace.snapshot()
            return self._stream(self._answer(asked, snapshot), snapshot.version)

    def _stream(self, table: pa.Table, version: int) -> flight.FlightDataStream:
        about = {**(table.schema.metadata or {}), VERSION: str(version).encode()}
        about[WORKSPACE] = self._identifier.encode()
        return flight.RecordBatchStream(table.replace_schema_metadata(about))

    def _answer(self, asked: Rows | Answer | Query, snapshot: Snapshot) -> pa.Table:
        with allowed(self._limits.seconds, self._limits.search_bytes):
            if isinstance(asked, Rows):
                found = _narrowed(snapshot[asked.relation].table, asked)
            elif isinstance(asked, Answer):
                found = snapshot.sql(asked.sql, asked.params)
            else:
                found = snapshot.query(asked.rules, head=asked.head, params=asked.params, limit=asked.limit)
        if found.num_rows > self._limits.rows:
            raise ServiceError(
                f"the answer has {found.num_rows:,} rows, and {self._limits.rows:,} are the most that"
                " the service gives: ask for fewer"
            )
        return found

    def _following(self, context: Any, asked: Follow) -> flight.FlightDataStream:
        since = self._workspace.version if asked.since is None else asked.since
        following = self._workspace.follow(asked.follow, since, timeout=0)  # raises what is wrong, now
        schema = self._schema(asked, self._workspace.snapshot())
        schema = schema.with_metadata({WORKSPACE: self._identifier.encode()})

        def changes() -> Iterator[tuple[pa.RecordBatch, pa.Buffer]]:
            nonlocal following
            quiet = 0.0
            with _as_flight(), self._one_of(self._followers, "followers"):
                while not (self._is_ending.is_set() or context.is_cancelled()):
                    for change in following:
                        quiet = 0.0
                        yield change.table.combine_chunks().to_batches()[0], _said(change.version)
                    if asked.seconds is not None and quiet >= asked.seconds:
                        return
                    wait = _HEARTBEAT if asked.seconds is None else min(_HEARTBEAT, asked.seconds - quiet)
                    following = self._workspace.follow(asked.follow, following.version, timeout=wait)
                    quiet += wait

        return flight.GeneratorStream(schema, changes())

    @contextmanager
    def _one_of(self, seats: threading.Semaphore, what: str) -> Iterator[None]:
        if not seats.acquire(blocking=False):
            raise flight.FlightUnavailableError(f"as many {what} as may be are there already: try again")
        try:
            yield
        finally:
            seats.release()

    # -- rows in -------------------------------------------------------------------------------

    @_told
    def do_put(
        self,
        context: Any,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        refuse_reader(context)
        if self._read_only:
            raise flight.FlightUnauthorizedError("the service is for reading")
        asked = put(descriptor.command) if descriptor.command else Put(_relation(descriptor))
        with self._one_of(self._calls, "calls"):
            batches = _batches_of(reader)
            if asked.writer is not None:
                self._committed_once(asked, batches)
                writer.write(_said(self._workspace.version))
                return
            for batch in batches:
                self._refuse_large(batch)
                version = self._committed(asked, pa.Table.from_batches([batch]))
                writer.write(_said(version))

    def _refuse_large(self, batch: pa.RecordBatch) -> None:
        limits = self._limits
        if batch.num_rows > limits.batch_rows or batch.nbytes > limits.batch_bytes:
            raise ServiceError(
                f"a batch of {batch.num_rows:,} rows and {batch.nbytes:,} bytes, where"
                f" {limits.batch_rows:,} and {limits.batch_bytes:,} are the most: put smaller ones"
            )

    def _committed(self, asked: Put, rows: pa.Table) -> int:
        """The version at or behind the transaction of some rows."""
        with self._workspace.transaction() as transaction:
            getattr(transaction, asked.mode)(asked.relation, rows)
        return self._workspace.version

    def _committed_once(self, asked: Put, batches: Iterator[pa.RecordBatch]) -> None:
        """Rows of a writer's version, in one transaction; nothing where he has it already."""
        assert asked.writer is not None and asked.version is not None
        writer, workspace = Writer(self._workspace, asked.writer), self._workspace
        if writer.version is not None and writer.version >= asked.version:
            for _ in batches:
                pass
            return
        writer.refuse(asked.relation, asked.since, workspace[asked.relation].count > 0)
        n_rows = 0
        with workspace.transaction() as transaction:
            if asked.since is None:
                transaction.erase(asked.relation, workspace[asked.relation].to_arrow())
            for batch in batches:
                self._refuse_large(batch)
                n_rows += batch.num_rows
                if n_rows > self._limits.rows:
                    raise ServiceError(f"a put of more than {self._limits.rows:,} rows, which are the most")
                getattr(transaction, asked.mode)(asked.relation, pa.Table.from_batches([batch]))
            if n_rows != asked.rows:
                raise ServiceError(
                    f"{n_rows:,} of {asked.rows:,} rows came, and nothing was done: put them again"
                )
            writer.stage(transaction, asked.relation, asked.version)


def _batches_of(reader: flight.MetadataRecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches that are put, each whole: what stands in it leads nowhere else.  Raises ServiceError."""
    while True:
        try:
            chunk = reader.read_chunk()
            if chunk.data is not None:
                chunk.data.validate(full=True)
        except StopIteration:
            return
        except flight.FlightError:
            raise
        except (pa.ArrowException, ValueError, OSError) as error:
            first = str(error).partition("\n")[0][:200]
            raise ServiceError(f"what is put is no whole batch of Arrow: {first}") from None
        if chunk.data is not None:
            yield chunk.data


def _relation(descriptor: flight.FlightDescriptor) -> str:
    path = descriptor.path
    if not path or len(path) != 1:
        raise ServiceError("a path is the name of one relation or head")
    try:
        return str(path[0].decode())
    except UnicodeDecodeError:
        raise ServiceError("the name of a relation is UTF-8") from None


def _narrowed(table: pa.Table, asked: Rows) -> pa.Table:
    if asked.columns is not None:
        if unknown := [name for name in asked.columns if name not in table.column_names]:
            raise ServiceError(
                f"{asked.relation!r} has no column {unknown[0]!r}: it has {', '.join(table.column_names)}"
            )
        table = table.select(asked.columns)
    return table if asked.limit is None else table.slice(0, asked.limit)


def _said(version: int) -> pa.Buffer:
    return pa.py_buffer(json.dumps({"version": version}).encode())
