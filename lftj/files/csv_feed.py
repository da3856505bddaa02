"""CSV text as it comes: the rows of each read as one batch, and the blank lines between them.

A line without anything is no row; where it stands, :class:`CsvFeed` gives None.

Invariants

1. A batch has all whole rows of a read between two blank lines.  A row is whole
   at the end of its line, or of the text.
2. Columns have the types that the caller gives, the others that of their first values.

Cost: a read is cut into lines in Python and converted by pyarrow.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pyarrow as pa

from lftj.files.csv_files import convert_options, parse_reason
from lftj.files.csv_options import CsvOptions
from lftj.files.csv_types import converted
from lftj.files.incoming import Incoming

MOST_ROW_BYTES = 1 << 26
"""A longer row is a quote that is not closed."""


class CsvFeed:
    """Rows below a header, by commas, or by tabs when the header has no comma.

    Ready when the first row has come, or the end of the text.  Raises ValueError and
    ``pyarrow.ArrowException``, here and while rows are taken.
    """

    def __init__(self, incoming: Incoming, types: Mapping[str, pa.DataType], options: CsvOptions) -> None:
        """``types``: by column; those of other columns are guessed, where the options have none."""
        if options.header is False or codecs.lookup(options.encoding).name != "utf-8":
            raise ValueError("what comes over a pipe is UTF-8 text below a line of column names")
        self._options = options
        self._pieces = _pieces(incoming, (options.quote or "").encode())
        text = next((piece for piece in self._pieces if piece is not None), b"")
        header, _, rows = text.partition(b"\n")
        first = header.decode("utf-8-sig").rstrip("\r")
        guess = "\t" if "\t" in first and "," not in first else ","
        self._delimiter = options.delimiter or guess
        self.names = next(csv.reader([first], delimiter=self._delimiter), [])
        if not self.names:
            raise ValueError("there is nothing in it")
        if all(_is_number(name) for name in self.names):
            raise ValueError(f"its first line, {first!r}, has no column names")
        self._known = {**{name: types[name] for name in self.names if name in types}, **options.types}
        self._n_rows = 0
        rows = rows or next((piece for piece in self._pieces if piece is not None), b"")
        self.schema = pa.schema([(name, self._known.get(name, pa.null())) for name in self.names])
        self._first = self._batch(rows) if rows else None

    def __iter__(self) -> Iterator[pa.RecordBatch | None]:
        if self._first is not None:
            yield self._first
        for piece in self._pieces:
            yield None if piece is None else self._batch(piece)

    def _batch(self, rows: bytes) -> pa.RecordBatch:
        import pyarrow.csv as arrow_csv

        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(rows),
                arrow_csv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(rows) + 1),
                arrow_csv.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char=self._options.quote or False,
                    newlines_in_values=True,
                ),
                convert_options(self._options, self._known),
            )
        except pa.ArrowInvalid as error:
            raise ValueError(parse_reason(error, self.names, self._n_rows)) from None
        if not self._n_rows:
            fields = [(field.name, self._known.get(field.name, field.type)) for field in table.schema]
            self.schema = pa.schema(fields)
            self._known = dict(zip(self.names, self.schema.types, strict=True))
        self._n_rows += table.num_rows
        (batch,) = table.combine_chunks().to_batches()
        arrays = [converted(values, field) for values, field in zip(batch.columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _pieces(incoming: Incoming, quote: bytes) -> Iterator[bytes | None]:
    """Whole lines that came together, and None for a blank one.  ``quote``: empty for none."""
    rest = b""
    while data := incoming.some():
        *lines, rest = (rest + data).split(b"\n")
        piece: list[bytes] = []
        whole = 0  # lines of the piece that are whole rows
        quoted = False
        for line in lines:
            if quote and quote in line:
                quoted ^= line.count(quote) % 2 == 1
            elif not quoted and line in (b"", b"\r"):
                if piece:
                    yield b"\n".join([*piece, b""])
                yield None
                piece, whole = [], 0
                continue
            piece.append(line)
            if not quoted:
                whole = len(piece)
        rest = b"\n".join([*piece[whole:], rest])
        if whole:
            yield b"\n".join([*piece[:whole], b""])
        if len(rest) > MOST_ROW_BYTES:
            raise ValueError(f"a row is longer than {MOST_ROW_BYTES:,} bytes: a quote is not closed")
    if rest and not incoming.stopped:
        yield rest + b"\n"


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False
