"""A PostgreSQL that is thrown away, and a client of its simple queries.

Servers say rows as text here, which :mod:`fuzz.sql.oracles` reads by the types that are expected.
Source: PostgreSQL's manual, "Frontend/Backend Protocol", message formats.
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from bench.postgres_server import SOCKET, Server, programs

FOLDER = "LFTJ_FUZZ_POSTGRES"
"""The variable of the environment that says in which folder the cluster's socket is."""

_PROTOCOL = 3 << 16


class PostgresError(Exception):
    """The server refuses the statement; ``code``: its SQLSTATE."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def cluster() -> Iterator[bool]:
    """Run a server while the context is open, its folder in the environment; False where there is none."""
    if programs() is None or os.environ.get(FOLDER):
        yield programs() is not None
        return
    with tempfile.TemporaryDirectory(prefix="lftj-postgres-", ignore_cleanup_errors=True) as made:
        server = Server(made)
        os.environ[FOLDER] = made
        try:
            yield True
        finally:
            del os.environ[FOLDER]
            server.stop()


class Client:
    """One connection, over the socket in a folder."""

    def __init__(self, folder: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30.0)
        self._socket.connect(f"{folder}/{SOCKET}")
        self._bytes = b""
        start = b"user\0lftj\0database\0postgres\0\0"
        self._socket.sendall(struct.pack("!ii", len(start) + 8, _PROTOCOL) + start)
        self._answer()

    def close(self) -> None:
        self._socket.close()

    def query(self, text: str) -> list[tuple[str | None, ...]]:
        """The rows of the last statement in the text, values as the server writes them.

        Raises:
            PostgresError: where it refuses.
        """
        told = text.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(told) + 4) + told)
        return self._answer()

    def _read(self, size: int) -> bytes:
        while len(self._bytes) < size:
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("the server is gone")
            self._bytes += more
        read, self._bytes = self._bytes[:size], self._bytes[size:]
        return read

    def _answer(self) -> list[tuple[str | None, ...]]:
        rows: list[tuple[str | None, ...]] = []
        error: PostgresError | None = None
        while True:
            kind = self._read(1)
            (size,) = struct.unpack("!i", self._read(4))
            body = self._read(size - 4)
            if kind == b"T":
                rows = []
            elif kind == b"D":
                rows.append(_row(body))
            elif kind == b"E":
                parts = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
                error = PostgresError(parts[b"C"], parts[b"M"])
            elif kind == b"Z":
                if error is not None:
                    raise error
                return rows


def _row(body: bytes) -> tuple[str | None, ...]:
    (width,) = struct.unpack_from("!h", body)
    values: list[str | None] = []
    at = 2
    for _ in range(width):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        values.append(None if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return tuple(values)
