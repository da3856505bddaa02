"""Random ``latest(u)`` and ``next(u)`` of bodies."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from support.kinds import (
    COARSE,
    DATE,
    DECIMAL,
    DURATION,
    EXTREME,
    FLOAT,
    INTEGER,
    MOMENT,
    SIGNED,
    STRING,
    ZONED,
    Kind,
)
from support.rules import Atom, Comparison, Either, Literal, Nearest, Variable, literals, variables_of

ORDERED = (INTEGER, SIGNED, FLOAT, DECIMAL, STRING, DATE, MOMENT, ZONED, COARSE, DURATION)


def nearest(r: random.Random, body: Sequence[Literal], scope: Mapping[str, Kind]) -> list[Literal]:
    """The nearest of a variable that one atom binds, and mostly a comparison with one of another atom."""
    atoms = [one for one in body if isinstance(one, Atom) and not one.negated]
    names = [list(dict.fromkeys(variables_of(one))) for one in atoms]
    every = [name for own in names for name in own]
    apart = {
        name
        for one in body
        if isinstance(one, Either)
        for part in literals((one,))
        if isinstance(part, Atom)
        for name in variables_of(part)
    }
    values = [
        name for name in every if every.count(name) == 1 and name not in apart and scope[name] in ORDERED
    ]
    if not values:
        return []
    value = r.choice(values)
    others = [name for own in names if value not in own for name in own if scope[name] is scope[value]]
    found: list[Literal] = []
    function, operators = r.choice((("latest", ("<=", "<", ">=")), ("next", (">=", ">", "<="))))
    for _ in range(r.choice((0, 1, 1, 1, 2))):
        if others:
            operator = operators[min(r.choice((0, 0, 1, 1, 2)), len(operators) - 1)]
            found.append(Comparison(operator, Variable(value), Variable(r.choice(others))))
    keys = [name for name in every if scope[name] is not EXTREME]
    per = tuple(r.sample(keys, min(len(keys), r.choice((1, 1, 2))))) if keys and r.random() < 0.4 else None
    return [*found, Nearest(function, value, per)]
