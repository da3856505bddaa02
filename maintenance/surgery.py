"""Tree surgeries: the branches of an index's trie that a change inserted or erased (ILFTJ 4.2.1).

A change of one tuple is a surgery at the tuple's last level, and at each level
above whose branch comes with it or goes with it.

Cost: O(changed tuples * levels * log n).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lftj.index_version import IndexVersion, surgeries
from lftj.relation_version import IndexKey, RelationVersion, index_change
from maintenance.write_buffer import Change


class Surgeries:
    """Branches of one index: branch i is ``rows[0 .. levels[i], tuples[i]]``, +1 inserted, -1 erased.

    ``rows``: int64 (levels of the index, changed tuples), sorted by column.
    """

    def __init__(self, rows: np.ndarray, levels: np.ndarray, tuples: np.ndarray, signs: np.ndarray) -> None:
        self.rows = rows
        self.levels = levels
        self.tuples = tuples
        self.signs = signs
        self._by_level: dict[int, tuple[list[np.ndarray], np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self.signs)

    def at_level(self, level: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The branches of a level, as one column per level of their path, and their signs."""
        found = self._by_level.get(level)
        if found is None:
            here = self.levels == level
            path = self.rows[: level + 1, self.tuples[here]]
            found = self._by_level[level] = list(path), self.signs[here]
        return found


def find_surgeries(index: IndexVersion, columns: Sequence[np.ndarray], weights: np.ndarray) -> Surgeries:
    """The surgeries of a change, given the index *after* it and the changed tuples in the index's order.

    >>> from lftj.trie import Trie
    >>> before = IndexVersion(Trie.from_sorted([np.array([1, 1]), np.array([3, 5])]))
    >>> change = [np.array([1, 4]), np.array([3, 9])], np.array([-1, 1])
    >>> found = find_surgeries(before.advance(*change), *change)
    >>> for level, row, sign in zip(found.levels, found.tuples, found.signs):
    ...     print(level, found.rows[: level + 1, row].tolist(), sign)
    1 [1, 3] -1
    0 [4] 1
    1 [4, 9] 1
    """
    rows = np.ascontiguousarray(np.stack(columns))
    room = rows.size
    levels, tuples, signs = (np.empty(room, dtype=np.int64) for _ in range(3))
    found = surgeries(index.memory, rows, weights, levels, tuples, signs)
    return Surgeries(rows, levels[:found], tuples[:found], signs[:found])


def surgeries_between(
    versions: Mapping[str, RelationVersion], changes: Mapping[str, Change]
) -> Callable[[str, IndexKey], Surgeries | None]:
    """The surgeries of one index of one relation in a round, each found once; None where there is none.

    ``versions``: after the changes.
    """
    found: dict[tuple[str, IndexKey], Surgeries | None] = {}

    def surgeries_of(relation: str, key: IndexKey) -> Surgeries | None:
        change = changes.get(relation)
        if change is None:
            return None
        if (relation, key) not in found:
            columns, weights = index_change(key, change.columns, change.weights)
            index = versions[relation].index_at(key)
            found[relation, key] = find_surgeries(index, columns, weights) if len(weights) else None
        return found[relation, key]

    return surgeries_of
