"""A Flight service of another workspace, as sources and sinks ask it (docs/flight.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow.flight as flight

from lftj.errors import LftjError
from lftj.files.whole_files import reason

WORKSPACE, VERSION = b"lftj.workspace", b"lftj.version"
"""In the metadata of schemas: which workspace the rows are of, and which version."""

_ANSWER = 30.0
"""Seconds for which the service may take to answer a short question."""


class Server(NamedTuple):
    """Where a service is, and who asks.  ``token`` and ``tls_roots``, PEM, are shown nowhere."""

    location: str
    token: str | None
    tls_roots: bytes | None


class Client:
    """A connection to a service."""

    def __init__(self, connection: flight.FlightClient, token: str | None) -> None:
        self.connection = connection
        self._headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]

    def options(self, timeout: float | None = None) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(timeout=timeout, headers=self._headers)

    def rows(self, **asked: Any) -> flight.FlightStreamReader:
        """What a ticket gives."""
        return self.connection.do_get(flight.Ticket(json.dumps(asked).encode()), self.options())

    def answer(self, action: str, **asked: Any) -> dict[str, Any]:
        """What an action says."""
        body = json.dumps(asked).encode() if asked else b""
        (result,) = self.connection.do_action(flight.Action(action, body), self.options(_ANSWER))
        answer: dict[str, Any] = json.loads(result.body.to_pybytes())
        return answer


@contextmanager
def connected(
    server: Server, wrong: Callable[[str], LftjError], away: Callable[[str], LftjError], again: str
) -> Generator[Client]:
    """A client; what Flight raises is what ``wrong`` makes of its words, or ``away`` where nobody answers.

    ``again``: what is to be done then, as words.
    """
    try:
        with flight.FlightClient(server.location, tls_root_certs=server.tls_roots) as connection:
            yield Client(connection, server.token)
    except flight.FlightUnauthenticatedError:
        raise wrong(f"{server.location} knows no such token: give one, with token=") from None
    except (flight.FlightUnavailableError, flight.FlightTimedOutError, flight.FlightCancelledError) as error:
        raise away(f"{server.location} is not there: {reason(error)}: {again}") from None
    except flight.FlightError as error:
        raise wrong(f"{server.location} says: {words_of(error)}") from None
    except OSError as error:
        raise wrong(f"{server.location}: {reason(error)}: {again}") from None


def words_of(error: flight.FlightError) -> str:
    """What a service said, without what gRPC adds."""
    return str(error).partition(". Detail: ")[0]


def class_of(error: flight.FlightError) -> str:
    """The class of the engine's error that a service had; empty for others."""
    try:
        return str(json.loads(error.extra_info)["error"])
    except (ValueError, KeyError, TypeError):
        return ""
