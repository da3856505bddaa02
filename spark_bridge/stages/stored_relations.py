"""The relations of a maintained join, read from its state: what its grids are planned from again.

Each tuple is read from the cell of its home (:mod:`spark_bridge.placing.homes`), of which the snapshot says
what it held, and the log what has come and gone since.  No rule is evaluated.

Cost: a task reads snapshot and log of a partition, and holds the tuples that have their home there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lftj.storage.relation import Relation
from maintenance.workspace.workspace import Workspace
from spark_bridge.cells.signed_tables import signed
from spark_bridge.placing.head_rule import cell_name
from spark_bridge.placing.packets import cell_inputs
from spark_bridge.placing.worker_process import Batches
from spark_bridge.stages.stages import StageChain
from spark_bridge.state.frames import mapped_frame
from spark_bridge.state.manifest import PartitionState, StateManifest
from spark_bridge.state.state_index import state_of
from spark_bridge.state.store import StateStore

_BATCH_ROWS = 1 << 16


def relation_frame(
    session: SparkSession, store: StateStore, chain: StageChain, manifest: StateManifest, name: str
) -> DataFrame:
    """The rows of a relation as they are in a version, each once."""
    stage = next(stage for stage in chain.stages if name in chain.homed(stage))
    schema = chain.schemas(stage.head)[name]
    states = [state for key, state in manifest.partitions.items() if key.startswith(f"{stage.number}-")]

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                for table in stored_rows(store, chain, stage.number, state_of(json.loads(text)), name):
                    yield from table.to_batches(max_chunksize=_BATCH_ROWS)

    return mapped_frame(session, [json.dumps(asdict(state)) for state in states], read, schema)


def stored_rows(
    store: StateStore, chain: StageChain, stage: int, state: PartitionState, name: str
) -> Iterator[pa.Table]:
    """The rows of a relation that have their home in the cells of a partition."""
    homes = chain.homes(chain.stages[stage])
    schema = chain.schemas(chain.stages[stage].head)[name]
    cells: dict[int, Workspace] = {}
    for file in (state.snapshot, *(logged.changes for logged in state.logged)):
        for cell in cell_inputs(iter(store.read_table(file).to_batches())):
            label = homes.of(cell.address.number).get(name)
            if label is None:
                continue
            if cell.address.number not in cells:
                workspace = cells[cell.address.number] = Workspace()
                empty = schema.empty_table()
                workspace.add(Relation.from_table(cell_name(name), empty, workspace.domains, "keep"))
            with cells[cell.address.number].transaction() as transaction:
                transaction.apply(cell_name(name), cell.table(label, signed(schema)))
    for workspace in cells.values():
        yield workspace[cell_name(name)].table
