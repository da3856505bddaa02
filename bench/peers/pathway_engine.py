"""Pathway: views of one table of edges, as dataflows that join pairwise.

It has no query language, so a "query" names one of the functions below.  `Pathway` runs one in the static
mode, once to the end; counting in the dataflow spares it handing out the rows of the view.  `Dataflow` runs
one in the streaming mode, whose commits end a transaction.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
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


class Dataflow:
    """A view that is kept up to date: one transaction after the other, of changes of its edges.

    A transaction has a row beside its changes, a *tick*, which is handed out with the view's: when the
    time in which it comes has ended, so have the changes of the view.
    """

    def __init__(self, query: str) -> None:
        import pathway

        class Row(pathway.Schema):
            is_tick: bool = pathway.column_definition(primary_key=True)
            src: int = pathway.column_definition(primary_key=True)
            dst: int = pathway.column_definition(primary_key=True)

        for name in ("pathway", "pathway_engine"):
            logging.getLogger(name).setLevel(logging.ERROR)  # a line or two for each commit
        self._graph = pathway.internals.parse_graph.G
        self._graph.clear()
        self._waiting: queue.Queue[Sequence[Sequence[int]] | None] = queue.Queue()
        self._handed_out: queue.Queue[list[tuple[int, ...]] | BaseException] = queue.Queue()
        self._changes: list[tuple[int, ...]] = []
        self._ticked = False
        waiting = self._waiting

        class Transactions(pathway.io.python.ConnectorSubject):
            def run(self) -> None:
                number = 0
                while (changes := waiting.get()) is not None:
                    for src, dst, weight in changes:
                        if weight > 0:
                            self.next(is_tick=False, src=src, dst=dst)
                        else:  # what Pathway looks for in the text, to let rows be deleted
                            self.delete(is_tick=False, src=src, dst=dst)
                    self.next(is_tick=True, src=number, dst=0)
                    self.commit()
                    number += 1

        rows = pathway.io.python.read(Transactions(), schema=Row, autocommit_duration_ms=None)
        edges = rows.filter(~pathway.this.is_tick).select(pathway.this.src, pathway.this.dst)
        ticks = rows.filter(pathway.this.is_tick)
        view = _VIEWS[query]({"edge": edges})
        self._names = list(view.column_names())
        shown = view.select(*(view[name] for name in self._names), is_tick=False).concat_reindex(
            ticks.select(**dict.fromkeys(self._names, ticks.src), is_tick=True)
        )
        pathway.io.subscribe(shown, on_change=self._on_change, on_time_end=self._on_time_end)
        level = pathway.MonitoringLevel.NONE
        self._thread = threading.Thread(target=self._run, args=(pathway.run, level), daemon=True)
        self._thread.start()

    def _run(self, run: Callable[..., Any], level: Any) -> None:
        try:
            run(monitoring_level=level)
        except BaseException as error:
            self._handed_out.put(error)

    def _on_change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if row["is_tick"]:
            self._ticked = True
        else:
            self._changes.append((*(row[name] for name in self._names), 1 if is_addition else -1))

    def _on_time_end(self, time: int) -> None:
        if self._ticked:
            self._handed_out.put(self._changes)
            self._changes, self._ticked = [], False

    def commit(self, changes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """The changes of the view by a transaction's, which are edges; the weight, +1 or -1, comes last."""
        self._waiting.put(changes)
        found = self._handed_out.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """End the dataflow."""
        self._waiting.put(None)
        self._thread.join()
        self._graph.clear()


def triangles(tables: Mapping[str, Any]) -> Any:
    """edge(a, b), edge(b, c), then edge(a, c)."""
    paths, third = _paths(tables["edge"]), tables["edge"].copy()
    closed = paths.join(third, paths.a == third.src, paths.c == third.dst)
    return closed.select(paths.a, paths.b, paths.c)


def degrees(tables: Mapping[str, Any]) -> Any:
    """The number of edges by their source."""
    import pathway

    edges = tables["edge"]
    return edges.groupby(edges.src).reduce(edges.src, n=pathway.reducers.count())


def sums(tables: Mapping[str, Any]) -> Any:
    """The sum of the ends of paths of two edges, by their beginning."""
    import pathway

    paths = _paths(tables["edge"])
    return paths.groupby(paths.a).reduce(paths.a, total=pathway.reducers.sum(paths.c))


def paths(tables: Mapping[str, Any]) -> Any:
    """The number of paths of three edges, by their beginning."""
    import pathway

    first, third = _paths(tables["edge"]), tables["edge"].copy()
    longer = first.join(third, first.c == third.src).select(first.a)
    return longer.groupby(longer.a).reduce(longer.a, n=pathway.reducers.count())


def _paths(edges: Any) -> Any:
    """edge(a, b), edge(b, c)."""
    others = edges.copy()
    return edges.join(others, edges.dst == others.src).select(a=edges.src, b=edges.dst, c=others.dst)


_VIEWS = {"triangles": triangles, "degrees": degrees, "sums": sums, "paths": paths}
