"""The textbook's recursive programs, with what they read."""

from __future__ import annotations

from random import Random

from support.reference import Row
from support.rules import (
    Aggregate,
    Arithmetic,
    Atom,
    Constant,
    Head,
    Literal,
    Program,
    Rule,
    Variable,
    aggregate,
    arith,
    atom,
    compare,
    head,
    lookup,
    no,
)


def rule(left: Head, *body: Literal) -> Rule:
    return Rule((left,), body)


def plus(variable: str, number: int) -> Arithmetic:
    return Arithmetic("+", Variable(variable), Constant(number))


def least(variable: str) -> Aggregate:
    return aggregate("min", variable)


def largest(variable: str) -> Aggregate:
    return aggregate("max", variable)


TEXTBOOK: dict[str, Program] = {
    "closure, right": (
        rule(head("t", "x", "y"), atom("e", "x", "y")),
        rule(head("t", "x", "z"), atom("e", "x", "y"), atom("t", "y", "z")),
    ),
    "closure, left": (
        rule(head("t", "x", "y"), atom("e", "x", "y")),
        rule(head("t", "x", "z"), atom("t", "x", "y"), atom("e", "y", "z")),
    ),
    "closure, not linear": (
        rule(head("t", "x", "y"), atom("e", "x", "y")),
        rule(head("t", "x", "z"), atom("t", "x", "y"), atom("t", "y", "z")),
    ),
    "reach": (
        rule(head("r", "x"), atom("s", "x")),
        rule(head("r", "y"), atom("r", "x"), atom("e", "x", "y")),
    ),
    "same generation": (
        rule(head("g", "x", "y"), atom("e", "p", "x"), atom("e", "p", "y"), compare("x", "!=", "y")),
        rule(head("g", "x", "y"), atom("e", "p", "x"), atom("g", "p", "q"), atom("e", "q", "y")),
    ),
    "mutual": (
        rule(head("a", "x", "y"), atom("e", "x", "y")),
        rule(head("b", "x", "z"), atom("a", "x", "y"), atom("e", "y", "z")),
        rule(head("a", "x", "z"), atom("b", "x", "y"), atom("e", "y", "z")),
    ),
    "CSPA": (
        rule(head("vf", "y", "x"), atom("as", "y", "x")),
        rule(head("vf", "x", "y"), atom("as", "x", "z"), atom("ma", "z", "y")),
        rule(head("vf", "x", "y"), atom("vf", "x", "z"), atom("vf", "z", "y")),
        rule(head("ma", "x", "w"), atom("de", "y", "x"), atom("va", "y", "z"), atom("de", "z", "w")),
        rule(head("va", "x", "y"), atom("vf", "z", "x"), atom("vf", "z", "y")),
        rule(head("va", "x", "y"), atom("vf", "z", "x"), atom("ma", "z", "w"), atom("vf", "w", "y")),
        rule(head("vf", "x", "x"), atom("as", "x", "_")),
        rule(head("vf", "x", "x"), atom("as", "_", "x")),
        rule(head("ma", "x", "x"), atom("as", "_", "x")),
        rule(head("ma", "x", "x"), atom("as", "x", "_")),
    ),
    "GALEN": (
        rule(head("p", "x", "z"), atom("p0", "x", "z")),
        rule(head("q", "x", "r", "z"), atom("q0", "x", "r", "z")),
        rule(head("p", "x", "z"), atom("p", "x", "y"), atom("p", "y", "z")),
        rule(head("q", "x", "r", "z"), atom("p", "x", "y"), atom("q", "y", "r", "z")),
        rule(head("p", "x", "z"), atom("p", "y", "w"), atom("u", "w", "r", "z"), atom("q", "x", "r", "y")),
        rule(head("p", "x", "z"), atom("c", "y", "w", "z"), atom("p", "x", "w"), atom("p", "x", "y")),
        rule(head("q", "x", "k", "z"), atom("q", "x", "r", "z"), atom("s2", "r", "k")),
        rule(
            head("q", "x", "e", "o"),
            atom("q", "x", "y", "z"),
            atom("r3", "y", "v", "e"),
            atom("q", "z", "v", "o"),
        ),
    ),
    "a negation inside": (
        rule(head("t", "x", "y"), atom("e", "x", "y"), no("s", "x")),
        rule(head("t", "x", "z"), atom("t", "x", "y"), atom("e", "y", "z"), no("s", "y")),
    ),
    "constants and comparisons": (
        rule(head("t", "x", "y"), atom("e", "x", "y"), compare("x", "<", "y")),
        rule(
            head("t", "x", "z"),
            atom("t", "x", "y"),
            atom("e", "y", "z"),
            atom("t", 1, "z"),
            compare("x", "!=", "z"),
        ),
        rule(head("t", "z", "z"), atom("t", "_", "z"), atom("t", "_", "_"), atom("s", "z")),
    ),
    "computed": (
        rule(head("d", "x", "n"), atom("s", "x"), compare("n", "=", 0)),
        rule(
            head("d", "y", "m"),
            atom("d", "x", "n"),
            atom("e", "x", "y"),
            compare("m", "=", plus("n", 1)),
            compare("m", "<", 5),
        ),
    ),
    "a computed negation": (
        rule(head("d", "x"), atom("s", "x")),
        rule(
            head("d", "m"),
            atom("d", "n"),
            compare("m", "=", plus("n", 1)),
            no("s", "m"),
            compare("m", "<", 9),
        ),
    ),
    "strata above and below": (
        rule(head("b", "x"), atom("e", "x", "_"), no("s", "x")),
        rule(head("t", "x", "y"), atom("e", "x", "y"), atom("b", "x")),
        rule(head("t", "x", "z"), atom("t", "x", "y"), atom("t", "y", "z")),
        rule(head("u", "x"), atom("b", "x"), no("t", "x", "x")),
        rule(head("w", "x"), atom("u", "x")),
        rule(head("w", "y"), atom("w", "x"), atom("e", "x", "y")),
    ),
    "two heads": (
        rule(head("t", "x", "y"), atom("e", "x", "y")),
        Rule((head("t", "x", "z"), head("end", "z")), (atom("t", "x", "y"), atom("e", "y", "z"))),
    ),
    "shortest paths": (
        rule(head("d", "x", value=least("n")), atom("s", "x"), compare("n", "=", 0)),
        rule(
            head("d", "y", value=least("m")),
            lookup("d", "x", "n"),
            atom("w", "x", "y", "c"),
            compare("m", "=", arith("n", "+", "c")),
        ),
    ),
    "all distances, not linear": (
        rule(head("d", "x", "y", value=least("c")), atom("w", "x", "y", "c")),
        rule(
            head("d", "x", "z", value=least("m")),
            lookup("d", "x", "y", "n"),
            lookup("d", "y", "z", "k"),
            compare("m", "=", arith("n", "+", "k")),
        ),
    ),
    "least labels": (
        rule(head("l", "x", value=least("n")), atom("e", "x", "_"), compare("n", "=", "x")),
        rule(head("l", "y", value=least("n")), lookup("l", "x", "n"), atom("e", "x", "y")),
        rule(head("l", "y", value=least("n")), lookup("l", "x", "n"), atom("e", "y", "x"), no("s", "y")),
    ),
    "widest paths": (
        rule(head("b", "y", value=largest("c")), atom("s", "x"), atom("w", "x", "y", "c")),
        rule(
            head("b", "y", value=largest("c")),
            lookup("b", "x", "m"),
            atom("w", "x", "y", "k"),
            atom("w", "_", "_", "c"),
            compare("c", "<=", "m"),
            compare("c", "<=", "k"),
        ),
    ),
    "no key": (
        rule(head("b", value=least("c")), atom("w", "_", "_", "c")),
        rule(head("b", value=least("m")), lookup("b", "n"), atom("s", "m"), compare("n", "<", 4)),
        rule(head("r", "x"), lookup("b", "n"), atom("e", "x", "_"), compare("n", "<", 1)),
        rule(head("b", value=least("x")), atom("r", "x"), atom("e", "_", "x")),
    ),
    "min and max": (
        rule(head("a", "x", value=least("n")), atom("s", "x"), compare("n", "=", "x")),
        rule(
            head("h", "y", value=largest("m")),
            lookup("a", "x", "n"),
            atom("e", "x", "y"),
            compare("m", "=", arith(9, "-", "n")),
        ),
        rule(
            head("a", "y", value=least("k")),
            lookup("h", "x", "m"),
            atom("w", "x", "y", "c"),
            compare("k", "=", arith(arith("c", "-", "m"), "+", 9)),
        ),
    ),
    "tuples and values": (
        rule(head("d", "x", value=least("n")), atom("s", "x"), compare("n", "=", 0)),
        rule(head("near", "x"), lookup("d", "x", "n"), compare("n", "<", 3)),
        rule(
            head("d", "y", value=least("m")),
            atom("near", "x"),
            lookup("d", "x", "n"),
            atom("w", "x", "y", "c"),
            compare("m", "=", arith("n", "+", "c")),
        ),
        rule(head("d", "y", value=least("m")), atom("d", "x", "_"), atom("near", "y"), compare("m", "=", 2)),
    ),
}
"""Programs by name."""

ARITIES = {"e": 2, "s": 1, "as": 2, "de": 2, "p0": 2, "q0": 3, "u": 3, "c": 3, "r3": 3, "s2": 2, "w": 3}
"""Of what they read."""


def inputs_of(program: Program) -> list[str]:
    """The relations that a textbook program reads and does not derive."""
    derived = {one.relation for rule in program for one in rule.heads}
    read = [literal.relation for rule in program for literal in rule.body if isinstance(literal, Atom)]
    return [name for name in dict.fromkeys(read) if name not in derived]


def random_row(random: Random, relation: str, values: int) -> Row:
    return tuple(random.randrange(values) for _ in range(ARITIES[relation]))
