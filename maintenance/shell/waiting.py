"""`WaitingTransactions`: small transactions of change files that wait to be committed in one call.

Invariants

1. They are committed in their order, and so that each has its own changes of the heads.
2. Where one of them is refused, the ones before it are committed and it is the one that the error names.

Cost: ``MOST_ROWS`` rows at most wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from maintenance.changes.labels import txn_label

if TYPE_CHECKING:
    from maintenance.shell.change_files import Part, TransactionId
    from maintenance.workspace.batch import Applied
    from maintenance.workspace.workspace import Workspace

MOST_ROWS = 1 << 14
"""Rows that wait, and rows of a transaction that does."""

MOST_TRANSACTIONS = 1 << 12

Waiting = tuple["TransactionId | None", Sequence["Part"]]


class WaitingTransactions:
    """What waits."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self.n_rows = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting)

    def add(self, transaction: TransactionId | None, parts: Sequence[Part]) -> None:
        """Let one more transaction wait."""
        self._waiting.append((transaction, parts))
        self.n_rows += sum(part.rows.num_rows for part in parts)

    @property
    def is_full(self) -> bool:
        """Whether no more should wait."""
        return self.n_rows >= MOST_ROWS or len(self) >= MOST_TRANSACTIONS

    def clear(self) -> None:
        """Nothing waits any more."""
        self._waiting, self.n_rows = [], 0

    def apply(self, workspace: Workspace) -> Applied:
        """Commit them all, or none; the transactions are known by their places.

        One without rows has none of the places, for no row tells of it.
        """
        batches: dict[str, list[pa.Table]] = {}
        for place, (_, parts) in enumerate(self._waiting):
            for part in parts:
                label = txn_label(workspace.base_version(part.file.relation).schema)
                numbers = pa.repeat(pa.scalar(place, pa.int64()), part.rows.num_rows)
                table = pa.Table.from_batches([part.rows]).append_column(label, numbers)
                batches.setdefault(part.file.relation, []).append(table)
        changes: Mapping[str, pa.Table] = {name: pa.concat_tables(each) for name, each in batches.items()}
        return workspace.apply_many(changes)


def few(parts: Iterable[Part]) -> tuple[list[Part], bool]:
    """The first parts of a transaction, until they have too many rows to wait; whether these are all."""
    taken: list[Part] = []
    most = MOST_ROWS
    for part in parts:
        taken.append(part)
        most -= part.rows.num_rows
        if most < 0:
            return taken, False
    return taken, True
