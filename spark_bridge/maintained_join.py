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
3. Grids are those of the version: :meth:`MaintainedJoin.repartition` makes a version with other ones, and all
   its partitions anew.

Cost: a batch reads and writes by its changes and what they change in the partitions that
they reach; the manifest, which names all partitions, is written anew.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from lftj.errors import ChangeError, StateError, UnknownRelationError
from spark_bridge.cells.search_engine import STRATEGIES, Policy
from spark_bridge.cells.signed_tables import signed, weight_of
from spark_bridge.explanation import explained
from spark_bridge.join import checked_grids, chosen_partitions, head_frames
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.key_sample import sampled_grids
from spark_bridge.placing.placing import Nulls, check_nulls
from spark_bridge.placing.plan_fit import PlanFit, plan_fit
from spark_bridge.placing.schemas import arrow_schemas, spark_schema
from spark_bridge.placing.tagged_input import TaggedInput, TagReader
from spark_bridge.stages.batch_stats import BatchStats
from spark_bridge.stages.running import run_stages
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.stored_relations import relation_frame
from spark_bridge.stages.typed_changes import changes_in_types
from spark_bridge.stages.worker import Receipt, StageWorker
from spark_bridge.state.attempt import attempt
from spark_bridge.state.engine_cache import check_engine_bytes
from spark_bridge.state.fault_points import reached
from spark_bridge.state.frames import changes_frame, table_frame
from spark_bridge.state.manifest import Batch, Manifest, PartitionState
from spark_bridge.state.state_index import StateIndex
from spark_bridge.state.store import StateStore

KEPT_BATCHES = 10
"""Newest versions whose files stay: for readers of them, and for batches that are asked for again."""

MOST_BATCHES = 2**63

Sink = Callable[[DataFrame, int], object] | str
_log = logging.getLogger(__name__)
_OWN = ""  # the source of batches that apply() is given without one
_turn = threading.RLock()  # whose holder makes the next version: a stream has a thread of its own


class MaintainedJoin:
    """A program over relations, its last head kept up to date under batches of changes.

    ``stats`` has what the last batch of this object took (:class:`BatchStats`), at first what the making of
    the state took.

    ``state``: a path that the driver and all workers reach: a folder, or a URI such as ``hdfs://``.  Where
    there is a state of the same program, it is gone on with, and ``relations`` only give the schemas.
    ``policy``: ``"maintain"`` follows each batch by what changed, ``"anew"`` joins the cells that a batch
    reaches again and subtracts, ``"auto"`` does in each cell what costs less; another one may be given when
    a state is opened again.
    ``replan``: a factor; where ``stats.plan`` has left the plan by so much, the next batch begins with
    :meth:`repartition`.  By default none does.
    ``engine_bytes``: of engines that each Python worker keeps between batches; by default 1 GiB, and never
    more than a quarter of what ``spark.executor.pyspark.memory`` gives it.  Other arguments as for
    :func:`~spark_bridge.join.join`.

    Raises RuleError, SourceError and UnsupportedTypeError for a wrong program or relation, StateError for a
    state of something else, and the engine's DataError and EvaluationError for wrong data.
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
        policy: Policy = "auto",
        replan: float | None = None,
        engine_bytes: int | None = None,
    ) -> None:
        if policy not in STRATEGIES:
            raise ValueError(f"policy is {policy!r}; it can be {', '.join(map(repr, STRATEGIES))}")
        check_engine_bytes(engine_bytes)
        if replan is not None and not replan > 1:
            raise ValueError(f"replan is {replan!r}; it is a factor above 1, or None")
        self._policy: Policy = policy
        self._replan = replan
        self._engine_bytes = engine_bytes
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
        self._chain = self._chain_of(())
        self._session: SparkSession | None = next(iter(relations.values())).sparkSession
        self._store = StateStore(state)
        found = self._store.newest()
        if found is None:
            self._make(relations, chosen_partitions(self._session, partitions), shares)
        else:
            found.refuse_other(
                self._identity(found.identity["partitions"] if partitions is None else partitions)
            )
            self._take(found)
            self._tidy(self._store.sweep)

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
        chain = self._chain
        prefix = f"{chain.last.number}-"
        states = [s for name, s in sorted(self._manifest.partitions.items()) if name.startswith(prefix)]
        return table_frame(self.session, self._store, chain.plans[-1].arrow_schema, states)

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
        if batch_id is not None and (
            isinstance(batch_id, bool) or not isinstance(batch_id, int) or not 0 <= batch_id < MOST_BATCHES
        ):
            raise ChangeError(f"batch_id is {batch_id!r}; batches are numbered from 0 to below 2**63")
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

    def repartition(self, partitions: int | None = None, *, shares: Mapping[str, int] | None = None) -> None:
        """Plan where tuples go anew, for the relations as they are, and build all partitions again.

        The result does not change, nor which batches were applied: it is a version without a batch.
        ``stats.plan`` says when it pays.  ``partitions`` and ``shares`` as for the constructor; by default as
        many partitions as before, and what sends least, by a sample of the relations as the state has them.

        Cost: that of making the state, from its own files.  Raises as :meth:`apply` does, and OrderError and
        LimitError for wrong shares and partitions; then nothing has changed.
        """
        with _turn:
            self._read_again()
            self._repartition(partitions, shares)

    # -- how it is done -------------------------------------------------------------

    def _make(
        self, relations: Mapping[str, DataFrame], partitions: int, shares: Mapping[str, int] | None
    ) -> None:
        """The first version."""
        started = time.perf_counter()
        self._store.create()
        self._manifest = Manifest(0, self._identity(partitions), {}, {}, {}, ())
        try:
            grids = self._grids(relations, partitions, shares)
        except PythonException:
            # Wrong data, most likely: under any grids the stages say so by an error of ours.
            any_grids = self._grids(relations, partitions, {})
            with attempt(self._store, self.session, 1) as token:
                self._built(relations, self._chain_of(any_grids), token)
                raise
        self._make_version(relations, grids, started)

    def _grids(
        self, relations: Mapping[str, DataFrame], partitions: int, shares: Mapping[str, int] | None
    ) -> list[HeadGrids]:
        """Grids for all heads: by the caller's shares, else by a sample."""
        plans = self._text.plans()
        if shares is not None:
            return [checked_grids(plans, plan, shares, partitions) for plan in plans]
        frames = head_frames(self._text, relations, partitions, None, self._nulls)
        return [sampled_grids(frames, self._text, head, partitions) for head in range(len(plans))]

    def _make_version(
        self, relations: Mapping[str, DataFrame], grids: Sequence[HeadGrids], started: float
    ) -> None:
        """The next version: the relations under these grids, nothing of what was before."""
        was, chain = self._manifest, self._chain_of(grids)
        with attempt(self._store, self.session, was.version + 1) as token:
            receipts = self._built(relations, chain, token)
            rows = _grown(dict.fromkeys(self._relations, 0), receipts)
            placement: dict[str, Any] = {
                "heads": [one.to_json() for one in grids],
                "planned": rows,
                "rows": rows,
            }
            states = {receipt.partition: receipt.state for receipt in receipts if receipt.state}
            placement["skew"] = self._fit(chain, placement, states).skew
            identity = self._identity(chain.partitions)
            self._commit(Manifest(was.version + 1, identity, placement, was.applied, states, was.batches))
        self._chain = chain
        self._committed(token, receipts, started)

    def _built(self, relations: Mapping[str, DataFrame], chain: StageChain, token: str) -> list[Receipt]:
        """Run the relations as they are through all stages, of which none has a state."""
        frames = {
            name: relations[name].select("*", F.lit(1).cast("bigint").alias(weight_of(schema)))
            for name, schema in self._relations.items()
        }
        tagged = TaggedInput.of(frames, [(name, signed(schema)) for name, schema in self._relations.items()])
        return self._run(chain, {}, tagged.frame, tagged.reader(), token)

    def _repartition(self, partitions: int | None, shares: Mapping[str, int] | None) -> None:
        started = time.perf_counter()
        wanted = self._chain.partitions if partitions is None else chosen_partitions(self.session, partitions)
        relations = {
            name: relation_frame(self.session, self._store, self._chain, self._manifest, name)
            for name in self._relations
        }
        self._make_version(relations, self._grids(relations, wanted, shares), started)

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

    def _chain_of(self, grids: Sequence[HeadGrids]) -> StageChain:
        return StageChain(self._text, tuple(grids), self._nulls)

    def _read_again(self) -> None:
        """Take note of versions that others have made since, a stream on this state for example."""
        newest = self._store.newest()
        if newest is None:
            raise StateError(f"the state at {self._store.path!r} is gone: make it anew at another path")
        self._take(newest)

    def _take(self, manifest: Manifest) -> None:
        """Go on from a version, under the grids that it has."""
        self._manifest = manifest
        if manifest.placement["heads"] != [one.to_json() for one in self._chain.grids]:
            self._chain = self._chain_of([HeadGrids.from_json(text) for text in manifest.placement["heads"]])

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
            frames[name] = changes_in_types(name, frame, schema)
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
                if self._left_plan():
                    self._repartition(None, None)
                self._apply(frame, reader, batch_id, source)
            return self._recorded(source, batch_id)

    def _left_plan(self) -> bool:
        """Whether rows or skew have left the plan by the factor that asks for another one."""
        placement = self._manifest.placement
        fit = self._fit(self._chain, placement, self._manifest.partitions)
        planned = PlanFit(skew=placement["skew"])
        return self._replan is not None and fit.left_by(planned) >= self._replan

    def _apply(self, frame: DataFrame, reader: TagReader, batch_id: int, source: str) -> None:
        reached("batch: before the job")
        started = time.perf_counter()
        with attempt(self._store, frame.sparkSession, self._manifest.version + 1) as token:
            receipts = self._run(self._chain, self._manifest.partitions, frame, reader, token)
            reached("batch: job done")
            self._commit(self._following(receipts, source, batch_id))
        self._committed(token, receipts, started)

    def _run(
        self,
        chain: StageChain,
        states: Mapping[str, PartitionState],
        frame: DataFrame,
        reader: TagReader,
        token: str,
    ) -> list[Receipt]:
        """Run a batch through all stages; raises what its tasks complain of."""
        # Spark runs all tasks, also those that get nothing, so there are no more than its shuffles have.
        # The first version reaches all partitions, and each has much to read.
        most = chosen_partitions(frame.sparkSession, None) if states else chain.partitions
        index = StateIndex.written(self._store, token, states, len(chain.stages), chain.partitions)
        worker = partial(StageWorker, chain, states=index, token=token)
        steps = partial(worker, engine_bytes=self._engine_bytes, policy=self._policy)
        receipts = run_stages(chain, frame, reader, steps, min(chain.partitions, most))
        self._tidy(index.delete)
        return receipts

    def _following(self, receipts: Sequence[Receipt], source: str, batch_id: int) -> Manifest:
        """The next version, of what a batch's partitions say."""
        was = self._manifest
        partitions: dict[str, PartitionState] = dict(was.partitions)
        partitions.update({receipt.partition: receipt.state for receipt in receipts if receipt.state})
        files = tuple(sorted(receipt.head_changes for receipt in receipts if receipt.head_changes))
        batches = (*was.batches, Batch(was.version + 1, source, batch_id, files))[-KEPT_BATCHES:]
        applied = {**was.applied, source: batch_id}
        placement = {**was.placement, "rows": _grown(was.placement["rows"], receipts)}
        return Manifest(was.version + 1, was.identity, placement, applied, partitions, batches)

    def _commit(self, following: Manifest) -> None:
        self._store.commit(following)
        self._manifest = following

    def _committed(self, token: str, receipts: Sequence[Receipt], started: float) -> None:
        """What follows a commit."""
        fit = self._fit(self._chain, self._manifest.placement, self._manifest.partitions)
        self.stats = BatchStats.of(receipts, time.perf_counter() - started, fit)
        reached("batch: committed, not cleaned")
        self._tidy(partial(self._store.end, token))
        # At the first version, too: of tries before it there may be files without a marker.
        if self._manifest.version % KEPT_BATCHES == 1:
            self._tidy(partial(self._store.clean, KEPT_BATCHES))
        else:
            self._tidy(self._store.sweep)

    def _fit(
        self, chain: StageChain, placement: Mapping[str, Any], states: Mapping[str, PartitionState]
    ) -> PlanFit:
        """How the grids fit what there is; partitions' rows are those at their snapshots."""
        rows = [
            [
                states[name].rows if (name := f"{stage.number}-{pid}") in states else 0
                for pid in range(chain.partitions)
            ]
            for stage in chain.stages
            if not stage.combines
        ]
        return plan_fit(chain.plans, chain.grids, placement["planned"], placement["rows"], rows)

    def _tidy(self, tidying: Callable[[], object]) -> None:
        """What is no part of the state goes.  Where that fails the state is what it is, and goes on."""
        try:
            tidying()
        except StateError as error:
            _log.warning("%r: the state is whole, but was not tidied up: %s", self._store, error)

    def _recorded(self, source: str, batch_id: int) -> DataFrame:
        """The changes that a batch made, as its version recorded them."""
        files = [
            file
            for batch in self._manifest.batches
            if (batch.source, batch.batch_id) == (source, batch_id)
            for file in batch.changes
        ]
        return changes_frame(self.session, self._store, signed(self._chain.plans[-1].arrow_schema), files)


def _grown(rows: Mapping[str, int], receipts: Sequence[Receipt]) -> dict[str, int]:
    """Rows by relation after a batch."""
    return {name: n + sum(receipt.grown.get(name, 0) for receipt in receipts) for name, n in rows.items()}


def _to_folder(path: str) -> Callable[[DataFrame, int], object]:
    def deliver(changes: DataFrame, number: int) -> None:
        changes.write.mode("overwrite").parquet(f"{path.rstrip('/')}/batch={number}")

    return deliver
