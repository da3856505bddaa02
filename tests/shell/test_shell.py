"""The console script: what it prints where, its exit status, and every kind of bad input."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from lftj.shell import shell
from support.paths import ROOT
from support.shell_runs import SECONDS, Lftj, fails, in_this_process, on_terminal, start

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
LONG = "far(a, b, c, d) <- edge(a, b), edge(b, c), edge(c, d)."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with edges, nodes and a rule in it."""
    monkeypatch.chdir(tmp_path)
    edges = pa.table({"a": [1, 2, 1, 3, 1], "b": [2, 3, 3, 4, 4]})
    parquet.write_table(edges, "edges.parquet")
    csv.write_csv(edges, "edges.csv")
    with pa.ipc.new_file("edges.arrow", edges.schema) as writer:
        writer.write_table(edges)
    Path("tri.rules").write_text(f"// directed triangles\n{TRI}\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def lftj(folder: Path, capsys: pytest.CaptureFixture[str]) -> Lftj:
    """Run one command line in this process."""
    return in_this_process(capsys)


# -- what it does -----------------------------------------------------------


@pytest.mark.parametrize("file", ["edges.parquet", "edges.csv", "edges.arrow"])
def test_query_prints_csv_off_a_terminal(lftj: Lftj, file: str) -> None:
    done = lftj("query", "tri.rules", "--load", f"edge={file}")
    assert done.status == 0
    assert done.err == ""
    header, *rows = done.out.splitlines()
    assert header == "a,b,c"
    assert sorted(rows) == ["1,2,3", "1,3,4"]


def test_equal_rows_are_told_of(lftj: Lftj) -> None:
    Path("twice.csv").write_text("a,b\n1,2\n1,2\n2,3\n1,2\n")
    load = ("-e", "h(a) <- e(a, _).", "--load", "e=twice.csv", "--count")
    assert lftj("query", *load) == (
        0,
        "2\n",
        "warning: relation 'e' is a set: 2 equal rows of its source left out; bag=True keeps such rows"
        " (--bag in the shell), row_number= tells them apart\n",
    )
    assert lftj("query", *load, "--bag", "e") == (0, "2\n", "")


def test_rules_come_from_stdin_or_the_command_line(lftj: Lftj, monkeypatch: pytest.MonkeyPatch) -> None:
    load = ("--load", "edge=edges.csv", "--count")
    assert lftj("query", "-e", TRI, *load) == (0, "2\n", "")
    with open("tri.rules", encoding="utf-8") as rules:
        monkeypatch.setattr(sys, "stdin", rules)
        assert lftj("query", "-", *load) == (0, "2\n", "")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".feather"])
def test_out_writes_the_format_of_the_suffix(lftj: Lftj, suffix: str) -> None:
    done = lftj("query", "tri.rules", "--load", "edge=edges.parquet", "--out", f"tri{suffix}")
    assert done == (0, "", "")
    again = lftj("query", "-e", "c(x) <- tri(_, _, x).", "--load", f"tri=tri{suffix}")
    assert sorted(again.out.split()) == ["3", "4", "x"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_an_empty_result_is_a_result(lftj: Lftj, suffix: str) -> None:
    none = ("query", "-e", "loop(a) <- edge(a, a).", "--load", "edge=edges.parquet")
    assert lftj(*none) == (0, "a\n", "")
    assert lftj(*none, "--count") == (0, "0\n", "")
    assert lftj(*none, "--out", f"loop{suffix}") == (0, "", "")
    load = ("--load", "edge=edges.parquet", "--load", f"loop=loop{suffix}")
    assert lftj("query", "-e", "n(a) <- edge(a, _), !loop(a).", *load, "--count") == (0, "3\n", "")


def test_head_order_and_threads(lftj: Lftj) -> None:
    rules = "source(a), target(b) <- edge(a, b), a < 3."
    done = lftj("query", "-e", rules, "--load", "edge=edges.csv", "--head", "target", "--threads", "2")
    assert sorted(done.out.split()) == ["2", "3", "4", "b"]
    done = lftj("query", "tri.rules", "--load", "edge=edges.csv", "--order", "c, b,a", "--count")
    assert done == (0, "2\n", "")


def test_sorted_rows_and_the_first_of_them(lftj: Lftj) -> None:
    query = ("query", "-e", "out(a, b) <- edge(a, b).", "--load", "edge=edges.csv")
    assert lftj(*query, "--order-by", "b desc, a").out.split() == ["a,b", "1,4", "3,4", "1,3", "2,3", "1,2"]
    assert lftj(*query, "--order-by", "a desc", "--limit", "2").out.split() == ["a,b", "3,4", "2,3"]
    assert lftj(*query, "--limit", "2", "--out", "two.parquet") == (0, "", "")
    assert parquet.read_table("two.parquet").to_pylist() == [{"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert lftj(*query, "--limit", "0").out == "a,b\n"
    fails(lftj(*query, "--order-by", "c"), 1, "no column 'c'", "'a' and 'b'")
    assert lftj(*query, "--limit", "-1").status == 2
    assert "--count counts all rows" in lftj(*query, "--limit", "1", "--count").err


def test_explain(lftj: Lftj) -> None:
    plan = lftj("explain", "tri.rules", "--load", "edge=edges.csv")
    assert plan.status == 0
    assert plan.err == ""
    assert "edge" in plan.out
    measured = lftj("explain", "tri.rules", "--load", "edge=edges.csv", "--analyze", "--order", "a,b,c")
    assert measured.status == 0
    assert "seeks" in measured.out
    drawn = lftj("explain", "tri.rules", "--load", "edge=edges.csv", "--svg", "plan.svg")
    assert drawn.out == plan.out
    assert lftj("explain", "tri.rules", "--load", "edge=edges.csv", "--svg", "-") == (
        0,
        Path("plan.svg").read_text(encoding="utf-8"),
        "",
    )
    fails(lftj("explain", "tri.rules", "--svg", "no/plan.svg"), 2, "there is no folder")


def test_help_and_version(lftj: Lftj) -> None:
    assert "explain" in lftj("--help").out
    assert "--load" in lftj("query", "-h").out
    assert lftj("--version").out == "lftj 0.1.0\n"


def test_nulls_are_dropped_on_request(lftj: Lftj) -> None:
    Path("n.csv").write_text("a,b\n1,2\n,3\n2,\n", encoding="utf-8")
    arguments = ("query", "-e", "p(a) <- n(a, _).", "--load", "n=n.csv")
    fails(lftj(*arguments), 1, "'n'", "'a'", "drop")
    done = lftj(*arguments, "--nulls", "drop")
    assert done == (0, "a\n1\n", "note: n: 2 rows with NULL dropped\n")


def test_a_cartesian_product_is_warned_of(lftj: Lftj) -> None:
    done = lftj("query", "-e", "all(a, c) <- edge(a, _), edge(c, _).", "--load", "edge=edges.csv", "--count")
    assert (done.status, done.out) == (0, "9\n")
    assert done.err.startswith("warning: ")
    assert ".py" not in done.err


def test_columns_with_other_names(lftj: Lftj) -> None:
    Path("orders.csv").write_text("Order ID,a.b\n1,2\n", encoding="utf-8")
    query = ("query", "-e", "o(x, y) <- orders(x, y).", "--load", "orders=orders.csv")
    done = lftj(*query)
    renames = ("--rename", "orders.Order ID=Order_ID", "--rename", "orders.a.b=a_b")
    said = " ".join(f"'{part}'" if "=" in part else part for part in renames)
    assert done.err == (
        "error: relation 'orders': column 'Order ID' cannot be a variable in a rule, nor can 'a.b': add"
        f" {said}\n"
    )
    assert lftj(*query, *renames) == (0, "x,y\n1,2\n", "")
    fails(lftj(*query, "--rename", "orders.c=d"), 1, "no such column")


# -- the command is wrong ---------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "Missing command"),
        (["mantain"], "No such command 'mantain'"),
        (["query"], "give the rules once"),
        (["query", "tri.rules", "-e", TRI], "give the rules once"),
        (["query", "tri.rules", "--fast"], "--fast"),
        (["query", "tri.rules", "--load", "edge"], "'edge' is not of the form NAME=PATH"),
        (["query", "tri.rules", "--load", "edge="], "'edge=' is not of the form NAME=PATH"),
        (["query", "tri.rules", "--load", "my-edge=edges.csv"], "'my-edge' cannot be the name of a relation"),
        (["query", "tri.rules", "--load", "true=edges.csv"], "'true' cannot be the name of a relation"),
        (["query", "tri.rules", "--load", "e=edges.csv", "--load", "e=x.csv"], "'e' twice"),
        (["query", "tri.rules", "--load", "e=edges.csv", "--rename", "e=x"], "not of the form RELATION"),
        (["query", "tri.rules", "--load", "e=edges.csv", "--rename", "f.a=x"], "'f', which no --load gives"),
        (["query", "tri.rules", "--out", "tri.xlsx"], "'tri.xlsx' ends in none of"),
        (["query", "tri.rules", "--out", "no/tri.csv"], "there is no folder"),
        (["query", "tri.rules", "--out", "tri.csv", "--count"], "--count"),
        (["query", "tri.rules", "--threads", "0"], "--threads"),
        (["query", "tri.rules", "--nulls", "ignore"], "--nulls"),
        (["query", "tri.rules", "--order", "a,,b"], "not a list of variables"),
    ],
)
def test_a_wrong_command_is_status_2(lftj: Lftj, arguments: list[str], part: str) -> None:
    fails(lftj(*arguments), 2, part, "--help")


# -- the run fails ----------------------------------------------------------


def test_missing_files(lftj: Lftj) -> None:
    fails(lftj("query", "no.rules"), 1, "no.rules: No such file")
    fails(lftj("query", "tri.rules", "--load", "edge=no.parquet"), 1, "no.parquet")
    fails(lftj("query", "."), 1, "directory")
    Path("empty").mkdir()
    fails(lftj("query", "tri.rules", "--load", "edge=empty"), 1, "no Parquet file")


def test_a_truncated_parquet_file(lftj: Lftj) -> None:
    whole = Path("edges.parquet").read_bytes()
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        Path("cut.parquet").write_bytes(whole[:length])
        fails(lftj("query", "tri.rules", "--load", "edge=cut.parquet"), 1, "cut.parquet")


def test_a_ragged_csv_row(lftj: Lftj) -> None:
    Path("ragged.csv").write_text("a,b\n1,2\n3\n4,5\n", encoding="utf-8")
    fails(lftj("query", "tri.rules", "--load", "edge=ragged.csv"), 1, "ragged.csv", "line 3")


def test_nan_in_a_key(lftj: Lftj) -> None:
    parquet.write_table(pa.table({"a": [1.5, float("nan")], "b": [2, 3]}), "f.parquet")
    fails(
        lftj("query", "-e", "p(b, c) <- f(a, b), f(a, c).", "--load", "f=f.parquet"), 1, "NaN", "'f'", "'a'"
    )


def test_types_that_cannot_meet(lftj: Lftj) -> None:
    Path("s.csv").write_text("a\nx\n", encoding="utf-8")
    load = ("--load", "edge=edges.csv", "--load", "s=s.csv")
    fails(lftj("query", "-e", "p(a) <- edge(a, _), s(a).", *load), 1, "edge", "s", "^")


def test_an_empty_relation_is_no_error(lftj: Lftj) -> None:
    parquet.write_table(
        pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}), "no.parquet"
    )
    assert lftj("query", "tri.rules", "--load", "edge=no.parquet") == (0, "a,b,c\n", "")


@pytest.mark.parametrize(
    ("rules", "part"),
    [
        ("tri(a, b <- edge(a, b).", "^"),
        ("tri(a, b) <- edge(a, b)", "dot"),
        ("tri(a, b) <- egde(a, b).", "did you mean 'edge'?"),
        ("tri(a, b) <- edge(a, b, c).", "^"),
        ("tri(a, z) <- edge(a, b).", "^"),
        ("t(a) <- edge(a, _), !edge(a, z), z < 3.", "^"),
        ("t(a) <- edge(a, b), t(b).", "t"),
        ("", "error"),
    ],
)
def test_a_wrong_rule(lftj: Lftj, rules: str, part: str) -> None:
    fails(lftj("query", "-e", rules, "--load", "edge=edges.csv"), 1, part)
    fails(lftj("explain", "-e", rules, "--load", "edge=edges.csv"), 1, part)


def test_a_wrong_order_and_a_wrong_head(lftj: Lftj) -> None:
    fails(lftj("query", "tri.rules", "--load", "edge=edges.csv", "--order", "a,b"), 1, "c")
    fails(lftj("query", "tri.rules", "--load", "edge=edges.csv", "--head", "tir"), 1, "tri")


def test_rules_that_are_not_text(lftj: Lftj) -> None:
    Path("bad.rules").write_bytes(b"tri(a) <- \xff")
    fails(lftj("query", "bad.rules"), 1, "bad.rules is not UTF-8")


def test_a_failed_run_leaves_no_file(lftj: Lftj, folder: Path) -> None:
    before = sorted(folder.iterdir())
    fails(
        lftj(
            "query",
            "-e",
            "t(c) <- edge(a, b), c = 1 / (b - a - 1).",
            "--load",
            "edge=edges.csv",
            "--out",
            "t.csv",
        ),
        1,
    )
    assert sorted(folder.iterdir()) == before


# -- processes, pipes and terminals -----------------------------------------


@pytest.fixture
def large(folder: Path) -> str:
    """``--load`` value of a graph on which LONG takes very long and has very many rows."""
    n = 1200
    dense = pa.table({"a": [i // n for i in range(n * n)], "b": [i % n for i in range(n * n)]})
    parquet.write_table(dense, "dense.parquet")
    return "edge=dense.parquet"


@pytest.mark.in_turns
@pytest.mark.usefixtures("warmed")
@pytest.mark.parametrize(
    ("number", "rule"),
    [
        (signal.SIGINT, "n[a] = count() <- edge(a, b), edge(b, c), edge(c, d), edge(d, e), edge(e, a)."),
        (signal.SIGTERM, LONG),
    ],
)
def test_an_interrupted_join_stops_cleanly(folder: Path, large: str, number: int, rule: str) -> None:
    """Once it has computed for 1.5 seconds of the processor, whatever else the machine does."""
    assert shell.run(("query", "-e", rule, "--load", "edge=edges.parquet", "--out", "compiled.csv")) == 0
    before = sorted(folder.iterdir())
    process = start("query", "-e", rule, "--load", large, "--out", "long.csv", stderr=subprocess.PIPE)
    child = psutil.Process(process.pid)
    deadline = time.perf_counter() + SECONDS

    def wait() -> None:
        assert time.perf_counter() < deadline
        assert process.poll() is None, "the join was meant to take long"
        time.sleep(0.05)

    while not list(folder.glob(".long.csv.*.part")):  # there from the start of the join
        wait()
    began = sum(child.cpu_times()[:2])
    while sum(child.cpu_times()[:2]) < began + 1.5:
        wait()
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (128 + number, b"error: interrupted\n")
    assert sorted(folder.iterdir()) == before


def test_a_reader_that_has_enough_ends_the_run(forked_lftj: list[str], large: str) -> None:
    arguments = ("query", "-e", LONG, "--load", large)
    process = start(*arguments, command=forked_lftj, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"a,b,c,d\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=SECONDS) == 1


@pytest.mark.usefixtures("folder")
def test_a_terminal_gets_a_table(forked_lftj: list[str]) -> None:
    csv.write_csv(pa.table({"a": range(100)}), "many.csv")
    query = ("query", "-e", "few(a) <- many(a).", "--load", "many=many.csv")
    shown = on_terminal(*query, command=forked_lftj)
    assert "100 rows, the first 40 shown" in shown
    assert sum(line.strip().isdigit() for line in shown.splitlines()) == 40


@pytest.mark.usefixtures("folder")
def test_a_terminal_gets_csv_when_it_asks(forked_lftj: list[str]) -> None:
    query = ("query", "tri.rules", "--load", "edge=edges.csv", "--out", "-")
    shown = on_terminal(*query, command=forked_lftj)
    assert "a,b,c\r\n" in shown
    assert "1,2,3\r\n" in shown


def test_the_status_stands_whatever_would_happen_at_the_interpreters_end(folder: Path) -> None:
    """Threads of Arrow's that come back to Python meanwhile abort the process."""
    code = "import atexit, os; atexit.register(os.abort); from lftj.shell.shell import main; main()"
    for arguments, status in (["-e", TRI, "--load", "edge=edges.csv"], 0), (["-e", TRI], 1), (["--none"], 2):
        done = subprocess.run(
            [sys.executable, "-c", code, "query", *arguments], capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == status, done.stderr
        assert (done.stdout.count("\n"), "error: " in done.stderr) == (3 * (status == 0), status > 0)


# -- the first minutes ------------------------------------------------------------------------


def test_the_command_alone_prints_its_help(lftj: Lftj) -> None:
    done, asked = lftj(), lftj("--help")
    assert done == (2, "", f"error: Missing command.\n\n{asked.out}")
    assert asked.status == 0 and asked.out.startswith("Usage: lftj")


def test_the_package_is_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "lftj", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert run("query", "tri.rules", "--load", "edge=edges.csv", "--count") == "2\n"
    shown = run("open", "--help")
    assert "Usage: lftj open" in shown and "uninstall" in shown


def test_rules_where_a_file_is_meant(lftj: Lftj) -> None:
    fails(lftj("query", TRI, "--load", "edge=edges.csv"), 2, "stand behind -e, as in -e 'h(a) <- ...'")


@pytest.mark.parametrize("option", ["--limit", "--threads"])
@pytest.mark.parametrize("value", ["x", "-1", "1.5", ""])
def test_numbers_say_what_they_are(lftj: Lftj, option: str, value: str) -> None:
    done = lftj("query", "tri.rules", "--load", "edge=edges.csv", f"{option}={value}")
    fails(done, 2, f"{option}", f"{value!r} is no whole number from")
