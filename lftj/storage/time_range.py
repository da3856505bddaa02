"""The rows of a range of times, found in an index whose first level has them.

Cost: O(r + u log n) for r rows that were ever in the range since the base was made, and u runs.
"""

from __future__ import annotations

import numpy as np

from lftj.storage.index_version import IndexVersion
from lftj.storage.signed_rows import gathered, net_rows
from lftj.storage.trie import Trie


def rows_between(index: IndexVersion, low: int | None, high: int | None) -> np.ndarray:
    """The present tuples with a first key from ``low`` on, and below ``high``, sorted; None: of no bound.

    >>> first = IndexVersion(Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])]))
    >>> second = first.advance([np.array([1, 2]), np.array([5, 9])], np.array([-1, 1]))
    >>> rows_between(second, None, 4).tolist(), rows_between(second, 2, 4).tolist()
    ([[1, 2], [3, 9]], [[2], [9]])
    """
    rows = _base_rows(index.base, low, high)
    parts = [(rows, np.ones(len(rows[0]), np.int64))]
    for run in index.runs:
        columns = run.columns(index.levels)
        start, end = _bounds(columns[0], low, high)
        if start < end:
            parts.append(([column[start:end] for column in columns], run.weights_of(start, end)))
    present, _ = net_rows(*gathered(parts))
    return present if isinstance(present, np.ndarray) else np.array(present)


def _base_rows(base: Trie, low: int | None, high: int | None) -> list[np.ndarray]:
    columns = []
    start, end = _bounds(base.keys[0], low, high)
    for level, keys in enumerate(base.keys):
        leaves = np.arange(start, end + 1)  # of the nodes, and behind the last
        for children in base.children[level:]:
            leaves = children[leaves]
        columns.append(np.repeat(keys[start:end], np.diff(leaves)))
        if level + 1 < base.n_levels:
            start, end = (int(base.children[level][node]) for node in (start, end))
    return columns


def _bounds(sorted_keys: np.ndarray, low: int | None, high: int | None) -> tuple[int, int]:
    start = 0 if low is None else int(np.searchsorted(sorted_keys, np.int64(low)))
    end = len(sorted_keys) if high is None else int(np.searchsorted(sorted_keys, np.int64(high)))
    return start, max(start, end)
