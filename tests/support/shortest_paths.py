"""Bellman-Ford, over plain tuples: what rules with ``min`` inside a recursion have to find."""

from __future__ import annotations

import math
from collections.abc import Collection

Edges = Collection[tuple[int, int, int]]

SHORTEST = "dist[x] = min(n) <- start(x), n = 0. dist[y] = min(m) <- dist[x] = n, road(x, y, w), m = n + w."


def bellman_ford(edges: Edges, starts: Collection[int] = (0,)) -> dict[int, int]:
    """The least sum of weights on a way from a start, of every node that is reached; no cycle is negative."""
    found = dict.fromkeys(starts, 0)
    for _ in range(len(edges) + 1):
        for a, b, w in edges:
            if a in found and found[a] + w < found.get(b, math.inf):
                found[b] = found[a] + w
    return found
