"""The first tuples of an index version, found without adding its runs up: what a repr shows.

The base is read up to some tuple, the *bound*.  Base and runs up to the bound, netted, are all present tuples
up to the bound; where they are too few, a later bound is taken.

Cost: O(n) for n tuples plus the runs' tuples up to the bound, which lies the further the more of the first
tuples were erased; never more than adding all up.
"""

from __future__ import annotations

import numpy as np

from lftj.storage.index_version import IndexVersion
from lftj.storage.runs import IndexRun
from lftj.storage.signed_rows import gathered, net_rows
from lftj.storage.trie import Trie

_LATER = 8  # the next bound lies so many times as far


def first_tuples(index: IndexVersion, n: int) -> list[np.ndarray]:
    """The first ``n`` present tuples in index order, fewer where there are no more; one column per level.

    >>> first = IndexVersion(Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])]))
    >>> second = first.advance([np.array([1, 4]), np.array([3, 1])], np.array([-1, 1]))
    >>> [column.tolist() for column in first_tuples(second, 2)]
    [[1, 4], [5, 1]]
    """
    n_read = max(n, 1)
    while True:
        rows = _base_rows(index.base, n_read)
        whole = n_read >= index.base.n_tuples
        parts = [(rows, np.ones(len(rows[0]), np.int64))]
        for run in index.runs:
            end = run.n_tuples if whole else _place_behind(run, [int(column[-1]) for column in rows])
            sums = run.rows[index.levels * run.n_tuples :]
            parts.append(([column[:end] for column in run.columns(index.levels)], np.diff(sums[: end + 1])))
        present, _ = net_rows(*gathered(parts))
        if whole or len(present[0]) >= n:
            return [column[:n] for column in present]
        n_read *= _LATER


def _base_rows(base: Trie, n: int) -> list[np.ndarray]:
    """The first ``n`` tuples of a trie, one column per level."""
    columns = []
    for level, keys in enumerate(base.keys):
        starts = np.arange(min(len(keys), n) + 1)  # of the tuples below each node
        for children in base.children[level:]:
            starts = children[starts]
        columns.append(np.repeat(keys[: len(starts) - 1], np.diff(np.minimum(starts, n))))
    return columns


def _place_behind(run: IndexRun, bound: list[int]) -> int:
    """How many tuples of a run are at most ``bound``."""
    start, end = 0, run.n_tuples
    for column, key in zip(run.columns(len(bound)), bound, strict=True):
        among = column[start:end]
        end = start + int(np.searchsorted(among, np.int64(key), side="right"))
        start += int(np.searchsorted(among, np.int64(key)))
    return end
