"""Rows of a batch as they are handed over: which transactions there are, and what each does to a relation.

Cost: one sort of the rows, and one look-up of each in its relation's version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import ChangeError, TransactionError
from lftj.storage.bags import timed_bag_change
from lftj.storage.keyed import Events, keyed_change
from lftj.storage.relation_version import RelationVersion
from lftj.storage.wide_columns import with_read_columns
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from maintenance.changes.changes import encode_timed_zset
from maintenance.changes.keyed_buffer import events_of
from maintenance.changes.signed import Signed
from maintenance.changes.timed_change import TimedChange, starts_of, timed


@dataclass(frozen=True, eq=False)
class StagedRows:
    """Rows of changes of one relation, and the number of each one's transaction."""

    schema: Schema
    rows: Signed
    times: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def chosen(self, rows: np.ndarray) -> StagedRows:
        """The rows of a mask, of a relation without a key."""
        columns = [column[rows] for column in self.rows.columns]
        return StagedRows(self.schema, Signed(columns, self.rows.weights[rows]), self.times[rows])

    def net(self, name: str, version: RelationVersion) -> TimedChange:
        """What the rows do to a version, time after time, as each transaction by itself would.

        Raises TransactionError if the relation was loaded anew since they were read, and of one with a key
        KeyConflictError, whose ``time`` is that of the transaction.
        """
        if version.schema is not self.schema:
            raise TransactionError(
                f"{name!r} was loaded anew while changes to it were read: apply them again"
            )
        if self.schema.key:
            return self._keyed(name, version)
        rows, times, weights = timed(self.rows.columns, self.times, self.rows.weights)
        if not len(weights):
            return TimedChange(np.empty((len(self.schema.columns), 0), np.int64), times, weights)
        if self.schema.bag:
            return TimedChange(*timed_bag_change(version, rows, times, weights))
        starts = starts_of(rows)[:-1]
        there = weights > 0
        before = np.roll(there, 1)
        before[starts] = version.weights(np.ascontiguousarray(rows[:, starts])) > 0
        changes = there != before
        signs = np.where(there, 1, -1)[changes]
        changed = np.ascontiguousarray(rows[:, changes])
        if self.schema.wide:
            changed = with_read_columns(name, self.schema, changed[0], version.read_columns)
        return TimedChange(changed, times[changes], signs)

    def _keyed(self, name: str, version: RelationVersion) -> TimedChange:
        events = events_of(name, self.schema, self.rows)
        order = np.argsort(self.times, kind="stable")
        change = keyed_change(
            version, Events(*(each.take(order, axis=-1) for each in events)), self.times[order]
        )
        rows = change.rows
        if self.schema.wide:
            rows = with_read_columns(name, self.schema, rows[0], version.read_columns)
        return TimedChange(rows, change.times, change.signs)


def read_batch(
    changes: Mapping[str, Any], version_of: Callable[[str], RelationVersion], domains: Domains
) -> tuple[list[Any], dict[str, StagedRows]]:
    """The transactions of a batch in order, and the rows of each relation.

    Raises ChangeError, and the errors of reading the sources.
    """
    read = {}
    for name, source in changes.items():
        version = version_of(name)
        schema, its = version.schema, version.read_columns
        read[name] = schema, *encode_timed_zset(name, schema, source, domains, its)
    with_txn = [name for name, (*_, column) in read.items() if column is not None]
    if with_txn and len(with_txn) < len(read):
        without = next(name for name in read if name not in with_txn)
        raise ChangeError(f"changes of {with_txn[0]!r} have transactions, and those of {without!r} have none")
    columns = [column for *_, column in read.values() if column is not None]
    if len({column.type for column in columns}) > 1:
        shown = " and ".join(str(column.type) for column in columns)
        raise ChangeError(f"the transactions of several relations are of one type; they are of {shown}")
    if not columns:
        values = pa.nulls(min(len(read), 1))
    else:
        values = pa.chunked_array([chunk for column in columns for chunk in column.chunks]).unique().sort()
    staged = {}
    for name, (schema, rows, column) in read.items():
        times = np.zeros(len(rows.weights), np.int64)
        if column is not None:
            times = pc.index_in(column, value_set=values).to_numpy().astype(np.int64)
        staged[name] = StagedRows(schema, rows, times)
    return values.to_pylist(), staged
