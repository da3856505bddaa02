"""``top(3, by: v, per: a)`` in a body: its assignments with the best v of each a, as rules without it.

It keeps the assignments of the rest of the body whose v is at least the third largest of their group,
as SQL's ``qualify rank() over (partition by a order by v desc) <= 3`` does; ``bottom`` those with the least.
What stands behind the parser knows neither.  So the rule::

    best(a, b) <- sale(a, b, v), top(3, by: v, per: a).

becomes these two, the bar being a head like any other::

    best_bar[a] = kth_largest(v, 3) <- sale(a, b, v).
    best(a, b) <- sale(a, b, v), best_bar[a] = bar, v >= bar.

Invariants

1. Behind :func:`with_bars` no body has a :class:`TopRows`, and every rule but the bars' stands where it stood
   among the others: the last one stays the last.
2. A bar has a name that stands nowhere in the program as it was written, and one rule, whose span is that
   of the ``top``: no two rules of a program have the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lftj.errors import RuleSyntaxError
from lftj.language.diagnostics import error_at
from lftj.language.expressions import variables_of
from lftj.language.syntax import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Head,
    Literal,
    Rule,
    Span,
    Variable,
    flat,
)

_RANKS = {"top": ("kth_largest", ">="), "bottom": ("kth_smallest", "<=")}
"""The aggregate that gives the bar, and how what is kept compares with it."""


@dataclass(frozen=True)
class TopRows:
    """``top(rank, by: value, per: group, ...)``."""

    function: str
    rank: Constant
    value: Variable
    groups: tuple[Variable, ...]
    span: Span


def is_top(name: str, named: Sequence[bool]) -> bool:
    """Whether ``name(...)`` in a body is no atom: its first term stands by place, the others by name.

    >>> is_top("top", [False, True]), is_top("top", [False, False]), is_top("first", [False, True])
    (True, False, False)
    """
    return name in _RANKS and len(named) > 1 and not named[0] and all(named[1:])


def with_bars(rules: Sequence[Rule], text: str) -> list[Rule]:
    """The rules as they are evaluated; ``text`` is the program's, for messages.

    >>> from lftj.language.parser import parse
    >>> program = parse("best(a) <- sale(a, v), top(3, by: v).")
    >>> [head.relation for rule in program.rules for head in rule.heads]
    ['best_bar', 'best']
    """
    found: list[Rule] = []
    taken = {name for rule in rules for name in relations_of(rule)}
    for rule in rules:
        tops = [literal for literal in rule.body if isinstance(literal, TopRows)]
        if not tops:
            found.append(rule)
            continue
        if len(tops) > 1:
            raise error_at(
                RuleSyntaxError,
                text,
                tops[1].span,
                f"a rule has one '{tops[1].function}': derive the rows of the first in a rule of their own",
            )
        bar = free_name(f"{rule.heads[0].relation}_bar", taken)
        taken.add(bar)
        found += _without_top(rule, tops[0], bar)
    return found


def _without_top(rule: Rule, top: TopRows, bar: str) -> tuple[Rule, Rule]:
    body = tuple(literal for literal in rule.body if not isinstance(literal, TopRows))
    aggregate, operator = _RANKS[top.function]
    call = Aggregate(aggregate, (top.value, top.rank), top.span)
    head = Head(bar, top.groups, call, top.span, top.span)
    heads = (variable for head in rule.heads for variable in head.variables)
    names = {variable.name for variable in (*variables_in(body), *heads, top.value, *top.groups)}
    least = Variable(free_name("bar", names), top.span)
    reached = Atom(bar, (*top.groups, least), True, False, top.span, top.span)
    kept = Comparison(operator, top.value, least, top.span)
    return Rule((head,), body, top.span), replace(rule, body=(*body, reached, kept))


def relations_of(rule: Rule) -> Iterator[str]:
    """The relations that a rule names."""
    yield from (head.relation for head in rule.heads)
    yield from (literal.relation for literal in flat(rule.body) if isinstance(literal, Atom))


def variables_in(body: Iterable[Literal]) -> Iterator[Variable]:
    """The variables of literals, as often as they stand there."""
    for literal in flat(body):
        if isinstance(literal, Atom):
            yield from (term for term in literal.terms if isinstance(term, Variable))
        elif isinstance(literal, Comparison):
            yield from variables_of(literal.left)
            yield from variables_of(literal.right)


def free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or with a number behind it where that is taken."""
    numbered = (f"{wanted}_{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([wanted], numbered) if name not in taken)
