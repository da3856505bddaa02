"""JSON lines as tables: one object per line, whose keys are columns.

pyarrow finds the types, from all lines: texts that are dates and times all
through become timestamps, and an object without a key has NULL there.  Integers
beyond 64 bits, which it takes for floats, are refused.

It counts rows from where a block begins, so a fault costs one more pass, by
Python's ``json``, that names the line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lftj.files.arrow_files import validated
from lftj.files.stored_file import StoredFile
from lftj.files.whole_numbers import is_exact, may_merge

BLOCK_BYTES = 1 << 20
"""Text that is converted at a time."""

MOST_BLOCK_BYTES = 1 << 30
"""A line is no longer than this."""

_KINDS = {
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    dict: "an object",
    list: "an array",
}


def read_json(file: StoredFile) -> pa.Table:
    """A table of JSON lines.  Raises ValueError."""
    import pyarrow.json as arrow_json

    start = file.head(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        raise ValueError("there is no row in it" if file.size else "the file is empty")
    if start.startswith(b"["):
        raise ValueError("it is one JSON array; JSON lines are objects, {...}, one on each line")
    block_size = BLOCK_BYTES
    while True:
        raw, source = file.streams()
        try:
            with raw, source:
                table = arrow_json.read_json(source, arrow_json.ReadOptions(block_size=block_size))
            validated(table)  # pyarrow takes any bytes for text
            break
        except (pa.ArrowInvalid, ValueError) as error:
            if "straddling object" not in str(error) or block_size >= MOST_BLOCK_BYTES:
                raise ValueError(_fault(file) or str(error).removeprefix("JSON parse error: ")) from None
            block_size = min(block_size << 4, MOST_BLOCK_BYTES)
    _refuse_inexact(file, table)
    return table


def _rows(file: StoredFile) -> Iterator[tuple[int, Any]]:
    """The values of the file, with their lines, counting from 1.  Raises ValueError."""
    decoder = json.JSONDecoder(object_pairs_hook=_keys_once)
    raw, source = file.streams()
    with raw, source, io.BufferedReader(source) as lines:
        for number, line in enumerate(lines, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                while text:
                    row, end = decoder.raw_decode(text)
                    yield number, row
                    text = text[end:].lstrip()
            except UnicodeDecodeError as error:
                raise ValueError(f"line {number}: byte {error.start} is not UTF-8 text, as JSON is") from None
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None


def _keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"column {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return row


def _fault(file: StoredFile) -> str | None:
    """Where the first line stands that does not go with those before."""
    kinds: dict[str, str] = {}
    try:
        for number, row in _rows(file):
            if not isinstance(row, dict):
                return f"line {number} is {_KINDS.get(type(row), 'null')}; JSON lines are objects, {{...}}"
            for name, value in row.items():
                kind = _KINDS.get(type(value))
                if kind is not None and kinds.setdefault(name, kind) != kind:
                    return f"line {number}, column {name!r} is {kind}, where there was {kinds[name]} before"
    except ValueError as error:
        return str(error)
    return None


def _refuse_inexact(file: StoredFile, table: pa.Table) -> None:
    """Raise ValueError for the first integer that pyarrow took for a float."""
    doubted = {
        field.name for field, values in zip(table.schema, table.columns, strict=True) if may_merge(values)
    }
    for number, row in _rows(file) if doubted else ():
        for name in doubted & row.keys():
            value = row[name]
            if type(value) is int and (abs(value) >= 2**63 or not is_exact(str(value))):
                raise ValueError(
                    f"line {number}, column {name!r}: the integer {str(value)[:60]} doesn't fit 64 bits with"
                    " a sign, or is among floats, which can't hold it: write it as a text, in quotes"
                )
