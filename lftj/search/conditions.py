"""Conditions: comparisons of a depth's key, as rows of a plan and as the kernels test them.

A row says ``x OP y + offset`` of the key x of its depth; y is the key of an earlier
depth, or 0.  *Bounds* narrow the range in which a node looks for keys; the others are
*filters*, which refuse single keys.

Invariants

1. A condition stands at the depth at which both sides are bound, so y is known when x is.
2. The rows of one depth follow each other: kernels get the offset ``first`` of the first
   row in the plan, and ``count``.  ``keys`` is the offset in the state of the list of the
   bound keys, by depth.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import address, view
from lftj.search.problem import JoinProblem

C_OPERATOR = 0  # OP_*
C_OTHER = 1  # depth of y, or -1: y is 0
C_OFFSET = 2
C_TABLE = 3  # address of an int64 table that keys are looked up in before comparing, or 0
C_TABLE_LENGTH = 4
CONDITION_FIELDS = 5

OP_AT_LEAST = 0  # bounds
OP_AT_MOST = 1
OP_DIFFERS = 2  # filters
OP_TABLE_LESS = 3  # table[x] < table[y], for domains whose codes are not in value order
OP_TABLE_AT_MOST = 4
OP_TABLE_GREATER = 5
OP_TABLE_AT_LEAST = 6

_FLIP = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_COMPARISONS = {  # rows of one condition: operator and step
    "<": [(OP_AT_MOST, -1)],
    "<=": [(OP_AT_MOST, 0)],
    ">": [(OP_AT_LEAST, 1)],
    ">=": [(OP_AT_LEAST, 0)],
    "=": [(OP_AT_LEAST, 0), (OP_AT_MOST, 0)],
    "!=": [(OP_DIFFERS, 0)],
}
_TABLE_COMPARISONS = _COMPARISONS | {
    "<": [(OP_TABLE_LESS, 0)],
    "<=": [(OP_TABLE_AT_MOST, 0)],
    ">": [(OP_TABLE_GREATER, 0)],
    ">=": [(OP_TABLE_AT_LEAST, 0)],
}


@dataclass(frozen=True)
class ConditionRow:
    """A row of C_* fields: the key compares by ``operator`` with that of depth ``other`` (-1: with 0) plus
    ``sign`` times the offset of condition ``number`` plus ``step``."""

    operator: int
    other: int
    number: int
    sign: int
    step: int

    @property
    def is_filter(self) -> bool:
        return self.operator > OP_AT_MOST

    def offset(self, problem: JoinProblem) -> int:
        """The offset field, with the codes of the problem's constants."""
        return self.sign * problem.conditions[self.number].offset + self.step

    def fields(self, problem: JoinProblem) -> tuple[list[int], np.ndarray | None]:
        """The fields with the codes of the problem's constants, and the table whose address they hold.

        The table is good as long as it lives and its dictionary does not grow.
        """
        condition = problem.conditions[self.number]
        fields = [self.operator, self.other, self.offset(problem), 0, 0]
        if self.operator <= OP_DIFFERS:
            return fields, None
        assert condition.ranked is not None
        table = condition.ranked.ranks()
        fields[C_TABLE:] = address(table), len(table)
        return fields, table


def condition_rows(problem: JoinProblem, place: Mapping[str, int]) -> list[list[ConditionRow]]:
    """Rows by the depth at which both sides are bound; ``place``: the depth of every variable."""
    by_depth: list[list[ConditionRow]] = [[] for _ in place]
    for number, condition in enumerate(problem.conditions):
        left, operator, right, sign = condition.left, condition.operator, condition.right, 1
        if right is not None and place[right] > place[left]:  # x < y + 3  =>  y > x - 3
            left, right, operator, sign = right, left, _FLIP[operator], -1
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
        memory[offset : offset + CONDITION_FIELDS], table = row.fields(problem)
        if table is not None:
            tables.append(table)
    return tables


@part(forceinline=True)
def condition_bounds(plan, state, keys, first, count, low, high):
    """The closed range [low, high], narrowed by a depth's bounds; (1, 0) when one leaves no key at all."""
    condition = first
    for _ in range(count):
        operator = plan[condition + C_OPERATOR]
        if operator <= OP_AT_MOST:
            other = plan[condition + C_OTHER]
            key = state[keys + other] if other >= 0 else np.int64(0)
            offset = plan[condition + C_OFFSET]
            limit = key + offset
            if (offset > 0 and key > KEY_MAX - offset) or (offset < 0 and key < KEY_MIN - offset):
                # beyond every key: the bound holds for all of them, or for none
                if (operator == OP_AT_LEAST) == (offset > 0):
                    return np.int64(1), np.int64(0)
            elif operator == OP_AT_LEAST:
                low = max(low, limit)
            else:
                high = min(high, limit)
        condition += CONDITION_FIELDS
    return low, high


@part
def compared_with(plan, state, keys, condition):
    """The right side of a filter: the key of its other depth plus its offset."""
    other = plan[condition + C_OTHER]
    return (state[keys + other] if other >= 0 else np.int64(0)) + plan[condition + C_OFFSET]


@part
def filter_holds(plan, state, keys, condition, key):
    """Whether one filter lets a key of its depth pass."""
    operator = plan[condition + C_OPERATOR]
    right = compared_with(plan, state, keys, condition)
    if operator == OP_DIFFERS:
        return key != right
    table = view(plan[condition + C_TABLE], plan[condition + C_TABLE_LENGTH])
    if operator == OP_TABLE_LESS:
        return table[key] < table[right]
    if operator == OP_TABLE_AT_MOST:
        return table[key] <= table[right]
    if operator == OP_TABLE_GREATER:
        return table[key] > table[right]
    return table[key] >= table[right]


@part
def filters_hold(plan, state, keys, first, count, key):
    """Whether all filters of a depth let a key pass."""
    condition = first
    for _ in range(count):
        if plan[condition + C_OPERATOR] > OP_AT_MOST and not filter_holds(plan, state, keys, condition, key):
            return False
        condition += CONDITION_FIELDS
    return True
