"""The changes that a transaction has staged for a relation with a key: :class:`KeyedBuffer`.

They wait in their order, for upserts and erasures by key are about what is there by then
(:mod:`lftj.storage.keyed`); what they come to is worked out when the transaction commits.

Cost: memory follows what is staged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.storage.keyed import Events, keyed_change, keys_of
from lftj.storage.relation_version import RelationVersion
from lftj.values.schema import Schema
from maintenance.changes.signed import Signed
from maintenance.changes.write_buffer import FEW_BATCHES, WriteBuffer


class KeyedBuffer(WriteBuffer):
    """Staged changes of a relation with a key; else as :class:`WriteBuffer`."""

    def __init__(self, name: str, schema: Schema, read: frozenset[int] = frozenset()) -> None:
        super().__init__(schema, read)
        self._name = name
        self._few: list[Events] = []
        self._many: list[Events] = []
        """Each is many of them in one."""

    def take(self, rows: Signed) -> None:
        """Add rows, behind those that are there."""
        self._few.append(events_of(self._name, self.schema, rows))
        self.staged_rows += len(rows.weights)
        if len(self._few) > FEW_BATCHES:
            self._many.append(_in_one(self._few))
            self._few = []

    def _changing(self, version: RelationVersion) -> tuple[np.ndarray, np.ndarray, int]:
        batches = [*self._many, *self._few]
        if not batches:
            return np.empty((self._arity, 0), np.int64), np.empty(0, np.int64), 0
        change = keyed_change(version, _in_one(batches))
        return change.rows, change.signs, change.no_changes


def events_of(name: str, schema: Schema, rows: Signed) -> Events:
    """Rows of changes as what happens to the relation."""
    keys, resets = rows.keys, rows.resets
    if keys is None:
        keys = keys_of(name, schema, rows.columns)
    if resets is None:
        resets = np.zeros(len(rows.weights), bool)
    return Events(keys, np.array(rows.columns), np.array(rows.weights), resets)


def _in_one(batches: Sequence[Events]) -> Events:
    return Events(*(np.concatenate(each, axis=-1) for each in zip(*batches, strict=True)))
