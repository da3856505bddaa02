"""`MaintainedJoin`: a rule over Spark DataFrames whose result follows batches of changes.

The state lives on the executors or in the driver (:mod:`spark_bridge.places.state_place`); here is what both
have in common: what is asked for, changes as they are given, and streams.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lftj.database.asking import in_sql
from lftj.errors import SourceError, StateError, UnsupportedSqlError
from lftj.sql.translation.translated import Translated
from lftj.values.shown_text import ShownText
from maintenance.event_time.stream_state import Late
from spark_bridge.cells.search_engine import Policy
from spark_bridge.front_ends.select_rules import each_translated, kept_rules, together, workspace_rules
from spark_bridge.places.choice import Placing, Where, check_where
from spark_bridge.places.executor_state import ExecutorOptions
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.places.state_place import OWN, StatePlace, checked_batch
from spark_bridge.placing.event_time import Spans, TimeSettings
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.placing import InputNulls, check_nulls
from spark_bridge.placing.read_columns import checked_keys, read_text
from spark_bridge.stages.batch_stats import BatchStats, DriverStats, state_metrics
from spark_bridge.stages.streaming import check_next, observed, stream_source, to_folder
from spark_bridge.state.delta_head import DeltaTarget

Sink = Callable[[DataFrame, int], object] | str


class MaintainedJoin:
    """A program over relations, its last head, or several, kept up to date under batches of changes.

    ``stats`` has what the last batch of this object took (:class:`BatchStats`), at first what the making of
    the state took.

    ``head``: the result, by default the last rule's; of several, which have one state, the first is what
    :meth:`apply` and the sink of :meth:`stream` give, and :meth:`table` and :meth:`changes` take a name.

    ``state``: a path that the driver and all workers reach: a folder, or a URI such as ``hdfs://``.  Where
    there is a state of the same program, it is gone on with, and ``relations`` only give the schemas.
    ``where``: on ``"executors"`` the state is cut into partitions, in files at ``state``, that tasks step;
    a head that depends on itself is kept there if a column of it stays the same in each rule.
    In the ``"driver"`` a workspace keeps it, in its memory and in a folder of its machine, and steps each
    batch without a task: for relations that fit there by far the quicker, and for all that a workspace keeps,
    recursion, windows and functions of one's own among it.  ``"auto"`` makes it in the driver where the
    relations seem to fit, or executors can't keep the program, opens it where it is, and moves it to the
    executors when a batch leaves more than ``driver_bytes`` in the workspace, by default 256 MiB by its own
    figures; :meth:`explain` says which and why.  ``partitions``, ``shares``, ``policy``, ``replan`` and
    ``engine_bytes`` are about executors.
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
    batch is a commit (:mod:`spark_bridge.state.delta_head`); of several heads by name the path of each that
    is to be one.  ``storage_options`` as deltalake takes them.  A
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
        head: str | Sequence[str] | None = None,
        where: Where = "executors",
        driver_bytes: int | None = None,
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
        delta: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        check_where(where)
        options = ExecutorOptions(partitions, shares, policy, replan, engine_bytes)
        check_nulls(nulls)
        keys = checked_keys(key or {}, relations)
        times = TimeSettings(time or {}, lateness, keep, ahead)
        if times != TimeSettings({}):
            times.refuse_others({name: frame.columns for name, frame in relations.items()}, keys)
        first, *others = (head,) if isinstance(head, str) or head is None else _checked_heads(head)
        text, relations, columns = read_text(
            rule, first, relations, nulls, by_row=True, keys=keys, times=times
        )
        text = replace(text, also=tuple(filter(None, others)))
        program = ReadProgram(text, columns, nulls, keys)
        contained = {name: checked_batch(number) for name, number in (applied or {}).items()}
        targets = _delta_targets(delta, text, storage_options)
        place = Placing(program, relations, state, options, contained, targets)
        self._at = place.chosen(where, driver_bytes)

    @classmethod
    def from_sql(
        cls,
        sql: str | Mapping[str, str],
        relations: Mapping[str, DataFrame],
        *,
        nulls: InputNulls = "keep",
        where: Where = "executors",
        **options: Any,
    ) -> MaintainedJoin:
        """The rows of a SELECT, kept up to date; or of several by name, which have one state.

        ``relations`` are without equal rows, as for a rule; columns have the names that SQL gives them as a
        rule can write them.  ``options``: the other arguments, ``state=`` among them.

        In the driver rows count as often as SQL has them, in :meth:`table` and, as weights, in changes.  On
        executors what shows the ``key`` of each of its relations has no equal rows.

        Raises SqlError, UnsupportedSqlError for what is not kept, on executors windows, LIMIT,
        recursions by rounds, aggregates without GROUP BY and rows that are equal, and what
        ``MaintainedJoin`` does.
        """
        check_where(where)
        keys = checked_keys(options.get("key") or {}, relations)
        found = _select_rules(sql, relations, keys, where)
        rules = [rule for of in found for rule in of.rules]
        read = {name: frame for name, frame in relations.items() if any(name in rule.reads for rule in rules)}
        whole = together(found)
        with in_sql(whole):
            heads = [of.head for of in found]
            return cls(whole.text, read, head=heads, nulls=nulls, where=where, **options)

    @property
    def _place(self) -> StatePlace:
        """Where the state is by now."""
        self._at = self._at.settled()
        return self._at

    def __repr__(self) -> str:
        return f"<MaintainedJoin: {self._place!r}>"

    @property
    def stats(self) -> BatchStats | DriverStats | None:
        """What the last batch of this object took, at first what the making of the state took."""
        return self._place.stats

    def openmetrics(self) -> str:
        """The state's version, the last batch of each source, and :attr:`stats`, as OpenMetrics text.

        Reads the newest manifest.
        """
        manifest = self._place.manifest
        return state_metrics(manifest.version, manifest.applied, self.stats)

    @property
    def version(self) -> int:
        """Number of the newest version: 1 is the first, and each batch makes the next."""
        return self._place.version

    # -- the result -----------------------------------------------------------------

    @property
    def heads(self) -> tuple[str, ...]:
        """The results by name, the one that :meth:`apply` gives first."""
        return self._place.heads

    def table(self, head: str | None = None) -> DataFrame:
        """The rows of a head as they are now, by default the first; lazy.

        Files of a version stay for ten more.  Raises UnknownRelationError.
        """
        place = self._place
        return place.table(place.chosen(head))

    def changes(
        self, head: str | None = None, batch_id: int | None = None, *, source: str = OWN
    ) -> DataFrame:
        """What a batch changed in a head, by default the first, with ``weight`` +1 or -1.

        ``batch_id``: by default the last one of the source; of one that is older than the last ten versions
        there are none.  Raises UnknownRelationError.
        """
        place = self._place
        return place.changes(place.chosen(head), batch_id, source)

    def applied(self, source: str = OWN) -> int | None:
        """The last batch that was applied of a source; None if none was."""
        return self._place.applied(source)

    @property
    def session(self) -> SparkSession:
        """The Spark session: that of the relations, in another process the active one."""
        return self._place.session

    def explain(self) -> str:
        """How the relations are cut and sent, as :func:`~spark_bridge.explanation.explain` shows it.

        Of a state in the driver how a workspace keeps the head; with ``where="auto"`` why it is where it is.
        """
        place = self._place
        return ShownText("\n".join(filter(None, (place.why, place.explain()))))

    # -- streams --------------------------------------------------------------------

    @property
    def now(self) -> Any:
        """The time that has come in all streams; None where there is none, or nothing came in one."""
        return self._place.now

    def late(self, stream: str) -> Late:
        """How many rows of a stream came too late so far, to be inserted and to be erased.

        Raises UnknownRelationError.
        """
        self._place.refuse_no_stream(stream)
        return self._place.late(stream)

    def late_rows(self, stream: str, batch_id: int | None = None, *, source: str = OWN) -> DataFrame:
        """The rows of a stream that came too late with a batch, with ``weight``.

        ``batch_id``: by default the last one of the source; of one that is older than the last ten versions
        there are none.  Raises UnknownRelationError.
        """
        self._place.refuse_no_stream(stream)
        return self._place.late_rows(stream, batch_id, source)

    # -- changes --------------------------------------------------------------------

    def apply(
        self,
        changes: Mapping[str, DataFrame],
        batch_id: int | None = None,
        *,
        source: str = OWN,
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
            checked_batch(batch_id)
        if not changes and advance is not None:
            return self._place.once(None, None, batch_id, source, advance)
        tagged = self._place.program.changes(changes)
        return self._place.once(tagged.frame, tagged.reader(), batch_id, source, advance)

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
        self._place.refuse_remote_stream()
        tagged = self._place.program.changes(changes)
        reader, source = tagged.reader(), stream_source(checkpoint)
        deliver = to_folder(sink) if isinstance(sink, str) else sink
        if not callable(deliver):
            raise StateError(f"sink is {sink!r}; it is a function of (changes, batch number), or a path")

        def each(batch: DataFrame, number: int) -> None:
            self._place.session = batch.sparkSession
            check_next(source, number, self.applied(source))
            deliver(self._place.once(batch, reader, number, source), number)

        writer = (
            observed(tagged, self._place.program.keys)
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
        self._place.repartition(partitions, shares)

    def check(self) -> None:
        """Compute the head anew from the relations that the state has, and compare it with the kept one.

        Cost: that of evaluating the program whole: in the driver by the workspace, else by a job that reads
        all files of relations and head.  No batch is applied meanwhile.

        Raises VerificationError, which names a row that is not to be there, or is missing; StateError for a
        file that is damaged or gone, and for rows of streams that have closed, on executors.
        """
        self._place.check()

    def compact(self) -> None:
        """Write the state anew, as small as it can be, and delete what only earlier versions need.

        On executors all partitions are built again (:meth:`repartition`) and files of earlier versions
        go: DataFrames of these can't be read any more; what the last ten batches changed can.  In the driver
        the workspace is compacted.  Cost: that of making the state.  Raises as :meth:`repartition` does.
        """
        self._place.compact()

    def close(self) -> None:
        """Give back what this process holds of the state, which others can go on with then.

        What is asked for afterwards opens it again.
        """
        self._place.close()


def _select_rules(
    sql: str | Mapping[str, str],
    relations: Mapping[str, DataFrame],
    keys: Mapping[str, Sequence[str]],
    where: Where,
) -> list[Translated]:
    """SELECTs as the place takes them: with "auto" as executors do, if they do all."""
    if where == "driver":
        return each_translated(sql, relations, workspace_rules)
    try:
        return each_translated(sql, relations, partial(kept_rules, keys=keys))
    except UnsupportedSqlError:
        if where == "executors":
            raise
        return each_translated(sql, relations, workspace_rules)


def _checked_heads(heads: Sequence[str]) -> list[str]:
    """Raises SourceError for none, and for one that is there twice."""
    if not heads or len(set(heads)) < len(heads):
        raise SourceError(f"head= is {heads!r}; it is a name, or a list of different ones")
    return list(heads)


def _delta_targets(
    delta: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None,
    text: ProgramText,
    storage_options: Mapping[str, str] | None,
) -> dict[str, DeltaTarget]:
    """By result where it is to be a table.  Raises SourceError for other heads, and a path given twice."""
    if delta is None:
        return {}
    if isinstance(delta, str | os.PathLike):
        if text.also:
            raise SourceError("delta= is one path, and there are several heads: give a path by head")
        return {text.targets[0]: DeltaTarget(delta, storage_options)}
    unknown = [name for name in delta if name not in text.targets]
    if unknown:
        raise SourceError(f"delta= names {unknown[0]!r}, and heads are {', '.join(text.targets)}")
    if len({os.fspath(path) for path in delta.values()}) < len(delta):
        raise SourceError(f"delta= gives two heads one path: {dict(delta)!r}")
    return {name: DeltaTarget(path, storage_options) for name, path in delta.items()}
