"""`delta`: a Delta table as a relation, by its change data feed, each version once.

The one part of the cursor is the table's log, its position the last version that is in the workspace; the
mark is the table's own identifier, another one when it is dropped and made anew.

    first      the rows of the newest version
    then       what each version did, versions that wait together in one commit

Invariants

1. The relation has the table's rows as of the cursor's version: of one with a key a row for each, else equal
   rows as often as they are there: of an update whose feed lacks some of these the rows of before and after
   are read.
2. What can't be followed stops the pull, by name, behind the last version before it: columns that changed, a
   table that was made anew or put back, versions without a feed or whose files are gone.

Cost: of a look one reading of the table's log, of a version one of its feed's files; the rows of one that has
more than a batch are staged in pieces.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from lftj.errors import SourceError
from lftj.files.delta_tables import FEED, opened
from lftj.language.diagnostics import quoted_list
from lftj.storage.relation import Nulls
from lftj.values.names import nearest_usable
from lftj.values.schema import Schema
from maintenance.changes.delta_versions import KIND, DeltaVersions
from maintenance.sources.checked_rows import checked_rows
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.patience import Patience
from maintenance.sources.source import (
    BATCH_ROWS,
    Batch,
    OnError,
    Pieces,
    Rejected,
    Source,
    columns_of,
    make_relation,
)
from maintenance.sources.typed_columns import rows_of_table
from maintenance.workspace.workspace import Workspace

_LOG = "version"
"""The part of the cursor."""

_BEGUN = -1
"""The position of a table that is to be taken as it is, whatever was read of it."""

_ANEW = "restart() begins anew"


def delta(
    table: str | os.PathLike[str],
    relation: str | None = None,
    *,
    key: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    nulls: Nulls = "refuse",
    on_error: OnError = "stop",
    batch_rows: int = BATCH_ROWS,
    storage_options: Mapping[str, str] | None = None,
    name: str | None = None,
) -> DeltaSource:
    """A Delta table as a relation.

    Args:
        table: Path or URI.  Its first rows may be of a table without a change data feed; what happens to it
            is read from that, so that its property ``delta.enableChangeDataFeed`` has to be set.
        relation: Which takes the rows; by default of the path's last name.  Where it is not there it is made,
            with ``nulls``, and ``key``, or without one as a bag.
        columns: Which of the table's; by default those that the relation has, and the table may have no more.
        on_error: Of rows that can't be taken (`maintenance.sources.source.Source`).
        batch_rows: Where so many rows wait they are committed; a version is not split.
        storage_options: As deltalake takes them; they are shown nowhere.
        name: Of the cursor; by default the relation's.

    Needs the package deltalake, the extra ``lftj[delta]``.
    """
    text = os.fspath(table)
    uri = text if "://" in text else os.path.abspath(text)
    return DeltaSource(uri, relation, key, columns, nulls, on_error, batch_rows, storage_options, name)


class DeltaSource(Source):
    """Made by `delta`."""

    def __init__(
        self,
        uri: str,
        relation: str | None,
        key: Sequence[str],
        columns: Sequence[str] | None,
        nulls: Nulls,
        on_error: OnError,
        batch_rows: int,
        storage_options: Mapping[str, str] | None,
        name: str | None,
    ) -> None:
        last = uri.rstrip("/").rpartition("/")[2]
        self.relation = nearest_usable(last) if relation is None else relation
        super().__init__(self.relation if name is None else name, on_error)
        self.uri = uri
        self._key, self._columns, self._nulls = key, columns, nulls
        self._batch_rows, self._storage_options = batch_rows, storage_options

    def __repr__(self) -> str:
        return f"<Delta table {self.uri!r} into {self.relation!r}>"

    def restart(self, workspace: Workspace) -> None:
        """Let the next pull take the table as it is, in one commit that has what is different.

        It is the way out where versions can't be followed; where columns changed, load the relation anew,
        empty, before.
        """
        cursor = Cursor(workspace, self.name)
        with workspace.transaction() as transaction:
            cursor.stage(transaction, {_LOG: Place(_BEGUN, "")})

    def _batches(self, workspace: Workspace, cursor: Cursor, patience: Patience) -> Generator[Batch]:
        while True:
            versions = self._looked(workspace)
            schema = workspace.base_version(self.relation).schema
            place = cursor.places.get(_LOG)
            if place is None or place.position == _BEGUN:
                self._refuse_rows_of_others(workspace, place)
                yield self._all_rows(schema, versions)
                patience.renew()
            for batch in self._new(schema, versions, cursor):
                yield batch
                patience.renew()
                if patience.is_stopped:
                    return
            if patience.is_over:
                return
            time.sleep(patience.left)

    # -- what is there ----------------------------------------------------------------------------

    def _looked(self, workspace: Workspace) -> DeltaVersions:
        """The table as it is now.  Raises SourceError where its columns are not the relation's."""
        try:
            newest = opened(self.uri, storage_options=self._storage_options)
            found = DeltaVersions(newest, self._columns, _ANEW)
            make_relation(workspace, self.relation, found.schema, self._key, self._nulls, bag=not self._key)
            schema = workspace.base_version(self.relation).schema
            self._check_relation(schema, found)
            return DeltaVersions(newest, columns_of(schema).names, _ANEW)
        except SourceError as error:
            raise SourceError(f"source {self.name!r}: {error}") from None

    def _check_relation(self, schema: Schema, found: DeltaVersions) -> None:
        """Raise SourceError where a relation is not such as the table's rows need."""
        has, wanted = found.schema.names, columns_of(schema).names
        if missing := [name for name in wanted if name not in has]:
            raise SourceError(
                f"{found.name} has no column {missing[0]!r}, which relation {self.relation!r} has; it has"
                f" {quoted_list(has, 'and')}: load the relation anew, empty, without it, and {_ANEW}"
            )
        if more := [name for name in has if name not in wanted]:
            raise SourceError(
                f"{found.name} has a column {more[0]!r}, which relation {self.relation!r} has not: load it"
                f" anew, empty, with it, and {_ANEW}; or name those that are wanted, with columns="
            )
        if not (schema.key or schema.bag):
            raise SourceError(
                f"{found.name} may have equal rows, and relation {self.relation!r} holds each once: load it"
                " with a key, or with bag=True"
            )

    def _refuse_rows_of_others(self, workspace: Workspace, place: Place | None) -> None:
        if place is None and workspace[self.relation].count:
            raise SourceError(
                f"source {self.name!r}: relation {self.relation!r} has rows already, and no cursor says where"
                " they are from: restart() takes what the table has in their place"
            )

    def _check(self, versions: DeltaVersions, place: Place) -> None:
        try:
            versions.check(place.position, place.mark)
        except SourceError as error:
            raise SourceError(f"source {self.name!r}: {error}") from None
        if not versions.has_feed:
            raise SourceError(
                f"source {self.name!r}: {versions.name} is at version {versions.version}, the cursor at"
                f" {place.position}, and its change data feed is off: set the property {FEED}=true, then"
                f" {_ANEW}"
            )

    # -- what happened ----------------------------------------------------------------------------

    def _all_rows(self, schema: Schema, versions: DeltaVersions) -> Batch:
        rejected: list[Rejected] = []
        read = partial(self._checked, schema, versions, versions.version)
        rows = Pieces(read(versions.rows(), rejected), lambda: read(versions.rows(), rejected))
        return Batch({self.relation: rows}, self._places(versions, versions.version), rejected, begins=True)

    def _new(self, schema: Schema, versions: DeltaVersions, cursor: Cursor) -> Iterator[Batch]:
        """What the versions behind the cursor did."""
        place = cursor.places[_LOG]
        if place == Place(versions.version, versions.table_id):
            return
        self._check(versions, place)
        updates = {} if schema.key else versions.updates(place.position)
        while (since := cursor.places[_LOG].position) < versions.version:
            yield self._some_versions(schema, versions, since, updates)

    def _some_versions(
        self, schema: Schema, versions: DeltaVersions, since: int, updates: Mapping[int, int]
    ) -> Batch:
        """Whole versions until there are rows for a batch; pieces of the last one may be still to come.

        ``updates``: how many rows those versions updated whose feed may lack some.
        """
        rejected: list[Rejected] = []
        pieces: list[pa.Table] = []
        rest: Iterator[pa.Table] = iter(())
        n_rows, until = 0, since
        while until < versions.version and n_rows < self._batch_rows:
            until += 1
            rest = self._version(schema, versions, until, updates, rejected)
            for piece in rest:
                pieces.append(piece)
                n_rows += piece.num_rows
                if n_rows >= self._batch_rows:
                    break

        def again() -> Iterator[pa.Table]:
            for version in range(since + 1, until + 1):
                yield from self._version(schema, versions, version, updates, rejected)

        changes = {self.relation: Pieces(chain(pieces, rest), again)} if pieces else {}
        return Batch(changes, self._places(versions, until), rejected)

    def _version(
        self,
        schema: Schema,
        versions: DeltaVersions,
        number: int,
        updates: Mapping[int, int],
        rejected: list[Rejected],
    ) -> Iterator[pa.Table]:
        """What one version did, in pieces."""
        lacks = number in updates and versions.lacks_rows(number, updates[number])
        did = versions.difference(number) if lacks else versions.changes(number - 1, number)
        return self._checked(schema, versions, number, did, rejected)

    def _checked(
        self,
        schema: Schema,
        versions: DeltaVersions,
        version: int,
        pieces: Iterator[pa.Table],
        rejected: list[Rejected],
    ) -> Iterator[pa.Table]:
        """The pieces of a version as the relation takes them; others are added to ``rejected``."""
        n_before = 0
        try:
            for piece in pieces:
                n = piece.num_rows
                feed = KIND in piece.column_names
                ops = piece[KIND].combine_chunks().cast(pa.string()) if feed else pa.array(["insert"] * n)
                rows = rows_of_table(piece, columns_of(schema), ops)
                table = checked_rows(schema, rows)
                for row, reason in sorted(rows.faults.items()):
                    text = str(piece.select(versions.schema.names).slice(row, 1).to_pylist()[0])
                    rejected.append(Rejected(self.uri, version, n_before + row, reason, text))
                if table.num_rows:
                    yield table
                n_before += n
        except SourceError as error:
            raise SourceError(f"source {self.name!r}: {error}") from None

    def _places(self, versions: DeltaVersions, version: int) -> dict[str, Place | None]:
        return {_LOG: Place(version, versions.table_id)}
