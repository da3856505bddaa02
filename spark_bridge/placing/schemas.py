"""Schemas between Spark and Arrow.

An Arrow field that is not nullable is a column without NULL: of relations that keep none, those that Spark
declares NOT NULL, and those of heads for which no rule gives one.  Results are nullable all through.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    StringType,
    StructType,
    TimestampType,
    VarcharType,
)

from lftj.errors import SourceError, UnsupportedTypeError
from lftj.values.domains import Domains
from lftj.values.schema import Schema

BINARY = "UTF8_BINARY"
"""The collation in which strings are equal if their bytes are."""


def column_names(relations: Mapping[str, DataFrame]) -> dict[str, list[str]]:
    """The columns of all relations by name; what they hold is not looked at.

    Raises SourceError for what is no DataFrame, or a stream, or has no column or two of one name.
    """
    if not isinstance(relations, Mapping) or not relations:
        raise SourceError("relations are given by name, at least one: {'edge': edges_df}")
    for name, frame in relations.items():
        if isinstance(frame, DataFrame) and frame.isStreaming:
            raise SourceError(
                f"relation {name!r} is a streaming DataFrame: make a MaintainedJoin of what there is, and"
                " give its changes to stream()"
            )
    return {name: names_of(name, frame) for name, frame in relations.items()}


def names_of(name: str, frame: DataFrame) -> list[str]:
    """The columns of a DataFrame that is to be relation ``name``; raises as :func:`column_names` does."""
    if not isinstance(frame, DataFrame):
        raise SourceError(f"relation {name!r} is a {type(frame).__name__}, not a Spark DataFrame")
    names = frame.columns
    if not names:
        raise SourceError(f"relation {name!r} has no columns")
    twice = [label for label in names if names.count(label) > 1]
    if twice:
        raise SourceError(f"relation {name!r} has two columns called {twice[0]!r}: rename one with toDF()")
    return names


def arrow_schema(name: str, schema: StructType) -> pa.Schema:
    """Of Spark's schema of a relation; raises UnsupportedTypeError for a column that can't be joined on."""
    return pa.schema(
        [
            pa.field(field.name, column_type(name, field.name, field.dataType), nullable=field.nullable)
            for field in schema
        ]
    )


def without_null(schema: pa.Schema) -> pa.Schema:
    """The schema of a relation that holds no NULL."""
    return pa.schema([field.with_nullable(False) for field in schema])


def with_required(schema: pa.Schema, column: str) -> pa.Schema:
    """The schema of a relation of which one column, if it is there, holds no NULL."""
    return pa.schema([field.with_nullable(field.nullable and field.name != column) for field in schema])


def declared_schema(schema: Schema) -> pa.Schema:
    """Names and types of a relation's or head's columns, and which of them may hold NULL."""
    return pa.schema([pa.field(each.name, each.type.arrow, each.type.nullable) for each in schema.columns])


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of a result; its timestamps have a zone exactly where the Arrow types have.

    Raises UnsupportedTypeError for decimals of more than 38 digits, which products may have.
    """
    for field in schema:
        if pa.types.is_decimal256(field.type):
            raise UnsupportedTypeError(
                f"column {field.name!r} of the result is of type {field.type}, and Spark's decimals have 38"
                " digits at most: cast the input to fewer digits, or to double"
            )
    return from_arrow_schema(pa.schema([field.with_nullable(True) for field in schema]))


def spark_type(type_: pa.DataType) -> DataType | None:
    """Spark's type of an Arrow type; None: it has none."""
    try:
        return from_arrow_type(type_)
    except PySparkTypeError:
        return None


def type_text(type_: DataType) -> str:
    """The type in Spark's SQL, where ``timestamp`` is what a setting says."""
    if isinstance(type_, ArrayType):
        return f"ARRAY<{type_text(type_.elementType)}>"
    return "TIMESTAMP_LTZ" if isinstance(type_, TimestampType) else type_.simpleString()


def plain(type_: DataType) -> DataType:
    """The type, ``string`` in place of ``char`` and ``varchar``, whose values are the same."""
    return StringType() if isinstance(type_, CharType | VarcharType) else type_


def column_type(relation: str, column: str, type_: DataType) -> pa.DataType:
    """The Arrow type of a column.  Raises UnsupportedTypeError for one that can't be joined on."""
    if isinstance(type_, StringType) and type_.collation != BINARY:
        raise UnsupportedTypeError(
            f"relation {relation!r}, column {column!r}: values of type {type_.simpleString()} are equal by"
            f" the rules of their collation, and here by their bytes alone: give {column} COLLATE {BINARY}"
        )
    try:
        arrow = to_arrow_type(plain(type_), timezone="UTC")
        Domains().of(arrow)
    except (PySparkTypeError, UnsupportedTypeError):
        raise UnsupportedTypeError(
            f"relation {relation!r}, column {column!r}: values of type {type_.simpleString()} can't be joined"
            " on; leave the column out, or cast it to a number, string, binary, date or timestamp"
        ) from None
    return arrow
