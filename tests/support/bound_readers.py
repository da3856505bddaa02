"""A head, rules that read it with bound keys, and `whatever_it_costs`: keys wherever there are some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

from lftj.rewriting import demand
from support.recursive_programs import least, plus, rule
from support.reference import Row
from support.rules import (
    Aggregate,
    Atom,
    Constant,
    Head,
    Literal,
    Program,
    Rule,
    Term,
    Variable,
    Wildcard,
    aggregate,
    arith,
    atom,
    compare,
    head,
    lookup,
    no,
)


@contextmanager
def whatever_it_costs(by_heads: bool = True) -> Iterator[None]:
    """Keys wherever there are some; ``by_heads``: also those that heads give, and not tables alone."""
    pays = demand._Rewriting._pays

    def always(self: Any, name: str, *arguments: Any) -> bool:
        if self._before is not None:
            return pays(self, name, *arguments)
        pays(self, name, *arguments)
        self._choices.restricted[name] = True
        return True

    most = 0.0 if by_heads else 1e300
    with mock.patch.object(demand, "MOST_ASKED", most), mock.patch.object(demand._Rewriting, "_pays", always):
        yield


HEADS: dict[str, tuple[int, Program]] = {
    "join": (2, (rule(head("h", "x", "z"), atom("e", "x", "y"), atom("r", "y", "z", "_")),)),
    "self": (2, (rule(head("h", "x", "x"), atom("e", "x", "y"), compare("y", "<", 3)),)),
    "negated": (2, (rule(head("h", "x", "y"), atom("e", "x", "y"), no("u", "y")),)),
    "computed": (2, (rule(head("h", "x", "z"), atom("e", "x", "y"), compare("z", "=", arith("y", "+", 1))),)),
    "union": (
        2,
        (
            rule(head("h", "x", "y"), atom("e", "x", "y")),
            rule(head("h", "x", "y"), atom("r", "y", "_", "x"), no("e", "x", "y")),
        ),
    ),
    "count": (
        2,
        (rule(head("h", "x", value=aggregate("count")), atom("e", "x", "_"), atom("r", "x", "_", "_")),),
    ),
    "several": (
        3,
        (rule(head("h", "x", aggregate("count"), aggregate("max", "v")), atom("r", "x", "_", "v")),),
    ),
    "two levels": (
        2,
        (
            rule(head("g", "x", "y"), atom("e", "x", "y"), no("u", "x")),
            rule(head("h", "x", value=aggregate("sum", "y")), atom("g", "x", "y"), atom("g", "y", "_")),
        ),
    ),
    "left": (
        2,
        (
            rule(head("h", "x", "y"), atom("e", "x", "y")),
            rule(head("h", "x", "z"), atom("h", "x", "y"), atom("e", "y", "z")),
        ),
    ),
    "right": (
        2,
        (
            rule(head("h", "x", "y"), atom("r", "x", "y", "_")),
            rule(head("h", "x", "z"), atom("e", "x", "y"), no("u", "y"), atom("h", "y", "z")),
        ),
    ),
    "right, over a head": (
        2,
        (
            rule(head("g", "x", "y"), atom("e", "x", "y")),
            rule(head("g", "x", "y"), atom("r", "x", "_", "y")),
            rule(head("h", "x", "y"), atom("g", "x", "y"), compare("x", "!=", "y")),
            rule(head("h", "x", "z"), atom("g", "x", "y"), atom("h", "y", "z")),
        ),
    ),
    "right, what passes is tested": (
        2,
        (
            rule(head("h", "x", "y"), atom("e", "x", "y")),
            rule(head("h", "x", "z"), atom("e", "x", "y"), atom("h", "y", "z"), atom("u", "z")),
        ),
    ),
    "right, what passes is compared": (
        2,
        (
            rule(head("h", "x", "y"), atom("e", "x", "y")),
            rule(head("h", "x", "z"), atom("e", "x", "y"), atom("h", "y", "z"), compare("z", "<", 4)),
        ),
    ),
    "right, two pass": (
        3,
        (
            rule(head("h", "x", "y", "v"), atom("r", "x", "y", "v")),
            rule(head("h", "x", "y", "v"), atom("e", "x", "w"), atom("h", "w", "y", "v")),
            rule(head("h", "x", "y", "v"), atom("r", "w", "x", "_"), atom("h", "w", "y", "v")),
        ),
    ),
    "not linear": (
        2,
        (
            rule(head("h", "x", "y"), atom("e", "x", "y")),
            rule(head("h", "x", "z"), atom("h", "x", "y"), atom("h", "y", "z")),
        ),
    ),
    "same generation": (
        2,
        (
            rule(head("h", "x", "y"), atom("e", "p", "x"), atom("e", "p", "y")),
            rule(head("h", "x", "y"), atom("e", "p", "x"), atom("h", "p", "q"), atom("e", "q", "y")),
        ),
    ),
    "mutual": (
        2,
        (
            rule(head("h", "x", "y"), atom("e", "x", "y")),
            rule(head("g", "x", "z"), atom("h", "x", "y"), atom("e", "y", "z")),
            rule(head("h", "x", "z"), atom("e", "x", "y"), atom("g", "y", "z")),
        ),
    ),
    "distances": (
        2,
        (
            rule(head("h", "x", value=least("d")), atom("u", "x"), compare("d", "=", 0)),
            rule(
                head("h", "y", value=least("d")),
                lookup("h", "x", "c"),
                atom("e", "x", "y"),
                compare("d", "=", plus("c", 1)),
            ),
        ),
    ),
    "distances of pairs": (
        3,
        (
            rule(head("h", "x", "y", value=least("d")), atom("e", "x", "y"), compare("d", "=", 1)),
            rule(
                head("h", "x", "z", value=least("d")),
                atom("e", "x", "y"),
                lookup("h", "y", "z", "c"),
                compare("d", "=", plus("c", 1)),
            ),
        ),
    ),
}
"""Heads ``h`` with their arity."""


def reader(random: Random, name: str, arity: int, left: str = "q") -> Rule:
    """A rule that reads ``h``, and binds some of what it reads."""
    known = ["a", "b"]
    body: list[Literal] = [random.choice((atom("e", "a", "b"), atom("r", "a", "b", "_"), atom("u", "a")))]
    if len(body[0].terms) == 1:  # type: ignore[union-attr]
        known = ["a"]
    if random.random() < 0.3:
        body.append(random.choice((no("u", "a"), compare("a", "<", 3), atom("u", "a"))))
    for number in range(random.choice((1, 1, 2))):
        negated = random.random() < 0.3
        terms: list[Term] = []
        for place in range(arity):
            if random.random() < (0.7 if place == 0 else 0.3):
                terms.append(
                    Constant(random.randrange(5)) if random.random() < 0.3 else Variable(random.choice(known))
                )
            else:
                terms.append(
                    Wildcard() if negated or random.random() < 0.2 else Variable(f"n{number}{place}")
                )
        body.append(Atom(name, tuple(terms), negated))
    random.shuffle(body)
    body.sort(key=lambda one: isinstance(one, Atom) and one.negated)
    columns: list[Variable | Aggregate] = [Variable(one) for one in known]
    bound = {
        t.name
        for one in body
        if isinstance(one, Atom) and not one.negated
        for t in one.terms
        if isinstance(t, Variable)
    }
    columns += [Variable(one) for one in sorted(bound - set(known)) if random.random() < 0.5]
    if random.random() < 0.2:
        columns = [columns[0], aggregate("count")]
    return Rule((Head(left, tuple(columns)),), tuple(body))


def data_of(random: Random, nulls: bool) -> dict[str, list[Row]]:
    def value() -> int | None:
        return None if nulls and random.random() < 0.15 else random.randrange(6)

    sizes = {"e": (2, 9), "r": (3, 8), "u": (1, 3)}
    return {
        name: sorted({tuple(value() for _ in range(arity)) for _ in range(n)}, key=repr)
        for name, (arity, n) in sizes.items()
    }
