"""laws: UNION ALL in a recursion has each row as often as SQL says, told apart by no more than needs be."""

from __future__ import annotations

from random import Random

import duckdb
import pytest

from lftj.errors import UnsupportedSqlError
from maintenance import Workspace

SERIES = (
    "with recursive t(n) as (values (1) union all select n + 1 from t where n < 20) select sum(n) as s from t"
)
PARTS = """with recursive t(part, n) as (
    select part, n from uses where whole = 0
    union all select u.part, t.n * u.n from t join uses u on u.whole = t.part)
select part, n from t"""
DAYS = """with recursive t(whole, part, k) as (
    select whole, part, 0 from uses union all select whole, part, k + 1 from t where k < part)
select part, k from t"""
PAIRS = """with recursive t(part, k) as (
    select part, 0 from uses
    union all select x.part, x.k + 1 from t x join t y on x.part = y.part where x.k < 1)
select part, k from t"""
TEXTS = {"series": SERIES, "parts": PARTS, "days": DAYS, "pairs": PAIRS}


@pytest.mark.in_turns
@pytest.mark.compiled
@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_it_is_kept_through_inserts_and_erasures(text: str, bag: bool) -> None:
    """Over a graph without cycles, with ways of several lengths to one part."""
    random = Random(7)
    rows = [(0, 1, 2), (0, 2, 1), (1, 3, 2), (2, 3, 4), (3, 4, 1), *[(0, 1, 2)] * bag]
    ws = Workspace()
    ws.load("uses", rows, columns=["whole", "part", "n"], bag=bag)
    for strategy in ("auto", "stages", "recompute"):
        ws.create_view(strategy, text, strategy=strategy)
    for _ in range(12):
        there = duckdb.connect()
        there.execute("create table uses (whole bigint, part bigint, n bigint)")
        there.executemany("insert into uses values (?, ?, ?)", rows)
        right = sorted(there.execute(text).fetchall())
        for strategy in ws.views:
            assert sorted(ws[strategy]) == right, strategy
        gone = random.sample(rows, min(len(rows) - 1, random.randint(0, 2)))
        whole = random.randint(0, 4)
        new = [(whole, random.randint(whole + 1, 5), random.randint(1, 2))]
        new = [row for row in new if bag or row not in rows]
        for row in gone:
            rows.remove(row)
        rows += new
        with ws.transaction() as tx:
            tx.erase("uses", gone)
            tx.insert("uses", new)
    ws.verify()


@pytest.fixture
def ws() -> Workspace:
    ws = Workspace()
    ws.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    ws.load("copies", [(1, 2), (1, 2)], columns=["a", "b"], bag=True)
    return ws


def rules(ws: Workspace, text: str) -> list[str]:
    """The rules of the recursion, the base first."""
    shown = str(ws.explain_sql(f"with recursive t {text} select * from t"))
    return [line for line in shown.splitlines() if line.startswith("answer_t(") and "level = " in line]


def test_one_row_a_level_needs_no_path(ws: Workspace) -> None:
    for text in (
        "(n) as (select 1 union all select n + 1 from t where n < 5)",
        "(n) as (select 1 union all select x.n + y.n from t x, t y where x.n < 5)",
        "(n) as (select count(*) from edge union all select n - 1 from t where n > 0)",
    ):
        (step,) = rules(ws, text)
        assert not any(sign in step for sign in ("sql_cast", "length", '":"'))


def test_a_path_grows_by_what_a_step_adds(ws: Workspace) -> None:
    *_, same = rules(ws, "(a, k) as (select a, 0 from edge union all select a, k + 1 from t where k < a)")
    assert "path: path)" in same.partition(" <- ")[0]
    assert "path =" not in same
    *_, one = rules(ws, "(a) as (select a from edge union all select e.b from t join edge e on e.a = t.a)")
    assert one.count("sql_cast(") == 1  # of e.a the row before says the value
    copies = "(a) as (select a from edge union all select e.b from t join copies e on e.a = t.a)"
    assert "answer_numbered" in rules(ws, copies)[-1]


@pytest.mark.parametrize(
    "text",
    [
        "(n) as (select 1 union all select max(n) from t where n < 5 group by n)",
        "(n) as (select 1 union all select row_number() over () from t where n < 5)",
        "(n) as (select 1 union all select b from edge where a in (select n + 1 from t))",
    ],
)
def test_a_step_that_reads_it_through_a_head_is_refused(ws: Workspace, text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="through groups or a subquery") as raised:
        ws.sql(f"with recursive t {text} select * from t")
    assert raised.value.span is not None
