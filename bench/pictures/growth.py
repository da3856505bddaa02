"""What the triangle costs as the data grow, where a pairwise plan has to build all paths first.

The data: a hub with n spokes in both directions, and a loop at the hub.  Counted,
not timed: rows of the first join of any pairwise plan, operations of this engine, results.
"""

from __future__ import annotations

import math

import lftj
from lftj.pictures.drawing import BLUE, FAINT, GREEN, ORANGE, RULE, Drawing

TRIANGLE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
PATHS = "paths(a, b, c) <- edge(a, b), edge(b, c)."
SPOKES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
UNIT = 84.0
"""Of a factor of ten to the right."""

UP = 42.0
"""Of a factor of ten upwards."""


LARGEST = 10**9
"""What the axis goes up to."""


def growth_picture() -> str:
    """Both axes logarithmic; what the last points are stands above, so that a phone shows all of it."""
    measured = [_measured(spokes) for spokes in SPOKES]
    edges = [2 * spokes + 1 for spokes in SPOKES]
    drawing = Drawing()
    for power in range(1, int(math.log10(LARGEST)) + 1):
        y = _y(10**power)
        drawing.line([(_x(10), y), (_x(30_000), y)], colour=RULE, thickness=1)
        drawing.text(_x(10) - 10, y + 4, f"{10**power:,}", anchor="end", size=11, colour=FAINT)
    for power in range(1, 5):
        drawing.text(_x(10**power), _y(10) + 22, f"{10**power:,}", anchor="middle", size=11, colour=FAINT)
    drawing.text(_x(600), _y(10) + 42, "edges", anchor="middle", colour=FAINT)
    lines = ("paths that a pairwise plan builds", "operations of lftj", "triangles found")
    for number, (name, colour) in enumerate(zip(lines, (ORANGE, BLUE, GREEN), strict=True)):
        values = [row[number] for row in measured]
        points = [(_x(n), _y(value)) for n, value in zip(edges, values, strict=True)]
        drawing.line(points, colour=colour, thickness=2.5)
        for x, y in points:
            drawing.circle(x, y, 3.5, fill=colour, line=colour)
        y = _y(LARGEST) - 22 - 18 * (len(lines) - number)
        drawing.text(_x(10) - 84, y, f"{values[-1]:,} {name}", colour=colour, bold=True)
    return drawing.svg(
        "Triangles of a hub and its spokes: paths grow with the square, operations with the edges"
    )


def _x(value: float) -> float:
    return UNIT * math.log10(value)


def _y(value: float) -> float:
    return -UP * math.log10(value)


def _measured(spokes: int) -> tuple[int, int, int]:
    """Paths of two edges, operations for the triangles, triangles."""
    database = lftj.Database()
    edges = [(0, 0), *((0, i) for i in range(1, spokes + 1)), *((i, 0) for i in range(1, spokes + 1))]
    database.load("edge", edges, columns=["src", "dst"])
    explained = database.explain(TRIANGLE, analyze=True)
    operations = sum(body.operations for body in explained.bodies)
    return database.count(PATHS), operations, database.count(TRIANGLE)
