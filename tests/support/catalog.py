"""Schemas for tests of the checker: a handful of loaded relations, of a type each."""

from __future__ import annotations

import pyarrow as pa

from lftj.language.body import CheckedProgram
from lftj.language.checker import check
from lftj.language.parser import parse
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

DOMAINS = Domains()


def schema(**columns: pa.DataType) -> Schema:
    return Schema(
        tuple(Column(name, ColumnType(DOMAINS.of(type_), type_)) for name, type_ in columns.items())
    )


CATALOG = {
    "edge": schema(src=pa.int64(), dst=pa.int64()),
    "node": schema(id=pa.int32()),
    "item": schema(item=pa.string()),
    "base": schema(item=pa.string(), price=pa.decimal128(8, 2)),
    "colour": schema(item=pa.string(), colour=pa.dictionary(pa.int8(), pa.string())),
    "made": schema(item=pa.string(), day=pa.date32()),
    "w": schema(a=pa.int64(), w=pa.float64()),
    "t": schema(x=pa.int64(), t=pa.timestamp("us", "UTC")),
    "c": schema(x=pa.int64()),
    "d": schema(x=pa.int64(), y=pa.int64()),
    "e": schema(x=pa.int64()),
}


def checked(text: str, **more: Schema) -> CheckedProgram:
    """The program checked against ``CATALOG`` and more relations."""
    return check(parse(text), {**CATALOG, **more}, DOMAINS)


def types_of(program: CheckedProgram, relation: str) -> list[tuple[str, str]]:
    """Names and Arrow types of a derived relation's columns."""
    return [(column.name, str(column.type.arrow)) for column in program.derived[relation].columns]
