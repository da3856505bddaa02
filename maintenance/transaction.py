"""A transaction: staged changes of base relations, committed all together or not at all.

Invariants

1. Nothing of the workspace changes before the commit, and the commit publishes
   the new versions by one assignment.
2. A refused change stages nothing; the transaction can go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lftj.errors import TransactionError, UnknownRelationError
from maintenance.changes import encode_rows, encode_zset
from maintenance.stats import TransactionStats
from maintenance.write_buffer import WriteBuffer

if TYPE_CHECKING:
    from maintenance.workspace import Workspace


class Changes(dict[str, pa.Table]):
    """Changes of heads by name, built when first asked for; a head that did not change has an empty one."""

    def __init__(
        self, names: tuple[str, ...] = (), table_of: Callable[[str], pa.Table] | None = None
    ) -> None:
        """``table_of``: builds the change of one of the heads ``names``."""
        super().__init__()
        self._names = names
        self._table_of = table_of

    def __missing__(self, name: str) -> pa.Table:
        if name not in self._names or self._table_of is None:
            known = ", ".join(self._names) or "none is installed"
            raise UnknownRelationError(f"no head is called {name!r}; heads are {known}")
        table = self[name] = self._table_of(name)
        return table

    def keys(self):  # type: ignore[no-untyped-def]
        return dict.fromkeys(self._names).keys()

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def items(self):  # type: ignore[no-untyped-def]
        return [(name, self[name]) for name in self._names]

    def values(self):  # type: ignore[no-untyped-def]
        return [self[name] for name in self._names]


class Transaction:
    """Made by :meth:`~maintenance.workspace.Workspace.transaction`; a context manager.

    Attributes:
        changes: After the commit: per head a table of its columns and ``weight``, +1 or -1.
        stats: After the commit: what it took, per head.
        subscriber_errors: Exceptions that subscribers raised, with the subscriber's name.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._buffers: dict[str, WriteBuffer] = {}
        self._open = True
        self.changes = Changes()
        self.stats = TransactionStats({}, {}, {}, {})
        self.subscriber_errors: list[tuple[str, Exception]] = []

    def insert(self, relation: str, source: Any) -> None:
        """Stage rows to insert, in any form that ``load`` takes; rows that are there are no change."""
        self._stage(relation, source, 1)

    def erase(self, relation: str, source: Any) -> None:
        """Stage rows to erase; rows that are not there are no change."""
        self._stage(relation, source, -1)

    def apply(self, relation: str, zset: Any) -> None:
        """Stage a table with a ``weight`` column: positive to insert, negative to erase."""
        buffer, schema = self._buffer(relation)
        buffer.stage(*encode_zset(relation, schema, zset, self._workspace.domains))

    def _stage(self, relation: str, source: Any, weight: int) -> None:
        buffer, schema = self._buffer(relation)
        columns = encode_rows(relation, schema, source, self._workspace.domains)
        buffer.stage(columns, np.full(len(columns[0]), weight, dtype=np.int64))

    def _buffer(self, relation: str):  # type: ignore[no-untyped-def]
        if not self._open:
            raise TransactionError("the transaction is over: begin another one")
        version = self._workspace.base_version(relation)
        buffer = self._buffers.get(relation)
        if buffer is None:
            buffer = self._buffers[relation] = WriteBuffer(version.schema)
        return buffer, version.schema

    def __enter__(self) -> Transaction:
        if not self._open:
            raise TransactionError("the transaction is over: begin another one")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if not self._open:
            return
        self._open = False
        if kind is None:
            self._workspace.commit(self, self._buffers)

    def commit(self) -> None:
        """Commit outside of a ``with`` block."""
        self.__exit__(None, None, None)

    def roll_back(self) -> None:
        """Drop what was staged."""
        self._open = False
