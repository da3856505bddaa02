"""Lists of edges as text, as SNAP and KONECT publish them, and JSON lines."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import CsvOptions
from lftj.errors import SourceError
from lftj.files.csv_text import BLOCK_BYTES
from lftj.files.file_stream import FileStream
from lftj.files.sources import read_table


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _read(content: str | bytes, columns: Any = None, name: str = "t.txt", csv: Any = None) -> pa.Table:
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(name, columns, csv=csv)


def _refusal(content: str | bytes, columns: Any = None, name: str = "t.txt", csv: Any = None) -> str:
    with pytest.raises(SourceError) as caught:
        _read(content, columns, name, csv)
    message = str(caught.value)
    assert message.startswith(f"{name}: ") and "\n" not in message
    return message


# -- lists of edges ---------------------------------------------------------

SNAP = "# Directed graph: t.txt\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n"


@pytest.mark.parametrize(
    "content",
    [
        SNAP,
        SNAP.replace("\n", "\r\n"),
        SNAP.replace("\t", " "),
        SNAP.replace("1\t2", "  1   2").replace("2\t3", "2  3  \n"),
        SNAP.replace("1\t2", "1 \t 2"),
        SNAP.replace("1\t2", "1  2"),
        "% sym unweighted\n% 2 3 3\n1 2\n2 3\n",
        "1,2\n2,3\n",
        "src dst\n1 2\n2 3",
        "\n\n1\t2\n2\t3\n",
    ],
)
def test_lists_of_edges(content: str) -> None:
    expected = {"src": [1, 2], "dst": [2, 3]}
    columns = ["src", "dst"]
    assert _read(content, columns).to_pydict() == expected
    assert _read(gzip.compress(content.encode()), columns, "t.txt.gz").to_pydict() == expected
    if "src dst" not in content:  # which could be the name of one column
        assert read_table(io.StringIO(content), columns).to_pydict() == expected
    database = lftj.Database()
    database.load("edge", "t.txt", columns)
    assert database.count("two(a, c) <- edge(a, b), edge(b, c).") == 1


def test_lists_of_edges_that_are_wrong() -> None:
    assert _refusal(SNAP) == (
        "t.txt: can't be read as a list of edges: its first line, '1\\t2', has no column names:"
        " give them, as columns=[...]"
    )
    ragged = _refusal(SNAP.replace("2\t3", "2\t3\t4"), ["a", "b"])
    assert "line 5 has 3 fields instead of 2: '2\\t3\\t4'" in ragged
    nothing = "there is no row in it but comments, which begin with # or %"
    assert nothing in _refusal("# only\n", ["a"])
    assert nothing in _refusal("# only\n" * 20_000, ["a"])
    assert "line 2, column 'b': the integer 18446744073709551615" in _refusal(
        "1 2\n2 18446744073709551615\n", ["a", "b"]
    )


def test_a_mark_of_comments_after_the_first_row_is_text() -> None:
    """Nothing is left out below the first row: a # may begin an id."""
    table = _read("# comment\nx\t1\n#y\t2\n% z\t3\n", ["tag", "n"], csv=CsvOptions(header=False))
    assert table.to_pydict() == {"tag": ["x", "#y", "% z"], "n": [1, 2, 3]}


def test_comments_and_lists_longer_than_a_block() -> None:
    comments = "# " + "c" * (BLOCK_BYTES + 10) + "\n#\n"
    assert _read(f"{comments}1 2\n", ["a", "b"]).to_pydict() == {"a": [1], "b": [2]}
    rows = "".join(f"{number}  {number + 1}\n" for number in range(200_000))
    assert _read(f"# x\n{rows}", ["a", "b"]).column("b").to_pylist() == list(range(1, 200_001))
    assert "line 200002 has 1 field instead of 2: '7'" in _refusal(f"# x\n{rows}7\n", ["a", "b"])


def test_lists_of_edges_are_streamed() -> None:
    Path("t.txt").write_text("# x\na weight\n1 1\n")
    with FileStream("t.txt", {"a": pa.int64()}) as stream:
        assert pa.Table.from_batches(stream).to_pydict() == {"a": [1], "weight": [1]}


# -- JSON lines -------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.json", "t.jsonl.gz"])
def test_json_lines(name: str) -> None:
    content = '{"a": 1, "b": "007"}\n\n{"b": "é", "a": 9223372036854775807}\n'.encode()
    expected = {"a": [1, 2**63 - 1], "b": ["007", "é"]}
    content = gzip.compress(content) if name.endswith("gz") else content
    assert _read(content, name=name).to_pydict() == expected
    assert _read(content, ["b"], name).to_pydict() == {"b": ["007", "é"]}
    assert read_table(io.BytesIO(content)).to_pydict() == expected
    assert (
        _read(b"\xef\xbb\xbf" + content if name == "t.json" else content, name=name).to_pydict() == expected
    )


MANY = '{"a": 1}\n' * 200_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (MANY + '{"a": 18446744073709551615}\n', "line 200001, column 'a': the integer 18446744073709551615"),
        ('{"a": 0.5}\n{"a": 9007199254740993}\n', "line 2, column 'a': the integer 9007199254740993"),
        (MANY + '{"a": "x"}\n', "line 200001, column 'a' is a text, where there was a number before"),
        (MANY + '{"a": \n', "line 200001: "),
        ('{"a": 1}\n7\n', "line 2 is a number; JSON lines are objects, {...}"),
        ('{"a": 1}\n\n{"a": 1, "a": 2}\n', "line 3: column 'a' is there twice"),
        ('[{"a": 1}]', "it is one JSON array; JSON lines are objects"),
        (b'{"a": "x"}\n{"a": "caf\xe9"}\n', "line 2: byte 10 is not UTF-8 text"),
        ("", "the file is empty"),
        ("\n\n", "there is no row in it"),
    ],
)
def test_json_lines_that_are_wrong(content: str | bytes, message: str) -> None:
    assert message in _refusal(content, name="t.jsonl")


def test_json_lines_that_no_relation_holds() -> None:
    database = lftj.Database()
    Path("t.jsonl").write_text('{"a": 1, "b": {"c": 2}}\n')
    with pytest.raises(lftj.errors.UnsupportedTypeError, match="column 'b'"):
        database.load("r", "t.jsonl")
    Path("t.jsonl").write_text('{"a": 1, "b": 2}\n{"a": 3}\n')
    with pytest.raises(lftj.errors.NullError, match="column 'b': NULL in row 1"):
        database.load("r", "t.jsonl")
    database.load("r", "t.jsonl", nulls="drop")
    assert database.relations["r"].dropped_rows == 1


def test_long_json_lines() -> None:
    long = "x" * 5_000_000
    assert _read(f'{{"a": "{long}"}}\n{{"a": "y"}}\n', name="t.jsonl").column("a").to_pylist() == [long, "y"]
