"""Locations: globs, folders, lists of files and URLs, and what is said where nothing can be read."""

from __future__ import annotations

import io
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lftj
from lftj.errors import SourceError
from lftj.files.sources import read_table

EDGES = pa.table({"src": [1, 2, 1], "dst": [2, 3, 3]})


def _message(source: Any, columns: Any = None) -> str:
    with pytest.raises(SourceError) as raised:
        read_table(source, columns)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Parquet files below year=/month= as Spark leaves them, and some CSV files."""
    monkeypatch.chdir(tmp_path)
    for place, rows in (("year=2025/month=01", EDGES[:2]), ("year=2026/month=02", EDGES[2:])):
        (tmp_path / "hive" / place).mkdir(parents=True)
        pq.write_table(rows, tmp_path / "hive" / place / "part-0.parquet")
    (tmp_path / "hive" / "_temporary").mkdir()
    (tmp_path / "hive" / "_temporary" / "part-1.parquet").write_text("half of a file")
    (tmp_path / "hive" / "_SUCCESS").touch()
    (tmp_path / "hive" / "notes.txt").write_text("not data")
    for number in (1, 2):
        (tmp_path / f"part{number}.csv").write_text(f"src,dst\n{number},{number + 1}\n")
    return tmp_path


WITH_KEYS = {"src": [1, 2, 1], "dst": [2, 3, 3], "year": [2025, 2025, 2026], "month": [1, 1, 2]}


def test_the_keys_of_a_hive_partitioned_folder_are_columns(folder: Path) -> None:
    for place in ("hive", "hive/", folder / "hive", "hive/year=*/*/*.parquet", "hive/**/part-0.parquet"):
        assert read_table(place).to_pydict() == WITH_KEYS
        assert read_table(place, ["month", "src"]).to_pydict() == {"month": [1, 1, 2], "src": [1, 2, 1]}
        assert read_table(place, ["year"]).to_pydict() == {"year": [2025, 2025, 2026]}
    assert read_table("hive/year=2026").column_names == ["src", "dst", "month"]
    assert "there is no column 'yaer'; did you mean 'year'?" in _message("hive", ["yaer"])


def test_a_folder_with_data_of_other_kinds_is_refused(folder: Path) -> None:
    """Nothing is left out without a word, but notes and what other programs leave."""
    (folder / "hive" / "more.csv.gz").touch()
    assert _message("hive") == (
        "hive: the folder holds files of several kinds, such as year=2025/month=01/part-0.parquet and"
        " more.csv.gz: say which ones, as hive/**/*.parquet"
    )
    assert read_table("hive/year*/**/*.parquet").to_pydict() == WITH_KEYS


def test_a_key_that_the_files_hold_as_well_is_one_column(tmp_path: Path) -> None:
    (tmp_path / "year=2026").mkdir()
    pq.write_table(pa.table({"a": [1], "year": [2026]}), tmp_path / "year=2026" / "part.parquet")
    assert read_table(tmp_path).to_pydict() == {"a": [1], "year": [2026]}


def test_a_missing_key_is_null(tmp_path: Path) -> None:
    for year in ("2026", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"a": [1]}), tmp_path / f"year={year}" / "part.parquet")
    database = lftj.Database()
    with pytest.raises(lftj.errors.NullError, match="column 'year'"):
        database.load("r", tmp_path)
    database.load("r", tmp_path, nulls="drop")
    assert database.relations["r"].to_pydict() == {"a": [1], "year": [2026]}


def test_globs_and_lists_of_files(folder: Path) -> None:
    both = {"src": [1, 2], "dst": [2, 3]}
    assert read_table("part*.csv").to_pydict() == both
    assert read_table(str(folder / "part[12].csv")).to_pydict() == both
    assert read_table(["part1.csv", folder / "part2.csv"]).to_pydict() == both
    assert read_table(path for path in sorted(folder.glob("part*.csv"))).to_pydict() == both
    assert read_table(("part2.csv", "part?.csv")).to_pydict() == {"src": [2, 1, 2], "dst": [3, 2, 3]}
    assert read_table(["part1.csv", "hive"], ["src"]).to_pydict() == {"src": [1, 1, 2, 1]}
    (folder / "we[i]rd.csv").write_text("a\n1\n")
    assert read_table("we[i]rd.csv").to_pydict() == {"a": [1]}, "a name that is there is no pattern"
    assert _message("nothing*.csv") == "nothing*.csv: no file has such a name"
    assert _message(["part1.csv", "part3.csv"]) == "part3.csv: there is no such file"
    assert _message(["alice", "bob"], ["name"]).endswith("a row of one value is a tuple, ('alice',))")
    assert _message("") == "the path is empty"


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    """Regression: a column that only later files of a folder have was left out without a word."""
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), first)
    pq.write_table(pa.table({"b": [7, 8], "a": [1, 2]}), second)
    for source in (tmp_path, str(tmp_path / "*.parquet"), [first, second]):
        assert _message(source) == (
            f"{first} lacks 'b', which {second} has: its rows would hold NULL there;"
            " take the columns that all files have, as columns=['a']"
        )
        assert read_table(source, ["a"]).to_pydict() == {"a": [1, 2, 1, 2]}
    assert _message([second, first]).startswith(f"{first} lacks 'b', which {second} has")
    assert f"{first} lacks 'b'" in _message(tmp_path, ["b"])


def test_files_with_columns_in_another_order_and_width_are_one_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "1.parquet")
    text = pa.array(["y"]).dictionary_encode()
    pq.write_table(pa.table({"b": text, "a": pa.array([2**40], pa.int64())}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"b": pa.nulls(0), "a": pa.nulls(0)}), tmp_path / "3.parquet")
    assert read_table(tmp_path).to_pydict() == {"a": [1, 2**40], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([1]), pa.array([0.5])),
        (pa.array([1]), pa.array(["1"])),
        (pa.array(["2026-01-01"]), pa.array([0], pa.date32())),
        (pa.array([0], pa.timestamp("ms")), pa.array([0], pa.timestamp("us"))),
    ],
)
def test_files_with_values_of_other_domains_are_refused(
    first: pa.Array, second: pa.Array, tmp_path: Path
) -> None:
    """Regression: the type of the first file was forced upon the others."""
    pq.write_table(pa.table({"a": first}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": second}), tmp_path / "2.parquet")
    message = _message(tmp_path)
    assert f"column 'a' is of type {first.type} in {tmp_path / '1.parquet'}" in message
    assert f"of type {second.type} in {tmp_path / '2.parquet'}" in message


def test_unsigned_integers_of_another_file_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([2**64 - 1], pa.uint64())}), tmp_path / "2.parquet")
    assert "column 'a'" in _message(tmp_path)


# -- far away ---------------------------------------------------------------


class _Store(BaseHTTPRequestHandler):
    """As much of S3 as it takes to read the objects of ``CONTENT``."""

    CONTENT: dict[str, bytes]

    def log_message(self, format: str, *values: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        content = self.CONTENT.get(self.path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if "list-type" in query:
            self._list(parse_qs(query)["prefix"][0])
            return
        content = self.CONTENT[path]
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = content[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(part)

    def _list(self, prefix: str) -> None:
        keys = [key.removeprefix("/bucket/") for key in self.CONTENT]
        keys = [key for key in keys if key.startswith(prefix)]
        items = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in keys)
        body = f"<ListBucketResult><KeyCount>{len(keys)}</KeyCount>{items}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def _store(content: dict[str, bytes]) -> Iterator[str]:
    """The query of S3 URLs that reach a server on this machine with ``content``."""
    handler = type("Handler", (_Store,), {"CONTENT": content})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"?region=nowhere&scheme=http&endpoint_override=127.0.0.1%3A{server.server_port}"
        server.shutdown()
        thread.join()


def test_s3_urls_are_read() -> None:
    """Regression: "s3:/bucket/x.parquet: there is no such file"."""
    parquet = io.BytesIO()
    pq.write_table(EDGES, parquet)
    content = {"/bucket/data/x.parquet": parquet.getvalue(), "/bucket/text/y.csv": b"src,dst\n1,2\n"}
    with _store(content) as query:
        where, texts = "s3://user:secret@bucket/data", "s3://user:secret@bucket/text"
        assert read_table(f"{where}/x.parquet{query}").equals(EDGES)
        assert read_table(f"{texts}/y.csv{query}").to_pydict() == {
            "src": [1],
            "dst": [2],
        }
        assert read_table(f"{where}{query}").equals(EDGES), "the Parquet files of a folder"
        assert read_table(f"{texts}/*.csv{query}").to_pydict() == {
            "src": [1],
            "dst": [2],
        }
        assert _message(f"s3://user:secret@bucket/nothing.csv{query}") == (
            "s3://bucket/nothing.csv: there is no such file, or it can't be reached"
        )
        assert _message(f"{where}/z.docx{query}").startswith("s3://bucket/data/z.docx: ")
    unreachable = _message("s3://user:secret@bucket/x.csv?region=nowhere&endpoint_override=127.0.0.1%3A1")
    assert unreachable.startswith("s3://bucket/x.csv: can't be opened: ")
    assert "secret" not in unreachable


class _Files:
    """As much of an fsspec filesystem as pyarrow asks for."""

    protocol = "memory"
    CONTENT = {"/text/a.csv": b"src,dst\n1,2\n", "/data/k=1/b.parquet": b""}  # noqa: RUF012

    def info(self, path: str) -> dict[str, Any]:
        if path in self.CONTENT:
            return {"name": path, "type": "file", "size": len(self.CONTENT[path])}
        if any(name.startswith(path.rstrip("/") + "/") for name in self.CONTENT):
            return {"name": path, "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def find(self, path: str, maxdepth: Any = None, withdirs: bool = False, detail: bool = False) -> Any:
        return {name: self.info(name) for name in self.CONTENT if name.startswith(path.rstrip("/") + "/")}

    def isfile(self, path: str) -> bool:
        return path in self.CONTENT

    def isdir(self, path: str) -> bool:
        return bool(self.info(path)["type"] == "directory")

    def open(self, path: str, mode: str = "rb") -> io.BytesIO:
        return io.BytesIO(self.CONTENT[path])


def test_other_urls_are_read_by_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = io.BytesIO()
    pq.write_table(EDGES, parquet)
    monkeypatch.setitem(_Files.CONTENT, "/data/k=1/b.parquet", parquet.getvalue())
    core = types.ModuleType("fsspec.core")
    core.url_to_fs = lambda url: (_Files(), url.removeprefix("memory:/"))  # type: ignore[attr-defined]
    package = types.ModuleType("fsspec")
    package.AbstractFileSystem = _Files  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fsspec", package)
    monkeypatch.setitem(sys.modules, "fsspec.core", core)
    assert read_table("memory://text/a.csv").to_pydict() == {"src": [1], "dst": [2]}
    assert read_table("memory://text/*.csv").to_pydict() == {"src": [1], "dst": [2]}
    keyed = {**EDGES.to_pydict(), "k": [1, 1, 1]}
    assert read_table("memory://data").to_pydict() == keyed
    assert read_table("memory://data/**/*.parquet").to_pydict() == keyed
    assert _message("memory://data/b.csv").startswith("memory://data/b.csv: there is no such file")
    assert _message("memory://data/*.tsv") == "memory://data/*.tsv: no file has such a name"


def test_urls_that_need_other_packages_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    message = _message("https://user:secret@example.org/edges.csv")
    assert message.startswith("https://example.org/edges.csv: https:// is read by way of other packages")
    assert "pip install fsspec aiohttp, or fetch the file" in message
    assert "pip install fsspec," in _message("thing://x/edges.csv")


def test_urls_of_this_machine(folder: Path) -> None:
    assert read_table(f"file://{folder}/part1.csv").to_pydict() == {"src": [1], "dst": [2]}
    assert _message(f"file://{folder}/part3.csv") == f"{folder}/part3.csv: there is no such file"
    assert _message(Path("s3://bucket/x.csv")).endswith(
        "a Path has lost a slash of the URL: pass it as a str, s3://..."
    )
