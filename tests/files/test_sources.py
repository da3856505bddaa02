"""Sources: every kind of data that can be loaded, and the one clear message for what can't."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import json
import os
import re
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset, feather, ipc

from lftj.errors import SourceError
from lftj.files.csv_options import CsvOptions
from lftj.files.sources import read_table
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from maintenance import Workspace

EDGES = pa.table({"src": [1, 2, 1], "dst": [2, 3, 3]})
MIXED = pa.table(
    {
        "key": pa.array([1, 2, 3], pa.int32()),
        "text": ["a", "b", "c"],
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("3.25")], pa.decimal128(9, 2)),
        "at": pa.array([0, 1, 2], pa.int64()).cast(pa.timestamp("us", "UTC")),
    }
)


def _message(source: Any, columns: Any = None) -> str:
    with pytest.raises(SourceError) as raised:
        read_table(source, columns)
    text = str(raised.value)
    assert "\n" not in text
    assert raised.value.__cause__ is None
    return text


# -- files ------------------------------------------------------------------


def _write_stream(table: pa.Table, path: Path) -> None:
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def _write_file(table: pa.Table, path: Path) -> None:
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "t.parquet": pq.write_table,
    "t.pq": pq.write_table,
    "groups.parquet": lambda table, path: pq.write_table(table, path, row_group_size=1),
    "parquet-by-its-bytes": pq.write_table,
    "t.arrow": _write_file,
    "t.ipc": _write_stream,
    "file-by-its-bytes": _write_file,
    "stream-by-its-bytes.dat": _write_stream,
    "t.feather": lambda table, path: feather.write_feather(table, path, compression="zstd"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_binary_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](MIXED, path)
    for source in (path, str(path)):
        assert read_table(source).equals(MIXED)
        assert read_table(source, ["text", "key"]).equals(MIXED.select(["text", "key"]))
        assert read_table(source, progress=True).equals(MIXED)
    assert "there is no column 'txet'; did you mean 'text'?" in _message(path, ["txet"])


def test_parquet_of_many_groups_and_a_folder(tmp_path: Path) -> None:
    table = pa.table({"a": range(100), "b": range(100)})
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=7)
    assert read_table(tmp_path / "one.parquet", ["b"]).equals(table.select(["b"]))
    pq.write_table(table, tmp_path / "two.parquet")
    assert read_table(tmp_path).num_rows == 200
    (tmp_path / "empty").mkdir()
    assert "can't be read as a folder of Parquet files: there is no Parquet file in it" in _message(
        tmp_path / "empty"
    )


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("t.csv", bytes),
        ("T.CSV", bytes),
        ("t.csv.gz", gzip.compress),
        ("t.csv.bz2", bz2.compress),
        ("t.tsv", lambda text: text.replace(b",", b"\t")),
        ("t.tsv.gz", lambda text: gzip.compress(text.replace(b",", b"\t"))),
        ("bom.csv", lambda text: b"\xef\xbb\xbf" + text),
        ("crlf.csv", lambda text: text.replace(b"\n", b"\r\n")),
        ("no-end.csv", bytes.strip),
    ],
)
def test_csv_files(name: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(pack(b"src,dst,day\n1,x,2026-01-31\n\n2,y,2026-02-01\n"))
    table = read_table(path)
    assert table.to_pydict() == {
        "src": [1, 2],
        "dst": ["x", "y"],
        "day": [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)],
    }
    assert read_table(path, ["dst"]).column_names == ["dst"]


def test_csv_without_header_or_rows(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("1,2\n2,3\n")
    assert _message(path) == (
        f"{path}: can't be read as CSV:"
        " its first line, '1,2', has no column names: give them, as columns=[...]"
    )
    assert read_table(path, ["src", "dst"]).to_pydict() == {"src": [1, 2], "dst": [2, 3]}
    path.write_text("1,2\n2,3,4\n")
    assert "line 2 has 3 fields instead of 2: '2,3,4'" in _message(path, ["src", "dst"])
    path.write_text("src,dst\n")
    relation = Relation.from_table("edge", read_table(path), Domains())
    assert relation.n_rows == 0
    assert relation.to_table().column_names == ["src", "dst"]


def test_csv_with_lines_in_fields(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('key,note\n1,"two\nlines"\n2,"a ""word"", quoted"\n')
    assert read_table(path).column("note").to_pylist() == ["two\nlines", 'a "word", quoted']
    path.write_text('key,note\n1,"two\nlines"\n\n2\n')
    assert _message(path) == f"{path}: can't be read as CSV: line 5 has 1 field instead of 2: '2'"


def test_ragged_csv_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "ragged.csv"
    path.write_text("a,b\n1,2\n\n3,4\n5,6,7\n8,9\n")
    assert _message(path) == f"{path}: can't be read as CSV: line 5 has 3 fields instead of 2: '5,6,7'"
    packed = tmp_path / "ragged.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert "line 5 has 3 fields" in _message(packed)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.parquet"
    assert _message(missing) == f"{missing}: there is no such file"
    assert _message(str(missing)) == f"{missing}: there is no such file"

    empty = tmp_path / "empty.parquet"
    empty.touch()
    assert _message(empty) == f"{empty}: the file is empty"
    csv = tmp_path / "empty.csv"
    csv.touch()
    assert _message(csv) == f"{csv}: can't be read as CSV: the file is empty"

    unknown = tmp_path / "letter.docx"
    unknown.write_bytes(b"PK\x03\x04 and so on")
    assert "letter.docx: this is no kind of file that can be loaded; Parquet (.parquet), CSV" in _message(
        unknown
    )

    packed = tmp_path / "short.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:-20])
    assert re.search(r"short.csv.gz: can't be read as CSV: Truncated compressed stream", _message(packed))


@pytest.mark.parametrize("name", [name for name in WRITERS if "bytes" not in name])
@pytest.mark.parametrize("part", [0.5, 0.98])
def test_truncated_files(name: str, part: float, tmp_path: Path) -> None:
    path = tmp_path / name
    table = pa.table({"a": np.random.default_rng(1).integers(0, 2**62, 2000)})
    writer = pq.write_table if name == "groups.parquet" else WRITERS[name]
    writer(table, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    kind = "Parquet" if name.endswith(("parquet", "pq")) else "Arrow IPC"
    message = _message(path)
    assert message.startswith(f"{path}: can't be read as {kind}: ")
    if kind == "Parquet":
        assert message.endswith("the file is truncated or damaged, or of another kind")


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"a": np.arange(5000)}), path)
    content = bytearray(path.read_bytes())
    content[4:3000] = bytes(2996)
    path.write_bytes(content)
    assert _message(path).startswith(f"{path}: can't be read as Parquet: ")


# -- objects ----------------------------------------------------------------


class _OneBatch:
    """An Arrow array of structs, offered by the C interface alone."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return EDGES.to_batches()[0].__arrow_c_array__(requested_schema)


def _stored(write: Callable[[pa.Table, Any], None]) -> io.BytesIO:
    """A file object with the edges in it."""
    file = io.BytesIO()
    write(EDGES, file)
    file.seek(0)
    return file


OBJECTS: dict[str, Callable[[], Any]] = {
    "table": lambda: EDGES,
    "record batch": lambda: EDGES.to_batches()[0],
    "batch reader": lambda: EDGES.to_reader(max_chunksize=2),
    "polars": lambda: pl.DataFrame({"src": [1, 2, 1], "dst": [2, 3, 3]}),
    "pandas": lambda: EDGES.to_pandas(),
    "filtered pandas": lambda: pd.DataFrame({"src": [0, 1, 2, 1], "dst": [0, 2, 3, 3]}).query("src > 0"),
    "duckdb": lambda: duckdb.sql("select unnest([1, 2, 1])::bigint as src, unnest([2, 3, 3])::bigint as dst"),
    "array interface": _OneBatch,
    "lazy polars": lambda: pl.DataFrame({"src": [1, 2, 1], "dst": [2, 3, 3]}).lazy(),
    "dataset": lambda: dataset.dataset(EDGES),
    "scanner": lambda: dataset.dataset(EDGES).scanner(),
    "json lines": lambda: io.StringIO("\n".join(map(json.dumps, EDGES.to_pylist()))),
    "text": lambda: io.StringIO("src,dst\n1,2\n2,3\n1,3\n"),
    "bytes": lambda: io.BytesIO(b"src;dst\n1;2\n2;3\n1;3\n"),
    "packed bytes": lambda: io.BytesIO(gzip.compress(b"# edges\nsrc dst\n1 2\n2 3\n1 3\n")),
    "parquet bytes": lambda: _stored(pq.write_table),
    "ipc bytes": lambda: _stored(feather.write_feather),
    "arrow file": lambda: pa.BufferReader(_stored(pq.write_table).getvalue()),
    "pandas index": lambda: EDGES.to_pandas().set_index("src"),
    "pandas indices": lambda: EDGES.to_pandas().set_index(["src", "dst"]),
    "dict of lists": lambda: {"src": [1, 2, 1], "dst": (2, 3, 3)},
    "dict of arrays": lambda: {"src": np.array([1, 2, 1]), "dst": pa.chunked_array([[2], [3, 3]])},
    "dict of iterables": lambda: {"src": iter([1, 2, 1]), "dst": pd.Series([2, 3, 3])},
    "dict of polars": lambda: {"src": pl.Series([1, 2, 1]), "dst": [2, 3, 3]},
    "structured": lambda: np.array([(1, 2), (2, 3), (1, 3)], dtype=[("src", "i8"), ("dst", "i8")]),
    "big-endian": lambda: {"src": np.array([1, 2, 1], ">i8"), "dst": np.array([2, 3, 3])},
    "strided": lambda: {"src": np.array([1, 9, 2, 9, 1])[::2], "dst": np.array([3, 3, 2])[::-1]},
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_with_names(name: str) -> None:
    assert read_table(OBJECTS[name]()).to_pydict() == EDGES.to_pydict()
    assert read_table(OBJECTS[name](), ["dst"]).to_pydict() == {"dst": [2, 3, 3]}
    assert read_table(OBJECTS[name](), "dst").to_pydict() == {"dst": [2, 3, 3]}
    assert "there is no column 'dts'; did you mean 'dst'?" in _message(OBJECTS[name](), ["dts"])
    assert "there is no column 'weight'; there are 'src', 'dst'" in _message(OBJECTS[name](), ["weight"])


@pytest.mark.parametrize("name", OBJECTS)
def test_changes_come_in_the_same_forms(name: str) -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES[:0])
    with workspace.transaction() as transaction:
        transaction.insert("edge", OBJECTS[name]())
    assert workspace.count("e(a, b) <- edge(a, b).") == 3
    with workspace.transaction() as transaction:
        transaction.erase("edge", OBJECTS[name]())
    assert workspace.count("e(a, b) <- edge(a, b).") == 0


def test_weighted_changes_come_in_the_same_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    weighted = EDGES.append_column("weight", pa.array([1, 1, 1]))
    pq.write_table(weighted, "t.parquet")
    Path("t.csv").write_text("src;dst;weight\n1;2;1\n2;3;1\n1;3;1\n")
    Path("t.jsonl").write_text("\n".join(map(json.dumps, weighted.to_pylist())))
    text = io.StringIO(Path("t.csv").read_text())
    sources = ["t.parquet", Path("t.csv"), "*.csv", ["t.jsonl"], text, pl.DataFrame(weighted).lazy()]
    for source in [*sources, dataset.dataset(weighted), weighted.to_reader()]:
        workspace = Workspace()
        workspace.load("edge", EDGES[:0])
        with workspace.transaction() as transaction:
            transaction.apply("edge", source)
        assert workspace.count("e(a, b) <- edge(a, b).") == 3


def test_the_index_of_pandas_is_taken_where_it_has_a_name() -> None:
    """Regression: an index vanished without a word."""
    plain = pd.DataFrame({"v": [1, 2]}, index=[5, 6])
    assert read_table(plain).to_pydict() == {"v": [1, 2]}, "numbers of rows"
    assert read_table(plain.rename_axis("id")).to_pydict() == {"id": [5, 6], "v": [1, 2]}
    assert read_table(plain.rename_axis("id"), ["v"]).to_pydict() == {"v": [1, 2]}
    levels = pd.DataFrame({"v": [1]}, index=pd.MultiIndex.from_tuples([(7, 8)], names=["x", None]))
    assert read_table(levels).to_pydict() == {"x": [7], "v": [1]}
    grouped = pd.DataFrame({"k": [1, 1, 2], "v": [1, 2, 3]}).groupby("k").sum()
    assert read_table(grouped).to_pydict() == {"k": [1, 2], "v": [3, 3]}
    assert _message(plain.rename_axis("v")) == "two columns are named 'v': names must differ"


def test_file_objects_that_can_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n")
    with path.open() as file:
        assert _message(file) == f"{path}: can't be read as CSV: line 2 has 1 field instead of 2: '1'"
    assert "t.csv: can't be read: I/O operation on closed file" in _message(file)
    assert _message(io.BytesIO(b"")) == "a BytesIO: the file is empty"
    assert _message(io.BytesIO(b"PK\x03\x04 and so on")).startswith("a BytesIO: this is no kind of file")
    assert "there is no column 'z'" in _message(io.StringIO("a,b\n1,2\n"), ["z", "a"])


def test_text_without_a_suffix_is_csv_as_long_as_nothing_else_shows() -> None:
    assert read_table(io.StringIO("full name\nAda Lovelace\n")).to_pydict() == {"full name": ["Ada Lovelace"]}
    assert read_table(io.StringIO("1 2\n3 4\n"), ["a", "b"]).to_pydict() == {"a": [1, 3], "b": [2, 4]}
    options = CsvOptions(header=False)
    assert read_table(io.StringIO("# c\nx y\n"), ["a", "b"], csv=options).to_pydict() == {
        "a": ["x"],
        "b": ["y"],
    }


def test_pipes_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("a,b\n1,2\n",))
    writer.start()
    assert read_table(path).to_pydict() == {"a": [1], "b": [2]}
    writer.join()


Edge = namedtuple("Edge", ["src", "dst"])


def _generated() -> Iterator[tuple[int, int]]:
    yield from [(1, 2), (2, 3), (1, 3)]


NAMELESS: dict[str, Callable[[], Any]] = {
    "tuples": lambda: [(1, 2), (2, 3), (1, 3)],
    "lists": lambda: ([1, 2], [2, 3], [1, 3]),
    "generator": _generated,
    "named tuples": lambda: [Edge(1, 2), Edge(2, 3), Edge(1, 3)],
    "numpy rows": lambda: list(np.array([[1, 2], [2, 3], [1, 3]])),
    "matrix": lambda: np.array([[1, 2], [2, 3], [1, 3]]),
    "matrix in columns": lambda: np.asfortranarray([[1, 2], [2, 3], [1, 3]]),
}


@pytest.mark.parametrize("name", NAMELESS)
def test_objects_without_names(name: str) -> None:
    assert read_table(NAMELESS[name](), ["src", "dst"]).equals(EDGES)
    message = _message(NAMELESS[name]())
    assert message.endswith("has no column names: give them, as in columns=['src', 'dst']")


def test_values_of_rows_keep_their_kinds() -> None:
    row = (
        1,
        2.5,
        "x",
        b"y",
        True,
        Decimal("1.50"),
        datetime.date(2026, 1, 31),
        datetime.datetime(2026, 1, 31, 10),
    )
    row += (datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC), None)
    table = read_table([row], [f"c{i}" for i in range(len(row))])
    assert [str(t) for t in table.schema.types] == [
        "int64", "double", "string", "binary", "bool", "decimal128(3, 2)", "date32[day]", "timestamp[us]",
        "timestamp[us, tz=UTC]", "null",
    ]  # fmt: skip
    assert _first_row(table) == row


def _first_row(table: pa.Table) -> tuple[Any, ...]:
    return tuple(column[0].as_py() for column in table.columns)


def test_one_column() -> None:
    assert read_table([(1,), (2,)], ["a"]).to_pydict() == {"a": [1, 2]}
    assert read_table({(1,), (2,)}, "a").num_rows == 2
    assert read_table(np.array([3, 4]), ["a"]).to_pydict() == {"a": [3, 4]}
    assert "row 0 (counting from 0) is 5, not a tuple: write (5,)" in _message([5], ["a"])


def test_nothing_in_it() -> None:
    for source in ([], (), np.empty((0, 2)), {"a": [], "b": []}, pl.DataFrame({"a": [], "b": []})):
        table = read_table(source, ["a", "b"])
        assert table.num_rows == 0
        assert Relation.from_table("empty", table, Domains()).n_rows == 0


def test_numpy_types() -> None:
    days = np.array(["2026-01-31", "2026-02-01"], dtype="datetime64[D]")
    for unit, expected in (
        ("D", pa.date32()),
        ("h", pa.timestamp("s")),
        ("m", pa.timestamp("s")),
        ("ns", pa.timestamp("ns")),
    ):
        assert read_table({"t": days.astype(f"datetime64[{unit}]")}).schema.types == [expected]
    weeks = np.array([1, 2], dtype="timedelta64[W]")
    assert read_table({"t": weeks}).column("t").to_pylist() == [
        datetime.timedelta(days=7),
        datetime.timedelta(days=14),
    ]
    assert read_table({"t": np.array(["a", "bc"])}).schema.types == [pa.string()]
    assert read_table({"t": np.array([b"a", b"bc"])}).schema.types == [pa.binary()]
    assert read_table({"t": np.array([0.5], dtype=np.float16)}).schema.types == [pa.float16()]
    assert read_table({"t": np.ma.masked_array([1, 2], [False, True])}).column("t").null_count == 1
    assert read_table({"t": np.array([0.5, np.nan])}).column("t").null_count == 0, "NaN is no NULL in numpy"
    assert read_table(pd.DataFrame({"t": [0.5, np.nan]})).column("t").null_count == 1, "but it is in pandas"


@pytest.mark.parametrize(
    ("source", "columns", "message"),
    [
        (5, None, "can't load from a int; a path, a pyarrow Table,"),
        (b"edges.csv", None, "can't load from a bytes; "),
        (None, None, "can't load from a NoneType; "),
        (pl.DataFrame, None, "can't load from a type; "),
        (pa.table({}), None, "there are no columns"),
        ({}, None, "there are no columns"),
        ([(1, 2)], [], "there are no columns"),
        (pa.table([[1], [2]], names=["a", "a"]), None, "two columns are named 'a': names must differ"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "two columns are named 'a': names must differ"),
        ([(1, 2)], ["a", "a"], "two columns are named 'a': names must differ"),
        ([(1, 2), (3,)], ["a", "b"], "row 1 (counting from 0) has 1 value, (3,); columns= names 2 columns"),
        ([(1, 2, 3)], ["a"], "row 0 (counting from 0) has 3 values, (1, 2, 3); columns= names 1 column"),
        ([(1, 2), "xy"], ["a", "b"], "row 1 (counting from 0) is 'xy', not a tuple"),
        ([(1,), {"a": 1}], ["a"], "row 1 (counting from 0) is {'a': 1}, not a tuple"),
        ([{"a": 1}, (1,)], None, "row 1 (counting from 0) is a tuple, and row 0 a dict"),
        ([{"a": 1}, {2: 1}], None, "a column's name is 2; names are strings"),
        ([(1, 2), (3, "x")], ["a", "b"], "column 'b': row 1 (counting from 0) is a string, 'x', and"),
        (
            [(5,), (2**70,)],
            ["a"],
            "an integer doesn't fit 64 bits with a sign; row 1 (counting from 0) has 1180",
        ),
        ({"a": [1, 2], "b": [1]}, None, "columns differ in their number of values: 'a' has 2, 'b' has 1"),
        ({"a": 5}, None, "column 'a' is 5, not a list or array of values"),
        ({"a": "text"}, None, "column 'a' is 'text', not a list or array of values"),
        ({1: [5]}, None, "a column's name is 1; names are strings"),
        ({"a": np.zeros((2, 2))}, None, "column 'a': only handle 1-dimensional arrays"),
        ({"a": np.array([1j])}, None, "column 'a': Unsupported numpy type"),
        (np.zeros((2, 2, 2)), ["a"], "a numpy array of 3 dimensions is no table; one or two dimensions are"),
        (np.zeros((2, 3)), ["a", "b"], "columns= names 2 columns, the numpy array has 3"),
        (
            np.zeros((2, 4)),
            None,
            "a numpy array has no column names: give them, as in columns=['a', 'b', '...']",
        ),
        (pl.Series([1]), None, "can't read the Series as a table: "),
        (pa.chunked_array([[1]]), None, "can't read the ChunkedArray as a table: "),
        (pd.DataFrame({"a": [1, "x"]}), None, "column 'a': row 1 (counting from 0) is a string, 'x'"),
    ],
    ids=lambda value: repr(value)[:30] if isinstance(value, str | int | list) else type(value).__name__,
)
def test_objects_that_can_not_be_read(source: Any, columns: Any, message: str) -> None:
    assert message in _message(source, columns)


def test_a_source_that_fails_on_the_way() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield EDGES.to_batches()[0]
        raise RuntimeError("the server went away")

    message = _message(pa.RecordBatchReader.from_batches(EDGES.schema, batches()))
    assert message == "can't read the RecordBatchReader as a table: the server went away"

    def rows() -> Iterator[tuple[int]]:
        yield (1,)
        raise RuntimeError("a mistake in the caller's own code")

    with pytest.raises(RuntimeError, match="the caller's own code"):
        read_table(rows(), ["a"])


def test_known_data(data_folder: Path) -> None:
    table = read_table(data_folder / "graphs" / "ego-facebook.parquet")
    relation = Relation.from_table("edge", table, Domains(), progress=True)
    assert relation.n_rows == 88_234
    assert relation.index((1, 0)).n_tuples == 88_234
