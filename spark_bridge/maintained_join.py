"""`MaintainedJoin`: a rule over Spark DataFrames whose result follows batches of changes.

Every partition's relations and results are files below a state path, of which a manifest
names those that count (:mod:`spark_bridge.state.store`).  A batch is one query: changes
are placed like the relations were, each stage steps the partitions that got some
(:mod:`spark_bridge.stages.worker`), and the driver, when it has all receipts, commits by
the next manifest (:mod:`spark_bridge.stages.state_versions`).

Invariants

1. What the state is, the newest manifest says, and nothing else: a batch that fails or
   dies at any moment before its manifest is in place changed nothing, and what it wrote
   goes (:mod:`spark_bridge.state.attempt`).
2. A source's batch that is not above the last one applied of that source is not applied.
3. Grids are those of the version: :meth:`MaintainedJoin.repartition` makes a version with other ones, and all
   its partitions anew.
4. Batches of one process on one state take turns, also those of streams, which have a thread of their own; a
   version follows the one that its batch began from, whatever is read meanwhile.

Cost: a batch reads and writes by its changes and what they change in the partitions that
they reach; the manifest, which names all partitions, is written anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from lftj.database.asking import in_sql
from lftj.errors import ChangeError, SourceError, StateError, StreamError, UnknownRelationError
from lftj.language.recent import Recent
from maintenance.event_time.moments import code_of, moment_of
from maintenance.event_time.stream_state import Late
from maintenance.store.fault_points import reached
from spark_bridge.cells.search_engine import STRATEGIES, Policy
from spark_bridge.cells.signed_tables import events, signed
from spark_bridge.cells.stream_engine import held
from spark_bridge.explanation import explained
from spark_bridge.front_ends.select_rules import kept_rules
from spark_bridge.join import checked_grids, chosen_partitions, head_frames
from spark_bridge.placing.event_time import Spans, TimeSettings
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.key_sample import sampled_grids
from spark_bridge.placing.placing import InputNulls, check_nulls
from spark_bridge.placing.read_columns import read_program
from spark_bridge.placing.schemas import spark_schema
from spark_bridge.placing.tagged_input import TaggedInput, TagReader
from spark_bridge.stages.batch_stats import BatchStats
from spark_bridge.stages.clock_stage import BatchClock, clock_type
from spark_bridge.stages.job_names import jobs_named
from spark_bridge.stages.running import run_stages
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.state_versions import StateVersions
from spark_bridge.stages.stored_relations import relation_frame
from spark_bridge.stages.streaming import check_next, observed, stream_source, to_folder
from spark_bridge.stages.turns import turn_on
from spark_bridge.stages.typed_changes import changes_in_order
from spark_bridge.stages.worker import Receipt, StageWorker
from spark_bridge.state.attempt import attempt
from spark_bridge.state.delta_head import DeltaHead
from spark_bridge.state.engine_cache import check_engine_bytes
from spark_bridge.state.frames import changes_frame, table_frame
from spark_bridge.state.manifest import PartitionState, StateManifest
from spark_bridge.state.state_index import StateIndex
from spark_bridge.state.store import StateStore

MOST_BATCHES = 2**63

Sink = Callable[[DataFrame, int], object] | str
_OWN = ""  # the source of batches that apply() is given without one


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

    ``key``: by relation, the columns in which no two of its rows agree, and that hold no NULL; its changes
    may say what happens by key (:meth:`apply`).

    ``time``: by relation that is a *stream*, the column of its rows' time: a timestamp, a date or an integer,
    NOT NULL.  A row that is earlier than the latest of the batches before by more than ``lateness`` is late:
    not taken, but counted (:meth:`late`) and kept for a while (:meth:`late_rows`).  Rows leave when ``now``,
    the time that has come in all streams, has gone on by ``keep``, and the head follows; None: never.
    ``ahead``: a batch with a row that is further beyond the latest of before is refused.  Each of the three
    is of all streams, or by stream: a duration, ``"2h"`` or as Spark writes it ``"2 hours"``, or a timedelta;
    of integers a whole number.  ``stream trade(t) late 5s keep 2h.`` among the rules says the same.
    ``now()``, ``tumble``, ``hop`` and ``final`` are as in a workspace; of ``final vol at w + 5m.`` the head
    ``vol_final`` has the rows that have closed, and is the result where no other is asked for.  The relations
    as they are given are the first batch.

    ``applied``: by source, the last batch that the relations, as they are given, have in them already.

    ``delta``: the path or URI of a Delta table that is to be the head: it is made if there is none, and each
    batch is a commit (:mod:`spark_bridge.state.delta_head`); ``storage_options`` as deltalake takes them.  A
    batch that is in the state, and could not be written to the table, raises StateError, and is written when
    it is applied again, with the next batch, or when the state is opened.

    Raises RuleError, SourceError, StreamError and UnsupportedTypeError for a wrong program or relation,
    StateError for a state of something else, the engine's DataError and EvaluationError for wrong data, and
    ImportError for ``delta`` without the package deltalake.
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
        nulls: InputNulls = "refuse",
        key: Mapping[str, Sequence[str]] | None = None,
        time: Mapping[str, str] | None = None,
        lateness: Spans | None = None,
        keep: Spans | None = None,
        ahead: Spans | None = None,
        policy: Policy = "auto",
        replan: float | None = None,
        engine_bytes: int | None = None,
        applied: Mapping[str, int] | None = None,
        delta: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        if policy not in STRATEGIES:
            raise ValueError(f"policy is {policy!r}; it can be {', '.join(map(repr, STRATEGIES))}")
        check_engine_bytes(engine_bytes)
        if replan is not None and not replan > 1:
            raise ValueError(f"replan is {replan!r}; it is a factor above 1, or None")
        check_nulls(nulls)
        self._policy: Policy = policy
        self._replan = replan
        self._engine_bytes = engine_bytes
        self._keys = _checked_keys(key or {}, relations)
        times = TimeSettings(time or {}, lateness, keep, ahead)
        if times != TimeSettings({}):
            times.refuse_others({name: frame.columns for name, frame in relations.items()}, self._keys)
        self._text, relations, self._columns = read_program(
            rule, head, relations, nulls, by_row=True, keys=self._keys, times=times
        )
        plans = self._text.plans()
        streams = dict(self._text.streams)
        read = {name for plan in plans for name in plan.reads} | streams.keys()
        self._keys = {name: columns for name, columns in self._keys.items() if name in read}
        self._relations = {name: schema for name, schema in self._text.relations if name in read}
        self._text = replace(self._text, relations=tuple(self._relations.items()))
        for plan in plans:
            spark_schema(plan.arrow_schema)
        self._nulls = nulls
        self.stats: BatchStats | None = None
        self._session: SparkSession | None = next(iter(relations.values())).sparkSession
        store = StateStore(state)
        head_table: DeltaHead | None = None
        if delta is not None:
            head_table = DeltaHead(delta, signed(plans[-1].arrow_schema), store, storage_options)
        unread = self._columns.unread(read)
        self._versions = StateVersions(self._text, nulls, store, head_table, unread, self._keys)
        if not self._versions.opened(partitions):
            contained = {name: _checked_batch(number) for name, number in (applied or {}).items()}
            self._make(relations, chosen_partitions(self._session, partitions), shares, contained)
        self._versions.to_delta()

    @classmethod
    def from_sql(
        cls, sql: str, relations: Mapping[str, DataFrame], *, nulls: InputNulls = "keep", **options: Any
    ) -> MaintainedJoin:
        """The rows of a SELECT, kept up to date.

        ``relations`` are without equal rows, as for a rule; columns have the names that SQL gives them as a
        rule can write them.  ``options``: the other arguments, ``state=`` among them.

        Raises SqlError, UnsupportedSqlError for what is not kept (windows, LIMIT, WITH RECURSIVE, aggregates
        without GROUP BY, rows that are equal), and what ``MaintainedJoin`` does.
        """
        found = kept_rules(sql, relations)
        read = {
            name: frame
            for name, frame in relations.items()
            if any(name in rule.reads for rule in found.rules)
        }
        with in_sql(found):
            return cls(found.text, read, head=found.head, nulls=nulls, **options)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_session": None}

    def __repr__(self) -> str:
        versions = self._versions
        head = self._text.result
        return f"<MaintainedJoin of {head}, version {versions.manifest.version}, {versions.store!r}>"

    @property
    def version(self) -> int:
        """Number of the newest version: 1 is the first, and each batch makes the next."""
        self._versions.read_again()
        return self._versions.manifest.version

    # -- the result -----------------------------------------------------------------

    def table(self) -> DataFrame:
        """The rows of the head as they are now; lazy.  Files of a version stay for ten more."""
        versions = self._versions
        versions.read_again()
        schema = versions.chain.plans[-1].arrow_schema
        return table_frame(self.session, versions.store, schema, versions.head_states())

    def applied(self, source: str = _OWN) -> int | None:
        """The last batch that was applied of a source; None if none was."""
        self._versions.read_again()
        return self._versions.manifest.applied.get(source)

    @property
    def session(self) -> SparkSession:
        """The Spark session: that of the relations, in another process the active one."""
        if self._session is None:
            self._session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return self._session

    def explain(self) -> str:
        """How the relations are cut and sent, as :func:`~spark_bridge.explanation.explain` shows it."""
        chain = self._versions.chain
        return explained(chain.plans, chain.grids, keys=self._keys, timed=chain.text)

    # -- streams --------------------------------------------------------------------

    @property
    def now(self) -> Any:
        """The time that has come in all streams; None where there is none, or nothing came in one."""
        clock = self._clock()
        return None if clock is None else moment_of(clock_type(self._text), clock.now)

    def late(self, stream: str) -> Late:
        """How many rows of a stream came too late so far, to be inserted and to be erased.

        Raises UnknownRelationError.
        """
        self._refuse_no_stream(stream)
        clock = self._clock()
        assert clock is not None
        return clock.before[stream].late

    def late_rows(self, stream: str, batch_id: int | None = None, *, source: str = _OWN) -> DataFrame:
        """The rows of a stream that came too late with a batch, with ``weight``.

        ``batch_id``: by default the last one of the source; of one that is older than the last ten versions
        there are none.  Raises UnknownRelationError.
        """
        self._refuse_no_stream(stream)
        versions, schema = self._versions, signed(self._relations[stream])
        versions.read_again()
        number = versions.manifest.applied.get(source, -1) if batch_id is None else batch_id
        return changes_frame(self.session, versions.store, schema, versions.late(source, number, stream))

    def _clock(self) -> BatchClock | None:
        self._versions.read_again()
        return self._versions.clock(self._versions.manifest)

    def _refuse_no_stream(self, name: str) -> None:
        streams = dict(self._text.streams)
        if name not in streams:
            raise UnknownRelationError(f"{name!r} is no stream; streams are {', '.join(streams) or 'none'}")

    def _advanced(self, moment: Any) -> int:
        """A time to which the clock may be advanced.  Raises StreamError."""
        clock = self._clock()
        if clock is None:
            raise StreamError("advance= moves the clock of streams, and there is none: name one by time=")
        type_, now = clock_type(self._text), clock.now
        code = code_of(type_, moment)
        if now is not None and code < now:
            raise StreamError(
                f"advance={type_.spelled(code)}: the clock is at {type_.spelled(now)} already, and does not"
                " go back: advance it to a later time"
            )
        return code

    # -- changes --------------------------------------------------------------------

    def apply(
        self,
        changes: Mapping[str, DataFrame],
        batch_id: int | None = None,
        *,
        source: str = _OWN,
        advance: Any = None,
    ) -> DataFrame:
        """Apply a batch, all or nothing; returns the changes of the head, with ``weight`` +1 or -1.

        ``changes``: by relation, its columns and ``weight``: positive to insert, negative to erase.  Of one
        with a key a column ``op`` may stand in its place: ``I``, ``U``, ``D`` of the row; Debezium's ``c``,
        ``u``, ``d``, ``r``; Delta's ``insert``, ``delete``, ``update_preimage``, ``update_postimage``.
        Spark's rows have no order, so a batch has one upsert or erasure of a key, or whole rows of it.
        ``batch_id``: of a source, which counts its batches upward; one that was applied is not applied again,
        it gives the changes that it made, or none when it is older than the last ten versions.
        ``advance``: says that a time has come in all streams, if it has not; the rows of the batch are judged
        by the clock of before.  With it ``changes`` may be empty.

        Raises ChangeError for changes that can't be taken, KeyConflictError where a key would have two rows,
        StreamError for a time that is too far ahead, or behind the clock, the engine's errors for wrong data,
        StateError when another application uses the state.  Then nothing has changed.
        """
        if batch_id is not None:
            _checked_batch(batch_id)
        tagged = self._tagged(changes) if changes or advance is None else self._nothing()
        return self._once(tagged.frame, tagged.reader(), batch_id, source, advance)

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

        The query's progress has how many rows of changes of each relation a batch inserted and erased
        (:func:`~spark_bridge.stages.streaming.observed`).  A batch that is neither the last one applied nor
        the next one ends the query with StateError.
        """
        tagged = self._tagged(changes)
        reader, source = tagged.reader(), stream_source(checkpoint)
        deliver = to_folder(sink) if isinstance(sink, str) else sink
        if not callable(deliver):
            raise StateError(f"sink is {sink!r}; it is a function of (changes, batch number), or a path")

        def each(batch: DataFrame, number: int) -> None:
            self._session = batch.sparkSession
            check_next(source, number, self.applied(source))
            deliver(self._once(batch, reader, number, source), number)

        writer = (
            observed(tagged, self._keys)
            .writeStream.foreachBatch(each)
            .option("checkpointLocation", checkpoint)
        )
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
        with turn_on(self._versions.store.path):
            self._versions.read_again()
            self._repartition(partitions, shares)

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
        self._versions.begin(partitions, applied)
        with self._named(self.session, "first version"):
            try:
                grids = self._grids(relations, partitions, shares)
            except PythonException:
                # Wrong data, most likely: under any grids the stages say so by an error of ours.
                any_grids = self._grids(relations, partitions, {})
                with attempt(self._versions.store, self.session, 1) as token:
                    begun = self._versions.manifest
                    self._run_whole(relations, self._versions.chain_of(any_grids), token, begun)
                    raise
            self._make_version(self._versions.manifest, relations, grids, started)

    def _grids(
        self, relations: Mapping[str, DataFrame], partitions: int, shares: Mapping[str, int] | None
    ) -> list[HeadGrids]:
        """Grids for all heads: by the caller's shares, else by a sample."""
        plans = self._text.plans()
        relations = {**relations, **{each.name: relations[each.stream] for each in self._text.recents}}
        if shares is not None:
            return [checked_grids(plans, plan, shares, partitions) for plan in plans]
        frames = head_frames(self._text, relations, partitions, None, self._nulls)
        return [sampled_grids(frames, self._text, head, partitions) for head in range(len(plans))]

    def _make_version(
        self,
        was: StateManifest,
        relations: Mapping[str, DataFrame],
        grids: Sequence[HeadGrids],
        started: float,
    ) -> None:
        """The version after one: the relations under these grids, nothing of what was before."""
        versions, chain = self._versions, self._versions.chain_of(grids)
        with attempt(versions.store, self.session, was.version + 1) as token:
            receipts = self._run_whole(relations, chain, token, was)
            versions.built(was, chain, receipts)
        self._committed(token, receipts, started)

    def _run_whole(
        self, relations: Mapping[str, DataFrame], chain: StageChain, token: str, was: StateManifest
    ) -> list[Receipt]:
        """Run the relations as they are through all stages, of which none has a state."""
        schemas = {
            name: events(schema) if name in self._keys else signed(schema)
            for name, schema in self._relations.items()
        }
        closed = held(chain.plans[-1].name)
        if closed in relations:
            schemas[closed] = signed(chain.plans[-1].arrow_schema)
        marks = {name: [F.lit(1).cast("bigint").alias(schema.names[-1])] for name, schema in schemas.items()}
        for name in self._keys:
            marks[name].insert(0, F.lit(False).alias(schemas[name].names[-2]))
        frames = {name: relations[name].select("*", *columns) for name, columns in marks.items()}
        tagged = TaggedInput.of(frames, list(schemas.items()))
        clock = self._versions.clock(was, is_told=was.version > 0)
        return self._run(chain, {}, tagged.frame, tagged.reader(), token, clock)

    def _repartition(self, partitions: int | None, shares: Mapping[str, int] | None) -> None:
        started = time.perf_counter()
        was, chain = self._versions.manifest, self._versions.chain
        wanted = chain.partitions if partitions is None else chosen_partitions(self.session, partitions)
        relations = {name: self._stored(name) for name in self._relations}
        if self._text.final is not None:
            relations[held(chain.plans[-1].name)] = self.table()
        with self._named(self.session, "grids planned again"):
            self._make_version(was, relations, self._grids(relations, wanted, shares), started)
        self._versions.to_delta()

    def _stored(self, name: str) -> DataFrame:
        """A relation as the state has it; of a stream all of its rows that a rule reads."""
        versions = self._versions
        its = [recent.name for recent in sorted(self._text.recents, key=_span) if recent.stream == name]
        read = {one for plan in versions.chain.plans for one in plan.reads}
        held_as = next((one for one in (name, *reversed(its)) if one in read), None)
        if held_as is None:
            return self.session.createDataFrame([], spark_schema(self._relations[name]))
        return relation_frame(self.session, versions.store, versions.chain, versions.manifest, held_as)

    def _tagged(self, changes: Mapping[str, DataFrame]) -> TaggedInput:
        """The changes, columns in the relations' order.  Raises ChangeError and UnknownRelationError."""
        frames, schemas = {}, []
        if not changes:
            raise ChangeError(f"there are no changes; relations are {', '.join(self._relations)}")
        for name, frame in changes.items():
            schema = self._relations.get(name)
            if schema is None:
                known = ", ".join(self._relations)
                raise UnknownRelationError(f"changes of {name!r}, which no rule reads; relations are {known}")
            frames[name], given = changes_in_order(
                frame, self._columns.relations[name], schema, self._keys.get(name, ())
            )
            schemas.append((name, given))
        return TaggedInput.of(frames, schemas)

    def _nothing(self) -> TaggedInput:
        """No changes."""
        name = next((name for name, _ in self._text.streams), next(iter(self._relations)))
        schema = signed(self._relations[name])
        frame = self.session.createDataFrame([], spark_schema(schema))
        return TaggedInput.of({name: frame}, [(name, schema)])

    def _once(
        self, frame: DataFrame, reader: TagReader, batch_id: int | None, source: str, advance: Any = None
    ) -> DataFrame:
        """The changes that a batch makes, or has made."""
        versions = self._versions
        with turn_on(versions.store.path):
            versions.read_again()
            last = versions.manifest.applied.get(source, -1)
            if batch_id is None:
                batch_id = last + 1
            if batch_id > last:
                if self._replan is not None and versions.left_plan(self._replan):
                    self._repartition(None, None)
                advanced = None if advance is None else self._advanced(advance)
                self._apply(frame, reader, batch_id, source, advanced)
            versions.to_delta()
            schema = signed(versions.chain.plans[-1].arrow_schema)
            return changes_frame(self.session, versions.store, schema, versions.recorded(source, batch_id))

    def _apply(
        self, frame: DataFrame, reader: TagReader, batch_id: int, source: str, advanced: int | None
    ) -> None:
        reached("batch: before the job")
        started = time.perf_counter()
        versions, session = self._versions, frame.sparkSession
        was, name = versions.manifest, f"batch {batch_id} of {source}" if source else f"batch {batch_id}"
        with self._named(session, name), attempt(versions.store, session, was.version + 1) as token:
            clock = versions.clock(was, advanced)
            receipts = self._run(versions.chain, was.partitions, frame, reader, token, clock)
            reached("batch: job done")
            versions.followed(was, receipts, source, batch_id)
        self._committed(token, receipts, started)

    def _run(
        self,
        chain: StageChain,
        states: Mapping[str, PartitionState],
        frame: DataFrame,
        reader: TagReader,
        token: str,
        clock: BatchClock | None,
    ) -> list[Receipt]:
        """Run a batch through all stages; raises what its tasks complain of."""
        # Spark runs all tasks, also those that get nothing, so there are no more than its shuffles have.
        # The first version reaches all partitions, and each has much to read.
        most = chosen_partitions(frame.sparkSession, None) if states else chain.partitions
        index = StateIndex.written(self._versions.store, token, states, len(chain.stages), chain.partitions)
        worker = partial(StageWorker, chain, states=index, token=token, clock=clock)
        steps = partial(worker, engine_bytes=self._engine_bytes, policy=self._policy)
        receipts = run_stages(chain, frame, reader, steps, min(chain.partitions, most), clock)
        self._versions.tidy(index.delete)
        return receipts

    def _named(self, session: SparkSession, what: str) -> AbstractContextManager[None]:
        """Spark's jobs within a block are called so, behind the head's name."""
        return jobs_named(session, f"{self._text.result}: {what}")

    def _committed(self, token: str, receipts: Sequence[Receipt], started: float) -> None:
        """What follows a commit."""
        self.stats = BatchStats.of(receipts, time.perf_counter() - started, self._versions.fit())
        self._versions.end(token)


def _checked_keys(
    key: Mapping[str, Sequence[str]], relations: Mapping[str, DataFrame]
) -> dict[str, tuple[str, ...]]:
    """Raises UnknownRelationError, and SourceError for columns that are not there, or none."""
    for name, columns in key.items():
        if name not in relations:
            raise UnknownRelationError(f"key of {name!r}: relations are {', '.join(relations)}")
        wrong = [column for column in columns if column not in relations[name].columns]
        if wrong or not columns or isinstance(columns, str) or len(set(columns)) < len(columns):
            raise SourceError(
                f"key of {name!r} is {columns!r}; it is a list of different columns out of"
                f" {', '.join(relations[name].columns)}"
            )
    return {name: tuple(columns) for name, columns in key.items()}


def _span(recent: Recent) -> int:
    return recent.span


def _checked_batch(number: int) -> int:
    """A batch's number.  Raises ChangeError if it can't be one."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MOST_BATCHES:
        raise ChangeError(f"batch_id is {number!r}; batches are numbered from 0 to below 2**63")
    return number
