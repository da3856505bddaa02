"""What a commit changed, by codes: decoded head by head when a table is asked for.

Invariant: the codes keep their values as long as this lives (:mod:`lftj.values.collector`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from lftj.storage.signed_rows import net_rows
from lftj.values.collector import Held
from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.changes.changes import change_table
from maintenance.changes.timed_change import TimedChange


class CodedChanges:
    """The changes of some heads.

    >>> from lftj.values.domains import Domains
    >>> from lftj.values.schema import Column, ColumnType
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("a", integer),))
    >>> tables = CodedChanges({"seen": schema}, {"seen": Change([np.array([7])], np.array([-1]))})
    >>> tables("seen").to_pylist()
    [{'a': 7, 'weight': -1}]
    """

    def __init__(self, schemas: Mapping[str, Schema], changes: Mapping[str, Change]) -> None:
        """``changes``: of those heads of ``schemas`` that have one."""
        self._schemas = schemas
        self._changes = changes
        for name in changes:
            schemas[name].hold(self)

    def held(self) -> list[Held]:
        """The codes that are to keep their values."""
        return held_codes(self, self._schemas, self._changes)

    @property
    def names(self) -> Collection[str]:
        """The heads that changed."""
        return self._changes.keys()

    @property
    def nbytes(self) -> int:
        """Bytes of the codes and weights."""
        return sum(
            change.weights.nbytes + sum(column.nbytes for column in change.columns)
            for change in self._changes.values()
        )

    def change(self, name: str) -> Change:
        """The change of a head that changed."""
        return self._changes[name]

    def schema(self, name: str) -> Schema:
        return self._schemas[name]

    def __call__(self, name: str) -> pa.Table:
        """The table of a head's change, for the user."""
        return table_of_change(self._schemas[name], self._changes.get(name))


def held_codes(
    holder: object, schemas: Mapping[str, Schema], *changes: Mapping[str, Change | TimedChange]
) -> list[Held]:
    """The codes of changes of relations with these schemas, as long as the holder lives."""
    columns = [
        (domain, change.columns[number])
        for each in changes
        for name, change in each.items()
        if name in schemas
        for number, domain in schemas[name].dictionaries
    ]
    return [Held(holder, columns)]


def table_of_change(schema: Schema, change: Change | None) -> pa.Table:
    """A change as a table for the user; None for one that changes nothing.

    Of a bag each row comes once, its weight says how many copies came or went.
    """
    if change is None:
        change = Change([np.empty(0, np.int64) for _ in schema.columns], np.empty(0, np.int64))
    if schema.bag:
        return change_table(schema, *net_rows(change.columns[:-1], change.weights))
    return change_table(schema, change.columns, change.weights)
