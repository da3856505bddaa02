"""A small workspace with chained heads, and what is in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maintenance import Transaction, Workspace

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
EDGES = [(1, 2), (2, 3), (1, 3), (3, 4)]
Rows = list[tuple[Any, ...]]
Step = Callable[[Transaction], object]


def example() -> Workspace:
    """Edges, nodes and lengths; triangles, and nodes that are in none."""
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["a", "b"])
    workspace.load("node", [(1,), (2,), (5,)], columns=["a"])
    workspace.load("length", {"a": [1, 2], "v": [0.5, 1.5]})
    workspace.install(TRI)
    workspace.install("lonely(a) <- node(a), !tri(a, _, _).\nlong(a) <- length(a, v), v > 1e0.")
    return workspace


def rows(table: Any) -> Rows:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def contents(workspace: Workspace) -> dict[str, Rows]:
    return {name: rows(workspace[name]) for name in workspace.relations}


def committed(workspace: Workspace, step: Step) -> Transaction:
    with workspace.transaction() as tx:
        step(tx)
    return tx
