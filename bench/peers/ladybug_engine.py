"""Ladybug (Kuzu's successor), in memory: rows become relationships, questions are Cypher.

Each relation becomes a relationship table between the kinds of node that the
workload names; node tables hold every end that occurs.  Both are filled by
``COPY FROM``, the quickest way in.  Its planner has worst-case optimal joins,
which makes it the closest peer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.engine import Ends, Engine


class Ladybug(Engine):
    module = "ladybug"
    distribution = "ladybug"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import ladybug

        self._connection = ladybug.Connection(ladybug.Database(max_num_threads=threads), num_threads=threads)

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        read = {
            name: pq.read_table(source) if isinstance(source, Path) else source
            for name, source in tables.items()
        }
        nodes: dict[str, list[np.ndarray]] = {}
        for name, table in read.items():
            for column, kind in zip(table.columns, ends[name], strict=True):
                nodes.setdefault(kind, []).append(column.to_numpy())
        for kind, columns in nodes.items():
            self._connection.execute(f"CREATE NODE TABLE {kind}(id INT64, PRIMARY KEY(id))")
            source = pa.table({"id": np.unique(np.concatenate(columns))})
            self._connection.execute(f"COPY {kind} FROM $source", {"source": source})
        for name, table in read.items():
            start, end = ends[name]
            self._connection.execute(f"CREATE REL TABLE {name}(FROM {start} TO {end})")
            self._connection.execute(f"COPY {name} FROM $source", {"source": table})

    def count(self, query: str) -> int:
        result: Any = self._connection.execute(query)
        return int(result.get_next()[0])
