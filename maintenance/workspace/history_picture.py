"""The picture of a workspace's history: memory by kind above, what commits took below, over the same commits.

Cost: a shape per kind and line, each with a point per span.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lftj.pictures.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PALE_BLUE,
    PALE_GREEN,
    PALE_ORANGE,
    RULE,
    Drawing,
)
from lftj.values.shown_text import counted
from maintenance.workspace.history import Span

WIDTH, HEIGHT = 520.0, 150.0
"""Of each of the two fields."""

APART = 70.0
SMALL = 11.0
COLOURS = {
    "relations": BLUE,
    "dictionaries": PALE_BLUE,
    "searches": ORANGE,
    "support": PALE_ORANGE,
    "groups": GREEN,
    "recursion": PALE_GREEN,
    "follow": RULE,
}
"""Of the kinds of memory, in the order in which they lie on each other."""

LEAST = 1e-5
"""Seconds at the lower end of the scale: what is quicker is drawn there."""


def history_picture(spans: Sequence[Span], memory_bytes: Mapping[str, int], version: int) -> str:
    """``memory_bytes``: what all takes now, by kind; ``version``: the present one."""
    drawing = Drawing()
    n_commits = sum(span.commits for span in spans)
    ends, seen = [0.0], 0
    for span in spans:
        seen += span.commits
        ends.append(WIDTH * seen / n_commits)
    # What was before the first commit is not known: it is drawn as after the first ones.
    drawn = [spans[0], *spans] if spans else [Span(memory_bytes=memory_bytes)] * 2
    xs = ends if spans else [0.0, WIDTH]
    _memory(drawing, xs, [span.memory_bytes for span in drawn])
    if spans:
        _times(drawing, xs, drawn, HEIGHT + APART)
    commits = counted(n_commits, "commit")
    drawing.text(WIDTH / 2, drawing.bottom + 20, f"{commits}, up to version {version:,}", anchor="middle")
    return drawing.svg("Memory of a workspace by kind, and what its commits took")


def _memory(drawing: Drawing, xs: Sequence[float], memory: Sequence[Mapping[str, int]]) -> None:
    kinds = [kind for kind in COLOURS if any(at.get(kind) for at in memory)]
    most = max(1, *(sum(at.get(kind, 0) for kind in kinds) for at in memory))
    step = _round_step(most)
    top = step * math.ceil(most / step)
    drawing.text(0, -14, "memory", bold=True)
    for number in range(round(top / step) + 1):
        _scale_line(drawing, HEIGHT * (1 - number * step / top), bytes_text(number * step))
    below = [0] * len(memory)
    lines = []
    for kind in kinds:
        above = [under + at.get(kind, 0) for under, at in zip(below, memory, strict=True)]
        edges = [
            [(x, HEIGHT * (1 - value / top)) for x, value in zip(xs, values, strict=True)]
            for values in (above, below)
        ]
        drawing.area([*edges[0], *reversed(edges[1])], fill=COLOURS[kind])
        lines.append((f"{kind} {bytes_text(memory[-1].get(kind, 0))}", COLOURS[kind]))
        below = above
    _legend(drawing, lines[::-1], 0)


def _times(drawing: Drawing, xs: Sequence[float], spans: Sequence[Span], top: float) -> None:
    lines: list[tuple[str, str, list[float]]] = [
        ("longest", ORANGE, [span.longest for span in spans]),
        ("mean", BLUE, [span.seconds / span.commits for span in spans]),
    ]
    if any(span.disk_seconds for span in spans):
        lines.append(("mean wait for the disk", GREEN, [span.disk_seconds / span.commits for span in spans]))
    all_values = [max(LEAST, value) for _, _, values in lines for value in values]
    lowest, highest = math.floor(math.log10(min(all_values))), math.ceil(math.log10(max(all_values)))
    highest = max(highest, lowest + 1)

    def place(seconds: float) -> float:
        return top + HEIGHT * (highest - math.log10(max(LEAST, seconds))) / (highest - lowest)

    drawing.text(0, top - 14, "seconds of a commit", bold=True)
    for power in range(lowest, highest + 1):
        _scale_line(drawing, place(10.0**power), seconds_text(10.0**power))
    for _, colour, values in lines:
        points = [(x, place(value)) for x, value in zip(xs, values, strict=True)]
        drawing.line(points, colour=colour, thickness=1.8)
    done = spans[1:]
    n_commits = sum(span.commits for span in done)
    figures = (
        max(span.longest for span in done),
        sum(span.seconds for span in done) / n_commits,
        sum(span.disk_seconds for span in done) / n_commits,
    )
    shown = zip(lines, figures, strict=False)  # the last one may not be drawn
    _legend(drawing, [(f"{name} {seconds_text(value)}", colour) for (name, colour, _), value in shown], top)


def _scale_line(drawing: Drawing, y: float, label: str) -> None:
    drawing.line([(0, y), (WIDTH, y)], colour=RULE, thickness=0.8)
    drawing.text(-8, y + 4, label, anchor="end", size=SMALL, colour=FAINT)


def _legend(drawing: Drawing, lines: Sequence[tuple[str, str]], top: float) -> None:
    for number, (text, colour) in enumerate(lines):
        y = top + 16 * number
        drawing.box(WIDTH + 16, y, 10, 10, fill=colour, line=FAINT, corner=1, thickness=0.6)
        drawing.text(WIDTH + 34, y + 9, text, size=SMALL, colour=INK)


def _round_step(most: float) -> int:
    """The distance of scale lines, two to five of them below ``most``: 1, 2 or 5 times a power of ten."""
    step = 1
    for power in range(16):
        for digit in (1, 2, 5):
            step = digit * 10**power
            if most <= 4 * step:
                return step
    return step


def bytes_text(n_bytes: int) -> str:
    """A size in words, to three digits.

    >>> bytes_text(0), bytes_text(999), bytes_text(12_345), bytes_text(1_500_000), bytes_text(2_000_000_000)
    ('0 B', '999 B', '12.3 kB', '1.5 MB', '2 GB')
    """
    value, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


def seconds_text(seconds: float) -> str:
    """A time in words, to three digits.

    >>> seconds_text(0.00001), seconds_text(0.00123), seconds_text(2)
    ('0.01 ms', '1.23 ms', '2 s')
    """
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
