"""The whole evaluation as the tree of its bindings, each node with its operations, and what a change adds."""

from __future__ import annotations

from bench.pictures.lending import ORDER, RULE, Committed, committed, steps, workspace
from lftj.pictures.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PALE_BLUE,
    PALE_GREEN,
    PALE_ORANGE,
    Drawing,
)
from lftj.pictures.drawing import RULE as GREY

Node = tuple[int, ...]

SMALL = 11.0
APART = 118.0
DOWN = 92.0
WIDTH, HEIGHT = 100.0, 40.0


def tree_picture(change: tuple[str, tuple[int, int]] | None) -> str:
    """The tree; with an inserted row the region that is evaluated, the rest pale."""
    done = committed(*change) if change else None
    tree = set(_results())
    inner = {node[:depth] for node in _bindings() | tree for depth in range(len(node) + 1)}
    new = {(row["a"], row["b"], row["c"]) for row in done.changes} if done else set()
    nodes = sorted(inner | tree | new)
    leaves = [node for node in nodes if not any(other[:-1] == node for other in nodes if other)]
    x = {leaf: number * APART for number, leaf in enumerate(leaves)}
    for node in sorted(set(nodes) - x.keys(), key=len, reverse=True):
        below = [x[other] for other in nodes if other and other[:-1] == node]
        x[node] = (below[0] + below[-1]) / 2
    drawing = Drawing()
    drawing.text(-190, -30, RULE, bold=True)
    for depth in range(len(ORDER) + 1):
        said = "all of it" if depth == 0 else f"{ORDER[depth - 1]} is chosen"
        drawing.text(-190, depth * DOWN + 25, said, colour=FAINT)
    for node in nodes:
        if node:
            points = [(x[node[:-1]], (len(node) - 1) * DOWN + HEIGHT), (x[node], len(node) * DOWN)]
            colour = ORANGE if node in new else GREY if done else FAINT
            drawing.line(points, colour=colour, thickness=2.5 if node in new else 1.2)
    operations = _operations()
    for node in nodes:
        _draw_node(drawing, node, x[node], operations.get(node, 0), node in new, done is not None)
    total = sum(operations.values())
    said = f"{len(tree)} results, {total} operations in all"
    if change and done:
        said = f"insert {change[0]}{change[1]}: {_what(done)}, where all of it has {total}"
    drawing.text(-190, (len(ORDER) + 1) * DOWN - 20, said, bold=True)
    return drawing.svg(f"{RULE} {said}")


def _what(done: Committed) -> str:
    stats = done.stats
    regions = f"{stats.regions} region{'' if stats.regions == 1 else 's'}"
    return f"{regions}, {stats.operations} operations"


def _results() -> list[Node]:
    return sorted((row["a"], row["b"], row["c"]) for row in workspace()["lend"].to_arrow().to_pylist())


def _bindings() -> set[Node]:
    return {_node(step.binding) for step in steps(workspace())}


def _operations() -> dict[Node, int]:
    counts: dict[Node, int] = {}
    for step in steps(workspace()):
        node = _node(step.binding)
        counts[node] = counts.get(node, 0) + 1
    return counts


def _node(binding: str) -> Node:
    """``a=1, b=2`` as its keys."""
    return tuple(int(part.partition("=")[2]) for part in binding.split(", ") if part)


def _draw_node(drawing: Drawing, node: Node, x: float, operations: int, is_new: bool, faded: bool) -> None:
    y = len(node) * DOWN
    is_result = len(node) == len(ORDER)
    fill, line = (PALE_GREEN, GREEN) if is_result else (PALE_BLUE, BLUE)
    if faded:
        fill, line = "#ffffff", GREY
    if is_new:
        fill, line = PALE_ORANGE, ORANGE
    drawing.box(x - WIDTH / 2, y, WIDTH, HEIGHT, fill=fill, line=line)
    label = f"{ORDER[len(node) - 1]} = {node[-1]}" if node else "start"
    drawing.text(
        x,
        y + (25 if is_result else 17),
        label,
        anchor="middle",
        bold=True,
        colour=FAINT if faded and not is_new else INK,
    )
    if not is_result:
        said = f"{operations} operations"
        drawing.text(x, y + 32, said, anchor="middle", size=SMALL, colour=FAINT)
