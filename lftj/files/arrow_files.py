"""Parquet and Arrow IPC files as tables.

A damaged file is an error, never the end of the process: Arrow IPC is taken as
it lies in the file, so all of it is validated before anything reads it, and the
checksums of Parquet pages are compared where there are any.  (Arrow IPC has
none: a changed byte among numbers is another number.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lftj.files.stored_file import StoredFile

IPC_MAGIC = b"ARROW1"


def read_parquet(
    file: StoredFile, columns: Sequence[str] | None, advance: Callable[[float], None]
) -> pa.Table:
    """A Parquet file's table; only ``columns`` are read, where it has them all."""
    import pyarrow.parquet as pq

    with file.open() as source, pq.ParquetFile(source, page_checksum_verification=True) as parquet:
        # Unknown names are left to the caller, who knows what to say about them.
        known = columns is not None and set(columns) <= set(parquet.schema_arrow.names)
        wanted = list(columns) if columns is not None and known else None
        n_groups = parquet.num_row_groups
        if n_groups < 2:
            return validated(parquet.read(wanted))
        # A few groups at a time: enough to decode on all processors, and progress to show.
        step = max(1, n_groups // 8)
        parts = []
        for group in range(0, n_groups, step):
            parts.append(parquet.read_row_groups(range(group, min(group + step, n_groups)), wanted))
            advance(min(group + step, n_groups) / n_groups)
        return validated(pa.concat_tables(parts))


def read_ipc(file: StoredFile) -> pa.Table:
    """An Arrow IPC file's or stream's table, as it lies in the file."""
    from pyarrow import ipc

    is_file = file.head(len(IPC_MAGIC)) == IPC_MAGIC
    with file.open() as source:
        opened = ipc.open_file(source) if is_file else ipc.open_stream(source)
        return validated(opened.read_all())


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
