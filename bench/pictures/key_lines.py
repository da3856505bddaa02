"""One node of the search on number lines: its leapfrog, its sensitivity intervals, a change beside them."""

from __future__ import annotations

from bench.pictures.lending import DATA, Interval, Step, committed, intervals, steps, workspace
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

NODE = (1, 2)
"""a and b of the node that is drawn."""

BINDING = "a=1, b=2"
LINES = {"wants(a, c)": ("wants", 1, "what 1 wants"), "owns(b, c)": ("owns", 2, "what 2 owns")}
"""Atom: its relation, whose rows, and what the line is called."""

LAST = 24
"""The end of the lines; behind it an iterator has ended."""

UNIT = 30.0
LEFT = 130.0
RADIUS = 12.0
SMALL = 11.0


def leapfrog_picture() -> str:
    """The operations at the node, numbered, and as a list."""
    drawing = Drawing()
    here = [step for step in steps(workspace()) if step.binding == BINDING]
    level = {"wants(a, c)": 60.0, "owns(b, c)": 160.0}
    matches = _matches()
    for key in matches:
        drawing.box(_x(key) - 18, 20, 36, 176, fill=PALE_GREEN, line=GREEN, corner=8)
    for atom, y in level.items():
        _line(drawing, atom, y, matches)
    at: dict[str, float] = {}
    for number, step in enumerate(here, 1):
        _hop(drawing, number, step, at, level[step.atom])
    for number, step in enumerate(here, 1):
        column, row = divmod(number - 1, (len(here) + 1) // 2)
        drawing.text(LEFT + column * 380, 226 + row * 19, _said(number, step))
    return drawing.svg("The leapfrog join at a = 1, b = 2: two iterators leap over each other's gaps")


def sensitivity_picture() -> str:
    """The keys that each iterator's steps depended on."""
    drawing = Drawing()
    made = workspace()
    for atom, y in {"wants(a, c)": 30.0, "owns(b, c)": 120.0}.items():
        _line(drawing, atom, y, _matches())
        _bars(drawing, intervals(made, atom, *NODE), y + 24)
    _axis(drawing, 180)
    return drawing.svg("The sensitivity intervals at a = 1, b = 2: keys whose coming or going may matter")


def change_picture(relation: str, row: tuple[int, int]) -> str:
    """A row comes: which records hold its key, and what follows."""
    drawing = Drawing()
    made = workspace()
    key = row[1]
    done = committed(relation, row)
    for atom, y in {"wants(a, c)": 30.0, "owns(b, c)": 120.0}.items():
        _line(drawing, atom, y, _matches())
        records = intervals(made, atom, *NODE)
        its = LINES[atom][:2] == (relation, row[0])
        hit = next((one for one in records if its and key in one), None)
        _bars(drawing, records, y + 24, hit)
        if its:
            drawing.circle(_x(key), y, RADIUS, fill=PALE_ORANGE, line=ORANGE)
            drawing.text(_x(key), y + 4, str(key), anchor="middle", size=SMALL, colour=ORANGE, bold=True)
            drawing.line([(_x(key), y + RADIUS), (_x(key), y + 46)], colour=ORANGE, thickness=2)
    _axis(drawing, 180)
    stats = done.stats
    what = f"insert {relation}{row}: {_counted(stats.matches, 'record')} {_holds(stats.matches)} {key}, "
    what += f"{_counted(stats.regions, 'region')} to evaluate, {_counted(stats.operations, 'operation')}"
    drawing.text(LEFT, 240, what, bold=True)
    outcome = "lend stays as it is" if not done.changes else ""
    for change in done.changes:
        outcome += (
            f"lend({change['a']}, {change['b']}, {change['c']}) {'comes' if change['weight'] > 0 else 'goes'}"
        )
    drawing.text(LEFT, 262, outcome)
    return drawing.svg(f"{what}; {outcome}")


def _matches() -> list[int]:
    both = [{c for owner, c in DATA[relation] if owner == whose} for relation, whose, _ in LINES.values()]
    return sorted(set.intersection(*both))


def _x(key: int) -> float:
    return LEFT + key * UNIT


def _line(drawing: Drawing, atom: str, y: float, matches: list[int]) -> None:
    relation, whose, called = LINES[atom]
    drawing.text(0, y - 2, called, bold=True)
    drawing.text(0, y + 14, f"{relation}({whose}, c)", size=SMALL, colour=FAINT)
    drawing.line([(_x(0), y), (_x(LAST), y)], colour=RULE, thickness=2)
    for owner, key in DATA[relation]:
        if owner == whose:
            both = key in matches
            fill, line = (PALE_GREEN, GREEN) if both else (PALE_BLUE, BLUE)
            drawing.circle(_x(key), y, RADIUS, fill=fill, line=line)
            drawing.text(_x(key), y + 4, str(key), anchor="middle", size=SMALL, bold=both)


def _hop(drawing: Drawing, number: int, step: Step, at: dict[str, float], y: float) -> None:
    """An arc from where the iterator stood to where it lands; the number alone where it stays."""
    to = _x(LAST if step.to is None else step.to)
    start = at.get(step.atom, to - 24)
    at[step.atom] = to
    top = y - RADIUS
    if start == to:
        drawing.text(to, top - 8, str(number), anchor="middle", size=SMALL, colour=ORANGE, bold=True)
        return
    height = 16 + min(24, (to - start) / 8)
    drawing.curve(
        [(start + 4, top), (start + 4, top - height), (to - 6, top - height), (to - 6, top - 1)],
        colour=ORANGE,
        arrow=True,
    )
    middle = (start + to) / 2 - 1
    drawing.text(
        middle, top - height * 0.75 - 4, str(number), anchor="middle", size=SMALL, colour=ORANGE, bold=True
    )


def _said(number: int, step: Step) -> str:
    name = step.atom.partition("(")[0]
    to = "the end" if step.to is None else str(step.to)
    if step.operation == "open":
        return f"{number:>2}  open {name}: the first is {to}"
    if step.operation == "seek":
        agrees = ", a match" if step.start == step.to else ""
        return f"{number:>2}  {name}, seek {step.start} or more: {to}{agrees}"
    return f"{number:>2}  {name}, next: {to}"


def _bars(drawing: Drawing, records: list[Interval], y: float, hit: Interval | None = None) -> None:
    for record in records:
        low = _x(0) - 14 if record.low is None else _x(record.low) - 12
        high = _x(LAST) + 14 if record.high is None else _x(record.high) + 12
        fill, line = (ORANGE, ORANGE) if record == hit else (PALE_ORANGE, ORANGE)
        drawing.box(low, y, high - low, 12, fill=fill, line=line, corner=2)
        for open_end, x in ((record.low is None, low), (record.high is None, high)):
            if open_end:
                ahead = x == low
                drawing.text(
                    x + (-13 if ahead else 9), y + 11, "-∞" if ahead else "∞", anchor="middle", colour=ORANGE
                )
    drawing.text(0, y + 10, "sensitive at", size=SMALL, colour=ORANGE)


def _axis(drawing: Drawing, y: float) -> None:
    drawing.text(0, y + 4, "c", colour=INK, bold=True)
    for key in range(LAST + 1):
        drawing.text(_x(key), y + 4, str(key), anchor="middle", size=SMALL, colour=FAINT)


def _counted(n: int, noun: str) -> str:
    return f"{n or 'no'} {noun}{'' if n == 1 else 's'}"


def _holds(n: int) -> str:
    return "holds" if n == 1 else "hold"
