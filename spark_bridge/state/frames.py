"""DataFrames over the files of a state: read by workers, when an action runs.

Changes of a few bytes, which those of most batches are, the driver reads itself and at once: a file is read
sooner than Spark starts a task with Python in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lftj.storage.signed_rows import net_rows
from lftj.values.domains import Domains
from lftj.values.schema import ColumnType
from spark_bridge.placing.schemas import spark_schema
from spark_bridge.placing.worker_process import Batches, TaskFunction, in_worker
from spark_bridge.state.manifest import PartitionState
from spark_bridge.state.store import StateStore

READ_HERE = 1 << 20
"""Bytes of changes, of all files together, up to which the driver reads them."""

FILES_HERE = 16
"""So many files, too: it reads one after another, and of object stores each takes a while."""

_BATCH_ROWS = 1 << 16


def changes_frame(
    session: SparkSession, store: StateStore, schema: pa.Schema, files: Sequence[str]
) -> DataFrame:
    """The rows of files of changes, of all together.  Raises StateError if one that is read here is gone."""

    def table(name: str) -> pa.Table:
        return store.read_table(name).rename_columns(schema.names).cast(schema)

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for name in batch.column(0).to_pylist():
                yield from table(name).to_batches(max_chunksize=_BATCH_ROWS)

    if len(files) <= FILES_HERE and store.nbytes(files) <= READ_HERE:
        return sent_frame(session, pa.concat_tables([schema.empty_table(), *map(table, files)]), schema)
    return mapped_frame(session, files, read, schema)


def sent_frame(session: SparkSession, table: pa.Table, schema: pa.Schema) -> DataFrame:
    """Rows that the driver has, sent to Spark at once; by their places the columns of ``schema``."""
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    return session.createDataFrame(table.rename_columns(schema.names).cast(nullable), spark_schema(schema))


def table_frame(
    session: SparkSession, store: StateStore, schema: pa.Schema, states: Sequence[PartitionState]
) -> DataFrame:
    """The rows of a head: of each partition those at its snapshot, and the changes logged since."""

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                yield from _head_batches(store, schema, *json.loads(text))

    items = [json.dumps([state.head, _head_changes(state)]) for state in states]
    return mapped_frame(session, items, read, schema)


def head_rows(store: StateStore, schema: pa.Schema, states: Iterable[PartitionState]) -> Batches:
    """The same rows, read by this process, a partition at a time."""
    for state in states:
        yield from _head_batches(store, schema, state.head, _head_changes(state))


def _head_changes(state: PartitionState) -> list[str]:
    return [logged.head_changes for logged in state.logged if logged.head_changes]


def _head_batches(store: StateStore, schema: pa.Schema, file: str | None, changes: Sequence[str]) -> Batches:
    assert file is not None, "partitions of the last stage have one"
    head = store.read_table(file).rename_columns(schema.names).cast(schema)
    table = _changed(head, [store.read_table(name) for name in changes]) if changes else head
    yield from table.to_batches(max_chunksize=_BATCH_ROWS)


def mapped_frame(
    session: SparkSession,
    items: Sequence[str],
    function: TaskFunction,
    schema: pa.Schema,
) -> DataFrame:
    """What a function gives for texts, each of which is a row of its input."""
    frame = session.createDataFrame(pa.table({"item": pa.array(items, pa.string())}))
    return frame.mapInArrow(in_worker(function, "read a state"), spark_schema(schema))


def _changed(head: pa.Table, changes: Sequence[pa.Table]) -> pa.Table:
    """Distinct rows with signed ones added."""
    domains = Domains()
    parts = [(head.columns, np.ones(head.num_rows, np.int64))]
    parts += [(table.columns[:-1], table.column(table.num_columns - 1).to_numpy()) for table in changes]
    types = [
        ColumnType(domains.of(field.type), field.type, any(part[0][place].null_count for part in parts))
        for place, field in enumerate(head.schema)
    ]
    columns = [
        np.concatenate(
            [np.asarray(type_.encode(part[0][place].cast(type_.arrow)), np.int64) for part in parts]
        )
        for place, type_ in enumerate(types)
    ]
    rows, weights = net_rows(columns, np.concatenate([part[1] for part in parts]))
    assert (weights == 1).all(), "a head's rows are there once"
    arrays = [
        type_.domain.decode_chunked(codes, type_.arrow) for type_, codes in zip(types, rows, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=head.schema)
