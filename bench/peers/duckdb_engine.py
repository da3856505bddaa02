"""DuckDB, in memory: tables made from Parquet or Arrow, questions in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from bench.peers.engine import Ends, Engine
from bench.workload import BATCH_ROWS


class DuckDB(Engine):
    module = "duckdb"
    distribution = "duckdb"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import duckdb

        self._connection = duckdb.connect(config={"threads": threads})

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        for name, source in tables.items():
            if isinstance(source, Path):
                self._connection.execute(f"CREATE TABLE \"{name}\" AS SELECT * FROM read_parquet('{source}')")
            else:
                self._connection.register("source", source)
                self._connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM source')
                self._connection.unregister("source")

    def count(self, query: str) -> int:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])

    def rows(self, query: str) -> int:
        reader = self._connection.sql(query).to_arrow_reader(BATCH_ROWS)
        return sum(batch.num_rows for batch in reader)

    def index(self, relation: str) -> int:
        columns = [row[0] for row in self._connection.execute(f'DESCRIBE "{relation}"').fetchall()]
        self._connection.execute(f'CREATE INDEX first ON "{relation}" ({", ".join(columns)})')
        return self.count(f'SELECT count(*) FROM "{relation}"')
