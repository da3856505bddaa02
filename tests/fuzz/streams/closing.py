"""Whether a rule's rows are done when the clock is at one of their columns, and how far back they look.

Of a body over whole numbers; comparisons and windows are bounds ``x - y <= c``, and what follows for two
variables is a shortest path, by Bellman and Ford.
"""

from __future__ import annotations

from collections.abc import Mapping

from support.rules import Arithmetic, Atom, Call, Comparison, Constant, Either, Expression, Rule, Variable

Edges = list[tuple[str, str, int]]
"""``(x, y, c)``: x - y <= c."""


def extents_of(rule: Rule, column: int, after: int, times: Mapping[str, int]) -> dict[str, int] | None:
    """By stream, how long before a close a row of it counts; None where that is not said, or too late.

    ``times``: by stream, the place of its time.
    """
    target = rule.heads[0].columns[column]
    edges = _edges(rule)
    if not isinstance(target, Variable) or any(isinstance(literal, Either) for literal in rule.body):
        return None
    found: dict[str, int] = {}
    for literal in rule.body:
        if not isinstance(literal, Atom) or literal.relation not in times:
            continue
        time = literal.terms[times[literal.relation]]
        if not isinstance(time, Variable):
            return None
        latest, earliest = least(edges, time.name, target.name), least(edges, target.name, time.name)
        if latest is None or earliest is None or latest >= after:
            return None
        found[literal.relation] = max(found.get(literal.relation, 0), after + max(earliest, 0))
    return found


def is_contradictory(rule: Rule) -> bool:
    """Whether no times can be as the body says: then anything follows."""
    edges = _edges(rule)
    return any((least(edges, x, y) or 0) + c < 0 for y, x, c in edges if least(edges, x, y) is not None)


def latest_of(rule: Rule, column: int, times: Mapping[str, int]) -> int | None:
    """How far behind the column a row may be that counts; None where nothing says so."""
    target = rule.heads[0].columns[column]
    if not isinstance(target, Variable):
        return None
    found = [0]
    for literal in rule.body:
        if isinstance(literal, Atom) and literal.relation in times:
            time = literal.terms[times[literal.relation]]
            if not isinstance(time, Variable):
                return None
            latest = least(_edges(rule), time.name, target.name)
            if latest is None:
                return None
            found.append(latest)
    return max(found)


def least(edges: Edges, x: str, y: str) -> int | None:
    """The least c with x - y <= c."""
    best = {x: 0}
    for _ in range(len(edges) + 1):
        for a, b, c in edges:
            if a in best and best[a] + c < best.get(b, best[a] + c + 1):
                best[b] = best[a] + c
    return 0 if x == y else best.get(y)


def _edges(rule: Rule) -> Edges:
    edges: Edges = []
    for literal in rule.body:
        if not isinstance(literal, Comparison):
            continue
        window = _window(literal)
        if window is not None:
            begin, moment, length = window
            edges += [(begin, moment, 0), (moment, begin, length - 1)]
            continue
        left, right = _shifted(literal.left), _shifted(literal.right)
        if left is None or right is None:
            continue
        (x, up), (y, down) = left, right
        strictly = literal.operator in ("<", ">")
        if literal.operator in ("<", "<=", "="):
            edges.append((x, y, down - up - strictly))
        if literal.operator in (">", ">=", "="):
            edges.append((y, x, up - down - strictly))
    return edges


def _window(literal: Comparison) -> tuple[str, str, int] | None:
    """``w = tumble(t, 5)`` and ``w in hop(t, 5, 1)``: w, t and 5."""
    left, right = literal.left, literal.right
    begin, call = left, right
    if isinstance(left, Call) and left.function == "list_contains":
        call, begin = left.arguments
    if not (isinstance(call, Call) and call.function in ("tumble", "hop") and isinstance(begin, Variable)):
        return None
    moment, length = call.arguments[:2]
    assert isinstance(moment, Variable) and isinstance(length, Constant)
    return begin.name, moment.name, length.value


def _shifted(side: Expression) -> tuple[str, int] | None:
    if isinstance(side, Variable):
        return side.name, 0
    if isinstance(side, Arithmetic) and isinstance(side.left, Variable) and isinstance(side.right, Constant):
        return side.left.name, side.right.value if side.operator == "+" else -side.right.value
    return None
