"""What is measured in Spark: the rules, and each of them in the SQL that a good engineer writes for Spark.

A key is ``lftj``, which is ``spark_bridge`` here, or ``spark``, with a variant after a colon: ``spark`` is
Spark with its settings as they come (adaptive, broadcasts allowed), ``spark:sort-merge`` has
broadcasts off and the best of several numbers of shuffle partitions.  A target stands against
both, so it is one against the quicker of them.

SQL joins in the order that was quickest of those that we tried: triangles from paths a - b - c with
a < b < c or from pairs of edges that end in one vertex, whichever are fewer, 4-cliques from triangles.
"""

from __future__ import annotations

from dataclasses import replace

from bench.joins.lsqb import lsqb
from bench.joins.patterns import TRIANGLE_RULE
from bench.workload import Target, Workload

PEERS = ("spark", "spark:sort-merge")
LIMIT_SECONDS = 600.0
WARM_UP_BATCHES = 2

_TRIANGLE_BODY = TRIANGLE_RULE.partition("<- ")[2]
_CLIQUE_BODY = "edge(a, b), edge(a, c), edge(a, d), edge(b, c), edge(b, d), edge(c, d)."

_PATHS = (
    "SELECT {} FROM edge ab JOIN edge bc ON bc.src = ab.dst "
    "JOIN edge ac ON ac.src = ab.src AND ac.dst = bc.dst"
)
_PAIRS = (
    "SELECT {} FROM edge ac JOIN edge bc ON bc.dst = ac.dst AND ac.src < bc.src "
    "JOIN edge ab ON ab.src = ac.src AND ab.dst = bc.src"
)
_ROWS = "ac.src AS a, bc.src AS b, ac.dst AS c"
TRIANGLE_ROWS_SQL = _PATHS.format(_ROWS)
TRIANGLE_COUNT_SQL = _PATHS.format("count(*)")
_CLIQUE_SQL = (
    f"WITH tri AS ({_PAIRS.format(_ROWS)}) SELECT count(*) FROM tri x "
    "JOIN tri y ON y.b = x.b AND y.c = x.c AND x.a < y.a JOIN edge aa ON aa.src = x.a AND aa.dst = y.a"
)
_LSQB_SQL = {
    3: (
        "WITH lives AS (SELECT l.person, p.country FROM located_in l JOIN part_of p ON p.city = l.city) "
        "SELECT count(*) FROM knows ab JOIN lives a ON a.person = ab.src "
        "JOIN lives b ON b.person = ab.dst AND b.country = a.country JOIN knows bc ON bc.src = ab.dst "
        "JOIN lives c ON c.person = bc.dst AND c.country = a.country "
        "JOIN knows ca ON ca.src = bc.dst AND ca.dst = ab.src"
    ),
    6: (
        "SELECT count(*) FROM knows ab JOIN knows bc ON bc.src = ab.dst AND ab.src <> bc.dst "
        "JOIN interest i ON i.person = bc.dst"
    ),
    9: (
        "SELECT count(*) FROM knows ab JOIN knows bc ON bc.src = ab.dst AND ab.src <> bc.dst "
        "JOIN interest i ON i.person = bc.dst LEFT ANTI JOIN knows ac ON ac.src = ab.src AND ac.dst = bc.dst"
    ),
}


def _against_both(floor: float | None) -> tuple[Target, ...]:
    return tuple(Target("ratio", floor, None, peer) for peer in PEERS)


def _one(
    name: str,
    title: str,
    tables: dict[str, str],
    body: str,
    sql: str,
    expected: int,
    floor: float | None,
    note: str = "",
) -> Workload:
    return Workload(
        f"spark-{name}",
        f"{title}, counted in Spark",
        tables,
        {"lftj": f"n[] = count() <- {body}", **dict.fromkeys(PEERS, sql)},
        expected,
        task="spark count",
        targets=_against_both(floor),
        threads=2,
        limit=LIMIT_SECONDS,
        note=note,
    )


def triangles(
    graph: str, title: str, expected: int, floor: float | None = None, note: str = "", sql: str = _PATHS
) -> Workload:
    """Triangles counted."""
    name, tables = f"triangles-{graph}", {"edge": graph}
    counted = sql.format("count(*)")
    return _one(name, f"triangles, {title}", tables, _TRIANGLE_BODY, counted, expected, floor, note)


def cliques(graph: str, title: str, expected: int, floor: float | None = None) -> Workload:
    """4-cliques counted."""
    tables = {"edge": graph}
    return _one(f"cliques-{graph}", f"4-cliques, {title}", tables, _CLIQUE_BODY, _CLIQUE_SQL, expected, floor)


def listing(graph: str, title: str, expected: int, floor: float | None = None) -> Workload:
    """All triangles as rows."""
    return Workload(
        f"spark-listing-{graph}",
        f"triangles, {title}, listed in Spark",
        {"edge": graph},
        {"lftj": TRIANGLE_RULE, **dict.fromkeys(PEERS, TRIANGLE_ROWS_SQL)},
        expected,
        task="spark list",
        targets=_against_both(floor),
        threads=2,
        limit=LIMIT_SECONDS,
    )


def social() -> list[Workload]:
    """The queries of :mod:`bench.joins.lsqb`, in Spark."""
    found = []
    for workload in lsqb():
        body = workload.queries["lftj"].partition("<- ")[2]
        sql = _LSQB_SQL[int(workload.name[-1])]
        tables = dict(workload.tables)
        found.append(_one(workload.name, workload.title, tables, body, sql, workload.expected, 1 / 1.2))
    return found


def foreign_keys(sales: int) -> Workload:
    """Sales with two dimensions, grouped: a join without a cycle, which is Spark's own here too."""
    body = "sale(_, product, _, customer, amount), product(product, kind), customer(customer, segment)."
    sql = (
        "SELECT kind, segment, count(*) AS n, sum(amount) AS total FROM sale s"
        " JOIN product p ON s.product = p.product JOIN customer c ON s.customer = c.customer"
        " GROUP BY kind, segment"
    )
    return Workload(
        f"spark-foreign-keys-{sales}",
        f"foreign keys: {sales:,} sales, two dimensions, grouped, in Spark",
        {name: f"sales-{sales}/{name}" for name in ("sale", "product", "customer")},
        {
            "lftj": f"totals(kind, segment, n: count(), total: sum(amount)) <- {body}",
            "lftj:sql": sql,
            **dict.fromkeys(PEERS, sql),
        },
        100,
        task="spark list",
        targets=(Target("ratio", 1 / 1.3, None, "spark"), Target("ratio", None, None, "lftj:sql")),
        threads=2,
        limit=LIMIT_SECONDS,
        keys={"sale": ("sale",), "product": ("product",), "customer": ("customer",)},
        note="join with the tables' keys, and join_sql (lftj:sql); 2,000 products, 10,000 customers.",
    )


def batches(graph: str, title: str, size: int, expected: int) -> Workload:
    """Triangles kept under batches of changes; peers evaluate the changed graph."""
    return Workload(
        f"spark-batches-{size}-{graph}",
        f"batches of {size:,} changes, triangles, {title}, in Spark",
        {"edge": graph},
        {
            "lftj": TRIANGLE_RULE,
            "lftj:driver": TRIANGLE_RULE,
            "lftj:whole, listed": TRIANGLE_RULE,
            "lftj:whole, counted": f"n[] = count() <- {_TRIANGLE_BODY}",
            "spark": TRIANGLE_ROWS_SQL,
            "spark:counted": TRIANGLE_COUNT_SQL,
        },
        expected,
        task="spark batches",
        targets=tuple(
            Target("ratio", None, None, peer)
            for peer in ("lftj:driver", "lftj:whole, listed", "spark", "spark:counted")
        ),
        threads=2,
        batch=size,
        limit=LIMIT_SECONDS,
        note=f"Load is building the state; the first run is {WARM_UP_BATCHES} batches and counting the head; "
        "a run is one batch, from its Parquet file to the commit, with the state on the executors or in the "
        "driver (lftj:driver). The others evaluate the graph that has the "
        "first batches' changes, listing all triangles unless they say that they count. Half of a batch "
        "erases, half inserts.",
    )


def streams(graph: str, title: str, size: int, expected: int) -> Workload:
    """Triangles kept by Structured Streaming, with state of one's own and with Spark's."""
    return Workload(
        f"spark-stream-{size}-{graph}",
        f"stream of batches of {size:,} changes, triangles, {title}, in Spark",
        {"edge": graph},
        {"lftj": TRIANGLE_RULE, "lftj:transformWithState": TRIANGLE_RULE},
        expected,
        task="spark stream",
        targets=(Target("ratio", None, None, "lftj:transformWithState"),),
        threads=2,
        batch=size,
        limit=LIMIT_SECONDS,
        note="The first run makes the state and starts the stream; a run is one micro-batch with "
        "all that Spark does for it, changes of the head written as Parquet. Placement and "
        "engine are the same on both sides; the state is in files beside a manifest "
        "(MaintainedJoin.stream), with images and the head, or in Spark's RocksDB store, the inputs alone.",
    )


def full() -> list[Workload]:
    """All that is measured in Spark."""
    power_law = ("power-law-50000-200000", "power-law graph of 200,000 edges", 63_785, 2)
    note = "50,000 vertices, 200,000 edges, largest degree 1,208, 63,785 triangles (bench.graphs.power_law)."
    return [
        triangles(*power_law, note=note),
        triangles("email-enron", "email-enron", 727_044, 1 / 1.2, sql=_PAIRS),
        cliques("email-enron", "email-enron", 2_341_639, 15),
        cliques("rmat-14-12", "RMAT 14/12", 16_391_052, 15),
        triangles("rmat-16-12", "RMAT 16/12", 8_946_387, 8),
        replace(triangles("rmat-18-12", "RMAT 18/12", 45_937_900, 8), limit=120.0),
        *social(),
        foreign_keys(6_000_000),
        listing(*power_law),
        batches("rmat-16-12", "RMAT 16/12", 1, 8_946_414),
        batches("rmat-16-12", "RMAT 16/12", 100, 8_944_782),
        batches("rmat-16-12", "RMAT 16/12", 10_000, 8_831_520),
        streams("rmat-14", "RMAT 14/8", 100, 752_167),
        streams("rmat-14", "RMAT 14/8", 10_000, 752_167),
    ]


def quick() -> list[Workload]:
    """One of every kind, over small generated data."""
    return [
        triangles("rmat-9", "RMAT 9/8", 9_524),
        cliques("rmat-9", "RMAT 9/8", 24_093),
        listing("rmat-9", "RMAT 9/8", 9_524),
        batches("rmat-9", "RMAT 9/8", 20, 9_505),
        streams("rmat-9", "RMAT 9/8", 20, 9_524),
        foreign_keys(3_000),
    ]
