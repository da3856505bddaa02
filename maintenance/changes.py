"""What a user hands to a transaction, as code columns of a relation, and changes as tables for the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.body import Schema
from lftj.domains import Domains
from lftj.errors import ChangeError, DataError, SourceError
from lftj.kinds import cast_decimal
from lftj.signed_rows import Columns
from lftj.sources import array_of_numpy, read_table

WEIGHT = "weight"

MOST_WEIGHT = 2**31
"""Weights are no larger, so that the sums of a transaction's stay within 64 bits."""


def encode_rows(name: str, schema: Schema, source: Any, domains: Domains) -> list[np.ndarray]:
    """Rows of a source, in any form that ``load`` takes, as one int64 column per column of the schema.

    Rows may repeat.  Raises ChangeError, NullError and the errors of reading the source.
    """
    quick = _plain_integers(name, schema, source)
    if quick is not None:
        return quick
    table = _read(name, schema, source)
    return _codes(name, schema, table.columns, domains)


def encode_zset(
    name: str, schema: Schema, source: Any, domains: Domains
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows and weights of a source with a ``weight`` column (see :func:`weight_label`), in any place.

    Raises ChangeError when there is none, or when a weight is not an integer or beyond MOST_WEIGHT.
    """
    label = weight_label(schema)
    try:
        table = read_table(source, [*(column.name for column in schema.columns), label])
    except SourceError as error:
        raise ChangeError(f"changes of {name!r}: {error}") from None
    weights = table.column(label)
    if not pa.types.is_integer(weights.type):
        raise ChangeError(f"changes of {name!r}: the weight is of type {weights.type}, not an integer")
    if weights.null_count:
        row = int(np.argmax(weights.is_null().to_numpy()))
        raise ChangeError(f"changes of {name!r}: the weight of row {row} (counting from 0) is NULL")
    numbers = weights.to_numpy()
    if len(numbers) and (numbers.max() > MOST_WEIGHT or numbers.min() < -MOST_WEIGHT):
        row = int(np.argmax((numbers > MOST_WEIGHT) | (numbers < -MOST_WEIGHT)))
        raise ChangeError(
            f"changes of {name!r}: the weight of row {row} (counting from 0) is {numbers[row]};"
            f" weights are from -{MOST_WEIGHT:,} to {MOST_WEIGHT:,}"
        )
    return _codes(name, schema, table.columns[:-1], domains), numbers.astype(np.int64)


def change_table(schema: Schema, columns: Columns, weights: np.ndarray) -> pa.Table:
    """A change as its columns' values and an int64 ``weight``, +1 or -1."""
    arrays = [
        column.type.domain.decode(codes, column.type.arrow)
        for column, codes in zip(schema.columns, columns, strict=True)
    ]
    weight = array_of_numpy(np.ascontiguousarray(weights, np.int64))
    return pa.Table.from_arrays([*arrays, weight], [*(c.name for c in schema.columns), weight_label(schema)])


def weight_label(schema: Schema) -> str:
    """The name of the column of weights: ``weight``, or ``weight_`` where the relation has such a column."""
    return label_beside(WEIGHT, [column.name for column in schema.columns])


def label_beside(label: str, names: Sequence[str]) -> str:
    """``label``, with as many underscores as tell it from all ``names``.

    >>> label_beside("weight", ["a", "weight"])
    'weight_'
    """
    while label in names:
        label += "_"
    return label


def _plain_integers(name: str, schema: Schema, source: Any) -> list[np.ndarray] | None:
    """The quick way for a list of tuples of ints into int64 columns; None where it does not apply."""
    if not isinstance(source, list | tuple) or not source:
        return None
    if any(column.type.arrow != pa.int64() for column in schema.columns):
        return None
    width = len(schema.columns)
    for row in source:
        if type(row) is not tuple or len(row) != width:
            return None
        for value in row:
            if type(value) is not int:
                return None
    try:
        matrix = np.array(source, dtype=np.int64)
    except OverflowError:
        raise ChangeError(f"changes of {name!r}: an integer doesn't fit 64 bits with a sign") from None
    return list(np.ascontiguousarray(matrix.T))


def _read(name: str, schema: Schema, source: Any) -> pa.Table:
    wanted = [column.name for column in schema.columns]
    named = isinstance(source, dict | pa.Table | pa.RecordBatch) or hasattr(source, "__arrow_c_stream__")
    if isinstance(source, list | tuple) and not len(source):
        return pa.schema([(column.name, column.type.arrow) for column in schema.columns]).empty_table()
    try:
        if isinstance(source, list | tuple) or not (named or isinstance(source, str)):
            return read_table(source, wanted)
        table = read_table(source)
    except SourceError as error:
        raise ChangeError(f"changes of {name!r}: {error}") from None
    if table.num_columns != len(wanted):
        raise ChangeError(
            f"changes of {name!r} have {table.num_columns} columns; the relation has {len(wanted)}:"
            f" {', '.join(wanted)}"
        )
    if set(table.column_names) == set(wanted):
        return table.select(wanted)
    raise ChangeError(
        f"changes of {name!r} have the columns {', '.join(table.column_names)};"
        f" the relation has {', '.join(wanted)}"
    )


def _codes(
    name: str, schema: Schema, values_of: Sequence[pa.ChunkedArray], domains: Domains
) -> list[np.ndarray]:
    columns = []
    for declared, values in zip(schema.columns, values_of, strict=True):
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy()))
            raise ChangeError(
                f"changes of {name!r}, column {declared.name!r}: NULL in row {row} (counting from 0);"
                " relations hold no NULL"
            )
        domain = declared.type.domain
        if values.type != declared.type.arrow:
            values = _cast(name, declared.name, values, declared.type.arrow)
            domain = domains.of(values.type)
        try:
            codes = domain.encode(values)
        except DataError as error:
            raise type(error)(f"changes of {name!r}, column {declared.name!r}: {error}") from None
        columns.append(np.ascontiguousarray(codes, dtype=np.int64))
    return columns


def _cast(name: str, column: str, values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Values in the relation's own type, if all of them can be."""
    same_kind = any(
        test(values.type) and test(wanted)
        for test in (pa.types.is_integer, pa.types.is_floating, _is_text, _is_bytes)
    )
    widens = pa.types.is_integer(values.type) and (
        pa.types.is_floating(wanted) or pa.types.is_decimal(wanted)
    )
    temporal = pa.types.is_temporal(values.type) and pa.types.is_temporal(wanted)
    try:
        if pa.types.is_decimal(values.type) and pa.types.is_decimal(wanted):
            return pa.chunked_array([cast_decimal(chunk, wanted) for chunk in values.chunks], wanted)
        if same_kind or widens or temporal or pa.types.is_dictionary(wanted) or pa.types.is_null(values.type):
            return values.cast(wanted)
        if pa.types.is_dictionary(values.type):
            return values.cast(values.type.value_type).cast(wanted)
    except pa.ArrowException as error:
        raise ChangeError(f"changes of {name!r}, column {column!r}: {error}") from None
    raise ChangeError(
        f"changes of {name!r}, column {column!r}: the values are of type {values.type},"
        f" the relation's of type {wanted}"
    )


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)


def _is_bytes(type_: pa.DataType) -> bool:
    return pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_)
