"""TPC-H queries as rules and as SQL, and DuckDB that takes the same changes as a workspace.

Relations hold the columns that the queries read and their key, so that no two
line items become one.  A head has the SQL column of its name; a group that the
SQL leaves out has no tuple.  ORDER BY and LIMIT have no meaning for a relation
and are left out of Q3, Q5 and Q10.  Q12's CASE is a disjunction that binds 1 or 0; its line
items are chosen first, by a rule of their own, with their key, and so are those of Q19.  Q10 groups by the
customer's key and nation; of Q14's share there are both sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = tuple[Any, ...]
Changes = dict[str, tuple[list[Row], list[Row]]]
"""By relation: the rows erased, the rows inserted."""


@dataclass(frozen=True)
class Query:
    """One query.

    Attributes:
        rules: The program.
        keys: How many columns the groups have; in SQL they come first.
        heads: Names of heads and of SQL columns.
        averages: Heads of averages, to the SQL columns of their exact sum and of their count.
        sql: The same in SQL.
    """

    rules: str
    keys: int
    heads: tuple[str, ...]
    sql: str
    averages: Mapping[str, tuple[str, str]] = field(default_factory=dict)


COLUMNS = {
    "lineitem": (
        "l_orderkey", "l_linenumber", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_tax",
        "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipmode",
        "l_partkey", "l_shipinstruct",
    ),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_orderpriority", "o_shippriority"),
    "customer": ("c_custkey", "c_nationkey", "c_mktsegment"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "nation": ("n_nationkey", "n_name", "n_regionkey"),
    "region": ("r_regionkey", "r_name"),
    "part": ("p_partkey", "p_brand", "p_type", "p_size", "p_container"),
}  # fmt: skip

KEYS = {"lineitem": 2, "orders": 1, "customer": 1, "supplier": 1, "nation": 1, "region": 1, "part": 1}
"""How many columns, from the first, are a relation's key."""

QUERIES = {
    "Q1": Query(
        """
        sum_qty[f, s] = sum(q), sum_base_price[f, s] = sum(p), sum_disc_price[f, s] = sum(d),
        sum_charge[f, s] = sum(c), sum_disc[f, s] = sum(r), avg_qty[f, s] = avg(q),
        avg_price[f, s] = avg(p), avg_disc[f, s] = avg(r), count_order[f, s] = count()
            <- lineitem(_, _, _, q, p, r, t, f, s, shipped, _, _, _, _, _), shipped <= 1998-09-02,
               d = p * (1 - r), c = d * (1 + t).
        """,
        2,
        ("sum_qty", "sum_base_price", "sum_disc_price", "sum_charge", "sum_disc", "count_order"),
        """
        select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty,
            sum(l_extendedprice) as sum_base_price,
            sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
            sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
            sum(l_discount) as sum_disc, count(*) as count_order,
            avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc
        from lineitem where l_shipdate <= date '1998-12-01' - interval 90 day group by 1, 2
        """,
        {
            "avg_qty": ("sum_qty", "count_order"),
            "avg_price": ("sum_base_price", "count_order"),
            "avg_disc": ("sum_disc", "count_order"),
        },
    ),
    "Q3": Query(
        """
        revenue[o, ordered, priority] = sum(v)
            <- customer(c, _, "BUILDING"), orders(o, c, ordered, _, priority),
               lineitem(o, _, _, _, p, r, _, _, _, shipped, _, _, _, _, _),
               ordered < 1995-03-15, shipped > 1995-03-15, v = p * (1 - r).
        """,
        3,
        ("revenue",),
        """
        select l_orderkey, o_orderdate, o_shippriority, sum(l_extendedprice * (1 - l_discount)) as revenue
        from customer, orders, lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
            and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by 1, 2, 3
        """,
    ),
    "Q5": Query(
        """
        revenue[name] = sum(v)
            <- region(g, "ASIA"), nation(n, name, g), customer(c, n, _), supplier(s, n),
               orders(o, c, ordered, _, _), lineitem(o, _, s, _, p, r, _, _, _, _, _, _, _, _, _),
               ordered >= 1994-01-01, ordered < 1995-01-01, v = p * (1 - r).
        """,
        1,
        ("revenue",),
        """
        select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
        from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
            and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
            and r_name = 'ASIA' and o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01'
        group by 1
        """,
    ),
    "Q6": Query(
        """
        revenue[] = sum(v)
            <- lineitem(_, _, _, q, p, r, _, _, _, shipped, _, _, _, _, _), shipped >= 1994-01-01,
               shipped < 1995-01-01, r >= 0.05, r <= 0.07, q < 24, v = p * r.
        """,
        0,
        ("revenue",),
        """
        select sum(l_extendedprice * l_discount) as revenue from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
            and l_discount between 0.05 and 0.07 and l_quantity < 24
        having count(*) > 0
        """,
    ),
    "Q10": Query(
        """
        revenue[c, name] = sum(v)
            <- customer(c, n, _), nation(n, name, _), orders(o, c, ordered, _, _),
               lineitem(o, _, _, _, p, r, _, "R", _, _, _, _, _, _, _),
               ordered >= 1993-10-01, ordered < 1994-01-01, v = p * (1 - r).
        """,
        2,
        ("revenue",),
        """
        select c_custkey, n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
        from customer, orders, lineitem, nation
        where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01'
            and o_orderdate < date '1994-01-01' and l_returnflag = 'R' and c_nationkey = n_nationkey
        group by 1, 2
        """,
    ),
    "Q12": Query(
        """
        late(o, n, mode)
            <- lineitem(o, n, _, _, _, _, _, _, _, shipped, committed, received, mode, _, _),
               (mode = "MAIL" ; mode = "SHIP"), committed < received, shipped < committed,
               received >= 1994-01-01, received < 1995-01-01.
        high_line_count[mode] = sum(high), low_line_count[mode] = sum(low)
            <- late(o, n, mode), orders(o, _, _, priority, _),
               ((priority = "1-URGENT" ; priority = "2-HIGH"), high = 1, low = 0 ;
                priority != "1-URGENT", priority != "2-HIGH", high = 0, low = 1).
        """,
        1,
        ("high_line_count", "low_line_count"),
        """
        select l_shipmode,
            sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end)
                as high_line_count,
            sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end)
                as low_line_count
        from orders, lineitem
        where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
            and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01'
            and l_receiptdate < date '1995-01-01'
        group by 1
        """,
    ),
    "Q14": Query(
        """
        promo[] = sum(v)
            <- lineitem(_, _, _, _, p, r, _, _, _, shipped, _, _, _, k, _), part(k, _, kind, _, _),
               shipped >= 1995-09-01, shipped < 1995-10-01, kind like "PROMO%", v = p * (1 - r).
        total[] = sum(v)
            <- lineitem(_, _, _, _, p, r, _, _, _, shipped, _, _, _, k, _), part(k, _, _, _, _),
               shipped >= 1995-09-01, shipped < 1995-10-01, v = p * (1 - r).
        """,
        0,
        ("promo", "total"),
        """
        select sum(l_extendedprice * (1 - l_discount)) filter (p_type like 'PROMO%') as promo,
            sum(l_extendedprice * (1 - l_discount)) as total
        from lineitem, part
        where l_partkey = p_partkey and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'
        having promo is not null
        """,
    ),
    "Q19": Query(
        """
        chosen(o, n)
            <- lineitem(o, n, _, q, _, _, _, _, _, _, _, _, mode, k, "DELIVER IN PERSON"),
               part(k, brand, _, size, container), (mode = "AIR" ; mode = "REG AIR"), size >= 1,
               (brand = "Brand#12", container in ("SM CASE", "SM BOX", "SM PACK", "SM PKG"),
                q >= 1, q <= 11, size <= 5 ;
                brand = "Brand#23", container in ("MED BAG", "MED BOX", "MED PKG", "MED PACK"),
                q >= 10, q <= 20, size <= 10 ;
                brand = "Brand#34", container in ("LG CASE", "LG BOX", "LG PACK", "LG PKG"),
                q >= 20, q <= 30, size <= 15).
        revenue[] = sum(v)
            <- chosen(o, n), lineitem(o, n, _, _, p, r, _, _, _, _, _, _, _, _, _), v = p * (1 - r).
        """,
        0,
        ("revenue",),
        """
        select sum(l_extendedprice * (1 - l_discount)) as revenue
        from lineitem, part
        where p_partkey = l_partkey and l_shipmode in ('AIR', 'REG AIR')
            and l_shipinstruct = 'DELIVER IN PERSON' and p_size >= 1
            and (p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                    and l_quantity between 1 and 11 and p_size <= 5
                or p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                    and l_quantity between 10 and 20 and p_size <= 10
                or p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                    and l_quantity between 20 and 30 and p_size <= 15)
        having count(*) > 0
        """,
    ),
}


def tables(data_folder: Path) -> dict[str, pa.Table]:
    """The relations, as far as the queries read them.  Raises FileNotFoundError."""
    folder = data_folder / "tpch-sf0.01"
    return {
        name: pq.read_table(folder / f"{name}.parquet", columns=list(columns))
        for name, columns in COLUMNS.items()
    }


class Sql:
    """DuckDB with the relations, for the answers."""

    def __init__(self, loaded: Mapping[str, pa.Table]) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._schemas = {name: table.schema for name, table in loaded.items()}
        for name, table in loaded.items():
            self._connection.register("incoming", table)
            self._connection.execute(f"create table {name} as select * from incoming")
            self._connection.unregister("incoming")

    def one_thread(self) -> None:
        """Answer with one thread, as a measured peer does."""
        self._connection.execute("set threads = 1")

    def apply(self, changes: Changes) -> None:
        """Erase rows by their keys, then insert."""
        for name, (erased, inserted) in changes.items():
            keys = " and ".join(f"{name}.{column} = gone.{column}" for column in COLUMNS[name][: KEYS[name]])
            self._connection.register("gone", self.table(name, erased))
            self._connection.execute(f"delete from {name} using gone where {keys}")
            self._connection.register("came", self.table(name, inserted))
            self._connection.execute(f"insert into {name} select * from came")

    def table(self, name: str, rows: list[Row]) -> pa.Table:
        """Rows of a relation, with its types."""
        schema = self._schemas[name]
        columns = list(zip(*rows, strict=True)) or [() for _ in schema]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def answers(self, query: Query) -> dict[str, dict[Row, Any]]:
        """By SQL column: the value of each group."""
        result = self._connection.execute(query.sql)
        names = [column[0] for column in result.description]
        found: dict[str, dict[Row, Any]] = {name: {} for name in names[query.keys :]}
        for row in result.fetchall():
            for name, value in zip(names[query.keys :], row[query.keys :], strict=True):
                found[name][row[: query.keys]] = value
        return found
