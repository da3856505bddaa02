"""Graph patterns: triangles, 4-cliques, paths, and the triangle that no pairwise join survives."""

from __future__ import annotations

from bench.workload import Target, Task, Workload

RMAT_COUNTS = {
    8: 3_868,
    9: 9_524,
    10: 24_305,
    11: 57_416,
    12: 137_951,
    13: 327_405,
    14: 752_167,
    15: 1_712_010,
    16: 3_888_449,
    17: 8_797_688,
}
"""Triangles of ``rmat(scale)``, by scale."""

_EDGE_ENDS = {"edge": ("vertex", "vertex")}

TRIANGLE_RULE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
TRIANGLE_COUNT_SQL = (
    "SELECT count(*) FROM edge r, edge s, edge t WHERE r.dst = s.src AND s.dst = t.dst AND r.src = t.src"
)
_TRIANGLES = {
    "lftj": TRIANGLE_RULE,
    "duckdb": TRIANGLE_COUNT_SQL,
    "ladybug": "MATCH (a:vertex)-[:edge]->(b:vertex)-[:edge]->(c:vertex), (a)-[:edge]->(c) RETURN count(*)",
    "graphblas": "triangles",
}

_CLIQUES = {
    "lftj": "k4(a, b, c, d) <- edge(a, b), edge(a, c), edge(a, d), edge(b, c), edge(b, d), edge(c, d).",
    "duckdb": (
        "SELECT count(*) FROM edge ab, edge ac, edge ad, edge bc, edge bd, edge cd "
        "WHERE ab.src = ac.src AND ab.src = ad.src AND ab.dst = bc.src AND ab.dst = bd.src "
        "AND ac.dst = bc.dst AND ac.dst = cd.src AND ad.dst = bd.dst AND ad.dst = cd.dst"
    ),
    "ladybug": (
        "MATCH (a:vertex)-[:edge]->(b:vertex)-[:edge]->(c:vertex), (a)-[:edge]->(c), "
        "(a)-[:edge]->(d:vertex), (b)-[:edge]->(d), (c)-[:edge]->(d) RETURN count(*)"
    ),
}

_PATHS = {
    "lftj": "path(a, b, c, d) <- edge(a, b), edge(b, c), edge(c, d).",
    "duckdb": "SELECT count(*) FROM edge r, edge s, edge t WHERE r.dst = s.src AND s.dst = t.src",
    "ladybug": "MATCH (:vertex)-[:edge]->(:vertex)-[:edge]->(:vertex)-[:edge]->(:vertex) RETURN count(*)",
    "graphblas": "paths_of_three",
}


def triangles(graph: str, expected: int, title: str, targets: tuple[Target, ...] = ()) -> Workload:
    """Count the triangles of an oriented graph."""
    return Workload(
        f"triangles-{graph}",
        f"triangles, {title}",
        {"edge": graph},
        _TRIANGLES,
        expected,
        targets=targets,
        ends=_EDGE_ENDS,
    )


def cliques(graph: str, expected: int, title: str, targets: tuple[Target, ...] = ()) -> Workload:
    """Count the 4-cliques of an oriented graph."""
    return Workload(
        f"cliques-{graph}",
        f"4-cliques, {title}",
        {"edge": graph},
        _CLIQUES,
        expected,
        targets=targets,
        ends=_EDGE_ENDS,
    )


def paths(graph: str, expected: int, title: str, targets: tuple[Target, ...] = ()) -> Workload:
    """Count the paths of three edges of an oriented graph."""
    return Workload(
        f"paths-{graph}",
        f"paths of 3 edges, {title}",
        {"edge": graph},
        _PATHS,
        expected,
        targets=targets,
        ends=_EDGE_ENDS,
    )


def adversarial(
    spokes: int, task: Task = "tables to count", targets: tuple[Target, ...] = (), limit: float | None = None
) -> Workload:
    """The triangle join R(a, b), S(b, c), T(a, c) with R = S = T = star(spokes), three relations."""
    relations = ("R", "S", "T")
    return Workload(
        f"adversarial-{spokes}" + ("-loaded" if task == "count" else ""),
        f"adversarial triangle, {spokes:,} spokes" + (", from tables to count" if task != "count" else ""),
        dict.fromkeys(relations, f"star-{spokes}"),
        {
            "lftj": "tri(a, b, c) <- R(a, b), S(b, c), T(a, c).",
            "duckdb": (
                'SELECT count(*) FROM "R", "S", "T" '
                'WHERE "R".dst = "S".src AND "S".dst = "T".dst AND "R".src = "T".src'
            ),
            "ladybug": "MATCH (a:vertex)-[:R]->(b:vertex)-[:S]->(c:vertex), (a)-[:T]->(c) RETURN count(*)",
            "graphblas": "triangles_of_three_relations",
        },
        3 * spokes - 2,
        task=task,
        targets=targets,
        ends=dict.fromkeys(relations, ("vertex", "vertex")),
        limit=limit,
    )
