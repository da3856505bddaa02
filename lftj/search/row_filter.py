"""Which rows of a relation can belong to an assignment: tests of their codes, without an index.

Invariants

1. A test refuses no row of an assignment, so rows may be filtered by any of them.
2. Tests of ranks stand behind the test of each of their columns that refuses NULL, whose code has none.

Cost: per row and test, of the rows that the tests before leave, some nanoseconds; rows are read in blocks
that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.search.problem import JoinAtom, JoinCondition, JoinProblem
from lftj.storage.key_set import KeySet
from lftj.storage.part import Part
from lftj.storage.relation import Relation
from lftj.values.domain import NULL_CODE
from lftj.values.operators import ON_ARRAYS

BLOCK_ROWS = 1 << 15


@dataclass(frozen=True)
class RowTest:
    """``holds``: of codes of the columns, which rows pass.  ``label``: for ``explain``."""

    columns: tuple[int, ...]
    holds: Callable[..., np.ndarray]
    label: str


@dataclass(frozen=True)
class RowFilter:
    """Rows that pass all tests.  ``columns``: those that are tested, by number."""

    columns: Mapping[int, np.ndarray]
    n_rows: int
    tests: tuple[RowTest, ...]

    @classmethod
    def of(cls, table: Relation | Part, tests: Sequence[RowTest]) -> RowFilter:
        """The rows of a table; it is not held."""
        numbers = {column for test in tests for column in test.columns}
        return cls({number: table.column(number) for number in numbers}, table.n_rows, tuple(tests))

    def kept(self, first: int, last: int) -> np.ndarray | None:
        """Of rows [first, last) those that pass, counted from ``first``: int64, increasing; None for all."""
        kept: np.ndarray | None = None
        for test in self.tests:
            codes = [self.columns[column][first:last] for column in test.columns]
            holds = test.holds(*(codes if kept is None else [column[kept] for column in codes]))
            if not holds.all():
                kept = np.flatnonzero(holds) if kept is None else kept[holds]
        return kept

    def rows(self) -> np.ndarray | None:
        """The numbers of all rows that pass: int64, increasing; None for all."""
        found, n_found = [], 0
        for first, last in blocks(self.n_rows, BLOCK_ROWS):
            kept = self.kept(first, last)
            found.append(np.arange(first, last) if kept is None else kept + first)
            n_found += len(found[-1])
        return None if n_found == self.n_rows else np.concatenate(found)

    def share(self, size: int) -> float:
        """The share of rows that pass, of ``size`` evenly spaced ones; 0 of none."""
        if not self.n_rows:
            return 0.0
        rows = np.arange(size) * self.n_rows // size
        columns = {number: column[rows] for number, column in self.columns.items()}
        sample = RowFilter(columns, size, self.tests)
        kept = sample.kept(0, size)
        return 1.0 if kept is None else len(kept) / size


def blocks(n_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """First and last of each ``size`` rows, the last excluded."""
    for first in range(0, n_rows, size):
        yield first, min(n_rows, first + size)


def own_tests(problem: JoinProblem, atom: JoinAtom) -> list[RowTest]:
    """What the conditions of the atom's own variables, and its equal columns, say of its rows."""
    column_of = dict(zip(atom.variables, atom.columns, strict=True))
    ranges: dict[int, list[tuple[int, int, str]]] = {}
    others: list[RowTest] = []
    ranked: list[RowTest] = []
    for condition in own_conditions(problem, atom):
        column, label = column_of[condition.left], condition.label
        if condition.left in problem.labels:
            label = f"{atom.schema.columns[column].name} = {problem.labels[condition.left]}"
        if condition.right is not None:
            test = RowTest((column, column_of[condition.right]), _compared(condition), label)
            (others if condition.ranked is None else ranked).append(test)
            for name in condition.variables if condition.ranked is not None else ():
                place = column_of[name]
                if atom.schema.columns[place].type.nullable:  # another atom may bind it without NULL
                    ranges.setdefault(place, []).append((NULL_CODE + 1, KEY_MAX, f"{name} is not null"))
        elif condition.operator == "!=":
            others.append(RowTest((column,), _differing(condition.offset), label))
        else:
            ranges.setdefault(column, []).append((*_range(condition), label))
    for pair in atom.equal:
        first, second = (atom.schema.columns[column].name for column in pair)
        others.append(RowTest(pair, ON_ARRAYS["="], f"{first} = {second}"))
    tests = []
    for column, limits in ranges.items():
        low, high = max(low for low, _, _ in limits), min(high for _, high, _ in limits)
        labels = dict.fromkeys(label for _, _, label in limits)
        tests.append(RowTest((column,), _between(low, high), ", ".join(labels)))
    return [*tests, *others, *ranked]


def own_conditions(problem: JoinProblem, atom: JoinAtom) -> list[JoinCondition]:
    """Conditions whose variables are all the atom's."""
    return [c for c in problem.conditions if set(c.variables) <= set(atom.variables)]


def membership(column: int, keys: KeySet, label: str) -> RowTest:
    """Whether a column's code is among others."""
    return RowTest((column,), keys.holds, label)


def _range(condition: JoinCondition) -> tuple[int, int]:
    """The least and the greatest code that a comparison with a constant leaves."""
    code = condition.offset
    return {
        "<": (KEY_MIN, code - 1),
        "<=": (KEY_MIN, code),
        ">": (code + 1, KEY_MAX),
        ">=": (code, KEY_MAX),
        "=": (code, code),
    }[condition.operator]


def _between(low: int, high: int) -> Callable[[np.ndarray], np.ndarray]:
    def holds(codes: np.ndarray) -> np.ndarray:
        if low > high:
            return np.zeros(len(codes), dtype=bool)
        if low == high:
            return codes == low
        if low == KEY_MIN:
            return codes <= high
        if high == KEY_MAX:
            return codes >= low
        return (codes >= low) & (codes <= high)

    return holds


def _differing(code: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda codes: codes != code


def _compared(condition: JoinCondition) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """``left OP right + offset``; a sum beyond int64 is beyond every code."""
    compare, offset = ON_ARRAYS[condition.operator], condition.offset
    if condition.ranked is not None:
        ranks = condition.ranked.ranks()
        return lambda left, right: compare(ranks[left], ranks[right])
    if not offset:
        return compare
    # The sum is a code where right is at least `least` and at most `most`.
    least, most = max(KEY_MIN, KEY_MIN - offset), min(KEY_MAX, KEY_MAX - offset)
    beyond = condition.operator in (("<", "<=") if offset > 0 else (">", ">="))

    def holds(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        is_code = (right >= least) & (right <= most)
        return np.where(
            is_code, compare(left, right + np.int64(offset)), beyond or condition.operator == "!="
        )

    return holds


def tests_text(tests: Sequence[RowTest]) -> str:
    """For ``explain``."""
    return ", ".join(test.label for test in tests)
