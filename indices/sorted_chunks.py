"""`SortedChunks`: a sorted map from int64 to int64; a few pairs more cost little, whatever its size.

The pairs lie in *chunks*, short sorted arrays.  A map is immutable: one with more pairs shares the chunks
that none of them falls into.

Invariants (:meth:`SortedChunks.check_invariants` asserts them)

1. Keys are strictly increasing, within chunks and from one to the next.
2. No chunk is empty, and none is longer than ``2 * CHUNK``.

Cost, for m keys in n pairs: a look-up O(log n) each, and a few calls of numpy per chunk that is touched.  New
pairs cost a copy of the chunks that they fall into and of the list of chunks, O(n / CHUNK); more of them than
there are chunks are sorted in with all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from indices.housekeeping import housekeeping

CHUNK = 512
"""Pairs of a chunk when it is new."""


class SortedChunks:
    """Pairs of key and value.

    >>> pairs = SortedChunks.of(np.array([3, 7]), np.array([30, 70])).with_more(np.array([5]), np.array([50]))
    >>> len(pairs), pairs.values(np.array([7, 5])).tolist(), pairs.has(np.array([4, 3])).tolist()
    (3, [70, 50], [False, True])
    >>> [column.tolist() for column in pairs.at(np.array([1, 2]))]
    [[5, 7], [50, 70]]
    """

    __slots__ = ("_chunks", "_firsts", "_starts")

    def __init__(self, chunks: Sequence[np.ndarray]) -> None:
        """``chunks``: int64 (2, pairs) each, as the module says; they are kept."""
        self._set(list(chunks), _firsts(chunks), _lengths(chunks))

    def _set(self, chunks: list[np.ndarray], firsts: np.ndarray, lengths: np.ndarray) -> None:
        self._chunks = chunks
        self._firsts = firsts
        """int64 (chunks,): the first key of each."""
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        """int64 (chunks + 1,): how many pairs lie before each."""

    @classmethod
    def of(cls, keys: np.ndarray, values: np.ndarray) -> SortedChunks:
        """Pairs with strictly increasing keys."""
        return cls(_cut(np.stack([keys, values])))

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def nbytes(self) -> int:
        return 16 * (len(self) + len(self._chunks))

    def pairs(self) -> np.ndarray:
        """All pairs, int64 (2, n)."""
        return np.concatenate([np.empty((2, 0), np.int64), *self._chunks], axis=1)

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Which keys there are, bool."""
        return self._looked_up(keys)[1]

    def values(self, keys: np.ndarray) -> np.ndarray:
        """The values of keys, all of which there are."""
        return self._looked_up(keys)[0]

    def at(self, places: np.ndarray) -> np.ndarray:
        """The pairs at some places in the order of keys, from 0 on: int64 (2, places)."""
        found = np.empty((2, len(places)), np.int64)
        for number, rows in _groups(np.searchsorted(self._starts, places, side="right") - 1):
            found[:, rows] = self._chunks[number][:, places[rows] - self._starts[number]]
        return found

    def with_more(self, keys: np.ndarray, values: np.ndarray) -> SortedChunks:
        """With pairs that have other keys: strictly increasing ones."""
        more = np.stack([keys, values])
        if len(keys) > len(self._chunks):
            housekeeping.rows += len(self)
            pairs = np.concatenate([self.pairs(), more], axis=1)
            return SortedChunks(_cut(pairs[:, np.argsort(pairs[0], kind="stable")]))
        chunks: list[np.ndarray] = []
        firsts, lengths, done = [], [], 0
        for number, rows in _groups(self._chunks_of(keys)):
            chunk, new = self._chunks[number], more[:, rows]
            housekeeping.rows += chunk.shape[1]
            pieces = _cut(np.insert(chunk, np.searchsorted(chunk[0], new[0]), new, axis=1))
            chunks += chain(self._chunks[done:number], pieces)
            firsts += [self._firsts[done:number], _firsts(pieces)]
            lengths += [np.diff(self._starts[done : number + 1]), _lengths(pieces)]
            done = number + 1
        following = SortedChunks.__new__(SortedChunks)
        following._set(
            [*chunks, *self._chunks[done:]],
            np.concatenate([*firsts, self._firsts[done:]]),
            np.concatenate([*lengths, np.diff(self._starts[done:])]),
        )
        return following

    def check_invariants(self) -> None:
        """Assert the module's invariants; for tests."""
        assert all(0 < chunk.shape[1] <= 2 * CHUNK for chunk in self._chunks)
        keys = self.pairs()[0]
        assert (keys[1:] > keys[:-1]).all()
        assert np.array_equal(self._firsts, _firsts(self._chunks))
        assert np.array_equal(np.diff(self._starts), _lengths(self._chunks))

    def _chunks_of(self, keys: np.ndarray) -> np.ndarray:
        """The number of the chunk that each key is in, or would be."""
        return np.maximum(np.searchsorted(self._firsts, keys, side="right") - 1, 0)

    def _looked_up(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value of each key, and whether there is one."""
        values, held = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        if self._chunks:
            for number, rows in _groups(self._chunks_of(keys)):
                there, of_there = self._chunks[number]
                places = np.minimum(np.searchsorted(there, keys[rows]), len(there) - 1)
                values[rows], held[rows] = of_there[places], there[places] == keys[rows]
        return values, held


def _cut(pairs: np.ndarray) -> list[np.ndarray]:
    """Sorted pairs in chunks: a single one as long as that may be."""
    if pairs.shape[1] <= 2 * CHUNK:
        return [pairs] if pairs.shape[1] else []
    n_chunks = pairs.shape[1] // CHUNK
    ends = np.linspace(0, pairs.shape[1], n_chunks + 1).astype(np.int64).tolist()
    return [pairs[:, start:end].copy() for start, end in pairwise(ends)]


def _firsts(chunks: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([chunk[0, 0] for chunk in chunks], np.int64)


def _lengths(chunks: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([chunk.shape[1] for chunk in chunks], np.int64)


def _groups(numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each number that there is, ascending, with the places where it stands, ascending."""
    if not len(numbers):
        return
    order = np.argsort(numbers, kind="stable")
    distinct, starts = np.unique(numbers[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=True)
