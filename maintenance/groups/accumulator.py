"""What makes an aggregate's values from the changes of its groups: the base class, and what it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from lftj.storage.signed_rows import Columns
from maintenance.staged import Staged


class GroupRows(NamedTuple):
    """Net signed rows of one step, sorted by group; group g is the rows ``[offsets[g], offsets[g + 1])``."""

    keys: Columns  # one entry per group
    slots: np.ndarray  # of each group
    counts: np.ndarray  # assignments of each group after the step, >= 0
    offsets: np.ndarray
    arguments: Columns  # one entry per row
    weights: np.ndarray  # signed, never 0
    n_slots: int  # of all groups, those of the step included
    are_unscaled: bool = False  # whether arguments are decimals in units of their last digit, not codes


class Accumulator(Staged, ABC):
    """What makes an aggregate's values from changes; groups are known by their slots."""

    @abstractmethod
    def stage(self, rows: GroupRows) -> np.ndarray:
        """The new value code of each group, any code where the count is 0; nothing is published.

        Of several aggregates: int64 (groups, aggregates).

        Raises :class:`~lftj.errors.RangeError` for a value that its type does not hold; then nothing
        is staged.
        """

    @abstractmethod
    def add(self, rows: GroupRows) -> None:
        """Take rows of groups that are being built: nothing was kept yet, and values are asked for later.

        What was added is kept or dropped like what is staged.
        """

    @abstractmethod
    def values(self, keys: Columns, slots: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The value codes of groups that were built, all of which have assignments.

        ``counts``: of the assignments, by group.  Raises as :meth:`stage`.
        """

    @abstractmethod
    def remapped(self, kept: np.ndarray) -> Accumulator:
        """One whose slot i is slot ``kept[i]`` of this; the others are gone.  Nothing is staged."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory taken."""
