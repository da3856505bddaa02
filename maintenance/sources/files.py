"""`files`: a folder into which others write, as changes of a relation, each row once.

The parts of the cursor are the files; the position in one is the bytes that are taken.  Files of lines, CSV
and JSON, may grow: a line counts when its end is there.  Parquet files are written elsewhere and moved in,
and each is one commit.

Invariants

1. Files are read in the order of their names, and so are lines; what is taken is not read again.
2. A file that is not what was read, shorter or with another beginning, stops the pull by its name.  One that
   is gone does not.

Cost: of a look one ``stat`` for each file, of what is new one pass.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lftj.errors import SourceError
from lftj.files.sources import read_table
from lftj.storage.relation import Nulls
from lftj.values.names import nearest_usable
from lftj.values.schema import Schema
from maintenance.sources.checked_rows import checked_rows
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.file_rows import Format, Most, format_of
from maintenance.sources.json_rows import OP
from maintenance.sources.patience import Patience
from maintenance.sources.source import Batch, OnError, Rejected, Source, columns_of, make_relation
from maintenance.workspace.workspace import Workspace

_BLOCK = 8 << 20
"""Bytes of lines that are one commit, at most, but for a line that is longer."""

_FEWEST, _EACH = 1 << 16, 1 << 8
"""Bytes that are read where rows are limited: these, or so many for each row."""

_MARKED = 4096
"""So many bytes tell a file from another."""


def files(
    folder: str | os.PathLike[str],
    relation: str | None = None,
    *,
    pattern: str = "*",
    schema: pa.Schema | None = None,
    key: Sequence[str] = (),
    nulls: Nulls = "refuse",
    delimiter: str = ",",
    on_error: OnError = "stop",
    batch_rows: int | None = None,
    name: str | None = None,
) -> FilesSource:
    """The files of a folder, and of those in it, as changes of a relation.

    Args:
        folder: Where Parquet files (``.parquet``), CSV with a line of names (``.csv``) and JSON lines
            (``.jsonl``, ``.ndjson``, ``.json``) come; names that begin with a dot or ``_`` are passed over.
        relation: Which takes them; by default of the folder's name.  Where it is not there it is made, with
            ``schema``, by default that of the first file, ``key`` and ``nulls``, as `Workspace.load` takes
            them.
        pattern: Of the names of files.
        delimiter: Between the values of CSV.
        on_error: Of rows that can't be taken (`maintenance.sources.source.Source`).
        batch_rows: So many lines are one commit at most; by default as many as have 8 MiB.  A Parquet file is
            one.
        name: Of the cursor; by default the relation's.

    Rows have the relation's columns, and perhaps ``op``, what happens to each; what else there is is left
    aside.
    """
    path = Path(folder).absolute()
    return FilesSource(path, relation, pattern, schema, key, nulls, delimiter, on_error, batch_rows, name)


class _File(NamedTuple):
    """``part``: its path in the folder; ``size``: bytes; ``changed``: when, in nanoseconds."""

    part: str
    path: Path
    format: Format
    size: int
    changed: int


class FilesSource(Source):
    """Made by `files`."""

    def __init__(
        self,
        folder: Path,
        relation: str | None,
        pattern: str,
        schema: pa.Schema | None,
        key: Sequence[str],
        nulls: Nulls,
        delimiter: str,
        on_error: OnError,
        batch_rows: int | None,
        name: str | None,
    ) -> None:
        self.relation = nearest_usable(folder.name) if relation is None else relation
        super().__init__(self.relation if name is None else name, on_error)
        self.folder = folder
        self._pattern, self._schema, self._key, self._nulls = pattern, schema, key, nulls
        self._delimiter = delimiter
        if batch_rows is None:
            self._most = Most(_BLOCK)
        else:
            self._most = Most(min(_BLOCK, max(_FEWEST, _EACH * batch_rows)), batch_rows)
        self._backlog: int | None = None

    def __repr__(self) -> str:
        return f"<files of {os.fspath(self.folder)!r} into {self.relation!r}>"

    def _batches(self, workspace: Workspace, cursor: Cursor, patience: Patience) -> Generator[Batch]:
        seen: dict[str, tuple[int, int]] = {}
        try:
            while True:
                found = [file for file in self._files() if seen.get(file.part) != (file.size, file.changed)]
                self._backlog = sum(file.size - _taken(cursor, file) for file in found)
                for file in found:
                    is_first = self.relation not in workspace
                    for batch in self._new(workspace, file, cursor, is_first):
                        before = _taken(cursor, file)
                        yield batch
                        self._backlog = max(0, self._backlog - _taken(cursor, file) + before)
                        patience.renew()
                    seen[file.part] = file.size, file.changed
                    if patience.is_stopped:
                        return
                self._backlog = 0  # what is left is no whole line
                if patience.is_over:
                    return
                time.sleep(patience.left)
        finally:
            self._backlog = None

    def backlog(self) -> int | None:
        return self._backlog

    def _files(self) -> list[_File]:
        """Those that are there, by their names.  Raises SourceError for a folder that is not."""
        if not self.folder.is_dir():
            raise SourceError(f"source {self.name!r}: {self.folder} is no folder: name another, or make it")
        found = []
        for above, folders, names in os.walk(self.folder):
            folders[:] = [each for each in folders if each[0] not in "._"]
            for name in names:
                if name[0] not in "._" and fnmatch(name, self._pattern):
                    path = Path(above, name)
                    part = path.relative_to(self.folder).as_posix()
                    try:
                        stat = path.stat()
                    except FileNotFoundError:  # gone since the folder was read
                        continue
                    found.append(_File(part, path, self._format_of(path), stat.st_size, stat.st_mtime_ns))
        return sorted(found)

    def _format_of(self, path: Path) -> Format:
        try:
            return format_of(path, self._delimiter)
        except SourceError as error:
            raise SourceError(f"source {self.name!r}: {error}, or say which are, with pattern=") from None

    def _new(self, workspace: Workspace, file: _File, cursor: Cursor, is_first: bool) -> Iterator[Batch]:
        """What is in a file behind the cursor."""
        if not file.path.exists():  # gone since the folder was read
            return
        place = cursor.places.get(file.part)
        self._refuse_other(file, place)
        if file.size and is_first:
            self._make(workspace, file)
        while file.size > (0 if place is None else place.position):
            batch = self._batch(workspace.base_version(self.relation).schema, file, place)
            if batch is None:
                break
            yield batch
            place = cursor.places[file.part]

    def _make(self, workspace: Workspace, file: _File) -> None:
        schema = self._schema
        if schema is None:
            schema = read_table(file.path).schema
            if OP in schema.names:
                schema = schema.remove(schema.get_field_index(OP))
        make_relation(workspace, self.relation, schema, self._key, self._nulls)

    def _refuse_other(self, file: _File, place: Place | None) -> None:
        """Raise SourceError where a file is not the one that was read."""
        if place is None:
            return
        is_other = _mark(file.path, place.position) != place.mark
        is_longer = file.size > place.position and not file.format.grows
        if file.size < place.position or is_other or is_longer:
            raise SourceError(
                f"source {self.name!r}: {file.path} was written anew since {place.position:,} bytes of it"
                f" were read: give what is new another name"
            )

    def _batch(self, schema: Schema, file: _File, place: Place | None) -> Batch | None:
        """The next rows of a file; None where no line has an end."""
        start = 0 if place is None else place.position
        columns = columns_of(schema)
        try:
            found = file.format.read(file.path, start, columns, self._most)
        except (SourceError, pa.ArrowException, ValueError) as error:
            raise SourceError(f"source {self.name!r}: {file.path}: {error}") from None
        if found is None:
            return None
        rows, end, text_of = found
        table = checked_rows(schema, rows)

        def origin(relation: str, number: int, reason: str) -> Rejected:
            return Rejected(file.part, start, number, reason, text_of(number))

        rejected = [origin(self.relation, *fault) for fault in sorted(rows.faults.items())]
        places = {file.part: Place(end, _mark(file.path, end))}
        changes = {self.relation: table} if table.num_rows else {}
        return Batch(changes, places, rejected, numbers={self.relation: rows.numbers}, origin=origin)


def _taken(cursor: Cursor, file: _File) -> int:
    """Bytes of a file that are in."""
    place = cursor.places.get(file.part)
    return 0 if place is None else place.position


def _mark(path: Path, position: int) -> str:
    """What tells the part of a file that was read: a checksum of its beginning and of its end."""
    with path.open("rb") as file:
        sum_ = zlib.crc32(file.read(min(position, _MARKED)))
        file.seek(max(0, position - _MARKED))
        sum_ = zlib.crc32(file.read(min(position, _MARKED)), sum_)
    return f"{sum_:08x}"
