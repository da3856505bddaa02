"""`DriverState`: the state in a workspace of the driver, which steps each batch by itself.

    a batch  --  one job of Spark, Arrow  -->  a transaction  -->  the journal  -->  changes of the head

What a workspace keeps, the program may be: recursion, functions of one's own, windows, several aggregates,
SQL of every kind.  What the state is, the journal says (:mod:`spark_bridge.places.kept_workspace`).

Cost: of a batch a job that brings its rows, and what the workspace takes; no task but those that read the
rows.  The relations, the head, and what is kept to maintain it, are in the memory of the driver.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lftj.errors import StateError, StreamError
from lftj.language.parser import parse
from lftj.language.strata import atoms_of
from lftj.storage.relation import Relation
from lftj.values.shown_text import ShownText
from maintenance import Workspace
from maintenance.event_time.stream_state import Late
from maintenance.store.fault_points import reached
from maintenance.workspace.transaction import Transaction
from spark_bridge.cells.key_engine import stage_events
from spark_bridge.cells.signed_tables import events, signed
from spark_bridge.places.executor_state import ExecutorState
from spark_bridge.places.kept_workspace import (
    ACCOUNT,
    KeptWorkspace,
    close_at,
    kept_at,
    made_at,
)
from spark_bridge.places.moving import Moving, is_moved
from spark_bridge.places.read_program import ReadProgram
from spark_bridge.places.state_place import StatePlace
from spark_bridge.places.told_changes import ToldChanges
from spark_bridge.placing.char_columns import refuse_padded
from spark_bridge.placing.job_names import jobs_named
from spark_bridge.placing.placing import without_nulls
from spark_bridge.placing.schemas import declared_schema, spark_schema
from spark_bridge.placing.tagged_input import TagReader
from spark_bridge.stages.batch_stats import DriverStats
from spark_bridge.stages.checked_changes import ChangeChecks
from spark_bridge.stages.state_versions import identity_of, other_result
from spark_bridge.stages.turns import turn_on
from spark_bridge.state.delta_head import DeltaTarget
from spark_bridge.state.frames import sent_frame
from spark_bridge.state.manifest import StateManifest

_BATCH_ROWS = 1 << 16

_log = logging.getLogger(__name__)


def driver_program(program: ReadProgram) -> ReadProgram:
    """The program over the relations that its rules read.

    Raises RuleError and UnsupportedTypeError for what a workspace, or Spark, has no place for.
    """
    tree = parse(program.text.text)
    refuse_padded([(tree.text, rule) for rule in tree.rules], program.columns.char_lengths())
    for target in program.text.targets:
        spark_schema(declared_schema(program.text.target_schema(target).shown))
    return program.reading({atom.relation for rule in tree.rules for atom in atoms_of(rule.body)})


def local_path(state: str | os.PathLike[str]) -> Path:
    """The folder of a state of the driver.  Raises StateError for a URI."""
    text = os.fspath(state)
    if "://" in text:
        raise StateError(
            f"state path {text!r} is a URI, and a state in the driver is a folder that its machine has: give"
            " a local path, or where='executors'"
        )
    return Path(os.path.abspath(text))


@dataclass(frozen=True)
class DriverFiles:
    """Where the changes of a state of the driver are; it can be pickled."""

    path: str

    def read_table(self, name: str) -> pa.Table:
        return ToldChanges(Path(self.path) / "told").read_table(name)

    def newest(self) -> StateManifest | None:
        kept = kept_at(Path(self.path))
        return None if kept is None else kept.manifest()


class DriverState(StatePlace):
    """The state of a program in a folder of the driver; arguments as of ``ExecutorState``.

    ``program``: of :func:`driver_program`.  ``moving``: when it goes to the executors; None: never.
    """

    def __init__(
        self,
        program: ReadProgram,
        relations: Mapping[str, DataFrame],
        path: Path,
        applied: Mapping[str, int],
        deltas: Mapping[str, DeltaTarget],
        moving: Moving | None = None,
    ) -> None:
        super().__init__(program, next(iter(relations.values())).sparkSession)
        text = program.text
        self._path = path
        self._moving = moving
        self._moved: ExecutorState | None = None
        of = {head: text.target_schema(head) for head in text.targets}
        self._schemas = {head: declared_schema(schema.shown) for head, schema in of.items()}
        for head in (head for head in deltas if of[head].bag):
            raise StateError(
                f"{head!r} has equal rows, and commits to a Delta table find rows by what they hold:"
                " keep distinct rows, or how often each is there"
            )
        times = {name: stream.time for name, stream in text.streams}
        schemas = {
            name: events(schema) if name in program.keys else signed(schema)
            for name, schema in program.relations.items()
        }
        self._checks = ChangeChecks(schemas, program.keys, times, program.nulls)
        files = DriverFiles(str(path))
        self._deltas = {
            head: delta.table(signed(self._schemas[head]), files) for head, delta in deltas.items()
        }
        unread = program.columns.unread(program.relations)
        self._identity = {
            **identity_of(text, program.nulls, unread, program.keys),
            "where": "driver",
        }
        with turn_on(str(path)):
            kept = kept_at(path)
            if kept is None:
                kept = self._made(relations, applied)
            kept.manifest().refuse_other(self._identity)
            self._to_delta(kept)
            self._move_if_due(kept)

    def __repr__(self) -> str:
        return (
            f"<state of {', '.join(self.heads)} in the driver, version {self.version}, {str(self._path)!r}>"
        )

    def _kept(self) -> KeptWorkspace:
        """The state, opened if this process has not; the caller has its turn.  Raises StateError."""
        kept = kept_at(self._path)
        if kept is None:
            raise StateError(f"{str(self._path)!r}: the state is gone; make it anew at another path")
        return kept

    def settled(self) -> StatePlace:
        if self._moving is not None and self._moving.program is not None:
            with turn_on(str(self._path)):
                if self._moved is None and is_moved(self._path):  # another object has moved it
                    self._moved = self._moving.opened(self._path, self.session)
        return self if self._moved is None else self._moved

    def _move_if_due(self, kept: KeptWorkspace) -> None:
        """Go to the executors, if it is time; where that fails, with the next batch.

        Raises what is wrong with the state when it is there: with its Delta table, most likely.
        """
        if self._moving is None or not self._moving.is_due(kept.workspace):
            return
        said = self._moving.described(kept.workspace)
        try:
            self._moved = self._moving.moved(kept, self.session)
        except Exception as error:
            if is_moved(self._path):
                raise
            self.why = f"it could not move to the executors, and will with the next batch: {error}"
            _log.warning("%r: %s", self, self.why)
            return
        self._moved.stats = self.stats
        self._moved.why = f"{said}: it has, as version {self._moved.version}"
        _log.info("%r: %s", self._moved, self._moved.why)

    @property
    def manifest(self) -> StateManifest:
        with turn_on(str(self._path)):
            return self._kept().manifest()

    def _workspace(self) -> Workspace:
        with turn_on(str(self._path)):
            return self._kept().workspace

    # -- the result -----------------------------------------------------------------

    def table(self, head: str) -> DataFrame:
        return self._frame(self._workspace()[head].table, self._schemas[head])

    def changes(self, head: str, batch_id: int | None, source: str) -> DataFrame:
        with turn_on(str(self._path)):
            kept = self._kept()
            manifest = kept.manifest()
            number = manifest.applied.get(source, -1) if batch_id is None else batch_id
            return self._told(kept, manifest, head, number, source)

    def _told(
        self, kept: KeptWorkspace, manifest: StateManifest, head: str, batch_id: int, source: str
    ) -> DataFrame:
        """What a batch changed in a result; the caller has the state's turn."""
        its = [one for one in manifest.batches if (one.source, one.batch_id) == (source, batch_id)]
        other = other_result(self.program.text, head)
        names = [name for one in its for name in one.changes_of(other)]
        return self._tables(kept, names, signed(self._schemas[head]))

    def explain(self) -> str:
        workspace = self._workspace()
        lines = [
            f"{', '.join(self.heads)}: kept in the driver, by a workspace in {str(workspace.folder)!r}; the"
            " rows of a batch come by one job",
            *([] if self._moving is None else [self._moving.described(workspace)]),
            *(str(workspace.explain_maintenance(head)) for head in self.heads),
        ]
        return ShownText("\n".join(lines))

    @property
    def now(self) -> Any:
        return self._workspace().now

    def late(self, stream: str) -> Late:
        return self._workspace().late(stream)

    def late_rows(self, stream: str, batch_id: int | None, source: str) -> DataFrame:
        with turn_on(str(self._path)):
            kept = self._kept()
            manifest, schema = kept.manifest(), signed(self.program.relations[stream])
            number = manifest.applied.get(source, -1) if batch_id is None else batch_id
            batches = [one for one in manifest.batches if (one.source, one.batch_id) == (source, number)]
            names = [name for one in batches for name in one.late.get(stream, ())]
            return self._tables(kept, names, schema)

    # -- batches --------------------------------------------------------------------

    def once(
        self,
        frame: DataFrame | None,
        reader: TagReader | None,
        batch_id: int | None,
        source: str,
        advance: Any = None,
    ) -> DataFrame:
        with turn_on(str(self._path)):
            kept = self._kept()
            manifest = kept.manifest()
            last = manifest.applied.get(source, -1)
            if batch_id is None:
                batch_id = last + 1
            if batch_id > last:
                following = manifest.version + 1
                changes = self._apply(kept, frame, reader, following, source, batch_id, advance)
                self._to_delta(kept)
                found = self._frame(changes, signed(self._schemas[self.heads[0]]))
                self._move_if_due(kept)
                return found
            self._to_delta(kept)
            return self._told(kept, manifest, self.heads[0], batch_id, source)

    def repartition(self, partitions: int | None, shares: Any) -> None:
        raise StateError(
            "repartition: a state in the driver has no partitions; make one with where='executors' for that"
        )

    def check(self) -> None:
        with turn_on(str(self._path)):
            self._kept().workspace.verify()

    def compact(self) -> None:
        with turn_on(str(self._path)):
            self._kept().workspace.compact()

    def refuse_remote_stream(self) -> None:
        if not isinstance(self.session, SparkSession):  # that of Connect is no subclass
            raise StateError(
                "stream: over Spark Connect its batches run in a process of the server, and the state is in"
                " this one: apply() the batches, or make the state with where='executors'"
            )

    def close(self) -> None:
        with turn_on(str(self._path)):
            close_at(self._path)

    def _apply(
        self,
        kept: KeptWorkspace,
        frame: DataFrame | None,
        reader: TagReader | None,
        version: int,
        source: str,
        batch_id: int,
        advance: Any,
    ) -> pa.Table:
        """Commit a batch; returns the changes of the first result."""
        reached("batch: before the job")
        started = time.perf_counter()
        with self._named(self.session, f"batch {batch_id} of {source}" if source else f"batch {batch_id}"):
            given = {} if frame is None or reader is None else self._arrived(frame, reader)
            arrival = time.perf_counter() - started
            reached("batch: job done")
            told: list[pa.Table] = []

            def tell(changes: Mapping[str, pa.Table], late: Mapping[str, pa.Table]) -> None:
                told[:] = [changes[head] for head in self.heads]
                others = dict(zip(self.heads[1:], told[1:], strict=True))
                kept.told.write(version, source, batch_id, told[0], late, others)
                reached("driver: changes told, not committed")

            with kept.workspace.transaction(prepare=tell) as transaction:
                for name, table in given.items():
                    self._stage(kept.workspace, transaction, name, table)
                if advance is not None:
                    self._refuse_no_clock()
                    transaction.advance(advance)
                transaction.upsert(ACCOUNT, [(source, batch_id, version)])
        reached("batch: committed, not cleaned")
        kept.told.clean(version)
        changed, stats = sum(table.num_rows for table in given.values()), transaction.stats
        seconds, n_changes = time.perf_counter() - started, sum(table.num_rows for table in told)
        self.stats = DriverStats(seconds, arrival, n_changes, changed, stats.late, stats.expired, stats)
        return told[0]

    def _arrived(self, frame: DataFrame, reader: TagReader) -> dict[str, pa.Table]:
        """The rows of a batch by relation, checked, in the relations' types."""
        batches = frame.toArrow().to_batches(max_chunksize=_BATCH_ROWS)
        parts: dict[str, list[pa.Table]] = {}
        for name, rows in self._checks.checked(batches, reader):
            parts.setdefault(name, []).append(rows)
        return {name: pa.concat_tables(tables) for name, tables in parts.items()}

    def _stage(self, workspace: Workspace, transaction: Transaction, name: str, table: pa.Table) -> None:
        key = self.program.keys.get(name)
        if key is None:
            transaction.apply(name, table)
        else:
            stage_events(workspace, transaction, name, table, key)

    def _refuse_no_clock(self) -> None:
        if not self.program.text.streams:
            raise StreamError("advance= moves the clock of streams, and there is none: name one by time=")

    # -- how it is made, and read -----------------------------------------------------

    def _made(self, relations: Mapping[str, DataFrame], applied: Mapping[str, int]) -> KeptWorkspace:
        started = time.perf_counter()
        with self._named(self.session, "first version"):
            tables = {
                name: self._first(name, relations[name], schema)
                for name, schema in self.program.relations.items()
            }
        arrival = time.perf_counter() - started
        kept = made_at(self._path, self._identity, applied, partial(self._fill, tables=tables))
        rows = sum(table.num_rows for table in tables.values())
        count = sum(kept.workspace[head].count for head in self.heads)
        self.stats = DriverStats(time.perf_counter() - started, arrival, count, rows, {}, {}, None)
        return kept

    def _first(self, name: str, frame: DataFrame, schema: pa.Schema) -> pa.Table:
        """A relation as it is given, in its types."""
        required = {*self.program.keys.get(name, ()), self._checks.times.get(name)}
        kept = pa.schema(
            [field.with_nullable(field.nullable and field.name not in required) for field in schema]
        )
        table = frame.toArrow().rename_columns(schema.names)
        return without_nulls(name, table, kept, self.program.nulls).cast(kept)

    def _fill(self, workspace: Workspace, tables: Mapping[str, pa.Table]) -> None:
        """Load relations and install the rules; rows of streams are the first transaction."""
        text, streams = self.program.text, dict(self.program.text.streams)
        for name, table in tables.items():
            rows = table.slice(0, 0) if name in streams else table
            key = self.program.keys.get(name, ())
            relation = Relation.from_table(name, rows, workspace.domains, "keep", key=key)
            workspace.add(relation.with_stream(streams.get(name)))
        workspace.install(text.text, results=None if text.finals else self.heads)
        if streams:
            with workspace.transaction() as transaction:
                for name in streams:
                    transaction.insert(name, tables[name])

    def _named(self, session: SparkSession, what: str) -> AbstractContextManager[None]:
        return jobs_named(session, f"{self.heads[0]}: {what}")

    def _to_delta(self, kept: KeptWorkspace) -> None:
        """Bring Delta tables, if there are to be some, to where the state is.  Raises StateError."""

        def rows(head: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
            table = kept.workspace[head].table.rename_columns(schema.names)
            yield from table.cast(schema).to_batches(max_chunksize=_BATCH_ROWS)

        for head, delta in self._deltas.items():
            manifest = kept.manifest().seen_by(other_result(self.program.text, head))
            delta.follow(manifest, partial(rows, head))

    def _tables(self, kept: KeptWorkspace, names: list[str], schema: pa.Schema) -> DataFrame:
        """The rows of all tables that batches name."""
        parts = [kept.told.read_table(name).rename_columns(schema.names).cast(schema) for name in names]
        return self._frame(pa.concat_tables([schema.empty_table(), *parts]), schema)

    def _frame(self, table: pa.Table, schema: pa.Schema) -> DataFrame:
        return sent_frame(self.session, table, schema)
