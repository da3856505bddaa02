"""Changes of a relation as DataFrames, in the relation's own types.

A column may have another type of the same kind, as changes of a workspace may: integers, floats and decimals
of any width.  What the relation's type can't hold exactly is found in the tasks, and refused.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructField,
)

from lftj.errors import ChangeError
from lftj.values.domains import Domains
from lftj.values.kinds import cast_decimal
from spark_bridge.cells.signed_tables import signed, weight_of
from spark_bridge.placing.char_columns import padded
from spark_bridge.placing.read_columns import ReadRelation, by_place
from spark_bridge.placing.schemas import arrow_schema, names_of, plain


def changes_in_order(
    frame: DataFrame, relation: ReadRelation, schema: pa.Schema
) -> tuple[DataFrame, pa.Schema]:
    """Changes of a relation with its columns in its order and the weight, and the types that they are of.

    ``schema``: the relation's.  Raises ChangeError for other columns, and for types of another kind.
    """
    name, label = relation.name, weight_of(schema)
    wanted, given = [*schema.names, label], names_of(name, frame)
    if set(wanted) != set(given):
        raise ChangeError(
            f"changes of {name!r} have the columns {', '.join(given)}; they have to be {', '.join(wanted)}"
        )
    types = {field.name: field.dataType for field in frame.schema}
    if not isinstance(types[label], IntegralType):
        raise ChangeError(
            f"changes of {name!r}: the weight is of type {types[label].simpleString()}, not an integer"
        )
    of, placed = by_place(frame)
    for field in relation.fields:
        if field.name in relation.read:
            of[field.name] = padded(of[field.name], field)
        else:
            of[field.name] = _unread(name, of[field.name], types[field.name], field)
    columns = [*relation.columns(of), of[label].cast("bigint").alias(label)]
    changes = placed.select(*columns)
    have = arrow_schema(name, changes)
    for field, want in zip(have, signed(schema), strict=True):
        if Domains().of(field.type).name != Domains().of(want.type).name:
            raise _other_type(name, field.name, field.type, want.type)
    return changes, have


def in_types(name: str, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of changes of a relation in the types of its schema.

    Raises ChangeError for a value that a column of the relation can't hold exactly.
    """
    columns = [
        column if column.type == field.type else _cast(name, column, field)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(name: str, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    values = column.combine_chunks()
    cast = _exact_cast(values.type, field.type)
    try:
        return pa.chunked_array([cast(values)], field.type)
    except pa.ArrowInvalid:
        value = _first_refused(values, cast)
        raise ChangeError(
            f"changes of {name!r}, column {field.name!r}: {value} is no value of the relation's type"
            f" {field.type}"
        ) from None


def _exact_cast(have: pa.DataType, want: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    if pa.types.is_decimal(want):
        return lambda values: cast_decimal(values, want)
    if pa.types.is_floating(want) and want.bit_width < have.bit_width:
        return lambda values: _as_narrower_floats(values, want)
    return lambda values: values.cast(want)


def _as_narrower_floats(values: pa.Array, want: pa.DataType) -> pa.Array:
    """Raises ``pa.ArrowInvalid`` where one is not exact."""
    narrow = values.cast(want)
    same = pc.or_(pc.equal(narrow.cast(values.type), values), pc.is_nan(values))
    if not pc.all(same, min_count=0).as_py():
        raise pa.ArrowInvalid("a float of fewer digits")
    return narrow


def _first_refused(values: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> object:
    """The first of some values, of which one can't be cast, that can't."""
    low, high = 0, len(values)  # before ``low`` all can be cast, before ``high`` not all
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cast(values.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return values[low].as_py()


def _unread(name: str, column: Column, have: DataType, field: StructField) -> Column:
    """A column that no rule reads, so that equal values are written like the relation's."""
    want = field.dataType
    if plain(have).simpleString() == plain(want).simpleString():
        return column
    texts = isinstance(plain(have), StringType) and isinstance(plain(want), StringType)
    whole = isinstance(have, IntegralType) and isinstance(want, IntegralType)
    floats = isinstance(have, FloatType | DoubleType) and isinstance(want, FloatType | DoubleType)
    if texts or whole or floats:
        return column
    if isinstance(have, DecimalType) and isinstance(want, DecimalType):
        rises = want.scale - have.scale
        if rises >= 0 and want.precision - have.precision >= rises:
            return column.cast(want)
    raise _other_type(name, field.name, have.simpleString(), want.simpleString())


def _other_type(name: str, column: str, have: object, want: object) -> ChangeError:
    return ChangeError(
        f"changes of {name!r}, column {column!r}: the values are of type {have}, the relation's"
        f" of type {want}: cast the column"
    )
