"""Who may do what: bearer tokens, each with a role, and the addresses that may be listened on without.

Invariants

1. A token is compared in a time that does not say how much of it is right, and stands in no message, log or
   ``repr``.
2. Without tokens nobody but this machine reaches the service.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.flight as flight

from lftj.errors import ServiceError

_LEAST_LENGTH = 16
"""Characters of a token: fewer can be guessed."""

_SCHEME = "Bearer "


class Role(Enum):
    """What a token is for.  Whoever may write may read."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, repr=False)
class Tokens:
    """The tokens and the role of each; none: everybody who reaches the service may write."""

    roles: Mapping[str, Role]

    def __post_init__(self) -> None:
        for token in self.roles:
            if len(token) < _LEAST_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
                raise ServiceError(
                    f"a token has {_LEAST_LENGTH} printable ASCII characters or more, and no space:"
                    " python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
                )

    @classmethod
    def read(cls, path: str | Path) -> Tokens:
        """Those of a file: a line ``read TOKEN`` or ``write TOKEN`` each, and lines that begin with ``#``.

        Raises ServiceError, which names the file and the line and not what stands there.
        """
        roles: dict[str, Role] = {}
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ServiceError(f"the tokens of {path} can't be read: {error}") from error
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in (role.value for role in Role):
                raise ServiceError(f"{path}, line {number}: a line is 'read TOKEN' or 'write TOKEN'")
            roles[words[1]] = Role(words[0])
        if not roles:
            raise ServiceError(f"{path} has no tokens: a line is 'read TOKEN' or 'write TOKEN'")
        return cls(roles)

    def role_of(self, header: str) -> Role | None:
        """What an ``authorization`` header allows; None: nothing."""
        given = header.removeprefix(_SCHEME).encode() if header.startswith(_SCHEME) else b""
        found = None
        for token, role in self.roles.items():  # all of them, whichever is right
            if hmac.compare_digest(token.encode(), given):
                found = role
        return found


class AccessFactory(flight.ServerMiddlewareFactory):
    """Looks at the ``authorization`` header of each call; see :func:`may_write`."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> Access:
        if not self._tokens.roles:
            return Access(Role.WRITE)
        given = next((values for name, values in headers.items() if name.lower() == "authorization"), [])
        role = self._tokens.role_of(given[0]) if len(given) == 1 else None
        if role is None:
            raise flight.FlightUnauthenticatedError(
                "no token that is known: send the header 'authorization: Bearer TOKEN'"
            )
        return Access(role)


class Access(flight.ServerMiddleware):
    """What a call may do."""

    NAME = "access"

    def __init__(self, role: Role) -> None:
        self.role = role


def refuse_reader(context: Any) -> None:
    """Raise FlightUnauthorizedError in a call that changes something and may not."""
    if context.get_middleware(Access.NAME).role is not Role.WRITE:
        raise flight.FlightUnauthorizedError("this token may read, and not write")


def refuse_open_door(location: str, has_tokens: bool) -> None:
    """Raise ServiceError for an address that others reach, where anybody might write or listen."""
    parts = urlsplit(location)
    try:
        is_address = parts.scheme in ("grpc", "grpc+tls") and parts.hostname and parts.port is not None
    except ValueError:  # of the port
        is_address = False
    if not is_address:
        raise ServiceError(f"{location!r} is no address: give grpc://HOST:PORT or grpc+tls://HOST:PORT")
    if _is_loopback(parts.hostname or ""):
        return
    if not has_tokens:
        raise ServiceError(
            f"others reach {parts.hostname}: give tokens (--tokens FILE), or listen on 127.0.0.1"
        )
    if parts.scheme != "grpc+tls":
        raise ServiceError(
            f"tokens would be sent to {parts.hostname} for all to read: give a certificate and its key"
            " (--tls-cert FILE --tls-key FILE), or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
