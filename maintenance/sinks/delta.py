"""`to_delta`: a head as a Delta table, its rows and its version in one commit there.

A commit has the transaction identifier ``lftj <workspace> <sink>``, whose number is the version of the head
that the table then is.

Invariants

1. Of two who write the same version one is refused by the rules of Delta's log, and sees that it is there.
2. Others may compact the table, and clean up behind it; who changes its rows is noticed where rows go that
   are not there.

Cost: a change from which nothing goes is an append; else deltalake writes the files anew that have rows which
go.  Of a head with equal rows the table is scanned for how often those are there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import SinkError, SourceError
from lftj.files.delta_tables import FEED, arrow_schema, deltalake_package, opened, replace_rows
from lftj.files.whole_files import reason
from maintenance.sinks.sink import Sink, operations_of
from maintenance.sources.cursor import Cursor
from maintenance.workspace.follower import HeadChange
from maintenance.workspace.workspace import Workspace

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_WORKSPACE = "lftj.workspace"
"""In the metadata of commits: who made them."""

_MOST_TRIES = 10
"""Of one commit, while others commit to the table at the same time."""

_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
"""Delta has no unsigned integers, and a relation none above 2**63 - 1."""


def to_delta(
    table: str | os.PathLike[str],
    head: str,
    *,
    key: Sequence[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    name: str | None = None,
) -> DeltaSink:
    """A head as a Delta table.

    Args:
        table: Path or URI; the table is made where it is not there, with a change data feed.  Made by
            yourself, empty and with the head's columns, it may be partitioned.
        head: Which head of the workspace.
        key: Columns that tell the head's rows apart, by which rows that go are looked for; by default the
            groups of an aggregate with one value, else all.
        storage_options: As deltalake takes them; they are shown nowhere.
        name: Of the sink; by default ``<head>_to_delta``.

    Needs the package deltalake, the extra ``lftj[delta]``.
    """
    text = os.fspath(table)
    return DeltaSink(text if "://" in text else os.path.abspath(text), head, key, storage_options, name)


class DeltaSink(Sink):
    """Made by `to_delta`."""

    begins_anew = True

    def __init__(
        self,
        uri: str,
        head: str,
        key: Sequence[str] | None,
        storage_options: Mapping[str, str] | None,
        name: str | None,
    ) -> None:
        super().__init__(head, f"{head}_to_delta" if name is None else name)
        self.uri, self.key = uri, key
        self.storage_options = None if storage_options is None else dict(storage_options)

    def __repr__(self) -> str:
        return f"<{self.head!r} to the Delta table {self.uri!r}>"

    @property
    def _way_out(self) -> str:
        return "delete the table, and it is written anew"

    @contextmanager
    def _opened(self, workspace: Workspace, identifier: str, cursor: Cursor) -> Generator[_Table]:
        rows = workspace[self.head].schema  # which says where it is not there
        schema, key = workspace.snapshot().versions[self.head].schema, self.key
        if key is None:
            key = rows.names[:-1] if schema.functional else []
        try:
            yield _Table(self, rows, list(key), schema.bag, identifier)
        except SourceError as error:
            raise SinkError(f"sink {self.name!r}: {error}") from None


class _Table:
    """The table, at the version of its own that was seen last."""

    def __init__(
        self, sink: DeltaSink, rows: pa.Schema, key: list[str], is_bag: bool, identifier: str
    ) -> None:
        self._sink, self._is_bag, self._identifier = sink, is_bag, identifier
        self._schema = pa.schema([pa.field(field.name, self._type_of(field)) for field in rows])
        if unknown := [label for label in key if label not in rows.names]:
            raise SinkError(f"sink {sink.name!r}: key= names {unknown[0]!r}, which {sink.head!r} has not")
        self._on = key or rows.names
        for label in self._on:
            if pa.types.is_nested(self._schema.field(label).type):
                raise SinkError(
                    f"sink {sink.name!r}: rows that go are looked for by {label!r}, which is of type"
                    f" {rows.field(label).type}: name the columns that tell rows apart, with key="
                )
        self._app = f"lftj {identifier} {sink.name}"
        self._open()
        self.version = self._table.transaction_version(self._app)
        self._refuse_others()

    # -- what is there ----------------------------------------------------------------------------

    def _open(self) -> None:
        """The table as it is now, made if there is none.  Raises SinkError for one of other columns."""
        deltalake, sink = deltalake_package(), self._sink
        try:
            if not deltalake.DeltaTable.is_deltatable(sink.uri, sink.storage_options):
                deltalake.DeltaTable.create(
                    sink.uri,
                    self._schema,
                    mode="ignore",
                    configuration={FEED: "true"},
                    storage_options=sink.storage_options,
                )
        except Exception as error:  # deltalake raises whatever the store below raises
            raise self._failed(error) from None
        self._table: DeltaTable = opened(sink.uri, storage_options=sink.storage_options)
        found, wanted = arrow_schema(self._table), self._schema
        if found.names != wanted.names or found.types != wanted.types:
            raise SinkError(
                f"sink {sink.name!r}: Delta table {sink.uri!r} has columns ({_shown(found)}), and"
                f" {sink.head!r} is ({_shown(wanted)}) there: give another path, or {sink._way_out}"
            )

    def _refuse_others(self) -> None:
        """Raise SinkError where the table is another workspace's, or has rows of nobody known."""
        label = f"sink {self._sink.name!r}: Delta table {self._sink.uri!r}"
        writer = self._table.history(1)[0].get(_WORKSPACE, self._identifier)
        if writer != self._identifier:
            raise SinkError(
                f"{label} holds what another workspace wrote: give another path, or {self._sink._way_out}"
            )
        if self.version is None and self._table.file_uris():
            raise SinkError(
                f"{label} has rows, and this workspace has not written them: give the path of a new table, or"
                " of an empty one"
            )

    def _type_of(self, field: pa.Field) -> pa.DataType:
        """The type of a column there.  Raises SinkError where Delta has none."""
        type_ = _WIDER.get(field.type, field.type)
        if pa.types.is_timestamp(type_):
            return pa.timestamp("us", None if type_.tz is None else "UTC")
        try:
            return pa.schema(deltalake_package().Schema.from_arrow(pa.schema([("a", type_)])))[0].type
        except ImportError:
            raise
        except Exception:  # deltalake raises plain exceptions here
            raise SinkError(
                f"sink {self._sink.name!r}: column {field.name!r} of {self._sink.head!r} is of type"
                f" {field.type}, for which a Delta table has none: leave it out by another head"
            ) from None

    # -- commits ----------------------------------------------------------------------------------

    def begin(self, all_rows: HeadChange) -> None:
        rows = self._cast(operations_of(all_rows.table).select(self._schema.names))

        def write(properties: CommitProperties) -> None:
            deltalake_package().write_deltalake(
                self._table, rows, mode="overwrite", commit_properties=properties
            )

        self._commit(write, all_rows.version)

    def add(self, change: HeadChange) -> None:
        rows = operations_of(change.table)
        goes = pc.equal(rows.column(rows.num_columns - 1), "D")
        gone, come = (
            self._cast(rows.filter(which).select(self._schema.names)) for which in (goes, pc.invert(goes))
        )

        def write(properties: CommitProperties) -> None:
            if gone.num_rows:
                self._replace(gone, come, properties)
            else:
                deltalake_package().write_deltalake(
                    self._table, come, mode="append", commit_properties=properties
                )

        self._commit(write, change.version)

    def _replace(self, gone: pa.Table, come: pa.Table, properties: CommitProperties) -> None:
        n_gone = gone.num_rows
        if self._is_bag:
            gone, left = self._copies(gone)
            n_gone, come = n_gone + left.num_rows, pa.concat_tables([left, come])
        done = replace_rows(self._table, gone, come, self._on, properties)
        if done != (come.num_rows, n_gone):
            raise SinkError(
                f"sink {self._sink.name!r}: Delta table {self._sink.uri!r} was changed by another: {n_gone}"
                f" rows are to go, and {done[1]} of them were there: {self._sink._way_out}"
            )

    def _copies(self, gone: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Of rows that go each one, and as many of each as the table has more than are to go."""
        going = Counter(map(_row, gone.to_pylist()))
        first = {_row(row): number for number, row in enumerate(gone.to_pylist())}
        there: Counter[tuple[str, ...]] = Counter()
        label = gone.column_names[0]
        scan = self._table.scan(columns=gone.column_names)
        for batch in pa.RecordBatchReader.from_stream(scan):
            piece = pa.Table.from_batches([batch]).cast(self._schema)
            alike = piece.filter(pc.is_in(piece[label], value_set=gone[label].combine_chunks()))
            there.update(row for row in map(_row, alike.to_pylist()) if row in going)
        left = [first[row] for row, n in going.items() for _ in range(there[row] - n)]
        return gone.take(pa.array(list(first.values()))), gone.take(pa.array(left, pa.int64()))

    def _commit(self, write: Callable[[CommitProperties], None], version: int) -> None:
        """Write a version, also while others commit."""
        deltalake = deltalake_package()
        properties = deltalake.CommitProperties(
            app_transactions=[deltalake.Transaction(self._app, version)],
            custom_metadata={_WORKSPACE: self._identifier, "lftj.version": str(version)},
        )
        for tried in range(_MOST_TRIES):
            try:
                write(properties)
                break
            except deltalake.exceptions.CommitFailedError as error:
                if tried == _MOST_TRIES - 1:
                    raise self._failed(error) from None
            except SinkError:
                raise
            except Exception as error:  # deltalake raises whatever the store below raises
                raise self._failed(error) from None
            self._open()
            if (has := self._table.transaction_version(self._app)) != self.version:
                if has == version:  # it is there, and the store's word of it was lost
                    break
                raise SinkError(
                    f"sink {self._sink.name!r}: another process pushes to {self._sink.uri!r}, too"
                )
        self.version = version
        self._table.update_incremental()

    def _cast(self, rows: pa.Table) -> pa.Table:
        try:
            return rows.cast(self._schema)
        except pa.ArrowInvalid as error:
            raise SinkError(
                f"sink {self._sink.name!r}: a value of {self._sink.head!r} is none of the Delta table's"
                f" ({_shown(self._schema)}): {reason(error)}"
            ) from None

    def _failed(self, error: Exception) -> SinkError:
        return SinkError(
            f"sink {self._sink.name!r}: Delta table {self._sink.uri!r} can't be written: {reason(error)}:"
            " push again, it goes on behind what is written"
        )


def _row(row: Mapping[str, object]) -> tuple[str, ...]:
    """A row, with 0.0 and -0.0 apart, as a merge has them."""
    return tuple(map(repr, row.values()))


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
