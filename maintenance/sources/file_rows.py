"""What files of each format give as rows, from some byte on."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import SourceError
from lftj.language.diagnostics import quoted_list
from maintenance.changes.labels import WEIGHT
from maintenance.sources.json_rows import OP, Rows, plain_rows
from maintenance.sources.typed_columns import rows_of_table
from maintenance.sources.typed_text import typed

Found = tuple[Rows, int, Callable[[int], str]]
"""Rows, the byte behind them, and what gives the text of a row by its number."""


class Most(NamedTuple):
    """What is read at once of a file of lines: bytes, but for a line that is longer, and lines; None: any."""

    n_bytes: int
    lines: int | None = None


class Format(NamedTuple):
    """``grows``: whether lines may come to a file; ``read``: takes a path, the byte from which on, the
    columns that are wanted, and how much at most; None where there is no whole line."""

    grows: bool
    read: Callable[[Path, int, pa.Schema, Most], Found | None]


def format_of(path: Path, delimiter: str) -> Format:
    """By the ending of its name.  Raises SourceError."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        return Format(False, _read_parquet)
    if ending == ".csv":
        return Format(True, partial(_read_csv, delimiter))
    if ending in (".jsonl", ".ndjson", ".json"):
        return Format(True, _read_json)
    raise SourceError(f"{path} is none of .parquet, .csv, .jsonl, .ndjson and .json: keep others elsewhere")


def _lines(path: Path, start: int, most: Most, has_quotes: bool = False) -> bytes:
    """Whole lines from a byte on; ``has_quotes``: no line ends within them."""

    def may_end(text: bytes) -> bool:
        return not has_quotes or text.count(b'"') % 2 == 0

    with path.open("rb") as file:
        file.seek(start)
        text = file.read(most.n_bytes)
        while True:
            end = text.rfind(b"\n") + 1
            while end and not may_end(text[:end]):
                end = text.rfind(b"\n", 0, end - 1) + 1
            if end:
                return _first(text[:end], most.lines, has_quotes)
            more = file.read(most.n_bytes)
            if not more:
                return b""
            text += more


def _first(text: bytes, most: int | None, has_quotes: bool) -> bytes:
    """The first lines of several.

    >>> _first(b'1,"a\\nb"\\n2,c\\n3,d\\n', 2, True)
    b'1,"a\\nb"\\n2,c\\n'
    """
    if most is None or text.count(b"\n") <= most:
        return text
    data = np.frombuffer(text, np.uint8)
    is_end = data == ord("\n")
    if has_quotes:
        is_end &= np.cumsum(data == ord('"')) % 2 == 0
    ends = np.flatnonzero(is_end)
    return text[: ends[min(most, len(ends)) - 1] + 1]


def _read_json(path: Path, start: int, columns: pa.Schema, most: Most) -> Found | None:
    lines = _lines(path, start, most)
    if not lines:
        return None
    texts = [line for line in lines.split(b"\n") if line.strip()]
    return (
        plain_rows(texts, columns),
        start + len(lines),
        lambda number: texts[number].decode(errors="backslashreplace"),
    )


def _read_csv(delimiter: str, path: Path, start: int, columns: pa.Schema, most: Most) -> Found | None:
    """Lines of values; the first line of the file has the names."""
    from pyarrow import csv

    header = _lines(path, 0, Most(1 << 16))
    header = header[: header.find(b"\n") + 1]
    if not header:
        return None
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    names = csv.read_csv(io.BytesIO(header), parse_options=parse).column_names
    _refuse_columns(path, names, columns)
    start = max(start, len(header))
    lines = _lines(path, start, most, has_quotes=True)
    if not lines:
        return None
    faults: dict[int, str] = {}
    texts: dict[int, str] = {}

    def note(row: Any) -> str:
        faults[row.number - 1] = f"it has {row.actual_columns} values, not {row.expected_columns}"
        texts[row.number - 1] = row.text
        return "skip"

    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note)
    read = csv.ReadOptions(use_threads=False, column_names=names, block_size=len(lines) + 1)
    convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    table = csv.read_csv(io.BytesIO(lines), read, parse, convert).combine_chunks()
    numbers = np.setdiff1d(np.arange(table.num_rows + len(faults)), list(faults))
    values, wrong = [], np.zeros(len(numbers), bool)
    for column in columns:
        given = table[column.name].combine_chunks()
        if column.type not in (pa.string(), pa.large_string()):
            given = pc.if_else(pc.equal(given, ""), pa.scalar(None, given.type), given)
        array, rows = typed(given, column.type)
        for row in rows:
            wrong[row] = True
            text = f"column {column.name!r}: {given[row].as_py()!r} is not {column.type}"
            faults.setdefault(int(numbers[row]), text)
        values.append(array)
    ops = pa.nulls(table.num_rows, pa.string())
    if OP in names and OP not in columns.names:
        ops = table[OP].combine_chunks()
        ops = pc.if_else(pc.equal(ops, ""), pa.scalar(None, ops.type), ops)
    places = {int(number): row for row, number in enumerate(numbers)} if faults else {}

    def text_of(number: int) -> str:
        if number in texts:
            return texts[number]
        row = table.slice(places[number] if places else number, 1).to_pylist()[0]
        return delimiter.join(row.values())

    found = Rows(values, ops, numbers, faults).taken(np.flatnonzero(~wrong))
    return found, start + len(lines), text_of


def _read_parquet(path: Path, start: int, columns: pa.Schema, most: Most) -> Found | None:
    """All of the file: it is whole when it is there."""
    from pyarrow import parquet

    table = parquet.read_table(path)
    _refuse_columns(path, table.column_names, columns)
    ops = pa.nulls(table.num_rows, pa.string())
    if OP in table.column_names and OP not in columns.names:
        ops = table[OP].combine_chunks().cast(pa.string())
    rows = rows_of_table(table, columns, ops)
    return rows, path.stat().st_size, lambda number: str(table.slice(number, 1).to_pylist()[0])


def _refuse_columns(path: Path, names: list[str], columns: pa.Schema) -> None:
    if WEIGHT in names and WEIGHT not in columns.names:
        raise SourceError(
            f"a column {WEIGHT!r} would say how often rows come and go: say {OP!r}, I or D, in its place, or"
            " have it among the relation's columns"
        )
    missing = [name for name in columns.names if name not in names]
    if missing:
        raise SourceError(
            f"there is no column {missing[0]!r}; there are {quoted_list(names, 'and')}: put it back, or load"
            " the relation anew without it"
        )
