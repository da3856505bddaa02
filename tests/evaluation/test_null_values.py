"""NULL as a value: ``<=>``, also in atoms, the literal, outer joins, conditions as values; beside DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import lftj
from lftj import errors
from maintenance import Workspace

R = pa.table({"a": [1, 2, None, 4], "b": [None, 5, 6, 1], "s": ["x", None, "y", "z"]})
T = pa.table({"a": [1, None, 7], "c": [1.5, 2.5, None]})

RULES = {
    "h(a, c) <- r(a, _, _), t(<=> a, c).": ("select r.a, c from r join t on r.a is not distinct from t.a"),
    "h(a, x) <- r(a, _, _), t(x, _), x <=> a.": (
        "select r.a, t.a as x from r, t where r.a is not distinct from t.a"
    ),
    "h(a, x) <- r(a, _, _), t(x, _), x <!=> a.": (
        "select r.a, t.a as x from r, t where r.a is distinct from t.a"
    ),
    "h(a, b) <- r(a, b, _), a + 4 <=> b.": ("select a, b from r where a + 4 is not distinct from b"),
    'h(a) <- r(a, _, s), s <!=> "x".': ("select a from r where s is distinct from 'x'"),
    "h(a) <- r(a, _, _), !t(<=> a, _).": (
        "select a from r where a not in (select a from t where a is not null) and a is not null"
    ),
    "h(a, s) <- r(a, _, s), !t(<=> a, _), !r(<=> a, <=> a, _).": (
        "select a, s from r where not exists (select 1 from t where t.a is not distinct from r.a)"
        " and not exists"
        " (select 1 from r q where q.a is not distinct from r.a and q.b is not distinct from r.a)"
    ),
    "known(a) <- t(a, _), a is not null. h(a, s) <- r(a, _, s), !known(<=> a).": (
        "select a, s from r where not exists (select 1 from t where t.a = r.a)"
    ),
    "h(a, c) <- r(a, _, _), (t(a, c) ; !t(a, _), c = null), a is not null.": (
        "select r.a, c from r left join t on r.a = t.a where r.a is not null"
    ),
    "h(a, c) <- r(a, _, _), t(a, c). h(a, c) <- r(a, _, _), c = null.": (
        "select r.a, c from r join t on r.a = t.a union select a, null from r"
    ),
    "h(a, sum(c)) <- r(a, _, _), (t(a, c) ; !t(a, _), c = null).": (
        "select r.a, sum(c) from r left join t on r.a = t.a where r.a is not null group by r.a"
    ),
    "h(b, v) <- r(_, b, _), v = if(true, b > 5).": ("select b, b > 5 from r"),
    'h(b, v) <- r(_, b, s), v = if(true, (b > 5 ; s = "z")).': ("select b, b > 5 or s = 'z' from r"),
    "h(a, v) <- r(a, b, _), v = greatest(a, b).": ("select a, greatest(a, b) from r"),
    "h(a, v) <- r(a, b, _), v = least(a, b, 3).": ("select a, least(a, b, 3) from r"),
    'h(s, v) <- r(_, _, s), v = nullif(s, "x").': ("select s, nullif(s, 'x') from r"),
    'h(s, v) <- r(_, _, s), v = coalesce(null, s, "none").': ("select s, coalesce(null, s, 'none') from r"),
    "h(a, v) <- r(a, b, _), v = if(a <=> b, null, b).": (
        "select a, case when a is not distinct from b then null else b end from r"
    ),
    "h(a, v) <- r(a, _, _), v = 1.50.": ("select a, 1.50 from r"),
    "h(a) <- r(a, b, _), a + b is null.": ("select a from r where a + b is null"),
    'h(a, v) <- r(a, _, _), v = cast(null, "string").': ("select a, null::varchar from r"),
}


@pytest.fixture(scope="module")
def peer() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("r", R)
        connection.register("t", T)
        yield connection


def _rows(table: pa.Table) -> list[str]:
    return sorted({repr(tuple(row.values())) for row in table.to_pylist()})


@pytest.mark.parametrize("rule", RULES)
def test_as_duckdb_has_it(rule: str, peer: duckdb.DuckDBPyConnection) -> None:
    db = lftj.Database()
    db.load("r", R, nulls="keep")
    db.load("t", T, nulls="keep")
    assert _rows(db.query(rule)) == _rows(peer.sql(RULES[rule]).to_arrow_table())


@pytest.mark.parametrize("strategy", ["trace", "delta", "views", "recompute", "auto"])
def test_kept_through_rows_with_null(strategy: str) -> None:
    ws = Workspace()
    ws.load("r", R, nulls="keep")
    ws.load("t", T, nulls="keep")
    for number, rule in enumerate(RULES):
        ws.install(rule.replace("h(", f"h{number}("), strategy=strategy)
    for act in ("erase", "insert"):
        for relation, row in (("t", (None, 2.5)), ("r", (None, 6, "y")), ("t", (1, 1.5))):
            with ws.transaction() as tx:
                getattr(tx, act)(relation, [row])
            ws.verify()


def test_a_literal_takes_the_type_of_the_column() -> None:
    db = lftj.Database()
    db.load("t", T, nulls="keep")
    for rule in (
        "h(a, v) <- t(a, v). h(a, v) <- t(a, _), v = 1.5.",
        "h(v) <- t(_, v), v > 2.0. h(v) <- t(_, _), v = 1.5.",
    ):
        assert db.query(rule).schema.field("v").type == pa.float64(), rule
    two = "h(v), g(v) <- t(_, _), v = 1.5. h(v) <- t(_, v)."
    with pytest.raises(errors.TypeClashError, match=r"'v' is of type .* in one head .*: take two variables"):
        db.query(two)
