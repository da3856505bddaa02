"""Views in files: ``lftj maintain view.sql`` and ``lftj open FOLDER run models/*.sql``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

import maintenance.shell.shell  # noqa: F401  (adds the commands)
from lftj.errors import LftjError
from lftj.session.sql_statements import ViewText
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.shell.view_files import keep_views
from support.shell_runs import Lftj, fails, in_this_process

LOAD = ("--load", "line=line.csv", "--load", "orders=orders.csv")
REVENUE = "select customer, sum(price) total\nfrom orders join line on orders = id\ngroup by customer"
BIG = "with revenue as (select * from revenue)\nselect customer from revenue where total > 10"


@pytest.fixture
def lftj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lftj:
    """Run one command line in this process, in a folder with two tables, changes, and two models."""
    monkeypatch.chdir(tmp_path)
    Path("line.csv").write_text("orders,item,price\n1,tea,3\n1,tea,3\n1,pot,120\n2,cup,\n")
    Path("orders.csv").write_text("id,customer\n1,7\n2,8\n")
    Path("changes.csv").write_text("txn,orders,item,price,weight\n1,2,tea,40,1\n2,1,tea,3,-1\n")
    Path("models").mkdir()
    model("revenue", REVENUE)
    model("big", BIG)
    return in_this_process(capsys)


def model(name: str, text: str) -> None:
    Path("models", f"{name}.sql").write_text(text, encoding="utf-8")


def run(lftj: Lftj, *more: str) -> dict[str, str]:
    done = lftj("open", "shop", "run", *map(str, sorted(Path("models").iterdir())), *more)
    assert done.status == 0, done.err
    return {line.split()[0]: line.partition(" ")[2].strip() for line in done.out.splitlines()}


class Kept(NamedTuple):
    views: dict[str, str]
    rows: dict[str, list[str]]


def kept(lftj: Lftj) -> Kept:
    """What the folder has, and has been verified."""
    assert lftj("open", "shop", "verify").status == 0
    with Workspace.open("shop", read_only=True) as ws:
        return Kept(dict(ws.views), {name: sorted(map(repr, ws[name])) for name in ws.views})


# -- maintain ---------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_select_is_maintained_under_the_name_of_its_file(lftj: Lftj, strategy: str) -> None:
    written = ("--out-changes", "revenue=-", "--out", "revenue=now.csv", "--verify")
    done = lftj(
        "maintain",
        "models/revenue.sql",
        *LOAD,
        "--changes",
        "line=changes.csv",
        *written,
        "--strategy",
        strategy,
    )
    assert done.status == 0, done.err
    header, *rows = done.out.splitlines()
    assert header == "txn,customer,total,weight"
    assert sorted(rows) == ["1,8,,-1", "1,8,40,1", "2,7,123,1", "2,7,126,-1"]
    assert sorted(Path("now.csv").read_text().splitlines()) == ["7,123", "8,40", "customer,total"]


def test_several_views_of_one_file_are_maintained(lftj: Lftj) -> None:
    Path("two.sql").write_text(f"create view big as {BIG};\ncreate view revenue as\n{REVENUE};\n")
    done = lftj("maintain", "two.sql", *LOAD, "--changes", "line=changes.csv", "--out-changes", "big=-")
    assert done.status == 0, done.err
    assert done.out.splitlines() == ["txn,customer,weight", "1,8,1"]
    assert [line.split()[0] for line in done.err.splitlines()[3:]] == ["big", "revenue"]
    done = lftj(
        "maintain", "-e", "select item from line", *LOAD, "--changes", "line=changes.csv", "--out", "view=-"
    )
    assert sorted(done.out.splitlines()) == ['"cup"', '"pot"', '"tea"', '"tea"', "item"]


def test_what_is_wrong_with_a_view_is_said_with_its_place(lftj: Lftj) -> None:
    Path("two.sql").write_text("create view a as from line;\n\ncreate view b as\n  select c from a")
    asked = ("--changes", "line=changes.csv", "--out", "b=b.csv")
    fails(
        lftj("maintain", "two.sql", *LOAD, *asked), 1, "two.sql: ", '"c"', "(line 4)\n    select c from a\n"
    )
    assert not Path("b.csv").exists()
    fails(lftj("maintain", "two.sql", *LOAD, *asked, "--result", "b"), 2, "--result is about heads of rules")
    fails(lftj("maintain", "two.sql", *LOAD, "--changes", "line=changes.csv", "--out", "c=-"), 1, "head 'c'")


# -- a folder of views --------------------------------------------------------


def test_files_are_views_that_read_each_other(lftj: Lftj) -> None:
    """big comes first by name, and reads revenue; both read as in SQL, equal rows and NULLs counted."""
    assert run(lftj, *LOAD) == {"revenue": "made, 2 rows", "big": "made, 1 row"}
    assert kept(lftj) == (
        {"revenue": REVENUE, "big": BIG},
        {"revenue": ["(7, 126)", "(8, None)"], "big": ["(7,)"]},
    )
    assert lftj("open", "shop", "apply", "--changes", "line=changes.csv").status == 0
    assert kept(lftj).rows == {"revenue": ["(7, 123)", "(8, 40)"], "big": ["(7,)", "(8,)"]}
    done = lftj("open", "shop", "sql", "select sum(total) s from revenue")
    assert done == (0, "s\n163\n", "")
    assert lftj("open", "shop", "query", "-e", "b(c) <- big(c).", "--count").out == "2\n"


def test_what_changed_is_made_anew_and_the_rest_left_alone(lftj: Lftj) -> None:
    model("items", "select distinct item from line")
    run(lftj, *LOAD)
    with Workspace.open("shop", read_only=True) as ws:
        version = ws.version
    same = {"revenue": "as it was, 2 rows", "big": "as it was, 1 row", "items": "as it was, 3 rows"}
    assert run(lftj) == same
    model("big", BIG + " or total is null")
    assert run(lftj) == {**same, "big": "made anew, 2 rows"}
    model("revenue", REVENUE.replace("sum(price)", "max(price)"))
    assert run(lftj) == {**same, "revenue": "made anew, 2 rows", "big": "made anew, 2 rows"}
    assert kept(lftj).rows["revenue"] == ["(7, 120)", "(8, None)"]
    Path("models", "big.sql").unlink()
    model("revenue", REVENUE)
    anew = {"revenue": "made anew, 2 rows", "items": "as it was, 3 rows", "big": "made anew, 2 rows"}
    assert run(lftj) == anew  # big is kept still, and reads revenue
    with Workspace.open("shop", read_only=True) as ws:
        assert ws.changes_since(version, "items").table.num_rows == 0
    assert run(lftj, "--strategy", "delta")["items"] == "made anew, 3 rows"


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        (
            "big",
            "select customer,\n  totl\nfrom revenue",
            ("models/big.sql: ", '"totl"', "(line 2)\n    totl\n    ^^^^"),
        ),
        (
            "big",
            "select customer from\n  where total",
            ("models/big.sql: ", "syntax error", "(line 2)", "^^^^^"),
        ),
        ("revenue", "select kurtosis(price) total, 1 customer from line", ("models/revenue.sql", "kurtosis")),
        ("revenue", "select 7 customer, (select price from line) total", ("models/revenue.sql: ",)),
        (
            "revenue",
            "select customer, 1 total from big",
            ("each other: ", "models/big.sql", "models/revenue.sql"),
        ),
        (
            "revenue",
            "create view big as from line",
            ("'big' is defined twice: in models/big.sql and in models/rev",),
        ),
        ("orders", "from line", ("models/orders.sql: 'orders' is a relation",)),
        ("no name", "from line", ("models/no name.sql: view 'no name': ",)),
        ("none", "-- nothing", ("models/none.sql: there is no SELECT",)),
    ],
)
def test_an_error_leaves_all_views_as_they_were(
    lftj: Lftj, name: str, text: str, parts: tuple[str, ...]
) -> None:
    model("a", "select item from line")
    run(lftj, *LOAD)
    before = kept(lftj)
    model("a", "select price from line")
    model("b", "select * from a")
    model(name, text)
    fails(lftj("open", "shop", "run", *map(str, sorted(Path("models").iterdir()))), 1, *parts)
    assert kept(lftj) == before


def test_rules_that_read_a_view_keep_it(lftj: Lftj) -> None:
    run(lftj, *LOAD)
    assert lftj("open", "shop", "install", "-e", "seen(c) <- revenue(customer: c).").status == 0
    model("revenue", REVENUE.replace("sum", "max"))
    before = kept(lftj)
    done = lftj("open", "shop", "run", "models/revenue.sql", "models/big.sql")
    fails(done, 1, "the rules of 'seen' read 'revenue'")
    assert kept(lftj) == before


def test_an_error_of_data_amid_many_views_undoes_them(lftj: Lftj) -> None:
    """The last of a chain fails on its rows; what was made and replaced before it is as it was."""
    ws = Workspace()
    ws.load("t", [(1,), (2,)], columns=["a"])

    def views(**texts: str) -> list[ViewText]:
        return [ViewText(name, text, f"{name}.sql", text) for name, text in texts.items()]

    keep_views(ws, views(x="select max(a) a from t", y="select (select a from x) b", z="from y"), "trace")
    before, rows = dict(ws.views), list(ws["z"])
    with pytest.raises(LftjError):
        keep_views(ws, views(x="select a from t", new="from x"), "auto")
    assert dict(ws.views) == before and list(ws["z"]) == rows and "new" not in ws
    assert {ws.strategy_of(name) for name in before} == {"trace"}
    with ws.transaction() as tx:
        tx.insert("t", [(5,)])
    assert list(ws["z"]) == [(5,)]
    ws.verify()


def test_names_that_a_text_reads() -> None:
    """As DuckDB finds them where it binds, which it does not where tables are not there."""
    ws = Workspace()
    text = """with recursive r as (select 1 x union select x + 1 from r join T on true), u as (from u)
              select (select max(a) from v) from r, u where exists (from main.w)"""
    assert ws.tables_of(text) == {"T", "u", "v", "w"}
    assert ws.tables_of("select * from a join b using (k)") == {"a", "b"}
    for plain in ("from a, b", "pivot r on b in (1) using count(*)", "select 1", "from (from c) order by 1"):
        assert ws.tables_of(plain) == duckdb.connect().get_table_names(plain)
    with pytest.raises(LftjError, match=r"syntax error.*\n.*\n +\^"):
        ws.tables_of("selec 1")
