"""Changes of a relation as DataFrames, in the relation's own types."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lftj.errors import ChangeError
from spark_bridge.cells.signed_tables import signed, weight_of
from spark_bridge.placing.schemas import arrow_schema, plain, spark_schema


def changes_in_types(name: str, frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """Changes of a relation with its columns in its types, in its order, and the weight.

    Raises ChangeError for other columns, and for types whose values may not be of the relation's.
    """
    label = weight_of(schema)
    given = arrow_schema(name, frame)
    wanted = [*schema.names, label]
    missing = [column for column in wanted if column not in given.names]
    extra = [column for column in given.names if column not in wanted]
    if missing or extra:
        raise ChangeError(
            f"changes of {name!r} have the columns {', '.join(given.names)};"
            f" they have to be {', '.join(wanted)}"
        )
    if not pa.types.is_integer(given.field(label).type):
        raise ChangeError(
            f"changes of {name!r}: the weight is of type {given.field(label).type}, not an integer"
        )
    columns = []
    types = {field.name: field.dataType for field in spark_schema(signed(schema))}
    for column in wanted:
        have, want = given.field(column).type, signed(schema).field(column).type
        if have != want and not _widens(have, want):
            raise ChangeError(
                f"changes of {name!r}, column {column!r}: the values are of type {have}, the relation's"
                f" of type {want}: cast the column"
            )
        place = given.get_field_index(column)
        columns.append(F.col(f"c{place}").cast(plain(types[column])).alias(column))
    # By place: Spark takes names that differ in case only for one.
    return frame.toDF(*(f"c{place}" for place in range(len(given)))).select(*columns)


def _widens(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether every value of a type is one of another."""
    integers = pa.types.is_integer(have) and pa.types.is_integer(want)
    floats = pa.types.is_floating(have) and pa.types.is_floating(want)
    return (integers or floats) and have.bit_width <= want.bit_width
