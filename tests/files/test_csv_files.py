"""CSV files and lists of edges: read right, or refused with line, column and way out; never loaded wrong."""

from __future__ import annotations

import bz2
import contextlib
import csv as python_csv
import datetime
import gzip
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lftj
from lftj import CsvOptions
from lftj.errors import SourceError
from lftj.files.csv_text import BLOCK_BYTES
from lftj.files.file_stream import FileStream
from lftj.files.sources import read_table
from maintenance import Workspace


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _write(content: str | bytes, name: str = "t.csv") -> str:
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def _read(content: str | bytes, columns: Any = None, *, name: str = "t.csv", **options: Any) -> pa.Table:
    return read_table(_write(content, name), columns, csv=CsvOptions(**options) if options else None)


def _refusal(content: str | bytes, columns: Any = None, *, name: str = "t.csv", **options: Any) -> str:
    """What is said of a file, whether it is loaded or streamed."""
    with pytest.raises(SourceError) as caught:
        _read(content, columns, name=name, **options)
    message = str(caught.value)
    assert message.startswith(f"{name}: ") and "\n" not in message
    return message


# -- integers ---------------------------------------------------------------

LARGE = "id,x\n5,a\n\n18446744073709551615,b\n18446744073709551614,c\n"


def test_integers_beyond_64_bits_are_refused_with_line_and_column() -> None:
    """Regression: they became floats, and ids that differ became one."""
    message = _refusal(LARGE)
    assert "line 4, column 'id': the integer 18446744073709551615 doesn't fit 64 bits with a sign" in message
    assert "csv=lftj.CsvOptions(types={'id': 'string'})" in message
    assert "line 2, column 'id'" in _refusal("id\n-9223372036854775809\n")
    assert "line 2, column 'id'" in _refusal("id\n18446744073709551616\n"), "which is a float without loss"
    assert "line 2, column 'id'" in _refusal("id\n" + "9" * 5000 + "\n")
    assert "line 1, column number 1" not in _refusal("1,2\n18446744073709551615,3\n", ["a", "b"])
    assert "line 2, column 'a'" in _refusal("1,2\n18446744073709551615,3\n", ["a", "b"])


def test_a_large_integer_in_the_last_block_is_found() -> None:
    rows = "".join(f"{number},x\n" for number in range(300_000))
    assert len(rows) > 2 * BLOCK_BYTES
    assert "line 300002, column 'id'" in _refusal(f"id,x\n{rows}9223372036854775808,y\n")


def test_the_ways_out_of_large_integers() -> None:
    assert _read(LARGE, types={"id": "string"}).column("id")[1].as_py() == "18446744073709551615"
    exact = _read(LARGE, types={"id": "decimal128(38, 0)"}).column("id").to_pylist()
    assert exact == [5, Decimal(18446744073709551615), Decimal(18446744073709551614)]
    assert _read(LARGE, types={"id": pa.float64()}).column("id").type == pa.float64()
    assert _read(LARGE, ["x"]).column_names == ["x"], "a column that nobody wants does no harm"
    assert _read(LARGE, ["x"], types={"id": "string"}).column_names == ["x"]
    with pytest.raises(lftj.errors.RangeError, match="column 'id', row 1"):
        lftj.Database().load("r", _write(LARGE), csv=CsvOptions(types={"id": pa.uint64()}))


def test_integers_among_floats_are_taken_as_long_as_they_are_exact() -> None:
    assert _read("x\n0.5\n9007199254740992\n").column("x").to_pylist() == [0.5, 2.0**53]
    assert _read("x\n1e300\n100000000000000000000\n0.5\n").column("x").to_pylist() == [1e300, 1e20, 0.5]
    message = _refusal("x\n0.5\n9007199254740993\n")
    assert "line 3, column 'x': the integer 9007199254740993 is among floats, which can't hold it" in message
    assert _read("x\n9223372036854775807\n-9223372036854775808\n").column("x").type == pa.int64()


@given(st.lists(st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, width=32), min_size=1, max_size=6))
@example([2**53 + 1, 2**53, 0.5])
def test_numbers_that_differ_never_become_one(numbers: list[float]) -> None:
    source = io.StringIO("x\n" + "".join(f"{number}\n" for number in numbers))
    source.name = "t.csv"
    read = None
    with contextlib.suppress(SourceError):
        read = read_table(source).column("x").to_pylist()
    assert read == numbers or (read is None and any(abs(number) > 2**53 for number in numbers))


# -- quotes -----------------------------------------------------------------


def test_an_unclosed_quote_is_refused() -> None:
    """Regression: it swallowed the rest of the file."""
    message = _refusal('a,b\n1,x\n2,"abc\n3,d\n4,e\n')
    assert "line 3: a quote is opened in this row and never closed" in message
    assert "csv=lftj.CsvOptions(quote=None)" in message
    assert _read('a,b\n1,"abc\n2,d\n', quote=None).column("b").to_pylist() == ['"abc', "d"]
    assert "line 3: text follows a closing quote" in _refusal('a,b\n1,"abc\n2,"d\n3,e\n')
    assert "line 2: text follows a closing quote" in _refusal('a,b\n1,"abc"d\n')
    assert "line 2: a quote is opened" in _refusal('a,b\n1,"abc""\n2,c\n')
    assert "line 1: a quote is opened" in _refusal('"a,b\n1,2\n')
    assert "line 2: a quote is opened" in _refusal("a;b\n1;'abc\n2;d\n", delimiter=";", quote="'")


@pytest.mark.parametrize("gap", range(-3, 4))
def test_quotes_at_the_border_of_blocks(gap: int) -> None:
    """A field's quote, doubled quote and end lie on both sides of a block's end in turns."""
    padding = "x" * (BLOCK_BYTES - len('a,b\n1,""\n2,') - 1 + gap)
    good = f'a,b\n1,"{padding}"\n2,"q""r"\n3,z\n'
    assert _read(good).column("b").to_pylist() == [padding, 'q"r', "z"]
    assert "line 3" in _refusal(good.replace('"q""r"', '"q""r'))
    assert "line 3" in _refusal(good.replace('"q""r"', '"q"r"'))


def test_quotes_inside_of_plain_fields_are_characters() -> None:
    inches = 'a,b\n1,5" pipe\n2,"x, y"\n3,7"\n'
    assert _read(inches).column("b").to_pylist() == ['5" pipe', "x, y", '7"']
    assert "line 5: a quote is opened" in _refusal(inches + '4,"x\n5,y\n')


@pytest.mark.parametrize("gap", range(-3, 4))
def test_quotes_inside_of_plain_fields_at_the_border_of_blocks(gap: int) -> None:
    padding = "x" * (BLOCK_BYTES - len('a,b\n1,5"\n2,""') + gap)
    expected = ['5"', padding + '"""', "z"]
    assert _read(f'a,b\n1,5"\n2,{padding}"""\n3,z\n').column("b").to_pylist() == expected


@given(
    st.lists(st.tuples(st.integers(0, 9), st.text('"\n,;x é', max_size=5)).map(list), min_size=1, max_size=5)
)
def test_whatever_a_writer_of_csv_writes_is_read(rows: list[list[Any]]) -> None:
    written = io.StringIO()
    python_csv.writer(written, quoting=python_csv.QUOTE_ALL, lineterminator="\n").writerows(
        [["a", "b"], *rows]
    )
    written.seek(0)
    table = read_table(written, csv=CsvOptions(types={"b": pa.string()}))
    assert [list(row.values()) for row in table.to_pylist()] == rows


@given(st.text('"\n,x1', max_size=12))
def test_whatever_is_read_is_what_pythons_csv_reads(text: str) -> None:
    """Pieces of text with quotes anywhere: the rows of a strict reader, or an error."""
    content = f"a,b\n7,8\n{text}"
    source = io.StringIO(content)
    expected: list[list[str]] | None = None
    with contextlib.suppress(python_csv.Error):
        expected = [row for row in python_csv.reader(io.StringIO(content), strict=True) if row]
    try:
        table = read_table(source, csv=CsvOptions(types={"a": pa.string(), "b": pa.string()}))
    except SourceError:
        assert expected is None or any(len(row) != 2 for row in expected)
        return
    assert expected is not None
    assert [list(row.values()) for row in table.to_pylist()] == expected[1:]


# -- delimiters -------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_files_with_other_delimiters_are_read(delimiter: str) -> None:
    """Regression: they loaded as one column."""
    expected = {"a": [1, 3], "b": ["x, y", "z"]}
    content = f"a{delimiter}b\n1{delimiter}x, y\n3{delimiter}z\n"
    assert _read(content).to_pydict() == expected
    assert _read(content, delimiter=delimiter).to_pydict() == expected
    assert _read(content, name="t.csv.tsv").to_pydict() == expected


def test_a_row_that_the_sample_cuts_off_is_no_doubt_of_the_delimiter() -> None:
    rows = "".join(f'{number};"line, one\nline|two"\n' for number in range(10_000))
    table = _read(f"a;b\n{rows}")
    assert (table.num_columns, table.num_rows) == (2, 10_000)


def test_a_delimiter_in_doubt_is_refused() -> None:
    message = _refusal("a;b\n1\n")
    assert "its first line, 'a;b', has no ',' between its fields, but ';'" in message
    assert "csv=lftj.CsvOptions(delimiter=';')" in message
    assert _read("a;b\n1\n", delimiter=",").column_names == ["a;b"]
    assert _read("note\na;b\nc\n").to_pydict() == {"note": ["a;b", "c"]}
    assert "delimiter=" in _refusal("a;b\tc\n1;2\t3\n")
    assert _read("a,b\n1,2\n", name="t.tsv").to_pydict() == {"a": [1], "b": [2]}
    assert "line 3 has 2 fields instead of 1" in _refusal("a\n1\n2,3\n")


# -- encodings --------------------------------------------------------------


def test_text_of_another_encoding_is_refused_with_its_place() -> None:
    """Regression: Latin-1 loaded as binary."""
    latin = 'a,b\n1,x\n\n2,"café"\n'.encode("latin-1")
    message = _refusal(latin)
    assert "line 4, column 'b': b'caf\\xe9' is not UTF-8 text" in message
    assert "csv=lftj.CsvOptions(encoding='latin-1')" in message
    assert _read(latin, encoding="latin-1").column("b").to_pylist() == ["x", "café"]
    assert "line 1, column number 2" in _refusal("a,café\n1,2\n".encode("latin-1"))
    assert _read("a,café\n1,2\n".encode("latin-1"), encoding="latin-1").column_names == ["a", "café"]
    assert "line 2, column 'b'" in _refusal(b"a,b\n1,\xc3"), "cut off within a letter"
    assert "byte 6 is not ascii text" in _refusal("a,b\n1,é\n", encoding="ascii")
    late = f"a,b\n1,{'x' * 3 * BLOCK_BYTES}é\n"
    assert f"byte {6 + 3 * BLOCK_BYTES} is not ascii text" in _refusal(late, encoding="ascii")
    assert _read(b"\xff\xfe,b\n1,2\n", encoding="latin-1").column_names == ["ÿþ", "b"]


def test_letters_at_the_border_of_blocks() -> None:
    for shift in range(4):
        text = "x" * shift + "é€😀" * (BLOCK_BYTES // 9 + 100)
        assert _read(f"a,b\n1,{text}\n").column("b")[0].as_py() == text
        packed = text.encode("utf-16")
        assert _read("a,b\n1,".encode("utf-16") + packed[2:]).column("b")[0].as_py() == text


def test_utf_16_is_known_by_its_mark_and_without_it_refused() -> None:
    text = "a,b\n1,é\n"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert _read(text.encode(encoding), encoding=encoding).to_pydict() == {"a": [1], "b": ["é"]}
    assert _read(text.encode("utf-16")).to_pydict() == {"a": [1], "b": ["é"]}
    assert "its first line has a NUL byte: give its encoding" in _refusal(text.encode("utf-16-le"))
    assert _read("a,b\n1,x\0y\n").column("b").to_pylist() == ["x\0y"], "a value may have one"


# -- rows and columns -------------------------------------------------------


def test_long_fields() -> None:
    """Regression: a message of pyarrow about the size of its blocks."""
    long = "x" * 20_000_000
    table = _read(f"a,b\n1,{long}\n2,y\n")
    assert [len(value) for value in table.column("b").to_pylist()] == [20_000_000, 1]
    assert "line 3 has 1 field instead of 2: '2'" in _refusal(f"a,b\n1,{long}\n2\n")
    _write(f"a,b\n1,{long}\n2,y\n")
    with pytest.raises(SourceError, match="a row is too long; Parquet"), FileStream("t.csv", {}) as stream:
        list(stream)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_line_ends_and_compression(end: str, pack: Any) -> None:
    content = f"\ufeffa,b{end}1,x{end}{end}2,y{end}"
    assert _read(pack(content.encode())).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    for codec in ("zstd", "lz4"):
        with pa.output_stream("t.csv.packed", codec) as packed:
            packed.write(content.encode())
        assert _read(Path("t.csv.packed").read_bytes()).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert "line 4 has 1 field instead of 2" in _refusal(pack(f"a,b{end}1,x{end}{end}2{end}".encode()))


def test_headers() -> None:
    assert "two columns are named 'a' in its first line, 'a,a'" in _refusal("a,a\n1,2\n")
    message = _refusal("x,y\nz,w\n", ["src", "dst"])
    assert "its first line, 'x,y', is taken for column names, and 'src' is not among them" in message
    assert "csv=lftj.CsvOptions(header=False)" in message
    both = {"src": ["x", "z"], "dst": ["y", "w"]}
    assert _read("x,y\nz,w\n", ["src", "dst"], header=False).to_pydict() == both
    assert _read("1,2\n3,4\n", header=True).to_pydict() == {"1": [3], "2": [4]}
    assert "has no column names" in _refusal("x,y\n", header=False)
    assert _read("a,b\n").num_rows == 0
    assert "the file is empty" in _refusal("")
    assert "there is no row in it" in _refusal("\n\r\n")


def test_types_and_nulls() -> None:
    table = _read(
        "a,b,c,d,e\n007,ff,7,2026-01-31,x\n", types={"a": "string", "b": pa.binary(), "c": pa.duration("s")}
    )
    assert table.to_pylist() == [
        {
            "a": "007",
            "b": b"\xff",
            "c": datetime.timedelta(seconds=7),
            "d": datetime.date(2026, 1, 31),
            "e": "x",
        }
    ]
    assert "line 3, column 'a': 'y' is not of type int64" in _refusal("a\n1\ny\n", types={"a": "int64"})
    assert "give a type for column 'c'; there are a, b" in _refusal("a,b\n1,2\n", types={"c": "int64"})
    assert _read("a,b\n1,NA\n-,\n", nulls=["-"]).to_pydict() == {"a": [1, None], "b": ["NA", ""]}
    assert _read("a,b\n1,x\n2,?\n", nulls=["?"]).column("b").to_pylist() == ["x", None]


def test_a_type_that_the_first_block_does_not_show() -> None:
    """Values of the last block decide as much as those of the first."""
    rows = "".join(f"{number}\n" for number in range(400_000))
    assert len(rows) > 2 * BLOCK_BYTES
    assert _read(f"a\n007\n{rows}x\n").column("a")[0].as_py() == "007"
    assert _read(f"a\n{rows}0.5\n").column("a").type == pa.float64()


def test_dates_out_of_range_stay_text() -> None:
    assert _read("d\n2026-02-30\n").column("d").to_pylist() == ["2026-02-30"]
    assert _read("d\n0000-00-00\n").column("d").to_pylist() == ["0000-00-00"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "::"}, "delimiter is '::'; it can be one ASCII character"),
        ({"delimiter": "é"}, "one ASCII character"),
        ({"delimiter": "\n"}, "one ASCII character"),
        ({"quote": ""}, "quote is ''"),
        ({"delimiter": '"'}, "delimiter and quote are both"),
        ({"encoding": "utf-9"}, "encoding 'utf-9' is not known"),
        ({"encoding": "hex"}, "encoding 'hex' is not known"),
        ({"types": {"a": "integer"}}, "type 'integer' of column 'a' is not known"),
        ({"types": {"a": "decimal128(99, 2)"}}, "type 'decimal128(99, 2)' of column 'a' is not known"),
        ({"nulls": "NA"}, "it can be a list of texts"),
    ],
)
def test_options_that_are_none(options: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        CsvOptions(**options)
    assert message in str(caught.value)


def test_options_are_for_csv() -> None:
    for load in (lftj.Database().load, Workspace().load):
        load("r", _write("a;b\n1;2\n"), csv=CsvOptions(delimiter=";"))
        with pytest.raises(SourceError, match="csv= says how CSV files are written; the source is a dict"):
            load("r", {"a": [1]}, csv=CsvOptions())
        with pytest.raises(SourceError, match="this is JSON lines; csv= says how CSV files are written"):
            load("r", _write('{"a": 1}', "t.jsonl"), csv=CsvOptions())
    assert read_table(_write("a:b\n1:2\n", "t.dat"), csv=CsvOptions(delimiter=":")).num_columns == 2


# -- streams ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('a,b\n1,"abc\n2,d\n', "line 2: a quote is opened"),
        ("a,b\n1,caf\xe9\n".encode("latin-1"), "line 2, column 'b'"),
        ("a;b\n1\n", "delimiter="),
        ("a,a\n1,2\n", "two columns are named 'a'"),
        ("a\n" + "9" * 19 + "\n", "row 0 (counting from 0): conversion error to int64"),
    ],
)
def test_streams_refuse_what_loads_refuse(content: str | bytes, message: str) -> None:
    with pytest.raises(SourceError) as caught, FileStream(_write(content), {"a": pa.int64()}) as stream:
        list(stream)
    assert message in str(caught.value)


def test_streams_take_options() -> None:
    with FileStream(_write("a;b\n1;é\n".encode("latin-1")), {}, CsvOptions(encoding="latin-1")) as stream:
        assert pa.Table.from_batches(stream).to_pydict() == {"a": [1], "b": ["é"]}
    with pytest.raises(SourceError, match="JSON lines can't be read a part at a time"):
        FileStream(_write('{"a": 1}', "t.jsonl"), {})
