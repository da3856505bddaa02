"""CSV files, and lists of edges as text, as tables.

Types are pyarrow's guesses from all values of a column, unless they are given.
(So a table is no stream's batches put together: a stream, in :mod:`lftj.files.file_stream`,
has to know a type before the last value has come.  How the text is written, its names, its
conversion and the words for what is wrong are those of this module for both.)
A guess that would make two values one is refused: integers beyond 64 bits,
which pyarrow takes for floats (leading zeros and plus signs are no part of a
number, so 007 and 7 are one).

Whatever is wrong is a ValueError that names the line, the column and the way
out; :mod:`lftj.files.whole_files` puts the path before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from lftj.files.csv_options import CsvOptions
from lftj.files.csv_text import BLOCK_BYTES, CsvText
from lftj.files.csv_types import converted, read_as
from lftj.files.stored_file import StoredFile
from lftj.files.whole_numbers import EXACT, is_exact, may_merge

MOST_BLOCK_BYTES = 1 << 30
"""A row is no longer than this."""

_INTEGER = r"^\s*[+-]?[0-9]+\s*$"


def read_csv(
    file: StoredFile,
    columns: Sequence[str] | None,
    options: CsvOptions | None,
    advance: Callable[[float], None],
    edges: bool = False,
) -> pa.Table:
    """A CSV file's table; only ``columns`` are read, where it has them all.

    Args:
        columns: Names for a file without a header, else which columns are wanted.
        edges: Whether it is a list of edges (see :class:`lftj.files.csv_text.CsvText`).
    """
    options = CsvOptions() if options is None else options
    text = CsvText(file, options, edges)
    names = column_names(text, columns, options)
    wanted = list(columns) if columns is not None and set(columns) <= set(names) else None
    convert = convert_options(options, options.types, wanted)
    table = _read(text, names, convert, advance)
    _refuse_inexact(text, names, table, options)
    for place, name in enumerate(table.column_names):
        if name in options.types:
            field = pa.field(name, options.types[name])
            chunks = [converted(chunk, field) for chunk in table.column(place).chunks]
            table = table.set_column(place, field, pa.chunked_array(chunks, field.type))
    return table


def column_names(text: CsvText, columns: Sequence[str] | None, options: CsvOptions) -> list[str]:
    """The names of the file's columns.

    Raises ValueError where they are in doubt, or don't fit the options.
    """
    if not text.first:
        raise ValueError(_no_row(text))
    line = text.delimiter.join(text.first)[:80]
    names = list(text.first)
    if not text.has_header:
        if columns is None:
            raise ValueError(f"its first line, {line!r}, has no column names: give them, as columns=[...]")
        names = list(columns)
    elif options.header is None and columns and len(columns) == len(names) and not set(columns) & set(names):
        raise ValueError(
            f"its first line, {line!r}, is taken for column names, and {columns[0]!r} is not among them:"
            " if it is a row like others, say so, as csv=lftj.CsvOptions(header=False)"
        )
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two columns are named {name!r} in its first line, {line!r}: names must differ")
    for name in options.types:
        if name not in names:
            raise ValueError(f"the CSV options give a type for column {name!r}; there are {', '.join(names)}")
    return names


def _no_row(text: CsvText) -> str:
    if not text.file.size:
        return "the file is empty"
    return "there is no row in it" + (" but comments, which begin with # or %" if text.edges else "")


def parse_options(text: CsvText) -> arrow_csv.ParseOptions:
    quote = text.quote or False
    return arrow_csv.ParseOptions(delimiter=text.delimiter, quote_char=quote, newlines_in_values=True)


def convert_options(
    options: CsvOptions, types: Mapping[str, pa.DataType], include: Sequence[str] | None = None
) -> arrow_csv.ConvertOptions:
    return arrow_csv.ConvertOptions(
        column_types={name: read_as(wanted) for name, wanted in types.items()},
        include_columns=include,
        null_values=None if options.nulls is None else list(options.nulls),
        strings_can_be_null=options.nulls is not None,
    )


def _read(
    text: CsvText,
    names: Sequence[str],
    convert: arrow_csv.ConvertOptions,
    advance: Callable[[float], None] = lambda fraction: None,
) -> pa.Table:
    block_size = BLOCK_BYTES
    while True:
        try:
            with text.open(advance) as source:
                return arrow_csv.read_csv(
                    pa.PythonFile(source, mode="r"),
                    read_options=arrow_csv.ReadOptions(
                        column_names=None if text.has_header else list(names), block_size=block_size
                    ),
                    parse_options=parse_options(text),
                    convert_options=convert,
                )
        except pa.ArrowInvalid as error:
            if "straddling object" not in str(error) or block_size >= MOST_BLOCK_BYTES:
                raise ValueError(
                    text.ragged(len(names)) or _unconverted(text, error) or _without_idle_words(error)
                ) from None
            block_size = min(block_size << 4, MOST_BLOCK_BYTES)


def parse_reason(error: pa.ArrowInvalid, names: Sequence[str], first_row: int) -> str:
    """What pyarrow says, with the column's name and the row counted from 0 instead of their numbers.

    ``first_row``: of what was parsed, which is its row 1.

    >>> error = pa.ArrowInvalid("In CSV column #1: Row #3: CSV conversion error to int64: invalid value 'x'")
    >>> parse_reason(error, ["a", "b"], 0)
    "column 'b', row 2 (counting from 0): conversion error to int64: invalid value 'x'"
    """
    text = re.sub(
        r"^In CSV column #(\d+): ",
        lambda match: f"column {names[int(match[1])]!r}, ",
        _without_idle_words(error),
    )
    return re.sub(r"Row #(\d+)", lambda match: f"row {first_row + int(match[1]) - 1} (counting from 0)", text)


def _without_idle_words(error: pa.ArrowInvalid) -> str:
    if "straddling object" in str(error):
        return "a row is too long; Parquet and Arrow IPC hold rows of any length"
    return str(error).replace("CSV parse error: ", "").replace("CSV conversion", "conversion")


def _unconverted(text: CsvText, error: pa.ArrowInvalid) -> str | None:
    """Where the value stands that is not of the type that was given for its column."""
    match = re.match(
        r"In CSV column #(\d+): .*conversion error to (.*): invalid value '(.*)'", str(error), re.S
    )
    if not match:
        return None
    number, wanted, value = int(match[1]), match[2], match[3]
    records = text.records()
    if text.has_header:
        next(records)
    for line, fields in records:
        if fields[number].strip() == value.strip():
            return f"line {line}, column {text.named(number)}: {value[:60]!r} is not of type {wanted}"
    return None


def _refuse_inexact(text: CsvText, names: Sequence[str], table: pa.Table, options: CsvOptions) -> None:
    """Raise ValueError for the first integer that pyarrow took for a float with another value."""
    doubted = [
        field.name
        for field, values in zip(table.schema, table.columns, strict=True)
        if field.name not in options.types and may_merge(values)
    ]
    if not doubted:
        return
    as_text = _read(text, names, convert_options(options, dict.fromkeys(doubted, pa.string()), doubted))
    for name in doubted:
        values = as_text.column(name)
        integer = pc.match_substring_regex(values, _INTEGER)
        whole = pc.all(pc.filter(integer, pc.is_valid(table.column(name)))).as_py()
        large = pc.greater_equal(pc.abs(table.column(name)), EXACT)
        for row in np.flatnonzero(pc.fill_null(pc.and_(large, integer), False).to_numpy()).tolist():
            value = values[row].as_py().strip()
            if not is_exact(value) or (whole and abs(int(value)) >= 2**63):
                raise ValueError(
                    f"line {text.line_of(row)}, column {name!r}: the integer {value[:60]} "
                    + ("doesn't fit 64 bits with a sign" if whole else "is among floats, which can't hold it")
                    + f": give the column a type, as csv=lftj.CsvOptions(types={{{name!r}: 'string'}}),"
                    " or 'decimal128(38, 0)', or 'double' to have it rounded"
                )
