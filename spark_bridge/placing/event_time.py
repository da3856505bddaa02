"""Which relations of a program are streams: what a caller says of their times, and what the program declares.

stream trade(t) late 5s keep 2h.    or time={"trade": "t"}, lateness="5s", keep="2 hours"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lftj.errors import RuleError, SourceError, StreamError, UnknownRelationError
from lftj.language.declared_streams import check_streams, clashing, stream_declared
from lftj.language.diagnostics import error_at
from lftj.language.recent import with_recent
from lftj.language.syntax import DeclaredStream, Program
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from lftj.values.streams import Span, Stream, stream_of

Spans = Mapping[str, Span] | Span
"""By stream, or one of all."""

_SPARK_SPAN = re.compile(r"([0-9]+) (day|hour|minute|second|millisecond|microsecond)s?")
_UNITS = {"millisecond": "ms", "microsecond": "us"}


@dataclass(frozen=True)
class TimeSettings:
    """What a caller says of streams: of each the column of its time, and spans."""

    time: Mapping[str, str]
    lateness: Spans | None = None
    keep: Spans | None = None
    ahead: Spans | None = None

    def span(self, option: str, name: str) -> Span | None:
        """Of a stream; as Spark writes intervals, too: ``"7 days"``."""
        given = getattr(self, option)
        span = given.get(name) if isinstance(given, Mapping) else given
        found = _SPARK_SPAN.fullmatch(span) if isinstance(span, str) else None
        return f"{found[1]}{_UNITS.get(found[2], found[2][0])}" if found else span

    def refuse_others(self, relations: Mapping[str, list[str]], keys: Mapping[str, object]) -> None:
        """Raise for what is no stream: UnknownRelationError, SourceError for a column, StreamError."""
        for name, column in self.time.items():
            if name not in relations:
                raise UnknownRelationError(f"time of {name!r}: relations are {', '.join(relations)}")
            if column not in relations[name]:
                raise SourceError(
                    f"time of {name!r} is {column!r}; it is one of the columns {', '.join(relations[name])}"
                )
        for option in ("lateness", "keep", "ahead"):
            given = getattr(self, option)
            names = given if isinstance(given, Mapping) else [] if given is None or self.time else [""]
            for name in names:
                if name not in self.time:
                    of = f" of {name!r}" if name else ""
                    raise StreamError(
                        f"{option}{of} is about a stream: name its column, time={{{name or '...'!r}: ...}}"
                    )
        for name in keys:
            if name in self.time:
                raise StreamError(
                    f"stream {name!r}: key= replaces rows, and rows of a stream leave by their time: choose"
                    " one"
                )


def time_columns(program: Program, settings: TimeSettings) -> dict[str, str]:
    """By stream, the column of its time."""
    return {each.relation: each.time.name for each in program.streams} | dict(settings.time)


def streams_of(
    program: Program, schemas: Mapping[str, pa.Schema], settings: TimeSettings
) -> tuple[tuple[str, Stream], ...]:
    """The streams among relations, those that the program declares included.

    Raises RuleError and StreamError for what can't be.
    """
    streams = {}
    for name, column in settings.time.items():
        arrow = schemas[name].field(column).type
        spans = {option: settings.span(option, name) for option in ("lateness", "keep", "ahead")}
        streams[name] = stream_of(name, column, arrow, spans.pop("lateness") or 0, **spans)
    catalog = _schemas(schemas, streams)
    for each in program.streams:
        if each.relation in schemas and each.relation not in streams:
            streams[each.relation] = _declared(program, each, catalog)
    catalog = _schemas(schemas, streams)
    check_streams(program, catalog)
    for name in streams:
        if problem := clashing(name, catalog[name], catalog):
            raise StreamError(problem)
    if not streams:
        with_recent(program, catalog)
        for final in program.finals:
            message = f"'{final.head}' reads no stream, so no clock closes it: name the stream by time="
            raise error_at(RuleError, program.text, final.span, message)
    return tuple(streams.items())


def _declared(program: Program, each: DeclaredStream, catalog: Mapping[str, Schema]) -> Stream:
    known = [column.name for column in catalog[each.relation].columns]
    if each.time.name not in known:
        check_streams(program, catalog)  # says so
    return stream_declared(program, each, catalog[each.relation])


def catalog_of(
    schemas: Mapping[str, pa.Schema], streams: Mapping[str, Stream], domains: Domains
) -> dict[str, Relation]:
    """Relations without rows, those that are streams as such."""
    return {
        name: Relation.from_table(name, schema.empty_table(), domains, "keep").with_stream(streams.get(name))
        for name, schema in schemas.items()
    }


def _schemas(schemas: Mapping[str, pa.Schema], streams: Mapping[str, Stream]) -> dict[str, Schema]:
    return {name: empty.schema for name, empty in catalog_of(schemas, streams, Domains()).items()}
