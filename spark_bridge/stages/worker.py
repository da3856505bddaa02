"""What a task of a maintained stage does: step its partitions' engines, and write what makes them durable.

    packets for this stage -> engine at the state -> one step -> files -> packets for later stages

The engine comes from this process's cache, if it holds the partition as the manifest's files
say or at an earlier step that the log leads on from; else from the image that was written
with the snapshot, sensitivity records and all; or where that is of other software, it is
evaluated anew from the snapshot's relations.  Then it takes the logged batches.  Files are
named anew by each try, so a task that is run twice writes twice and the driver takes the
names of the one that answered.  An engine is kept under the name of the file that its try
wrote last: where the input differs between tries, memory still has what the files have.  A task
that comes too late, when its batch is over, leaves no files (:mod:`spark_bridge.state.task_files`).

The driver learns of a step by a *receipt*, a packet that all later stages pass on.  An
error in the data is a receipt too: the driver raises it, and nothing is retried.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import DataError, EvaluationError, ImageError, LftjError
from maintenance.image import read_image, write_image
from maintenance.store.fault_points import reached
from spark_bridge.cells.cell_search import Contribution
from spark_bridge.cells.combine_engine import CombineEngine
from spark_bridge.cells.key_engine import KeyEngine
from spark_bridge.cells.search_engine import Policy, SearchEngine
from spark_bridge.cells.signed_tables import signed
from spark_bridge.cells.stream_engine import TICK, CloseEngine, StreamEngine
from spark_bridge.placing.packets import SCHEMA, CellAddress, CellInput, PacketWriter, cell_inputs
from spark_bridge.stages.clock_stage import BatchClock, told_of
from spark_bridge.stages.stages import SparkStage, StageChain, late
from spark_bridge.state.engine_cache import CachedEngine, EngineCache, kept_bytes
from spark_bridge.state.manifest import Logged, PartitionState
from spark_bridge.state.state_index import StateIndex, state_of
from spark_bridge.state.store import StateStore
from spark_bridge.state.task_files import TaskFiles

RECEIPT = "receipt"
MOST_LOGGED = 32
"""Batches that are logged upon a snapshot before there is another one."""

LOGGED_PART = 0.5
"""Of a snapshot's rows, as many may be logged before there is another one."""

PACKAGES = ("spark_bridge",)  # whose classes an image has, beside the engine's own

Engine = SearchEngine | CombineEngine | KeyEngine | StreamEngine | CloseEngine
_engines: EngineCache[Engine] = EngineCache()


@dataclass(frozen=True)
class Receipt:
    """What a partition's step was: its state from now on, or an error.

    ``grown``: by relation the rows that it has more, or less, in their homes.
    ``head_changes``: the file with the changes of a result, of the stage that has its rows.  ``source`` says
    where the engine came from: ``kept``, ``caught up``, ``image``, ``evaluated``, ``new``.  Of cells that
    search: ``cells`` had changes, ``changed`` rows, and ``anew`` of them were joined anew.  By stream
    ``late``: a file with rows that came too late, ``n_late``: how many, ``expired``: how many left; of the
    stage of the clock ``moving``: where it is now.
    """

    partition: str
    state: PartitionState | None = None
    head_changes: str | None = None
    head_rows: int = 0
    source: str = ""
    cells: int = 0
    anew: int = 0
    changed: int = 0
    grown: dict[str, int] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    n_late: dict[str, int] = field(default_factory=dict)
    expired: dict[str, int] = field(default_factory=dict)
    moving: dict[str, list[int | None]] = field(default_factory=dict)
    error: str = ""
    message: str = ""

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), default=int).encode()  # numbers may be of numpy

    @classmethod
    def of(cls, data: bytes) -> Receipt:
        entries = json.loads(data)
        state = entries.pop("state")
        return cls(state=None if state is None else state_of(state), **entries)


def error_receipt(partition: str, error: LftjError) -> Receipt:
    return Receipt(partition, error=type(error).__name__, message=str(error))


@dataclass
class StageWorker:
    """Steps the partitions of one stage: of those that packets come for, one after the other.

    ``states``: those that the manifest has.  ``token``: of the try of the batch, below which the files are.
    ``engine_bytes``: as :func:`~spark_bridge.state.engine_cache.kept_bytes` takes them.  ``clock``: from
    where the streams go on.
    """

    chain: StageChain
    stage: SparkStage
    states: StateIndex
    token: str
    engine_bytes: int | None = None
    policy: Policy = "auto"
    clock: BatchClock | None = None

    @property
    def store(self) -> StateStore:
        return self.states.store

    def packets(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take in the packets of some partitions; gives those for later stages, and receipts."""
        own: dict[int, list[pa.RecordBatch]] = {}
        for batch in batches:
            is_own = pc.equal(batch.column("stage"), self.stage.number)
            mine = batch.filter(is_own)
            for pid in np.unique(mine.column("pid").to_numpy()).tolist():
                own.setdefault(pid, []).append(mine.filter(pc.equal(mine.column("pid"), pid)))
            if mine.num_rows < batch.num_rows:
                yield batch.filter(pc.invert(is_own))
        for pid in sorted(own):
            yield from (self._tick if self.stage.kind == "clock" else self._step)(pid, own.pop(pid))

    def _tick(self, pid: int, own: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The clock goes on, and partitions that need to know get to."""
        assert self.clock is not None
        told = told_of(packet for batch in own for packet in batch.column("rows").to_pylist())
        ticked = self.clock.ticked(told)
        writer = PacketWriter()
        if ticked.bounds is not None:
            tick, grid = json.dumps(ticked.bounds).encode(), CellAddress(0, 0, ()).grid_text()
            for stage in (stage for stage in self.chain.stages if stage.kind in ("streams", "close")):
                for to in range(self.chain.partitions):
                    yield from writer.add(to, 0, grid, TICK, tick, stage.number)
        yield from writer.rest()
        yield from self._receipt(Receipt(f"{self.stage.number}-{pid}", moving=ticked.moving))

    def _step(self, pid: int, own: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = f"{self.stage.number}-{pid}"
        state = self.states.of(self.stage.number, pid)
        inputs = cell_inputs(iter(own))
        too_late = self._late_rows(inputs)
        if too_late:
            labels = pa.array([late(name) for name in too_late])
            own = [batch.filter(pc.invert(pc.is_in(batch.column("read"), labels))) for batch in own]
        try:
            engine, source, nbytes = self._engine(partition, state)
            given: dict[int, list[Contribution]] = {}
            change: pa.Table | None = None
            whole: dict[str, pa.Table] = {}
            if isinstance(engine, KeyEngine | StreamEngine):
                whole = engine.step(inputs)
            elif isinstance(engine, CombineEngine | CloseEngine):
                change = engine.step(inputs)
            else:
                rows_before = self._home_rows(engine, inputs)
                given = engine.step(inputs, self.policy)
                if self.chain.result(self.stage):
                    schema = self.chain.plans[self.stage.head].arrow_schema
                    change = _one_table(given[self.stage.head], schema)
        except (DataError, EvaluationError) as error:
            yield from self._receipt(error_receipt(partition, error))
            return
        with TaskFiles(self.store, self.token, partition) as files:
            reached("worker: before writing")
            files_of_late = {name: files.write("late", table) for name, table in too_late.items()}
            if isinstance(engine, StreamEngine | CloseEngine) and not engine.taken:
                receipt = Receipt(partition, state, source=source)  # a tick that moves nothing here
            else:
                receipt = self._written(files, state, engine, source, own, change)
                made = receipt.state
                assert made is not None
                if made.image is not None and not made.logged:
                    nbytes = self.store.nbytes([made.image])
                else:
                    nbytes += sum(batch.nbytes for batch in own)
        n_late = {name: table.num_rows for name, table in too_late.items()}
        receipt = replace(receipt, late=files_of_late, n_late=n_late)
        if isinstance(engine, StreamEngine):
            receipt = replace(receipt, expired=engine.expired)
        if isinstance(engine, SearchEngine):
            rows = self._home_rows(engine, inputs)
            grown = {name: number - rows_before[name] for name, number in rows.items()}
            receipt = replace(receipt, cells=len(inputs), anew=engine.anew, changed=engine.taken, grown=grown)
        reached("worker: written, not reported")
        if receipt.state is not None:
            cached = CachedEngine(receipt.state.steps[-1], engine, nbytes)
            _engines.put(self._key(partition), cached, kept_bytes(self.engine_bytes))
        if isinstance(engine, KeyEngine | StreamEngine):
            yield from self.chain.placed(whole.items())
        elif change is None:
            yield from self.chain.contributed(given)
        elif self.stage != self.chain.last:
            name = self.chain.plans[self.stage.head].name
            yield from self.chain.placed([(name, change)])
        yield from self._receipt(receipt)

    def _late_rows(self, inputs: list[CellInput]) -> dict[str, pa.Table]:
        """By stream, rows that came too late, in the stage of streams."""
        if self.stage.kind != "streams":
            return {}
        schemas = dict(self.chain.text.relations)
        tables = {
            name: pa.concat_tables([cell.table(late(name), signed(schemas[name])) for cell in inputs])
            for name, _ in self.chain.text.streams
        }
        return {name: table for name, table in tables.items() if table.num_rows}

    def _home_rows(self, engine: SearchEngine, inputs: list[CellInput]) -> dict[str, int]:
        """Rows that have their home in some cells, by relation."""
        homes = self.chain.homes(self.stage)
        rows = dict.fromkeys(self.chain.homed(self.stage), 0)
        for cell_input in inputs:
            for name, label in homes.of(cell_input.address.number).items():
                rows[name] += engine.count(cell_input.address.number, label)
        return rows

    # -- engines -------------------------------------------------------------------

    def _key(self, partition: str) -> str:
        return f"{self.store.path}#{partition}"

    def _engine(self, partition: str, state: PartitionState | None) -> tuple[Engine, str, int]:
        """The partition's engine as the manifest has it, where it came from, and its bytes."""
        cached = _engines.take(self._key(partition))
        if state is None:
            return self._new_engine(), "new", 0
        steps = state.steps
        if cached is not None and cached.state == steps[-1]:
            return cached.engine, "kept", cached.nbytes
        if cached is not None and cached.state in steps:
            engine, nbytes, source = cached.engine, cached.nbytes, "caught up"
            behind = state.logged[steps.index(cached.state) :]
        else:
            engine, source, nbytes = self._restored(state)
            behind = state.logged
        for logged in behind:
            changes = self.store.read_table(logged.changes)
            engine.step(cell_inputs(iter(changes.to_batches())))
            nbytes += changes.nbytes
        return engine, source, nbytes

    def _restored(self, state: PartitionState) -> tuple[Engine, str, int]:
        """The engine at a partition's snapshot."""
        nbytes = 0
        if state.image is not None:
            image = self.store.read_buffer(state.image)
            nbytes = image.size
            try:
                return read_image(image, PACKAGES), "image", nbytes
            except ImageError:
                pass  # of other software: what the snapshot says holds for any
        engine = self._new_engine()
        snapshot = self.store.read_table(state.snapshot)
        engine.step(cell_inputs(iter(snapshot.to_batches())))
        return engine, "evaluated", max(nbytes, snapshot.nbytes)

    def _new_engine(self) -> Engine:
        text = self.chain.text
        if self.stage.kind == "keys":
            return KeyEngine(dict(text.relations), self.chain.keys)
        if self.stage.kind == "streams":
            schemas, times = dict(text.sources), {name: stream.time for name, stream in text.streams}
            of = self.chain.timed
            return StreamEngine(
                {name: schemas[name] for name in of}, {name: times[of[name]] for name in of}, of
            )
        if self.stage.kind == "close":
            plan, final = text.plans()[-1], text.final
            assert final is not None
            schema = plan.arrow_schema
            return CloseEngine(plan.name, schema, schema.names[final.number])
        if self.stage.kind == "combine":
            return CombineEngine(self.chain.text, self.stage.head)
        heads = self.chain.searched(self.stage)
        return SearchEngine(self.chain.text, heads, self.chain.schemas(self.stage.head))

    # -- files -----------------------------------------------------------------------

    def _written(
        self,
        files: TaskFiles,
        state: PartitionState | None,
        engine: Engine,
        source: str,
        own: list[pa.RecordBatch],
        change: pa.Table | None,
    ) -> Receipt:
        is_result = self.chain.result_of(self.stage.number) is not None
        head_changes, head_rows = None, 0
        if is_result and change is not None and change.num_rows:
            head_changes, head_rows = files.write("changes", change), change.num_rows
        if state is not None:
            changed = engine.taken + sum(logged.rows for logged in state.logged)
            if len(state.logged) < MOST_LOGGED and changed <= max(1000, LOGGED_PART * state.rows):
                file = files.write("log", pa.Table.from_batches(own, SCHEMA))
                logged = Logged(file, head_changes, engine.taken)
                state = replace(state, logged=(*state.logged, logged))
                return Receipt(files.partition, state, head_changes, head_rows, source)
        snapshot = files.write("snapshot", self._snapshot(engine))
        head = None
        if is_result and not isinstance(engine, KeyEngine | StreamEngine):
            head = files.write("head", engine.head())
        made = PartitionState(snapshot, head, self._write_image(files, engine), engine.rows)
        return Receipt(files.partition, made, head_changes, head_rows, source)

    def _write_image(self, files: TaskFiles, engine: Engine) -> str:
        name = files.new_name("image")
        with self.store.open_output(name) as sink:
            write_image(engine, sink, PACKAGES)
        return name

    def _snapshot(self, engine: Engine) -> pa.Table:
        writer = PacketWriter()
        batches: list[pa.RecordBatch] = []
        for address, label, rows in engine.snapshot():
            batches += writer.add(0, address.number, address.grid_text(), label, rows, self.stage.number)
        batches += writer.rest()
        return pa.Table.from_batches(batches, SCHEMA)

    def _receipt(self, receipt: Receipt) -> Iterator[pa.RecordBatch]:
        writer = PacketWriter()
        writer.add(0, 0, "", RECEIPT, receipt.to_bytes(), len(self.chain.stages))
        yield from writer.rest()


def _one_table(given: list[Contribution], schema: pa.Schema) -> pa.Table:
    """The changes of all cells of a head that does not cross them."""
    tables = [table for _, _, table in given]
    return pa.concat_tables(tables) if tables else signed(schema).empty_table()
