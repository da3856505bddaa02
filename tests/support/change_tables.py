"""Changes of edges in four transactions, as a table and as files of every format."""

from __future__ import annotations

import gzip
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from lftj.files import sink
from lftj.values.schema import Schema
from maintenance import Workspace

Transactions = list[tuple[Any, list[tuple[Any, ...]]]]


def schema_of(table: pa.Table) -> Schema:
    workspace = Workspace()
    workspace.load("edge", table)
    return workspace.base_version("edge").schema


EDGE = schema_of(pa.table({"a": [1], "b": [2]}))


def write(table: pa.Table, path: str) -> str:
    """The table in the format of the path's suffix; ``.arrows`` is an Arrow stream."""
    if path.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            csv.write_csv(table, file)
    elif path.endswith(".tsv"):
        csv.write_csv(table, path, csv.WriteOptions(delimiter="\t"))
    elif path.endswith(".arrows"):
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    elif path.endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=2)
    else:
        sink.write_file(table.to_batches(max_chunksize=2), path)
    return path


CHANGES = pa.table(
    {
        "txn": [1, 1, 2, 5, 5, 5, 9],
        "a": [1, 2, 1, 7, 8, 9, 1],
        "b": [2, 3, 2, 7, 8, 9, 2],
        "weight": [1, 1, -1, 1, 1, 2, 1],
    }
)

IN_TRANSACTIONS: Transactions = [
    (1, [(1, 2, 1), (2, 3, 1)]),
    (2, [(1, 2, -1)]),
    (5, [(7, 7, 1), (8, 8, 1), (9, 9, 2)]),
    (9, [(1, 2, 1)]),
]
