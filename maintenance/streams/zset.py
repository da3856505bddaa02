"""`ZSet`: rows with integer weights, the group in which relations and their changes are values (DBSP 4.1).

Invariants: no weight is 0, so equal Z-sets have equal rows; a Z-set is not changed once it is made.
Cost: a sum copies the larger side, unless one is 0; a join goes through all pairs of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa


class ZSet(dict[Any, int]):
    """Rows and their weights; those of pairs of one row add up, and a row that is not there has 0.

    >>> ZSet({"joe": 1, "anne": -1}) + ZSet.of(["anne", "bo"])
    {'bo': 1, 'joe': 1}
    """

    def __init__(self, weights: Mapping[Any, int] | Iterable[tuple[Any, int]] = ()) -> None:
        super().__init__()
        self._add(weights.items() if isinstance(weights, Mapping) else weights)

    def _add(self, pairs: Iterable[tuple[Any, int]]) -> None:
        for row, weight in pairs:
            if total := self[row] + weight:
                self[row] = total
            else:
                self.pop(row, None)

    def __missing__(self, row: Any) -> int:
        return 0

    @staticmethod
    def of(rows: Iterable[Any]) -> ZSet:
        """Each row with the weight 1, as often as it comes."""
        return ZSet((row, 1) for row in rows)

    @staticmethod
    def of_table(table: pa.Table) -> ZSet:
        """Rows as tuples, the weight in the last column, as in ``tx.changes[head]``."""
        *columns, weights = (column.to_pylist() for column in table.columns)
        return ZSet(zip(zip(*columns, strict=True), weights, strict=True))

    def __add__(self, other: ZSet) -> ZSet:
        less, more = sorted((self, other), key=len)
        if not less:
            return more
        total = ZSet()
        total.update(more)
        total._add(less.items())
        return total

    def __neg__(self) -> ZSet:
        return ZSet((row, -weight) for row, weight in self.items())

    def __sub__(self, other: ZSet) -> ZSet:
        return self + -other

    def distinct(self) -> ZSet:
        """Rows of a positive weight, with the weight 1 (Definition 4.3)."""
        return ZSet.of(row for row, weight in self.items() if weight > 0)

    def distinct_change(self, change: ZSet) -> ZSet:
        """How :meth:`distinct` changes with a change: H of Proposition 4.7, in the time of the change."""
        return ZSet((row, (self[row] + w > 0) - (self[row] > 0)) for row, w in change.items())
