"""The reference's ``latest(u)`` and ``next(u)``: which assignments of a body are left."""

from __future__ import annotations

from typing import Any

from support.rules import Atom, Either, Literal, Nearest, literals, variables_of

Row = tuple[Any, ...]
Binding = dict[str, Any]


def nearest_of(nearest: Nearest, body: tuple[Literal, ...], found: list[Binding]) -> list[Binding]:
    """The assignments with the greatest or least value of their group, or of the other atoms' variables."""
    atoms = [one for one in body if isinstance(one, Atom | Either)]
    names = [
        name
        for one in literals(tuple(atoms))
        if isinstance(one, Atom) and not one.negated and nearest.value not in variables_of(one)
        for name in variables_of(one)
    ]
    groups: dict[Row, list[Binding]] = {}
    for binding in found:
        if binding[nearest.value] is not None:
            group = tuple(binding[name] for name in (names if nearest.per is None else nearest.per))
            groups.setdefault(group, []).append(binding)
    chosen = []
    for rows in groups.values():
        best = (max if nearest.function == "latest" else min)(row[nearest.value] for row in rows)
        chosen += [row for row in rows if row[nearest.value] == best]
    return chosen
