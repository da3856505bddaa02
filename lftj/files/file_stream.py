"""Files as a stream of record batches: for rows that are used up one after the other.

Invariants

1. Memory is bounded by a few batches, whatever the size of the file; of Arrow
   IPC files and uncompressed Parquet pages the system maps what is read.
2. CSV columns are converted to the types that the caller gives; a type is never
   guessed for them.
3. Whatever goes wrong is a :class:`~lftj.errors.SourceError` that begins with
   the path, as in :mod:`lftj.files.whole_files`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from lftj.errors import SourceError
from lftj.files.arrow_files import Opened, open_ipc, open_parquet
from lftj.files.csv_files import column_names, convert_options, parse_options, parse_reason
from lftj.files.csv_options import CsvOptions
from lftj.files.csv_text import BLOCK_BYTES, CsvText
from lftj.files.csv_types import converted
from lftj.files.stored_file import StoredFile
from lftj.files.whole_files import CSV, EDGES, IPC, PARQUET, kind_of, read_errors

BATCH_ROWS = 1 << 16
"""Rows of a batch at most."""

Types = Mapping[str, pa.DataType]
Batches = Iterator[pa.RecordBatch]


class HeldOpen:
    """What is open until the block is left that it is the context manager of."""

    _stack: ExitStack

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


class FileStream(HeldOpen):
    """The rows of a Parquet, CSV or Arrow IPC file, or of a list of edges, once and in order.

    A context manager.

    Args:
        path: The file, also as stored.  The suffix tells its kind, where it is unknown the first bytes.
        types: For CSV, types by column; columns that are not among them get the type of their first values.
            The other kinds of files have types of their own.
        csv: How a CSV file is written.

    Raises SourceError, here and while the rows are taken.
    """

    def __init__(
        self, path: str | os.PathLike[str] | StoredFile, types: Types, csv: CsvOptions | None = None
    ) -> None:
        file = path if isinstance(path, StoredFile) else _stored(Path(path))
        self.path = file.label
        self._kind = kind_of(file, csv is not None)
        if self._kind not in _OPENERS:
            raise SourceError(
                f"{self.path}: {self._kind} can't be read a part at a time; Parquet and CSV can"
            )
        with ExitStack() as stack, read_errors(self.path, self._kind):
            self._opened = _OPENERS[self._kind](file, types, csv or CsvOptions(), stack)
            self._stack = stack.pop_all()

    @property
    def schema(self) -> pa.Schema:
        return self._opened.schema

    @property
    def fraction(self) -> float:
        """How much of the file has been read, 0 to 1."""
        return self._opened.fraction()

    def __iter__(self) -> Batches:
        while True:
            with read_errors(self.path, self._kind):
                batch = next(self._opened.batches, None)
            if batch is None:
                return
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


def _stored(path: Path) -> StoredFile:
    if not path.exists():
        raise SourceError(f"{path}: there is no such file")
    if not path.is_file():
        raise SourceError(f"{path}: this is not a regular file")
    try:
        return StoredFile.at(path)
    except OSError as error:
        raise SourceError(f"{path}: can't be opened: {error.strerror}") from None


def _open_parquet(file: StoredFile, types: Types, csv: CsvOptions, stack: ExitStack) -> Opened:
    return open_parquet(file, stack, BATCH_ROWS)


def _open_ipc(file: StoredFile, types: Types, csv: CsvOptions, stack: ExitStack) -> Opened:
    return open_ipc(file, stack)


def _open_csv(file: StoredFile, types: Types, csv: CsvOptions, stack: ExitStack) -> Opened:
    import pyarrow.csv as arrow_csv

    text = CsvText(file, csv, edges=kind_of(file, is_csv=True) == EDGES)
    if text.first and not text.has_header:
        raise ValueError(f"its first line, {text.delimiter.join(text.first)!r}, has no column names")
    names = column_names(text, None, csv)
    known = {**{name: wanted for name, wanted in types.items() if name in names}, **csv.types}

    @contextmanager
    def better_errors() -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            raise ValueError(text.ragged(len(names)) or parse_reason(error, names, -1)) from None

    source = stack.enter_context(text.open())
    with better_errors():
        reader = arrow_csv.open_csv(
            pa.PythonFile(source, mode="r"),
            # Several threads lose count of the rows, and the message of an error its place.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=parse_options(text),
            convert_options=convert_options(csv, known),
        )
    stack.enter_context(reader)
    schema = pa.schema([(field.name, known.get(field.name, field.type)) for field in reader.schema])
    n_blocks = 0

    def batches() -> Batches:
        nonlocal n_blocks
        while True:
            with better_errors():
                batch = next(reader, None)
            if batch is None:
                return
            n_blocks += 1
            arrays = [converted(a, field) for a, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def fraction() -> float:
        # The reader is far ahead: of what it has read, a batch has had one block.
        return min(source.fraction, n_blocks * BLOCK_BYTES / (file.size or 1))

    return Opened(schema, batches(), fraction)


_OPENERS: dict[str, Callable[[StoredFile, Types, CsvOptions, ExitStack], Opened]] = {
    PARQUET: _open_parquet,
    IPC: _open_ipc,
    CSV: _open_csv,
    EDGES: _open_csv,
}
