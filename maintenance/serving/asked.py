"""What a call asks for: JSON objects in tickets, commands and the bodies of actions.

Anybody may send anything: what is no such object is refused with a word on what is one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn, TypeVar

from lftj.errors import ServiceError

MOST_BYTES = 1 << 20
"""Of a request: a rule or a SELECT is shorter."""


MOST = (1 << 63) - 1
"""Of a number."""


@dataclass(frozen=True)
class Rows:
    """The rows of a relation or head as they are; all columns where none are named."""

    relation: str
    columns: list[str] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Answer:
    """The answer of a SELECT, ``params`` for its ``?`` or ``$name``."""

    sql: str
    params: list[Any] | dict[str, Any] | None = None


@dataclass(frozen=True)
class Query:
    """What rules give: ``head``, or the head of the last one."""

    rules: str
    head: str | None = None
    params: dict[str, Any] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Since:
    """What a head's rows did since a version, all commits together."""

    changes: str
    since: int


@dataclass(frozen=True)
class Follow:
    """What a head's rows do, a commit at a time; ends when so many seconds passed without a change."""

    follow: str
    since: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Put:
    """Batches of rows, or of changes, each of which is a transaction.

    With ``writer`` all of them are one, which leads from his version ``since`` to ``version``; without
    ``since`` they are all that the relation is to have.  What leads to a version that he has is passed over.
    ``rows``: how many they are; the end of a stream that was cut looks as any other.
    """

    relation: str
    mode: str = "insert"
    writer: str | None = None
    version: int | None = None
    since: int | None = None
    rows: int | None = None


Reading = Rows | Answer | Query | Since | Follow
READINGS: tuple[type[Reading], ...] = (Rows, Answer, Query, Since, Follow)
MODES = ("insert", "erase", "upsert", "apply")

_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "list[Any]": (list,),
    "list[str]": (list,),
    "dict[str, Any]": (dict,),
    "None": (type(None),),
}

One = TypeVar("One")


def reading(asked: bytes) -> Reading:
    """What a ticket, or the command of a descriptor, asks for.  Raises ServiceError."""
    given = _object(asked)
    for kind in READINGS:
        first = fields(kind)[0].name
        if first in given:
            return _made(kind, given)
    known = ", ".join(f'"{fields(kind)[0].name}"' for kind in READINGS)
    raise ServiceError(f"a request is a JSON object with one of {known}; this one has {_named(given)}")


def put(asked: bytes) -> Put:
    """What the command of a descriptor says of rows that are put.  Raises ServiceError."""
    found = _made(Put, _object(asked))
    if found.mode not in MODES:
        raise ServiceError(f'"mode" is {found.mode!r}; it can be {", ".join(map(repr, MODES))}')
    together = {found.writer is None, found.version is None, found.rows is None}
    if len(together) > 1 or (found.writer is None and found.since is not None):
        raise ServiceError('"writer", "version" and "rows" go together, and "since" with them')
    return found


def writer_of(asked: bytes) -> str:
    """The writer that the body of an action names.  Raises ServiceError."""
    writer = _object(asked).get("writer")
    if not isinstance(writer, str):
        raise ServiceError('the body of "version" is empty, or an object with a "writer"')
    return writer


def _object(asked: bytes) -> dict[str, Any]:
    if len(asked) > MOST_BYTES:
        raise ServiceError(f"a request has {MOST_BYTES:,} bytes at most, this one {len(asked):,}")
    try:
        given = json.loads(asked, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ServiceError(f"a request is a JSON object: {error}") from None
    if not isinstance(given, dict):
        raise ServiceError(f"a request is a JSON object, not a {type(given).__name__}")
    return given


def _no_number(word: str) -> NoReturn:
    """For NaN and Infinity, which Python takes beside JSON."""
    raise ValueError(f"{word} is no number of JSON")


def _made(kind: type[One], given: Mapping[str, Any]) -> One:
    known = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    if others := given.keys() - known.keys():
        raise ServiceError(f"{_named(dict.fromkeys(sorted(others)))} is unknown beside {_named(known)}")
    for name, value in given.items():
        allowed = [one for part in known[name].split(" | ") for one in _TYPES[part]]
        if not isinstance(value, tuple(allowed)) or isinstance(value, bool):
            raise ServiceError(f'"{name}" is a {type(value).__name__}; it is to be {known[name]}')
        if isinstance(value, int | float) and not 0 <= value <= MOST:
            raise ServiceError(f'"{name}" is {value:.3g}; it can be 0 to {MOST:,}')
        if known[name].startswith("list[str]") and not _are_strings(value):
            raise ServiceError(f'"{name}" is to be a list of strings')
    try:
        return kind(**given)
    except TypeError:
        first = next(iter(known))
        raise ServiceError(f'the request lacks one of {_named(known)}: "{first}" at least') from None


def _are_strings(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _named(names: Mapping[str, object]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "nothing"
