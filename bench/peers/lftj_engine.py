"""lftj through its public face: what a user calls is what is timed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from bench.digest import Digest
from bench.peers.engine import Ends, Engine
from bench.workload import BATCH_ROWS


class Lftj(Engine):
    module = "lftj"
    distribution = "lftj"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import lftj

        self._database = lftj.Database()

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        for name, source in tables.items():
            self._database.load(name, source)

    def count(self, query: str) -> int:
        return self._database.count(query, threads=self.threads)

    def rows(self, query: str) -> int:
        return sum(batch.num_rows for batch in self._database.stream(query, batch_rows=BATCH_ROWS))

    def checksum(self, query: str) -> int:
        digest = Digest()
        for batch in self._database.stream(query, batch_rows=BATCH_ROWS):
            digest.add_table(pa.Table.from_batches([batch]))
        return digest.checksum

    def some(self, query: str, rows: int) -> pa.Table:
        """The first rows of the result, as they leave the search; the rest is not computed."""
        for batch in self._database.stream(query, batch_rows=rows):
            return pa.Table.from_batches([batch])
        return pa.table({})

    def index(self, relation: str) -> int:
        loaded = self._database[relation].relation
        loaded.index(tuple(range(len(loaded.codes))))
        return loaded.n_rows
