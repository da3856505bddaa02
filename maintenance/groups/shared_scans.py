"""Ordered trees of aggregates over one set of rows, shared by the heads that can.

Heads with ``min`` or ``max`` of the same argument, grouped by sets of variables
each of which holds the one before, share the ordered tree of values: its keys begin
with the smallest set, and each head asks for ranges below its own prefix.  Other
aggregates that need an order share a tree with heads of the same groups.

Invariants

1. A tree holds the rows that were staged and kept, and between ``stage`` and ``keep`` or
   ``drop`` those that are staged too.
2. Heads read trees, they never change them: :class:`SharedScans` does, once for all.

Cost: that of :mod:`maintenance.groups.scan` and :mod:`maintenance.groups.text`, per tree.

Source: ILFTJ 2.3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lftj.aggregates.sum_values import decimal_scale
from lftj.aggregates.whole import argument_names
from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.conditionals import without_defaults
from lftj.language.syntax import Aggregate, Call, Constant, Variable
from lftj.storage.signed_rows import Columns
from lftj.values.names import DISTINCT_COUNT, VARIANCES
from lftj.values.row_values import RowValues
from maintenance.groups.accumulator import Accumulator, GroupRows
from maintenance.groups.grouped import accumulator_for
from maintenance.groups.scan import WITHOUT_ORDER, GroupScan, scan_for
from maintenance.groups.text import GroupText
from maintenance.staged import Staged

ORDERLESS = ("min", "max")


class Sharer:
    """A head that aggregates a set of rows, and what its variables are called there."""

    def __init__(self, rule: CheckedRule, head: CheckedHead, names: Mapping[str, str]) -> None:
        """``names``: what the rows call each of the rule's variables."""
        assert isinstance(head.value, Aggregate)
        self.rule = rule
        self.head = head
        self.call = head.value
        self.groups = tuple(names[name] for name in head.variables)
        self.arguments = tuple(names[name] for name in argument_names(head.value))
        self.names = (*self.groups, *self.arguments)
        """What the head reads of the rows."""
        self.value = names.get(_filtered_value(rule, self.call), "")
        """The variable that a counted one is where it is not NULL; empty where there is no such one."""
        self.constants = tuple(term.value for term in head.value.arguments if isinstance(term, Constant))
        self.scale: int | None = None
        """Digits behind the point of the decimals that are added up; None of others."""
        if head.value.function in ("sum", "avg", *VARIANCES):
            (argument,) = argument_names(head.value)
            type_ = rule.bodies[0].types[argument]
            self.scale = decimal_scale(type_) if type_.domain.name == "decimal" else None

    def columns(self, rows: Mapping[str, np.ndarray]) -> tuple[list[np.ndarray], bool]:
        """What the head reads of rows, and whether its argument is unscaled: decimals that have no codes."""
        if self.scale is not None and isinstance(rows, RowValues):
            numbers = rows.numbers(self.arguments[0])
            if numbers is not None and numbers.scale == self.scale:
                return [*(rows[name] for name in self.groups), numbers.values], True
        return [rows[name] for name in self.names], False


def _filtered_value(rule: CheckedRule, call: Aggregate) -> str:
    """The v of ``count(distinct v)`` and of ``count(distinct v if ...)``; empty of other aggregates."""
    names = argument_names(call)
    if call.function != DISTINCT_COUNT or len(names) != 1 or len(rule.bodies) != 1:
        return ""
    (body,), (name,) = rule.bodies, names
    for assignment in body.assignments:
        of = without_defaults(assignment.expression)
        if assignment.variable != name or assignment.each or not isinstance(of, Call):
            continue
        is_filtered = of.function == "if" and len(of.arguments) == 2
        if is_filtered and isinstance(value := of.arguments[1], Variable):
            return value.name if body.types[value.name].domain is body.types[name].domain else name
    return name


class SharedScans(Staged):
    """The ordered trees of some heads over one set of rows."""

    def __init__(self, sharers: Sequence[Sharer]) -> None:
        """All sharers are there from the beginning; those without order need no tree."""
        self._chains = _chains(sharers)

    def accumulator(self, sharer: Sharer) -> Accumulator | None:
        """What makes a head's values; None for a count."""
        if sharer.call.function in WITHOUT_ORDER:
            return accumulator_for(sharer.head, sharer.rule.bodies[0].types)
        return next(view for chain in self._chains if (view := chain.view(sharer)) is not None)

    def own_scan(self, sharer: Sharer) -> GroupScan | None:
        """The tree that a head has alone, by its groups and arguments as it reads them; None without one."""
        for chain in self._chains:
            if chain.sharers == [sharer] and chain.columns == sharer.names:
                return chain.scan if isinstance(chain.scan, GroupScan) else None
        return None

    def notes(self, sharer: Sharer) -> tuple[str, ...]:
        """How a head's values are made, for ``explain``."""
        for chain in self._chains:
            if sharer in chain.sharers:
                others = [s.head.relation for s in chain.sharers if s is not sharer]
                return (
                    f"ordered by {', '.join(chain.columns)}"
                    + (f", one tree with {', '.join(others)}" if others else ""),
                )
        return ()

    def leave(self, sharer: Sharer) -> None:
        """A head is uninstalled: its tree goes, if no other reads it."""
        self._chains = [chain for chain in self._chains if any(s is not sharer for s in chain.sharers)]
        for chain in self._chains:
            chain.sharers = [other for other in chain.sharers if other is not sharer]

    def stage(self, rows: Mapping[str, np.ndarray], signs: np.ndarray) -> None:
        """Add signed rows to all trees, before values are asked for; a column per name.

        Raises :class:`~lftj.errors.AggregateError` when a user's function raises; then :meth:`drop`.
        """
        for chain in self._chains:
            chain.scan.stage([rows[name] for name in chain.columns], signs)

    @property
    def parts(self) -> Sequence[Staged]:
        return [chain.scan for chain in self._chains]

    @property
    def nbytes(self) -> int:
        """Memory of the trees."""
        return sum(chain.scan.nbytes for chain in self._chains)


class _Chain:
    """One ordered tree and the heads that read it; each one's groups hold the variables of the one before."""

    def __init__(self, first: Sharer) -> None:
        self.sharers = [first]
        self.groups = _once(first.groups)

    def takes(self, sharer: Sharer) -> bool:
        first = self.sharers[0]
        if (sharer.call.function, sharer.arguments) != (first.call.function, first.arguments):
            return False
        if sharer.constants != first.constants:
            return False
        wider = set(self.groups) <= set(sharer.groups)
        return wider if sharer.call.function in ORDERLESS else _once(sharer.groups) == self.groups

    def add(self, sharer: Sharer) -> None:
        self.sharers.append(sharer)
        self.groups = _once((*self.groups, *sharer.groups))

    def close(self) -> None:
        """No more heads will come."""
        last = self.sharers[-1]
        self.columns = (*self.groups, *last.arguments)
        own = dict(zip(last.groups, last.head.variables, strict=True))
        head = replace(last.head, variables=tuple(own[name] for name in self.groups))
        self.scan = scan_for(head, last.rule.bodies[0].types, len(self.groups))

    def view(self, sharer: Sharer) -> Accumulator | None:
        if sharer not in self.sharers:
            return None
        prefix = self.groups[: len(set(sharer.groups))]
        return _ScanView(self.scan, [sharer.groups.index(name) for name in prefix])


def _once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _chains(sharers: Sequence[Sharer]) -> list[_Chain]:
    chains: list[_Chain] = []
    for sharer in sorted(sharers, key=lambda s: len(s.groups)):
        if sharer.call.function in WITHOUT_ORDER:
            continue
        chain = next((chain for chain in chains if chain.takes(sharer)), None)
        if chain is None:
            chains.append(_Chain(sharer))
        else:
            chain.add(sharer)
    for chain in chains:
        chain.close()
    return chains


class _ScanView(Accumulator):
    """The values of a head's groups, read from an ordered tree that :class:`SharedScans` steps and keeps."""

    def __init__(self, scan: GroupScan | GroupText, places: Sequence[int]) -> None:
        self._scan = scan
        self._places = places

    @property
    def nbytes(self) -> int:
        return 0

    def stage(self, rows: GroupRows) -> np.ndarray:
        return self.values(rows.keys, rows.slots, rows.counts)

    def add(self, rows: GroupRows) -> None:
        """They went to the tree."""

    def values(self, keys: Columns, slots: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return self._scan.values([keys[place] for place in self._places])

    def remapped(self, kept: np.ndarray) -> Accumulator:
        """Nothing here is by slot."""
        return self
