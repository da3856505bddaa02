"""States of partitions in one file, of which a task reads its own.

The driver knows of all partitions, and what a task is sent is sent to all tasks: the states of 1,000
partitions in each of 1,000 functions are gigabytes.  So they go into a data file of the batch, and a function
has the file's name.

    row number       stage * partitions + partition
    record batch     TOGETHER rows, the state as JSON, NULL where a partition has none

Cost: one file of the driver for a batch, some 300 bytes for each logged batch of a partition; a task reads
the file's footer, 30 bytes for each record batch, and one record batch for each partition that it steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_bridge.state.manifest import Logged, PartitionState
from spark_bridge.state.store import StateStore

TOGETHER = 8
"""Partitions whose states are read together."""


@dataclass(frozen=True)
class StateIndex:
    """Where tasks find the states.  ``file``: None where no partition has one yet."""

    store: StateStore
    partitions: int
    file: str | None = None

    @classmethod
    def written(
        cls, store: StateStore, token: str, states: Mapping[str, PartitionState], stages: int, partitions: int
    ) -> StateIndex:
        """Write the states of a manifest, by stage and partition (``"0-17"``), for the tasks of a batch.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as path:
        ...     store = StateStore(path)
        ...     state = PartitionState("data/t/snapshot-0", None, None, 5)
        ...     index = StateIndex.written(store, store.begin(2), {"0-17": state}, 1, 100)
        ...     index.of(0, 17) == state, index.of(0, 18)
        (True, None)
        """
        if not states:
            return cls(store, partitions)
        texts: list[str | None] = [None] * (stages * partitions)
        for name, state in states.items():
            stage, pid = map(int, name.split("-"))
            texts[stage * partitions + pid] = json.dumps(vars(state), default=vars)
        pieces = (texts[start : start + TOGETHER] for start in range(0, len(texts), TOGETHER))
        chunks = [pa.array(few, pa.string()) for few in pieces]
        file = store.new_name(token, "states", "all")
        store.write_table(file, pa.table({"state": pa.chunked_array(chunks, pa.string())}))
        return cls(store, partitions, file)

    def of(self, stage: int, pid: int) -> PartitionState | None:
        """The state of a partition; None if nothing ever came to it."""
        if self.file is None:
            return None
        number, row = divmod(stage * self.partitions + pid, TOGETHER)
        text = self.store.read_batch(self.file, number).column(0)[row].as_py()
        return None if text is None else state_of(json.loads(text))

    def delete(self) -> None:
        """The file is of no more use when the batch is over."""
        if self.file is not None:
            self.store.delete(self.file)


def state_of(entries: Mapping[str, Any]) -> PartitionState:
    """A state from its JSON."""
    logged = tuple(Logged(**each) for each in entries["logged"])
    return PartitionState(**{**entries, "logged": logged})
