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
from dataclasses import dataclass, field, replace
from typing import Any

from lftj.errors import DurabilityError
from lftj.language.parser import parse
from lftj.language.syntax import Program
from lftj.rewriting.wanted_heads import Results
from maintenance.durable.entries import Entry, Installed, StrategySet, Uninstalled


@dataclass(frozen=True)
class Definition:
    """A program, of which ``strategies`` has the heads that are still there, each with how it is kept.

    ``sensitivity_bytes`` and ``order``: of those of the heads that have one.  ``since``: the number of the
    change that installed it.  ``results``, ``choices``: of :class:`~maintenance.durable.entries.Installed`.
    ``grown``: relations that grow by it, of those that are still there.
    """

    text: str
    strategies: Mapping[str, str]
    sensitivity_bytes: Mapping[str, int]
    order: Mapping[str, Sequence[str]]
    max_rounds: int
    since: int = 0
    results: Sequence[str] = field(default_factory=list)
    choices: Mapping[str, Any] | None = None
    grown: Sequence[str] = field(default_factory=list)

    @property
    def wanted(self) -> Results | None:
        """As :meth:`maintenance.Workspace.install` takes them."""
        return Results(tuple(self.results), self.choices) if self.results else None

    @property
    def shown(self) -> Collection[str]:
        """Those of its heads that are wanted, and what grows."""
        return [*(self.results or self.strategies), *self.grown]

    @property
    def program(self) -> Program:
        """The rules of the heads that are still there; keys and streams are the relations' own.

        >>> both = Definition("a(x), b(x) <- c(x). d(x) <- c(x).", {"b": "auto"}, {}, {}, 10)
        >>> [[head.relation for head in rule.heads] for rule in both.program.rules]
        [['b']]
        """
        tree = parse(self.text)
        rules = [
            replace(rule, heads=tuple(head for head in rule.heads if head.relation in self.strategies))
            for rule in tree.rules
        ]
        return replace(
            tree, rules=tuple(rule for rule in rules if rule.heads), keys=(), streams=(), finals=()
        )

    def refuse_without_text(self) -> None:
        """Raise DurabilityError for a program that has no text, which can't be written down."""
        if not self.text:
            raise DurabilityError(
                f"{', '.join(self.shown)}: what has no text, as an operator and a program that was made"
                " without, can't be kept in a folder: install the text of its rules"
            )

    def without(self, heads: Collection[str]) -> Definition:
        return replace(
            self,
            strategies=_without(self.strategies, heads),
            sensitivity_bytes=_without(self.sensitivity_bytes, heads),
            order=_without(self.order, heads),
            results=[name for name in self.results if name not in heads],
            grown=[name for name in self.grown if name not in heads],
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
    left = [
        now
        for each, now in zip(definitions, left, strict=True)
        if now.grown or (now.strategies and (now.results or not each.results))
    ]
    if isinstance(entry, Installed) and (entry.heads or entry.grown):
        named = entry.strategy
        strategies = {
            head: named if isinstance(named, str) else named.get(head, default) for head in entry.heads
        }
        limits, rounds = entry.sensitivity_bytes, entry.max_rounds
        wanted = entry.results, entry.choices
        grown = list(entry.grown)
        left.append(Definition(entry.text, strategies, limits, entry.order, rounds, number, *wanted, grown))
    return left


def _without(mapping: Mapping[str, object], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name not in names}
