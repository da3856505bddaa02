"""The plan of a join as a picture: a row per key variable, a column per atom.

A square says that the atom takes part in choosing that variable; the squares of
a row are intersected, and a column's, from top to bottom, are the way down the
atom's index.  Beside each row stand its operations, measured or estimated, as a
bar: what a depth costs beside the others is seen, and read.
"""

from __future__ import annotations

from collections.abc import Sequence

from lftj.evaluation.reports import BodyReport, DepthReport
from lftj.pictures.drawing import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    PALE_BLUE,
    PALE_ORANGE,
    RULE,
    Drawing,
    text_width,
    wrapped,
)
from lftj.pictures.layers import Box, layered

SMALL = 11.0
WIDEST = 900.0
ROW = 46.0
LINE = 18.0
SQUARE = 18.0
BAR = 130.0


def plan_picture(bodies: Sequence[BodyReport], strata: Sequence[Box]) -> str:
    """An SVG document: the strata, where there are several, and below them each body."""
    drawing = Drawing()
    if strata:
        layered(strata, drawing)
    y = drawing.bottom + 50 if strata else 0.0
    for body in bodies:
        y = _draw_body(drawing, body, y) + 40
    return drawing.svg("; ".join(f"plan of {body.rule}" for body in bodies) or "strata")


def _draw_body(drawing: Drawing, body: BodyReport, y: float) -> float:
    """Draw one body below y; returns where it ends."""
    for line in wrapped(body.rule, WIDEST):
        drawing.text(0, y, line, bold=True)
        y += LINE
    if body.order:
        y = _small(drawing, f"key order {', '.join(body.order)}: {body.reason}", y)
        y = _draw_grid(drawing, body, y + 14)
    for note in body.notes:
        y = _small(drawing, note, y)
    if body.rows is not None:
        y = _small(drawing, f"{_counted(body.rows, 'row')}, {body.operations:,} operations", y)
    return y


def _small(drawing: Drawing, text: str, y: float) -> float:
    for line in wrapped(text, WIDEST, SMALL):
        drawing.text(0, y, line, size=SMALL, colour=FAINT)
        y += LINE - 2
    return y


def _draw_grid(drawing: Drawing, body: BodyReport, y: float) -> float:
    variables = [depth.variable for depth in body.depths]
    x = 20 + max(text_width(name) for name in variables)
    middles = {}
    for index in body.indexes:
        atom, _, columns = index.partition("  by ")
        if atom in middles:  # the same atom twice is one
            continue
        below = f"by {columns}"
        width = max(text_width(atom), text_width(below, SMALL))
        middles[atom] = x + width / 2
        drawing.text(x + width / 2, y + 12, atom, anchor="middle")
        drawing.text(x + width / 2, y + 27, below, anchor="middle", size=SMALL, colour=FAINT)
        x += width + 24
    measured = any(depth.opens is not None for depth in body.depths)
    drawing.text(x, y + 12, "operations")
    _legend(drawing, x, y + 27, measured)
    y += 40
    _draw_ways(drawing, body, middles, y)
    bars = [bar for depth in body.depths for bar in (_operations(depth) or 0, depth.estimated_operations)]
    greatest = max(1.0, *bars)
    for depth in body.depths:
        _draw_depth(drawing, depth, middles, x, y, greatest)
        y += ROW
    return y + 14


def _draw_ways(drawing: Drawing, body: BodyReport, middles: dict[str, float], y: float) -> None:
    """Down each column from its first square to its last."""
    for atom, middle in middles.items():
        rows = [number for number, depth in enumerate(body.depths) if atom in _here(depth)]
        if len(rows) > 1:
            ends = [(middle, y + ROW * row + ROW / 2) for row in (rows[0], rows[-1])]
            drawing.line(ends, colour=RULE, thickness=4)


def _here(depth: DepthReport) -> tuple[str, ...]:
    """The columns with a square in the row: atoms that take part, and negated ones that are tested."""
    return (*depth.participants, *(note for note in depth.notes if note.startswith("not ")))


def _draw_depth(
    drawing: Drawing, depth: DepthReport, middles: dict[str, float], x: float, y: float, greatest: float
) -> None:
    level = y + ROW / 2
    drawing.text(0, level + 4.5, depth.variable, bold=True)
    taking_part = sorted(middles[atom] for atom in set(depth.participants))
    if len(taking_part) > 1:
        drawing.line([(taking_part[0], level), (taking_part[-1], level)], colour=BLUE, thickness=2)
    for atom in dict.fromkeys(_here(depth)):
        negated = atom not in depth.participants
        drawing.box(
            middles[atom] - SQUARE / 2,
            level - SQUARE / 2,
            SQUARE,
            SQUARE,
            fill=PALE_ORANGE if negated else PALE_BLUE,
            line=ORANGE if negated else BLUE,
            dashed=negated,
        )
        if negated:
            drawing.text(middles[atom], level + 4.5, "!", anchor="middle", colour=ORANGE, bold=True)
    operations = _operations(depth)
    estimated = max(1.0, BAR * depth.estimated_operations / greatest)
    shown = f"{depth.estimated_operations:,.0f}"
    if operations is None:
        drawing.box(x, level - 14, estimated, 10, line=FAINT, corner=0)
    else:
        drawing.box(x, level - 14, max(1.0, BAR * operations / greatest), 10, fill=BLUE, line=BLUE, corner=0)
        drawing.box(x, level - 14, estimated, 10, fill="none", corner=0, dashed=True)
        shown = f"{operations:,}: {depth.opens:,} open, {depth.nexts:,} next, {depth.seeks:,} seek"
    drawing.text(x + BAR + 8, level - 5, shown, size=SMALL)
    said = [f"~{depth.estimated_matches:,.0f} matches", *(n for n in depth.notes if not n.startswith("not "))]
    drawing.text(x, level + 11, "; ".join(said), size=SMALL, colour=FAINT)


def _operations(depth: DepthReport) -> int | None:
    if depth.opens is None:
        return None
    return depth.opens + (depth.nexts or 0) + (depth.seeks or 0)


def _legend(drawing: Drawing, x: float, y: float, measured: bool) -> None:
    if measured:
        drawing.box(x, y - 9, 10, 10, fill=BLUE, line=BLUE, corner=0)
        drawing.text(x + 16, y, "measured", size=SMALL, colour=FAINT)
        x += 16 + text_width("measured  ", SMALL)
    drawing.box(x, y - 9, 10, 10, line=INK if measured else FAINT, corner=0, dashed=measured)
    drawing.text(x + 16, y, "estimated", size=SMALL, colour=FAINT)


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
