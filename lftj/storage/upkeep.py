"""Upkeep: what keeping indices in step has cost since somebody asked for them, and when that is too much.

An index that commits step although nobody asks for it is rent that is paid for nothing; to give it up and
build it again when it is asked for is the price of buying.  Who gives it up when the rent has come to the
price pays at most twice what would have been right, whatever is asked for when (ski rental).

But to buy within a commit would let that one take as long as the data are many.  So what installed rules read
is *held*: it is kept in step however seldom it is asked for.  Rent is paid for what queries asked for alone.

Invariants

1. What an index owes is what its steps cost since it was last asked for; to ask pays the debt.
2. All versions of a relation share one account: what is asked of an old one counts too.
3. An index that is held is not given up; and one that was asked for is there from the next version on, also
   where it was asked of a version that had a later one already.

Costs are counted in rows that a build reads; a version's step costs ``STEP_ROWS`` of them, the changed rows
and what was merged (:mod:`indices.housekeeping`).
"""

from __future__ import annotations

from collections.abc import Collection

from lftj.storage.catalog import IndexKey
from lftj.storage.index_version import IndexVersion

STEP_ROWS = 100
"""A step of one tuple takes about as long as to build so many rows of an index."""

BUILD_LEAST = 1 << 12
"""A build takes as long as one of so many rows more than it has."""


def build_cost(n_rows: int) -> int:
    """What building an index of so many rows takes."""
    return BUILD_LEAST + n_rows


class Upkeep:
    """What each index of a relation owes.

    >>> import numpy as np
    >>> from lftj.storage.trie import Trie
    >>> index = IndexVersion(Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])]))
    >>> upkeep, key = Upkeep(), ((1, 0), ())
    >>> upkeep.paid(key, 4_000)
    >>> upkeep.is_too_much(key, index)
    False
    >>> upkeep.paid(key, 99)
    >>> upkeep.is_too_much(key, index)
    True
    >>> upkeep.asked(key)
    >>> upkeep.is_too_much(key, index)
    False
    >>> upkeep.paid(key, 9_999)
    >>> upkeep.hold([key])
    >>> upkeep.is_too_much(key, index), upkeep.missing([])
    (False, [((1, 0), ())])
    """

    def __init__(self) -> None:
        self._debts: dict[IndexKey, int] = {}
        self._held: frozenset[IndexKey] = frozenset()
        self.read: frozenset[int] = frozenset()
        """Columns that installed rules read."""

    def hold(self, keys: Collection[IndexKey], read: Collection[int] = ()) -> None:
        """These are the indices and columns that installed rules read."""
        self._held, self.read = frozenset(keys), frozenset(read)

    @property
    def held(self) -> tuple[Collection[IndexKey], Collection[int]]:
        """What :meth:`hold` was told."""
        return self._held, self.read

    def missing(self, there: Collection[IndexKey]) -> list[IndexKey]:
        """Indices that are held and were asked for, other than those that are there."""
        return [key for key in self._held if key in self._debts and key not in there]

    def asked(self, key: IndexKey) -> None:
        """Somebody uses an index."""
        self._debts[key] = 0

    def paid(self, key: IndexKey, cost: int) -> None:
        """A step of an index has cost so much."""
        self._debts[key] = self._debts.get(key, 0) + cost

    def is_too_much(self, key: IndexKey, index: IndexVersion) -> bool:
        """Whether an index would better be built again when it is asked for."""
        debt = 0 if key in self._held else self._debts.get(key, 0)
        return debt >= BUILD_LEAST and debt >= build_cost(index.n_tuples)
