"""Workspaces whose single changes go by the commit machine from the first transactions on."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from maintenance import Workspace
from maintenance.machine.machine import Machine
from maintenance.machine.structures import Sizes
from support.rows import rows_of

RULES = """
deg[a] = count() <- e(a, _). far[a] = sum(c) <- e(a, b), e(b, c). two(a, c) <- e(a, b), e(b, c).
tri(a, b, c) <- e(a, b), e(b, c), e(a, c). hist[d] = count() <- deg[_] = d.
parts[a] = sum(v) <- e(a, b), v = sqrt(b) + b * 0.5.
kinds[b] = count(distinct m) <- e(a, b), m = a % 3.
"""
"""What is computed is the machine's, but for ``sqrt``, which Python is asked for."""


def made(
    rules: str = RULES,
    sizes: Sizes | None = None,
    rows: Any = ((1, 2), (2, 3)),
    strategy: str = "delta",
    folder: Path | None = None,
) -> Workspace:
    """``folder``: where it is kept, if so."""
    ws = Workspace(single_changes="machine") if folder is None else opened(folder)
    ws.load("e", list(rows), columns=["a", "b"])
    if rules:
        ws.install(rules, strategy)
    of(ws).sizes = sizes or of(ws).sizes
    return begun(ws)


def opened(folder: Path, **more: Any) -> Workspace:
    return Workspace.open(folder, durability="interval", single_changes="machine", **more)


def begun(ws: Workspace) -> Workspace:
    """The workspace, its machine at work."""
    of(ws)._wait = 1
    for _ in range(3):
        insert(ws, (90, 91))
        erase(ws, (90, 91))
    assert of(ws).layout is not None
    return ws


def of(ws: Workspace) -> Machine:
    its = ws._published.machine
    assert its is not None
    return its


def insert(ws: Workspace, *rows: tuple[int, ...]) -> Any:
    with ws.transaction() as tx:
        tx.insert("e", list(rows))
    return tx


def erase(ws: Workspace, *rows: tuple[int, ...]) -> Any:
    with ws.transaction() as tx:
        tx.erase("e", list(rows))
    return tx


def contents(ws: Workspace) -> dict[str, list[Any]]:
    return {name: sorted(rows_of(ws[name].table)) for name in ("e", *ws.heads)}


def expected(edges: set[tuple[int, int]]) -> dict[str, list[Any]]:
    """By brute force."""
    after: dict[int, list[int]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    paths = [(a, b, c) for a, b in edges for c in after.get(b, ())]
    far: Counter[int] = Counter()
    for a, _, c in paths:
        far[a] += c
    deg = degrees(edges)
    return {
        "e": sorted(edges),
        "deg": deg,
        "far": sorted(far.items()),
        "two": sorted({(a, c) for a, _, c in paths}),
        "tri": sorted((a, b, c) for a, b, c in paths if (a, c) in edges),
        "hist": sorted(Counter(n for _, n in deg).items()),
        "parts": [(a, math.fsum(math.sqrt(b) + b * 0.5 for b in bs)) for a, bs in sorted(after.items())],
        "kinds": sorted(Counter(b for b, _ in {(b, a % 3) for a, b in edges}).items()),
    }


def degrees(edges: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The head ``deg`` alone."""
    return sorted(Counter(a for a, _ in edges).items())
