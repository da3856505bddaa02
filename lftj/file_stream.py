"""Files as a stream of record batches: for rows that are used up one after the other.

Invariants

1. Memory is bounded by a few batches, whatever the size of the file; of Arrow
   IPC files and uncompressed Parquet pages the system maps what is read.
2. CSV columns are converted to the types that the caller gives; a type is never
   guessed for them.  Binary values are hexadecimal digits and durations the
   number of their units, as :mod:`lftj.sink` writes them.
3. Whatever goes wrong is a :class:`~lftj.errors.SourceError` that begins with
   the path, as in :mod:`lftj.files`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa

from lftj.errors import SourceError
from lftj.files import first_row, is_number, kind_of, ragged_line, reason

BATCH_ROWS = 1 << 16
"""Rows of a batch at most."""

CSV_BLOCK_BYTES = 1 << 20
"""Text that is converted at a time."""

Types = Mapping[str, pa.DataType]
Batches = Iterator[pa.RecordBatch]


class _Opened(NamedTuple):
    schema: pa.Schema
    batches: Batches
    fraction: Callable[[], float]
    """How much of the file has been read, 0 to 1."""


class FileStream:
    """The rows of a Parquet, CSV or Arrow IPC file, once and in order; a context manager.

    Args:
        path: The file.  The suffix tells its kind, where it is unknown the first bytes.
        types: For CSV, types by column; columns that are not among them get the type of their first values.
            The other kinds of files have types of their own.

    Raises SourceError, here and while the rows are taken.
    """

    def __init__(self, path: str | os.PathLike[str], types: Types) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise SourceError(f"{self.path}: there is no such file")
        if not self.path.is_file():
            raise SourceError(f"{self.path}: this is not a regular file")
        self._kind, _ = kind_of(self.path)
        with ExitStack() as stack, self._errors():
            self._opened = _OPENERS[self._kind](self.path, types, stack)
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
            with self._errors():
                batch = next(self._opened.batches, None)
            if batch is None:
                return
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)

    def __enter__(self) -> FileStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, EOFError, ValueError) as error:
            raise SourceError(f"{self.path}: can't be read as {self._kind}: {reason(error)}") from None


def _open_parquet(path: Path, types: Types, stack: ExitStack) -> _Opened:
    import pyarrow.parquet as pq

    file = stack.enter_context(pq.ParquetFile(path, memory_map=True))
    n_rows, done = file.metadata.num_rows, 0

    def batches() -> Batches:
        nonlocal done
        for batch in file.iter_batches(BATCH_ROWS):
            done += batch.num_rows
            yield batch

    return _Opened(file.schema_arrow, batches(), lambda: done / n_rows if n_rows else 1.0)


def _open_ipc(path: Path, types: Types, stack: ExitStack) -> _Opened:
    from pyarrow import ipc

    size = path.stat().st_size
    source = stack.enter_context(pa.memory_map(str(path)))
    start = source.read(6)
    source.seek(0)
    if start != b"ARROW1":
        stream = stack.enter_context(ipc.open_stream(source))
        return _Opened(stream.schema, iter(stream), lambda: source.tell() / size)
    file = stack.enter_context(ipc.open_file(source))
    done = 0

    def batches() -> Batches:
        nonlocal done
        for number in range(file.num_record_batches):
            done = number + 1
            yield file.get_batch(number)

    return _Opened(file.schema, batches(), lambda: done / (file.num_record_batches or 1))


def _open_csv(path: Path, types: Types, stack: ExitStack) -> _Opened:
    from pyarrow import csv

    delimiter = "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ","
    names = first_row(path, delimiter)
    if names and all(is_number(name) for name in names):
        raise ValueError(f"its first line, {delimiter.join(names)!r}, has no column names")
    raw = stack.enter_context(path.open("rb"))
    size = os.fstat(raw.fileno()).st_size
    codec = _CODECS.get(path.suffix.lower())
    source: pa.NativeFile = stack.enter_context(pa.PythonFile(raw, mode="r"))
    if codec is not None:
        source = stack.enter_context(pa.CompressedInputStream(source, codec))

    @contextmanager
    def better_errors() -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            raise ValueError(ragged_line(path, delimiter, len(names)) or _csv_reason(error, names)) from None

    with better_errors():
        reader = csv.open_csv(
            source,
            # Several threads lose count of the rows, and the message of an error its place.
            read_options=csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types={name: _csv_type(wanted) for name, wanted in types.items() if name in names}
            ),
        )
    stack.enter_context(reader)
    schema = pa.schema([(field.name, types.get(field.name, field.type)) for field in reader.schema])
    done = 0

    def batches() -> Batches:
        nonlocal done
        while True:
            with better_errors():
                batch = next(reader, None)
            if batch is None:
                return
            # The reader is far ahead: of what it has read, this batch has had one block.
            done = raw.tell() if codec is not None else min(done + CSV_BLOCK_BYTES, size)
            arrays = [_from_csv(a, field) for a, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return _Opened(schema, batches(), lambda: done / size)


_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}

_OPENERS: dict[str, Callable[[Path, Types, ExitStack], _Opened]] = {
    "Parquet": _open_parquet,
    "Arrow IPC": _open_ipc,
    "CSV": _open_csv,
}


def _csv_reason(error: pa.ArrowInvalid, names: list[str]) -> str:
    """What pyarrow says, with the column's name and the row counted from 0 instead of their numbers.

    >>> error = pa.ArrowInvalid("In CSV column #1: Row #3: CSV conversion error to int64: invalid value 'x'")
    >>> _csv_reason(error, ["a", "b"])
    "column 'b', row 1 (counting from 0): conversion error to int64: invalid value 'x'"
    """
    text = str(error).replace("CSV parse error: ", "").replace("CSV conversion", "conversion")
    text = re.sub(r"^In CSV column #(\d+): ", lambda match: f"column {names[int(match[1])]!r}, ", text)
    return re.sub(r"Row #(\d+)", lambda match: f"row {int(match[1]) - 2} (counting from 0)", text)


def _csv_type(wanted: pa.DataType) -> pa.DataType:
    """The type that pyarrow's CSV reader converts to, where it does not know ``wanted``."""
    if pa.types.is_dictionary(wanted):
        return _csv_type(wanted.value_type)
    if _is_binary(wanted) or pa.types.is_string_view(wanted):
        return pa.string()
    if pa.types.is_float16(wanted):
        return pa.float32()
    if pa.types.is_duration(wanted):
        return pa.int64()
    if pa.types.is_decimal32(wanted) or pa.types.is_decimal64(wanted):
        return pa.decimal128(wanted.precision, wanted.scale)
    return wanted


def _from_csv(values: pa.Array, field: pa.Field) -> pa.Array:
    wanted = field.type
    plain = wanted.value_type if pa.types.is_dictionary(wanted) else wanted
    if _is_binary(plain):
        decoded = []
        for digits in values.to_pylist():
            try:
                decoded.append(None if digits is None else bytes.fromhex(digits))
            except ValueError:
                raise ValueError(
                    f"column {field.name!r}: {digits[:40]!r} is not pairs of hexadecimal digits,"
                    " as which binary values are written"
                ) from None
        values = pa.array(decoded, plain)
    return values if values.type == wanted else values.cast(wanted)


def _is_binary(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
