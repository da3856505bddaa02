"""Rows as a relation takes them: those that it would refuse are found before, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.schema import Schema
from maintenance.changes.labels import op_label
from maintenance.changes.operations import BY_KEY, OPERATIONS
from maintenance.sources.json_rows import Rows
from maintenance.sources.source import columns_of


def checked_rows(schema: Schema, rows: Rows) -> pa.Table:
    """The rows that a relation takes, as a table with a column ``op``; the others become faults of ``rows``.

    ``rows.numbers`` are those of the table's rows then.

    Refused are words that are no operation, an update where there is no key, and NULL in a column that holds
    none.  A row that says no operation replaces that of its key, or comes where there is no key.
    """
    ops, numbers = pc.fill_null(rows.ops, "U" if schema.key else "I"), rows.numbers
    wrong = np.zeros(len(numbers), bool)
    _refuse(rows, wrong, ~_are(ops, list(OPERATIONS)), lambda row: f"its op is {ops[row].as_py()!r}")
    if not schema.key:
        _refuse(
            rows, wrong, _are(ops, ["U", "u"]), lambda row: "it is an update, and the relation has no key"
        )
    by_key = _are(ops, BY_KEY) if schema.key else np.zeros(len(numbers), bool)
    for number, values in zip(schema.declared, rows.columns, strict=True):
        column = schema.columns[number]
        if values.null_count and not column.type.nullable:
            missing = values.is_null().to_numpy(zero_copy_only=False)
            if column.name not in schema.key:
                missing &= ~by_key
            _refuse(rows, wrong, missing, partial(_missing, column.name))
    if wrong.any():
        kept = rows.taken(np.flatnonzero(~np.isin(numbers, numbers[wrong])))
        rows.columns, rows.ops, rows.numbers = kept.columns, kept.ops, kept.numbers
        ops = pc.fill_null(rows.ops, "U" if schema.key else "I")
    names = columns_of(schema).names
    return pa.Table.from_arrays([*rows.columns, ops], [*names, op_label(schema)])


def _are(ops: pa.Array, words: Sequence[str]) -> np.ndarray:
    return pc.is_in(ops, value_set=pa.array(words)).to_numpy(zero_copy_only=False)


def _missing(column: str, row: int) -> str:
    return f"column {column!r} is missing, or NULL"


def _refuse(rows: Rows, wrong: np.ndarray, refused: np.ndarray, reason: Callable[[int], str]) -> None:
    """Rows that are refused become faults of their texts, the first of each."""
    for row in np.flatnonzero(refused).tolist():
        rows.faults.setdefault(int(rows.numbers[row]), reason(row))
    wrong |= refused
