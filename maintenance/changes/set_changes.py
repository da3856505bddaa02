"""A table's feed of inserted and deleted rows as changes of the *set* of its rows.

A table may hold a row several times; a relation holds it once.  When one of two equal rows is deleted, the
relation keeps the tuple:

    count(row, v - 1) = count(row, v) - net(row, v)        net: inserted less deleted in version v
    change(row, v)    = [count(row, v) > 0] - [count(row, v - 1) > 0]

So the counts at the last version, of rows of which some were deleted, give all changes, from the last back
to the first.  Rows that were only inserted need no count: to insert a tuple that is there changes nothing.

Cost: one sort of the feed's n rows, and, where rows were deleted, one sort of the table, in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.sorting import first_rows_of_equal

_WANTED = 1 << 40
"""The weight of a row whose copies are counted: there are never so many copies."""

_PIECE_ROWS = 1 << 20


class VersionedChanges(NamedTuple):
    """``rows``: int64 (columns, n), sorted, and those that are alike by version; ``versions`` and ``signs``,
    +1 or -1: int64 (n,)."""

    rows: np.ndarray
    versions: np.ndarray
    signs: np.ndarray


class NetFeed:
    """The feed, netted by row and version.

    >>> feed = NetFeed([np.array([7, 5, 7])], np.array([1, 1, 2]), np.array([1, 1, -1]))
    >>> feed.deleted.tolist()
    [[7]]
    >>> changes = feed.changes(np.array([2]))  # two copies are left
    >>> changes.rows.tolist(), changes.versions.tolist(), changes.signs.tolist()
    ([[5]], [1], [1])
    """

    def __init__(self, columns: Columns, versions: np.ndarray, weights: np.ndarray) -> None:
        rows, self._net = net_rows([*columns, versions], weights)
        self._rows, self._versions = rows[:-1], rows[-1]
        self._starts = first_rows_of_equal(list(self._rows), len(self._net))
        negative = np.minimum.reduceat(self._net, self._starts) < 0 if len(self._net) else self._net > 0
        self._had_deletes = negative

    @property
    def deleted(self) -> np.ndarray:
        """The rows of which a version deleted more than it inserted, each once, sorted.

        int64 (columns, m).
        """
        return self._rows[:, self._starts[self._had_deletes]]

    def changes(self, counts: np.ndarray | None) -> VersionedChanges:
        """What each version did to the set of rows.

        ``counts``: how many copies of each row of :attr:`deleted` there are after the last version; None: the
        table never holds two equal rows.
        """
        signs = np.sign(self._net)
        if counts is not None and len(signs):
            sizes = np.diff(np.append(self._starts, len(signs)))
            row_of = np.repeat(np.arange(len(sizes)), sizes)
            so_far = np.cumsum(self._net)
            last = so_far[self._starts + sizes - 1]
            copies = np.zeros(len(sizes), np.int64)
            copies[self._had_deletes] = counts
            after = copies[row_of] - (last[row_of] - so_far)
            exact = (after > 0).astype(np.int64) - (after - self._net > 0)
            signs = np.where(self._had_deletes[row_of], exact, signs)
        changed = np.flatnonzero(signs)
        return VersionedChanges(self._rows[:, changed], self._versions[changed], signs[changed])


def net_change(changes: VersionedChanges) -> tuple[np.ndarray, np.ndarray]:
    """All versions together: the rows, sorted, and +1 or -1.

    >>> rows, versions, signs = np.array([[5, 5, 7]]), np.array([1, 2, 2]), np.array([1, -1, 1])
    >>> rows, signs = net_change(VersionedChanges(rows, versions, signs))
    >>> rows.tolist(), signs.tolist()
    ([[7]], [1])
    """
    rows, weights = net_rows(changes.rows, changes.signs)
    return rows, np.sign(weights)


def counts_of(wanted: np.ndarray, batches: Iterable[Columns]) -> np.ndarray:
    """How often each wanted row comes in the batches; ``wanted``: sorted and distinct, int64 (columns, m).

    >>> counts_of(np.array([[5, 7, 9]]), [[np.array([7, 8])], [np.array([7, 9])]]).tolist()
    [0, 2, 1]
    """
    counts = np.zeros(wanted.shape[1], np.int64)
    for piece in _pieces(batches):
        n_rows = len(piece[0])
        weights = np.concatenate([np.full(len(counts), _WANTED), np.ones(n_rows, np.int64)])
        table = [np.concatenate(pair) for pair in zip(wanted, piece, strict=True)]
        _, sums = net_rows(table, weights)
        counts += sums[sums >= _WANTED] - _WANTED
    return counts


def _pieces(batches: Iterable[Columns]) -> Iterator[list[np.ndarray]]:
    """The batches' columns, some batches at a time: each sort is of many rows."""
    waiting: list[Columns] = []
    n_rows = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += len(batch[0])
        if n_rows >= _PIECE_ROWS:
            yield [np.concatenate(parts) for parts in zip(*waiting, strict=True)]
            waiting, n_rows = [], 0
    if n_rows:
        yield [np.concatenate(parts) for parts in zip(*waiting, strict=True)]
