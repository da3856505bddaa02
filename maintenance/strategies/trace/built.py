"""`Built`: what one evaluation of a body left, how it has worn since, and how far it is recorded anew.

Invariants

1. While ``left`` is not None the records that are not old cover all that is not left
   (:mod:`maintenance.strategies.trace.body_trace`).
2. :meth:`Built.begin` and :meth:`Built.end` may be left half way and done again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indices.sensitivity import SensitivityIndex
from lftj.search.regions.evaluation import whole
from lftj.storage.index_version import IndexVersion

RENEWED_FROM = 1 << 14
"""Operations in vain that are not worth recording anew, however small the rule."""

GROWN_LEAST = 1 << 12
"""More records, or dead ones, in an index that are not worth recording anew."""


@dataclass
class Built:
    """What one evaluation of a body left, and how it has worn since."""

    sensitivity: list[SensitivityIndex]
    """By stream."""
    n_records: list[int]
    """How many each index had."""
    operations: int = 0
    wasted_operations: int = 0
    witnesses: IndexVersion | None = None
    left: np.ndarray | None = None
    """The regions that are still to be recorded anew; None where the body is not being renewed."""
    renewed_operations: int = 0
    """What that has taken so far."""

    @classmethod
    def of(cls, sensitivity: list[SensitivityIndex], operations: int = 0) -> Built:
        return cls(sensitivity, [index.n_records for index in sensitivity], operations)

    @property
    def is_worn(self) -> bool:
        """Whether tests in vain have cost as much as building, records have doubled, or most are dead."""
        if self.wasted_operations > max(RENEWED_FROM, self.operations):
            return True
        for index, built in zip(self.sensitivity, self.n_records, strict=True):
            n_records = index.n_records
            if n_records > GROWN_LEAST + 2 * built or index.n_dead > GROWN_LEAST + n_records:
                return True
        return False

    def begin(self, depths: int) -> None:
        """Let the records be old, and everything be left."""
        for index in self.sensitivity:
            index.set_apart()
        self.renewed_operations = 0
        self.left = whole(depths)

    def end(self) -> None:
        """Everything was recorded anew."""
        for index in self.sensitivity:
            index.drop_old()
        self.n_records = [index.n_records for index in self.sensitivity]
        self.operations, self.wasted_operations = self.renewed_operations, 0
        self.left = None
