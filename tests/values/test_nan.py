"""NaN: refused where a rule needs it to equal something, carried along where it is only a value."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from lftj.language.body import Body
from lftj.planning.lowering import lower
from support import peer


@pytest.fixture
def db() -> lftj.Database:
    made = lftj.Database()
    made.load("f", pa.table({"k": [1, 2, 3], "v": [math.nan, 1.0, 2.0]}))
    made.load("g", pa.table({"k": [1, 2, 3], "w": [0.5, 1.0, 0.5]}))
    made.load("n", pa.table({"x": [0.5, math.nan]}))
    return made


REFUSED = [
    ("h(k, v) <- f(k, v).", "f", "v", 0),
    ("h(k) <- f(k, v), g(_, v).", "f", "v", 0),
    ("h(k) <- f[k] = v, g[_] = v.", "f", "v", 0),
    ("h(k) <- f[k] = v, f[_] = v.", "f", "v", 0),
    ("h(k) <- f[k] = v, !g[k] = v.", "f", "v", 0),
    ("h(k) <- g[k] = v, !n(v).", "n", "x", 1),
    ("h(k) <- f[k] = v, g[k] = w, v = w.", "f", "v", 0),
    ("h(k) <- f[k] = v, g[k] = w, w <= v.", "f", "v", 0),
    ("h(x) <- n(x).", "n", "x", 1),
    ("h(x) <- n(0.5), n(x).", "n", "x", 1),
]


@pytest.mark.parametrize(("rule", "relation", "column", "row"), REFUSED)
@pytest.mark.parametrize("call", ["query", "count", "stream", "explain", "trace"])
def test_nan_is_no_key(db: lftj.Database, call: str, rule: str, relation: str, column: str, row: int) -> None:
    with pytest.raises(errors.NanError) as caught:
        result: Any = getattr(db, call)(rule)
        list(result)
    message = (
        f"relation '{relation}', column '{column}': NaN in row {row} (counting from 0); NaN equals nothing"
    )
    assert message in str(caught.value)
    assert db.count("h(k) <- g(k, _).") == 3


CARRIED = [
    ("h[k] = v <- f[k] = v.", [(1, math.nan), (2, 1.0), (3, 2.0)]),
    ("h(k, v) <- f[k] = v.", [(1, math.nan), (2, 1.0), (3, 2.0)]),
    ("h(k) <- f[k] = v.", [(1,), (2,), (3,)]),
    ("h(k) <- f(k, _).", [(1,), (2,), (3,)]),
    ("h(k) <- f[k] = 1.0.", [(2,)]),
    ("h[k] = x <- f[k] = v, x = v * 2.", [(1, math.nan), (2, 2.0), (3, 4.0)]),
    ("s[] = sum(v) <- f[_] = v.", [(math.nan,)]),
    ("s[] = avg(v) <- f[_] = v.", [(math.nan,)]),
    # As IEEE 754 compares: NaN is neither below nor above nor equal, and differs from itself.
    ("h(k) <- f[k] = v, v > 0.5.", [(2,), (3,)]),
    ("h(k) <- f[k] = v, v <= 1.5.", [(2,)]),
    ("h(k) <- f[k] = v, v != 1.0.", [(1,), (3,)]),
    ("h(k) <- f[k] = v, v = v.", [(2,), (3,)]),
    ("h(k) <- f[k] = v, v != v.", [(1,)]),
    ("h(k) <- f[k] = v, g[k] = w, v > w * 1.5.", [(3,)]),
]


AGGREGATED = {
    "NaN among others": [math.nan, 1.0, -1.0],
    "only NaN": [math.nan, math.nan],
    "NaN and infinity": [math.nan, math.inf],
    "NaN and minus infinity": [math.nan, -math.inf],
    "both infinities": [math.inf, -math.inf],
    "no NaN": [0.5, 0.25],
}


@pytest.mark.parametrize("values", AGGREGATED.values(), ids=AGGREGATED)
@pytest.mark.parametrize("function", ["min", "max", "sum", "avg"])
@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()], ids=str)
def test_aggregates_treat_nan_as_duckdb_does(
    values: list[float], function: str, arrow_type: pa.DataType
) -> None:
    table = pa.table({"k": range(len(values)), "v": pa.array(values, arrow_type)})
    database = lftj.Database()
    database.load("f", table)
    ((found,),) = database.query(f"s[] = {function}(v) <- f[_] = v.").to_pydict().values()
    with peer.connection() as connection:
        connection.register("f", table)
        ((wanted,),) = connection.execute(f"SELECT {function}(v) FROM f").fetchall()
    assert found == wanted or (math.isnan(found) and math.isnan(wanted))


@pytest.mark.parametrize(("rule", "expected"), CARRIED)
def test_nan_is_a_value(db: lftj.Database, rule: str, expected: list[tuple[Any, ...]]) -> None:
    rows = list(zip(*db.query(rule).to_pydict().values(), strict=True))
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert db.count(rule) == len(expected)


def test_a_derived_value_may_be_no_key_either(db: lftj.Database) -> None:
    program = "p[k] = v <- f[k] = v. "
    assert db.count(program + "h(k) <- p[k] = _.") == 3
    with pytest.raises(errors.NanError, match="relation 'p', column 'v'"):
        db.query(program + "h(k) <- p(k, v), g(_, v).")


def test_the_keys_of_a_functional_head_are_keys(db: lftj.Database) -> None:
    (rule,) = db.check("c[v] = count() <- f[_] = v.").strata[0]
    body: Body = rule.bodies[0]
    catalog = {"f": db["f"].tuples}
    schemas = {"f": db["f"].tuples.schema}
    lower(body, schemas, ["v"], counted=True).check(catalog)
    with pytest.raises(errors.NanError, match="relation 'f', column 'v'"):
        lower(body, schemas, ["v"], counted=True, grouped=["v"]).check(catalog)
