"""Checkpoints of a workspace in a folder: when they are made, and from what.

Invariants

1. Commits go on while a checkpoint is written; they wait only while it is begun, which is one new file.
2. One is made at a time.  One that fails is logged, and tried again when the journal has grown as much again.
"""

from __future__ import annotations

import logging
import threading

import pyarrow as pa

from lftj.errors import LftjError
from lftj.storage.relation_table import RelationTable
from maintenance.durable.store import Store
from maintenance.workspace.published import Published

_log = logging.getLogger(__name__)


class Checkpoints:
    """``least``: bytes of the journal beyond which one is made without being asked for."""

    def __init__(self, published: Published, store: Store, least: int) -> None:
        self._published = published
        self._store = store
        self._least = least
        self._not_below = 0
        self._one = threading.Lock()
        self._thread: threading.Thread | None = None

    def make(self) -> None:
        """Make one.  Raises DurabilityError; then the folder says what it said."""
        published = self._published
        with self._one:
            with published.lock:
                versions = published.changeable().versions
                cut = self._store.cut()
            published.wait(cut.number)

            def rows(name: str) -> pa.Table:
                return versions[name].schema.as_declared(RelationTable(versions[name]).table)

            self._store.complete(cut, rows, published.lock)

    def make_when_grown(self) -> None:
        """Begin to make one, beside what this thread goes on with, if the journal wants it."""
        if not self._store.wants_checkpoint(max(self._least, self._not_below)):
            return
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._make_quietly, name="lftj-checkpoint", daemon=True)
            self._thread.start()

    def _make_quietly(self) -> None:
        try:
            self.make()
            self._not_below = 0
        except (LftjError, MemoryError) as error:
            self._not_below = self._store.journal_bytes + self._least
            _log.error("no checkpoint was made, it is tried again later: %s", error)

    def end(self) -> None:
        """Return when none is being made."""
        thread = self._thread
        if thread is not None:
            thread.join()
