"""Definitions: the programs that are installed, less what was taken away or replaced since.

Invariants

1. Installing them one after the other, in a workspace with the base relations, gives all heads: what a
   head reads was defined before it or with it.  (A head that others read is not replaced, and one that is
   defined anew comes last.)
2. Each head is in one definition.

Cost: one parse of a program, when the folder is opened without an image.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lftj.errors import DurabilityError
from lftj.language.parser import parse
from lftj.language.syntax import Program
from maintenance.durable.entries import Entry, Installed, StrategySet, Uninstalled


@dataclass(frozen=True)
class Definition:
    """A program, of which ``strategies`` has the heads that are still there, each with how it is kept.

    ``sensitivity_bytes`` and ``order``: of those of the heads that have one.  ``since``: the number of the
    change that installed it.
    """

    text: str
    strategies: Mapping[str, str]
    sensitivity_bytes: Mapping[str, int]
    order: Mapping[str, Sequence[str]]
    max_rounds: int
    since: int = 0

    @property
    def program(self) -> Program:
        """The rules of the heads that are still there.

        >>> both = Definition("a(x), b(x) <- c(x). d(x) <- c(x).", {"b": "auto"}, {}, {}, 10)
        >>> [[head.relation for head in rule.heads] for rule in both.program.rules]
        [['b']]
        """
        tree = parse(self.text)
        rules = [
            replace(rule, heads=tuple(head for head in rule.heads if head.relation in self.strategies))
            for rule in tree.rules
        ]
        return replace(tree, rules=tuple(rule for rule in rules if rule.heads))

    def refuse_without_text(self) -> None:
        """Raise DurabilityError for a program that has no text, which can't be written down."""
        if not self.text:
            raise DurabilityError(
                "a program without a text can't be kept in a folder: install the text of its rules"
            )

    def without(self, heads: Collection[str]) -> Definition:
        return replace(
            self,
            strategies=_without(self.strategies, heads),
            sensitivity_bytes=_without(self.sensitivity_bytes, heads),
            order=_without(self.order, heads),
        )


def following(
    definitions: Iterable[Definition],
    entry: Entry,
    default: str,
    number: int,
) -> list[Definition]:
    """The definitions after an entry, the change of that number.

    ``default``: the strategy of heads for which none is named.
    """
    if not isinstance(entry, Installed | Uninstalled | StrategySet):
        return list(definitions)
    if isinstance(entry, StrategySet):
        changed = entry.strategies
        return [
            replace(
                each,
                strategies={head: changed.get(head, name) for head, name in each.strategies.items()},
            )
            for each in definitions
        ]
    left = [each.without(entry.heads) for each in definitions]
    left = [each for each in left if each.strategies]
    if isinstance(entry, Installed):
        named = entry.strategy
        strategies = {
            head: named if isinstance(named, str) else named.get(head, default) for head in entry.heads
        }
        limits, rounds = entry.sensitivity_bytes, entry.max_rounds
        left.append(Definition(entry.text, strategies, limits, entry.order, rounds, number))
    return left


def _without(mapping: Mapping[str, object], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name not in names}
