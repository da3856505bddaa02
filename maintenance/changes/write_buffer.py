"""The changes that a transaction has staged for one relation.

They add up as a Z-set (docs/design/engine.md section 1): inserting and erasing the same
tuple in one transaction cancel, whatever their order.  What is left is netted
against the version that the transaction changes: a tuple whose weights add up
to more than 0 is in afterwards, to less than 0 is out, and neither is a change
if that is so already.  In a bag the sum of its weights is how many copies come or go, no more than there are.

Batches wait as they came and are added up when the transaction commits; many of them, and tables, wait as
sorted columns, so memory follows the number of distinct rows.  Of a wide relation the rows' codes wait, and
other columns are coded when something reads them; what a rule reads that came meanwhile is looked at for NULL
when the transaction commits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lftj.errors import ChangeError, NullError, TransactionError
from lftj.storage.bags import bag_change
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.wide_columns import WideColumns
from lftj.storage.zset import Weighted
from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.changes.signed import Signed

FEW_ROWS = 1 << 10
"""Batches of at most this many rows wait as they came."""

FEW_BATCHES = 1 << 10
"""So many of them are added up."""


class WriteBuffer:
    """Staged changes of a relation.

    ``read``: of a wide relation, the columns in which all of them were looked at for NULL.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, ColumnType
    >>> from lftj.values.domains import Domains
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> buffer = WriteBuffer(Schema((Column("a", integer), Column("b", integer))))
    >>> buffer.stage([np.array([3, 1]), np.array([4, 2])], np.array([1, 1]))
    >>> buffer.stage([np.array([3]), np.array([4])], np.array([-1]))
    >>> columns, weights = buffer.zset()
    >>> [column.tolist() for column in columns], weights.tolist()
    ([[1], [2]], [1])
    """

    def __init__(self, schema: Schema, read: frozenset[int] = frozenset()) -> None:
        self.schema = schema
        self.read = read
        self._arity = 1 if schema.wide else len(schema.shown.columns)
        self._batches: list[tuple[np.ndarray, np.ndarray]] = []
        self._tables: Weighted | None = None
        self.staged_rows = 0

    def stage(self, columns: Columns, weights: np.ndarray) -> None:
        """Add int64 columns, in any order and with repetitions; of a wide relation the rows' codes."""
        self.staged_rows += len(weights)
        if len(weights) > FEW_ROWS:
            self._sum().add(list(columns), weights)
            return
        self._batches.append((np.array(columns), np.array(weights)))
        if len(self._batches) > FEW_BATCHES:
            self._add_up()

    def take(self, rows: Signed) -> None:
        """Add rows as they were read."""
        self.stage(rows.columns, rows.weights)

    def zset(self) -> tuple[Columns, np.ndarray]:
        """Sorted distinct tuples whose weights add up to something else than 0."""
        if self._tables is None:
            return net_rows(*self._waiting())
        self._add_up()
        return self._tables.finish()

    def _sum(self) -> Weighted:
        if self._tables is None:
            self._tables = Weighted(self._arity)
        return self._tables

    def _add_up(self) -> None:
        rows, weights = self._waiting()
        self._sum().add(list(rows), weights)
        self._batches.clear()

    def _waiting(self) -> tuple[np.ndarray, np.ndarray]:
        """The batches, one behind the other."""
        batches = self._batches
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return np.empty((self._arity, 0), np.int64), np.empty(0, np.int64)
        return (
            np.concatenate([rows for rows, _ in batches], axis=1),
            np.concatenate([weights for _, weights in batches]),
        )

    def net(self, version: RelationVersion) -> Change:
        """What the staged changes do to a version.

        Raises TransactionError if its relation was loaded anew since they were staged, ChangeError for a NULL
        in a column that a rule reads that was installed since, and KeyConflictError.
        """
        if version.schema is not self.schema:
            raise TransactionError(
                f"{version.name!r} was loaded anew after changes to it had been staged: stage them again"
            )
        if self.schema.bag:
            columns, signs = bag_change(version, *self.zset())
            return Change(columns, signs, max(0, self.staged_rows - len(signs)))
        columns, signs, no_changes = self._changing(version)
        if not self.schema.wide:
            return Change(columns, signs, no_changes)
        changed = WideColumns(version.name, self.schema, columns[0])
        _refuse_null(version.name, changed, version.read_columns - self.read)
        return Change(changed, signs, no_changes)

    def _changing(self, version: RelationVersion) -> tuple[np.ndarray, np.ndarray, int]:
        """The tuples that come and go, 1 or -1 for each, and how many staged ones change nothing."""
        columns, signs = version.change_by(*self.zset())
        return columns, signs, self.staged_rows - len(signs)


def _refuse_null(name: str, columns: WideColumns, numbers: Iterable[int]) -> None:
    """Raise ChangeError where columns of changes that may not hold NULL do."""
    for number in numbers:
        try:
            columns.refuse_null(number)
        except NullError:
            label = columns.label(number)
            raise ChangeError(
                f"changes of {name!r}, column {label!r}: NULL, and a rule that was installed after they were"
                " staged reads the column: stage them anew, without NULL"
            ) from None
