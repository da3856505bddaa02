"""Files that tables are read from: Parquet, CSV, Arrow IPC.

The suffix tells the kind; where it is unknown, the file's first bytes do.
Whatever goes wrong is one :class:`~lftj.errors.SourceError` that begins with
the path.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from lftj.errors import SourceError
from lftj.progress import bar

Columns = Sequence[str] | None

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")


def read_file(path: Path, columns: Columns, progress: bool) -> pa.Table:
    """A file's table; of Parquet only ``columns`` is read, of the other kinds all columns.

    A directory is read as one Parquet table of all its Parquet files.
    """
    if not path.exists():
        raise SourceError(f"{path}: there is no such file")
    kind, read = kind_of(path)
    try:
        with bar(f"reading {path.name}", progress) as advance:
            return read(path, columns, advance)
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        raise SourceError(f"{path}: can't be read as {kind}: {reason(error)}") from None


def kind_of(path: Path) -> tuple[str, Callable[[Path, Columns, Callable[[float], None]], pa.Table]]:
    if path.is_dir():
        return "a folder of Parquet files", _read_folder
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in (".csv", ".tsv"):
        return "CSV", _read_csv
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise SourceError(f"{path}: can't be opened: {error.strerror}") from None
    if not start:
        raise SourceError(f"{path}: the file is empty")
    if suffix in (".parquet", ".pq") or start.startswith(b"PAR1"):
        return "Parquet", _read_parquet
    if suffix in (".arrow", ".arrows", ".feather", ".ipc") or start.startswith(
        (b"ARROW1", b"\xff\xff\xff\xff")
    ):
        return "Arrow IPC", _read_ipc
    raise SourceError(
        f"{path}: this is no kind of file that can be loaded;"
        " Parquet (.parquet), CSV (.csv, .tsv, also .gz) and Arrow IPC (.arrow, .feather) can"
    )


def reason(error: BaseException) -> str:
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "magic bytes not found" in text or text == "Not an Arrow file":
        return "the file is truncated or damaged, or of another kind"
    return text.rstrip(".")


def _read_parquet(path: Path, columns: Columns, advance: Callable[[float], None]) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=True) as file:
        # Unknown names are left to the caller, who knows what to say about them.
        wanted = (
            None if columns is None or not set(columns) <= set(file.schema_arrow.names) else list(columns)
        )
        n_groups = file.num_row_groups
        if n_groups < 2:
            return file.read(wanted)
        # A few groups at a time: enough to decode on all processors, and progress to show.
        step = max(1, n_groups // 8)
        parts = []
        for group in range(0, n_groups, step):
            parts.append(file.read_row_groups(range(group, min(group + step, n_groups)), wanted))
            advance(min(group + step, n_groups) / n_groups)
        return pa.concat_tables(parts)


def _read_folder(path: Path, columns: Columns, advance: Callable[[float], None]) -> pa.Table:
    import pyarrow.parquet as pq

    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in (".parquet", ".pq"))
    if not files:
        raise ValueError("there is no Parquet file in it")
    return pq.read_table(path)


def _read_ipc(path: Path, columns: Columns, advance: Callable[[float], None]) -> pa.Table:
    from pyarrow import ipc

    with path.open("rb") as file:
        start = file.read(6)
    with pa.memory_map(str(path)) as source:
        opened = ipc.open_file(source) if start == b"ARROW1" else ipc.open_stream(source)
        return opened.read_all()


def _read_csv(path: Path, columns: Columns, advance: Callable[[float], None]) -> pa.Table:
    import pyarrow.csv as arrow_csv

    delimiter = "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ","
    names = first_row(path, delimiter)
    headless = bool(names) and all(is_number(name) for name in names)
    if headless and columns is None:
        first = delimiter.join(names)
        raise ValueError(f"its first line, {first!r}, has no column names: give them, as columns=[...]")
    try:
        return arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=list(columns) if headless and columns else None),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        )
    except pa.ArrowInvalid as error:
        ragged = ragged_line(path, delimiter, len(columns) if headless and columns else len(names))
        raise ValueError(ragged or str(error).removeprefix("CSV parse error: ")) from None


def _text_of(path: Path) -> io.TextIOWrapper:
    """The file's text, decompressed."""
    return io.TextIOWrapper(pa.input_stream(str(path)), encoding="utf-8-sig", errors="replace", newline="")


def first_row(path: Path, delimiter: str) -> list[str]:
    with _text_of(path) as text, suppress(csv.Error):
        for row in csv.reader(text, delimiter=delimiter):
            if row:
                return row
    return []


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def ragged_line(path: Path, delimiter: str, width: int) -> str | None:
    """Where the first row stands that has not ``width`` fields; pyarrow counts rows, not lines."""
    if not width:
        return None
    with _text_of(path) as text, suppress(csv.Error, OSError, EOFError):
        reader = csv.reader(text, delimiter=delimiter)
        line = 1
        for row in reader:
            if row and len(row) != width:
                fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
                return f"line {line} has {fields} instead of {width}: {delimiter.join(row)[:80]!r}"
            line = reader.line_num + 1
    return None
