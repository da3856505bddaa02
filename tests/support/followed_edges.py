"""Edges that change, for those who follow what is kept of them, and what a relation has then."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from maintenance import Workspace


def change(workspace: Workspace, chosen: Random, nodes: int = 6) -> None:
    """A transaction of three edges that come and three that go, as far as they are there."""
    with workspace.transaction() as tx:
        tx.insert("edge", [(chosen.randrange(nodes), chosen.randrange(nodes)) for _ in range(3)])
        tx.erase("edge", [(chosen.randrange(nodes), chosen.randrange(nodes)) for _ in range(3)])


def kept(workspace: Workspace, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a relation or head, each as often as it is there."""
    return Counter(tuple(row.values()) for row in workspace[name].to_arrow().to_pylist())


def pushed(workspace: Workspace, sink: Any) -> int:
    """How many changes a sink writes of what there is."""
    return sum(1 for _ in sink.push(workspace, timeout=0))
