"""A maintained join's partition with its state in Spark's own store: what ``transformWithState`` calls.

The same as :mod:`spark_bridge.stages.worker` does with files.  A partition's state is a log of packets, the
first entry a snapshot, cut into chunks of 64 KiB in a ``MapState``, and a ``ValueState`` that names the
entries.  Engines stay in the worker's memory and are made from the log, or the end of it, when they are
not there or behind.

It is written for programs of one stage: a second shuffle would be a second stateful operator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from spark_bridge.cells.search_engine import SearchEngine
from spark_bridge.cells.signed_tables import signed
from spark_bridge.placing.packets import SCHEMA, PacketWriter, cell_inputs
from spark_bridge.placing.worker_process import settle
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.worker import LOGGED_PART, MOST_LOGGED
from spark_bridge.state.engine_cache import MOST_BYTES, CachedEngine, EngineCache

CHUNK_BYTES = 64 << 10
_engines: EngineCache[SearchEngine] = EngineCache()


class PartitionProcessor(StatefulProcessor):
    """Steps partitions.  ``folder``: takes a file per worker that says where engines came from."""

    def __init__(self, chain: StageChain, name: str, folder: str) -> None:
        assert len(chain.stages) == 1, "a program of one stage"
        self._chain = chain
        self._name = name
        self._folder = folder

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._entries = handle.getValueState("entries", "entries string")
        self._chunks = handle.getMapState("chunks", "entry int, part int", "data binary")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        own = [pa.RecordBatch.from_pandas(frame, SCHEMA, preserve_index=False) for frame in rows]
        held = self._entries.get()
        entries = json.loads(held[0]) if held else []  # [token, chunks, rows] of each
        engine = self._engine(key[0], entries)
        changes = [table for _, _, table in engine.step(cell_inputs(iter(own)))[0]]
        logged = engine.taken + sum(count for _, _, count in entries[1:])
        if not entries or len(entries) > MOST_LOGGED or logged > max(1000, LOGGED_PART * entries[0][2]):
            self._chunks.clear()
            entries, batches, count = [], _snapshot(engine), engine.rows
        else:
            batches, count = own, engine.taken
        token = uuid4().hex
        entries.append([token, self._write(len(entries), batches), count])
        self._entries.update((json.dumps(entries),))
        nbytes = sum(entry[1] for entry in entries) * CHUNK_BYTES
        _engines.put(self._key(key[0]), CachedEngine(token, engine, nbytes), MOST_BYTES)
        schema = signed(self._chain.plans[0].arrow_schema)
        yield pa.concat_tables([schema.empty_table(), *changes]).to_pandas()
        settle("PartitionProcessor")

    def close(self) -> None:
        pass

    def _key(self, partition: int) -> str:
        return f"{self._name}#{partition}"

    def _engine(self, partition: int, entries: list[list[Any]]) -> SearchEngine:
        kept = _engines.take(self._key(partition))
        tokens = [token for token, _, _ in entries]
        if kept is not None and kept.state in tokens:
            engine, first = kept.engine, tokens.index(kept.state) + 1
            source = "kept" if first == len(entries) else "caught up"
        else:
            engine, first = SearchEngine(self._chain.text, [0], self._chain.schemas(0)), 0
            source = "restored" if entries else "new"
        for number in range(first, len(entries)):
            engine.step(cell_inputs(iter(self._read(number, entries[number][1]))))
        with (Path(self._folder) / f"{uuid4().hex}.{source}").open("w"):
            pass
        return engine

    def _write(self, entry: int, batches: list[pa.RecordBatch]) -> int:
        """Put an entry into chunks; returns their number."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as stream:
            for batch in batches:
                stream.write_batch(batch)
        data = sink.getvalue().to_pybytes()
        starts = range(0, len(data), CHUNK_BYTES)
        for part, start in enumerate(starts):
            self._chunks.updateValue((entry, part), (data[start : start + CHUNK_BYTES],))
        return len(starts)

    def _read(self, entry: int, parts: int) -> list[pa.RecordBatch]:
        found = [self._chunks.getValue((entry, part)) for part in range(parts)]
        data = b"".join(bytes(chunk[0]) for chunk in found if chunk)
        return list(pa.ipc.open_stream(data))


def _snapshot(engine: SearchEngine) -> list[pa.RecordBatch]:
    writer, batches = PacketWriter(), []
    for address, label, rows in engine.snapshot():
        batches += writer.add(0, address.number, address.grid_text(), label, rows)
    return [*batches, *writer.rest()]
