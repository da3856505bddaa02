"""Star joins of customer, orders and lineitem: what pairwise joins are made for."""

from __future__ import annotations

from bench.workload import Target, Workload


def _star_join(
    name: str, title: str, tables: str, rule: str, sql: str, expected: int, note: str = ""
) -> Workload:
    return Workload(
        name,
        title,
        {relation: f"{tables}/{relation}" for relation in ("customer", "orders", "lineitem")},
        {"lftj": rule, "duckdb": sql},
        expected,
        targets=(Target("ratio", 1 / 1.5, 1, "duckdb"),),
        note=note,
    )


def star_joins() -> list[Workload]:
    published = (
        "SELECT count(*) FROM customer, orders, lineitem "
        "WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey"
    )
    generated = (
        "SELECT count(*) FROM customer c, orders o, lineitem l "
        "WHERE c.custkey = o.custkey AND o.orderkey = l.orderkey"
    )
    return [
        _star_join(
            "star-join",
            "star join, TPC-H scale 0.01: customer, orders, lineitem",
            "tpch",
            "join(c, o, l) <- customer(c, _), orders(o, c, _), lineitem(o, l, _).",
            published,
            60_175,
        ),
        _star_join(
            "star-join-selective",
            "star join with the selections of TPC-H Q3, scale 0.01",
            "tpch",
            'join(c, o, l) <- customer(c, "BUILDING"), orders(o, c, od), lineitem(o, l, ld), '
            "od < 1995-03-15, ld > 1995-03-15.",
            published + " AND c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' "
            "AND l_shipdate > DATE '1995-03-15'",
            356,
        ),
        _star_join(
            "star-join-generated",
            "star join, generated: 150,000 customers, 1.5M orders, 6M items",
            "orders-1500000",
            "join(c, o, l) <- customer(c, _), orders(o, c), lineitem(o, l).",
            generated,
            5_998_892,
        ),
    ]
