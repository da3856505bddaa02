"""The program of a view as text: the SQL that it comes from stands in comments.

So a folder, an image and `explain_maintenance` have it, and nothing else has to be kept::

    // view dear: select item, price from line
    //            where price > 100
    // line 2: price > 100
    dear(item: item, price: price) <- line(item: item, price: price), price > 100.
"""

from __future__ import annotations

from lftj.sql.nodes import Place
from lftj.sql.translation.translated import Translated

_VIEW = "// view "
_LONGEST = 90
"""Of the SQL beside a rule; what is longer is cut."""


def program_text(of: Translated) -> str:
    """The rules of a view, each behind the SQL that it comes from."""
    indent = " " * (len(f"{_VIEW}{of.head}: ") - 2)
    return f"{_VIEW}{of.head}: " + f"\n//{indent}".join(of.sql.splitlines()) + f"\n{rules_text(of)}"


def rules_text(of: Translated) -> str:
    """The rules, each behind the SQL that it comes from; and how their head is read."""
    lines = []
    for rule, place in zip(of.text.splitlines(), of.places, strict=True):
        if place is not None:
            lines.append(f"// {shown_place(of.sql, place)}")
        lines.append(rule)
    order = ", ".join(name + " desc" * down for name, down, _ in of.order)
    reading = [f"order by {order}"] * bool(order) + [f"limit {of.limit}"] * (of.limit is not None)
    reading += [f"offset {of.offset}"] * bool(of.offset)
    return "\n".join([*lines, *([f"// of its rows: {', '.join(reading)}"] * bool(reading))])


def shown_place(sql: str, place: Place) -> str:
    """The lines of a part of a text, and its words.

    >>> shown_place("select a\\nfrom b", (14, 15))
    'line 2: b'
    """
    start, end = place
    first, last = (sql.count("\n", 0, at) + 1 for at in (start, max(end - 1, start)))
    words = " ".join(sql[start:end].split())
    which = f"line {first}" if first == last else f"lines {first} to {last}"
    return f"{which}: {words if len(words) <= _LONGEST else words[: _LONGEST - 3] + '...'}"


def view_in(text: str) -> tuple[str, str] | None:
    """The name and the SQL of the view that a program keeps; None: it is no view's."""
    first, *others = text.splitlines() or [""]
    if not first.startswith(_VIEW):
        return None
    name, _, sql = first[len(_VIEW) :].partition(": ")
    indent = "//" + " " * (len(f"{_VIEW}{name}: ") - 2)
    lines = [sql]
    for line in others:
        if not line.startswith(indent):
            break
        lines.append(line[len(indent) :])
    return name, "\n".join(lines)
