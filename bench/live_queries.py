"""Small queries, and queries over data that change: what a plan apart from data is worth.

    python -m bench.live_queries [--quick]

writes ``results.md`` into ``bench/results/live-queries/`` (``--quick``: smaller data, only printed).

1. Point queries by the CPU second, over uniform edges: one text; a prepared rule and another
   value each time; another text each time.  DuckDB: a prepared statement.
2. Queries of a workspace before and after single edges were committed, one after the other:
   the first after each commit, which has all that the commit made necessary to do.  Before as
   after they are asked in turn, so that each finds the processor's caches full of the others'
   data: a point query asked again and again takes half the time.  DuckDB: the same query after
   an insertion of its own.
3. An edge into a hub, under a maintained count of paths.

One thread.  Every answer is compared between the engines.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

import lftj
from bench.graphs import distinct, rmat
from bench.report.machine import describe
from bench.report.markdown import number, table
from bench.report.page import is_quick, show
from maintenance import Workspace

POINT = "out(b) <- edge($k, b)."
POINT_SQL = "SELECT b FROM edge WHERE a = ?"
TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
QUERIES = {  # listed, but for the last one, which is counted
    "out-edges of a vertex": (
        "out(b) <- edge({k}, b).",
        "SELECT b FROM edge WHERE a = {k}",
    ),
    "two steps from a vertex": (
        "far(c) <- edge({k}, b), edge(b, c).",
        "SELECT DISTINCT s.b FROM edge r, edge s WHERE r.b = s.a AND r.a = {k}",
    ),
    "all triangles": (
        TRIANGLES,
        "SELECT count(*) FROM edge r, edge s, edge t WHERE r.b = s.a AND t.a = r.a AND t.b = s.b",
    ),
}


def small_queries(n_edges: int, n_queries: int) -> list[list[str]]:
    """Rows of the first table."""
    random = np.random.default_rng(0)
    ends = distinct(*random.integers(0, n_edges // 10, (2, n_edges)))
    edges = pa.table({"a": ends[0], "b": ends[1]})
    database = lftj.Database()
    database.load("edge", edges)
    peer = duckdb.connect(config={"threads": 1})
    peer.register("edges", edges)
    peer.execute("CREATE TABLE edge AS SELECT DISTINCT a, b FROM edges")
    peer.execute("CREATE INDEX by_a ON edge (a)")
    prepared = database.prepare(POINT)
    ways: dict[str, Callable[[int], int]] = {
        "lftj, one text": lambda key: database.query(POINT.replace("$k", "7"), threads=1).num_rows,
        "lftj, prepared, another value each time": lambda key: prepared(k=key).num_rows,
        "lftj, another text each time": lambda key: (
            database.query(POINT.replace("$k", str(key)), threads=1).num_rows
        ),
        f"DuckDB {duckdb.__version__}, prepared, another value each time": lambda key: (
            peer.sql(POINT_SQL, params=[key]).to_arrow_table().num_rows
        ),
    }
    asked, *others = [[way(key) for key in range(50)] for name, way in ways.items() if "one text" not in name]
    assert all(other == asked for other in others)
    rows = []
    for name, way in ways.items():
        rates = []
        for repetition in range(5):
            started = time.process_time()
            for key in range(n_queries):
                way(repetition * n_queries + key)
            rates.append(n_queries / (time.process_time() - started))
        rows.append([name, number(statistics.median(rates)), f"{min(rates):,.0f} - {max(rates):,.0f}"])
    return rows


def live_queries(scale: int, n_commits: int) -> list[list[str]]:
    """Rows of the second table: seconds before any commit, the first after each, DuckDB's."""
    source, destination = rmat(scale, 8)
    edges = pa.table({"a": source, "b": destination})
    workspace = Workspace()
    workspace.load("edge", edges)
    peer = duckdb.connect(config={"threads": 1})
    peer.register("edges", edges)
    peer.execute("CREATE TABLE edge AS SELECT * FROM edges")
    key = int(np.bincount(source).argsort()[-50])
    queries = {name: (rule.format(k=key), sql.format(k=key)) for name, (rule, sql) in QUERIES.items()}

    def seconds(run: Callable[[], int]) -> tuple[float, int]:
        started = time.perf_counter()
        found = run()
        return time.perf_counter() - started, found

    def own(rule: str) -> tuple[float, int]:
        if rule == TRIANGLES:
            return seconds(lambda: workspace.count(rule, threads=1))
        return seconds(lambda: workspace.query(rule, threads=1).num_rows)

    def of_peer(sql: str) -> tuple[float, int]:
        if "count(*)" in sql:
            return seconds(lambda: peer.sql(sql).fetchall()[0][0])
        return seconds(lambda: peer.sql(sql).to_arrow_table().num_rows)

    rounds = [[own(rule)[0] for rule, _ in queries.values()] for _ in range(1 + n_commits)]
    in_turn = zip(*rounds[1:], strict=True)  # the first round plans
    before = dict(zip(queries, map(statistics.median, in_turn), strict=True))
    after: dict[str, list[float]] = {name: [] for name in queries}
    beside: dict[str, list[float]] = {name: [] for name in queries}
    random = np.random.default_rng(1)
    vertices = 1 << scale
    for _ in range(n_commits):
        edge = tuple(int(end) for end in random.integers(0, vertices, 2))
        with workspace.transaction() as transaction:
            transaction.insert("edge", [edge])
        known = "FROM edge WHERE a = ? AND b = ?"
        peer.execute(f"INSERT INTO edge SELECT ?, ? WHERE NOT EXISTS ({known})", [*edge, *edge])
        for name, (rule, sql) in queries.items():
            (took, found), (peer_took, expected) = own(rule), of_peer(sql)
            if found != expected:
                raise AssertionError(f"{name}: {found}, DuckDB {expected}")
            after[name].append(took)
            beside[name].append(peer_took)
    return [
        [
            name,
            number(1e3 * before[name]),
            number(1e3 * statistics.median(after[name])),
            f"{number(1e3 * min(after[name]))} - {number(1e3 * max(after[name]))}",
            f"{statistics.median(after[name]) / before[name]:.2f}",
            number(1e3 * statistics.median(beside[name])),
        ]
        for name in queries
    ]


def hub(spokes: int) -> list[list[str]]:
    """Rows of the third table: what single edges into and out of a hub cost a maintained count."""
    workspace = Workspace()
    out = np.arange(spokes)
    workspace.load("edge", {"a": np.concatenate([0 * out, [1]]), "b": np.concatenate([out + 10, [2]])})
    workspace.install("n[a] = count() <- edge(a, b), edge(b, c).")
    rows = []
    for title, edge in (("into the hub", (3, 0)), ("out of the hub", (0, 5)), ("elsewhere", (4, 1))):
        with workspace.transaction() as transaction:
            transaction.insert("edge", [edge])
        stats = transaction.stats["n"]
        rows.append([f"one edge {title}", f"{stats.opens + stats.nexts + stats.seeks:,}"])
    workspace.verify()
    return rows


def report(quick: bool) -> str:
    """All three tables."""
    machine = describe()
    small = small_queries(20_000, 50) if quick else small_queries(1_000_000, 400)
    live = live_queries(10, 5) if quick else live_queries(17, 11)
    spokes = 1_000 if quick else 200_000
    heads = ["query", "ms before", "ms, first after a commit", "range", "ratio", "DuckDB ms after"]
    return "\n\n".join(
        [
            "# Small queries and queries over live data",
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; {machine['python']};"
            f" one thread. Load at the start {machine['load']}.",
            "Point queries by the CPU second, over uniform edges: median and range of five repetitions.",
            table(["how", "queries", "range"], small),
            f"Queries of a workspace over RMAT {10 if quick else 17}/8 before, and the first after each"
            " single-edge commit, asked in turn, medians; every answer equals DuckDB's.",
            table(heads, live),
            f"Operations of a maintained count of two-step paths, a hub with {spokes:,} out-edges.",
            table(["change", "operations"], hub(spokes)),
        ]
    )


def main() -> None:
    show(report(is_quick()), "live-queries/results.md")


if __name__ == "__main__":
    main()
