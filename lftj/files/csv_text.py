"""The text of a CSV file: how it is written, its checked bytes, and the lines of its records.

pyarrow takes text that is wrong without a word: a quote that nobody closes
swallows all that follows, and what is no UTF-8 becomes binary values.  So the
text goes to it through :class:`CheckedText`, which looks at each block once.

Invariants of what is read through it

1. It is UTF-8 without a mark at its beginning, whatever the file's encoding.
2. A quoted field begins and ends at a delimiter or line end, and the last one
   has an end.
3. Lines are where they are in the file: a comment becomes an empty line.

Cost: some milliseconds for 10 MB, as a block without a quote and without a byte
above 127 is only searched for these.  A fault costs one more pass, by Python's
``csv``, that names its line.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

from lftj.files.csv_options import CsvOptions
from lftj.files.stored_file import StoredFile

if TYPE_CHECKING:
    from _csv import Reader

SAMPLE_BYTES = 1 << 16
"""Of the beginning, from which the delimiter is read off."""

BLOCK_BYTES = 1 << 20
"""Text that is looked at, and converted, at a time."""

_DELIMITERS = (",", "\t", ";", "|")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_COMMENTS = re.compile(rb"(?:[ \t\r]*(?:[#%][^\n]*)?\n)*(?:[ \t]*[#%][^\n]*\Z)?")
_BLANKS = re.compile(rb" +")
_OUTER_BLANKS = re.compile(rb"(?m)^ +| +(?=\r?$)")  # slow, and seldom there
_field_limit = threading.RLock()


class CsvText:
    """How one file is written, and its text.

    Attributes:
        file: The file.
        delimiter: Between fields.
        quote: Around fields, None without.
        first: The fields of the first record, none where there is no record.
        has_header: Whether these are column names.

    Args:
        options: What the user says about it.
        edges: Whether it is a list of edges: lines before the first row that begin with ``#`` or ``%`` are
            comments, and blanks separate where there is no other delimiter.

    Raises ValueError when the delimiter is in doubt.
    """

    def __init__(self, file: StoredFile, options: CsvOptions, edges: bool = False) -> None:
        self.file = file
        self.quote = options.quote
        start = file.head(SAMPLE_BYTES)
        self.encoding = options.encoding
        if self._plain:
            self.encoding = _MARKS.get(start[:2], self.encoding)
        while edges and len(_comments(start)) == len(start) >= SAMPLE_BYTES:
            n_bytes = len(start)
            start = file.head(16 * n_bytes)
            if len(start) == n_bytes:
                break
        self.edges = edges
        with io.TextIOWrapper(io.BytesIO(start), self.encoding, "replace", newline="") as text:
            sample = text.read().removeprefix("\ufeff")
        if edges:
            sample = sample[len(_comments(sample.encode()).decode()) :]
        self.delimiter = options.delimiter or self._read_off(sample, whole=len(start) < SAMPLE_BYTES)
        with closing(self.records()) as records:
            _, self.first = next(records, (0, []))
        numbers = bool(self.first) and all(_is_number(field) for field in self.first)
        self.has_header = not numbers if options.header is None else options.header
        if any("\0" in field for field in self.first):
            raise ValueError(
                "its first line has a NUL byte: give its encoding, as"
                " csv=lftj.CsvOptions(encoding='utf-16-le')"
            )

    def _read_off(self, sample: str, whole: bool) -> str:
        """The delimiter.  ``whole``: whether the sample is all there is, and its last row is not cut off."""
        usual = "\t" if self.file.suffix == ".tsv" else ","
        rows = self._rows(sample, usual, whole)
        line = usual.join(rows[0]) if rows else ""
        if self.edges and "\t" in line.strip():
            return "\t"
        if not rows or len(rows[0]) > 1:
            return usual
        if self.edges and " " in line.strip():
            return " "
        widths = {mark: [len(row) for row in self._rows(sample, mark, whole)] for mark in _DELIMITERS}
        there = [mark for mark in _DELIMITERS if mark != usual and max(widths[mark][:1], default=0) > 1]
        fitting = [mark for mark in there if len(set(widths[mark])) == 1]
        if len(fitting) == 1:
            return fitting[0]
        if there:
            raise ValueError(
                f"its first line, {line[:80]!r}, has no {usual!r} between its fields, but {there[0]!r}:"
                f" say which it is, as csv=lftj.CsvOptions(delimiter={there[0]!r})"
            )
        return usual

    def _rows(self, sample: str, delimiter: str, whole: bool) -> list[list[str]]:
        rows = []
        with suppress(csv.Error):
            for row in self._reader(io.StringIO(sample, newline=""), delimiter, strict=False):
                if row:
                    rows.append(row)
        return rows if whole or len(rows) < 2 else rows[:-1]

    def _reader(self, text: io.TextIOBase, delimiter: str, strict: bool) -> Reader:
        if self.quote is None:
            return csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=strict)
        return csv.reader(text, delimiter=delimiter, quotechar=self.quote, strict=strict)

    def open(self, advance: Callable[[float], None] = lambda fraction: None) -> CheckedText:
        return CheckedText(self, advance)

    def records(self, strict: bool = False) -> Generator[tuple[int, list[str]]]:
        """Each record with the line that it begins in, counting from 1; bytes that are no text as surrogates.

        With ``strict``, raises ValueError for the first quote that is wrong.
        """
        source = io.BufferedReader(CheckedText(self, check=False), BLOCK_BYTES)
        with io.TextIOWrapper(source, "utf-8", "surrogateescape", newline="") as text, _long_fields():
            reader = self._reader(text, self.delimiter, strict)
            line = 1
            try:
                for fields in reader:
                    if fields:
                        yield line, fields
                    line = reader.line_num + 1
            except csv.Error as error:
                if "unexpected end" in str(error):
                    what = f"line {line}: a quote is opened in this row and never closed"
                else:
                    what = f"line {reader.line_num}: text follows a closing quote"
                raise ValueError(
                    f"{what}; where quotes are characters like others, give csv=lftj.CsvOptions(quote=None)"
                ) from None

    def line_of(self, row: int) -> int:
        """The line of a row of data, counting from 0."""
        records = iter(self.records())
        if self.has_header:
            next(records, None)
        for number, (line, _) in enumerate(records):
            if number == row:
                return line
        return 0

    def ragged(self, width: int) -> str | None:
        """Where the first record stands that has not ``width`` fields; pyarrow counts rows, not lines."""
        with suppress(OSError, EOFError):
            for line, fields in self.records():
                if len(fields) != width:
                    has = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
                    return f"line {line} has {has} instead of {width}: {self.delimiter.join(fields)[:80]!r}"
        return None

    def unreadable(self, error: UnicodeDecodeError, start: int) -> str:
        """Where the first bytes stand that the encoding does not have.

        ``start``: of what was decoded, in the content.
        """
        way_out = "give the file's encoding, as csv=lftj.CsvOptions(encoding='latin-1')"
        for line, fields in self.records() if self._plain else ():
            for number, field in enumerate(fields):
                if not _is_text(field):
                    shown = field.encode("utf-8", "surrogateescape")[:60]
                    return f"line {line}, column {self.named(number)}: {shown!r} is not UTF-8 text; {way_out}"
        return f"byte {start + error.start} is not {self.encoding} text ({error.reason}); {way_out}"

    def named(self, number: int) -> str:
        """A column as messages name it."""
        known = self.has_header and number < len(self.first) and _is_text(self.first[number])
        return repr(self.first[number]) if known else f"number {number + 1}"

    @property
    def _plain(self) -> bool:
        """Whether the file's bytes are those of UTF-8."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")


class CheckedText(io.RawIOBase):
    """The bytes of a :class:`CsvText`, once and in order, in UTF-8.

    Raises ValueError while they are read, of which pyarrow passes on what a Python file raises.
    """

    def __init__(
        self, text: CsvText, advance: Callable[[float], None] = lambda fraction: None, check: bool = True
    ) -> None:
        """``check``: whether quotes and bytes that are no text are refused."""
        self._text = text
        self._advance = advance
        self._size = max(1, text.file.size)
        self._raw, self._stream = text.file.streams()
        errors = "strict" if check else "surrogateescape" if text._plain else "replace"
        self._decoder = codecs.getincrementaldecoder(text.encoding)(errors)
        self._check = check
        self._quote = text.quote.encode() if check and text.quote is not None else None
        self._n_bytes = 0
        self._partial_line = b""
        self._begun = False
        self._in_comments = text.edges
        self._quoted = False
        self._last = ord("\n")
        self._held = b""
        self._ready = memoryview(b"")
        self._ended = False
        self.fraction = 0.0
        """How much of the file has been read, 0 to 1."""

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        part = self.read(len(target))
        target[: len(part)] = part
        return len(part)

    def read(self, size: int = -1) -> bytes:
        """``size`` bytes, unless the text ends before: pyarrow takes fewer for a block."""
        parts = []
        while size:
            while not self._ready and not self._ended:
                self._ready = memoryview(self._next_block())
            part = bytes(self._ready if size < 0 else self._ready[:size])
            if not part:
                break
            parts.append(part)
            self._ready = self._ready[len(part) :]
            size -= len(part) if size > 0 else 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()

    def _next_block(self) -> bytes:
        raw = self._stream.read(BLOCK_BYTES)
        self._ended = not raw
        self.fraction = min(1.0, self._raw.tell() / self._size)
        self._advance(self.fraction)
        block = self._in_utf8(raw)
        if block and not self._begun:
            self._begun = True
            block = block.removeprefix(codecs.BOM_UTF8)
        if self._text.edges:
            block = self._plain_lines(block)
        return self._checked_quotes(block)

    def _in_utf8(self, raw: bytes) -> bytes:
        pending = self._decoder.getstate()[0]
        start, self._n_bytes = self._n_bytes - len(pending), self._n_bytes + len(raw)
        if self._text._plain and (not self._check or (not pending and raw.isascii())):
            return raw
        try:
            decoded = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            raise ValueError(self._text.unreadable(error, start)) from None
        # What the decoder waits for is passed on already: only what it says of it matters.
        return raw if self._text._plain else decoded.encode()

    def _plain_lines(self, block: bytes) -> bytes:
        """Whole lines, without the comments at the beginning, and with one blank where there were many."""
        block = self._partial_line + block
        end = len(block) if self._ended else block.rfind(b"\n") + 1
        block, self._partial_line = block[:end], block[end:]
        if self._in_comments and block:
            comments = _comments(block)
            self._in_comments = len(comments) == len(block)
            block = b"\n" * comments.count(b"\n") + block[len(comments) :]
        if self._text.delimiter == " ":
            if b"\t" in block:
                block = block.replace(b"\t", b" ")
            if b"  " in block:
                block = _BLANKS.sub(b" ", block)
            if block.startswith(b" ") or any(mark in block for mark in (b"\n ", b" \n", b" \r")):
                block = _OUTER_BLANKS.sub(b"", block)
        return block

    def _checked_quotes(self, block: bytes) -> bytes:
        block, self._held = self._held + block, b""
        if self._quote is None:
            return block
        # What follows a quote decides, so a quote at the very end waits.
        keep = len(block) if self._ended else len(block.rstrip(self._quote))
        block, self._held = block[:keep], block[keep:]
        if self._quote in block and not self._well_quoted(block):
            self._find_wrong_quote()
        if self._ended and self._quoted and self._quote is not None:
            self._find_wrong_quote()
        if block:
            self._last = block[-1]
        return block

    def _well_quoted(self, block: bytes) -> bool:
        """Whether each quote stands where one may: at the border of a field, or doubled."""
        assert self._quote is not None
        codes = np.frombuffer(b"%c%b\n" % (self._last, block), np.uint8)
        places = np.flatnonzero(codes == self._quote[0])
        border = np.zeros(256, dtype=bool)
        border[[ord("\n"), ord("\r"), ord(self._text.delimiter), self._quote[0]]] = True
        first_closing = 0 if self._quoted else 1
        opening, closing = places[1 - first_closing :: 2], places[first_closing::2]
        self._quoted ^= bool(len(places) % 2)
        return bool(border[codes[opening - 1]].all() and border[codes[closing + 1]].all())

    def _find_wrong_quote(self) -> None:
        """Raise ValueError for it; where all are right, as inside of fields without quotes, look no more."""
        for _ in self._text.records(strict=True):
            pass
        self._quote = None


@contextmanager
def _long_fields() -> Iterator[None]:
    """Python's csv reads fields of any length in the block."""
    with _field_limit:
        before = csv.field_size_limit(sys.maxsize)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_text(field: str) -> bool:
    try:
        field.encode()
    except UnicodeEncodeError:
        return False
    return True


def _comments(start: bytes) -> bytes:
    """The lines at the beginning that are comments or empty.

    >>> _comments(b"# Nodes: 2\\n\\n1 2\\n#3 4\\n")
    b'# Nodes: 2\\n\\n'
    """
    match = _COMMENTS.match(start)
    return match[0] if match else b""
