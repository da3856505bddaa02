"""oracle: ``if``, ``coalesce`` and what NULL is in conditions, against DuckDB's CASE and COALESCE."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from support import peer

DATA = pa.table(
    {
        "k": pa.array(range(8), pa.int64()),
        "a": pa.array([1, None, 3, None, 5, 12, None, 0], pa.int32()),
        "b": pa.array([None, None, 3, 4, 4, 11, 0, 0], pa.int64()),
        "s": pa.array(["x", None, "", "yes", None, "no", "x", "X"], pa.string()),
        "f": pa.array([0.5, None, 0.0, 2.0, 0.0, None, -1.0, 0.0], pa.float64()),
        "d": pa.array([None, 1, 2, None, 4, 5, 6, 7], pa.int32()).cast(pa.date32()),
    }
)

# an expression of a rule, and the same in SQL
EXPRESSIONS = {
    "coalesce(a, 0)": "coalesce(a, 0)",
    "coalesce(a, b)": "coalesce(a, b)",
    "coalesce(a, b, k)": "coalesce(a, b, k)",
    'coalesce(s, "none")': "coalesce(s, 'none')",
    "coalesce(d, 2026-01-31)": "coalesce(d, date '2026-01-31')",
    "coalesce(f, a)": "coalesce(f, a)",
    'if(b > 10, "big", "small")': "case when b > 10 then 'big' else 'small' end",
    "if(a > 2, a)": "case when a > 2 then a end",
    'if(s is null, "none", upper(s))': "case when s is null then 'none' else upper(s) end",
    "if(s is not null, a, b)": "case when s is not null then a else b end",
    "if(f = 0, 0, 1 / f)": "case when f = 0 then 0 else 1 / f end",
    "if((a > 2, b < 5), 1, 2)": "case when a > 2 and b < 5 then 1 else 2 end",
    "if((a > 2 ; b < 5), 1, 2)": "case when a > 2 or b < 5 then 1 else 2 end",
    "if((a > 2, (b < 5 ; s is null)), 1, 2)": "case when a > 2 and (b < 5 or s is null) then 1 else 2 end",
    "if(k < 5, s)": "case when k < 5 then s end",
    "if(k < 5, d, 2026-01-31)": "case when k < 5 then d else date '2026-01-31' end",
    "if((k > 1, 5 >= k), f, 1)": "case when k > 1 and 5 >= k then f else 1 end",
    "if((k < 2 ; a >= 3), a, k)": "case when k < 2 or a >= 3 then a else k end",
    "if(a <= 2, null, b)": "case when a <= 2 then null else b end",
    "coalesce(if(b < 4, a), null)": "coalesce(case when b < 4 then a end, null)",
    "if(a != b, a)": "case when a <> b then a end",
    "if(a in (1, 3, b), a, k)": "case when a in (1, 3, b) then a else k end",
    "if(a not in (1, b), 1, 2)": "case when a not in (1, b) then 1 else 2 end",
    'if(s like "%e%", 1, 2)': "case when s like '%e%' then 1 else 2 end",
    'if(!contains(s, "x"), 1, 2)': "case when not contains(s, 'x') then 1 else 2 end",
    'if(contains(s, "x") != true, 1, 2)': "case when contains(s, 'x') <> true then 1 else 2 end",
    'if(contains(s, "x") = false, 1, 2)': "case when contains(s, 'x') = false then 1 else 2 end",
    'if(regexp_matches(s, "^[xy]"), s)': "case when regexp_matches(s, '^[xy]') then s end",
    'if(k < 3, "a", if(k < 5, "b", s))': "case when k < 3 then 'a' when k < 5 then 'b' else s end",
    "if(coalesce(a, 0) + coalesce(b, 0) > 4, a + b, 0)": (
        "case when coalesce(a, 0) + coalesce(b, 0) > 4 then a + b else 0 end"
    ),
    "coalesce(a + b, -1)": "coalesce(a + b, -1)",
    "coalesce(if(a > 2, a), b)": "coalesce(case when a > 2 then a end, b)",
    "coalesce(1 / if(f != 0, f), 0)": "coalesce(1 / nullif(f, 0), 0)",
    "if(k = 1, 2.5, a)": "case when k = 1 then 2.5 else a end",
    'if(k < 9, s, error("never"))': "case when k < 9 then s else error('never') end",
    'coalesce(a, b, k, error("never"))': "coalesce(a, b, k, error('never'))",
}


@pytest.fixture(scope="module")
def db() -> lftj.Database:
    made = lftj.Database()
    made.load("x", DATA, nulls="keep")
    return made


def in_sql(query: str) -> list[tuple[object, ...]]:
    with peer.connection() as connection:
        connection.register("x", DATA)
        return connection.execute(query).fetchall()


BODY = "x(k, a, b, s, f, d)"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(db: lftj.Database, expression: str) -> None:
    """Every row has a value, NULL where SQL has it; what may be NULL is so in a group and in a join, too."""
    sql = EXPRESSIONS[expression]
    table = db.query(f"h(k, v) <- {BODY}, v = {expression}.", order_by="k")
    expected = in_sql(f"select k, {sql} from x order by k")
    assert list(zip(*table.to_pydict().values(), strict=True)) == expected
    known = [row for row in expected if row[1] is not None]
    rules = f"h(k, v) <- {BODY}, v = {expression}. "
    assert sorted(db.query(rules + "j(k, v) <- h(k, v), h(_, v).")["k"].to_pylist()) == [k for k, _ in known]
    if len(known) < len(expected):
        assert db.count(f"h(k, v) <- {BODY}, v = {expression}, v is null.") == len(expected) - len(known)
    groups = in_sql(f"select {sql} as v, count(*) from x group by v")
    counted = db.query(f"n[v] = count() <- {BODY}, v = {expression}.")
    assert set(zip(*counted.to_pydict().values(), strict=True)) == set(groups)


def test_what_needs_a_value_leaves_a_row_out(db: lftj.Database) -> None:
    """An operation outside, a comparison, an aggregate, a negated atom."""
    body = f"{BODY}, v = if(a > 2, a)"
    for rule in (
        f"h(k) <- {body}, w = v + 1, w > 0.",
        f"h(k) <- {body}, v > 0.",
        f"h(k) <- {BODY}, w = 1 + if(a > 2, a), w > 0.",
        f"h(k) <- {body}, !x(v, _, _, _, _, _).",
    ):
        found = set(db.query(rule)["k"].to_pylist())
        assert found == ({5} if "!" in rule else {2, 4, 5}), rule
    assert db.query(f"s[] = sum(v) <- {body}.").to_pylist() == [{"sum": 20}]


def test_a_branch_is_computed_where_it_is_taken(db: lftj.Database) -> None:
    with pytest.raises(errors.EvaluationError, match=r"division by zero in 1 / f where f = 0.0"):
        db.query(f"h(k, v) <- {BODY}, v = if(f > 1, 0, 1 / f).")
    with pytest.raises(errors.EvaluationError, match=r"division by zero in 1 / b where b = 0"):
        db.query(f"h(k, v) <- {BODY}, v = coalesce(1 / b, a).")


RAISED = {
    'v = if(a > 11, error("too large"), a)': "too large",
    'v = if(a > 11, error("a is " || cast(a, "string")), 1.5)': "a is 12",
    'v = coalesce(s, error("no s where k is " || cast(k, "string")))': "no s where k is 1",
    'v = cast(error("alone"), "int64")': "alone",
    'k = 3, v = if((a is null ; cast(error("a test"), "bool")), 1, 2), a < 4': "",
    'k = 2, v = if((a is null ; cast(error("a test"), "bool")), 1, 2), a < 4': "a test",
    'k > 7, v = cast(error("no row"), "int64")': "",
}


@pytest.mark.parametrize("raised", RAISED)
def test_what_a_rule_raises(db: lftj.Database, raised: str) -> None:
    """The text alone, and of the first row; nothing where no row needs a value."""
    rule = f"h(k, v) <- {BODY}, {raised}."
    if not RAISED[raised]:
        assert db.count(rule) == 0
        return
    with pytest.raises(errors.EvaluationError) as caught:
        db.query(rule)
    assert str(caught.value).splitlines()[0] == RAISED[raised]


@pytest.mark.parametrize("strategy", ["trace", "delta", "auto", "views", "recompute"])
def test_what_a_rule_raises_rolls_back(strategy: str) -> None:
    ws = lftj.Workspace()
    ws.load("e", [(1, 2), (2, 3)], columns=["a", "b"])
    ws.install('h(a, v) <- e(a, b), v = if(b < 9, b, error("b is too large")).', strategy=strategy)
    with pytest.raises(errors.EvaluationError, match=r"^b is too large"), ws.transaction() as tx:
        tx.insert("e", [(3, 4), (4, 9)])
    assert sorted(ws["h"]) == sorted(ws["e"]) == [(1, 2), (2, 3)]
    with ws.transaction() as tx:
        tx.insert("e", [(3, 4)])
    assert sorted(ws["h"]) == [(1, 2), (2, 3), (3, 4)]


MISTAKES = {
    'v = error("x")': "'h.v' is null in all rules: give it a type, as in cast(null, \"int64\")",
    "v = if(a > 1, error(k), 2)": "there is no error for type int64",
    "v = if(a, 1, 2)": "if takes a condition first, not a value of type int32",
    'v = if(a > 1, 1, "a")': "there is no if for types int64 and string",
    "v = coalesce(s, b)": "there is no coalesce for types string and int64",
    "v = abs(a > 1)": "there is no abs for type bool",
    "v = if(1, a > 1, 2)": "if takes a condition first, not a value of type int64",
    "v = coalesce((a > 1 ; b > 1), k)": "there is no coalesce for types bool and int64",
    "v = if(a > 1, null)": 'if of null alone has no type: write cast(null, "int64")',
    "v = nullif(s, a)": "nullif compares its arguments, and string and int32 can't be compared",
    "v = if(a = null, 1, 2)": "null equals nothing: ask 'a is null'",
    "v = null + 1": "there is no + for types null and int64",
    "v = null": "'h.v' is null in all rules: give it a type, as in cast(null, \"int64\")",
    "v = if((a > 1, b), 1, 2)": "b is no condition, but of type int64",
    "v = if(a > s, 1, 2)": "a is of type int32 and s of type string: they can't be compared",
    "v = coalesce(a)": "'coalesce' takes 2 arguments or more",
    "x(a > 1, v, _, _, _, _)": "an atom takes variables and constants: write the condition 'a > 1' beside it",
    "v = coalesce(a, 0), v is null": "'v' is computed, so it is never NULL: test what it is computed from",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(db: lftj.Database, mistake: str) -> None:
    with pytest.raises(errors.RuleError) as caught:
        db.query(f"h(k, v) <- {BODY}, {mistake}.")
    assert str(caught.value).splitlines()[0] == MISTAKES[mistake]


def test_explain_shows_conditions_as_written(db: lftj.Database) -> None:
    expressions = (
        "if((a > 1, b < 2), 1, 0)",
        "if((a > 1 ; s is not null), a)",
        'if(!contains(s, "x"), coalesce(a, b), k)',
    )
    for expression in expressions:
        assert expression in str(db.explain(f"h(k, v) <- {BODY}, v = {expression}."))


def test_kept_by_every_strategy() -> None:
    """Rows that come and go through NULL; random programs do the same (support/calls.py)."""
    ws = lftj.Workspace()
    ws.load("x", DATA, nulls="keep")
    for strategy in ("trace", "delta", "auto", "views", "recompute"):
        ws.install(
            f"h_{strategy}(k, v) <- {BODY}, v = if(s is null, coalesce(a, b), k)."
            f"n_{strategy}[v] = count() <- h_{strategy}(_, v).",
            strategy=strategy,
        )
    with ws.transaction() as tx:
        tx.insert("x", [(8, None, None, None, None, None), (9, 7, None, None, 1.0, None)])
        tx.erase("x", DATA.slice(1, 1))
    assert [row for row in tx.changes["h_trace"].to_pylist() if row["v"] is None] == [
        {"k": 1, "v": None, "weight": -1},
        {"k": 8, "v": None, "weight": 1},
    ]
    for strategy in ("delta", "auto", "views", "recompute"):
        assert tx.changes[f"h_{strategy}"].equals(tx.changes["h_trace"])
        assert ws[f"n_{strategy}"].to_arrow().equals(ws["n_trace"].to_arrow())
    ws.verify()
