"""What columns beside a relation's own are called in changes of it."""

from __future__ import annotations

from collections.abc import Sequence

from lftj.values.schema import Schema

WEIGHT = "weight"
TXN = "txn"
OP = "op"


def weight_label(schema: Schema) -> str:
    """The name of the column of weights: ``weight``, or ``weight_`` where the relation has such a column."""
    return _label_of(WEIGHT, schema)


def txn_label(schema: Schema) -> str:
    """The name of the column of transactions: ``txn``, or ``txn_`` where the relation has such a column."""
    return _label_of(TXN, schema)


def op_label(schema: Schema) -> str:
    """The name of the column of operations: ``op``, or ``op_`` where the relation has such a column."""
    return _label_of(OP, schema)


def _label_of(label: str, schema: Schema) -> str:
    return label_beside(label, [column.name for column in schema.shown.columns])


def label_beside(label: str, names: Sequence[str]) -> str:
    """``label``, with as many underscores as tell it from all ``names``.

    >>> label_beside("weight", ["a", "weight"])
    'weight_'
    """
    while label in names:
        label += "_"
    return label
