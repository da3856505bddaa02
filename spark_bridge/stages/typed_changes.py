"""Changes of a relation as DataFrames, in the relation's own types.

A column may have another type of the same kind, as changes of a workspace may: integers, floats and decimals
of any width.  What the relation's type can't hold exactly is found in the tasks, and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
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
from maintenance.changes.operations import OPERATIONS
from spark_bridge.cells.signed_tables import events, op_of, signed, weight_of
from spark_bridge.placing.char_columns import padded
from spark_bridge.placing.read_columns import ReadRelation, by_place
from spark_bridge.placing.schemas import arrow_schema, names_of, plain


def changes_in_order(
    frame: DataFrame, relation: ReadRelation, schema: pa.Schema, key: Collection[str] = ()
) -> tuple[DataFrame, pa.Schema]:
    """Changes of a relation with its columns in its order and the weight, and the types that they are of.

    ``schema``: the relation's; ``key``: its key's columns, and then the changes become events
    (:func:`~spark_bridge.cells.signed_tables.events`) by a weight or an operation.  Raises ChangeError for
    other columns, and for types of another kind.
    """
    name, label = relation.name, weight_of(schema)
    wanted, given = [*schema.names, label], names_of(name, frame)
    by_op = bool(key) and op_of(schema) in given and label not in given
    if set(wanted) != set(given) and not (by_op and {*schema.names, op_of(schema)} == set(given)):
        raise ChangeError(
            f"changes of {name!r} have the columns {', '.join(given)}; they have to be {', '.join(wanted)}"
            + f", or {op_of(schema)} in place of {label}" * bool(key)
        )
    types = {field.name: field.dataType for field in frame.schema}
    if not by_op and not isinstance(types[label], IntegralType):
        raise ChangeError(
            f"changes of {name!r}: the weight is of type {types[label].simpleString()}, not an integer"
        )
    names, placed = by_place(frame)
    of = {name: F.col(column) for name, column in names.items()}
    if not key:
        marks = [of[label].cast("bigint").alias(label)]
    else:
        resets, weight = _marks(of[op_of(schema)]) if by_op else (F.lit(False), of[label].cast("bigint"))
        marks = [
            column.alias(each)
            for column, each in zip((resets, weight), events(schema).names[-2:], strict=True)
        ]
        # Of what erases by key the other columns say nothing.
        says_row = F.when(~resets | (weight != 0), F.lit(True))
        of |= {each.name: F.when(says_row, of[each.name]) for each in relation.fields if each.name not in key}
    for field in relation.fields:
        if field.name in relation.read:
            of[field.name] = padded(of[field.name], field)
        else:
            of[field.name] = _unread(name, of[field.name], types[field.name], field)
    changes = placed.select(*relation.columns(of), *marks)
    have = arrow_schema(name, changes.schema)
    for field, want in zip(have, events(schema) if key else signed(schema), strict=True):
        if Domains().of(field.type).name != Domains().of(want.type).name:
            raise _other_type(name, field.name, field.type, want.type)
    return changes, have


def _marks(op: Column) -> tuple[Column, Column]:
    """Whether the row of the key goes, and the weight, by an operation; NULL where it is none."""
    resets, weight = F.lit(None).cast("boolean"), F.lit(None).cast("bigint")
    for word, does in OPERATIONS.items():
        resets = F.when(op == word, F.lit(does.resets)).otherwise(resets)
        weight = F.when(op == word, F.lit(does.weight).cast("bigint")).otherwise(weight)
    return resets, weight


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
