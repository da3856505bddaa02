"""The maintained join of ``spark_bridge`` in one process, without Spark: batches through stages to a commit.

What Spark does in between, and may do in any way, is drawn at random: how rows are spread over tasks, which
worker process gets a partition, in which order, which tasks are run twice, and in which order packets arrive.
Worker processes are caches of engines of their own; they die, which empties the cache, and an engine that
another worker has stepped since stays behind in theirs.  On the way are checked

1. the packets of a stage go to the task of the partition that they say; each that got some gives a receipt;
2. a task that is run twice gives the same both times;
3. the state that was written can be read by itself: what the manifest names is there, and what it does not
   name is gone after cleaning.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from pyarrow import fs
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema

import lftj.errors
from maintenance import Workspace
from maintenance.event_time.stream_state import StreamState
from maintenance.image import read_image
from spark_bridge.cells.key_engine import Keys
from spark_bridge.cells.search_engine import STRATEGIES, Policy
from spark_bridge.cells.signed_tables import as_events, signed, with_weight
from spark_bridge.placing.event_time import TimeSettings
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import search_leaders
from spark_bridge.placing.packets import CellAddress, PacketWriter
from spark_bridge.placing.placing import InputNulls
from spark_bridge.stages import worker as stage_worker
from spark_bridge.stages.clock_stage import BatchClock
from spark_bridge.stages.placing_changes import placing_changes
from spark_bridge.stages.stages import SparkStage, StageChain
from spark_bridge.stages.stored_relations import relation_frame
from spark_bridge.stages.worker import RECEIPT, Engine, Receipt, StageWorker
from spark_bridge.state import frames
from spark_bridge.state.engine_cache import EngineCache
from spark_bridge.state.frames import changes_frame, table_frame
from spark_bridge.state.manifest import Batch, PartitionState, StateManifest
from spark_bridge.state.state_index import StateIndex
from spark_bridge.state.store import StateStore
from support.cell_pipeline import (
    Batches,
    ChooseGrids,
    cut,
    exchanged,
    program_text,
    reader_of,
    tagged,
)
from support.rows import rows_of
from support.sets import load_set

Tables = Mapping[str, pa.Table]

N_WORKERS = 2
KEPT_BATCHES = 3


class LocalSession:
    """The part of a Spark session that reading a state takes: what is mapped is a table at once."""

    def createDataFrame(self, table: pa.Table, schema: Any = None) -> Any:
        if schema is not None:
            return table.cast(to_arrow_schema(schema, timezone="UTC"))
        self._items = table
        return self

    def mapInArrow(self, function: Any, schema: Any) -> pa.Table:
        wanted = to_arrow_schema(schema, timezone="UTC")
        found = sent(function)(iter(self._items.to_batches()))
        return pa.Table.from_batches([batch.cast(wanted) for batch in found], wanted)


def sent(value: Any) -> Any:
    """A copy, made as Spark sends a function to its workers."""
    return pickle.loads(cloudpickle.dumps(value))


class StagePipeline:
    """A maintained program; raises errors as ``MaintainedJoin`` does.  ``seen``: engines' sources."""

    def __init__(
        self,
        text: str,
        relations: Tables,
        path: Path,
        partitions: int,
        choose: ChooseGrids,
        random: Random,
        *,
        head: str | None = None,
        nulls: InputNulls = "refuse",
        policies: Sequence[Policy] = ("auto", *STRATEGIES),  # type: ignore[assignment]
        keys: Keys | None = None,
        times: TimeSettings | None = None,
    ) -> None:
        self._policies, self._policy = policies, random.choice(policies)
        self._random = random
        self._session: Any = LocalSession()
        self.text = program_text(text, relations, head, nulls, times)
        plans = self.text.plans()
        read = {name for plan in plans for name in plan.reads} | dict(self.text.streams).keys()
        self.relations = {name: table.schema for name, table in relations.items() if name in read}
        # Auxiliary heads, which a workspace does not show, are taken for empty: any grids will do.
        known = {plan.name: plan.arrow_schema.empty_table() for plan in plans}
        known |= _with_heads(text, relations, nulls) if times is None else relations
        known |= {recent.name: relations[recent.stream] for recent in self.text.recents}
        grids: list[HeadGrids | None] = []
        leaders, shares = search_leaders(plans), random.random() < 0.7  # else as states of before have it
        for number, plan in enumerate(plans):
            if shares and leaders[number] < number:
                grids.append(None)
                continue
            its = {name: known[name] for name in plan.reads}
            own = choose(self.text, number, its, partitions, random)
            assert HeadGrids.from_json(own.to_json()) == own
            grids.append(own)
        self.chain = StageChain(self.text, tuple(grids), nulls, keys or {})
        self.store = StateStore(path)
        self.rows: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self._engine_bytes = random.choice((None, None, None, None, 0, 100_000))
        self._workers: list[EngineCache[Engine]] = [EngineCache() for _ in range(N_WORKERS)]
        self._replaced = 0
        self.manifest = StateManifest(0, {}, {}, {}, {}, (), state_id=path.name)
        first = {
            name: (as_events if name in self.chain.keys else with_weight)(relations[name])
            for name in self.relations
        }
        token = self.store.begin(1)
        self._commit(self._run(first, token), None)
        self.store.end(token)

    @property
    def schema(self) -> pa.Schema:
        return self.chain.plans[-1].arrow_schema

    # -- batches --------------------------------------------------------------------

    def apply(self, changes: Tables, lost: Sequence[Tables] = (), advanced: int | None = None) -> pa.Table:
        """A batch; returns the changes of the head.  A refused one leaves nothing.

        ``lost``: what tries of its tasks read whose answers were lost, before it and after it: a source that
        is not deterministic gave them other rows.
        """
        token = self.store.begin(self.manifest.version + 1)
        answered = self._random.randint(0, len(lost))
        try:
            for other in lost[:answered]:
                self._run(other, token, advanced)
            receipts = self._run(changes, token, advanced)
            for other in lost[answered:]:
                self._run(other, token, advanced)
        except lftj.errors.LftjError:
            self.store.drop(token)
            raise
        number = self.manifest.applied.get("", -1) + 1
        self._commit(receipts, number)
        self.store.end(token)
        files = self.manifest.batches[-1].changes
        with mock.patch.object(frames, "FILES_HERE", self._random.choice((0, 16))):
            return changes_frame(self._session, self.store, signed(self.schema), files)

    def table(self) -> pa.Table:
        """The head as the files have it."""
        return table_frame(self._session, self.store, self.schema, self.head_states())

    def head_states(self) -> list[PartitionState]:
        """The partitions that the head's rows are in."""
        prefix = f"{self.chain.last.number}-"
        return [s for name, s in self.manifest.partitions.items() if name.startswith(prefix)]

    def clock_states(self) -> Mapping[str, StreamState]:
        """Where the streams are, as the manifest has it."""
        return BatchClock.of(self.text, self.manifest.streams).before

    def relation(self, name: str) -> pa.Table:
        """A relation as the files have it."""
        return relation_frame(self._session, self.store, self.chain, self.manifest, name)

    def lose_engines(self) -> None:
        """All worker processes end."""
        self._workers = [EngineCache() for _ in range(N_WORKERS)]

    def check_files(self) -> None:
        """What the newest manifest names is there, and after cleaning nothing else."""
        self.store.clean(1)
        listed = self.store._path.listing("data", recursive=True)
        assert {f"data/{name}" for name, kind in listed if kind == fs.FileType.File} == self.manifest.files()
        assert self.store.newest() == self.manifest

    # -- what Spark does ------------------------------------------------------------

    def _run(self, changes: Tables, token: str, advanced: int | None = None) -> list[Receipt]:
        self._clock = (
            BatchClock.of(self.text, self.manifest.streams, advanced=advanced) if self.text.streams else None
        )
        packets = self._placed(changes)
        if self._clock is not None:
            wake = PacketWriter()
            grid, number = CellAddress(0, 0, ()).grid_text(), self.chain.stage_of("clock").number
            wake.add(0, 0, grid, "told", b"", number)
            packets = [*packets, *wake.rest()]
        for stage in self.chain.stages:
            packets = self._stepped(stage, packets, token)
        receipts = [
            Receipt.of(row[1])
            for batch in packets
            for row in rows_of(batch.select([3, 4]))
            if row[0] == RECEIPT
        ]
        assert sum(batch.num_rows for batch in packets) == len(receipts), (
            "the last stage leaves receipts only"
        )
        errors = [receipt for receipt in receipts if receipt.error]
        if errors:
            raise getattr(lftj.errors, errors[0].error)(errors[0].message)
        assert len({receipt.partition for receipt in receipts}) == len(receipts)
        self.seen.update(receipt.source for receipt in receipts)
        self.seen["joined anew"] += sum(receipt.anew for receipt in receipts)
        return receipts

    def _placed(self, changes: Tables) -> Batches:
        """Packets of the tasks of the input; each task has a part of the rows."""
        if not any(table.num_rows for table in changes.values()):
            return []  # Spark makes no call for what is empty
        reader = reader_of(changes)
        rows = tagged(reader, changes)
        order = list(range(len(rows)))
        self._random.shuffle(order)
        packets: Batches = []
        for some in cut(order, self._random):
            batches = rows.take(pa.array(some, pa.int64())).combine_chunks().to_batches(max_chunksize=7)
            packets += sent(placing_changes(self.chain, reader, self._clock))(iter(batches))
        return packets

    def _stepped(self, stage: SparkStage, packets: Batches, token: str) -> Batches:
        partitions, stages = self.chain.partitions, len(self.chain.stages)
        index = StateIndex.written(self.store, token, self.manifest.partitions, stages, partitions)
        if self._random.randrange(2):  # each change has all cells planned anew
            self._policy = self._random.choice(self._policies)
        worker = StageWorker(self.chain, stage, index, token, self._engine_bytes, self._policy, self._clock)
        n_tasks = self._random.randint(1, partitions)
        tasks = list(exchanged(packets, partitions, self._random, n_tasks))
        self._random.shuffle(tasks)
        given: Batches = []
        for mine in tasks:
            found = self._task(worker, mine)
            self._check_task(stage, mine, found)
            if self._random.randrange(8) == 0:  # the first try's answer was lost
                again = self._task(worker, mine)
                assert _comparable(found) == _comparable(again)
                found = again
            given += found
        index.delete()
        return given

    def _task(self, worker: StageWorker, mine: Batches) -> Batches:
        """A task on any worker process, which may be a new one."""
        number = self._random.randrange(N_WORKERS)
        if self._random.randrange(12) == 0:
            self._workers[number] = EngineCache()
        other_software = mock.Mock(side_effect=lftj.errors.ImageError("of other software"))
        read = (read_image, read_image, read_image, other_software)
        with (
            mock.patch.object(stage_worker, "_engines", self._workers[number]),
            mock.patch.object(stage_worker, "read_image", self._random.choice(read)),
        ):
            return list(sent(worker.packets)(iter(mine)))

    def _check_task(self, stage: SparkStage, mine: Batches, found: Batches) -> None:
        own = {pid for batch in mine for pid, of in rows_of(batch.select([0, 5])) if of == stage.number}
        for batch in found:
            assert batch.num_rows == 0 or min(batch.column("stage").to_numpy()) > stage.number
            for place, label, rows in rows_of(batch.select([0, 3, 4])):
                assert 0 <= place < self.chain.partitions
                if label == RECEIPT and (receipt := Receipt.of(rows)).partition.startswith(
                    f"{stage.number}-"
                ):
                    own.remove(int(receipt.partition.partition("-")[2]))
        assert not own, "a partition with packets gives a receipt"

    # -- what the driver does -------------------------------------------------------

    def _commit(self, receipts: list[Receipt], number: int | None) -> None:
        was = self.manifest
        partitions: dict[str, PartitionState] = dict(was.partitions)
        self.late, self.expired = Counter[str](), Counter[str]()
        for receipt in receipts:
            self.late.update(receipt.n_late)
            self.expired.update(receipt.expired)
            if receipt.state is None:
                continue  # of the clock, and of what a tick moves nothing in
            old = was.partitions.get(receipt.partition)
            self._replaced += old is not None and old != receipt.state and not receipt.state.logged
            partitions[receipt.partition] = receipt.state
            self.rows.update(receipt.grown)
        batches = was.batches
        if number is not None:
            files = tuple(receipt.head_changes for receipt in receipts if receipt.head_changes)
            late = {n: (file,) for receipt in receipts for n, file in receipt.late.items()}
            batches = (*was.batches, Batch(was.version + 1, "", number, files, late))[-KEPT_BATCHES:]
        streams = {n: each for receipt in receipts for n, each in receipt.moving.items()}
        applied = {} if number is None else {"": number}
        following = replace(
            was,
            version=was.version + 1,
            applied=applied,
            partitions=partitions,
            batches=batches,
            streams=streams,
        )
        self.store.commit(following)
        self.manifest = following

    @property
    def replaced(self) -> int:
        """How many snapshots were taken anew."""
        return self._replaced


def _with_heads(text: str, relations: Tables, nulls: InputNulls) -> dict[str, pa.Table]:
    """The relations and all heads."""
    workspace = Workspace()
    for name, table in relations.items():
        load_set(workspace, name, table, nulls=nulls)
    workspace.install(text)
    return {**relations, **{name: workspace[name].table for name in workspace.heads}}


def _comparable(packets: Batches) -> Any:
    """Packets without what is named anew by each try: of a receipt its partition, counts and error."""
    found: list[Any] = []
    for batch in packets:
        for pid, cell, grid, label, rows, stage in rows_of(batch):
            if label == RECEIPT:
                it = Receipt.of(rows)
                logged = it.state and [one.rows for one in it.state.logged]
                rows = (it.partition, it.head_rows, it.error, it.message, it.state and it.state.rows, logged)
            found.append((pid, cell, grid, label, len(rows), rows if label == RECEIPT else None, stage))
    return sorted(map(repr, found))


def signed_table(table: pa.Table, weights: list[int]) -> pa.Table:
    """Rows with the weights beside them."""
    return pa.Table.from_arrays(
        [*table.columns, pa.array(np.array(weights, np.int64))], schema=signed(table.schema)
    )
