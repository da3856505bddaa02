"""pgoutput: what PostgreSQL's logical replication says of a transaction, protocol version 1, values as text.

    B begin    R relation: oid, columns    I insert: N row    U update: [K key | O row] N row
    D delete: K key | O row    T truncate    C commit: its end in the log

Source: PostgreSQL's manual, "Logical Replication Message Formats".

The rows of a table in many messages are read at once: a kernel notes where each value stands, and a column of
them becomes an Arrow array of texts.

Cost: one pass over the bytes for each table that is in them, and one copy of its values.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from indices.compiled import kernel, part

BEGIN, COMMIT, RELATION, TRUNCATE, INSERT, UPDATE, DELETE = b"BCRTIUD"

NEW, KEY, OLD = b"NKO"
"""What a row is: what comes, the key of what goes, or all of what goes."""

NULL, UNCHANGED = -1, -2
"""Sizes of values that are not there: a large one that an update did not touch is not sent again."""

_HEADER = 25
"""Bytes of a message before what pgoutput has written: w, three numbers of 64 bits."""


class Column(NamedTuple):
    """``type_oid``, ``modifier``: as ``pg_attribute`` has them; ``tells``: whether it tells rows apart."""

    name: str
    type_oid: int
    modifier: int
    tells: bool


class Relation(NamedTuple):
    """A table as it is in a transaction."""

    oid: int
    schema: str
    name: str
    columns: tuple[Column, ...]


class Tuples(NamedTuple):
    """The rows of a table, in their order.

    ``sides``: uint8 (n,), NEW, KEY or OLD.  ``kinds``: uint8 (n,), of the message.  ``messages``: int64 (n,),
    which one.  ``starts``, ``sizes``: int64 (columns, n), where a value stands in ``data``, and its length.
    """

    sides: np.ndarray
    kinds: np.ndarray
    messages: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    data: np.ndarray

    def texts(self, column: int) -> pa.Array:
        """A column's values as text; NULL where it has none, or was not sent."""
        starts, sizes = self.starts[column], self.sizes[column]
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(np.maximum(sizes, 0), out=offsets[1:])
        values = np.empty(offsets[-1], np.uint8)
        _copy(self.data, starts, sizes, offsets, values)
        known = None
        if (sizes < 0).any():
            known = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little"))
        buffers = [known, pa.py_buffer(offsets), pa.py_buffer(values)]
        return pa.Array.from_buffers(pa.large_string(), len(sizes), buffers)


def relation_of(message: bytes) -> Relation:
    """What a message R says, without the header."""
    data = message
    (oid,) = struct.unpack_from(">I", data, 1)
    schema, at = _word(data, 5)
    name, at = _word(data, at)
    (width,) = struct.unpack_from(">xH", data, at)
    at += 3
    columns = []
    for _ in range(width):
        tells = bool(data[at] & 1)
        label, at = _word(data, at + 1)
        type_oid, modifier = struct.unpack_from(">Ii", data, at)
        columns.append(Column(label, type_oid, modifier, tells))
        at += 8
    return Relation(oid, schema, name, tuple(columns))


def _word(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def truncated(message: bytes) -> Sequence[int]:
    """The tables that a message T names, without the header."""
    (n,) = struct.unpack_from(">xI", message)
    return struct.unpack_from(f">{n}I", message, 6)


def end_of(message: bytes) -> int:
    """Where a transaction ends in the log, by its message C, with the header."""
    end: int = struct.unpack_from(">Q", message, _HEADER + 10)[0]
    return end


class Changes:
    """Messages of changes, with their headers, in order: in one piece."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._data = np.frombuffer(b"".join(messages), np.uint8)
        self._bounds = np.zeros(len(messages) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)), out=self._bounds[1:])

    @property
    def oids(self) -> list[int]:
        """The tables that they are about."""
        at = self._bounds[:-1] + _HEADER + 1
        found = sum(self._data[at + place].astype(np.int64) << (24 - 8 * place) for place in range(4))
        return [int(oid) for oid in np.unique(found)]

    def place(self, message: int) -> int:
        """Where a message stands in the server's log."""
        at = int(self._bounds[message]) + 1
        return int.from_bytes(self._data[at : at + 8].tobytes(), "big")

    def tuples(self, oid: int, width: int) -> Tuples:
        """The rows of a table of so many columns.  Raises ValueError for what is no such message."""
        room = 2 * (len(self._bounds) - 1)
        sides, kinds = np.empty(room, np.uint8), np.empty(room, np.uint8)
        numbers = np.empty(room, np.int64)
        starts, sizes = np.empty((width, room), np.int64), np.empty((width, room), np.int64)
        n = _read(self._data, self._bounds, oid, sides, kinds, numbers, starts, sizes)
        if n < 0:
            raise ValueError(f"message {-1 - n} is not whole, or of another width than {width}")
        starts, sizes = np.ascontiguousarray(starts[:, :n]), np.ascontiguousarray(sizes[:, :n])
        return Tuples(sides[:n], kinds[:n], numbers[:n], starts, sizes, self._data)


@part
def _number(data, at, size):
    """An unsigned number of so many bytes, the highest first."""
    number = np.int64(0)
    for place in range(size):
        number = (number << 8) | np.int64(data[at + place])
    return number


@kernel
def _read(data, bounds, oid, sides, kinds, messages, starts, sizes):
    """Note the rows of a table.

    ``data``: uint8, the messages; ``bounds``: int64 (messages + 1,), where each begins.  The others are those
    of :class:`Tuples`, with room for two rows a message, and are written.  Returns how many rows there are,
    or -1 - m where message m is wrong.
    """
    found = 0
    width = starts.shape[0]
    for message in range(len(bounds) - 1):
        at, end = bounds[message] + _HEADER, bounds[message + 1]
        if at + 5 > end:
            return -1 - message
        kind = data[at]
        if kind != INSERT and kind != UPDATE and kind != DELETE:
            continue
        if _number(data, at + 1, 4) != oid:
            continue
        at += 5
        before = found
        for _ in range(2):
            if at == end:
                break
            if at + 3 > end or _number(data, at + 1, 2) != width:
                return -1 - message
            sides[found], kinds[found], messages[found] = data[at], kind, message
            at += 3
            for column in range(width):
                if at >= end:
                    return -1 - message
                how = data[at]
                at += 1
                size = np.int64(NULL)
                if how == 116:  # t: a text
                    if at + 4 > end:
                        return -1 - message
                    size = _number(data, at, 4)
                    at += 4
                    if at + size > end:
                        return -1 - message
                elif how == 117:  # u: as it was
                    size = np.int64(UNCHANGED)
                elif how != 110:  # n: NULL
                    return -1 - message
                starts[column, found], sizes[column, found] = at, size
                if size > 0:
                    at += size
            found += 1
        if at != end or found == before or (kind == DELETE) == (sides[found - 1] == NEW):
            return -1 - message
    return found


@kernel
def _copy(data, starts, sizes, offsets, values):
    """Values of ``data`` one behind the other: uint8 ``values``, each from its offset on; others int64."""
    for row in range(len(sizes)):
        to = offsets[row]
        for place in range(max(sizes[row], 0)):
            values[to + place] = data[starts[row] + place]
