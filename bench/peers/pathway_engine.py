"""Pathway in its static mode: tables of a dataflow, joined pairwise, run once to the end.

It has no query language, so a "query" names one of the functions below.
Counting in the dataflow spares it handing out the rows of the view.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.engine import Ends, Engine


class Pathway(Engine):
    module = "pathway"
    distribution = "pathway"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import pathway

        self._pathway = pathway
        self._tables: dict[str, Any] = {}

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        for name, source in tables.items():
            table = pq.read_table(source) if isinstance(source, Path) else source
            self._tables[name] = self._pathway.debug.table_from_pandas(table.to_pandas())

    def count(self, query: str) -> int:
        view = _VIEWS[query](self._tables)
        counted = view.reduce(n=self._pathway.reducers.count())
        found = self._pathway.debug.table_to_pandas(counted, include_id=False)
        self._pathway.internals.parse_graph.G.clear()
        return int(found["n"].iloc[0]) if len(found) else 0


def triangles(tables: Mapping[str, Any]) -> Any:
    """edge(a, b), edge(b, c), then edge(a, c)."""
    first = tables["edge"]
    second, third = first.copy(), first.copy()
    paths = first.join(second, first.dst == second.src).select(a=first.src, b=first.dst, c=second.dst)
    closed = paths.join(third, paths.a == third.src, paths.c == third.dst)
    return closed.select(paths.a, paths.b, paths.c)


_VIEWS = {"triangles": triangles}
