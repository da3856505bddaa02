"""Arrow Flight by hand: frames of HTTP/2, messages of gRPC, bytes of Arrow, any of which may be wrong.

Source: RFC 9113 and 7541, gRPC over HTTP/2, Flight.proto.
"""

from __future__ import annotations

import socket
import struct

import pyarrow as pa

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(method: str) -> bytes:
    pairs = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/arrow.flight.protocol.FlightService/{method}",
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    literals = [b"\0" + _text(name) + _text(value) for name, value in pairs.items()]
    return frame(_HEADERS, _END_HEADERS, 1, b"".join(literals))


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def data(messages: bytes, most: int = 1 << 14) -> bytes:
    """Frames of at most so many bytes, the last of which ends the stream."""
    pieces = [messages[start : start + most] for start in range(0, len(messages), most)] or [b""]
    return b"".join(
        frame(_DATA, _END_STREAM * (number == len(pieces) - 1), 1, piece)
        for number, piece in enumerate(pieces)
    )


def message(payload: bytes) -> bytes:
    """Of gRPC, not compressed."""
    return b"\0" + struct.pack(">I", len(payload)) + payload


def field(number: int, payload: bytes) -> bytes:
    """Of a protocol buffer: bytes, or a message."""
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def flight_data(metadata: bytes, body: bytes = b"", path: str | None = None) -> bytes:
    descriptor = b"" if path is None else field(1, b"\x08\x01" + field(3, path.encode()))
    return descriptor + field(2, metadata) + field(1000, body)


def of_batch(batch: pa.RecordBatch) -> list[tuple[bytes, bytes]]:
    """Metadata and body of the messages of a batch: its schema, and itself."""
    found = []
    for serialized in (batch.schema.serialize(), batch.serialize()):
        one = pa.ipc.read_message(serialized)
        found.append((one.metadata.to_pybytes(), b"" if one.body is None else one.body.to_pybytes()))
    return found


def answered(port: int, sent: bytes, seconds: float) -> bytes:
    """What comes back on a connection of its own, until it ends or its one stream does."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(seconds)
        connection.sendall(_PREFACE + frame(_SETTINGS, 0, 0, b"") + sent)
        came = b""
        try:
            while not _has_ended(came):
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                came += piece
        except OSError:
            pass
        return came


def _has_ended(came: bytes) -> bool:
    """Whether the stream is at its end."""
    at = 0
    while at + 9 <= len(came):
        length = int.from_bytes(came[at : at + 3], "big")
        kind, flags = came[at + 3], came[at + 4]
        if at + 9 + length > len(came):
            return False
        if kind in (_RST, _GOAWAY) or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
            return True
        at += 9 + length
    return False
