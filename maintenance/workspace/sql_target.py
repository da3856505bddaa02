"""`SqlTarget`: what the SQL of one transaction reads, and what it must not.

Invariants

1. All statements of a transaction read one state, that of its first statement.
2. What they have read is as it was when the transaction is committed, or the commit raises ConflictError.
3. A statement does not read what the transaction has changed: it raises TransactionError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lftj.errors import ConflictError, TransactionError
from lftj.language.diagnostics import quoted_list
from lftj.statements.binder import Binder
from lftj.storage.codes_table import table_of_codes
from lftj.storage.keyed import rows_of_keys
from lftj.storage.relation_version import RelationVersion
from lftj.values.schema import Schema
from maintenance.changes.changes import encode_keys
from maintenance.strategies.strategy import Versions
from maintenance.workspace.snapshot import Snapshot


class Staging(Protocol):
    """A transaction, as SQL changes it."""

    @property
    def changing(self) -> set[str]:
        """The relations of which changes are staged, and the heads that follow them."""

    def refuse_head(self, name: str) -> None: ...

    def apply(self, relation: str, zset: Any) -> None: ...


class SqlTarget:
    """Of one transaction.  ``state``: the workspace as it is when the first statement comes."""

    def __init__(
        self, staging: Staging, state: Snapshot, schemas: Mapping[str, Schema], binder: Binder
    ) -> None:
        self.binder, self.schemas = binder, schemas
        self.refuse_head, self.apply = staging.refuse_head, staging.apply
        self._staging, self._state = staging, state
        self._read: dict[str, RelationVersion] = {}

    def read(self, sql: str, names: set[str]) -> pa.Table:
        """The rows of a SELECT.  Raises as `Database.sql`, and TransactionError."""
        self._reads(names)
        return self._state.sql(sql)

    def rows_of_keys(self, name: str, keys: pa.Table) -> pa.Table:
        """The rows that a relation has of some keys, as tables of their columns.  O(log n) for each.

        Raises as `Transaction.erase_keys`, and TransactionError.
        """
        self._reads({name})
        version, schema = self._state.versions[name], self.schemas[name]
        codes = encode_keys(name, schema, keys, self._state.domains).keys
        assert codes is not None
        there, rows = rows_of_keys(version, np.ascontiguousarray(np.unique(codes, axis=1)))
        return table_of_codes(schema, list(rows[:, there]))

    def _reads(self, names: set[str]) -> None:
        """Note that a statement reads these.  Raises TransactionError."""
        if changed := names & self._staging.changing:
            raise TransactionError(
                f"the statement reads {quoted_list(sorted(changed), 'and')}, which the transaction has"
                " changed already: SQL in a transaction reads what was there before it; commit first"
            )
        self._read.update((name, self._state.versions[name]) for name in names)

    def refuse_conflict(self, versions: Versions) -> None:
        """Raise ConflictError where what was read is not what is there."""
        for name, version in self._read.items():
            if versions.get(name) is not version:
                raise ConflictError(
                    f"{name!r} was changed by another transaction after a statement of this one had read it:"
                    " nothing was committed; run the statements again"
                )
