"""Second rows: what a relation with a key (:mod:`lftj.storage.keyed`) can't have, and what is said of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.errors import KeyConflictError, NullError
from lftj.storage.codes_table import table_of_codes
from lftj.storage.trie import Trie
from lftj.values.schema import Schema
from lftj.values.spelling import spelled


def keyed_schema(name: str, schema: Schema, key: Sequence[str]) -> Schema:
    """The schema of a relation with these columns as its key.  Raises NullError where one may be NULL."""
    keyed = schema.with_key(key)
    for number in keyed.key_numbers:
        if (column := keyed.columns[number]).type.nullable:
            raise NullError(
                f"relation {name!r}: column {column.name!r} may be NULL, and a key has no NULL: load it with"
                f" not_null=[{column.name!r}]"
            )
    return keyed


def refuse_second_rows(name: str, schema: Schema, index: Trie) -> None:
    """Raise KeyConflictError where a relation has two rows of one key.  O(its keys).

    ``index``: of all its rows, by :attr:`~lftj.values.schema.Schema.key_levels`.
    """
    level = len(schema.key) - 1
    starts = index.leaf_offsets(level)
    several = np.flatnonzero(np.diff(starts) > 1)
    if not len(several):
        return
    places = starts[several[0]] + np.arange(2)
    levels = [
        keys[np.searchsorted(index.leaf_offsets(number), places, "right") - 1]
        for number, keys in enumerate(index.keys)
    ]
    rows = np.array([levels[schema.key_levels.index(number)] for number in schema.identity])
    raise KeyConflictError(f"{_two_rows(name, schema, rows)}: leave all but one out, or give another key")


def key_conflict(name: str, schema: Schema, rows: np.ndarray, time: int) -> KeyConflictError:
    """The error about a change by which there would be two rows of one key.

    ``rows``: int64 (columns that tell rows apart, 2).
    """
    error = KeyConflictError(
        f"{_two_rows(name, schema, rows)}: upsert() replaces the row of a key, erase_keys() takes it away"
    )
    error.time = time
    return error


def _two_rows(name: str, schema: Schema, rows: np.ndarray) -> str:
    table = table_of_codes(schema, list(rows))
    shown = [[spelled(column.slice(row, 1).combine_chunks()) for column in table.columns] for row in range(2)]
    values = dict(zip(table.column_names, shown[0], strict=True))
    key = ", ".join(f"{column}={values[column]}" for column in schema.key)
    first, second = (f"({', '.join(row)})" for row in shown)
    return f"relation {name!r}: there are two rows of key {key}, {first} and {second}"
