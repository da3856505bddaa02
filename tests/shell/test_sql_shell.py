"""``lftj sql``, and SELECTs where ``lftj explain`` takes rules."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pyarrow import parquet

from support.shell_runs import Lftj, fails, in_this_process

pytest.importorskip("duckdb")

LOAD = ("--load", "line=line.csv")


@pytest.fixture
def lftj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lftj:
    """Run one command line in this process, in a folder with lines that repeat and have NULLs."""
    monkeypatch.chdir(tmp_path)
    Path("line.csv").write_text("item,price\ntea,3\ntea,3\npot,120\ncup,\n")
    Path("sums.sql").write_text(
        "-- by item\nselect item, sum(price) s\nfrom line group by item order by item;\n"
    )
    return in_this_process(capsys)


def test_equal_rows_and_nulls_count_as_in_sql(lftj: Lftj) -> None:
    done = lftj("sql", "select item, count(*) n, count(price) m from line group by 1 order by 1", *LOAD)
    assert done == (0, 'item,n,m\n"cup",1,0\n"pot",1,1\n"tea",2,2\n', "")
    assert lftj(
        "sql", "select item, item from line where price < 9", *LOAD
    ).out == 'item,item\n"tea","tea"\n' + ('"tea","tea"\n')


def test_a_file_or_stdin(lftj: Lftj, monkeypatch: pytest.MonkeyPatch) -> None:
    right = 'item,s\n"cup",\n"pot",120\n"tea",6\n'
    assert lftj("sql", "sums.sql", *LOAD) == (0, right, "")
    with open("sums.sql", "rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert lftj("sql", "-", *LOAD).out == right
    assert lftj("sql", "values (1), (1)").out.splitlines()[1:] == ["1", "1"]


def test_out_and_options_of_loading(lftj: Lftj) -> None:
    text = "select thing from line where price > 9 and thing <> 'x'"
    renamed = ("--rename", "line.item=thing", "--nulls", "drop")
    done = lftj("sql", text, *LOAD, *renamed, "--out", "dear.parquet", "--threads", "2")
    assert done == (0, "", "note: line: 1 row with NULL dropped\n")
    assert parquet.read_table("dear.parquet").to_pylist() == [{"thing": "pot"}]
    assert lftj("sql", "from line where price > 999", *LOAD, "--out", "-").out == "item,price\n"


def test_explain_shows_sql_rules_and_plans(lftj: Lftj) -> None:
    done = lftj("explain", "sums.sql", *LOAD)
    assert done.status == 0
    sql, _, rest = done.out.partition("\n\n")
    assert sql == Path("sums.sql").read_text().strip()
    assert "answer(item: item, s: sum(price)) <- " in rest and "// of its rows: order by item" in rest
    assert "key order" in rest
    assert "measured" in lftj("explain", "-e", "from line where price > 5", *LOAD, "--analyze").out
    fails(lftj("explain", "sums.sql", *LOAD, "--head", "answer"), 2, "this is SQL")


def test_what_is_wrong_is_said_with_its_place(lftj: Lftj) -> None:
    fails(lftj("sql", "select itm from line", *LOAD), 1, '"itm"', "  select itm from line\n         ^^^")
    fails(lftj("sql", "select a frm line\nx y z", *LOAD), 1, "syntax error", "^")
    fails(lftj("sql", "select 1; select 2"), 1, "one statement at a time")
    fails(lftj("sql", "select random() from line", *LOAD), 1, "random()", "is not taken")
    fails(lftj("sql", "create view v as from line", *LOAD), 1, "CREATE is not taken")
    fails(lftj("sql", "none.sql"), 1, "none.sql: No such file")
    fails(lftj("sql"), 2, "SQL")
    fails(lftj("sql", "from line", *LOAD, "--bag", "line"), 2, "--bag")
    fails(lftj("sql", "from line", *LOAD, "--out", "x.unknown"), 2, "x.unknown")
