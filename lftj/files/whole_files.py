"""Files that tables are read from: Parquet, CSV, Arrow IPC, JSON lines, lists of edges.

The suffix tells the kind; where it is unknown, the file's first bytes do.
Several files are one table when all have the same columns, in any order, with
values of the same domains: a column that a file lacks would be NULL in its
rows, which no relation holds, so it is refused, not made up.

Whatever goes wrong is one :class:`~lftj.errors.SourceError` that begins with
the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa

from lftj.errors import SourceError, UnsupportedTypeError
from lftj.files.arrow_files import IPC_MAGIC, TABLE_BATCH_ROWS, open_ipc, open_parquet
from lftj.files.csv_files import read_csv
from lftj.files.csv_options import CsvOptions
from lftj.files.json_files import read_json
from lftj.files.locations import PARQUET_SUFFIXES, LocatedFiles
from lftj.files.stored_file import StoredFile, suffix_of
from lftj.process.progress import bar
from lftj.values.domains import Domains

Columns = Sequence[str] | None

READ_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError)
"""What pyarrow and the modules beside this one raise for a file that is wrong."""

PARQUET, IPC, CSV, JSON, EDGES = "Parquet", "Arrow IPC", "CSV", "JSON lines", "a list of edges"

_KINDS = {
    **dict.fromkeys(PARQUET_SUFFIXES, PARQUET),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), IPC),
    **dict.fromkeys((".csv", ".tsv"), CSV),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), JSON),
    ".txt": EDGES,
}

READABLE = (
    "Parquet (.parquet), CSV (.csv, .tsv), Arrow IPC (.arrow, .feather), JSON lines (.jsonl, .ndjson)"
    " and lists of edges (.txt) can"
)


def read_files(
    found: LocatedFiles, columns: Columns, csv: CsvOptions | None, progress: bool | None
) -> pa.Table:
    """The table of one or several files; of Parquet and CSV only ``columns`` are read.

    ``csv``: how CSV files and lists of edges are written; other kinds of files are refused then.
    """
    if len(found.files) == 1 and not found.partitions:
        return read_file(found.files[0], columns, csv, progress)
    tables = []
    for number, file in enumerate(found.files):
        extra = found.partitions[number] if found.partitions else {}
        own = None if columns is None else [name for name in columns if name not in extra]
        table = read_file(file, own or None, csv, progress)
        for name, value in extra.items():
            if name not in table.column_names:  # some writers put it into the files as well
                table = table.append_column(name, value.take(pa.repeat(0, table.num_rows)))
        wanted = columns is not None and set(columns) <= set(table.column_names)
        tables.append(table.select(list(columns)) if columns is not None and wanted else table)
    return _joined([file.label for file in found.files], tables)


def read_file(file: StoredFile, columns: Columns, csv: CsvOptions | None, progress: bool | None) -> pa.Table:
    kind = kind_of(file, csv is not None)
    if csv is not None and kind not in (CSV, EDGES):
        raise SourceError(f"{file.label}: this is {kind}; csv= says how CSV files are written")
    with (
        read_errors(file.label, kind),
        bar(f"reading {file.name}", progress) as advance,
        ExitStack() as stack,
    ):
        if kind == PARQUET:
            return open_parquet(file, stack, TABLE_BATCH_ROWS, columns).table(advance)
        if kind == IPC:
            return open_ipc(file, stack).table(advance)
        if kind == JSON:
            return read_json(file)
        return read_csv(file, columns, csv, advance, edges=kind == EDGES)


@contextmanager
def read_errors(label: str, kind: str = "") -> Iterator[None]:
    """Whatever goes wrong in the block with what ``label`` names is a SourceError that begins with it."""
    try:
        yield
    except READ_ERRORS as error:
        as_kind = f" as {kind}" if kind else ""
        raise SourceError(f"{label}: can't be read{as_kind}: {reason(error)}") from None


def kind_of(file: StoredFile, is_csv: bool = False) -> str:
    """Which kind of file it is.  Raises SourceError when it is none that can be read.

    ``is_csv``: whether the user says that it is CSV, if its name says nothing.
    """
    kind = _KINDS.get(file.suffix)
    if kind in (CSV, EDGES, JSON):
        return kind
    try:
        start = file.head(8)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{file.label}: can't be opened: {reason(error)}") from None
    if not start:
        raise SourceError(f"{file.label}: the file is empty")
    if kind == PARQUET or start.startswith(b"PAR1"):
        return PARQUET
    if kind == IPC or start.startswith((IPC_MAGIC, b"\xff\xff\xff\xff")):
        return IPC
    text = _kind_of_text(file.head(1 << 12)) if file.by_content else None
    if is_csv:
        return EDGES if text == EDGES else CSV
    if text is not None:
        return text
    raise SourceError(
        f"{file.label}: this is no kind of file that can be loaded; {READABLE}, compressed or not, and any"
        " text with csv=lftj.CsvOptions()"
    )


def kind_of_name(name: str) -> str | None:
    """Which kind of file a name or URL says it is, None when it says nothing."""
    return _KINDS.get(suffix_of(name.partition("?")[0]))


def _kind_of_text(start: bytes) -> str | None:
    """CSV, unless it begins with a comment or with numbers that blanks separate; None for what is no text.

    >>> [_kind_of_text(start) for start in (b"first name", b"# x, y", b"1 2", b'{"a": 1}', b"PK\\3\\4")]
    ['CSV', 'a list of edges', 'a list of edges', 'JSON lines', None]
    """
    mark = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not mark and any(code < 32 and code not in b"\t\n\r\f" for code in start):
        return None
    first = start.lstrip().partition(b"\n")[0]
    if first.startswith(b"{"):
        return JSON
    fields = first.split()
    numbers = len(fields) > 1 and all(re.fullmatch(rb"[-+.eE0-9]+", field) for field in fields)
    return EDGES if numbers or first.startswith((b"#", b"%")) else CSV


def _joined(labels: Sequence[str], tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several files.  Raises SourceError unless their columns are the same."""
    names = tables[0].column_names
    for label, table in zip(labels, tables, strict=True):
        if set(table.column_names) != set(names):
            common = [name for name in names if all(name in other.column_names for other in tables)]
            more, fewer = (label, labels[0]), (table.column_names, names)
            if not set(fewer[0]) - set(fewer[1]):
                more, fewer = more[::-1], fewer[::-1]
            missing = ", ".join(repr(name) for name in fewer[0] if name not in fewer[1])
            way_out = (
                f"take the columns that all files have, as columns={common}" if common else "load them apart"
            )
            raise SourceError(
                f"{more[1]} lacks {missing}, which {more[0]} has: its rows would hold NULL there; {way_out}"
            )
    columns = []
    for name in names:
        parts = [table.column(name) for table in tables]
        columns.append(_joined_column(name, labels, parts))
    return pa.table(dict(zip(names, columns, strict=True)))


def _joined_column(name: str, labels: Sequence[str], parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    plain = [part.cast(part.type.value_type) if pa.types.is_dictionary(part.type) else part for part in parts]
    if len({part.type for part in parts}) == 1:
        plain = list(parts)
    typed = [number for number, part in enumerate(plain) if not pa.types.is_null(part.type)]
    domains = Domains()
    try:
        kinds = {number: domains.of(plain[number].type) for number in typed}
    except UnsupportedTypeError as error:
        raise SourceError(f"{labels[0]}: column {name!r}: {error}") from None
    for number in typed:
        if kinds[number] is not kinds[typed[0]]:
            raise SourceError(
                f"column {name!r} is of type {plain[typed[0]].type} in {labels[typed[0]]} and of type"
                f" {plain[number].type} in {labels[number]}: give it one type in all files"
            )
    try:
        tables = [pa.table({name: part}) for part in plain]
        return pa.concat_tables(tables, promote_options="permissive").column(0)
    except pa.ArrowException as error:
        raise SourceError(f"column {name!r} of {labels[0]} and others: {reason(error)}") from None


def reason(error: BaseException) -> str:
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "magic bytes not found" in text or text == "Not an Arrow file":
        return "the file is truncated or damaged, or of another kind"
    return text.rstrip(".")
