"""The list of the pictures: the file's name, and what draws it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import lftj
from bench.pictures.bars import CHARTS, chart_picture
from bench.pictures.growth import growth_picture
from bench.pictures.key_lines import change_picture, leapfrog_picture, sensitivity_picture
from bench.pictures.search_tree import tree_picture
from maintenance import Workspace

TRIANGLE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
PROGRAM = """
    tri(a, b, c)  <- edge(a, b), edge(b, c), edge(a, c).
    degree[a]     = count() <- edge(a, _).
    reach(a, b)   <- edge(a, b).
    reach(a, c)   <- reach(a, b), edge(b, c).
    calm(a, b)    <- reach(a, b), !tri(a, b, _), degree[b] = n, n < 9.
"""


def _edges() -> list[tuple[int, int]]:
    """A few vertices with many neighbours, many with few."""
    return [(a, b) for a in range(1, 120) for b in range(1, 120) if a != b and (a * b) % 97 < 800 // (a + b)]


def plan_picture() -> str:
    """The plan of the triangle, with what was measured."""
    database = lftj.Database()
    database.load("edge", _edges(), columns=["src", "dst"])
    return database.explain(TRIANGLE, analyze=True, order=["a", "b", "c"]).svg()


def strata_picture() -> str:
    """A program of several strata, one of them recursive."""
    workspace = Workspace()
    workspace.load("edge", [(a, b) for a, b in _edges() if a < b < 9 or a == b + 7], columns=["src", "dst"])
    workspace.install(PROGRAM)
    return workspace.explain_maintenance().svg()


PICTURES: dict[str, Callable[[], str]] = {
    "growth.svg": growth_picture,
    "plan.svg": plan_picture,
    "strata.svg": strata_picture,
    "search-tree.svg": lambda: tree_picture(None),
    "leapfrog.svg": leapfrog_picture,
    "sensitivity.svg": sensitivity_picture,
    "change-missed.svg": lambda: change_picture("wants", (1, 10)),
    "change-hit.svg": lambda: change_picture("owns", (2, 12)),
    "region.svg": lambda: tree_picture(("owns", (2, 12))),
    **{name: partial(chart_picture, chart) for name, chart in CHARTS.items()},
}
