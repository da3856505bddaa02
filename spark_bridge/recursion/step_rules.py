"""The rules of a recursion's rounds: what new tuples give, none of which is recursive.

    reach(x, z) <- reach(x, y), reach(y, z).

    reach(x, z) <- (reach new(x, y), reach before(y, z) ; reach before(x, y), reach new(y, z)).

A head keeps its name; ``before`` has all of its tuples, those of the last round, which are ``new``, among
them.  No program can write these names.

Source: Bancilhon and Ramakrishnan, "An amateur's introduction to recursive query processing strategies"
(SIGMOD 1986), semi-naive evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from lftj.language.syntax import Atom, Disjunction, Literal, Program
from spark_bridge.placing.recursive_rule import RecursiveRule

Body = tuple[Literal, ...]


def new(head: str) -> str:
    """What the tuples of the last round are called."""
    return f"{head} new"


def before(head: str) -> str:
    """What the tuples of all rounds are called."""
    return f"{head} before"


def beginning(of: RecursiveRule, head: str) -> list[Program]:
    """What gives a head's first tuples, without reading what depends on it."""
    return _programs(of, head, lambda body: _apart(body, of.component))


def following(of: RecursiveRule, head: str, changed: Collection[str]) -> list[Program]:
    """What the new tuples of some heads, ``changed``, give."""
    return _programs(of, head, lambda body: list(_steps(body, of.component, changed)))


def best_of(of: RecursiveRule, head: str) -> str | None:
    """``"min"`` or ``"max"``, where a head of the component is that of its last column."""
    return next(part.syntax.heads[0].extremum for part in of.parts if part.name == head)


def _programs(of: RecursiveRule, head: str, bodies_of: Callable[[Body], list[Body]]) -> list[Program]:
    """The rules of a head with other bodies: together, but of best values, of which each rule has its own."""
    rules = []
    for part in of.parts:
        if part.name == head and (bodies := bodies_of(part.syntax.body)):
            body = bodies[0] if len(bodies) == 1 else (Disjunction(tuple(bodies), part.syntax.span),)
            rules.append(replace(part.syntax, body=body))
    together = [tuple(rules)] if best_of(of, head) is None else [(rule,) for rule in rules]
    return [Program(some, of.text) for some in together if some]


def _apart(body: Sequence[Literal], component: Collection[str]) -> list[Body]:
    """A body without alternatives that read the component: one, or none where it reads it anyway."""
    kept: list[Literal] = []
    for literal in body:
        if isinstance(literal, Disjunction):
            alternatives = [one for each in literal.alternatives for one in _apart(each, component)]
            if not alternatives:
                return []
            several = replace(literal, alternatives=tuple(alternatives))
            kept += alternatives[0] if len(alternatives) == 1 else (several,)
        elif isinstance(literal, Atom) and literal.relation in component:
            return []
        else:
            kept.append(literal)
    return [tuple(kept)]


def _steps(body: Sequence[Literal], component: Collection[str], changed: Collection[str]) -> Iterator[Body]:
    """A body once for each atom that new tuples come in by; the others of the component read all."""
    for place, literal in enumerate(body):
        ways: Iterator[Body] = iter(())
        if isinstance(literal, Disjunction):
            ways = (way for each in literal.alternatives for way in _steps(each, component, changed))
        elif isinstance(literal, Atom) and literal.relation in changed:
            ways = iter([(replace(literal, relation=new(literal.relation)),)])
        for way in ways:
            yield (*_all(body[:place], component), *way, *_all(body[place + 1 :], component))


def _all(body: Sequence[Literal], component: Collection[str]) -> Iterator[Literal]:
    for literal in body:
        if isinstance(literal, Disjunction):
            alternatives = tuple(tuple(_all(each, component)) for each in literal.alternatives)
            yield replace(literal, alternatives=alternatives)
        elif isinstance(literal, Atom) and literal.relation in component:
            yield replace(literal, relation=before(literal.relation))
        else:
            yield literal
