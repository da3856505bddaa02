"""Results out: a stream of record batches into a file, onto stdout as CSV, or onto a terminal as a table.

Invariants

1. A file appears under its name only when it is complete: rows go to a
   temporary file beside it, which takes its place by one rename at the end and
   is removed when anything stops the run.
2. Memory is bounded by one batch (Parquet: one row group of at most
   ``ROW_GROUP_ROWS`` rows), whatever the size of the result.
3. Parquet and Arrow files hold the types as they are (Parquet has one kind of
   date: ``date32``).  CSV knows text only: binary values are written as
   hexadecimal digits, as in the literal ``x"00ff"``.
"""

from __future__ import annotations

import csv
import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa

from lftj.errors import RangeError, UnsupportedTypeError
from lftj.values.kinds import kind
from lftj.values.shown_text import counted
from lftj.values.spelling import spelled

ROW_GROUP_ROWS = 1 << 20


class Writer(Protocol):
    """What the writers of pyarrow have in common."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


def write_file(batches: Iterable[pa.RecordBatch], path: str | os.PathLike[str]) -> int:
    """Write ``batches`` (at least one; all of one schema) to ``path`` in the format that its suffix names.

    Returns:
        The number of rows written.

    Raises:
        OSError: The file cannot be written.  Nothing is left behind then, and a
            file that was there before is as it was.
    """
    target = check_target(path)
    with replacing(target) as file:
        return _write(batches, file, FORMATS[target.suffix.lower()])


def batches_of(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows of a table as at least one batch."""
    return table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]


@contextmanager
def file_writer(path: str | os.PathLike[str], schema: pa.Schema) -> Iterator[Writer]:
    """A writer of batches, as :func:`write_file` but for a caller who has them one at a time.

    The file is there when the block ends well; the same errors.
    """
    target = check_target(path)
    with replacing(target) as file, _closed(FORMATS[target.suffix.lower()](file, schema)) as writer:
        yield writer


@contextmanager
def csv_writer(file: IO[bytes], schema: pa.Schema) -> Iterator[Writer]:
    """A writer of batches as CSV with a header to an open binary file."""
    with _closed(_CsvWriter(file, schema)) as writer:
        yield writer


def check_target(path: str | os.PathLike[str]) -> Path:
    """The file that :func:`write_file` writes for ``path``: to find a typo before a long run, not after.

    >>> check_target("result.xlsx")
    Traceback (most recent call last):
    OSError: 'result.xlsx' ends in none of .parquet, .csv, .arrow, .feather
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise OSError(f"{os.fspath(path)!r} ends in none of {', '.join(FORMATS)}")
    return check_place(path)


def check_place(path: str | os.PathLike[str]) -> Path:
    """The file that ``path`` names, where one can be written, whatever its format.  Raises OSError."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise OSError(f"{os.fspath(path)!r}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)!r} is there already and is not a regular file")
    return target


def write_csv(batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> int:
    """Write ``batches`` (at least one) as CSV with a header to an open binary file, and flush it.

    >>> buffer = io.BytesIO()
    >>> write_csv([pa.record_batch({"a": [1, 2], "name": ["x", "y"]})], buffer)
    2
    >>> buffer.getvalue()
    b'a,name\\n1,"x"\\n2,"y"\\n'
    """
    n_rows = _write(batches, file, _CsvWriter)
    file.flush()
    return n_rows


def format_table(batches: Iterable[pa.RecordBatch], limit: int, width: int | None = None) -> str:
    """The first ``limit`` rows of ``batches`` (at least one) as a table to read, and how many rows there are.

    All batches are taken, for the number of rows; only the first rows are kept.

    >>> print(format_table([pa.record_batch({"a": [1, 2, 3]})], limit=2, width=40))
     a
    ───
     1
     2
    3 rows, the first 2 shown
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if n_rows < limit or not head:
            head.append(batch.slice(0, max(limit - n_rows, 0)))
        n_rows += batch.num_rows

    shown = pa.Table.from_batches(head)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True)
    for field in shown.schema:
        right = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        right = right or pa.types.is_decimal(field.type)
        table.add_column(
            Text(_printable(field.name)),
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    # Not to_pylist: Python's own types do not hold every timestamp that Arrow's do.
    columns = [_texts(column).to_pylist() for column in _as_text(shown).itercolumns()]
    for row in zip(*columns, strict=True):
        table.add_row(*(Text("NULL" if value is None else _printable(value)) for value in row))
    page = io.StringIO()
    console = Console(file=page, width=width, color_system=None, highlight=False)
    console.print(table)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    count = counted(n_rows, "row")
    lines.append(f"{count}, the first {shown.num_rows} shown" if shown.num_rows < n_rows else count)
    return "\n".join(lines)


def _write(
    batches: Iterable[pa.RecordBatch], file: IO[bytes], make_writer: Callable[[IO[bytes], pa.Schema], Writer]
) -> int:
    remaining = iter(batches)
    batch = next(remaining, None)
    if batch is None:
        raise ValueError("a result is at least one batch, if only an empty one: it carries the schema")
    n_rows = 0
    with _closed(make_writer(file, batch.schema)) as writer:
        while batch is not None:
            writer.write_batch(batch)
            n_rows += batch.num_rows
            batch = next(remaining, None)
    return n_rows


@contextmanager
def _closed(writer: Writer) -> Iterator[Writer]:
    """Closes the writer at the end of the block, however it ends."""
    try:
        yield writer
    except BaseException:
        # Closed while the file is open: pyarrow would do it later, and complain that it is not.
        with suppress(Exception):
            writer.close()
        raise
    writer.close()


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """An open file that becomes ``target`` when the block ends well, and vanishes when it does not."""
    # Not tempfile: its files are private to the user, and this one is to have the usual permissions.
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class _CsvWriter:
    """pyarrow's CSV writer, for all types, and with column names in quotes only where they need them."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        from pyarrow import csv as arrow_csv

        for column in schema:
            if kind(column.type) == "list":
                raise UnsupportedTypeError(
                    f"column {column.name!r} is of type {column.type}, and CSV has no lists: write Parquet or"
                    " Arrow, or have the rule give texts, as string_agg does"
                )
        names = io.StringIO()
        csv.writer(names, lineterminator="\n").writerow(schema.names)
        file.write(names.getvalue().encode())
        text_schema = _as_text(schema.empty_table()).schema
        options = arrow_csv.WriteOptions(include_header=False)
        self._writer = arrow_csv.CSVWriter(file, text_schema, write_options=options)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        table = _as_text(pa.Table.from_batches([batch]))
        for name, column in zip(table.column_names, table.columns, strict=True):
            _refuse_far(name, column)
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


class _ParquetWriter:
    """Gathers batches into row groups of a size that readers like."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(file, schema)
        self._batches: list[pa.RecordBatch] = []
        self._n_rows = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._n_rows += batch.num_rows
        if self._n_rows >= ROW_GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._batches), row_group_size=ROW_GROUP_ROWS)
        self._batches, self._n_rows = [], 0

    def close(self) -> None:
        if self._n_rows:
            self._write_group()
        self._writer.close()


def _arrow_writer(file: IO[bytes], schema: pa.Schema) -> Writer:
    writer: Writer = pa.ipc.new_file(file, schema)
    return writer


FORMATS: dict[str, Callable[[IO[bytes], pa.Schema], Writer]] = {
    ".parquet": _ParquetWriter,
    ".csv": _CsvWriter,
    ".arrow": _arrow_writer,
    ".feather": _arrow_writer,
}
"""Suffix, in lower case, of a file that :func:`write_file` takes -> what writes it."""


def _as_text(table: pa.Table) -> pa.Table:
    """``table`` with the columns that pyarrow cannot write as text turned into strings."""
    is_binary = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    for position, field in enumerate(table.schema):
        plain = field.type
        column = table.column(position)
        if pa.types.is_dictionary(plain):
            plain = plain.value_type
            column = column.cast(plain)
        if any(test(plain) for test in is_binary):
            digits = (value.hex() for value in column.to_pylist())
            column = pa.array(digits, pa.large_string(), size=len(column))
        elif kind(plain) == "list":
            spellings = (spelled(pa.array([value], plain)) if value.is_valid else None for value in column)
            column = pa.array(spellings, pa.large_string(), size=len(column))
        elif pa.types.is_string_view(plain):
            column = column.cast(pa.large_string())
        table = table.set_column(position, field.name, column)
    return table


def _refuse_far(name: str, column: pa.ChunkedArray) -> None:
    """Raise RangeError for a date or timestamp in place of which pyarrow would write an error's text."""
    if not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
        return
    from pyarrow import compute as pc

    ends = pc.min_max(column)
    for end in (ends["min"], ends["max"]):
        if end.is_valid and end.cast(pa.string()).as_py().startswith("<"):
            raise RangeError(
                f"column {name!r}: CSV can't be written with {spelled(pa.array([end]))}: write Parquet or"
                ' Arrow, or have the rule give its text, as cast(x, "string") does'
            )


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
        return column.cast(pa.string())
    from pyarrow import compute as pc

    from lftj.values.casts import cast_kernel

    write = cast_kernel(column.type, pa.string())
    texts = [
        pc.replace_with_mask(pa.nulls(len(chunk), pa.string()), chunk.is_valid(), write(chunk.drop_null()))
        for chunk in column.chunks
    ]
    return pa.chunked_array(texts, pa.string())


def _printable(text: str) -> str:
    """``text`` with control characters escaped, so that data cannot steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
