"""The changes of a head, or figures about them, written as transactions commit.

Invariants

1. A file is there, complete, when the block that opened it ends well, and not
   at all otherwise (:mod:`lftj.files.sink`); what goes to stdout is there after each
   transaction.
2. Small changes are gathered before they are written to a file: a transaction
   leaves no row group or record batch of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from lftj.files import sink
from maintenance.changes.labels import TXN, label_beside
from maintenance.shell.change_files import TransactionId
from maintenance.shell.options import STDOUT
from maintenance.stats import TransactionStats

MOST_ROWS = 1 << 16
MOST_TABLES = 1 << 10
"""Changes are gathered up to so many rows or transactions."""


class ChangeOutput:
    """Change tables of one head, one after the other; made by :func:`change_output`."""

    def __init__(self, writer: sink.Writer, schema: pa.Schema, flushed: IO[bytes] | None) -> None:
        self._writer = writer
        self._schema = schema
        self._flushed = flushed
        self._tables: list[pa.Table] = []
        self._n_rows = 0

    @property
    def is_seen(self) -> bool:
        """Whether it goes to stdout, with each commit."""
        return self._flushed is not None

    def add(self, transaction: TransactionId | None, changes: pa.Table) -> None:
        """Write a transaction's changes: at once to stdout, or when there are some more to a file."""
        if not changes.num_rows:
            return
        columns = changes.columns
        if transaction is not None:
            columns = [pa.repeat(transaction.value, changes.num_rows), *columns]
        self._tables.append(pa.Table.from_arrays(columns, schema=self._schema))
        self._n_rows += changes.num_rows
        if self._flushed is not None or self._n_rows >= MOST_ROWS or len(self._tables) >= MOST_TABLES:
            self.write()
        if self._flushed is not None:
            self._flushed.flush()

    def write(self) -> None:
        """Write what was gathered."""
        for batch in pa.concat_tables(self._tables).combine_chunks().to_batches() if self._tables else ():
            self._writer.write_batch(batch)
        self._tables, self._n_rows = [], 0


@contextmanager
def change_output(
    path: str, changes: pa.Schema, transaction_type: pa.DataType | None
) -> Iterator[ChangeOutput]:
    """An output of change tables in the format of the path's suffix, or CSV on stdout for ``-``.

    With a ``transaction_type`` the first column is ``txn``.  Raises OSError.
    """
    schema = changes
    if transaction_type is not None:
        schema = schema.insert(0, pa.field(label_beside(TXN, schema.names), transaction_type))
    if path == STDOUT:
        stdout = sys.stdout.buffer
        with sink.csv_writer(stdout, schema) as writer:
            stdout.flush()
            yield ChangeOutput(writer, schema, stdout)
        stdout.flush()
        return
    with sink.file_writer(path, schema) as writer:
        output = ChangeOutput(writer, schema, None)
        yield output
        output.write()


class StatsOutput:
    """A JSON object per line and transaction; made by :func:`stats_output`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, transaction: TransactionId | None, n_changes: int, stats: TransactionStats) -> None:
        """Write one line.  ``n_changes``: rows that the transaction had in the change files."""
        line = {
            "txn": None if transaction is None else transaction.plain(),
            "changes": n_changes,
            "inserted": stats.inserted,
            "erased": stats.erased,
            "no_changes": stats.no_changes,
            "late": stats.late,
            "expired": stats.expired,
            "seconds": stats.seconds,
            "heads": {head: figures.as_dict() for head, figures in stats.rules.items()},
        }
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        if self._file is sys.stdout.buffer:
            self._file.flush()


@contextmanager
def stats_output(path: str) -> Iterator[StatsOutput]:
    """JSON lines to a file, or stdout for ``-``.  Raises OSError."""
    if path == STDOUT:
        yield StatsOutput(sys.stdout.buffer)
        return
    with sink.replacing(sink.check_place(path)) as file:
        yield StatsOutput(file)
