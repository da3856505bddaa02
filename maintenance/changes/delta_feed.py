"""`changes_from_delta`: what happened to a Delta table between two of its versions, as changes of a relation.

The table's writers keep a change data feed: the rows that each version inserted, deleted or updated.  Here
they become rows with ``weight``, +1 or -1, of the set of the table's rows
(:mod:`maintenance.changes.set_changes`).

Invariants

1. The set of rows at ``since`` and the changes give the set of rows at ``version``, and so do those of every
   version between.
2. A feed that can't be read as the columns that they are now is refused: deltalake itself would give NULL
   for columns that are gone.

Cost: memory for the feed's rows; a scan of the table at ``version`` where rows were deleted, unless the
caller says that no two rows are equal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import LftjError, NullError, SourceError, UnsupportedTypeError
from lftj.files.delta_tables import FEED, arrow_schema, opened
from lftj.files.sources import array_of_numpy, read_table
from lftj.files.whole_files import reason
from lftj.storage.relation import Nulls
from lftj.storage.signed_rows import Columns
from lftj.values.domain import without_views
from lftj.values.domains import Domains
from maintenance.changes.labels import TXN, WEIGHT, label_beside
from maintenance.changes.set_changes import NetFeed, counts_of, net_change

if TYPE_CHECKING:
    from deltalake import DeltaTable

_WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
_KIND, _VERSION = "_change_type", "_commit_version"

_KEEPING_SCHEMA = {"DELETE", "UPDATE", "MERGE", "OPTIMIZE", "STREAMING UPDATE", "VACUUM START", "VACUUM END"}
"""Operations that leave columns as they are, though they may add some."""

_ANEW = "load the table anew and go on from its version"


@dataclass(frozen=True, eq=False)
class DeltaChanges:
    """Changes of the set of rows of a Delta table; a transaction takes them: ``tx.apply("edge", changes)``.

    Attributes:
        table: All versions together: the columns and ``weight``, +1 or -1; a row once at most.
        by_version: The same version by version: also with the column ``txn``, the version, as
            `Workspace.apply_many` takes it.
        since: The changes are those of the versions after this one.
        version: The last version that is in: what to give as ``since`` the next time.
        table_id: The table's own identifier, another one when it is dropped and made anew.
    """

    table: pa.Table
    by_version: pa.Table
    since: int
    version: int
    table_id: str

    def __len__(self) -> int:
        return self.table.num_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<DeltaChanges of versions {self.since + 1} to {self.version}, {len(self):,} rows>"


def changes_from_delta(
    table: str | os.PathLike[str] | DeltaTable,
    since: int,
    *,
    until: int | None = None,
    columns: Sequence[str] | None = None,
    nulls: Nulls = "refuse",
    unique: bool = False,
    table_id: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DeltaChanges:
    """The changes of a Delta table in the versions after ``since``, from its change data feed.

    Args:
        table: Path, URI or DeltaTable.
        since: The version that the caller has already; -1 has nothing.
        until: The last version to read; by default the newest, or the one that a DeltaTable is at.
        columns: Which columns to take, in this order; by default all.
        nulls: ``"drop"`` leaves out rows with a NULL in these columns; ``"keep"`` is for a relation that was
            loaded so.
        unique: The table never holds two rows that are equal in these columns.  Then it is not scanned for
            other copies of deleted rows.
        table_id: Of an earlier `DeltaChanges`: refuse a table that was made anew since.
        storage_options: As deltalake takes them.

    Raises SourceError where the feed can't be had: no such table; ``since`` lies ahead of it; its columns
    have changed; the feed was off; files or log entries were cleaned away.  Raises NullError,
    UnsupportedTypeError for columns that can't be joined on, and ImportError without deltalake.
    """
    newest = opened(table, until if isinstance(until, int) else None, storage_options)
    feed = _Feed(newest, since, columns, nulls)
    feed.check(until, table_id)
    net = feed.read()
    counts = None
    if not unique:
        deleted = net.deleted
        counts = counts_of(deleted, feed.rows_now()) if deleted.shape[1] else np.empty(0, np.int64)
    changes = net.changes(counts)
    by_version = feed.decoded(changes.rows, {WEIGHT: changes.signs, TXN: changes.versions})
    rows, signs = net_change(changes)
    return DeltaChanges(
        feed.decoded(rows, {WEIGHT: signs}), by_version, since, newest.version(), str(newest.metadata().id)
    )


class _Feed:
    """The feed of a table, as codes of its own domains."""

    def __init__(self, newest: DeltaTable, since: int, columns: Sequence[str] | None, nulls: Nulls) -> None:
        self._newest = newest
        self._since = since
        self._nulls = nulls
        self._name = f"Delta table {newest.table_uri!r}"
        whole = arrow_schema(newest)
        try:
            self._schema = read_table(whole.empty_table(), columns).schema
        except SourceError as error:
            raise SourceError(f"{self._name}: {error}") from None
        domains = Domains()
        try:
            self._domains = [domains.of(field.type) for field in self._schema]
        except UnsupportedTypeError:
            raise self._unsupported(domains) from None

    def _unsupported(self, domains: Domains) -> UnsupportedTypeError:
        for field in self._schema:
            try:
                domains.of(field.type)
            except UnsupportedTypeError as error:
                return UnsupportedTypeError(
                    f"{self._name}, column {field.name!r}: {error}: leave it out, with columns="
                )
        raise AssertionError("one of them was refused")

    # -- whether it can be read ---------------------------------------------------

    def check(self, until: int | None, table_id: str | None) -> None:
        """Raise SourceError if the versions after ``since`` are not what they were, or not all there."""
        name, since, version = self._name, self._since, self._newest.version()
        for label, number, least in (("since", since, -1), ("until", version if until is None else until, 0)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise SourceError(f"{name}: {label} is {number!r}; versions are numbers from {least} on")
        found = str(self._newest.metadata().id)
        if table_id is not None and table_id != found:
            raise SourceError(
                f"{name} is another table than the one that was read before (its id is {found}, not"
                f" {table_id}): it was dropped and made anew: {_ANEW}"
            )
        if since > version:
            raise SourceError(
                f"{name} is at version {version}, and changes are asked for since version {since}: it was"
                f" made anew, or put back from a copy; versions don't go back: {_ANEW}"
            )
        if since == version:
            return
        for number in self._suspects():
            try:
                before = opened(self._newest, number)
            except SourceError:
                raise SourceError(
                    f"{name}: the log of version {number} was cleaned away, and changes are asked for since"
                    f" version {since}: {_ANEW}, or keep the log longer (delta.logRetentionDuration)"
                ) from None
            self._refuse_other_columns(arrow_schema(before), number)

    def _suspects(self) -> list[int]:
        """The versions whose columns may be others: the first, and those of operations that alter some."""
        history = self._newest.history(self._newest.version() - self._since)
        suspects = [max(self._since, 0)]
        for entry in history:
            mode = entry.get("operationParameters", {}).get("mode")
            adds_rows = entry.get("operation") == "WRITE" and mode == "Append"
            if not (adds_rows or entry.get("operation") in _KEEPING_SCHEMA):
                suspects.append(int(entry["version"]))
        return sorted({number for number in suspects if number < self._newest.version()})

    def _refuse_other_columns(self, before: pa.Schema, version: int) -> None:
        for field in self._schema:
            index = before.get_field_index(field.name)
            now = f"{field.name!r} is of type {field.type} at version {self._newest.version()}"
            if index < 0:
                was = f"and there was none at version {version}"
            elif before.field(index).type != field.type:
                was = f"and was of type {before.field(index).type} at version {version}"
            else:
                continue
            raise SourceError(
                f"{self._name}: its columns have changed: {now}, {was}: {_ANEW}, or leave the column out,"
                " with columns="
            )

    # -- rows ---------------------------------------------------------------------

    def read(self) -> NetFeed:
        """All rows of the feed."""
        columns: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in self._schema]
        versions, weights = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for batch in self._batches():
            codes, batch = self._codes(batch)
            for parts, part in zip(columns, codes, strict=True):
                parts.append(part)
            versions.append(batch.column(_VERSION).cast(pa.int64()).to_numpy())
            weights.append(self._weights(batch.column(_KIND)))
        return NetFeed(list(map(np.concatenate, columns)), np.concatenate(versions), np.concatenate(weights))

    def rows_now(self) -> Iterator[Columns]:
        """The rows of the table at the last version."""
        try:
            for batch in pa.RecordBatchReader.from_stream(self._newest.scan(columns=self._schema.names)):
                yield self._codes(_table_of(batch))[0]
        except LftjError:
            raise
        except Exception as error:
            raise self._unreadable(error) from None

    def decoded(self, rows: np.ndarray, beside: Mapping[str, np.ndarray]) -> pa.Table:
        """Rows of codes as values, with more columns behind."""
        arrays = [
            domain.decode_chunked(codes, field.type)
            for domain, codes, field in zip(self._domains, rows, self._schema, strict=True)
        ]
        names = [*self._schema.names, *(label_beside(label, self._schema.names) for label in beside)]
        return pa.Table.from_arrays([*arrays, *map(array_of_numpy, beside.values())], names)

    def _batches(self) -> Iterator[pa.Table]:
        since, version = self._since, self._newest.version()
        if since == version:
            return
        try:
            feed = self._newest.load_cdf(
                starting_version=since + 1,
                ending_version=version,
                columns=[*self._schema.names, _KIND, _VERSION],
            )
            for batch in pa.RecordBatchReader.from_stream(feed):
                yield _table_of(batch)
        except Exception as error:  # deltalake raises whatever the store below raises
            raise self._unreadable(error) from None

    def _codes(self, rows: pa.Table) -> tuple[list[np.ndarray], pa.Table]:
        """The codes of the columns, and the rows that they are of: those that are not dropped."""
        nulls = [field.name for field in self._schema if rows.column(field.name).null_count]
        if nulls and self._nulls == "refuse":
            raise NullError(
                f"{self._name}, column {nulls[0]!r}: NULL:"
                ' pass nulls="drop" to leave such rows out, or nulls="keep"'
            )
        if nulls and self._nulls == "drop":
            rows = rows.drop_null()
        codes = []
        for domain, field in zip(self._domains, self._schema, strict=True):
            encode = domain.encode_nullable if self._nulls == "keep" else domain.encode
            codes.append(np.asarray(encode(rows.column(field.name).cast(field.type)), np.int64))
        return codes, rows

    def _weights(self, kinds: pa.ChunkedArray) -> np.ndarray:
        known = pa.array(list(_WEIGHTS))
        places = pc.index_in(kinds, known)
        if places.null_count:
            other = kinds.filter(pc.is_null(places))[0].as_py()
            raise SourceError(f"{self._name}: its change data feed has a change of a kind {other!r}")
        return np.array(list(_WEIGHTS.values()), np.int64)[places.to_numpy()]

    def _unreadable(self, error: Exception) -> SourceError:
        """What deltalake raised, with a way out."""
        text = str(error)
        span = f"versions {self._since + 1} to {self._newest.version()}"
        if "change data enabled" in text:
            return SourceError(
                f"{self._name}: its change data feed was off in some of {span}: set the property"
                f" {FEED}=true, then {_ANEW}"
            )
        if "not found" in text:
            return SourceError(
                f"{self._name}: files of {span} were cleaned away (VACUUM): {_ANEW}, or keep files longer"
                " (delta.deletedFileRetentionDuration)"
            )
        return SourceError(f"{self._name}: the changes of {span} can't be read: {reason(error)}")


def _table_of(batch: pa.RecordBatch) -> pa.Table:
    """The batch with plain types in place of view types, for which pyarrow has few functions."""
    columns = [without_views(column) for column in batch.columns]
    return pa.Table.from_arrays(columns, batch.schema.names)
