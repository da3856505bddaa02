"""The head of a maintained join as a Delta table, which Spark, DuckDB, polars and others read.

The state is what holds (:mod:`spark_bridge.state.store`); the table follows it, a commit for each version:

    state:  1 ---- 2 ---- 3 ---- 4          version 1: all rows; later ones: what the batch changed, or
                                            nothing: the state was partitioned anew
    table:  1 ---- 2 ---- 3                 behind, when a driver died here; the next one goes on from there

Invariants

1. A commit of the table has the transaction identifier ``lftj <state id>``, whose number is the version of
   the state that the table then is.  Of two drivers that make the same commit one fails, by the rules of
   Delta's log, and sees that it is made: so each version is in the table exactly once.
2. Beside it stands ``lftj <state id> <source>`` with the number of the source's batch.
3. A table that follows no state, and has rows, is not written to; nor one that is ahead of its state.

Cost: a batch that erases nothing is an append of its rows; else deltalake writes the files that have erased
rows anew.  The driver holds a batch's changes; of the whole head, which is written at first, and when more
batches are missing than the state remembers, a partition at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import SourceError, StateError
from lftj.files.delta_tables import FEED, arrow_schema, deltalake_package, opened, replace_rows
from lftj.files.whole_files import reason
from spark_bridge.state.manifest import StateManifest

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

Rows = Callable[[pa.Schema], Iterable[pa.RecordBatch]]
"""The rows of a head, as a schema has them."""

MOST_TRIES = 10
"""Of one commit, while others commit to the table at the same time."""


class HeadFiles(Protocol):
    """Where the changes of batches are kept, by the names that a version has for them."""

    @property
    def path(self) -> str: ...

    def read_table(self, name: str) -> pa.Table: ...

    def newest(self) -> StateManifest | None: ...


@dataclass(frozen=True)
class DeltaTarget:
    """Where a head is to be a table, as a caller says it."""

    path: str | os.PathLike[str]
    storage_options: Mapping[str, str] | None = None

    def table(self, changes: pa.Schema, files: HeadFiles) -> DeltaHead:
        """The head there; arguments and errors as of :class:`DeltaHead`."""
        return DeltaHead(self.path, changes, files, self.storage_options)


class DeltaHead:
    """The table at a path or URI; it can be pickled.

    ``changes``: the schema of the head's changes: its columns, and the weight behind.  ``storage_options``:
    as deltalake takes them.  Raises ImportError without deltalake, StateError for a column that Delta has no
    type for.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        changes: pa.Schema,
        files: HeadFiles,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        text = os.fspath(path)
        self.uri = text if "://" in text else os.path.abspath(text)
        self.changes = pa.schema([field.with_nullable(True) for field in changes])
        self.schema = self.changes.remove(len(changes) - 1)
        self.files = files
        self.storage_options = None if storage_options is None else dict(storage_options)
        schema_of = deltalake_package().Schema.from_arrow
        for field in self.schema:
            try:
                schema_of(pa.schema([field]))
            except Exception as error:  # deltalake raises plain exceptions here
                raise StateError(
                    f"Delta table {self.uri!r}: column {field.name!r} is of type {field.type}, which Delta"
                    f" does not have: {reason(error)}"
                ) from None

    def follow(self, manifest: StateManifest, rows: Rows) -> None:
        """Bring the table to a version of the state, with a commit for each batch that it lacks.

        ``rows``: of that version.
        Raises StateError if that can't be done: the state stays as it is, and the next call goes on.
        """
        refused = deltalake_package().exceptions.CommitFailedError
        tries = 0
        while True:
            try:
                table = self._opened()
                has = self._version_in(table, manifest)
                if has is not None and has >= manifest.version:
                    return self._refuse_ahead(has, manifest)
                self._commit(table, has, manifest, rows)
                tries = 0
            except refused as error:
                tries += 1
                if tries == MOST_TRIES:
                    raise self._failed(error, manifest) from None
            except (StateError, SourceError) as error:
                raise StateError(str(error)) from None
            except Exception as error:  # deltalake raises whatever the store below raises
                raise self._failed(error, manifest) from None

    # -- what is there --------------------------------------------------------------

    def _opened(self) -> DeltaTable:
        """The table, made if there is none; raises StateError for one of other columns."""
        deltalake = deltalake_package()
        options = self.storage_options
        if not deltalake.DeltaTable.is_deltatable(self.uri, options):
            deltalake.DeltaTable.create(
                self.uri, self.schema, mode="ignore", configuration={FEED: "true"}, storage_options=options
            )
        table = opened(self.uri, storage_options=self.storage_options)
        found = arrow_schema(table)
        wanted = pa.schema(deltalake.Schema.from_arrow(self.schema))
        if [(field.name, field.type) for field in found] != [(field.name, field.type) for field in wanted]:
            raise StateError(
                f"Delta table {self.uri!r} has the columns {_listed(found)}, and the head has"
                f" {_listed(wanted)}: was the table altered? give another path, or delete the table, and it"
                " is written anew"
            )
        return table

    def _version_in(self, table: DeltaTable, manifest: StateManifest) -> int | None:
        """The version of the state that the table is; None for an empty one that follows no state."""
        has = table.transaction_version(_app_id(manifest))
        if has is None and table.file_uris():
            raise StateError(
                f"Delta table {self.uri!r} has rows, and they are not of the state at {self.files.path!r}:"
                " give the path of a new table, or of an empty one"
            )
        return has

    def _refuse_ahead(self, has: int, manifest: StateManifest) -> None:
        """Raise StateError if the table has more than the state; others may have made versions meanwhile."""
        if has > manifest.version:
            newest = self.files.newest()
            if newest is None or newest.version < has:
                raise StateError(
                    f"Delta table {self.uri!r} has version {has} of the state at {self.files.path!r}, which"
                    f" is at version {manifest.version}: it was put back from a copy; delete the table, and"
                    " it is written anew"
                )

    # -- commits --------------------------------------------------------------------

    def _commit(self, table: DeltaTable, has: int | None, manifest: StateManifest, rows: Rows) -> None:
        """One commit more: the next version, or the whole head where its batch may be forgotten."""
        if has is None or any(it.version > has + 1 for it in manifest.batches[:1]):
            self._write_whole(table, manifest, rows)
            return
        version = has + 1
        batch = next((it for it in manifest.batches if it.version == version), None)
        applied = {} if batch is None else {batch.source: batch.batch_id}
        properties = self._properties(manifest, version, applied)
        empty = self.changes.empty_table()
        parts = (self.files.read_table(file) for file in (() if batch is None else batch.changes))
        changes = pa.concat_tables(
            [empty, *(part.rename_columns(empty.column_names).cast(empty.schema) for part in parts)]
        )
        if _erases(changes):
            self._merge(table, changes, version, properties)
        else:
            _write(table, _of_sign(changes, 1), "append", properties)

    def _merge(
        self, table: DeltaTable, changes: pa.Table, version: int, properties: CommitProperties
    ) -> None:
        gone, come = (_of_sign(changes, sign) for sign in (-1, 1))
        done = replace_rows(table, gone, come, self.schema.names, properties)
        inserted = come.num_rows
        if done != (inserted, gone.num_rows):
            raise StateError(
                f"Delta table {self.uri!r} was not as the state had it: of {inserted} rows to insert and"
                f" {gone.num_rows} to erase {done[0]} and {done[1]} were (version"
                f" {version}): did something else write to it? delete the table, and it is written anew"
            )

    def _write_whole(self, table: DeltaTable, manifest: StateManifest, rows: Rows) -> None:
        whole = pa.RecordBatchReader.from_batches(self.schema, rows(self.schema))
        properties = self._properties(manifest, manifest.version, manifest.applied)
        _write(table, whole, "overwrite" if table.file_uris() else "append", properties)

    def _properties(
        self, manifest: StateManifest, version: int, batches: Mapping[str, int]
    ) -> CommitProperties:
        """Invariants 1 and 2."""
        deltalake = deltalake_package()
        numbers = {_app_id(manifest): version}
        numbers |= {f"{_app_id(manifest)} {source}": number for source, number in batches.items()}
        return deltalake.CommitProperties(
            app_transactions=[deltalake.Transaction(name, number) for name, number in numbers.items()],
            custom_metadata={"lftj.version": str(version)},
        )

    def _failed(self, error: Exception, manifest: StateManifest) -> StateError:
        return StateError(
            f"Delta table {self.uri!r}: can't be written: {reason(error)}: the state is at version"
            f" {manifest.version}, and the table follows it when this is tried again"
        )


def _app_id(manifest: StateManifest) -> str:
    return f"lftj {manifest.state_id}"


def _erases(changes: pa.Table) -> bool:
    return changes.num_rows > 0 and pc.min(changes.column(changes.num_columns - 1)).as_py() < 0


def _of_sign(changes: pa.Table, sign: int) -> pa.Table:
    """The rows whose weight is of a sign, without it."""
    weights = changes.column(changes.num_columns - 1)
    chosen = pc.greater(pc.multiply(weights, sign), 0)
    return changes.filter(chosen).drop_columns([changes.column_names[-1]])


def _write(table: DeltaTable, rows: Any, mode: str, properties: CommitProperties) -> None:
    deltalake_package().write_deltalake(table, rows, mode=mode, commit_properties=properties)


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
