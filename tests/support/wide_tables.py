"""A wide table, rules that read a part of it, and the same in SQL."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from support import peer

NAMES = list("abcdefgh")
RULES = """
n[a] = count() <- w(a: a, c: "x").
s[a] = sum(b) <- w(a: a, b: b, e: true), edge(a, _).
m[c] = max(d) <- w(c: c, d: d).
t[e] = sum(b) <- w(a: a, b: b, d: d, e: e), d < 2.0, edge(a, _).
j(a, k) <- w(a: a, c: t), w(a: k, c: t, d: 2.0), a < k.
o(a) <- edge(a, _), !w(a: a, e: false).
"""
SQL = {
    "n": "select a, count(*) from w where c = 'x' group by a",
    "s": "select a, sum(b) from w join edge on x = a where e group by a",
    "m": "select c, max(d) from w group by c",
    "t": "select e, sum(b) from w join edge on x = a where d < 2.0 group by e",
    "j": "select distinct v.a, w.a from w v join w on v.c = w.c where w.d = 2.0 and v.a < w.a",
    "o": "select distinct x from edge where not exists (select 1 from w where w.a = x and not e)",
}


def array_of(values: list[Any], type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    return pa.array(values, type_)


def one_form(value: Any) -> Any:
    """NaN is one value, and so is 0.0."""
    if isinstance(value, float | np.floating):
        return "nan" if math.isnan(value) else float(value) + 0.0
    return value


def wide_table(generator: random.Random, n_rows: int) -> pa.Table:
    """Dense: many rows agree in most columns; NULLs in columns that the rules don't read."""

    def drawn(values: list[Any]) -> list[Any]:
        return [generator.choice(values) for _ in range(n_rows)]

    return pa.table(
        {
            "a": pa.array(drawn(list(range(6))), pa.int32()),
            "b": pa.array(drawn([Decimal("0.50"), Decimal("1.00"), Decimal("2.25")]), pa.decimal128(9, 2)),
            "c": pa.array(drawn(["x", "y", "yy"]), pa.large_string()),
            "d": drawn([0.5, -0.0, 0.0, 2.0]),
            "e": drawn([True, False]),
            "f": pa.array(drawn(["p", None, "q"])).dictionary_encode(),
            "g": drawn([datetime.date(2024, 1, 1), None]),
            "h": drawn([None, b"", b"z"]),
        }
    )


def distinct(table: pa.Table) -> pa.Table:
    rows = dict.fromkeys(tuple(map(one_form, row.values())) for row in table.to_pylist())
    columns = list(zip(*rows, strict=True)) or [() for _ in table.schema]
    arrays = [array_of(list(values), field.type) for values, field in zip(columns, table.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def agrees_with_sql(held: Callable[[str], pa.Table], table: pa.Table, edge: pa.Table) -> None:
    """Heads of a workspace, or what a database answers, are DuckDB's."""
    connection = peer.connection()
    connection.register("w", table)
    connection.register("edge", edge)
    for head, sql in SQL.items():
        expected = set(connection.execute(sql).fetchall())
        found = held(head)
        assert {tuple(row.values()) for row in found.to_pylist()} == expected, head
