"""`Drawing`: shapes and texts on a sheet, as one SVG document.

Everything is set in a monospaced face, so that the width of a text is known
where it is drawn: what is laid out by :func:`text_width` does not overlap,
whatever the face of the reader's machine.

Invariants

1. The sheet is as large as what was drawn on it, and a margin: nothing is cut off.
2. Equal calls give equal text: coordinates are rounded to tenths, nothing is numbered at random.
3. The document stands alone: it names no file, font, style sheet or script.
4. It is well-formed whatever the texts hold: control characters are shown as ``?``.
"""

from __future__ import annotations

import html
import unicodedata
from typing import Literal

FACE = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
ADVANCE = 0.61
"""The width of a character in its size: 0.60 in most monospaced faces."""

SIZE = 13.0
MARGIN = 16.0

INK = "#1f2933"
FAINT = "#7b8794"
RULE = "#cbd2d9"
PAPER = "#ffffff"
BLUE = "#2b6cb0"
PALE_BLUE = "#dbeafe"
ORANGE = "#c05621"
PALE_ORANGE = "#feebc8"
GREEN = "#2f855a"
PALE_GREEN = "#d7f5e3"

Anchor = Literal["start", "middle", "end"]


def text_width(text: str, size: float = SIZE) -> float:
    """The width of a text on one line: wide characters, as of Chinese, take two places.

    >>> round(text_width("abc", 10), 1)
    18.3
    """
    places = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return places * ADVANCE * size


def wrapped(text: str, width: float, size: float = SIZE) -> list[str]:
    """A text cut between words into lines of at most this width; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


class Drawing:
    """A sheet to draw on; y grows downwards, units are pixels.

    >>> sheet = Drawing()
    >>> sheet.text(0, 0, "a < b")
    >>> sheet.svg("a comparison").splitlines()[-2].strip()
    '<text x="0" y="0" font-size="13" fill="#1f2933" text-anchor="start">a &lt; b</text>'
    """

    def __init__(self) -> None:
        self._shapes: list[str] = []
        self._arrows: dict[str, None] = {}
        self._xs: list[float] = []
        self._ys: list[float] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = SIZE,
        colour: str = INK,
        anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:
        """A line of text whose base line begins, ends or has its middle at (x, y)."""
        width = text_width(text, size)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
        self._cover(left, y - size, left + width, y + size / 3)
        weight = ' font-weight="bold"' if bold else ""
        shown = html.escape("".join(letter if letter.isprintable() else "?" for letter in text), quote=False)
        self._shapes.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" fill="{colour}" '
            f'text-anchor="{anchor}"{weight}>{shown}</text>'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = PAPER,
        line: str = INK,
        corner: float = 3.0,
        dashed: bool = False,
        thickness: float = 1.2,
    ) -> None:
        """A rectangle with its upper left corner at (x, y)."""
        self._cover(x, y, x + width, y + height)
        self._shapes.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(corner)}" '
            f'fill="{fill}"{_stroke(line, thickness, dashed)}/>'
        )

    def circle(self, x: float, y: float, radius: float, *, fill: str = PAPER, line: str = INK) -> None:
        """A circle around (x, y)."""
        self._cover(x - radius, y - radius, x + radius, y + radius)
        self._shapes.append(
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{fill}"{_stroke(line, 1.2, False)}/>'
        )

    def line(
        self,
        points: list[tuple[float, float]],
        *,
        colour: str = INK,
        thickness: float = 1.2,
        dashed: bool = False,
        arrow: bool = False,
    ) -> None:
        """Straight from point to point."""
        self._path(
            "M" + " L".join(f"{_n(x)},{_n(y)}" for x, y in points), points, colour, thickness, dashed, arrow
        )

    def curve(
        self,
        points: list[tuple[float, float]],
        *,
        colour: str = INK,
        thickness: float = 1.2,
        dashed: bool = False,
        arrow: bool = False,
    ) -> None:
        """A cubic curve: start, two points that pull at it, end; three more points for each further piece."""
        first, *others = [f"{_n(x)},{_n(y)}" for x, y in points]
        self._path(f"M{first} C{' '.join(others)}", points, colour, thickness, dashed, arrow)

    def area(self, points: list[tuple[float, float]], *, fill: str) -> None:
        """What lies between points, straight from each to the next and back to the first."""
        for x, y in points:
            self._cover(x, y, x, y)
        corners = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        self._shapes.append(f'<polygon points="{corners}" fill="{fill}"/>')

    def _path(
        self,
        path: str,
        points: list[tuple[float, float]],
        colour: str,
        thickness: float,
        dashed: bool,
        arrow: bool,
    ) -> None:
        for x, y in points:
            self._cover(x, y, x, y)
        end = ""
        if arrow:
            self._arrows[colour] = None
            end = f' marker-end="url(#{_arrow_name(colour)})"'
        self._shapes.append(f'<path d="{path}" fill="none"{_stroke(colour, thickness, dashed)}{end}/>')

    def _cover(self, left: float, top: float, right: float, bottom: float) -> None:
        self._xs += [left, right]
        self._ys += [top, bottom]

    @property
    def bottom(self) -> float:
        """The lower end of what was drawn."""
        return max(self._ys, default=0.0)

    @property
    def right(self) -> float:
        """The right end of what was drawn."""
        return max(self._xs, default=0.0)

    def svg(self, title: str) -> str:
        """The document; ``title`` says in words what it shows, to those who can't see it."""
        left, top = min(self._xs, default=0.0) - MARGIN, min(self._ys, default=0.0) - MARGIN
        width, height = self.right + MARGIN - left, self.bottom + MARGIN - top
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
            f'viewBox="{_n(left)} {_n(top)} {_n(width)} {_n(height)}" font-family="{FACE}" role="img">',
            f"<title>{html.escape(title, quote=False)}</title>",
        ]
        for colour in self._arrows:
            lines.append(
                f'<marker id="{_arrow_name(colour)}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" '
                f'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
            )
        lines.append(
            f'<rect x="{_n(left)}" y="{_n(top)}" width="{_n(width)}" height="{_n(height)}" fill="{PAPER}"/>'
        )
        return "\n".join([*lines, *(f"  {shape}" for shape in self._shapes), "</svg>\n"])


def _arrow_name(colour: str) -> str:
    return f"arrow-{colour.lstrip('#')}"


def _stroke(colour: str, thickness: float, dashed: bool) -> str:
    if not thickness:
        return ""
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f' stroke="{colour}" stroke-width="{_n(thickness)}"{dashes}'


def _n(number: float) -> str:
    """A coordinate, rounded to tenths."""
    return f"{round(number, 1) + 0.0:.1f}".removesuffix(".0")
