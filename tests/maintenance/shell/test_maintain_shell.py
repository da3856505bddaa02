"""``lftj maintain``: what it prints and writes, its exit status, and every kind of bad input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.shell import waiting
from maintenance.shell.shell import cli
from support.shell_runs import SECONDS, Done, Lftj, fails, in_this_process, on_terminal, start

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
LOAD = ("--load", "edge=edges.csv")
CHANGES = ("--changes", "edge=changes.csv")
MAINTAIN = ("maintain", "tri.rules", *LOAD, *CHANGES)
CHANGE_LINES = "txn,a,b,weight\n1,2,4,1\n2,1,4,1\n2,1,2,-1\n3,9,9,-1\n"
TRI_CHANGES = ["txn,a,b,c,weight", "1,2,3,4,1", "2,1,2,3,-1", "2,1,3,4,1"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: edges, triangles of them, and changes in three transactions."""
    monkeypatch.chdir(tmp_path)
    text("a,b\n1,2\n2,3\n1,3\n3,4\n", "edges.csv")
    text(CHANGE_LINES, "changes.csv")
    text(TRI, "tri.rules")
    return tmp_path


@pytest.fixture
def lftj(folder: Path, capsys: pytest.CaptureFixture[str]) -> Lftj:
    """Run one command line in this process."""
    return in_this_process(capsys)


def text(content: str, path: str) -> None:
    Path(path).write_text(content, encoding="utf-8")


def lines_of(path: str) -> list[Any]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def succeeds(done: Done) -> list[str]:
    """The lines on stdout."""
    assert done.status == 0, done.err
    assert "error" not in done.err
    return done.out.splitlines()


# -- what it does -----------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_changes_are_printed_with_their_transaction(lftj: Lftj, strategy: str) -> None:
    done = lftj(*MAINTAIN, "--strategy", strategy, "--out-changes", "tri=-", "--verify")
    header, *rows = succeeds(done)
    assert [header, *sorted(rows)] == TRI_CHANGES
    first, *table = done.err.splitlines()
    assert first.startswith("3 transactions, 4 changes in, 1 no-op, a commit takes ")
    assert table[0].split()[:4] == ["head", "strategy", "rows", "changes"]
    assert table[2].split()[:4] == ["tri", strategy, "2", "3"]
    assert len(table) == 3


def test_heads_that_are_wanted_are_kept_with_what_they_need(lftj: Lftj) -> None:
    rules = f"{TRI} ends(c) <- tri(1, _, c). no(a) <- edge(a, _)."
    command = ("maintain", "-e", rules, *LOAD, *CHANGES, "--result", "ends", "--verify")
    done = lftj(*command, "--out-changes", "ends=-")
    assert succeeds(done) == ["txn,c,weight", "2,3,-1", "2,4,1"]
    assert [line.split()[0] for line in done.err.splitlines()[3:]] == ["ends"]
    fails(lftj(*command, "--out", "tri=-"), 1, "no rule has the head 'tri'; heads are ends")


@pytest.mark.parametrize("room", [1 << 14, 5])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_to_a_file_many_transactions_are_committed_in_one_call(
    lftj: Lftj, monkeypatch: pytest.MonkeyPatch, strategy: str, room: int
) -> None:
    """Its lines are those of stdout, where each is committed by itself; some are too large to wait."""
    monkeypatch.setattr(waiting, "MOST_ROWS", room)
    random = Random(5)
    lines = [
        f"{txn},{random.randrange(6)},{random.randrange(6)},{random.choice((1, -1))}"
        for txn in range(60)
        for _ in range(random.choice((1, 1, 2, 9)))
    ]
    text("\n".join(["txn,a,b,weight", *lines, ""]), "changes.csv")
    text(f"{TRI} n[a] = count() <- tri(a, _, _).", "tri.rules")
    printed = lftj(
        *MAINTAIN, "--strategy", strategy, "--out-changes", "n=-", "--out-changes", "tri=printed.csv"
    )
    with mock.patch.object(Workspace, "apply_many", autospec=True, side_effect=Workspace.apply_many) as calls:
        outputs = ("--out-changes", "n=n.csv", "--out-changes", "tri=tri.csv")
        done = lftj(*MAINTAIN, "--strategy", strategy, *outputs, "--verify")
    assert succeeds(done) == []
    assert Path("n.csv").read_text().splitlines() == [line.replace("\r", "") for line in succeeds(printed)]
    assert Path("tri.csv").read_text() == Path("printed.csv").read_text()
    assert calls.call_count == 1 if room > 5 else calls.call_count > 3
    assert done.err.split(", a commit")[0] == printed.err.split(", a commit")[0]
    # The first columns; the lines between are as long as the seconds in the last ones are.
    first, second = (
        [line.split()[:4] for line in run.err.splitlines()[1:] if line.strip("─")] for run in (done, printed)
    )
    assert first == second


def test_without_txn_the_file_is_one_transaction(lftj: Lftj) -> None:
    text("a,b,weight\n2,4,1\n1,4,1\n1,2,-1\n", "changes.csv")
    header, *rows = succeeds(lftj(*MAINTAIN, "--out-changes", "tri=-", "--stats", "stats.jsonl"))
    assert header == "a,b,c,weight"
    assert sorted(rows) == ["1,2,3,-1", "1,3,4,1", "2,3,4,1"]
    (line,) = lines_of("stats.jsonl")
    assert (line["txn"], line["changes"]) == (None, 3)


def test_changes_of_one_transaction_add_up(lftj: Lftj) -> None:
    text("a,b,weight\n2,4,1\n2,4,-1\n", "changes.csv")
    done = lftj(*MAINTAIN, "--out-changes", "tri=-")
    assert succeeds(done) == ["a,b,c,weight"]
    assert "2 changes in, 2 no-ops" in done.err


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".feather"])
def test_results_go_to_files_of_every_format(lftj: Lftj, suffix: str) -> None:
    done = lftj(*MAINTAIN, "--out-changes", f"tri=changes{suffix}", "--out", f"tri=tri{suffix}")
    assert succeeds(done) == []
    query = ("query", "-e", "t(n, a, b, c, w) <- changes(n, a, b, c, w).", "--load")
    assert len(succeeds(lftj(*query, f"changes=changes{suffix}"))) == 4
    rows = succeeds(lftj("query", "-e", "t(a, b, c) <- tri(a, b, c).", "--load", f"tri=tri{suffix}"))
    assert sorted(rows[1:]) == ["1,3,4", "2,3,4"]


def test_files_of_results_hold_few_batches_and_the_types(lftj: Lftj) -> None:
    n = 3000
    parquet.write_table(
        pa.table(
            {
                "a": pa.array(range(n), pa.int16()),
                "b": pa.array(range(n), pa.int64()),
                "weight": pa.array([1] * n, pa.int8()),
                "txn": pa.array([f"t{i:06}" for i in range(n)]),
            }
        ),
        "changes.parquet",
    )
    rule = ("-e", "back(b, a) <- edge(a, b).", "--changes", "edge=changes.parquet")
    succeeds(lftj("maintain", *rule, *LOAD, "--out-changes", "back=back.parquet"))
    table = parquet.read_table("back.parquet")
    assert table.schema.names == ["txn", "b", "a", "weight"]
    assert table.schema.types == [pa.string(), pa.int64(), pa.int64(), pa.int64()]
    assert table.num_rows == n
    assert parquet.ParquetFile("back.parquet").num_row_groups == 1
    succeeds(lftj("maintain", *rule, *LOAD, "--out-changes", "back=back.arrow"))
    with pa.ipc.open_file("back.arrow") as file:
        assert file.num_record_batches < 5


def test_stats_are_a_line_of_json_per_transaction(lftj: Lftj) -> None:
    succeeds(lftj(*MAINTAIN, "--stats", "stats.jsonl"))
    lines = lines_of("stats.jsonl")
    assert [line["txn"] for line in lines] == [1, 2, 3]
    assert [line["changes"] for line in lines] == [1, 2, 1]
    assert lines[1]["inserted"] == {"edge": 1}
    assert lines[1]["erased"] == {"edge": 1}
    assert lines[2]["no_changes"] == {"edge": 1}
    assert lines[2]["heads"] == {}
    figures = lines[1]["heads"]["tri"]
    assert (figures["strategy"], figures["chosen"]) == ("auto", ["delta"])
    assert figures["head_changes"] == 2
    assert set(figures) >= {
        *("surgeries", "matches", "regions", "empty_regions", "opens", "nexts", "seeks"),
        *("head_changes", "seconds", "index_bytes"),
    }
    on_stdout = succeeds(lftj(*MAINTAIN, "--stats", "-", "--svg", "times.svg"))
    assert "2 commits, up to version" in Path("times.svg").read_text(encoding="utf-8")  # one changed nothing
    assert [json.loads(line)["txn"] for line in on_stdout] == [1, 2, 3]


def test_several_relations_and_heads(lftj: Lftj) -> None:
    text("a\n1\n", "red.csv")
    text("a,weight,txn\n2,1,2\n1,-1,4\n", "red_changes.csv")
    rules = f"{TRI}\nredtri(a, b, c) <- tri(a, b, c), red(a).\nplain(a) <- edge(a, _), !red(a)."
    done = lftj(
        *("maintain", "-e", rules, *LOAD, *CHANGES, "--load", "red=red.csv"),
        *("--changes", "edge=changes.csv", "--changes", "red=red_changes.csv", "--verify"),
        *("--out-changes", "redtri=-", "--out-changes", "plain=plain.csv", "--stats", "stats.jsonl"),
    )
    header, *rows = succeeds(done)
    assert header == "txn,a,b,c,weight"
    assert sorted(rows) == ["2,1,2,3,-1", "2,1,3,4,1", "2,2,3,4,1", "4,1,3,4,-1"]
    plain = Path("plain.csv").read_text(encoding="utf-8").splitlines()
    assert plain == ["txn,a,weight", "2,2,-1", "4,1,1"]
    assert [line["txn"] for line in lines_of("stats.jsonl")] == [1, 2, 3, 4]
    assert [line.split()[0] for line in done.err.splitlines()[3:]] == ["tri", "redtri", "plain"]


def test_nothing_changes(lftj: Lftj) -> None:
    text("txn,a,b,weight\n", "changes.csv")
    done = lftj(*MAINTAIN, "--out-changes", "tri=-", "--out", "tri=tri.csv", "--verify")
    assert succeeds(done) == ["txn,a,b,c,weight"]
    assert done.err.startswith("0 transactions, 0 changes in, 0 no-ops\n")
    assert Path("tri.csv").read_text(encoding="utf-8") == "a,b,c\n1,2,3\n"
    loop = ("maintain", "-e", "loop(a) <- edge(a, a).", *LOAD, *CHANGES)
    assert succeeds(lftj(*loop, "--out", "loop=-")) == ["a"]


def test_txn_by_date_and_a_head_with_columns_of_these_names(lftj: Lftj) -> None:
    text("a,b,weight,txn\n7,8,1,2026-01-31\n8,9,1,2026-02-01\n", "changes.csv")
    rule = ("-e", "names(txn, weight) <- edge(txn, weight).")
    done = lftj("maintain", *rule, *LOAD, *CHANGES, "--out-changes", "names=-", "--stats", "stats.jsonl")
    assert succeeds(done) == ["txn_,txn,weight,weight_", "2026-01-31,7,8,1", "2026-02-01,8,9,1"]
    assert [line["txn"] for line in lines_of("stats.jsonl")] == ["2026-01-31", "2026-02-01"]


def test_nulls_are_dropped_on_request(lftj: Lftj) -> None:
    text("a,b,weight,txn\n2,4,1,1\n,2,1,1\n", "changes.csv")
    fails(lftj(*MAINTAIN), 1, "changes.csv", "row 1", "transaction 1", "a is NULL")
    text("a,b\n1,2\n2,3\n1,3\n3,4\n,4\n", "edges.csv")
    done = lftj(*MAINTAIN, "--out-changes", "tri=-", "--nulls", "drop")
    assert succeeds(done) == ["txn,a,b,c,weight", "1,2,3,4,1"]
    assert "note: edge: 1 row with NULL dropped\n" in done.err
    assert "note: changes.csv: 1 row with NULL dropped\n" in done.err


def test_help(lftj: Lftj) -> None:
    assert "maintain" in lftj("--help").out
    assert "--out-changes" in lftj("maintain", "-h").out
    (strategy,) = [o for o in cli.commands["maintain"].params if o.name == "strategy"]
    assert list(strategy.type.choices) == list(STRATEGIES)  # type: ignore[attr-defined]


def test_help_does_not_wait_for_the_engine() -> None:
    heavy = "('numba', 'lark', 'rich')"
    code = f"import sys, maintenance.shell.shell; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


# -- the command is wrong ---------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["tri.rules", *LOAD], "--changes"),
        ([*LOAD, *CHANGES], "give the rules once"),
        (["tri.rules", *LOAD, "--changes", "edge"], "not of the form NAME=PATH"),
        (["tri.rules", *LOAD, "--changes", "egde=changes.csv"], "'egde', which no --load gives"),
        (["tri.rules", *LOAD, "--changes", "tri=changes.csv"], "'tri', which no --load gives"),
        (["tri.rules", *LOAD, *LOAD, *CHANGES], "'edge' twice"),
        (["tri.rules", *LOAD, *CHANGES, "--strategy", "fast"], "'fast'"),
        (["tri.rules", *LOAD, *CHANGES, "--out", "tri.csv"], "not of the form NAME=PATH"),
        (["tri.rules", *LOAD, *CHANGES, "--out", "tri=tri.xlsx"], "ends in none of"),
        (["tri.rules", *LOAD, *CHANGES, "--out-changes", "tri=no/tri.csv"], "there is no folder"),
        (["tri.rules", *LOAD, *CHANGES, "--stats", "no/stats.jsonl"], "there is no folder"),
        (["tri.rules", *LOAD, *CHANGES, "--out", "tri=-", "--stats", "-"], "both go to stdout"),
        (["tri.rules", *LOAD, *CHANGES, "--svg", "-", "--stats", "-"], "both go to stdout"),
        (["tri.rules", *LOAD, *CHANGES, "--svg", "no/times.svg"], "there is no folder"),
        (["tri.rules", *LOAD, *CHANGES, "--out", "tri=t.csv", "--out-changes", "tri=t.csv"], "'t.csv'"),
        (
            ["tri.rules", *LOAD, *CHANGES, "--out", "tri=t.csv", "--out", "tri=u.csv"],
            "--out gives 'tri' twice",
        ),
    ],
)
def test_a_wrong_command_is_status_2(lftj: Lftj, arguments: list[str], part: str) -> None:
    fails(lftj("maintain", *arguments), 2, part, "--help")


# -- the run fails ----------------------------------------------------------

RESULTS = ("--out-changes", "tri=out.csv", "--out", "tri=tri.parquet", "--stats", "stats.jsonl")


@pytest.fixture
def leaves_nothing(lftj: Lftj, folder: Path) -> Callable[..., None]:
    """Run a command line that fails with one message and leaves no file."""

    def check(arguments: tuple[str, ...], *parts: str) -> None:
        before = sorted(folder.iterdir())
        fails(lftj(*arguments), 1, *parts)
        assert sorted(folder.iterdir()) == before

    return check


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ("txn,a,b,weight\n1,2,4,1\n3,1,4,1\n2,1,2,-1\n", ["row 2", "backwards, from 3 to 2"]),
        ("txn,a,b,weight\n1,2,4,1\n2,1,x,1\n", ["row 1", "'b'", "'x'"]),
        ("txn,a,b,weight\n1,2,4,1\n2,1,4,0.5\n", ["row 1", "'weight'", "'0.5'"]),
        ("txn,a,b,weight\n1,2,4,1\n2,1,,1\n", ["row 1", "transaction 2", "b is NULL"]),
        ("txn,a,b,weight\n1,2,4,1\n2,1,4\n", ["line 3"]),
        (f"txn,a,b,weight\n1,2,4,1\n2,1,4,{2**40}\n", ["transaction 2", "weight of row 0", str(2**40)]),
        ("txn,a,c,weight\n1,2,4,1\n", ["no column 'c'"]),
        ("txn,a,b\n1,2,4\n", ["no column 'weight'"]),
        ("", ["the file is empty"]),
    ],
)
def test_bad_changes_name_the_place(
    leaves_nothing: Callable[..., None], changes: str, parts: list[str]
) -> None:
    text(changes, "changes.csv")
    leaves_nothing((*MAINTAIN, *RESULTS), "error: changes.csv", *parts)


def test_refused_commits_name_the_transaction(leaves_nothing: Callable[..., None]) -> None:
    rule = ("maintain", "-e", "tri(a, c) <- edge(a, b), c = 12 / (b - 4).", *LOAD, *CHANGES, *RESULTS)
    text("a,b\n1,2\n", "edges.csv")
    text("txn,a,b,weight\n1,2,3,1\n2,1,4,1\n", "changes.csv")
    leaves_nothing(rule, "changes.csv, transaction 2: ", "zero")
    leaves_nothing((*rule[: -len(RESULTS)], "--out", "tri=tri.csv"), "changes.csv, transaction 2: ", "zero")
    parquet.write_table(pa.table({"a": [0.5], "b": [1]}), "edges.parquet")
    parquet.write_table(
        pa.table({"a": [float("nan")], "b": [1], "weight": [1], "txn": ["monday"]}), "nan.parquet"
    )
    rule = ("maintain", "-e", "tri(b, c) <- edge(a, b), edge(a, c).", "--load", "edge=edges.parquet")
    leaves_nothing(
        (*rule, "--changes", "edge=nan.parquet", *RESULTS), "nan.parquet, transaction monday: ", "NaN", "'a'"
    )


def test_the_other_failures(leaves_nothing: Callable[..., None]) -> None:
    maintain = ("maintain", "tri.rules", *LOAD)
    leaves_nothing((*maintain, "--changes", "edge=no.csv", *RESULTS), "no.csv: there is no such file")
    leaves_nothing((*maintain, *CHANGES, "--out", "tir=t.csv"), "'tir'", "heads are tri")
    leaves_nothing((*maintain, *CHANGES, "--out", "edge=t.csv"), "'edge'", "heads are tri")
    leaves_nothing(("maintain", "-e", "t(a) <- egde(a, _).", *LOAD, *CHANGES), "did you mean 'edge'?", "^")
    leaves_nothing(("maintain", "-e", "t(a) <- edge(a, _), !t(a).", *LOAD, *CHANGES), "negation")
    leaves_nothing(("maintain", "-e", "t(a <- edge(a, _).", *LOAD, *CHANGES), "^")


def test_changes_of_the_wrong_type(leaves_nothing: Callable[..., None], folder: Path) -> None:
    table = pa.table({"a": ["x"], "b": ["y"], "weight": [1], "txn": [4]})
    parquet.write_table(table, "strings.parquet")
    leaves_nothing(
        ("maintain", "tri.rules", *LOAD, "--changes", "edge=strings.parquet", *RESULTS),
        *("strings.parquet, transaction 4: ", "'a'", "string", "int64"),
    )


def test_a_head_that_differs_leaves_nothing(
    leaves_nothing: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(workspace: Workspace) -> None:
        raise errors.VerificationError("head 'tri' differs")

    monkeypatch.setattr(Workspace, "verify", differs)
    leaves_nothing((*MAINTAIN, *RESULTS, "--verify"), "head 'tri' differs")


def test_a_failed_run_leaves_an_older_file_as_it_was(lftj: Lftj) -> None:
    text("old", "out.csv")
    text("txn,a,b,weight\n1,2,4,1\n0,1,4,1\n", "changes.csv")
    fails(lftj(*MAINTAIN, "--out-changes", "tri=out.csv"), 1, "backwards")
    assert Path("out.csv").read_text(encoding="utf-8") == "old"


# -- processes, pipes and terminals -----------------------------------------


def many_changes(n: int) -> None:
    csv.write_csv(
        pa.table(
            {"a": np.arange(n), "b": np.arange(1, n + 1), "weight": np.ones(n, int), "txn": np.arange(n)}
        ),
        "changes.csv",
    )


@pytest.mark.usefixtures("warmed")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_was_committed(folder: Path, number: int) -> None:
    many_changes(1_000_000)
    rule = ("maintain", "-e", "back(b, a) <- edge(a, b).", *LOAD, *CHANGES)
    out = ("--out-changes", "back=back.parquet", "--stats", "stats.jsonl")
    process = start(*rule, *out, stderr=subprocess.PIPE)
    deadline = time.perf_counter() + SECONDS
    while not any(part.stat().st_size for part in folder.glob(".stats.jsonl.*.part")):
        assert time.perf_counter() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number
    n_done = len(lines_of("stats.jsonl"))
    assert 0 < n_done < 1_000_000
    last = err.decode().splitlines()[-1]
    assert last == f"error: interrupted after {n_done:,} transactions, whose changes are written"
    reported = parquet.read_table("back.parquet")
    assert reported["txn"].to_pylist() == [n for n in range(n_done) if n not in (1, 2, 3)]
    assert not list(folder.glob(".*.part"))


@pytest.mark.usefixtures("folder")
def test_a_transaction_that_is_being_read_is_dropped(forked_lftj: list[str]) -> None:
    """All of the file is one transaction: nothing of it is committed."""
    n = 3_000_000
    table = pa.table({"a": np.arange(n), "b": np.arange(n), "weight": np.ones(n, int)})
    parquet.write_table(table, "changes.parquet")
    maintain = ("maintain", "-e", "back(b, a) <- edge(a, b).", *LOAD, "--changes", "edge=changes.parquet")
    arguments = *maintain, "--out-changes", "back=-"
    process = start(*arguments, command=forked_lftj, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"b,a,weight\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, b"")
    assert err.splitlines()[-1] == b"error: interrupted after 0 transactions, whose changes are written"


@pytest.mark.usefixtures("folder")
def test_a_reader_that_has_enough_ends_the_run(forked_lftj: list[str]) -> None:
    many_changes(200_000)
    maintain = ("maintain", "-e", "back(b, a) <- edge(a, b).", *LOAD, *CHANGES, "--out-changes", "back=-")
    process = start(*maintain, command=forked_lftj, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"txn,b,a,weight\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=SECONDS) == 1


@pytest.mark.usefixtures("folder")
def test_on_a_terminal(forked_lftj: list[str]) -> None:
    shown = on_terminal(*MAINTAIN, "--out-changes", "tri=-", command=forked_lftj)
    assert "1,2,3,4,1\r\n" in shown
    assert "3 transactions, 4 changes in" in shown


def test_what_streams_do_and_what_only_grows_is_written(lftj: Lftj) -> None:
    Path("trade.csv").write_text("s,t,e\n1,100,0\n")
    Path("feed.csv").write_text("txn,s,t,e,weight\n1,1,118,1,1\n2,1,109,2,1\n2,2,140,3,1\n3,2,141,4,1\n")
    Path("rate.csv").write_text("s,p\n1,7\n2,8\n")
    Path("rates.csv").write_text("txn,s,p,weight\n3,2,8,-1\n3,2,9,1\n")
    rules = (
        "stream trade(t) late 5 keep 20. n[w] = count() <- trade(_, t, _), w = tumble(t, 10)."
        " final n at w + 10. out(e, p) <- trade(s, _, e), rate(s, p) asof now."
    )
    loads = ("--load", "trade=trade.csv", "--load", "rate=rate.csv")
    feeds = ("--changes", "trade=feed.csv", "--changes", "rate=rates.csv")
    heads = ("--out-changes", "n_final=n.csv", "--out-changes", "out=-", "--out", "out=out.csv")
    shown = succeeds(
        lftj("maintain", "-e", rules, *loads, *feeds, *heads, "--stats", "stats.jsonl", "--verify")
    )
    assert shown == ["txn,e,p,weight", "1,1,7,1", "2,3,8,1", "3,4,9,1"]
    assert Path("n.csv").read_text() == "txn,w,count,weight\n1,100,1,1\n2,110,1,1\n"
    assert Path("out.csv").read_text() == "e,p\n1,7\n3,8\n4,9\n"
    lines = lines_of("stats.jsonl")
    assert [line["late"] for line in lines] == [{}, {"trade": 1}, {}]
    assert [line["expired"] for line in lines] == [{}, {"trade": 1}, {}]
