"""`ExecutorState`: the state in files of many partitions, which tasks of one query step.

Every partition's relations and results are files below a state path, of which a manifest
names those that count (:mod:`spark_bridge.state.store`).  A batch is one query: changes
are placed like the relations were, each stage steps the partitions that got some
(:mod:`spark_bridge.stages.worker`), and the driver, when it has all receipts, commits by
the next manifest (:mod:`spark_bridge.stages.state_versions`).

Invariants

1. What the state is, the newest manifest says, and nothing else: a batch that fails or
   dies at any moment before its manifest is in place changed nothing, and what it wrote
   goes (:mod:`spark_bridge.state.attempt`).
2. Grids are those of the version: :meth:`ExecutorState.repartition` makes a version with other ones, and all
   its partitions anew.
3. A version follows the one that its batch began from, whatever is read meanwhile.

Cost: a batch reads and writes by its changes and what they change in the partitions that
they reach; the manifest, which names all partitions, is written anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lftj.errors import RecursionNotSupportedError, RuleError, StateError, StreamError
from lftj.language.diagnostics import error_at
from lftj.language.recent import Recent
from maintenance.event_time.moments import code_of, moment_of
from maintenance.event_time.stream_state import Late
from maintenance.store.fault_points import reached
from spark_bridge.cells.search_engine import STRATEGIES, Policy
from spark_bridge.cells.signed_tables import events, signed
from spark_bridge.cells.stream_engine import held
from spark_bridge.explanation import explained
from spark_bridge.join import checked_grids, chosen_partitions, head_frames
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.places.state_place import StatePlace
from spark_bridge.placing.char_columns import refuse_padded
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import search_leaders
from spark_bridge.placing.job_names import jobs_named
from spark_bridge.placing.key_sample import sampled_grids
from spark_bridge.placing.schemas import declared_schema, spark_schema
from spark_bridge.placing.tagged_input import TaggedInput, TagReader
from spark_bridge.stages.batch_stats import BatchStats
from spark_bridge.stages.checked_head import refuse_difference
from spark_bridge.stages.clock_stage import BatchClock, clock_type
from spark_bridge.stages.running import run_stages
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.state_versions import StateVersions
from spark_bridge.stages.stored_relations import relation_frame
from spark_bridge.stages.turns import turn_on
from spark_bridge.stages.worker import Receipt, StageWorker
from spark_bridge.state.attempt import attempt
from spark_bridge.state.delta_head import DeltaTarget
from spark_bridge.state.engine_cache import check_engine_bytes
from spark_bridge.state.frames import changes_frame, table_frame
from spark_bridge.state.manifest import Batch, PartitionState, StateManifest
from spark_bridge.state.state_index import StateIndex
from spark_bridge.state.store import StateStore


@dataclass(frozen=True)
class ExecutorOptions:
    """What is said of partitions and of how tasks step them; as :class:`MaintainedJoin` takes it.

    Raises ValueError and LimitError for what can't be.
    """

    partitions: int | None = None
    shares: Mapping[str, int] | None = None
    policy: Policy = "auto"
    replan: float | None = None
    engine_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.policy not in STRATEGIES:
            raise ValueError(f"policy is {self.policy!r}; it can be {', '.join(map(repr, STRATEGIES))}")
        check_engine_bytes(self.engine_bytes)
        if self.replan is not None and not self.replan > 1:
            raise ValueError(f"replan is {self.replan!r}; it is a factor above 1, or None")

    @property
    def given(self) -> list[str]:
        """The names of those that are not as they are by default."""
        return [name for name, value in vars(self).items() if value != getattr(ExecutorOptions, name)]


def executor_program(program: ReadProgram) -> ReadProgram:
    """The program over what its heads read, as cells can evaluate it.

    Raises RuleError for what they can't, RecursionNotSupportedError for what only rounds find, and
    UnsupportedTypeError.
    """
    plans, finals = program.text.plans(), [final.name for final in program.text.finals]
    if program.text.also and not set(finals).isdisjoint(program.text.targets):
        raise RuleError(
            f"'{finals[-1]}' has rows that close, and on executors it is kept alone: keep the others apart"
            " from it, or all with where='driver'"
        )
    for rule in (rule for plan in plans if (rule := plan.by_rounds) is not None):
        (head,) = rule.syntax.heads
        raise error_at(RecursionNotSupportedError, rule.text, head.name_span, _by_rounds(head.relation))
    refuse_padded(program.text.rules, program.columns.char_lengths())
    for plan in plans:
        spark_schema(plan.arrow_schema)
    return program.reading({name for plan in plans for name in plan.reads})


def _by_rounds(head: str) -> str:
    return (
        f"'{head}' depends on itself, and no column of it stays the same in each rule: partitions can't keep"
        " it apart from each other. Keep it with where='driver', or compute it anew by join"
    )


@dataclass(frozen=True)
class Beginning:
    """What the first version here is made of.

    ``relations``: as they are after ``was``, a version of another place, or of none with the number 0.
    ``read_table``: gives what the batches of that version name.
    """

    relations: Mapping[str, DataFrame]
    was: StateManifest
    read_table: Callable[[str], pa.Table] | None = None

    @classmethod
    def new(cls, relations: Mapping[str, DataFrame], applied: Mapping[str, int]) -> Beginning:
        """Of a state that is new; ``applied``: by source, the last batch that the relations have in them."""
        return cls(relations, StateManifest(0, {}, {}, dict(applied), {}, (), state_id=uuid4().hex))

    def batches(self, store: StateStore, token: str) -> tuple[Batch, ...]:
        """The batches of that version, their tables in files of a try."""

        def written(names: Sequence[str]) -> tuple[str, ...]:
            assert self.read_table is not None
            files = []
            for name in names:
                files.append(store.new_name(token, "changes", "0"))
                store.write_table(files[-1], self.read_table(name))
            return tuple(files)

        return tuple(
            replace(
                batch,
                changes=written(batch.changes),
                late={stream: written(names) for stream, names in batch.late.items()},
                others={head: written(names) for head, names in batch.others.items()},
            )
            for batch in self.was.batches
        )


class ExecutorState(StatePlace):
    """The state of a program at a path that the driver and all workers reach.

    ``program``: of :func:`executor_program`.  ``beginning``: of the first version, where there may be none.
    """

    def __init__(
        self,
        program: ReadProgram,
        session: SparkSession,
        store: StateStore,
        options: ExecutorOptions,
        deltas: Mapping[str, DeltaTarget],
        beginning: Beginning | None,
    ) -> None:
        super().__init__(program, session)
        self._options = options
        self._text, self._relations, self._keys = program.text, program.relations, program.keys
        self._nulls = program.nulls
        tables = {head: delta.table(signed(self._schema(head)), store) for head, delta in deltas.items()}
        unread = program.columns.unread(self._relations)
        self.versions = StateVersions(self._text, self._nulls, store, tables, unread, self._keys)
        if not self.versions.opened(options.partitions):
            if beginning is None:
                raise StateError(f"{store!r}: the state is gone; make it anew at another path")
            self._make(beginning)
        self.versions.to_delta()

    def __repr__(self) -> str:
        versions = self.versions
        return f"<state of {self._text.result}, version {versions.manifest.version}, {versions.store!r}>"

    @property
    def manifest(self) -> StateManifest:
        self.versions.read_again()
        return self.versions.manifest

    # -- the result -----------------------------------------------------------------

    def table(self, head: str) -> DataFrame:
        versions = self.versions
        versions.read_again()
        return table_frame(self.session, versions.store, self._schema(head), versions.head_states(head))

    def changes(self, head: str, batch_id: int | None, source: str) -> DataFrame:
        self.versions.read_again()
        number = self.versions.manifest.applied.get(source, -1) if batch_id is None else batch_id
        return self._recorded(head, number, source)

    def _recorded(self, head: str, batch_id: int, source: str) -> DataFrame:
        """What a batch changed in a result, by the version that was read last."""
        files = self.versions.recorded(source, batch_id, head)
        return changes_frame(self.session, self.versions.store, signed(self._schema(head)), files)

    def _schema(self, head: str) -> pa.Schema:
        return declared_schema(self._text.target_schema(head))

    def explain(self) -> str:
        chain = self.versions.chain
        leaders = [chain.plans[leader].name for leader in search_leaders(chain.plans)]
        shared = {
            plan.name: f"found by the cells of {leader}"
            for plan, leader, grids in zip(chain.plans, leaders, chain.grids, strict=True)
            if grids is None
        }
        return explained(chain.plans, chain.grids, keys=self._keys, timed=chain.text, choices=shared)

    # -- streams --------------------------------------------------------------------

    @property
    def now(self) -> Any:
        clock = self._clock()
        return None if clock is None else moment_of(clock_type(self._text), clock.now)

    def late(self, stream: str) -> Late:
        self.refuse_no_stream(stream)
        clock = self._clock()
        assert clock is not None
        return clock.before[stream].late

    def late_rows(self, stream: str, batch_id: int | None, source: str) -> DataFrame:
        self.refuse_no_stream(stream)
        versions, schema = self.versions, signed(self._relations[stream])
        versions.read_again()
        number = versions.manifest.applied.get(source, -1) if batch_id is None else batch_id
        return changes_frame(self.session, versions.store, schema, versions.late(source, number, stream))

    def _clock(self) -> BatchClock | None:
        self.versions.read_again()
        return self.versions.clock(self.versions.manifest)

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

    def once(
        self,
        frame: DataFrame | None,
        reader: TagReader | None,
        batch_id: int | None,
        source: str,
        advance: Any = None,
    ) -> DataFrame:
        if frame is None or reader is None:
            nothing = self._nothing()
            frame, reader = nothing.frame, nothing.reader()
        versions = self.versions
        with turn_on(versions.store.path):
            versions.read_again()
            last = versions.manifest.applied.get(source, -1)
            if batch_id is None:
                batch_id = last + 1
            if batch_id > last:
                if self._options.replan is not None and versions.left_plan(self._options.replan):
                    self._repartition(None, None)
                advanced = None if advance is None else self._advanced(advance)
                self._apply(frame, reader, batch_id, source, advanced)
            versions.to_delta()
            return self._recorded(self.heads[0], batch_id, source)

    def repartition(self, partitions: int | None, shares: Mapping[str, int] | None) -> None:
        with turn_on(self.versions.store.path):
            self.versions.read_again()
            self._repartition(partitions, shares)

    def check(self) -> None:
        """Under grids of its own; of what partitions keep it takes the rows alone."""
        versions, name = self.versions, self.heads[0]
        if self._text.final is not None:
            raise StateError(
                f"check: {name!r} has rows that have closed, and what they were made of has left the streams:"
                " a state with where='driver' can be checked"
            )
        with turn_on(versions.store.path), self._named(self.session, "check"):
            versions.read_again()
            relations = {relation: self._stored(relation) for relation in self._relations}
            recent = {one.name for one in self._text.recents}
            read = {one for plan in versions.chain.plans for one in plan.reads}
            relations |= {one: self._held(one) for one in sorted(recent & read)}
            partitions = chosen_partitions(self.session, None)
            anew = head_frames(self._text, relations, partitions, None, self._nulls)
            for head in self.heads:
                refuse_difference(head, self.table(head), anew[head])

    def compact(self) -> None:
        versions = self.versions
        with turn_on(versions.store.path):
            versions.read_again()
            self._repartition(versions.chain.partitions, None)
            versions.keep_newest()

    def refuse_remote_stream(self) -> None:
        """Tasks find the state wherever they are asked for."""

    def close(self) -> None:
        """Files are open while they are read or written, and no longer."""

    # -- how it is done -------------------------------------------------------------

    def _make(self, beginning: Beginning) -> None:
        """The first version here."""
        started, relations, options = time.perf_counter(), beginning.relations, self._options
        partitions = chosen_partitions(self.session, options.partitions)
        self.versions.begin(partitions, beginning.was)
        was = self.versions.manifest
        with self._named(self.session, "first version" if was.version == 0 else "moved to the executors"):
            try:
                grids = self._grids(relations, partitions, options.shares)
            except PythonException:
                # Wrong data, most likely: under any grids the stages say so by an error of ours.
                any_grids = self._grids(relations, partitions, {})
                with attempt(self.versions.store, self.session, was.version + 1) as token:
                    self._run_whole(relations, self.versions.chain_of(any_grids), token, was)
                    raise
            self._make_version(was, relations, grids, started, beginning.batches)

    def _grids(
        self, relations: Mapping[str, DataFrame], partitions: int, shares: Mapping[str, int] | None
    ) -> list[HeadGrids | None]:
        """Grids for all heads that have some of their own: by the caller's shares, else by a sample."""
        plans = self._text.plans()
        leaders = search_leaders(plans)
        relations = {**relations, **{each.name: relations[each.stream] for each in self._text.recents}}
        if shares is not None:
            return [
                checked_grids(plans, plan, shares, partitions) if n == leader else None
                for n, (plan, leader) in enumerate(zip(plans, leaders, strict=True))
            ]
        frames = head_frames(self._text, relations, partitions, None, self._nulls)
        return [
            sampled_grids(frames, self._text, n, partitions) if n == leader else None
            for n, leader in enumerate(leaders)
        ]

    def _make_version(
        self,
        was: StateManifest,
        relations: Mapping[str, DataFrame],
        grids: Sequence[HeadGrids | None],
        started: float,
        carried: Callable[[StateStore, str], tuple[Batch, ...]] | None = None,
    ) -> None:
        """The version after one: the relations under these grids, nothing of what was before.

        ``carried``: gives the batches of before, where these files are not in the store.
        """
        versions, chain = self.versions, self.versions.chain_of(grids)
        with attempt(versions.store, self.session, was.version + 1) as token:
            receipts = self._run_whole(relations, chain, token, was)
            if carried is not None:
                was = replace(was, batches=carried(versions.store, token))
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
        clock = self.versions.clock(was, is_told=was.version > 0)
        return self._run(chain, {}, tagged.frame, tagged.reader(), token, clock)

    def _repartition(self, partitions: int | None, shares: Mapping[str, int] | None) -> None:
        started = time.perf_counter()
        was, chain = self.versions.manifest, self.versions.chain
        wanted = chain.partitions if partitions is None else chosen_partitions(self.session, partitions)
        relations = {name: self._stored(name) for name in self._relations}
        if self._text.final is not None:
            relations[held(chain.plans[-1].name)] = self.table(self.heads[0])
        with self._named(self.session, "grids planned again"):
            self._make_version(was, relations, self._grids(relations, wanted, shares), started)
        self.versions.to_delta()

    def _stored(self, name: str) -> DataFrame:
        """A relation as the state has it; of a stream all of its rows that a rule reads."""
        versions = self.versions
        its = [recent.name for recent in sorted(self._text.recents, key=_span) if recent.stream == name]
        read = {one for plan in versions.chain.plans for one in plan.reads}
        held_as = next((one for one in (name, *reversed(its)) if one in read), None)
        if held_as is None:
            return self.session.createDataFrame([], spark_schema(self._relations[name]))
        return self._held(held_as)

    def _held(self, name: str) -> DataFrame:
        """A relation that a rule reads, recent rows of a stream among them, as the state has it."""
        versions = self.versions
        return relation_frame(self.session, versions.store, versions.chain, versions.manifest, name)

    def _nothing(self) -> TaggedInput:
        """No changes."""
        name = next((name for name, _ in self._text.streams), next(iter(self._relations)))
        schema = signed(self._relations[name])
        frame = self.session.createDataFrame([], spark_schema(schema))
        return TaggedInput.of({name: frame}, [(name, schema)])

    def _apply(
        self, frame: DataFrame, reader: TagReader, batch_id: int, source: str, advanced: int | None
    ) -> None:
        reached("batch: before the job")
        started = time.perf_counter()
        versions, session = self.versions, frame.sparkSession
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
        index = StateIndex.written(self.versions.store, token, states, len(chain.stages), chain.partitions)
        worker = partial(StageWorker, chain, states=index, token=token, clock=clock)
        steps = partial(worker, engine_bytes=self._options.engine_bytes, policy=self._options.policy)
        receipts = run_stages(chain, frame, reader, steps, min(chain.partitions, most), clock)
        self.versions.tidy(index.delete)
        return receipts

    def _named(self, session: SparkSession, what: str) -> AbstractContextManager[None]:
        """Spark's jobs within a block are called so, behind the head's name."""
        return jobs_named(session, f"{self._text.result}: {what}")

    def _committed(self, token: str, receipts: Sequence[Receipt], started: float) -> None:
        """What follows a commit."""
        self.stats = BatchStats.of(receipts, time.perf_counter() - started, self.versions.fit())
        self.versions.end(token)


def _span(recent: Recent) -> int:
    return recent.span
