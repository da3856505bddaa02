"""A feed as a stream of record batches, each given out as soon as its rows have come.

Of CSV text a blank line, of an Arrow IPC stream a batch without rows says that
what came before it is complete: a *mark*.  Content of other kinds, compressed
or not, can't be read before its end and has no marks.

Invariants

1. No row waits for a later one.
2. Whatever goes wrong is a :class:`~lftj.errors.SourceError` that begins with
   the feed's name, as in :mod:`lftj.files.file_stream`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from lftj.files.arrow_files import validated
from lftj.files.csv_feed import CsvFeed
from lftj.files.csv_options import CsvOptions
from lftj.files.file_stream import FileStream, HeldOpen
from lftj.files.incoming import Incoming, feed_name
from lftj.files.stored_file import StoredFile
from lftj.files.whole_files import read_errors

_WHOLE = (b"PAR1", b"ARROW1", b"{", b"\x1f\x8b", b"(\xb5/\xfd", b"\x04\x22\x4d\x18", b"BZh")
"""First bytes of what is read to its end: Parquet, Arrow IPC files, JSON lines, compressed content."""

_ARROW_STREAM = b"\xff\xff\xff\xff"


class Feed(HeldOpen):
    """The rows of a feed, once and in order; a context manager.

    Args:
        path: See :func:`lftj.files.incoming.is_feed`.
        types: For CSV, types by column; columns that are not among them get the type of the first values
            that come.
        csv: How CSV text is written.

    Attributes:
        incoming: Its bytes; whoever can be interrupted says so there.

    The feed is ready when its first row has come, or its end.  Raises SourceError, here and while rows are
    taken.
    """

    fraction = 0.0
    """How much has been read: of what has no end one can't tell."""

    def __init__(self, path: str, types: Mapping[str, pa.DataType], csv: CsvOptions | None = None) -> None:
        self.name = feed_name(path)
        with ExitStack() as stack, read_errors(self.name):
            self.incoming = stack.enter_context(Incoming(path))
            start = self.incoming.peek(8)
            if start.startswith(_WHOLE):
                content = StoredFile.of_bytes(self.name, self.incoming.read(), by_content=True)
                self._rows: Any = stack.enter_context(FileStream(content, types, csv))
            elif start.startswith(_ARROW_STREAM):
                source = pa.PythonFile(self.incoming, mode="r")
                self._rows = stack.enter_context(pa.ipc.open_stream(source))
            else:
                self._rows = CsvFeed(self.incoming, types, csv or CsvOptions())
            self._batches = iter(self._rows)
            self._stack = stack.pop_all()

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def __iter__(self) -> Iterator[pa.RecordBatch | None]:
        """Batches of rows, and None for each mark."""
        while True:
            with read_errors(self.name):
                try:
                    batch = next(self._batches)
                except StopIteration:
                    return
                except (pa.ArrowException, OSError):
                    if self.incoming.stopped:  # amid a message
                        return
                    raise
                if batch is not None:
                    batch = validated(batch) if batch.num_rows else None
            yield batch
