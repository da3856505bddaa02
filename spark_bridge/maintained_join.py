"""`MaintainedJoin`: a rule over Spark DataFrames whose result follows batches of changes.

Every partition's relations and results are files below a state path, of which a manifest
names those that count (:mod:`spark_bridge.state.store`).  A batch is one query: changes
are placed like the relations were, each stage steps the partitions that got some
(:mod:`spark_bridge.stages.worker`), and the driver, when it has all receipts, commits by
the next manifest.

Invariants

1. What the state is, the newest manifest says, and nothing else: a batch that fails or
   dies at any moment before its manifest is in place changed nothing, and what it wrote
   goes (:mod:`spark_bridge.state.attempt`).
2. A source's batch that is not above the last one applied of that source is not applied.
3. Grids are chosen once, when the state is made: where a tuple is sent never changes.

Cost: a batch reads and writes by its changes and what they change in the partitions that
they reach; the manifest, which names all partitions, is written anew.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import lftj.errors
from lftj.errors import ChangeError, LftjError, StateError, UnknownRelationError
from spark_bridge.cells.signed_tables import refuse_null_weights, signed, weight_of
from spark_bridge.explanation import explained
from spark_bridge.join import checked_grids, chosen_partitions, head_frames
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.key_sample import sampled_grids
from spark_bridge.placing.packets import SPARK_SCHEMA, PacketWriter
from spark_bridge.placing.placing import Nulls, check_nulls, without_nulls
from spark_bridge.placing.schemas import arrow_schema, arrow_schemas, plain, spark_schema
from spark_bridge.placing.tagged_input import TaggedInput, TagReader
from spark_bridge.placing.worker_process import Batches, TaskFunction, in_worker
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.worker import RECEIPT, Receipt, StageWorker, error_receipt
from spark_bridge.state.attempt import attempt
from spark_bridge.state.delta_head import DeltaHead
from spark_bridge.state.fault_points import reached
from spark_bridge.state.frames import changes_frame, table_frame
from spark_bridge.state.manifest import Batch, Manifest, PartitionState
from spark_bridge.state.store import StateStore

KEPT_BATCHES = 10
"""Newest versions whose files stay: for readers of them, and for batches that are asked for again."""

MOST_BATCHES = 2**63

Sink = Callable[[DataFrame, int], object] | str
_log = logging.getLogger(__name__)
_OWN = ""  # the source of batches that apply() is given without one
_turn = threading.RLock()  # whose holder makes the next version: a stream has a thread of its own


@dataclass(frozen=True)
class BatchStats:
    """What the last batch took.

    Attributes:
        seconds: From the call to the commit.
        partitions: Partitions of all stages that were stepped.
        engines: How many of them had their engine from where: ``kept`` in the worker, ``caught up`` from an
            earlier state there, ``image``, ``evaluated`` anew, ``new`` for a partition's first rows.
        head_changes: Rows of changes of the result.
    """

    seconds: float
    partitions: int
    engines: Mapping[str, int]
    head_changes: int

    @classmethod
    def of(cls, receipts: Sequence[Receipt], seconds: float) -> BatchStats:
        engines = dict(Counter(receipt.source for receipt in receipts))
        return cls(seconds, len(receipts), engines, sum(receipt.head_rows for receipt in receipts))


class MaintainedJoin:
    """A program over relations, its last head kept up to date under batches of changes.

    ``stats`` has what the last batch of this object took (:class:`BatchStats`), at first what the making of
    the state took.

    ``state``: a path that the driver and all workers reach: a folder, or a URI such as ``hdfs://``.  Where
    there is a state of the same program, it is gone on with, and ``relations`` only give the schemas.  Other
    arguments as for :func:`~spark_bridge.join.join`.

    ``applied``: by source, the last batch that the relations, as they are given, have in them already.

    ``delta``: the path or URI of a Delta table that is to be the head: it is made if there is none, and each
    batch is a commit (:mod:`spark_bridge.state.delta_head`); ``storage_options`` as deltalake takes them.  A
    batch that is in the state, and could not be written to the table, raises StateError, and is written when
    it is applied again, with the next batch, or when the state is opened.

    Raises RuleError, SourceError and UnsupportedTypeError for a wrong program or relation, StateError for a
    state of something else, the engine's DataError and EvaluationError for wrong data, and ImportError for
    ``delta`` without the package deltalake.
    """

    def __init__(
        self,
        rule: str,
        relations: Mapping[str, DataFrame],
        *,
        state: str | os.PathLike[str],
        head: str | None = None,
        partitions: int | None = None,
        shares: Mapping[str, int] | None = None,
        nulls: Nulls = "refuse",
        applied: Mapping[str, int] | None = None,
        delta: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._text = ProgramText(rule, head, arrow_schemas(relations))
        plans = self._text.plans()
        read = {name for plan in plans for name in plan.reads}
        self._relations = {name: schema for name, schema in self._text.relations if name in read}
        self._text = ProgramText(rule, head, tuple(self._relations.items()))
        check_nulls(nulls)
        for plan in plans:
            spark_schema(plan.arrow_schema)
        self._nulls = nulls
        self.stats: BatchStats | None = None
        self._session: SparkSession | None = next(iter(relations.values())).sparkSession
        self._store = StateStore(state)
        self._delta: DeltaHead | None = None
        if delta is not None:
            self._delta = DeltaHead(delta, signed(plans[-1].arrow_schema), self._store, storage_options)
        found = self._store.newest()
        if found is None:
            contained = {name: _checked_batch(number) for name, number in (applied or {}).items()}
            self._make(relations, chosen_partitions(self._session, partitions), shares, contained)
        else:
            found.refuse_other(
                self._identity(found.identity["partitions"] if partitions is None else partitions)
            )
            self._chain = self._chain_of(found)
            self._manifest = found
            self._tidy(self._store.sweep)
        self._follow()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_session": None}

    def __repr__(self) -> str:
        head = self._chain.plans[-1].name
        return f"<MaintainedJoin of {head}, version {self._manifest.version}, {self._store!r}>"

    @property
    def version(self) -> int:
        """Number of the newest version: 1 is the first, and each batch makes the next."""
        self._read_again()
        return self._manifest.version

    # -- the result -----------------------------------------------------------------

    def table(self) -> DataFrame:
        """The rows of the head as they are now; lazy.  Files of a version stay for ten more."""
        self._read_again()
        return table_frame(self.session, self._store, self._chain.plans[-1].arrow_schema, self._head_states())

    def applied(self, source: str = _OWN) -> int | None:
        """The last batch that was applied of a source; None if none was."""
        self._read_again()
        return self._manifest.applied.get(source)

    @property
    def session(self) -> SparkSession:
        """The Spark session: that of the relations, in another process the active one."""
        if self._session is None:
            self._session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return self._session

    def explain(self) -> str:
        """How the relations are cut and sent, as :func:`~spark_bridge.explanation.explain` shows it."""
        return explained(self._chain.plans, self._chain.grids)

    # -- changes --------------------------------------------------------------------

    def apply(
        self, changes: Mapping[str, DataFrame], batch_id: int | None = None, *, source: str = _OWN
    ) -> DataFrame:
        """Apply a batch, all or nothing; returns the changes of the head, with ``weight`` +1 or -1.

        ``changes``: by relation, its columns and ``weight``: positive to insert, negative to erase.
        ``batch_id``: of a source, which counts its batches upward; one that was applied is not applied again,
        it gives the changes that it made, or none when it is older than the last ten versions.

        Raises ChangeError for changes that can't be taken, the engine's errors for wrong data, StateError
        when another application uses the state.  Then nothing has changed.
        """
        if batch_id is not None:
            _checked_batch(batch_id)
        tagged = self._tagged(changes)
        return self._once(tagged.frame, tagged.reader(), batch_id, source)

    def stream(
        self,
        changes: Mapping[str, DataFrame],
        *,
        checkpoint: str,
        sink: Sink,
        trigger: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> StreamingQuery:
        """Apply the batches of streaming DataFrames of changes; returns the started query.

        ``checkpoint``: Spark's checkpoint location; its batches are a source of their own, so that a restart
        goes on where it was.  ``sink``: a function of the head's changes and the batch's number, called again
        with equal changes when a batch is tried again, or a path: each batch is then a folder of Parquet
        files, written as a whole.  ``trigger``: as for ``DataStreamWriter.trigger``.
        """
        tagged = self._tagged(changes)
        reader, source = tagged.reader(), f"stream {checkpoint}"
        deliver = _to_folder(sink) if isinstance(sink, str) else sink
        if not callable(deliver):
            raise StateError(f"sink is {sink!r}; it is a function of (changes, batch number), or a path")

        def each(batch: DataFrame, number: int) -> None:
            self._session = batch.sparkSession
            deliver(self._once(batch, reader, number, source), number)

        writer = tagged.frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
        if name is not None:
            writer = writer.queryName(name)
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()

    # -- how it is done -------------------------------------------------------------

    def _make(
        self,
        relations: Mapping[str, DataFrame],
        partitions: int,
        shares: Mapping[str, int] | None,
        applied: dict[str, int],
    ) -> None:
        """The first version."""
        started = time.perf_counter()
        self._store.create()
        plans = self._text.plans()
        try:
            if shares is None:
                frames = head_frames(self._text, relations, partitions, None, self._nulls)
                grids = [sampled_grids(frames, self._text, head, partitions) for head in range(len(plans))]
            else:
                grids = [checked_grids(plans, plan, shares, partitions) for plan in plans]
        except PythonException:
            # Wrong data, most likely: under any grids the stages say so by an error of ours.
            any_grids = [checked_grids(plans, plan, {}, partitions) for plan in plans]
            with attempt(self._store, self.session, 1) as token:
                self._first_receipts(relations, any_grids, token)
                raise
        with attempt(self._store, self.session, 1) as token:
            receipts = self._first_receipts(relations, grids, token)
            self._manifest = replace(self._manifest, applied=applied)
            self._commit(receipts, None, None)
        self._committed(token, receipts, started)

    def _first_receipts(
        self, relations: Mapping[str, DataFrame], grids: Sequence[HeadGrids], token: str
    ) -> list[Receipt]:
        """Run the relations as they are through all stages."""
        self._chain = StageChain(self._text, tuple(grids), self._nulls)
        placement = {"heads": [one.to_json() for one in grids]}
        identity = self._identity(self._chain.partitions)
        self._manifest = Manifest(0, identity, placement, {}, {}, (), state_id=uuid4().hex)
        frames = {
            name: relations[name].select("*", F.lit(1).cast("bigint").alias(weight_of(schema)))
            for name, schema in self._relations.items()
        }
        tagged = TaggedInput.of(frames, [(name, signed(schema)) for name, schema in self._relations.items()])
        return self._run(tagged.frame, tagged.reader(), token)

    def _identity(self, partitions: int) -> dict[str, Any]:
        schemas = {
            name: [[field.name, str(field.type)] for field in schema]
            for name, schema in self._relations.items()
        }
        return {
            "rule": self._text.text,
            "head": self._text.plans()[-1].name,
            "relations": schemas,
            "partitions": partitions,
            "nulls": self._nulls,
        }

    def _chain_of(self, manifest: Manifest) -> StageChain:
        grids = tuple(HeadGrids.from_json(text) for text in manifest.placement["heads"])
        return StageChain(self._text, grids, self._nulls)

    def _read_again(self) -> None:
        """Take note of versions that others have made since, a stream on this state for example."""
        newest = self._store.newest()
        if newest is None:
            raise StateError(f"the state at {self._store.path!r} is gone: make it anew at another path")
        self._manifest = newest

    def _tagged(self, changes: Mapping[str, DataFrame]) -> TaggedInput:
        """The changes in the relations' own types.  Raises ChangeError and UnknownRelationError."""
        frames, schemas = {}, []
        if not changes:
            raise ChangeError(f"there are no changes; relations are {', '.join(self._relations)}")
        for name, frame in changes.items():
            schema = self._relations.get(name)
            if schema is None:
                known = ", ".join(self._relations)
                raise UnknownRelationError(f"changes of {name!r}, which no rule reads; relations are {known}")
            frames[name] = _in_types(name, frame, schema)
            schemas.append((name, signed(schema)))
        return TaggedInput.of(frames, schemas)

    def _once(self, frame: DataFrame, reader: TagReader, batch_id: int | None, source: str) -> DataFrame:
        """The changes that a batch makes, or has made.  Batches of a process take turns."""
        with _turn:
            self._read_again()
            last = self._manifest.applied.get(source, -1)
            if batch_id is None:
                batch_id = last + 1
            if batch_id > last:
                self._apply(frame, reader, batch_id, source)
            self._follow()
            return self._recorded(source, batch_id)

    def _apply(self, frame: DataFrame, reader: TagReader, batch_id: int, source: str) -> None:
        reached("batch: before the job")
        started = time.perf_counter()
        with attempt(self._store, frame.sparkSession, self._manifest.version + 1) as token:
            receipts = self._run(frame, reader, token)
            reached("batch: job done")
            self._commit(receipts, source, batch_id)
        self._committed(token, receipts, started)

    def _run(self, frame: DataFrame, reader: TagReader, token: str) -> list[Receipt]:
        """Run a batch through all stages.  Raises an error that a receipt of the earliest stage has."""
        chain, store = self._chain, self._store
        packets = frame.mapInArrow(in_worker(placing_changes(chain, reader)), SPARK_SCHEMA)
        for stage in chain.stages:
            prefix = f"{stage.number}-"
            states = {n: s for n, s in self._manifest.partitions.items() if n.startswith(prefix)}
            worker = StageWorker(chain, stage, states, store, token)
            step = in_worker(worker.packets)
            packets = packets.repartitionById(chain.partitions, "pid").mapInArrow(step, SPARK_SCHEMA)
        rows = packets.select("read", "rows").collect()
        receipts = [Receipt.of(bytes(row["rows"])) for row in rows if row["read"] == RECEIPT]
        # A later stage has seen a part of the changes only: what it complains of may follow from that.
        errors = sorted((receipt for receipt in receipts if receipt.error), key=_stage_number)
        if errors:
            raise getattr(lftj.errors, errors[0].error, LftjError)(errors[0].message)
        return receipts

    def _commit(self, receipts: Sequence[Receipt], source: str | None, batch_id: int | None) -> None:
        """Make the next version of what a batch's partitions say."""
        was = self._manifest
        partitions: dict[str, PartitionState] = dict(was.partitions)
        partitions.update({receipt.partition: receipt.state for receipt in receipts if receipt.state})
        applied, batches = dict(was.applied), was.batches
        if source is not None and batch_id is not None:
            applied[source] = batch_id
            files = tuple(sorted(receipt.head_changes for receipt in receipts if receipt.head_changes))
            batches = (*batches, Batch(was.version + 1, source, batch_id, files))[-KEPT_BATCHES:]
        following = replace(
            was, version=was.version + 1, applied=applied, partitions=partitions, batches=batches
        )
        self._store.commit(following)
        self._manifest = following

    def _committed(self, token: str, receipts: Sequence[Receipt], started: float) -> None:
        """What follows a commit."""
        self.stats = BatchStats.of(receipts, time.perf_counter() - started)
        reached("batch: committed, not cleaned")
        self._tidy(partial(self._store.end, token))
        # At the first version, too: of tries before it there may be files without a marker.
        if self._manifest.version % KEPT_BATCHES == 1:
            self._tidy(partial(self._store.clean, KEPT_BATCHES))
        else:
            self._tidy(self._store.sweep)

    def _tidy(self, tidying: Callable[[], object]) -> None:
        """What is no part of the state goes.  Where that fails the state is what it is, and goes on."""
        try:
            tidying()
        except StateError as error:
            _log.warning("%r: the state is whole, but was not tidied up: %s", self._store, error)

    def _follow(self) -> None:
        """Bring the Delta table, if there is to be one, to where the state is."""
        if self._delta is not None:
            self._delta.follow(self._manifest, self._head_states())

    def _head_states(self) -> list[PartitionState]:
        """The partitions that the head's rows are in."""
        prefix = f"{self._chain.last.number}-"
        return [s for name, s in sorted(self._manifest.partitions.items()) if name.startswith(prefix)]

    def _recorded(self, source: str, batch_id: int) -> DataFrame:
        """The changes that a batch made, as its version recorded them."""
        files = [
            file
            for batch in self._manifest.batches
            if (batch.source, batch.batch_id) == (source, batch_id)
            for file in batch.changes
        ]
        return changes_frame(self.session, self._store, signed(self._chain.plans[-1].arrow_schema), files)


def _checked_batch(number: int) -> int:
    """A batch's number.  Raises ChangeError if it can't be one."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MOST_BATCHES:
        raise ChangeError(f"batch_id is {number!r}; batches are numbered from 0 to below 2**63")
    return number


def _stage_number(receipt: Receipt) -> int:
    """The stage that a receipt is of; -1 for the placing of the inputs."""
    return int(receipt.partition.partition("-")[0] or -1)


def placing_changes(chain: StageChain, reader: TagReader) -> TaskFunction:
    """What a task of a batch does: packets of its rows, or a receipt with the error."""

    def place(batches: Batches) -> Batches:
        tables: dict[str, list[pa.Table]] = {}
        try:
            for batch in batches:
                for name, rows in reader.tables(batch):
                    refuse_null_weights(name, rows)
                    tables.setdefault(name, []).append(without_nulls(name, rows, chain.nulls))
            gathered = {name: iter([pa.concat_tables(parts)]) for name, parts in tables.items()}
            yield from chain.placed(gathered)
        except LftjError as error:
            writer = PacketWriter()
            writer.add(0, 0, "", RECEIPT, error_receipt("", error).to_bytes(), len(chain.stages))
            yield from writer.rest()

    return place


def _in_types(name: str, frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """Changes of a relation with its columns in its types, in its order, and the weight."""
    label = weight_of(schema)
    given = arrow_schema(name, frame)
    wanted = [*schema.names, label]
    missing = [column for column in wanted if column not in given.names]
    extra = [column for column in given.names if column not in wanted]
    if missing or extra:
        raise ChangeError(
            f"changes of {name!r} have the columns {', '.join(given.names)};"
            f" they have to be {', '.join(wanted)}"
        )
    if not pa.types.is_integer(given.field(label).type):
        raise ChangeError(
            f"changes of {name!r}: the weight is of type {given.field(label).type}, not an integer"
        )
    columns = []
    types = {field.name: field.dataType for field in spark_schema(signed(schema))}
    for column in wanted:
        have, want = given.field(column).type, signed(schema).field(column).type
        if have != want and not _widens(have, want):
            raise ChangeError(
                f"changes of {name!r}, column {column!r}: the values are of type {have}, the relation's"
                f" of type {want}: cast the column"
            )
        place = given.get_field_index(column)
        columns.append(F.col(f"c{place}").cast(plain(types[column])).alias(column))
    # By place: Spark takes names that differ in case only for one.
    return frame.toDF(*(f"c{place}" for place in range(len(given)))).select(*columns)


def _widens(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether every value of a type is one of another."""
    integers = pa.types.is_integer(have) and pa.types.is_integer(want)
    floats = pa.types.is_floating(have) and pa.types.is_floating(want)
    return (integers or floats) and have.bit_width <= want.bit_width


def _to_folder(path: str) -> Callable[[DataFrame, int], object]:
    def deliver(changes: DataFrame, number: int) -> None:
        changes.write.mode("overwrite").parquet(f"{path.rstrip('/')}/batch={number}")

    return deliver
