"""Rules that were rewritten, in evaluation order: strata, and the components that go round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lftj.language.body import CheckedRule
from lftj.language.strata import components
from lftj.rewriting.rule_text import body_text


def together(rules: Iterable[CheckedRule]) -> Iterator[CheckedRule]:
    """The rules, those of one rule as written with the same bodies as one: its heads share their search."""
    found: dict[tuple[object, ...], CheckedRule] = {}
    for rule in rules:
        key = (rule.span, *(body_text(body) for body in rule.bodies), id(rule.bodies[0].types))
        known = found.get(key)
        found[key] = rule if known is None else replace(known, heads=(*known.heads, *rule.heads))
    return iter(found.values())


def stratified(
    rules: Sequence[CheckedRule],
) -> tuple[tuple[tuple[CheckedRule, ...], ...], tuple[tuple[str, ...], ...]]:
    """The rules in evaluation order, and the components that go round."""
    reads: dict[str, dict[str, None]] = {}
    for rule in rules:
        for head in rule.heads:
            found = reads.setdefault(head.relation, {})
            for body in rule.bodies:
                found.update(dict.fromkeys(body.relations))
    level: dict[str, int] = {}
    circles = []
    for component in components(
        {name: [one for one in read if one in reads] for name, read in reads.items()}
    ):
        inside = frozenset(component)
        below = [level[one] for name in component for one in reads[name] if one in level]
        level.update(dict.fromkeys(component, 1 + max(below, default=-1)))
        if any(one in inside for name in component for one in reads[name]):
            circles.append(tuple(name for name in reads if name in inside))
    strata: list[list[CheckedRule]] = [[] for _ in range(1 + max(level.values()))]
    for rule in rules:
        for at in sorted({level[head.relation] for head in rule.heads}):
            heads = tuple(head for head in rule.heads if level[head.relation] == at)
            strata[at].append(rule if heads == rule.heads else replace(rule, heads=heads))
    return tuple(map(tuple, strata)), tuple(circles)
