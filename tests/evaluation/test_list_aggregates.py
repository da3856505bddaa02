"""``list(v)`` once and kept by every strategy, beside DuckDB and lists of Python's."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from maintenance import Workspace
from support import peer

STRATEGIES = ("trace", "delta", "views", "recompute", "auto")

ELEMENTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integer": (pa.int32(), [-3, 0, 1, 2**31 - 1]),
    "least": (pa.int64(), [-(2**63) + 1, 0, 2**63 - 1]),
    "float": (pa.float64(), [-1.5, 0.0, 2.5, math.inf]),
    "boolean": (pa.bool_(), [False, True]),
    "text": (pa.string(), ["", "\x01", "a", "ab", "é"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x01\x02", b"\xff"]),
    "decimal": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.01"), Decimal("12.00")]),
    "date": (pa.date32(), [datetime.date(2026, 1, day) for day in (1, 2, 31)]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(2026, 1, day, 10) for day in (1, 2, 31)]),
    "time": (pa.time64("us"), [datetime.time(0), datetime.time(1, 2, 3), datetime.time(23, 59, 59)]),
    "list": (pa.list_(pa.string()), [[], ["a"], ["a", "b"], [None]]),
}

SQL = {
    "h[a] = list(v)": "select a, list(v order by v nulls last) from r group by a",
    "h[a] = list(v, by: (k desc nulls first, i))": (
        "select a, list(v order by k desc nulls first, i) from r group by a"
    ),
    "h(a, count(), list(v, by: i desc), x: max(k))": (
        "select a, count(*), list(v order by i desc), max(k) from r group by a"
    ),
    "h(a, list(v if k > 1), list(v), max(k))": (
        "select a, list(v order by v nulls last) filter (k > 1), list(v order by v nulls last), max(k)"
        " from r group by a"
    ),
    "h[a] = list(v, by: i if k > 1)": "select a, list(v order by i) from r where k > 1 group by a",
    "h(a, list(distinct v), count(distinct k))": (
        "select a, list(distinct v order by v nulls last), count(distinct k) from r group by a"
    ),
    "h[a] = list(distinct v if k > 1)": (
        "select a, list(distinct v order by v nulls last) from r where k > 1 group by a"
    ),
    "h(list(v, by: i), count() default 0)": "select list(v order by i), count(*) from r",
}


def a_row(r: random.Random, number: int, values: list[Any]) -> tuple[Any, ...]:
    key = None if r.random() < 0.1 else r.randint(1, 3)
    order = None if r.random() < 0.2 else r.randint(0, 3)
    return key, None if r.random() < 0.2 else r.choice(values), order, number


def table(rows: list[tuple[Any, ...]], element: pa.DataType) -> pa.Table:
    types = [pa.int64(), element, pa.int8(), pa.int64()]
    columns = [pa.array([row[place] for row in rows], type_) for place, type_ in enumerate(types)]
    return pa.table(columns, names=["a", "v", "k", "i"])


def shown(rows: list[dict[str, Any]]) -> list[str]:
    """Of rows of two engines, which call columns in their ways."""
    return sorted(repr(list(row.values())) for row in rows)


def answers(rows: list[tuple[Any, ...]], element: pa.DataType, queries: Iterable[str]) -> Iterator[list[str]]:
    """DuckDB's."""
    connection = peer.connection()
    connection.register("r", table(rows, element))
    return (shown(connection.sql(query).to_arrow_table().to_pylist()) for query in queries)


@pytest.mark.in_turns
@pytest.mark.parametrize("name", ELEMENTS)
def test_queries_agree_with_duckdb(name: str) -> None:
    element, values = ELEMENTS[name]
    r = random.Random(name)
    for n_rows in (0, 1, 30):
        rows = [a_row(r, number, values) for number in range(n_rows)]
        db = lftj.Database()
        db.load("r", table(rows, element), nulls="keep")
        for head, right in zip(SQL, answers(rows, element, SQL.values()), strict=True):
            result = db.query(f"{head} <- r(a, v, k, i).")
            assert shown(result.to_pylist()) == right, (n_rows, head)
            lists = [field.type for field in result.schema if pa.types.is_list(field.type)]
            assert all(type_ == pa.list_(element) for type_ in lists)


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_kept_heads_agree_with_duckdb(strategy: str) -> None:
    for name in ("integer", "text", "list"):
        element, values = ELEMENTS[name]
        r = random.Random(f"{strategy} {name}")
        rows = [a_row(r, number, values) for number in range(12)]
        n_rows = len(rows)
        workspace = Workspace()
        workspace.load("r", table(rows, element), nulls="keep")
        names = {f"h{place}": head for place, head in enumerate(SQL)}
        for one, head in names.items():
            workspace.install(f"{one}{head[1:]} <- r(a, v, k, i).", strategy=strategy)
        workspace.install(
            "pair(a, b) <- h0[a] = l, h0[b] = l, a < b. same[l] = count() <- h0[_] = l.", strategy=strategy
        )
        workspace.install(
            "bag all(l) <- h0[_] = l. none(a) <- r(a, _, _, _), h1[a] = l, !h0(_, l).", strategy=strategy
        )
        before = {one: shown(workspace[one].to_arrow().to_pylist()) for one in names}
        for step in range(10):
            gone = rows if step in (4, 9) else r.sample(rows, min(len(rows), r.randint(0, 6)))
            new = [a_row(r, n_rows + more, values) for more in range(0 if step == 9 else r.randint(0, 6))]
            n_rows += len(new)
            rows = [row for row in rows if row not in gone] + new
            with workspace.transaction() as transaction:
                if gone:
                    transaction.erase("r", table(gone, element))
                if new:
                    transaction.insert("r", table(new, element))
            rights = answers(rows, element, SQL.values())
            for (one, head), right in zip(names.items(), rights, strict=True):
                now = shown(workspace[one].to_arrow().to_pylist())
                assert now == right, (step, head)
                changes = transaction.changes[one].to_pylist() if one in transaction.changes else []
                came = shown(
                    [{k: v for k, v in c.items() if k != "weight"} for c in changes if c["weight"] > 0]
                )
                went = shown(
                    [{k: v for k, v in c.items() if k != "weight"} for c in changes if c["weight"] < 0]
                )
                assert (
                    sorted(set(before[one]) - set(now)) == went
                    and sorted(set(now) - set(before[one])) == came
                )
                before[one] = now
            lists = {row["a"]: repr(row["list"]) for row in workspace["h0"].to_arrow().to_pylist()}
            ordered = {row["a"]: repr(row["list"]) for row in workspace["h1"].to_arrow().to_pylist()}
            keys = [key for key in lists if key is not None]
            pairs = {(a, b) for a in keys for b in keys if a < b and lists[a] == lists[b]}
            assert set(workspace["pair"]) == pairs
            counts = {repr(row["l"]): row["count"] for row in workspace["same"].to_arrow().to_pylist()}
            every = list(lists.values())
            assert counts == {one: every.count(one) for one in every}
            assert sorted(repr(one) for (one,) in workspace["all"]) == sorted(every)
            assert set(workspace["none"]) == {(a,) for a in keys if ordered[a] not in every}
        workspace.verify()


FUNCTIONS = {
    "len(l)": "len(l)",
    "list_extract(l, 1)": "list_extract(l, 1)",
    "list_extract(l, -2)": "list_extract(l, -2)",
    "list_extract(l, n)": "list_extract(l, n)",
    "coalesce(list_extract(l, 3), 7) + 1": "coalesce(list_extract(l, 3), 7) + 1",
    "list_contains(l, 2)": "list_contains(l, 2)",
    "if(list_contains(l, n), l)": "case when list_contains(l, n) then l end",
    "if(len(l) > 1, list_extract(l, 2), n)": "case when len(l) > 1 then list_extract(l, 2) else n end",
    "greatest(l, m)": "greatest(l, m)",
    "least(l, m)": "least(l, m)",
    "coalesce(nullif(l, m), m)": "coalesce(nullif(l, m), m)",
    "l < m": "l < m",
}


@pytest.mark.parametrize("expression", FUNCTIONS)
def test_functions_agree_with_duckdb(expression: str) -> None:
    r = random.Random(expression)
    pool = [[], [1], [2, None], [None, 2], [1, 2, 3], [2], [3, 1]]
    numbers = range(40)
    lists = [[r.choice(pool) for _ in numbers] for _ in range(2)]
    table = pa.table(
        {
            "i": pa.array(numbers),
            "n": pa.array([r.randint(-3, 3) for _ in numbers]),
            "l": pa.array(lists[0], pa.list_(pa.int64())),
            "m": pa.array(lists[1], pa.list_(pa.int64())),
        }
    )
    db = lftj.Database()
    db.load("r", table)
    connection = peer.connection()
    connection.register("r", table)
    found = db.query(f"h(i, v) <- r(i, n, l, m), v = {expression}.").to_pylist()
    query = f"select i, {FUNCTIONS[expression]} as v from r"
    expected = connection.sql(query).to_arrow_table().to_pylist()
    is_left_out = expression.endswith("+ 1")  # nothing is NULL there
    assert shown(found) == shown([row for row in expected if not is_left_out or row["v"] is not None])


LISTS = "h[a] = list(v) <- r(a, v, _, _)."

REFUSED = {
    "h[a] = list(v, k) <- r(a, v, k, _).": "'list' takes one variable, and an order as by: list(v,",
    'h[a] = list(v, ",") <- r(a, v, _, _).': "'list' takes one variable, and an order as by:",
    "h[a] = list() <- r(a, _, _, _).": "'list' takes a variable, and perhaps an order",
    "h[a] = list(distinct v, by: k) <- r(a, v, k, _).": "'list' takes no order behind 'distinct'",
    "h[] = list(v) default 3 <- r(_, v, _, _).": "the default of 'list' is 3, and its values are of type",
    f"{LISTS} g[] = sum(l) <- h[_] = l.": "'sum' takes numbers, and 'l' is of type list<",
    f"{LISTS} g(a) <- h[a] = l, l > 3.": "it can't be compared with 3",
    f"{LISTS} g(a) <- h[a] = l, r(a, l, _, _).": "they can't be joined",
    f"{LISTS} g(x) <- h[_] = l, x = l + 1.": "there is no + for types list<",
    f"{LISTS} h[a] = list(x) <- r(a, v, _, _), x = v > 1.": "have no domain in common",
    "h[a] = list(v) <- r(a, v, _, _), h[_] = _.": "depends on its own aggregate",
    "h(x) <- r(a, _, _, _), x = len(a).": "len takes a list first, not a value of type int64",
    f"{LISTS} g(x) <- h[_] = l, x = list_extract(l, 1.5).": "a place of list_extract is an integer",
    f'{LISTS} g(a) <- h[a] = l, list_contains(l, "x").': "elements of type int64, and string",
    "h[a] = list(x) <- r(a, _, _, _), x = null.": "'x' is null, which has no type here",
}


@pytest.mark.parametrize("rule", REFUSED)
def test_what_is_refused(rule: str) -> None:
    db = lftj.Database()
    db.load("r", table([(1, 2, 3, 4)], pa.int64()))
    with pytest.raises(errors.RuleError) as caught:
        db.query(rule)
    assert REFUSED[rule] in str(caught.value)
    assert "#" not in str(caught.value) and "^" in str(caught.value)
