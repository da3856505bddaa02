"""Text of several lines that shows as it reads.

Python and notebooks show the ``repr`` of a result, and that of a string is one line of ``\\n``.
"""

from __future__ import annotations

import html


class ShownText(str):
    """A string whose repr is the string itself.

    >>> ShownText("key order\\n  a, b")
    key order
      a, b
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return preformatted(self)


def preformatted(text: str) -> str:
    """The HTML that shows aligned text in a notebook: lines are not wrapped.

    >>> preformatted("a < b")
    '<pre style="white-space: pre; overflow-x: auto">a &lt; b</pre>'
    """
    return f'<pre style="white-space: pre; overflow-x: auto">{html.escape(text)}</pre>'


def counted(n: int, noun: str, plural: str = "") -> str:
    """
    >>> counted(1, "row"), counted(2000, "row"), counted(2, "copy", "copies")
    ('1 row', '2,000 rows', '2 copies')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
