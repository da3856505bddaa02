"""`VIEWS`: five SELECTs over TPC-H that a pipeline keeps, one of each kind that is hard to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class View:
    """A SELECT by name; ``reads``: by relation the columns that it needs, those of the key among them.

    >>> [view.name for view in VIEWS]
    ['local_revenue', 'large_orders', 'best_orders', 'returned_near', 'lost_revenue']
    """

    name: str
    kind: str
    sql: str
    reads: Mapping[str, Sequence[str]]

    @property
    def spark_sql(self) -> str:
        """The same for Spark, whose recursions have UNION ALL alone: paths in place of what they reach."""
        return self.sql.replace("UNION", "UNION ALL")


VIEWS = (
    View(
        "local_revenue",
        "cyclic",
        """
        SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
          AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
        GROUP BY n_name
        """,
        {
            "customer": ["c_custkey", "c_nationkey"],
            "orders": ["o_orderkey", "o_custkey"],
            "lineitem": ["l_orderkey", "l_linenumber", "l_suppkey", "l_extendedprice", "l_discount"],
            "supplier": ["s_suppkey", "s_nationkey"],
            "nation": ["n_nationkey", "n_name"],
        },
    ),
    View(
        "large_orders",
        "nested",
        """
        SELECT o_orderkey, o_custkey, o_totalprice FROM orders
        WHERE o_orderkey IN (
            SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250
        )
        """,
        {
            "orders": ["o_orderkey", "o_custkey", "o_totalprice"],
            "lineitem": ["l_orderkey", "l_linenumber", "l_quantity"],
        },
    ),
    View(
        "best_orders",
        "window",
        """
        SELECT DISTINCT o_custkey, place, o_orderkey, o_totalprice FROM (
            SELECT o_custkey, o_orderkey, o_totalprice, row_number()
                OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS place
            FROM orders
        ) AS ranked WHERE place <= 3
        """,
        {"orders": ["o_orderkey", "o_custkey", "o_totalprice"]},
    ),
    View(
        "returned_near",
        "recursion",
        """
        WITH RECURSIVE returned AS (
            SELECT l_orderkey, l_suppkey FROM lineitem WHERE l_returnflag = 'R' AND l_quantity >= 45
        ), link AS (
            SELECT DISTINCT a.l_suppkey AS one, b.l_suppkey AS other
            FROM returned a JOIN returned b ON a.l_orderkey = b.l_orderkey AND a.l_suppkey <> b.l_suppkey
        ), near(supplier, steps) AS (
            SELECT s_suppkey, 0 FROM supplier WHERE s_suppkey <= 3
            UNION
            SELECT other, steps + 1 FROM near JOIN link ON one = supplier WHERE steps < 3
        )
        SELECT supplier, min(steps) AS steps FROM near GROUP BY supplier
        """,
        {
            "supplier": ["s_suppkey"],
            "lineitem": ["l_orderkey", "l_linenumber", "l_suppkey", "l_quantity", "l_returnflag"],
        },
    ),
    View(
        "lost_revenue",
        "grouped join",
        """
        SELECT c_custkey, c_name, n_name, sum(l_extendedprice * (1 - l_discount)) AS lost, count(*) AS items
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND c_nationkey = n_nationkey
          AND l_returnflag = 'R'
        GROUP BY c_custkey, c_name, n_name
        """,
        {
            "customer": ["c_custkey", "c_name", "c_nationkey"],
            "orders": ["o_orderkey", "o_custkey"],
            "lineitem": ["l_orderkey", "l_linenumber", "l_extendedprice", "l_discount", "l_returnflag"],
            "nation": ["n_nationkey", "n_name"],
        },
    ),
)
