"""The new facts of a recursive head that loses none, by presence alone: nothing is counted.

Invariant: a fact is new if it was not there before the step and has not come in it.

Cost: a sort of the instances, and a look-up per distinct head.
"""

from __future__ import annotations

import numpy as np

from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns
from lftj.storage.sorting import sort_distinct
from lftj.storage.tuple_set import TupleSet


class SeenFacts:
    """One head's, as a step that only gains asks a `StageTable` for them; new facts have numbers."""

    def __init__(self, old: RelationVersion) -> None:
        self._old = old
        self._new = TupleSet(len(old.schema.columns))
        self._n_seen = 0

    def gain(self, columns: Columns, highs: np.ndarray) -> np.ndarray:
        """Enter instances, whose highs are of no account; returns the numbers of heads that are new."""
        columns = sort_distinct(list(columns))
        absent = self._old.weights(columns) == 0
        self._new.add([column[absent] for column in columns])
        first, self._n_seen = self._n_seen, self._new.n_rows
        return np.arange(first, self._n_seen)

    def facts_of(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The facts of numbers that follow each other, sorted; their ranks are 1."""
        rows = self._new.since(int(numbers[0]), int(numbers[-1]) + 1)
        return np.array(sort_distinct(list(rows))), np.ones(len(numbers), np.int64)

    def change(self) -> tuple[list[np.ndarray], np.ndarray]:
        """What the step did so far: sorted facts, 1 for each."""
        return self._new.sorted_columns(), np.ones(self._new.n_rows, np.int64)
