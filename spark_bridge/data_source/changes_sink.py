"""`ChangesSink`: the batches of a stream as transactions of a workspace in a folder.

    tasks: rows as Arrow  --  commit messages  -->  one process: a transaction, with the batch's number

Invariant: a batch and its number are one transaction; a batch that is not above the last one is not applied.

Cost: of a batch its rows in the memory of the process that commits, and the opening of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from lftj.errors import SourceError
from lftj.storage.relation import Relation
from maintenance import Workspace

BATCHES = "last batch of each stream"
"""A relation of a name that no rule can write: by source, the last batch."""

_BATCHES_SCHEMA = pa.schema(
    [pa.field("source", pa.string(), nullable=False), pa.field("batch", pa.int64(), nullable=False)]
)


@dataclass
class Rows(WriterCommitMessage):
    """What a task got, as a stream of Arrow; empty where there was nothing."""

    rows: bytes


class ChangesSink(DataSourceStreamArrowWriter):
    """Changes of one relation; it can be pickled."""

    def __init__(self, folder: str, relation: str, source: str) -> None:
        self._folder, self._relation, self._source = folder, relation, source

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Rows:
        batches = list(iterator)
        if not batches:
            return Rows(b"")
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return Rows(sink.getvalue().to_pybytes())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        tables = [
            ipc.open_stream(message.rows).read_all()
            for message in messages
            if isinstance(message, Rows) and message.rows
        ]
        if not (Path(self._folder) / "lock").exists():
            raise SourceError(f"{self._folder}: there is no workspace: make one that has {self._relation!r}")
        with Workspace.open(self._folder) as workspace:
            if BATCHES not in workspace.relations:
                none = _BATCHES_SCHEMA.empty_table()
                workspace.add(Relation.from_table(BATCHES, none, workspace.domains, key=["source"]))
            done = {row["source"]: row["batch"] for row in workspace[BATCHES].table.to_pylist()}
            if batchId <= done.get(self._source, -1):
                return
            with workspace.transaction() as transaction:
                if tables:
                    transaction.apply(self._relation, pa.concat_tables(tables))
                transaction.upsert(BATCHES, [(self._source, batchId)])

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing is written before it is committed."""
