"""Rows over pipes: stdin, named pipes and process substitution, for what is loaded and for changes.

A feed of changes is followed: the one who writes it has the answer to a
transaction before the next one is written.
"""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

from lftj import errors
from lftj.files.csv_feed import MOST_ROW_BYTES
from lftj.files.csv_options import CsvOptions
from lftj.files.feed import Feed
from maintenance.shell.change_files import ChangeFile, merged_transactions
from support.change_tables import CHANGES, EDGE, IN_TRANSACTIONS, write

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
EDGES = "a,b\n1,2\n2,3\n1,3\n3,4\n"
QUERY = ("query", "-e", TRI)
LOAD = ("--load", "edge=edges.csv")
MAINTAIN = ("maintain", "-e", TRI, *LOAD, "--changes", "edge=-", "--out-changes", "tri=-")
ANSWER_SECONDS = 60


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text(EDGES, encoding="utf-8")
    return tmp_path


class Lftj:
    """A process whose stdin is written, and whose answers are read, line by line."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def say(self, content: str | bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(content.encode() if isinstance(content, str) else content)
        self.process.stdin.flush()

    def hear(self, n_lines: int = 1) -> list[str]:
        """So many lines, or as many as come before the process ends."""
        stdout = self.process.stdout
        assert stdout is not None
        watch = threading.Timer(ANSWER_SECONDS, self.process.kill)
        watch.start()
        lines = [stdout.readline().decode().rstrip("\n") for _ in range(n_lines)]
        watch.cancel()
        return lines

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=ANSWER_SECONDS)
        return self.process.returncode, out.decode(), err.decode()


Start = Callable[..., AbstractContextManager[Lftj]]


@pytest.fixture
def lftj(forked_lftj: list[str]) -> Start:
    @contextmanager
    def started(*arguments: str) -> Iterator[Lftj]:
        made = Lftj([*forked_lftj, *arguments])
        try:
            yield made
        finally:
            made.process.kill()
            made.process.communicate()

    return started


def piped(content: bytes, name: str = "pipe") -> str:
    """A named pipe through which the content comes."""
    os.mkfifo(name)

    def work() -> None:
        with open(name, "wb") as pipe:
            pipe.write(content)

    threading.Thread(target=work, daemon=True).start()
    return name


def arrow_stream(*tables: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, tables[0].schema) as writer:
        for table in tables:
            for batch in table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]:
                writer.write_batch(batch)
    return sink.getvalue()


def content_of(table: pa.Table, suffix: str) -> bytes:
    return Path(write(table, f"content{suffix}")).read_bytes()


def transactions(path: str) -> list[Any]:
    with ChangeFile("edge", path, EDGE) as file:
        return [
            (key and key.plain(), [tuple(row.values()) for part in parts for row in part.rows.to_pylist()])
            for key, parts in merged_transactions([file])
        ]


# -- what is loaded -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow"])
def test_stdin_is_loaded_by_its_content(forked_lftj: list[str], suffix: str) -> None:
    table = pa.table({"a": [1, 2, 1, 3], "b": [2, 3, 3, 4]})
    done = subprocess.run(
        [*forked_lftj, *QUERY, "--load", "edge=-", "--count"],
        input=content_of(table, suffix),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")


def test_process_substitution() -> None:
    Path("edges.csv.gz").write_bytes(gzip.compress(EDGES.encode()))
    lftj_command = f'"{sys.executable}" -c "from maintenance.shell.shell import main; main()"'
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"{lftj_command} maintain <(echo '{TRI}') --load edge=<(gzip -dc edges.csv.gz)"
            " --changes edge=<(printf 'txn,a,b,weight\\n1,2,4,1\\n') --out-changes tri=-",
        ],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"txn,a,b,c,weight\n1,2,3,4,1\n"


@pytest.mark.parametrize("arguments", [["-"], ["-e", TRI, "--load", "e=-"]])
def test_stdin_is_read_once(forked_lftj: list[str], arguments: list[str]) -> None:
    command = [*forked_lftj, "query", *arguments, "--load", "edge=-"]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert done.returncode == 2
    assert b"stdin (-) can be read once only" in done.stderr


def test_what_is_wrong_with_stdin_is_said_of_it(forked_lftj: list[str]) -> None:
    done = subprocess.run(
        [*forked_lftj, *QUERY, "--load", "edge=-"], input=b"a,b\n1\n", capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: standard input: can't be read as CSV: line 2 has 1 field")


# -- changes: what a feed is ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".arrows"])
def test_feeds_of_every_format(suffix: str) -> None:
    assert transactions(piped(content_of(CHANGES, suffix))) == IN_TRANSACTIONS


def test_csv_that_comes_byte_by_byte() -> None:
    content = 'weight,"a",txn,b\r\n1,1,"x ""\n",2\r\n1,2,"x ""\n",3\n\n\n\r\n-1,"1","y\n\n",2\n1,5,"z",5'
    os.mkfifo("pipe")

    def work() -> None:
        with open("pipe", "wb", buffering=0) as pipe:
            for byte in content.encode():
                pipe.write(bytes([byte]))

    threading.Thread(target=work, daemon=True).start()
    assert transactions("pipe") == [
        ('x "\n', [(1, 2, 1), (2, 3, 1)]),
        ("y\n\n", [(1, 2, -1)]),
        ("z", [(5, 5, 1)]),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b,weight\n1,2,1\n2,3,1\n", [(None, [(1, 2, 1), (2, 3, 1)])]),
        ("a,b,weight\n1,2,1\n\n2,3,1\n\n", [(None, [(1, 2, 1)]), (None, [(2, 3, 1)])]),
        ("\n\na,b,weight\n\n\n1,2,1\n\n\n\n", [(None, [(1, 2, 1)])]),
        ("a,b,weight\n", []),
        ("a,b,weight,txn\n", []),
        (
            "a,b,weight,txn\n1,2,1,5\n\n2,3,1,6\n2,4,1,7\n",
            [(5, [(1, 2, 1)]), (6, [(2, 3, 1)]), (7, [(2, 4, 1)])],
        ),
    ],
)
def test_blank_lines_end_transactions(content: str, expected: list[Any]) -> None:
    found = transactions(piped(content.encode()))
    assert [(key, rows) for key, rows in found if rows] == expected
    assert len(found) == len(expected)


def test_batches_without_rows_end_transactions() -> None:
    table = CHANGES.drop_columns("txn")
    nothing = table.slice(0, 0)
    content = arrow_stream(table.slice(0, 2), nothing, nothing, table.slice(2, 1), table.slice(3, 1), nothing)
    assert [rows for _, rows in transactions(piped(content))] == [
        [(1, 2, 1), (2, 3, 1)],
        [(1, 2, -1), (7, 7, 1)],
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "pipe: can't be read: there is nothing in it"),
        ("1,2,1\n", "pipe: can't be read: its first line, '1,2,1', has no column names"),
        ("a,b,weight\n1,2,1\n1,x,1\n", r"pipe: can't be read: column 'b', row 1 \(counting from 0\): .*'x'"),
        (
            "a,b,weight\n1,2,1\n\n1,y,1\n",
            r"pipe: can't be read: column 'b', row 1 \(counting .*'y'",
        ),
        ("a,b,weight\n1,2\n", r"pipe: can't be read: .*row 0 \(counting from 0\): Expected 3 columns, got 2"),
        ("a,c,weight\n1,2,1\n", "pipe: changes of 'edge' have no column 'c'"),
        ("a,b,weight,txn\n1,2,1,3\n1,3,1,2\n", "pipe: row 1 .*: txn goes backwards, from 3 to 2"),
        ("a,b,weight,txn\n1,2,1,3\n\n1,3,1,3\n", "pipe: row 1 .*: transaction 3 goes on behind the mark"),
    ],
)
def test_what_is_wrong_with_a_feed(content: str, message: str) -> None:
    with pytest.raises(errors.DataError, match=f"^{message}"):
        transactions(piped(content.encode()))


def test_csv_options_hold_for_feeds() -> None:
    content = b"a;b;weight;txn\n1;2;1;'x\ny'\n\n1;3;1;-\n"
    options = CsvOptions(delimiter=";", quote="'", nulls=["-"], types={"a": "int8"})
    with Feed(piped(content), {"b": pa.int16()}, options) as feed:
        assert feed.schema.types == [pa.int8(), pa.int16(), pa.int64(), pa.string()]
        assert [batch and batch["txn"].to_pylist() for batch in feed] == [["x\ny"], None, [None]]
    for options in (CsvOptions(header=False), CsvOptions(encoding="latin-1")):
        with pytest.raises(errors.SourceError, match="UTF-8 text below a line of column names"):
            Feed(piped(content, f"pipe{options.encoding}"), {}, options)


def test_a_quote_that_is_never_closed_ends_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lftj.files.csv_feed.MOST_ROW_BYTES", 1 << 16)
    assert MOST_ROW_BYTES > 1 << 16
    content = b'a,b,weight\n"1,2,1\n' + b"1,2,1\n" * 20_000
    with pytest.raises(errors.SourceError, match="a quote is not closed"):
        transactions(piped(content))


@pytest.mark.parametrize("cut", [1, 20, 200, 400])
def test_an_arrow_stream_that_ends_amid_a_batch_is_an_error(cut: int) -> None:
    content = arrow_stream(CHANGES)
    with pytest.raises(errors.SourceError, match=r"^pipe: "):
        transactions(piped(content[: len(content) - 8 - cut]))


def test_a_batch_is_given_out_before_the_next_one_comes() -> None:
    os.mkfifo("pipe")
    opened: list[int] = []
    opening = threading.Thread(target=lambda: opened.append(os.open("pipe", os.O_WRONLY)))
    opening.start()
    waiting = threading.Timer(0.2, lambda: os.write(opened[0], b"a,b\n1,2\n2"))
    waiting.start()
    with Feed("pipe", {"a": pa.int8()}) as feed:
        assert feed.schema == pa.schema({"a": pa.int8(), "b": pa.int64()})
        batches = iter(feed)
        assert next(batches).to_pylist() == [{"a": 1, "b": 2}]
        os.write(opened[0], b",3\n\n")
        assert next(batches).to_pylist() == [{"a": 2, "b": 3}]
        assert next(batches) is None
        os.close(opened[0])
        assert list(batches) == []
        assert not feed.incoming.stopped


def test_an_interrupted_feed_ends() -> None:
    os.mkfifo("pipe")
    opened: list[int] = []
    opening = threading.Thread(target=lambda: opened.append(os.open("pipe", os.O_WRONLY)))
    opening.start()
    threading.Timer(0.1, lambda: os.write(opened[0], b"a,b\n1,2\n2,3")).start()
    with Feed("pipe", {}) as feed:
        feed.incoming.interrupted = lambda: True
        assert [batch.to_pylist() for batch in feed] == [[{"a": 1, "b": 2}]]  # not the row that is half there
        assert feed.incoming.stopped
    os.close(opened[0])


# -- changes: following a feed -------------------------------------------------------------------------


def test_the_writer_has_the_answer_before_it_goes_on(lftj: Start) -> None:
    """By the next value of txn, by a blank line, and by the end."""
    with lftj(*MAINTAIN) as process:
        process.say("txn,a,b,weight\n1,2,4,1\n2,1,4,1\n")
        assert process.hear(2) == ["txn,a,b,c,weight", "1,2,3,4,1"]
        process.say("\n")
        assert sorted(process.hear(2)) == ["2,1,2,4,1", "2,1,3,4,1"]
        process.say("3,1,2,-1\n\n")
        assert sorted(process.hear(2)) == ["3,1,2,3,-1", "3,1,2,4,-1"]
        process.say("4,1,3,-1\n")
        status, out, err = process.end()
    assert (status, out) == (0, "4,1,3,4,-1\n")
    assert "4 transactions, 4 changes in" in err


def test_without_txn_blank_lines_are_the_ends_of_transactions(lftj: Start) -> None:
    with lftj(*MAINTAIN) as process:
        for number in range(5):
            weight = -1 if number % 2 else 1
            process.say(("" if number else "a,b,weight\n") + f"2,4,{weight}\n\n")
            answer = [*([] if number else ["a,b,c,weight"]), f"2,3,4,{weight}"]
            assert process.hear(len(answer)) == answer
        status, out, err = process.end()
    assert (status, out) == (0, "")
    assert "5 transactions, 5 changes in" in err


def test_an_arrow_stream_is_followed_too(lftj: Start) -> None:
    table = pa.table({"a": [2], "b": [4], "weight": [1]})
    content = arrow_stream(table, table.slice(0, 0))
    with lftj(*MAINTAIN) as process:
        process.say(content[:-8])  # without its end
        assert process.hear(2) == ["a,b,c,weight", "2,3,4,1"]
        process.say(content[-8:])
        assert process.end()[0] == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_wait_keeps_whole_transactions(lftj: Start, number: int, status: int) -> None:
    with lftj(*MAINTAIN, "--stats", "stats.jsonl", "--out", "tri=tri.csv") as process:
        process.say("txn,a,b,weight\n1,2,4,1\n2,1,4,1\n")
        assert process.hear(2) == ["txn,a,b,c,weight", "1,2,3,4,1"]
        process.process.send_signal(number)
        assert process.process.wait(timeout=ANSWER_SECONDS) == status
        _, out, err = process.end()
    assert out == ""
    assert err.splitlines()[-1] == "error: interrupted after 1 transaction, whose changes are written"
    assert len(Path("stats.jsonl").read_text(encoding="utf-8").splitlines()) == 1
    rows = csv.read_csv("tri.csv").to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(1, 2, 3), (2, 3, 4)]


def test_a_reader_that_has_enough_ends_a_feed(lftj: Start) -> None:
    with lftj(*MAINTAIN) as process:
        process.say("a,b,weight\n2,4,1\n\n")
        assert process.hear(2) == ["a,b,c,weight", "2,3,4,1"]
        assert process.process.stdout is not None
        process.process.stdout.close()
        process.say("2,4,-1\n\n")
        assert process.process.stderr is not None
        assert process.process.stderr.read() == b""
        assert process.process.wait(timeout=ANSWER_SECONDS) == 1


def test_two_feeds_are_merged_by_txn(lftj: Start) -> None:
    os.mkfifo("nodes")
    rule = "both(a, b) <- edge(a, b), node(a)."
    Path("nodes.csv").write_text("a\n9\n", encoding="utf-8")
    load = (*LOAD, "--load", "node=nodes.csv")
    changes = ("--changes", "edge=-", "--changes", "node=nodes")
    with lftj("maintain", "-e", rule, *load, *changes, "--out-changes", "both=-") as process:
        process.say("txn,a,b,weight\n1,1,7,1\n1,1,8,1\n3,2,8,1\n")
        with open("nodes", "wb", buffering=0) as nodes:
            nodes.write(b"txn,a,weight\n1,1,1\n2,2,1\n")
            lines = process.hear(5)
            assert lines[0] == "txn,a,b,weight"
            assert sorted(lines[1:]) == ["1,1,2,1", "1,1,3,1", "1,1,7,1", "1,1,8,1"]
        assert process.hear(1) == ["2,2,3,1"]  # the nodes have ended, and the edges are at 3
        status, out, _ = process.end()
    assert (status, out) == (0, "3,2,8,1\n")


def test_large_feeds_are_read_in_large_batches() -> None:
    n = 300_000
    table = pa.table({"txn": [i // 1000 for i in range(n)], "a": range(n), "b": range(n), "weight": [1] * n})
    sink = io.BytesIO()
    csv.write_csv(table, sink)
    with Feed(piped(sink.getvalue()), {}) as feed:
        sizes = [batch.num_rows for batch in feed if batch is not None]
    assert sum(sizes) == n
    assert len(sizes) < 200
