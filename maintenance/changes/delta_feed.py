"""`changes_from_delta`: what happened to a Delta table between two of its versions, as changes of a relation.

The table's writers keep a change data feed: the rows that each version inserted, deleted or updated.  Here
they become rows with ``weight``, +1 or -1, of the set of the table's rows
(:mod:`maintenance.changes.set_changes`).

Invariant: the set of rows at ``since`` and the changes give the set of rows at ``version``, and so do
those of every version between.

Cost: memory for the feed's rows; a scan of the table at ``version`` where rows were deleted, and of the
tables before and after an update whose feed lacks rows, unless the caller says that no two rows are equal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import NullError, SourceError, UnsupportedTypeError
from lftj.files.delta_tables import opened
from lftj.files.sources import array_of_numpy
from lftj.storage.relation import Nulls
from lftj.storage.signed_rows import Columns
from lftj.values.domains import Domains
from maintenance.changes.delta_versions import KIND, POST, PRE, VERSION, DeltaVersions
from maintenance.changes.labels import TXN, WEIGHT, label_beside
from maintenance.changes.set_changes import NetFeed, counts_of, net_change

if TYPE_CHECKING:
    from deltalake import DeltaTable

_WEIGHTS = {"insert": 1, POST: 1, "delete": -1, PRE: -1}

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
            other copies of deleted rows, nor for those that the feed of an update lacks.
        table_id: Of an earlier `DeltaChanges`: refuse a table that was made anew since.
        storage_options: As deltalake takes them.

    Raises SourceError where the feed can't be had: no such table; ``since`` lies ahead of it; its columns
    have changed; the feed was off; files or log entries were cleaned away.  Raises NullError,
    UnsupportedTypeError for columns that can't be joined on, and ImportError without deltalake.
    """
    newest = opened(table, until if isinstance(until, int) else None, storage_options)
    feed = _Feed(newest, since, columns, nulls)
    feed.check(until, table_id)
    net = feed.read(unique)
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
        self._versions = DeltaVersions(newest, columns, _ANEW)
        self._since = since
        self._nulls = nulls
        self._name, self._schema = self._versions.name, self._versions.schema
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

    def check(self, until: int | None, table_id: str | None) -> None:
        """Raise SourceError if the versions after ``since`` are not what they were, or not all there."""
        last = self._versions.version if until is None else until
        for label, number, least in (("since", self._since, -1), ("until", last, 0)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise SourceError(
                    f"{self._name}: {label} is {number!r}; versions are numbers from {least} on"
                )
        self._versions.check(self._since, table_id)

    def read(self, is_unique: bool) -> NetFeed:
        """All rows of the feed; of updates that lack some, the rows of before and after."""
        columns: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in self._schema]
        versions, weights = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        updates = {} if is_unique else self._versions.updates(self._since)
        for batch in self._versions.whole_changes(self._since, updates):
            codes, batch = self._codes(batch)
            for parts, part in zip(columns, codes, strict=True):
                parts.append(part)
            versions.append(batch.column(VERSION).cast(pa.int64()).to_numpy())
            weights.append(self._weights(batch.column(KIND)))
        return NetFeed(list(map(np.concatenate, columns)), np.concatenate(versions), np.concatenate(weights))

    def rows_now(self) -> Iterator[Columns]:
        """The rows of the table at the last version."""
        for piece in self._versions.rows():
            yield self._codes(piece)[0]

    def decoded(self, rows: np.ndarray, beside: Mapping[str, np.ndarray]) -> pa.Table:
        """Rows of codes as values, with more columns behind."""
        arrays = [
            domain.decode_chunked(codes, field.type)
            for domain, codes, field in zip(self._domains, rows, self._schema, strict=True)
        ]
        names = [*self._schema.names, *(label_beside(label, self._schema.names) for label in beside)]
        return pa.Table.from_arrays([*arrays, *map(array_of_numpy, beside.values())], names)

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
