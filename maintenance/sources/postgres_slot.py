"""A replication slot, and the stream of transactions from it.

Source: PostgreSQL's manual, "Streaming Replication Protocol".
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from lftj.errors import SourceAwayError, SourceError
from maintenance.sources.patience import Patience
from maintenance.sources.pgoutput import (
    BEGIN,
    COMMIT,
    DELETE,
    INSERT,
    RELATION,
    TRUNCATE,
    UPDATE,
    Changes,
    end_of,
    relation_of,
    truncated,
)
from maintenance.sources.postgres_connection import SETTINGS, connected
from maintenance.sources.postgres_tables import Table

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.pq.abc import PGconn, PGresult

_PATIENCE = 600_000
"""Milliseconds after which the server takes a reader for dead: a commit may take long."""

_LINGER, _BEHIND = 0.003, 0.1
"""Seconds for which a batch that has begun waits for more, at most; the second where much is to come."""

_PAUSE = 0.001
"""Seconds after which nothing more comes at once."""

_ASK_AGAIN = 0.01
"""Seconds after which the server is asked again how far it has come."""

IDLE_BYTES = 16 << 20
"""So much of the log may pass with nothing for us in it, until the cursor moves beyond it."""

_REPORT = 10.0
"""Seconds after which the server is told again that somebody is there."""

_HEADER = 25
_DATA, _KEEPALIVE = b"wk"
_CHANGES = frozenset((INSERT, UPDATE, DELETE))


def lsn(text: str) -> int:
    """A place in the log.

    >>> lsn("1/16"), lsn_text(4294967318)
    (4294967318, '1/16')
    """
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(place: int) -> str:
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"


@contextmanager
def closing_connections(dsn: str, source: str) -> Generator[Callable[[str], Slot]]:
    """What makes a slot's connections, which are closed at the end; what the server says is a SourceError."""
    try:
        from psycopg import Error, InterfaceError, OperationalError
    except ImportError:
        raise ImportError("postgres() needs the package psycopg: pip install 'lftj[postgres]'") from None
    made: list[Slot] = []

    def slot(name: str) -> Slot:
        made.append(Slot(dsn, name))
        return made[-1]

    try:
        yield slot
    except Error as error:
        text = str(error).strip() or type(error).__name__
        kind = SourceAwayError if isinstance(error, OperationalError | InterfaceError) else SourceError
        raise kind(
            f"source {source!r}: the server says: {text}: pull again, it goes on behind the cursor"
        ) from None
    finally:
        for each in made:
            each.close()


class Slot:
    """A slot by its name, whether it is there or not, and the connections to its server.

    ``mark``: server, database and slot.
    """

    def __init__(self, dsn: str, name: str) -> None:
        self.dsn, self.name = dsn, name
        self.connection: Connection[Any] = connected(dsn, autocommit=True)
        try:
            settings = f"{SETTINGS} -c wal_sender_timeout={_PATIENCE}"
            self._replication = connected(dsn, settings, autocommit=True, replication="database")
        except BaseException:
            self.connection.close()
            raise
        found = self.run("IDENTIFY_SYSTEM")
        server, database = found.get_value(0, 0), found.get_value(0, 3)
        assert server is not None and database is not None
        self.mark = f"server {server.decode()}, database {database.decode()}, slot {name}"

    def close(self) -> None:
        self._replication.close()
        self.connection.close()

    @property
    def wire(self) -> PGconn:
        return self._replication.pgconn

    def run(self, command: str) -> PGresult:
        """The result of a command of the replication protocol.  Raises psycopg.Error."""
        from psycopg import OperationalError
        from psycopg.pq import ExecStatus

        result = self.wire.exec_(command.encode())
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.COPY_BOTH):
            raise OperationalError(result.error_message.decode(errors="replace"))
        return result

    def confirmed(self) -> int | None:
        """Up to where it was acknowledged; None where it is not there."""
        found = self.connection.execute(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s", [self.name]
        ).fetchone()
        return None if found is None else lsn(found[0] or "0/0")

    def written(self) -> int:
        """Up to where the server's log is on its disk."""
        found = self.connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert found is not None
        return lsn(found[0])

    def drop(self) -> None:
        """Let the slot go, if it is there; one that another process reads is refused by the server."""
        if self.confirmed() is not None:
            self.connection.execute("SELECT pg_drop_replication_slot(%s)", [self.name])

    def made(self) -> tuple[int, str]:
        """Make it; where it begins, and the name of a snapshot of that, good until the next command."""
        found = self.run(f"CREATE_REPLICATION_SLOT {_quoted(self.name)} LOGICAL pgoutput EXPORT_SNAPSHOT")
        start, snapshot = found.get_value(0, 1), found.get_value(0, 2)
        assert start is not None and snapshot is not None
        return lsn(start.decode()), snapshot.decode()


class Stream:
    """The transactions of a publication behind a place in the log; a context manager.

    Attributes:
        trouble: What stops the stream behind them, in words.
    """

    def __init__(self, slot: Slot, publication: str, start: int, most: int) -> None:
        """``most``: rows that are enough for a batch."""
        from psycopg import Error

        self._slot, self._wire, self._start, self._most = slot, slot.wire, start, most
        self._publication = publication
        self._error = Error
        self.trouble: str | None = None
        self._troubles: dict[int, str] = {}
        self._open: list[bytes] = []  # of a transaction whose end has not come
        self._open_trouble: str | None = None
        self._reached, self._told = start, start
        self._written = start  # up to where the server was, when it last said so
        self._reported = 0.0

    def __enter__(self) -> Self:
        names = _quoted(self._publication).replace("'", "''")
        self._target = self._written = self._slot.written()
        self._slot.run(
            f"START_REPLICATION SLOT {_quoted(self._slot.name)} LOGICAL {lsn_text(self._start)}"
            f" (proto_version '1', publication_names '{names}')"
        )
        self._report(asks=True)
        return self

    def __exit__(self, *raised: object) -> None:
        """The server is told what is committed; that it hears it is not waited for."""
        with suppress(self._error):  # where the server is gone it hears it the next time
            self._report()

    @property
    def has_all(self) -> bool:
        """Whether all has come that was there when the stream began."""
        return self._reached >= self._target

    @property
    def backlog(self) -> int:
        """Bytes of the server's log, as far as it was said to go, that have not come."""
        return max(0, self._written - self._reached)

    def acknowledge(self, place: int) -> None:
        """All up to here is on disk.  The server is told now and then."""
        self._told = place
        if time.monotonic() - self._reported > _REPORT:
            self._report()

    def transactions(self, tables: Mapping[int, Table], patience: Patience) -> tuple[list[bytes], int]:
        """The changes of whole transactions, as they wait or come before the time is over; where they end.

        Nothing comes where it is over, ``trouble`` says why, or much of the log had nothing for us.
        """
        messages: list[bytes] = []
        full = 0.0  # when the batch has waited enough
        while True:
            n, view = self._wire.get_copy_data(1)
            if n > 0:
                data = bytes(view)  # which, unlike the view, the garbage collector need not look at
                kind = data[0]
                if kind == _DATA:
                    self._take(data, tables, messages)
                    if self.trouble is not None or (len(messages) >= self._most and not self._open):
                        return messages, self._reached
                elif kind == _KEEPALIVE:
                    self._keepalive(data, messages)
                continue
            if n < 0:
                self._ended()
            if messages:
                now = time.monotonic()
                full = full or now + (_LINGER if self.has_all else _BEHIND)
                if now > full or not self._comes(_PAUSE if self.has_all else _LINGER):
                    return messages, self._reached
            elif (
                self._reached > self._told + IDLE_BYTES
                or patience.is_stopped
                or (self.has_all and patience.is_over)
            ):
                return messages, self._reached
            elif not self.has_all:
                if not self._comes(_ASK_AGAIN):
                    self._report(asks=True)
            else:
                self._comes(patience.left)

    def _take(self, data: bytes, tables: Mapping[int, Table], messages: list[bytes]) -> None:
        """A message of pgoutput: those of transactions that have not ended wait."""
        what = data[_HEADER]
        if what in _CHANGES:
            self._open.append(data)
        elif what == BEGIN:
            self._open, self._open_trouble = [], None
        elif what == RELATION:
            self._note_relation(data[_HEADER:], tables)
        elif what == TRUNCATE:
            names = [tables[oid].label for oid in truncated(data[_HEADER:]) if oid in tables]
            self._open_trouble = (
                f"table {', '.join(names)} was truncated, and the rows that went are not said: restart()"
                " begins anew"
            )
        elif what == COMMIT:
            self._written = max(self._written, struct.unpack_from(">Q", data, 9)[0])
            self._end(end_of(data), messages)

    def _end(self, end: int, messages: list[bytes]) -> None:
        changes, self._open = self._open, []
        if end <= self._start:
            return  # it is in
        self.trouble = self._open_trouble
        if self._troubles:  # a partition is described too, though its rows come as those of its table
            about = [self._troubles[oid] for oid in Changes(changes).oids if oid in self._troubles]
            self.trouble = self.trouble or next(iter(about), None)
        if self.trouble is None:
            self._reached = end
            messages += changes

    def _note_relation(self, message: bytes, tables: Mapping[int, Table]) -> None:
        """See whether a table is as it was when the stream began."""
        found = relation_of(message)
        table = tables.get(found.oid)
        self._troubles.pop(found.oid, None)
        if table is None:
            self._troubles[found.oid] = (
                f"table {found.schema}.{found.name} is new in the publication: restart() begins anew, with it"
            )
        elif other := table.other(found):
            self._troubles[found.oid] = (
                f"table {table.label} was altered: {other}: load relation {table.relation!r} anew, empty, and"
                " restart()"
            )

    def _keepalive(self, data: bytes, messages: list[bytes]) -> None:
        end, asks = struct.unpack_from(">QxxxxxxxxB", data, 1)
        self._written = max(self._written, end)
        if not self._open and not messages:
            self._reached = max(self._reached, end)
        if asks:
            self._report()

    def _comes(self, seconds: float) -> bool:
        """Whether something comes, within so long."""
        if time.monotonic() - self._reported > _REPORT:
            self._report()
        if not select.select([self._wire.socket], [], [], max(0.0, seconds))[0]:
            return False
        self._wire.consume_input()
        return True

    def _report(self, asks: bool = False) -> None:
        """Tell the server what is on disk; ``asks``: it answers."""
        self._reported = time.monotonic()
        since_2000 = int((time.time() - 946_684_800) * 1_000_000)
        place = self._told
        self._wire.put_copy_data(struct.pack(">cQQQqB", b"r", place, place, place, since_2000, asks))
        self._wire.flush()

    def _ended(self) -> None:
        """Raise what the server has said."""
        from psycopg import OperationalError

        result = self._wire.get_result()
        text = b"" if result is None else result.error_message
        raise OperationalError(text.decode(errors="replace") or "the stream has ended")


def _quoted(name: str) -> str:
    """A name in a command, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
