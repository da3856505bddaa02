"""Rows of a test as a DataFrame that is a table of Arrow's.

Of a list of rows Spark makes tasks over pickled rows, which each query of it runs anew, and joins take a
sample of what may be much.  The rows of a table it knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema


def frame_of_rows(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """``schema``: columns with their types, as ``createDataFrame`` takes them."""
    struct = T.StructType.fromDDL(schema)
    fields = to_arrow_schema(struct, timezone="UTC")
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(fields)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=fields), struct)
