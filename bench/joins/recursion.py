"""Recursion from nothing: closures and same generation, counted (TARGETS.md "Recursion")."""

from __future__ import annotations

from bench.workload import Target, Workload

CLOSURE_RULES = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c)."

_CLOSURE_SQL = (
    "WITH RECURSIVE path(a, b) AS (SELECT src, dst FROM edge"
    " UNION SELECT path.a, edge.dst FROM path, edge WHERE path.b = edge.src) SELECT count(*) FROM path"
)

_GENERATION_RULES = "same(x, y) <- edge(p, x), edge(p, y). same(x, y) <- same(p, q), edge(p, x), edge(q, y)."

_GENERATION_SQL = (
    "WITH RECURSIVE same(x, y) AS (SELECT e.dst, f.dst FROM edge e, edge f WHERE e.src = f.src"
    " UNION SELECT e.dst, f.dst FROM same, edge e, edge f WHERE same.x = e.src AND same.y = f.src)"
    " SELECT count(*) FROM same"
)


def closure(
    graph: str, expected: int, title: str, targets: tuple[Target, ...] = (), peer: bool = True
) -> Workload:
    """Count the pairs of which one can be reached from the other; ``peer``: by DuckDB too."""
    queries = {"lftj": CLOSURE_RULES} | ({"duckdb": _CLOSURE_SQL} if peer else {})
    return Workload(
        f"closure-{graph.replace('/', '-')}",
        f"transitive closure, {title}",
        {"edge": graph},
        queries,
        expected,
        targets=targets,
    )


def same_generation(nodes: int, expected: int, targets: tuple[Target, ...] = ()) -> Workload:
    """Count the pairs of nodes of a tree that have equally long ways up to a common one."""
    return Workload(
        f"generation-tree-{nodes}",
        f"same generation, tree of {nodes:,} nodes",
        {"edge": f"tree-{nodes}"},
        {"lftj": _GENERATION_RULES, "duckdb": _GENERATION_SQL},
        expected,
        targets=targets,
    )
