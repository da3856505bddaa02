"""Changes as tables: a relation's columns and ``weight``, as :mod:`maintenance.changes.changes` has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import NullError
from maintenance.changes.labels import OP, WEIGHT, label_beside


def weight_of(schema: pa.Schema) -> str:
    """The name of the column of weights beside a relation's columns.

    >>> weight_of(pa.schema([("a", pa.int64())])), weight_of(pa.schema([("weight", pa.int64())]))
    ('weight', 'weight_')
    """
    return label_beside(WEIGHT, schema.names)


def op_of(schema: pa.Schema) -> str:
    """The name of the column of operations beside a relation's columns."""
    return label_beside(OP, schema.names)


def signed(schema: pa.Schema) -> pa.Schema:
    """The schema with the column of weights behind."""
    return schema.append(pa.field(weight_of(schema), pa.int64()))


def events(schema: pa.Schema) -> pa.Schema:
    """Of a relation with a key: before the weight stands whether the row of the key goes first.

    An upsert is a reset of weight 1, an erasure by key one of weight 0, of which the other columns are NULL.

    >>> events(pa.schema([("a", pa.int64())])).names
    ['a', 'resets', 'weight']
    """
    return signed(schema.append(pa.field(label_beside("resets", schema.names), pa.bool_())))


def as_events(table: pa.Table) -> pa.Table:
    """The rows of a relation with a key, each as it comes."""
    resets = pa.array(np.zeros(table.num_rows, bool))
    return with_weight(table.append_column(events(table.schema).names[-2], resets))


def with_weight(table: pa.Table, weight: int = 1) -> pa.Table:
    """The rows of a relation, each with this weight."""
    weights = pa.array(np.full(table.num_rows, weight, np.int64))
    return table.append_column(weight_of(table.schema), weights)


def came(table: pa.Table) -> pa.Table:
    """The rows of positive weight, without it."""
    weights = table.column(table.num_columns - 1)
    return table.filter(pc.greater(weights, 0)).drop_columns([table.column_names[-1]])


def all_came(table: pa.Table) -> bool:
    """Whether every weight is positive."""
    weights = table.column(table.num_columns - 1)
    return table.num_rows == 0 or pc.min(weights).as_py() > 0


def refuse_null_weights(name: str, rows: pa.Table) -> None:
    """Raise NullError if a row of changes of a relation has no weight."""
    if rows.column(rows.num_columns - 1).null_count:
        label = rows.column_names[-1]
        raise NullError(f"relation {name!r}, column {label!r}: NULL; every change has a weight")
