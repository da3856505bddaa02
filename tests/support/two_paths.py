"""A workspace of any size, over which paths of two edges are kept."""

from __future__ import annotations

from maintenance import Workspace


def workspace_of(n_rows: int) -> Workspace:
    """The number of rows tells one from another."""
    workspace = Workspace()
    workspace.load("edge", [(i, (i * 7) % n_rows) for i in range(n_rows)], columns=["a", "b"])
    workspace.install("two(a, c) <- edge(a, b), edge(b, c).")
    return workspace
