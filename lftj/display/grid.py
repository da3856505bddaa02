"""`Grid`: a table of short texts that is looked at, as aligned lines and as HTML.

What builds one has cut it to what a screen holds; ``more`` says what was left out.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

WIDEST_CELL = 40
"""A longer value is cut there."""


@dataclass(frozen=True)
class Grid:
    """Attributes:
        names: Of the columns.
        rows: Their texts, row by row.
        right: Whether a column stands at the right, as numbers do; by column.
        title: The line above, if any.
        more: Lines behind the last row.

    >>> print(Grid(["name", "rows"], [["edge", "12"], ["p", "7"]], [False, True], "two relations").text())
    two relations
    name  rows
    edge    12
    p        7
    """

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[bool]
    title: str = ""
    more: Sequence[str] = ()

    def text(self) -> str:
        """Aligned lines; of a table without rows the title alone, where it has one."""
        lines = [self.title] if self.title else []
        if self.rows or not self.title:
            cells = [self.names, *self.rows]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            for row in cells:
                aligned = [
                    text.rjust(width) if right else text.ljust(width)
                    for text, width, right in zip(row, widths, self.right, strict=True)
                ]
                lines.append("  ".join(aligned).rstrip())
        return "\n".join([*lines, *self.more])

    def html(self) -> str:
        """A title, a table and what is behind it."""

        def row(tag: str, cells: Sequence[str]) -> str:
            return "".join(
                f'<{tag} style="text-align: {"right" if right else "left"}">{html.escape(cell)}</{tag}>'
                for right, cell in zip(self.right, cells, strict=True)
            )

        title = f"<p>{html.escape(self.title)}</p>" if self.title else ""
        head = f"<thead><tr>{row('th', self.names)}</tr></thead>"
        body = "".join(f"<tr>{row('td', cells)}</tr>" for cells in self.rows)
        more = "".join(f"<p>{html.escape(line)}</p>" for line in self.more)
        return f"{title}<table>{head}<tbody>{body}</tbody></table>{more}"


def cut(text: str, width: int = WIDEST_CELL) -> str:
    """
    >>> cut("abcdefgh", 6), cut("abc", 6)
    ('abc...', 'abc')
    """
    return text if len(text) <= width else f"{text[: width - 3]}..."
