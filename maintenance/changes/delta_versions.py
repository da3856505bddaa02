"""`DeltaVersions`: the versions of a Delta table behind one: whether they can be read, and what they did.

The table's writers keep a change data feed: the rows that each version inserted, deleted or updated.

Invariant: a feed that can't be read as the columns that they are now is refused: deltalake itself would give
NULL for columns that are gone.

Cost: memory for a batch of the reader's, some thousand rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import SourceError
from lftj.files.delta_tables import FEED, arrow_schema, opened
from lftj.files.sources import read_table
from lftj.files.whole_files import reason
from lftj.values.domain import without_views

if TYPE_CHECKING:
    from deltalake import DeltaTable

KIND, VERSION = "_change_type", "_commit_version"
"""The columns of a feed beside the table's own."""

PRE, POST = "update_preimage", "update_postimage"

_KEEPING_SCHEMA = {"DELETE", "UPDATE", "MERGE", "OPTIMIZE", "STREAMING UPDATE", "VACUUM START", "VACUUM END"}
"""Operations that leave columns as they are, though they may add some."""


class DeltaVersions:
    """Those of a table, which is at the last of them.

    ``columns``: which, in this order; None: all.  ``anew``: how a caller begins again.
    Raises SourceError for a column that is not there.
    """

    def __init__(self, newest: DeltaTable, columns: Sequence[str] | None, anew: str) -> None:
        self._newest, self._anew = newest, anew
        self.name = f"Delta table {newest.table_uri!r}"
        self.version = newest.version()
        self.table_id = str(newest.metadata().id)
        self.has_feed = newest.metadata().configuration.get(FEED) == "true"
        try:
            self.schema = read_table(arrow_schema(newest).empty_table(), columns).schema
        except SourceError as error:
            raise SourceError(f"{self.name}: {error}") from None

    def check(self, since: int, table_id: str | None) -> None:
        """Raise SourceError if the versions after ``since`` are not what they were, or not all there."""
        if table_id is not None and table_id != self.table_id:
            raise SourceError(
                f"{self.name} is another table than the one that was read before (its id is {self.table_id},"
                f" not {table_id}): it was dropped and made anew: {self._anew}"
            )
        if since > self.version:
            raise SourceError(
                f"{self.name} is at version {self.version}, and changes are asked for since version {since}:"
                f" it was made anew, or put back from a copy; versions don't go back: {self._anew}"
            )
        if since == self.version:
            return
        for number in self._suspects(since):
            try:
                before = opened(self._newest, number)
            except SourceError:
                raise SourceError(
                    f"{self.name}: the log of version {number} was cleaned away, and changes are asked for"
                    f" since version {since}: {self._anew}, or keep the log longer"
                    " (delta.logRetentionDuration)"
                ) from None
            self._refuse_other_columns(arrow_schema(before), number)

    def _suspects(self, since: int) -> list[int]:
        """The versions whose columns may be others: the first, and those of operations that alter some."""
        history = self._newest.history(self.version - since)
        suspects = [max(since, 0)]
        for entry in history:
            mode = entry.get("operationParameters", {}).get("mode")
            adds_rows = entry.get("operation") == "WRITE" and mode == "Append"
            if not (adds_rows or entry.get("operation") in _KEEPING_SCHEMA):
                suspects.append(int(entry["version"]))
        return sorted({number for number in suspects if number < self.version})

    def _refuse_other_columns(self, before: pa.Schema, version: int) -> None:
        for field in self.schema:
            index = before.get_field_index(field.name)
            now = f"{field.name!r} is of type {field.type} at version {self.version}"
            if index < 0:
                was = f"and there was none at version {version}"
            elif before.field(index).type != field.type:
                was = f"and was of type {before.field(index).type} at version {version}"
            else:
                continue
            raise SourceError(
                f"{self.name}: its columns have changed: {now}, {was}: {self._anew}, or leave the column out,"
                " with columns="
            )

    def changes(self, since: int, until: int) -> Iterator[pa.Table]:
        """The feed of the versions after ``since``, in pieces: the columns, KIND and VERSION.

        Raises SourceError where it can't be read.
        """
        if since == until:
            return
        try:
            feed = self._newest.load_cdf(
                starting_version=since + 1,
                ending_version=until,
                columns=[*self.schema.names, KIND, VERSION],
            )
            for batch in pa.RecordBatchReader.from_stream(feed):
                yield _table_of(batch)
        except Exception as error:  # deltalake raises whatever the store below raises
            raise self._unreadable(error, since, until) from None

    def updates(self, since: int) -> dict[int, int]:
        """The versions after ``since`` that deltalake made as updates, and how many rows each updated."""
        found = {}
        for entry in self._newest.history(self.version - since):
            n_updated = entry.get("operationMetrics", {}).get("num_updated_rows")
            if entry.get("operation") == "UPDATE" and n_updated is not None:
                found[int(entry["version"])] = int(n_updated)
        return found

    def lacks_rows(self, version: int, n_updated: int) -> bool:
        """Whether the feed of an update lacks rows.

        What deltalake writes of one is what the images before and after have not in common, so that of a row
        in both all copies are left out, though there may be more of them in one.  That tells the number of
        images; of a table whose rows differ nothing is lost by it.
        """
        images = {PRE: 0, POST: 0}
        for piece in self.changes(version - 1, version):
            for kind in images:
                images[kind] += pc.sum(pc.equal(piece[KIND], kind)).as_py() or 0
        return set(images.values()) != {n_updated}

    def whole_changes(self, since: int, updates: Mapping[int, int]) -> Iterator[pa.Table]:
        """The feed of the versions after ``since``; of those whose feed lacks rows what they did.

        ``updates``: of :meth:`updates`.  Raises SourceError where it can't be read.
        """
        for number, n_updated in sorted(updates.items()):
            if self.lacks_rows(number, n_updated):
                yield from self.changes(since, number - 1)
                for piece in self.difference(number):
                    yield piece.append_column(VERSION, pa.array([number] * piece.num_rows, pa.int64()))
                since = number
        yield from self.changes(since, self.version)

    def difference(self, version: int) -> Iterator[pa.Table]:
        """What a version did, as all rows of before that go and all rows that come: as `changes` has them."""
        for number, kind in ((version - 1, "delete"), (version, "insert")):
            for piece in self.rows(number):
                yield piece.append_column(KIND, pa.array([kind] * piece.num_rows, pa.string()))

    def rows(self, version: int | None = None) -> Iterator[pa.Table]:
        """The rows of the table at a version, by default the last, in pieces.  Raises SourceError."""
        table = opened(self._newest, version)
        try:
            for batch in pa.RecordBatchReader.from_stream(table.scan(columns=self.schema.names)):
                yield _table_of(batch)
        except Exception as error:
            raise self._unreadable(error, table.version() - 1, table.version()) from None

    def _unreadable(self, error: Exception, since: int, until: int) -> SourceError:
        """What deltalake raised, with a way out."""
        text = str(error)
        span = f"versions {since + 1} to {until}"
        if "change data enabled" in text:
            return SourceError(
                f"{self.name}: its change data feed was off in some of {span}: set the property"
                f" {FEED}=true, then {self._anew}"
            )
        if "not found" in text:
            return SourceError(
                f"{self.name}: files of {span} were cleaned away (VACUUM): {self._anew}, or keep files longer"
                " (delta.deletedFileRetentionDuration)"
            )
        return SourceError(f"{self.name}: the changes of {span} can't be read: {reason(error)}")


def _table_of(batch: pa.RecordBatch) -> pa.Table:
    """The batch with plain types in place of view types, for which pyarrow has few functions."""
    columns = [without_views(column) for column in batch.columns]
    return pa.Table.from_arrays(columns, batch.schema.names)
