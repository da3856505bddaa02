"""Conditions: comparisons of a depth's key, as records of a plan and as the kernels test them.

A record says ``x OP y + offset`` of the key x of its depth; y is the key of an earlier
depth, or 0.  *Bounds* narrow the range in which a node looks for keys; the others are
*filters*, which refuse single keys.

Invariants

1. A condition stands at the depth at which both sides are bound, so y is known when x is.
2. The conditions of one depth follow each other: kernels get the address ``first`` of the first
   one, and ``count``.  ``keys`` is the address of the list of the bound keys, by depth.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from indices.records import Record, record_at
from lftj.memory import address, view
from lftj.search.problem import JoinProblem
from lftj.values.operators import FLIPPED


class Condition(Record):
    operator: int  # OP_*
    other: int  # depth of y, or -1: y is 0
    offset: int
    table: int  # address of an int64 table that keys are looked up in before comparing, or 0
    table_length: int


condition_at = record_at(Condition)
CONDITION = Condition.BYTES

OP_AT_LEAST = 0  # bounds
OP_AT_MOST = 1
OP_DIFFERS = 2  # filters
OP_TABLE_LESS = 3  # table[x] < table[y], for domains whose codes are not in value order
OP_TABLE_AT_MOST = 4
OP_TABLE_GREATER = 5
OP_TABLE_AT_LEAST = 6

_COMPARISONS = {  # rows of one condition: operator and step
    "<": [(OP_AT_MOST, -1)],
    "<=": [(OP_AT_MOST, 0)],
    ">": [(OP_AT_LEAST, 1)],
    ">=": [(OP_AT_LEAST, 0)],
    "=": [(OP_AT_LEAST, 0), (OP_AT_MOST, 0)],
    "!=": [(OP_DIFFERS, 0)],
}
_SIGNS = (">=", "<=", "!=", "<", "<=", ">", ">=")
"""By operator."""

_TABLE_COMPARISONS = _COMPARISONS | {
    "<": [(OP_TABLE_LESS, 0)],
    "<=": [(OP_TABLE_AT_MOST, 0)],
    ">": [(OP_TABLE_GREATER, 0)],
    ">=": [(OP_TABLE_AT_LEAST, 0)],
}


@dataclass(frozen=True)
class ConditionRow:
    """A :class:`Condition` to be: the key compares by ``operator`` with that of depth ``other`` (-1: with 0)
    plus ``sign`` times the offset of condition ``number`` plus ``step``."""

    operator: int
    other: int
    number: int
    sign: int
    step: int

    @property
    def is_filter(self) -> bool:
        return self.operator > OP_AT_MOST

    def shown(self, order: Sequence[str], depth: int) -> str:
        """For people: the comparison.  The offset of condition 3 is ``$3``."""
        other = "0" if self.other < 0 else order[self.other]
        step = f" {'+' if self.step > 0 else '-'} {abs(self.step)}" if self.step else ""
        offset = f"{'+' if self.sign > 0 else '-'} ${self.number}{step}"
        return f"{order[depth]} {_SIGNS[self.operator]} {other} {offset}"

    def offset(self, problem: JoinProblem) -> int:
        """The offset field, with the codes of the problem's constants."""
        return self.sign * problem.conditions[self.number].offset + self.step

    def fields(self, problem: JoinProblem) -> tuple[list[int], np.ndarray | None]:
        """The fields with the codes of the problem's constants, and the table whose address they hold.

        The table is good as long as it lives and its dictionary does not grow.
        """
        condition = problem.conditions[self.number]
        table = None
        if self.operator > OP_DIFFERS:
            assert condition.ranked is not None
            table = condition.ranked.ranks()
        fields = Condition.fields(
            operator=self.operator,
            other=self.other,
            offset=self.offset(problem),
            table=0 if table is None else address(table),
            table_length=0 if table is None else len(table),
        )
        return fields, table


def condition_rows(problem: JoinProblem, place: Mapping[str, int]) -> list[list[ConditionRow]]:
    """Rows by the depth at which both sides are bound; ``place``: the depth of every variable."""
    by_depth: list[list[ConditionRow]] = [[] for _ in place]
    for number, condition in enumerate(problem.conditions):
        left, operator, right, sign = condition.left, condition.operator, condition.right, 1
        if right is not None and place[right] > place[left]:  # x < y + 3  =>  y > x - 3
            left, right, operator, sign = right, left, FLIPPED[operator], -1
        other = -1 if right is None else place[right]
        rows = (_COMPARISONS if condition.ranked is None else _TABLE_COMPARISONS)[operator]
        by_depth[place[left]] += [ConditionRow(code, other, number, sign, step) for code, step in rows]
    return by_depth


def fill_conditions(
    memory: np.ndarray, rows: Sequence[tuple[int, ConditionRow]], problem: JoinProblem
) -> list[np.ndarray]:
    """Write rows, given by their offsets in a plan, for a problem's constants; the tables that they name."""
    tables = []
    for offset, row in rows:
        memory[offset : offset + Condition.LENGTH], table = row.fields(problem)
        if table is not None:
            tables.append(table)
    return tables


@part(forceinline=True)
def condition_bounds(keys, first, count, low, high):
    """The closed range [low, high], narrowed by a depth's bounds; (1, 0) when one leaves no key at all."""
    for number in range(count):
        condition = condition_at(first + number * CONDITION)
        if condition.operator <= OP_AT_MOST:
            offset = condition.offset
            key = key_of(keys, condition.other)
            limit = key + offset
            if (offset > 0 and key > KEY_MAX - offset) or (offset < 0 and key < KEY_MIN - offset):
                # beyond every key: the bound holds for all of them, or for none
                if (condition.operator == OP_AT_LEAST) == (offset > 0):
                    return np.int64(1), np.int64(0)
            elif condition.operator == OP_AT_LEAST:
                low = max(low, limit)
            else:
                high = min(high, limit)
    return low, high


@part(forceinline=True)
def key_of(keys, depth):
    """The key bound at a depth, 0 for depth -1."""
    return view(keys, depth + 1)[depth] if depth >= 0 else np.int64(0)


@part
def compared_with(keys, condition):
    """The right side of a filter: the key of its other depth plus its offset."""
    return key_of(keys, condition.other) + condition.offset


@part
def filter_holds(keys, condition, key):
    """Whether one filter lets a key of its depth pass."""
    operator = condition.operator
    right = compared_with(keys, condition)
    if operator == OP_DIFFERS:
        return key != right
    table = view(condition.table, condition.table_length)
    if operator == OP_TABLE_LESS:
        return table[key] < table[right]
    if operator == OP_TABLE_AT_MOST:
        return table[key] <= table[right]
    if operator == OP_TABLE_GREATER:
        return table[key] > table[right]
    return table[key] >= table[right]


@part
def filters_hold(keys, first, count, key):
    """Whether all filters of a depth let a key pass."""
    for number in range(count):
        condition = condition_at(first + number * CONDITION)
        if condition.operator > OP_AT_MOST and not filter_holds(keys, condition, key):
            return False
    return True
