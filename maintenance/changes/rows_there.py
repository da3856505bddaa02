"""Rows that a transaction erases because they are there: `RowsThere`.

Whether they are is told when they are staged, by the newest version and what is staged before them; and again
when the transaction commits, by the version of then.

Cost: two look-ups a row, and what the changes come to that are staged before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.errors import ChangeError, ConflictError
from lftj.storage.bags import Holding, copies_of
from lftj.storage.codes_table import shown_values
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns
from lftj.values.schema import Schema
from lftj.values.spelling import spelled
from maintenance.changes.change import Change
from maintenance.changes.write_buffer import WriteBuffer


class RowsThere:
    """Rows of one call, as they are given: int64 columns, of a wide relation the rows' codes.

    >>> import pyarrow as pa
    >>> from lftj.storage.relation import Relation
    >>> from lftj.values.domains import Domains
    >>> edge = RelationVersion(Relation.from_table("edge", pa.table({"a": [1], "b": [5]}), Domains()))
    >>> rows = [np.array([1, 2]), np.array([5, 6])]
    >>> RowsThere(edge, WriteBuffer(edge.schema), rows)
    Traceback (most recent call last):
        ...
    lftj.errors.ChangeError: erase from 'edge': row 1 (counting from 0), (2, 6), is not there; \
missing="ignore" passes over such rows
    """

    def __init__(self, version: RelationVersion, buffer: WriteBuffer, columns: Columns) -> None:
        """``buffer``: what is staged before them.  Raises ChangeError for the first that is not there."""
        self._version = version
        self._rows = np.array(columns)
        numbers = _occurrences(self._rows) if version.schema.bag else np.zeros(self._rows.shape[1], np.int64)
        before = after = _held(version, version.schema, self._rows)
        if buffer.staged_rows or buffer.schema is not version.schema:  # which it refuses
            after = _held(_Changed(version, buffer.net(version)), version.schema, self._rows)
        missing = after <= numbers
        if missing.any():
            row = int(np.argmax(missing))
            raise ChangeError(f"erase from {version.name!r}: {self._shown(row)}, is not there{self._way_out}")
        self._needed = numbers + 1 - (after - before)
        """So many of each the versions must hold, whatever is staged."""

    def refuse_conflict(self, versions: Mapping[str, RelationVersion]) -> None:
        """Raise ConflictError where another transaction has erased some since."""
        name, schema = self._version.name, self._version.schema
        version = versions.get(name)
        if version is self._version or version is None or version.schema is not schema:
            return  # what is loaded anew refuses all that is staged
        gone = _held(version, schema, self._rows) < self._needed
        if gone.any():
            raise ConflictError(
                f"erase from {name!r}: {self._shown(int(np.argmax(gone)))}, was erased by another transaction"
                " after this one had found it: nothing was committed; stage the changes again"
            )

    def _shown(self, row: int) -> str:
        its = shown_values(self._version.schema, self._rows[:, row : row + 1])
        values = ", ".join(spelled(column.combine_chunks()) for column in its)
        return f"row {row} (counting from 0), ({values})"

    @property
    def _way_out(self) -> str:
        name, schema = self._version.name, self._version.schema
        by_key = f"; erase_keys({name!r}, ...) takes keys, whatever the rest of a row" if schema.key else ""
        return f'; missing="ignore" passes over such rows{by_key}'


class _Changed:
    """A version after a change, for look-ups alone."""

    def __init__(self, version: RelationVersion, change: Change) -> None:
        self._version = version
        schema = version.schema
        columns = np.array([change.columns[number] for number in schema.identity])
        self._parts = [
            (sign, RelationVersion.of_sorted(version.name, schema, schema.identity, list(columns[:, chosen])))
            for sign in (1, -1)
            if (chosen := change.weights == sign).any()
        ]

    def weights(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """1 for each of these tuples that is present, else 0."""
        held = self._version.weights(columns)
        for sign, part in self._parts:
            held += sign * part.weights(columns)
        return held


def _held(version: Holding, schema: Schema, rows: np.ndarray) -> np.ndarray:
    """How often each row is there: int64 (n,)."""
    return copies_of(version, rows) if schema.bag else version.weights(list(rows))


def _occurrences(rows: np.ndarray) -> np.ndarray:
    """How often each row, int64 (columns, n), stands before itself.

    >>> _occurrences(np.array([[7, 5, 7, 7]])).tolist()
    [0, 0, 1, 2]
    """
    order = np.lexsort(rows[::-1])
    ordered = rows[:, order]
    is_first = np.ones(rows.shape[1], bool)
    is_first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    places = np.arange(rows.shape[1])
    numbers = np.empty_like(places)
    numbers[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    return numbers
