"""The changes that a transaction has staged for one relation.

They add up as a Z-set (ENGINE.md section 1): inserting and erasing the same
tuple in one transaction cancel, whatever their order.  What is left is netted
against the version that the transaction changes: a tuple whose weights add up
to more than 0 is in afterwards, to less than 0 is out, and neither is a change
if that is so already.

Single tuples wait in a sorted dictionary, tables as sorted columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sortedcontainers import SortedDict

from lftj.body import Schema
from lftj.errors import TransactionError
from lftj.relation_version import RelationVersion
from lftj.zset import Weighted

FEW_ROWS = 256
"""Batches of at most this many rows go to the sorted dictionary."""


@dataclass(frozen=True)
class Change:
    """A change of one relation: sorted distinct tuples, +1 (was absent) or -1 (was present).

    ``no_changes``: staged tuples that left the relation as it was.
    """

    columns: list[np.ndarray]
    weights: np.ndarray
    no_changes: int = 0

    def __len__(self) -> int:
        return len(self.weights)


class WriteBuffer:
    """Staged changes of a relation.

    >>> import pyarrow as pa
    >>> from lftj.body import Column, ColumnType
    >>> from lftj.domains import Domains
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> buffer = WriteBuffer(Schema((Column("a", integer), Column("b", integer))))
    >>> buffer.stage([np.array([3, 1]), np.array([4, 2])], np.array([1, 1]))
    >>> buffer.stage([np.array([3]), np.array([4])], np.array([-1]))
    >>> columns, weights = buffer.zset()
    >>> [column.tolist() for column in columns], weights.tolist()
    ([[1], [2]], [1])
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._arity = len(schema.columns)
        self._rows: SortedDict = SortedDict()
        self._tables: Weighted | None = None
        self.staged_rows = 0

    def stage(self, columns: Sequence[np.ndarray], weights: np.ndarray) -> None:
        """Add int64 columns, in any order and with repetitions."""
        self.staged_rows += len(weights)
        if len(weights) > FEW_ROWS:
            if self._tables is None:
                self._tables = Weighted(self._arity)
            self._tables.add(columns, weights)
            return
        rows = self._rows
        listed = zip(*(column.tolist() for column in columns), strict=True)
        for row, weight in zip(listed, weights.tolist(), strict=True):
            rows[row] = rows.get(row, 0) + weight

    def zset(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Sorted distinct tuples whose weights add up to something else than 0."""
        kept = [(row, weight) for row, weight in self._rows.items() if weight]
        matrix = np.array([row for row, _ in kept], dtype=np.int64).reshape(len(kept), self._arity)
        columns = [np.ascontiguousarray(column) for column in matrix.T]
        weights = np.array([weight for _, weight in kept], dtype=np.int64)
        if self._tables is None:
            return columns, weights
        self._tables.add(columns, weights)
        self._rows.clear()
        return self._tables.finish()

    def net(self, version: RelationVersion) -> Change:
        """What the staged changes do to a version.

        Raises TransactionError if its relation was loaded anew since they were staged.
        """
        if version.schema is not self.schema:
            raise TransactionError(
                f"{version.name!r} was loaded anew after changes to it had been staged: stage them again"
            )
        columns, weights = self.zset()
        if not len(weights):
            return Change(columns, weights, self.staged_rows)
        held = version.weights(columns)
        signs = np.sign(weights)
        changes = (signs > 0) != (held > 0)
        if not changes.all():
            columns, signs = [column[changes] for column in columns], signs[changes]
        return Change(columns, signs, self.staged_rows - len(signs))
