"""Parquet and Arrow IPC files as record batches, and tables of all of them.

A damaged file is an error, never the end of the process: Arrow IPC is taken as
it lies in the file, so each batch is validated before anything reads it, and the
checksums of Parquet pages are compared where there are any.  (Arrow IPC has
none: a changed byte among numbers is another number.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import pyarrow as pa

from lftj.files.stored_file import StoredFile

IPC_MAGIC = b"ARROW1"

TABLE_BATCH_ROWS = 1 << 20
"""Rows of a batch of Parquet where a whole table is wanted: each brings its dictionaries anew."""


class Opened(NamedTuple):
    """A file that is being read, for as long as the stack lasts that it was opened with."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    fraction: Callable[[], float]
    """How much of the file has been read, 0 to 1."""

    def table(self, advance: Callable[[float], None] = lambda fraction: None) -> pa.Table:
        """All rows that are left.  ``advance`` is told the fraction after every batch."""
        batches = []
        for batch in self.batches:
            batches.append(batch)
            advance(self.fraction())
        return pa.Table.from_batches(batches, self.schema)


def open_parquet(
    file: StoredFile, stack: ExitStack, batch_rows: int, columns: Sequence[str] | None = None
) -> Opened:
    """A Parquet file in batches of at most ``batch_rows``; of ``columns`` only, where it has them all."""
    import pyarrow.parquet as pq

    source = stack.enter_context(file.open())
    parquet = stack.enter_context(pq.ParquetFile(source, page_checksum_verification=True))
    schema = parquet.schema_arrow
    # Unknown names are left to the caller, who knows what to say about them.
    wanted = list(columns) if columns is not None and set(columns) <= set(schema.names) else None
    if wanted is not None:
        # In the order asked for; of columns of one name all, which the caller refuses.
        fields = [field for name in wanted for field in schema if field.name == name]
        schema = pa.schema(fields, schema.metadata)
    n_rows, done = parquet.metadata.num_rows, 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal done
        for batch in parquet.iter_batches(batch_rows, columns=wanted):
            done += batch.num_rows
            yield validated(batch)

    return Opened(schema, batches(), lambda: done / n_rows if n_rows else 1.0)


def open_ipc(file: StoredFile, stack: ExitStack) -> Opened:
    """An Arrow IPC file or stream in the batches that it has, as they lie in the file."""
    from pyarrow import ipc

    source = stack.enter_context(file.open())
    size = source.size()
    if file.head(len(IPC_MAGIC)) != IPC_MAGIC:
        stream = stack.enter_context(ipc.open_stream(source))
        return Opened(stream.schema, map(validated, stream), lambda: source.tell() / size)
    opened = stack.enter_context(ipc.open_file(source))
    done = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal done
        for number in range(opened.num_record_batches):
            done = number + 1
            yield validated(opened.get_batch(number))

    return Opened(opened.schema, batches(), lambda: done / (opened.num_record_batches or 1))


def validated(data: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """The same data, in which every offset and index leads to somewhere.  Raises ValueError.

    >>> wrong = pa.DictionaryArray.from_arrays(pa.array([0, 7]), ["a"], safe=False)
    >>> validated(pa.table({"letter": wrong}))
    Traceback (most recent call last):
    ValueError: column 'letter' is damaged: ...
    """
    for name, values in zip(data.schema.names, data.columns, strict=True):
        try:
            values.validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            raise ValueError(f"column {name!r} is damaged: {str(error).strip().splitlines()[0]}") from None
    return data
