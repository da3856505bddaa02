"""oracle: rules over thousands of tuples against DuckDB's SQL, on uniform, skewed, dense and sparse keys.

The brute-force reference only reaches small data, where a leapfrog seldom
skips and an intersection seldom gallops.  Here the shapes are few and the data
large enough for every kind of inner loop.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import lftj
from support.kinds import Kind
from support.rows import rows_of
from support.rule_sql import to_sql
from support.rules import Atom, Rule, render, variables_of
from support.sets import load_set
from support.strategies import Signature, draw_body, draw_plain_head

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
]

# name: (rule, SQL over e(c0, c1) and f(c0, c1) that gives the same tuples, each once)
SHAPES = {
    "triangle": (
        "h(a, b, c) <- e(a, b), e(b, c), e(a, c).",
        "select p.c0, p.c1, q.c1 from e p, e q, e r where p.c1 = q.c0 and r.c0 = p.c0 and r.c1 = q.c1",
    ),
    "triangle of two relations, bounded": (
        "h(a, b, c) <- e(a, b), f(b, c), e(c, a), a < b, c <= b + 40.",
        "select p.c0, p.c1, q.c1 from e p, f q, e r where p.c1 = q.c0 and r.c0 = q.c1 and r.c1 = p.c0"
        " and p.c0 < p.c1 and q.c1 <= p.c1 + 40",
    ),
    "square": (
        "h(a, c) <- e(a, b), f(b, c), e(c, d), f(d, a), a != c.",
        "select distinct p.c0, q.c1 from e p, f q, e r, f s where p.c1 = q.c0 and q.c1 = r.c0 and r.c1 = s.c0"
        " and s.c1 = p.c0 and p.c0 <> q.c1",
    ),
    "clique of four": (
        "h(a, b, c, d) <- e(a, b), e(a, c), e(a, d), e(b, c), e(b, d), e(c, d).",
        "select p.c0, p.c1, q.c1, r.c1 from e p, e q, e r, e s, e t, e u where q.c0 = p.c0 and r.c0 = p.c0"
        " and s.c0 = p.c1 and s.c1 = q.c1 and t.c0 = p.c1 and t.c1 = r.c1 and u.c0 = q.c1 and u.c1 = r.c1",
    ),
    "corner of a triangle": (
        "h(b) <- e(a, b), e(b, c), f(a, c).",
        "select distinct p.c1 from e p, e q, f r where p.c1 = q.c0 and r.c0 = p.c0 and r.c1 = q.c1",
    ),
    "open wedge": (
        "h(a, c) <- e(a, b), e(b, c), !f(a, c), !e(c, _).",
        "select distinct p.c0, q.c1 from e p, e q where p.c1 = q.c0"
        " and not exists (select 1 from f where f.c0 = p.c0 and f.c1 = q.c1)"
        " and not exists (select 1 from e r where r.c0 = q.c1)",
    ),
    "two existentials apart": (
        "h(a) <- e(a, b), f(b, _), e(c, a), f(_, c).",
        "select distinct p.c0 from e p where exists (select 1 from e q, f where q.c0 = p.c0 and f.c0 = q.c1)"
        " and exists (select 1 from e q, f where q.c1 = p.c0 and f.c1 = q.c0)",
    ),
    "loops and both directions": (
        "h(a, b) <- e(a, b), (e(b, a) ; f(b, b)).",
        "select c0, c1 from e where exists (select 1 from e r where r.c0 = e.c1 and r.c1 = e.c0)"
        " or exists (select 1 from f where f.c0 = e.c1 and f.c1 = e.c1)",
    ),
    "constants and bounds": (
        "h(b, c) <- e(3, b), f(b, c), c >= 10, c < 70, b != 7.",
        "select f.c0, f.c1 from e, f where e.c0 = 3 and e.c1 = f.c0 and f.c1 >= 10 and f.c1 < 70"
        " and f.c0 <> 7",
    ),
    "distance between two ends": (
        "h(a, b, c) <- e(a, b), e(a, c), b < c, c <= b + 5.",
        "select p.c0, p.c1, q.c1 from e p, e q where p.c0 = q.c0 and p.c1 < q.c1 and q.c1 <= p.c1 + 5",
    ),
    "star counted": (
        "h[a] = count() <- e(a, b), f(a, c), e(a, d).",
        "select p.c0, count(*) from e p, f q, e r where p.c0 = q.c0 and p.c0 = r.c0 group by p.c0",
    ),
    "sum over a join": (
        "h[b] = sum(c) <- e(a, b), f(a, c).",
        "select p.c1, sum(q.c1)::bigint from e p, f q where p.c0 = q.c0 group by p.c1",
    ),
    "several aggregates of a join": (
        "h(count(), b, sum(c), max(c), min(a)) <- e(a, b), f(a, c).",
        "select count(*), p.c1, sum(q.c1)::bigint, max(q.c1), min(p.c0) from e p, f q where p.c0 = q.c0"
        " group by p.c1",
    ),
    "several aggregates by two variables": (
        "h(a, d, max(b), count(), max(c)) <- e(a, b), f(b, c), e(c, d).",
        "select p.c0, r.c1, max(p.c1), count(*), max(q.c1) from e p, f q, e r"
        " where p.c1 = q.c0 and q.c1 = r.c0 group by p.c0, r.c1",
    ),
    "several aggregates of everything": (
        "h(min(a), count(), max(c)) <- e(a, b), f(b, c), a < c.",
        "select min(e.c0), count(*), max(f.c1) from e, f where e.c1 = f.c0 and e.c0 < f.c1"
        " having count(*) > 0",
    ),
    "a head of several aggregates, read": (
        "s(a, count(), max(b)) <- e(a, b). s(a, n, b) <- f(a, b), n = 3."
        " h(a, n) <- s(a, n, m), e(m, _), n > 2.",
        "with s as (select c0 a, count(*) n, max(c1) m from e group by c0 union select c0, 3, c1 from f)"
        " select distinct a, n from s where n > 2 and m in (select c0 from e)",
    ),
}

ARITIES = {"e": 2, "f": 2, "g": 3}

# name: (values a key is drawn from, skew of the draw, tuples)
DATA = {
    "uniform": (600, 0.0, 2500),
    "skewed": (300, 1.2, 1200),
    "dense": (60, 0.0, 1500),
    "star": (3000, 1.1, 1500),
    "empty": (10, 0.0, 0),
}


MOST_ROWS = 200_000


@cache
def table(data: str, relation: str) -> pa.Table:
    """Distinct tuples.  Most keys of "star" are rare and far apart, the frequent ones are small."""
    n_values, skew, n_rows = DATA[data]
    generator = np.random.default_rng([len(data), ord(relation)])
    weights = 1 / np.arange(1, n_values + 1) ** skew
    keys = generator.choice(n_values, size=(n_rows, ARITIES[relation]), p=weights / weights.sum())
    if data == "star":
        spread = np.random.default_rng(7).integers(-(2**48), 2**48, n_values)
        spread[:200] = np.arange(200)
        keys = spread[keys]
    keys = np.unique(keys.reshape(-1, ARITIES[relation]), axis=0)
    return pa.table({f"c{column}": keys[:, column].copy() for column in range(ARITIES[relation])})


@cache
def databases(data: str) -> tuple[lftj.Database, Any]:
    """The engine and DuckDB with the same relations."""
    duckdb = pytest.importorskip("duckdb")
    db, connection = lftj.Database(), duckdb.connect()
    for relation in ARITIES:
        load_set(db, relation, table(data, relation))
        connection.register("incoming", table(data, relation))
        connection.execute(f"create table {relation} as select * from incoming")
        connection.unregister("incoming")
    return db, connection


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("shape", SHAPES)
def test_rules_agree_with_sql(shape: str, data: str) -> None:
    db, connection = databases(data)
    rule, sql = SHAPES[shape]
    expected = sorted(connection.execute(sql).fetchall())
    assert db.count(rule) == len(expected)
    for threads in (1, 2):
        assert sorted(rows_of(db.query(rule, threads=threads))) == expected
    batches = db.stream(rule, batch_rows=1000)
    assert sorted(row for batch in batches for row in rows_of(batch)) == expected


KEY = Kind("key", (pa.int64(),), (), (0, 1, 2, 5, 30), affine=True)
CATALOG = [Signature(name, (KEY,) * arity, functional=False) for name, arity in ARITIES.items()]


@st.composite
def connected_rules(draw: st.DrawFn) -> Rule:
    """A plain rule whose positive atoms hang together, so that its result stays of a size."""
    body, scope = draw_body(draw, CATALOG, most_atoms=4, plain=True)
    reached: set[str] = set()
    atoms = [set(variables_of(a)) for a in body if isinstance(a, Atom) and not a.negated]
    for _ in atoms:
        for names in atoms:
            if names & reached or not reached:
                reached |= names
    assume(all(names & reached for names in atoms))
    head, _ = draw_plain_head(draw, "h", scope)
    return Rule((head,), body)


@pytest.mark.in_turns
@pytest.mark.parametrize("data", [data for data in DATA if data != "empty"])
@given(rule=connected_rules(), threads=st.sampled_from((1, 2)))
def test_random_rules_agree_with_sql(data: str, rule: Rule, threads: int) -> None:
    db, connection = databases(data)
    sql, text = to_sql(rule), render((rule,))
    note(f"{text}\n{sql}")
    # Random rules may have results of any size, so DuckDB is asked for no more rows than can be compared.
    expected = connection.execute(f"{sql} limit {MOST_ROWS}").fetchall()
    assume(len(expected) < MOST_ROWS)
    expected.sort()
    assert sorted(rows_of(db.query(text, threads=threads))) == expected
    assert db.count(text, threads=threads) == len(expected)
    batches = db.stream(text, batch_rows=97, threads=threads)
    assert sorted(row for batch in batches for row in rows_of(batch)) == expected


@given(rule=connected_rules(), data=st.data())
def test_random_key_orders_agree_with_sql(rule: Rule, data: st.DataObject) -> None:
    atoms = [a for a in rule.body if isinstance(a, Atom) and not a.negated]
    names = list(dict.fromkeys(name for atom in atoms for name in variables_of(atom)))
    # A bad order may try every combination of the 60 keys.
    assume(2 <= len(names) <= 4)
    order = data.draw(st.permutations(names))
    db, connection = databases("dense")
    expected = sorted(connection.execute(to_sql(rule)).fetchall())
    assert sorted(rows_of(db.query(render((rule,)), order=order))) == expected
    assert db.count(render((rule,)), order=order) == len(expected)
