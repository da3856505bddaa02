"""``sum(v if v > 5)``: aggregates of some assignments, as aggregates of a computed variable.

What stands behind the parser knows no filters.  The variable is NULL where the condition does not hold, and
an aggregate skips NULL; ``count(if c)`` is a sum, which is 0 where nothing passes, and ``list``, which keeps
NULLs, is ordered by a constant besides.  So the rule::

    stats(a, count(if v > 5), max(v if v > 5)) <- r(a, v).

becomes this one, in which two variables have names that no program can write::

    stats(a, sum(IF), max(V)) <- r(a, v), IF = if(v > 5, 1, 0), V = if(v > 5, v).

Invariants

1. Behind :func:`without_filters` no head has a :class:`Filtered`.
2. A functional head leaves out assignments in which it would read NULL; so one that filters has a rule of
   its own, and no other head loses anything.
3. Equal filtered arguments of a rule are one variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lftj.language.syntax import (
    Aggregate,
    Call,
    Comparison,
    Constant,
    Expression,
    Head,
    Rule,
    Variable,
)


@dataclass(frozen=True)
class Filtered(Aggregate):
    """An aggregate of the assignments in which a condition holds; ``spelled``: the condition as written."""

    condition: Expression = Constant(True)
    spelled: str = ""


def without_filters(rules: Sequence[Rule]) -> list[Rule]:
    """The rules as they are evaluated, each at its place.

    >>> from lftj.language.parser import parse
    >>> (rule,) = parse("n[a] = count(if v > 5) <- r(a, v).").rules
    >>> rule.heads[0].value.function, rule.heads[0].value.name, rule.body[1].right.name
    ('sum', 'count', 'if v > 5')
    """
    return [apart for rule in rules for apart in _apart(rule)]


def _apart(rule: Rule) -> Iterator[Rule]:
    """The rule, before it one for each head that is a function of what it filters."""
    alone = [head for head in rule.heads if isinstance(head.value, Filtered)]
    if len(rule.heads) == 1:
        alone = []
    for head in alone:
        yield _without(replace(rule, heads=(head,), span=head.span, written=rule.span))
    others = tuple(head for head in rule.heads if head not in alone)
    if others:
        yield _without(replace(rule, heads=others))


def _without(rule: Rule) -> Rule:
    computed: dict[str, Comparison] = {}

    def plain(head: Head) -> Head:
        terms = tuple(_call(term, computed) if isinstance(term, Filtered) else term for term in head.terms)
        value = _call(head.value, computed) if isinstance(head.value, Filtered) else head.value
        return replace(head, terms=terms, value=value)

    heads = tuple(map(plain, rule.heads))
    return replace(rule, heads=heads, body=(*rule.body, *computed.values()))


def _call(filtered: Filtered, computed: dict[str, Comparison]) -> Aggregate:
    """The aggregate of a computed variable, which is added to those that there are."""
    function, condition, span = filtered.function, filtered.condition, filtered.span
    if not filtered.arguments:
        function, name = "sum", f"if {filtered.spelled}"
        branches: tuple[Expression, ...] = (Constant(1, span), Constant(0, span))
        others: tuple[Variable | Constant, ...] = ()
    else:
        first, *rest = filtered.arguments
        assert isinstance(first, Variable)
        name, branches, others = f"{first.name} if {filtered.spelled}", (first,), tuple(rest)
        if function == "list":  # what is NULL among its elements stays
            name, branches = f"if {filtered.spelled}", (Constant(1, span),)
    value = Call("if", (condition, *branches), condition.span)
    while computed.setdefault(name, Comparison("=", value, Variable(name, span), span)).left != value:
        name += " "  # they differ in the spaces of a text
    variable = Variable(name, span)
    arguments = (*filtered.arguments, variable) if function == "list" else (variable, *others)
    return Aggregate(function, arguments, span, filtered.distinct, filtered.default, filtered.written)
