"""The files that a task writes for one partition in a batch; nothing of them stays when the batch is over.

A task can outlive its batch: Spark runs some on after an action has failed, and second tries of tasks after
it has succeeded.  What they write then no manifest will ever name.

    over?  ->  write  ->  over? then what was written goes  ->  report

The batch's end is the removal of its marker, after which its files are deleted: a task that still finds the
marker has written early enough for its files to be found, too (:mod:`spark_bridge.state.store`, invariant 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType

import pyarrow as pa

from lftj.errors import StateError
from spark_bridge.state.store import StateStore


@dataclass
class TaskFiles:
    """Files of a partition, written within a ``with`` block.

    Raises StateError at its end, and when it is begun, if the batch is over.
    """

    store: StateStore
    token: str
    partition: str
    _names: list[str] = field(default_factory=list)

    def __enter__(self) -> TaskFiles:
        self._refuse_late()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            self._refuse_late()
        except StateError:
            for name in self._names:
                self.store.delete(name)
            raise

    def write(self, kind: str, table: pa.Table) -> str:
        """Write a table; returns the file's name."""
        name = self.new_name(kind)
        self.store.write_table(name, table)
        return name

    def new_name(self, kind: str) -> str:
        """The name of a file that is about to be written."""
        name = self.store.new_name(self.token, kind, self.partition)
        self._names.append(name)
        return name

    def _refuse_late(self) -> None:
        if not self.store.is_running(self.token):
            raise StateError(f"{self.store!r}: {self.token} is over, and a task of it is not: its files go")
