"""Columns of Arrow as those of a relation, exactly; a row with a value that does not fit is a fault."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import SourceError
from lftj.values.exact_casts import InexactError, converts, exactly
from maintenance.sources.json_rows import Rows


def rows_of_table(table: pa.Table, columns: pa.Schema, ops: pa.Array) -> Rows:
    """The rows of a table that has the columns, and perhaps others, which are left aside.

    ``ops``: what happens to each row.  Raises SourceError for a column of a type that can't become the
    other.

    >>> table = pa.table({"a": [1, 300]})
    >>> rows = rows_of_table(table, pa.schema({"a": pa.int8()}), pa.nulls(2, pa.string()))
    >>> rows.columns[0].to_pylist(), rows.numbers.tolist(), rows.faults
    ([1], [0], {1: "column 'a': 300 is not int8"})
    """
    faults: dict[int, str] = {}
    values, wrong = [], np.zeros(table.num_rows, bool)
    for column in columns:
        given = table[column.name]
        if not converts(given.type, column.type):
            raise SourceError(f"column {column.name!r} is of type {given.type}, and was {column.type}")
        while True:
            try:
                values.append(exactly(given, column.type).combine_chunks())
                break
            except InexactError as error:
                wrong[error.row] = True
                text = f"column {column.name!r}: {error.value[0].as_py()!r} is not {column.type}"
                faults.setdefault(error.row, text)
                given = pc.if_else(pa.array(~wrong), given, pa.scalar(None, given.type))
    rows = Rows(values, ops, np.arange(table.num_rows), faults)
    return rows.taken(np.flatnonzero(~wrong)) if faults else rows
