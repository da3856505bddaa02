"""`to_parquet`: the changes of a head as Parquet files, one for each step from version to version.

    revenue-00000000000000000041.parquet      all rows as of version 41, each with op I
    revenue-00000000000000000047.parquet      what happened up to version 47: rows with op D, then with op I

Their rows in the order of the files are what `maintenance.sources.files.files` reads.

Invariant: a file is there whole or not at all, and its name is the version that it leads to, so none is
written twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lftj.errors import SinkError
from maintenance.sinks.sink import Sink, operations_of
from maintenance.sources.cursor import Cursor
from maintenance.store.disk import Disk
from maintenance.store.new_file import replacing
from maintenance.workspace.follower import HeadChange
from maintenance.workspace.workspace import Workspace

_WORKSPACE = b"lftj.workspace"


def to_parquet(folder: str | os.PathLike[str], head: str, *, name: str | None = None) -> ParquetSink:
    """The changes of a head as files of a folder, which is made where it is not there.

    ``name``: of the sink; by default ``<head>_to_parquet``.
    """
    return ParquetSink(Path(folder).absolute(), head, name)


class ParquetSink(Sink):
    """Made by `to_parquet`."""

    def __init__(self, folder: Path, head: str, name: str | None) -> None:
        super().__init__(head, f"{head}_to_parquet" if name is None else name)
        self.folder = folder

    def __repr__(self) -> str:
        return f"<{self.head!r} to Parquet files in {os.fspath(self.folder)!r}>"

    @property
    def _way_out(self) -> str:
        return "empty the folder, or take another one, and it is written anew"

    @contextmanager
    def _opened(self, workspace: Workspace, identifier: str, cursor: Cursor) -> Generator[_Folder]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            yield _Folder(self, identifier)
        except OSError as error:
            raise SinkError(f"sink {self.name!r}: {self.folder}: {error.strerror or error}") from None


class _Folder:
    """The files of a head."""

    def __init__(self, sink: ParquetSink, identifier: str) -> None:
        from pyarrow import parquet

        self._sink, self._identifier, self._disk = sink, identifier, Disk()
        name = re.compile(re.escape(sink.head) + r"-(\d{20})\.parquet")
        found = [match for path in sink.folder.iterdir() if (match := name.fullmatch(path.name))]
        self.version: int | None = None
        if found:
            last = max(found, key=lambda match: match[0])
            written = parquet.read_schema(sink.folder / last[0]).metadata or {}
            if written.get(_WORKSPACE) != identifier.encode():
                raise SinkError(
                    f"sink {sink.name!r}: {sink.folder / last[0]} is of another workspace: {sink._way_out}"
                )
            self.version = int(last[1])

    def begin(self, all_rows: HeadChange) -> None:
        self.add(all_rows)

    def add(self, change: HeadChange) -> None:
        from pyarrow import parquet

        path = self._sink.folder / f"{self._sink.head}-{change.version:020}.parquet"
        rows = operations_of(change.table).replace_schema_metadata({_WORKSPACE: self._identifier.encode()})
        with replacing(self._disk, path.with_name(f".{path.name}"), path) as file:
            parquet.write_table(rows, file)
        self.version = change.version
