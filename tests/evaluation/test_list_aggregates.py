"""``list(v)`` once and kept by every strategy, beside DuckDB and lists of Python's."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lftj
from maintenance import Workspace

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


def of_duckdb(rows: list[tuple[Any, ...]], element: pa.DataType, query: str) -> list[str]:
    connection = duckdb.connect()
    connection.register("r", table(rows, element))
    return shown(connection.sql(query).to_arrow_table().to_pylist())


@pytest.mark.parametrize("name", ELEMENTS)
def test_queries_agree_with_duckdb(name: str) -> None:
    element, values = ELEMENTS[name]
    r = random.Random(name)
    for n_rows in (0, 1, 30):
        rows = [a_row(r, number, values) for number in range(n_rows)]
        db = lftj.Database()
        db.load("r", table(rows, element), nulls="keep")
        for head, query in SQL.items():
            result = db.query(f"{head} <- r(a, v, k, i).")
            assert shown(result.to_pylist()) == of_duckdb(rows, element, query), (n_rows, head)
            lists = [field.type for field in result.schema if pa.types.is_list(field.type)]
            assert all(type_ == pa.list_(element) for type_ in lists)


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
        for step in range(10):
            gone = rows if step in (4, 9) else r.sample(rows, min(len(rows), r.randint(0, 6)))
            new = [a_row(r, n_rows + more, values) for more in range(0 if step == 9 else r.randint(0, 6))]
            n_rows += len(new)
            rows = [row for row in rows if row not in gone] + new
            before = {one: shown(workspace[one].to_arrow().to_pylist()) for one in names}
            with workspace.transaction() as transaction:
                if gone:
                    transaction.erase("r", table(gone, element))
                if new:
                    transaction.insert("r", table(new, element))
            for one, head in names.items():
                now = shown(workspace[one].to_arrow().to_pylist())
                assert now == of_duckdb(rows, element, SQL[head]), (step, head)
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
