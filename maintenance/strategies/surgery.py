"""Tree surgeries: the branches of an index's trie that a change inserted or erased (ILFTJ 4.2.1).

A change of one tuple is a surgery at the tuple's last level, and at each level
above whose branch comes with it or goes with it.  The surgeries of an index are found when a
body first asks for them, once for all bodies of a round; those of the last level need no index.

Cost: O(changed tuples * levels * log n), or nothing where only the last level is asked for.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from indices.compiled import kernel
from lftj.storage.index_version import IndexVersion
from lftj.storage.net_weights import surgeries
from lftj.storage.relation_version import IndexKey, index_change
from lftj.storage.signed_rows import Columns, table_of
from maintenance.strategies.strategy import Round


class Surgeries:
    """Branches of one index: branch i is ``rows[0 .. levels[i], tuples[i]]``, +1 inserted, -1 erased.

    ``rows``: int64 (levels of the index, changed tuples), sorted by column.
    """

    def __init__(self, index: Callable[[], IndexVersion], rows: np.ndarray, weights: np.ndarray) -> None:
        """``index``: gives it, after the change; ``rows``: the changed tuples, in the index's order."""
        self.rows = rows
        self._index = index
        self._weights = weights
        self._by_level = {len(rows) - 1: (rows, weights)}

    def __len__(self) -> int:
        return len(self.signs)

    @cached_property
    def _found(self) -> np.ndarray:
        found = np.empty((3, self.rows.size), dtype=np.int64)
        n = surgeries(self._index().memory, self.rows, self._weights, *found)
        return np.ascontiguousarray(found[:, :n])

    @property
    def levels(self) -> np.ndarray:
        return self._found[0]

    @property
    def tuples(self) -> np.ndarray:
        return self._found[1]

    @property
    def signs(self) -> np.ndarray:
        return self._found[2]

    def at_level(self, level: int) -> tuple[np.ndarray, np.ndarray]:
        """The branches of a level, int64 (levels of their path, branches), and their signs."""
        found = self._by_level.get(level)
        if found is None:
            found = self._by_level[level] = _branches_of(self.rows, self._found, level)
        return found

    def reweighed_at(self, level: int) -> np.ndarray:
        """The branches of a level that neither came nor went, and have another number of tuples below them.

        int64 (levels of their path, branches), sorted.
        """
        return _reweighed(self.rows, self._weights, self._found, level)


@kernel(makes_arrays=True)
def _reweighed(rows, weights, found, level):
    """The paths of a level below which changes don't add up to 0, less those of branches that came or went.

    rows: int64 (levels, tuples), sorted; weights: int64 (tuples,); found: as in _branches_of.
    """
    n = rows.shape[1]
    is_surgery = np.zeros(n, np.bool_)
    for branch in range(found.shape[1]):
        if found[0, branch] == level:
            is_surgery[found[1, branch]] = True
    paths = np.empty((level + 1, n), np.int64)
    kept = 0
    first = 0
    while first < n:
        last = first
        change = np.int64(0)
        came_or_went = False
        alike = True
        while alike:
            change += weights[last]
            came_or_went = came_or_went or is_surgery[last]
            last += 1
            alike = last < n
            if alike:
                for above in range(level + 1):
                    alike = alike and rows[above, last] == rows[above, first]
        if change != 0 and not came_or_went:
            for above in range(level + 1):
                paths[above, kept] = rows[above, first]
            kept += 1
        first = last
    return paths[:, :kept].copy()


@kernel(makes_arrays=True)
def _branches_of(rows, found, level):
    """The paths and signs of the branches of a level.

    rows: int64 (levels, tuples); found: int64 (3, branches), each branch's level, tuple and sign.
    """
    n = 0
    for branch in range(found.shape[1]):
        n += found[0, branch] == level
    path = np.empty((level + 1, n), dtype=np.int64)
    signs = np.empty(n, dtype=np.int64)
    at = 0
    for branch in range(found.shape[1]):
        if found[0, branch] == level:
            for above in range(level + 1):
                path[above, at] = rows[above, found[1, branch]]
            signs[at] = found[2, branch]
            at += 1
    return path, signs


def find_surgeries(index: IndexVersion, columns: Columns, weights: np.ndarray) -> Surgeries:
    """The surgeries of a change, given the index *after* it and the changed tuples in the index's order.

    >>> from lftj.storage.trie import Trie
    >>> before = IndexVersion(Trie.from_sorted([np.array([1, 1]), np.array([3, 5])]))
    >>> change = [np.array([1, 4]), np.array([3, 9])], np.array([-1, 1])
    >>> found = find_surgeries(before.advance(*change), *change)
    >>> for level, row, sign in zip(found.levels, found.tuples, found.signs):
    ...     print(level, found.rows[: level + 1, row].tolist(), sign)
    1 [1, 3] -1
    0 [4] 1
    1 [4, 9] 1
    """
    return Surgeries(lambda: index, table_of(columns, len(weights)), weights)


def surgeries_in(change: Round, relation: str, key: IndexKey) -> Surgeries | None:
    """The surgeries of one index of one relation in a round; None where there is none."""
    delta = change.changes.get(relation)
    if delta is None:
        return None

    def found() -> Surgeries | None:
        rows, weights = index_change(key, delta.columns, delta.weights)
        version = change.new[relation]
        return Surgeries(lambda: version.index_at(key), rows, weights) if len(weights) else None

    return change.shared.once((delta, key), found)
