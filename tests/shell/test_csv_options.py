"""``--csv-delimiter`` and its like, and ``--columns``, in every command that loads files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from maintenance.shell.shell import cli
from support.shell_runs import Done, Lftj, fails, in_this_process

RULE = "h(a, b) <- r(a, b)."
QUERY = ("query", "-e", RULE, "--load")


@pytest.fixture
def lftj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lftj:
    """Run one command line in this process."""
    monkeypatch.chdir(tmp_path)
    return in_this_process(capsys)


def test_each_option(lftj: Lftj) -> None:
    Path("r.csv").write_bytes("a;b\n007;'é; -'\n".encode("latin-1"))
    said = ("--csv-delimiter", ";", "--csv-quote", "'", "--csv-encoding", "latin-1")
    done = lftj(*QUERY, "r=r.csv", *said, "--csv-type", "r.a=string")
    assert done == Done(0, 'a,b\n"007","é; -"\n', "")
    Path("r.csv").write_text('x\t"y\n?\tz\n')
    done = lftj(
        *QUERY, "r=r.csv", "--csv-delimiter", r"\t", "--csv-quote", "", "--no-csv-header",
        "--columns", "r=a,b", "--csv-null", "?", "--nulls", "drop",
    )  # fmt: skip
    assert done.status == 0
    assert done.out == 'a,b\n"x","""y"\n'
    Path("r.csv").write_text("1,2\n3,4\n")
    renamed = "--rename", "r.1=a", "--rename", "r.2=b"
    assert lftj(*QUERY, "r=r.csv", "--csv-header", *renamed).out == "a,b\n3,4\n"


def test_columns_name_those_of_lists_of_edges_and_choose_among_others(lftj: Lftj) -> None:
    Path("r.txt").write_text("# from to\n1\t2\n")
    assert lftj(*QUERY, "r=r.txt", "--columns", "r=a,b") == Done(0, "a,b\n1,2\n", "")
    fails(lftj(*QUERY, "r=r.txt"), 1, "has no column names", "(on the command line: --columns NAME=...)")
    parquet.write_table(pa.table({"y": [2], "z": [3], "x": [1]}), "r.parquet")
    assert lftj(*QUERY, "r=r.parquet", "--columns", "r=x,y").out == "a,b\n1,2\n"


def test_bags_keep_equal_rows(lftj: Lftj) -> None:
    Path("r.csv").write_text("a,b\n1,2\n1,2\n3,4\n")
    Path("c.csv").write_text("a,b,weight\n1,2,3\n3,4,-5\n")
    rule = ("-e", "n[a] = count() <- r(a, _).", "--load", "r=r.csv")
    as_set = lftj("query", *rule)
    assert sorted(as_set.out.split()) == ["1,1", "3,1", "a,count"]
    assert as_set.err.startswith("warning: relation 'r' is a set: 1 equal row of its source left out; ")
    assert sorted(lftj("query", *rule, "--bag", "r").out.split()) == ["1,2", "3,1", "a,count"]
    done = lftj("maintain", *rule, "--bag", "r", "--changes", "r=c.csv", "--out", "n=-", "--verify")
    assert done.out.split() == ["a,count", "1,5"]
    assert lftj("open", "kept", "install", *rule, "--bag", "r").status == 0
    assert lftj("open", "kept", "apply", "--changes", "r=c.csv").status == 0
    assert lftj("open", "kept", "query", "-e", "m(a, c) <- n[a] = c.").out.split() == ["a,c", "1,5"]
    fails(lftj("query", *rule, "--bag", "s"), 2, "--bag is about 's', which no --load gives")
    for wrong in (("--bag", "r"), ("--columns", "r=a,b")):
        done = lftj("open", "kept", "apply", "--changes", "r=c.csv", *wrong)
        fails(done, 2, "say how a relation is loaded, and apply loads none")


def test_options_are_for_the_files_that_are_csv(lftj: Lftj) -> None:
    Path("r.csv").write_text("a:b\n1:2\n")
    parquet.write_table(pa.table({"a": [1]}), "s.parquet")
    rule = "h(a, b) <- r(a, b), s(a)."
    both = ("--load", "r=r.csv", "--load", "s=s.parquet")
    assert lftj("query", "-e", rule, *both, "--csv-delimiter", ":").out == "a,b\n1,2\n"
    done = lftj("query", "-e", RULE, "--load", "r=s.parquet", "--csv-delimiter", ":")
    fails(done, 2, "--csv-... says how CSV files are written, and no --load gives one")
    assert lftj("explain", "-e", rule, *both, "--csv-delimiter", ":").status == 0


def test_changes_are_written_as_the_files_are(lftj: Lftj) -> None:
    Path("r.csv").write_text("a:b\n1:2\n")
    Path("changes.csv").write_text("a:b:weight\n3:4:1\n")
    done = lftj(
        "maintain", "-e", RULE, "--load", "r=r.csv", "--changes", "r=changes.csv", "--csv-delimiter", ":",
        "--csv-type", "r.b=string", "--out", "h=-",
    )  # fmt: skip
    assert done.status == 0
    assert sorted(done.out.splitlines()) == ['1,"2"', '3,"4"', "a,b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--csv-delimiter", ";;"), "delimiter is ';;'; it can be one ASCII character"),
        (("--csv-encoding", "utf-9"), "encoding 'utf-9' is not known"),
        (("--csv-type", "r.a=integer"), "type 'integer' of column 'a' is not known"),
        (("--csv-type", "a=int64"), "'a=int64' is not of the form NAME.COLUMN=TYPE"),
        (("--csv-type", "s.a=int64"), "--csv-type is about 's', which no --load gives"),
        (("--columns", "s=a"), "--columns is about 's', which no --load gives"),
        (("--columns", "a"), "'a' is not of the form NAME=COLUMNS"),
    ],
)
def test_options_that_are_wrong(lftj: Lftj, arguments: tuple[str, ...], message: str) -> None:
    Path("r.csv").write_text("a,b\n1,2\n")
    fails(lftj(*QUERY, "r=r.csv", *arguments), 2, message)


def test_the_way_out_is_that_of_the_command_line(lftj: Lftj) -> None:
    Path("r.csv").write_text("a,b\n1,18446744073709551615\n")
    fails(lftj(*QUERY, "r=r.csv"), 1, "line 2, column 'b'", "(on the command line: --csv-type and its like")
    assert lftj(*QUERY, "r=r.csv", "--csv-type", "r.b=string").out == 'a,b\n1,"18446744073709551615"\n'


def test_every_command_takes_them() -> None:
    for command in ("query", "explain", "maintain"):
        names = {option for parameter in cli.commands[command].params for option in parameter.opts}
        assert {"--csv-delimiter", "--csv-type", "--columns"} <= names
