"""What kernels take on trust of a plan, looked at when one is made, for those who change that.

A kernel follows addresses and offsets without asking.  Numba's bounds checks see a wrong one only where it
leaves the whole array: a list that is too short writes into its neighbour.  So a plan is read as the kernels
read it, under ``LFTJ_DEBUG=1`` (:mod:`lftj.process.debug`), and AssertionError names what does not hold.

The invariants: :mod:`lftj.search.base.plan_check`, :mod:`lftj.search.regions.plan_check`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from indices.records import WORD, Record
from lftj.search.conditions import OP_AT_LEAST, OP_AT_MOST, Condition

Extent = tuple[int, int, str, int]
"""Offset, length, and what stands there: a name with a place for a number, and that."""


def holds(number: int, condition: object, what: str, *named: int) -> None:
    """``what``: with a place for each number that is named; put together only where it is told."""
    if not condition:
        raise AssertionError(f"plan invariant {number}: {what.format(*named)}")


def apart(number: int, extents: Iterable[Extent], start: int, end: int) -> None:
    """All of them lie in [start, end), and no two share a place."""
    before, last, of = start, "the start", 0
    for place, length, what, row in sorted(extent for extent in extents if extent[1]):
        if place < before or place + length > end:
            bounds = f"from {before}, where {last.format(of)} ends, to {end}"
            raise AssertionError(f"plan invariant {number}: {what.format(row)} at {place} is not {bounds}")
        before, last, of = place + length, what, row


class PlanReader:
    """A plan as a kernel reads it, with offsets from its beginning for addresses.

    Records are known by the items at which they begin.  ``search``, ``node``: the machine's own kinds of
    records; both machines name what is read here alike.
    """

    def __init__(self, template: np.ndarray, search: Any, node: Any) -> None:
        self.template = template
        self.search: Any = search.view(template)
        self.depths = int(self.search.depths)
        first, end = self.item(self.search.nodes), self.item(self.search.nodes) + self.depths * node.LENGTH
        holds(1, 0 <= first <= end <= len(template), "{} nodes begin at {}", self.depths, first)
        self.node_items = range(first, end, node.LENGTH)
        self.nodes: list[Any] = [node.view(template, item) for item in self.node_items]

    @staticmethod
    def item(address: int) -> int:
        return int(address) // WORD

    def conditions(self, depth: int) -> Iterator[Condition]:
        first = self.item(self.nodes[depth].conditions)
        for number in range(int(self.nodes[depth].n_conditions)):
            yield Condition.view(self.template, first + number * Condition.LENGTH)

    def conditions_extent(self, depth: int) -> Extent:
        length = int(self.nodes[depth].n_conditions) * Condition.LENGTH
        return self.item(self.nodes[depth].conditions), length, "conditions of depth {}", depth

    def participants(self, depth: int) -> list[int]:
        """Items of the cursors."""
        raise NotImplementedError

    def refuses(self, depth: int) -> bool:
        """Whether a condition may refuse single keys.  Looks at invariant 5 of both machines."""
        for condition in self.conditions(depth):
            holds(5, -1 <= condition.other < depth, "a condition of depth {}", depth)
        return any(condition.operator > OP_AT_MOST for condition in self.conditions(depth))

    def binds(self, depth: int) -> bool:
        """Whether a depth's key is bound by its participants or an equality."""
        operators = {int(condition.operator) for condition in self.conditions(depth)}
        return bool(self.participants(depth)) or {OP_AT_LEAST, OP_AT_MOST} <= operators

    @staticmethod
    def named(item: int, record: Record, *fields: str) -> list[int]:
        """Where the fields of a record stand that name another one."""
        return [item + record.place(field) for field in fields if getattr(record, field)]
