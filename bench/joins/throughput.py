"""Throughput: how fast tables come in and results go out."""

from __future__ import annotations

from bench.joins.patterns import TRIANGLE_COUNT_SQL, TRIANGLE_RULE
from bench.workload import Target, Workload

TRIANGLE_LIST_SQL = TRIANGLE_COUNT_SQL.replace("count(*)", "r.src AS a, r.dst AS b, s.dst AS c")


def listing(graph: str, expected: int, title: str, targets: tuple[Target, ...] = ()) -> Workload:
    """List the triangles of an oriented graph as record batches."""
    return Workload(
        f"list-{graph}",
        f"list triangles, {title}",
        {"edge": graph},
        {"lftj": TRIANGLE_RULE, "duckdb": TRIANGLE_LIST_SQL},
        expected,
        task="list",
        targets=targets,
    )


def product(spokes: int) -> Workload:
    """List the paths of two edges of a star, nearly all over its hub: output with next to no search."""
    return Workload(
        f"list-star-{spokes}",
        f"list paths of 2 edges, star of {spokes:,} spokes",
        {"edge": f"star-{spokes}"},
        {
            "lftj": "path(a, b, c) <- edge(a, b), edge(b, c).",
            "duckdb": "SELECT r.src AS a, r.dst AS b, s.dst AS c FROM edge r, edge s WHERE r.dst = s.src",
        },
        spokes * spokes + spokes - 1,
        task="list",
        targets=(Target("rows/s", 20e6, None),),
    )


def loading(rows: int, bits: int, expected: int, targets: tuple[Target, ...] = ()) -> Workload:
    """Load pairs of int64 from Parquet and build the first index."""
    return Workload(
        f"load-{rows}-{bits}bit",
        f"load {rows:,} int64 pairs of {bits} bits from Parquet, first index",
        {"pair": f"pairs-{rows}-{bits}bit"},
        {"lftj": "pair", "duckdb": "pair"},
        expected,
        task="load",
        targets=targets,
        note="DuckDB: the table and its index over both columns; it does not need the index for joins.",
    )
