"""``stream trade(t) late 5s keep 2h.``: what a program declares of loaded relations' times."""

from __future__ import annotations

from collections.abc import Mapping

from lftj.errors import RuleError, StreamError
from lftj.language.declared_keys import declared_of
from lftj.language.diagnostics import error_at
from lftj.language.syntax import Atom, DeclaredStream, Program, Variable
from lftj.values.schema import Schema
from lftj.values.streams import Stream, stream_of


def check_streams(program: Program, catalog: Mapping[str, Schema]) -> None:
    """Raise RuleError, with a caret under the place, where a relation is not the stream that is declared."""
    for declared in program.streams:
        schema = declared_of(program, declared, catalog)
        if schema.stream == stream_declared(program, declared, schema):
            continue
        message = f"'{declared.relation}' was loaded as no stream: load it with time='{declared.time.name}'"
        if schema.stream is not None:
            message = (
                f"'{declared.relation}' is a stream with other settings: declare it as it is, or not at all"
            )
        elif schema.key:
            message = (
                f"'{declared.relation}' has a key, by which rows are replaced, and rows of a stream leave by"
                " their time: load it without key="
            )
        raise error_at(RuleError, program.text, declared.span, message)


def stream_declared(program: Program, declared: DeclaredStream, schema: Schema) -> Stream:
    """What a declaration of a relation with this schema says.  Raises RuleError for what can't be."""
    name = declared.time.name
    arrow = next(column.type.arrow for column in schema.shown.columns if column.name == name)
    try:
        return stream_of(
            declared.relation, name, arrow, declared.lateness or 0, declared.keep, declared.ahead
        )
    except StreamError as error:
        raise error_at(RuleError, program.text, declared.span, str(error)) from None


def time_variable(atom: Atom, schema: Schema | None) -> str | None:
    """The variable that an atom has a stream's time in; None where there is none, or no stream."""
    if schema is None or schema.stream is None:
        return None
    labels = [one.name for one in atom.names] or [column.name for column in schema.shown.columns]
    for label, term in zip(labels, atom.terms, strict=False):
        if label == schema.stream.time and isinstance(term, Variable):
            return term.name
    return None


def clashing(name: str, schema: Schema, catalog: Mapping[str, Schema]) -> str | None:
    """What to say of a stream whose time is not of the type of the other streams'; None where it is."""
    own = schema.columns[schema.time_number]
    for other, its in catalog.items():
        if its.stream is None or other == name:
            continue
        column = its.columns[its.time_number]
        if column.type.domain is not own.type.domain:
            return (
                f"stream {name!r}: its time {own.name!r} is of type {own.type.arrow}, and that of stream"
                f" {other!r} of type {column.type.arrow}: streams have one clock, so cast one of them"
            )
    return None
