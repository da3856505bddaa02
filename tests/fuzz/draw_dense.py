"""Dense cases: few variables in many atoms over relations that are nearly full, a common variable in most.

Searches intersect many participants at one depth here, some wide and some narrow; so do stages, blocks,
marks and their lists.
"""

from __future__ import annotations

import itertools
import random

from fuzz.case import Table
from fuzz.draw_data import Drawn
from support.kinds import INTEGER
from support.rules import Aggregate, Atom, Head, Literal, Program, Rule, Term, Variable, Wildcard


def relations(r: random.Random) -> list[Drawn]:
    """Two or three columns of few values each, but for one; a share of all rows that there can be."""
    drawn = []
    for number in range(r.randint(2, 4)):
        sizes = [r.choice((1, 2, 4)) for _ in range(r.choice((1, 1, 2)))] + [r.choice((4, 12, 24))]
        r.shuffle(sizes)
        share = r.choice((0.2, 0.6, 0.9, 1.0))
        values = tuple(tuple(range(size)) for size in sizes)
        rows = tuple(row for row in itertools.product(*values) if r.random() < share)
        table = Table(f"r{number}", ("int64",) * len(sizes), rows)
        drawn.append(Drawn(table, (INTEGER,) * len(sizes), values))
    return drawn


def _terms(r: random.Random, names: list[str], width: int) -> tuple[Term, ...]:
    chosen = r.sample(names, min(len(names), width))
    chosen += r.choices(names, k=width - len(chosen))
    if r.random() < 0.6 and names[0] not in chosen:
        chosen[r.randrange(width)] = names[0]
    return tuple(
        Wildcard() if r.random() < 0.06 else Variable(r.choice(names) if r.random() < 0.05 else name)
        for name in chosen
    )


def program(r: random.Random, drawn: list[Drawn]) -> Program:
    """One rule: many atoms, some negated, over few variables."""
    names = [f"v{n}" for n in range(r.randint(3, 4))]
    body: list[Literal] = []
    for _ in range(r.randint(4, 7)):
        one = r.choice(drawn)
        body.append(Atom(one.table.name, _terms(r, names, len(one.kinds))))
    bound = sorted(
        {term.name for a in body if isinstance(a, Atom) for term in a.terms if isinstance(term, Variable)}
    )
    if not bound:
        return program(r, drawn)
    for _ in range(r.choice((0, 0, 1, 2))):
        one = r.choice(drawn)
        terms = tuple(Wildcard() if r.random() < 0.2 else Variable(r.choice(bound)) for _ in one.kinds)
        body.append(Atom(one.table.name, terms, negated=True))
    r.shuffle(body)
    shown = tuple(Variable(name) for name in bound if r.random() < 0.6) or (Variable(r.choice(bound)),)
    if r.random() < 0.2:
        return (Rule((Head("h0", shown, Aggregate("count")),), tuple(body)),)
    return (Rule((Head("h0", tuple(r.sample(shown, len(shown)))),), tuple(body)),)
