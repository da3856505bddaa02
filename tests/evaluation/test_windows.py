"""Windows: numbers of rows, neighbours, sums of frames; beside DuckDB, once and kept."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from maintenance import Workspace
from support import peer

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),  # which no two rows share
        ("g", pa.string()),
        ("v", pa.int64()),
        ("x", pa.float64()),
        ("m", pa.decimal128(9, 2)),
        ("d", pa.date32()),
        ("s", pa.string()),
        ("t", pa.timestamp("ms")),
    ]
)


def row(r: random.Random, k: int) -> tuple[Any, ...]:
    def maybe(value: Any) -> Any:
        return None if r.random() < 0.15 else value

    return (
        k,
        maybe(r.choice("abc")),
        maybe(r.randint(-3, 6)),
        maybe(r.choice((0.5, -1.25, 1e16, 3.0, float("inf")))),
        maybe(Decimal(r.randint(-999, 999)).scaleb(-2)),
        maybe(datetime.date(2026, 1, r.randint(1, 28))),
        maybe(r.choice(("x", "yy", "äz", ""))),
        maybe(datetime.datetime(2026, 1, 1) + datetime.timedelta(milliseconds=250 * r.randint(0, 40))),
    )


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


ROWS = [row(random.Random(7 * k), k) for k in range(60)]

WINDOWS = {
    "row_number(by: (v desc, k), per: g)": (
        "row_number() over (partition by g order by v desc nulls last, k)"
    ),
    "rank(by: v desc nulls first, per: g)": ("rank() over (partition by g order by v desc nulls first)"),
    "dense_rank(by: (s, v), per: g)": (
        "dense_rank() over (partition by g order by s nulls last, v nulls last)"
    ),
    "rank(by: m)": "rank() over (order by m nulls last)",
    "rank(by: x desc)": "rank() over (order by x desc nulls last)",
    "lag(v, by: k, per: g)": "lag(v) over (partition by g order by k)",
    "lag(s, 2, by: (d, k), per: g)": "lag(s, 2) over (partition by g order by d nulls last, k)",
    "lead(v, 1, -7, by: (d, k))": "lead(v, 1, -7) over (order by d nulls last, k)",
    "lead(v, 3, k, by: k)": "lead(v, 3, k) over (order by k)",
    "lag(s, 1, null, by: k)": "lag(s, 1, null) over (order by k)",
    "sum(v, by: k, per: g)": "sum(v) over (partition by g order by k)::bigint",
    "sum(v, by: d, per: g)": "sum(v) over (partition by g order by d nulls last)::bigint",
    "sum(v, per: g)": "sum(v) over (partition by g)::bigint",
    "sum(m, by: k, rows: (-2, 1))": ("sum(m) over (order by k rows between 2 preceding and 1 following)"),
    "avg(v, by: k, per: g, rows: (-3, 0))": ("avg(v) over (partition by g order by k rows 3 preceding)"),
    "avg(m, by: k, rows: (_, _))": (
        "avg(m) over (order by k rows between unbounded preceding and unbounded following)"
    ),
    "count(by: v, groups: (-1, 0))": "count(*) over (order by v nulls last groups 1 preceding)",
    "count(s, by: v, groups: (1, 2))": (
        "count(s) over (order by v nulls last groups between 1 following and 2 following)"
    ),
    "count(by: v, range: (-2, 2))": (
        "count(*) over (order by v nulls last range between 2 preceding and 2 following)"
    ),
    "sum(k, by: v desc, range: (-1, 3))": (
        "sum(k) over (order by v desc nulls last range between 1 preceding and 3 following)::bigint"
    ),
    "count(by: m, range: (-1.5, _))": (
        "count(*) over (order by m nulls last range between 1.5 preceding and unbounded following)"
    ),
    "sum(k, by: d, range: (-5, 0), per: g)": (
        "sum(k) over (partition by g order by d nulls last range between interval 5 days "
        "preceding and current row)::bigint"
    ),
    "sum(k, by: d, range: (-36h, 5d), per: g)": (
        "sum(k) over (partition by g order by d nulls last range between interval 36 hours "
        "preceding and interval 5 days following)::bigint"
    ),
    "sum(k, by: t, range: (-2s, 0), per: g)": (
        "sum(k) over (partition by g order by t nulls last range between interval 2 seconds "
        "preceding and current row)::bigint"
    ),
    "max(v, by: t desc nulls first, range: (-1500us, 750ms))": (
        "max(v) over (order by t desc nulls first range between interval 1500 microseconds "
        "preceding and interval 750 milliseconds following)"
    ),
    "count(by: t, range: (1s, _), per: g)": (
        "count(*) over (partition by g order by t nulls last range between interval 1 second "
        "following and unbounded following)"
    ),
    "avg(m, by: t, range: (-3s, -1s))": (
        "avg(m) over (order by t nulls last range between interval 3 seconds "
        "preceding and interval 1 second preceding)"
    ),
    "min(v, by: k, rows: (-4, -2))": ("min(v) over (order by k rows between 4 preceding and 2 preceding)"),
    "max(s, by: k, per: g, rows: (-1, 2))": (
        "max(s) over (partition by g order by k rows between 1 preceding and 2 following)"
    ),
    "max(m, by: v)": "max(m) over (order by v nulls last)",
    "ntile(4, by: (v, k), per: g)": "ntile(4) over (partition by g order by v nulls last, k)",
    "ntile(50, by: k, per: g)": "ntile(50) over (partition by g order by k)",
    "percent_rank(by: v, per: g)": "percent_rank() over (partition by g order by v nulls last)",
    "cume_dist(by: v desc, per: g)": "cume_dist() over (partition by g order by v desc nulls last)",
    "nth(s, 3, by: k, per: g)": "nth_value(s, 3) over (partition by g order by k)",
    "nth(v, 2, by: k, rows: (-3, -1))": (
        "nth_value(v, 2) over (order by k rows between 3 preceding and 1 preceding)"
    ),
    "first(s, by: k, rows: (-1, 5))": (
        "first_value(s) over (order by k rows between 1 preceding and 5 following)"
    ),
    "last(v, by: (d, k), per: g)": "last_value(v) over (partition by g order by d nulls last, k)",
}


def _shown(value: Any) -> str:
    return repr(round(value, 9) if isinstance(value, float) else value)


def shown(found: pa.Table) -> list[list[str]]:
    return sorted([_shown(value) for value in row.values()] for row in found.to_pylist())


def asked(sql: str, rows: list[tuple[Any, ...]]) -> list[list[str]]:
    with peer.connection() as connection:
        connection.register("t", table(rows))
        return shown(connection.sql(sql).to_arrow_table())


def rule_of(window: str) -> str:
    return f"h(k, w) <- t(k, g, v, x, m, d, s, t), w = {window}."


@pytest.fixture(scope="module")
def db() -> Iterator[lftj.Database]:
    made = lftj.Database()
    made.load("t", table(ROWS), nulls="keep")
    return made


@pytest.mark.parametrize("window", WINDOWS)
def test_as_duckdb_has_it(window: str, db: lftj.Database) -> None:
    assert shown(db.query(rule_of(window))) == asked(f"select k, {WINDOWS[window]} as w from t", ROWS)


def test_floats_are_added_exactly() -> None:
    db = lftj.Database()
    db.load("t", [(0, 1e16), (1, 1.0), (2, -1e16), (3, float("inf"))], columns=["k", "x"])
    sums = db.query("h(k, w) <- t[k] = x, w = sum(x, by: k).", order_by="k")["w"].to_pylist()
    assert sums == [1e16, 1e16, 1.0, float("inf")]
    kept = db.query("h(k, w) <- t[k] = x, w = avg(x, by: k, rows: (-2, 0)), k < 3.", order_by="k")["w"]
    assert kept.to_pylist() == [1e16, 5e15, 1 / 3]


def test_sums_beyond_all_floats() -> None:
    db = lftj.Database()
    db.load("t", [(0, -1e308), (1, -1e308), (2, 1e308), (3, 5e-324)], columns=["k", "x"])
    sums = db.query("h(k, w) <- t[k] = x, w = sum(x, by: k).", order_by="k")["w"].to_pylist()
    assert sums == [-1e308, float("-inf"), -1e308, -1e308]


def test_exactly_k_and_what_comes_behind(db: lftj.Database) -> None:
    rule = "h(g, k, r) <- t(k, g, v, _, _, _, _, _), r = top(2, by: (v desc, k), per: g), r > 1."
    over = "over (partition by g order by v desc nulls last, k)"
    sql = f"select g, k, row_number() {over} as r from t qualify r = 2"
    assert shown(db.query(rule)) == asked(sql, ROWS)
    rule = "h(k) <- t(k, _, v, _, _, _, _, _), v > 0, top(3, by: v desc)."
    assert db.query(rule).num_rows == 3
    rule = "n[g] = count() <- t(_, g, v, _, _, _, _, _), r = rank(by: v, per: g), r <= 2."
    ranked = "select g, rank() over (partition by g order by v nulls last) r from t"
    sql = f"select g, count(*) from ({ranked}) where r <= 2 group by g"
    assert shown(db.query(rule)) == asked(sql, ROWS)
    lagged = "t(k, _, _, _, _, _, _, _), w = lag(k, by: k), x = k - w, y = x * 2"
    rule = f"h(k, y) <- {lagged}, t(w, _, 1, _, _, _, _, _)."
    sql = "select a.k, 2 as y from t a, t b where a.k = b.k + 1 and b.v = 1"
    assert shown(db.query(rule)) == asked(sql, ROWS)


def test_equal_rows_have_numbers_of_their_own() -> None:
    db = lftj.Database()
    db.load("b", [(1,), (1,), (2,)], columns=["a"], bag=True)
    numbered = db.query("h(a, r) <- b(a), r = row_number(by: a).", order_by=["a", "r"])
    assert numbered.to_pydict() == {"a": [1, 1, 2], "r": [1, 2, 3]}
    ranked = db.query("n[r] = count() <- b(a), r = rank(by: a).", order_by="r")
    assert ranked.to_pydict() == {"r": [1, 3], "count": [2, 1]}


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", ["trace", "delta", "views", "recompute", "auto"])
def test_kept(strategy: str) -> None:
    r = random.Random(strategy)
    ws = Workspace()
    ws.load("t", table(ROWS), nulls="keep")
    ws.load("u", [(number,) for number in range(0, 90, 2)], columns=["k"])
    for number, window in enumerate(WINDOWS):
        ws.install(rule_of(window).replace("h(k", f"h{number}(k"), strategy=strategy)
    ws.install("ranks(w) <- t(k, g, _, _, _, _, _, _), w = row_number(by: k, per: g).", strategy=strategy)
    joined = "top_(g, k) <- t(k, g, v, _, _, _, _, _), u(k), top(2, by: (v desc, k), per: g)."
    ws.install(joined, strategy=strategy)
    rows = {one[0]: one for one in ROWS}
    for _ in range(4):
        with ws.transaction() as tx:
            gone = [rows.pop(k) for k in r.sample(sorted(rows), 3)]
            came = [row(r, k) for k in r.sample([k for k in range(100) if k not in rows], r.randint(1, 3))]
            rows.update({one[0]: one for one in came})
            tx.erase("t", table(gone))
            tx.insert("t", table(came))
            tx.erase("u", [(2 * r.randrange(45),)])
        ws.verify()
    now = list(rows.values())
    for number, window in enumerate(WINDOWS):
        sql = f"select k, {WINDOWS[window]} as w from t"
        assert shown(ws[f"h{number}"].to_arrow()) == asked(sql, now), window
    with pytest.raises(ValueError, match="stop"), ws.transaction() as tx:
        tx.erase("t", table(now[:5]))
        raise ValueError("stop")
    ws.verify()


MISTAKES = {
    "w = rank()": "'rank' needs an order",
    "w = rnak(by: v)": "unknown window 'rnak'; did you mean 'rank'",
    "w = rank(by: v + 1)": "'rank' takes variables: write v here and v = v \\+ 1 in the body",
    "w = 1 + rank(by: v)": "'rank' stands alone: write v = rank",
    "w = sum(v, by: k, rows: (1, 0))": "the frame ends before it begins",
    "w = sum(v, by: k, rows: 3)": "a frame goes from a number to one",
    "w = sum(v, rows: (-1, 0))": "'sum' needs an order",
    "w = lag(v, by: k, rows: (-1, 0))": "'lag' reads no frame",
    "w = lag(v, -1, by: k)": "'lag' takes a whole number from 0 second",
    "w = lag(v, 1, s, by: k)": "the default of 'lag' is of another type",
    'w = lag(v, 1, "a", by: k)': "the default of 'lag' is of another type",
    "w = sum(s, by: k)": "'sum' takes numbers, and 's' is of type string",
    "w = count(by: s, range: (-1, 0))": "'s' is of type string, without distances: take rows:",
    "w = count(by: t, range: (-1, 0))": "'t' is a timestamp: give its range in durations",
    "w = count(by: v, range: (-1s, 0))": "'v' is of type integer: give its range in numbers",
    "w = count(by: v, rows: (-1s, 0))": "a frame goes from a number to one",
    "w = count(by: t, range: (-1s, 2))": "a frame goes from a number to one",
    "w = sum(v, by: (k, v), range: (-1, 0))": "a range is of one order variable",
    "w = nth(v, 0, by: k)": "'nth' takes a whole number from 1 second",
    "w = nth(v, by: k)": "'nth' takes a value and a number",
    "w = ntile(0, by: k)": "'ntile' takes a whole number from 1 first",
    "w = top(0, by: (v, k))": "'top' takes a whole number from 1 first",
    "w = rank(by: v), u = rank(by: k)": "the windows of a rule have the same per: and by:",
    "(w = rank(by: v) ; w = 1)": "'rank' is of a whole body",
    "!top(3, by: (v, k))": "'top' can't be negated",
    "w = if((v desc, k), 1, 2)": "an order stands behind by: alone",
    "w = rank(by: v, of: k)": "'rank' takes by:, per: and rows:, range:, groups:",
    "w = rank(by: q)": "'q', which .* needs",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str, db: lftj.Database) -> None:
    with pytest.raises(errors.RuleError, match=MISTAKES[mistake]):
        db.query(f"h(k) <- t(k, g, v, x, m, d, s, t), {mistake}.")


def test_a_sum_that_does_not_fit() -> None:
    db = lftj.Database()
    db.load("t", [(1, 2**62), (2, 2**62)], columns=["k", "v"])
    with pytest.raises(errors.RangeError, match=r"sum\(v\) of a frame does not fit type int64"):
        db.query("h(k, w) <- t(k, v), w = sum(v, by: k).")


def test_a_window_may_give_the_first_null_of_a_database() -> None:
    db = lftj.Database()
    db.load("t", [("b", 1), ("a", 2)], columns=["s", "v"])
    found = db.query("h(s, w) <- t(s, v), w = lag(s, by: v).", order_by="s")
    assert found.to_pydict() == {"s": ["a", "b"], "w": ["b", None]}
    assert db.query("h(v, w) <- t(_, v), w = lead(v, by: v).", order_by="v")["w"].to_pylist() == [2, None]


def test_an_alternative_alone_may_give_null() -> None:
    ws = Workspace()
    ws.load("t", [(1, 5), (2, -7)], columns=["k", "v"])
    ws.load("u", [(3,)], columns=["k"])
    ws.install("h(k, w) <- (t(k, v) ; u(k), v = null), w = rank(by: v).", strategy="delta")
    assert sorted(ws["h"]) == [(1, 2), (2, 1), (3, 3)]
    with ws.transaction() as tx:
        tx.insert("u", [(4,)])
        tx.insert("t", [(5, 9)])
    assert sorted(ws["h"]) == [(1, 2), (2, 1), (3, 4), (4, 4), (5, 3)]
    ws.verify()


def test_the_greatest_number_is_no_null() -> None:
    greatest = 2**63 - 1
    ws = Workspace()
    ws.load("t", [(1, greatest), (2, None), (3, -greatest)], columns=["k", "v"], nulls="keep")
    rules = ("by: v", "by: v nulls first", "by: v desc", "by: v desc nulls first")
    for number, order in enumerate(rules):
        ws.install(f"h{number}(k, v, w) <- t(k, v), w = count({order}, range: (-2, 0)).", "delta")
    with ws.transaction() as tx:
        tx.insert("t", [(4, greatest), (5, 2 - greatest), (6, None)])
    counts = {number: {row[:2]: row[2] for row in ws[f"h{number}"]} for number in range(len(rules))}
    null = {(2, None): 2, (6, None): 2}
    rising = {(3, -greatest): 1, (5, 2 - greatest): 2, (1, greatest): 2, (4, greatest): 2}
    falling = {(3, -greatest): 2, (5, 2 - greatest): 1, (1, greatest): 2, (4, greatest): 2}
    assert counts == {0: rising | null, 1: rising | null, 2: falling | null, 3: falling | null}
    ws.verify()
