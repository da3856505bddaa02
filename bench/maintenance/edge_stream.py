"""`EdgeStream`: single-edge changes of a graph, half of them erasing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench import graphs

Edge = tuple[int, int]


class EdgeStream:
    """Random changes of a set of edges, each of them a change indeed.

    An erasure takes any edge that is there, all alike.  An insertion is, half of
    the time each, an edge of ``fresh`` that is not there, or one that was erased.

    Invariant: ``edges`` holds exactly the edges that are there, each at its ``places``.

    >>> stream = EdgeStream([(1, 2), (2, 3)], iter([(1, 2), (7, 8)]), seed=1)
    >>> weight, edge = next(stream)
    >>> weight, len(stream.edges)
    (-1, 1)
    >>> next(stream)[0], len(stream.edges)
    (1, 2)
    """

    def __init__(self, edges: list[Edge], fresh: Iterator[Edge], seed: int) -> None:
        self.edges = edges
        self._places = {edge: place for place, edge in enumerate(edges)}
        self._fresh = fresh
        self._erased: list[Edge] = []
        self._generator = np.random.default_rng(seed)
        self._erases = False

    def __iter__(self) -> Iterator[tuple[int, Edge]]:
        return self

    def __next__(self) -> tuple[int, Edge]:
        """The next change: -1 (erase) or +1 (insert), in turn, and the edge."""
        self._erases = not self._erases
        if self._erases:
            return -1, self._erase()
        return 1, self._insert()

    def _erase(self) -> Edge:
        place = int(self._generator.integers(len(self.edges)))
        edge, last = self.edges[place], self.edges.pop()
        del self._places[edge]
        if last != edge:
            self.edges[place] = last
            self._places[last] = place
        self._erased.append(edge)
        return edge

    def _insert(self) -> Edge:
        edge = self._absent()
        self._places[edge] = len(self.edges)
        self.edges.append(edge)
        return edge

    def _absent(self) -> Edge:
        if self._generator.random() < 0.5:
            for edge in self._fresh:
                if edge not in self._places:
                    return edge
        while True:  # the edge erased last is always there to come back
            edge = self._erased.pop(int(self._generator.integers(len(self._erased))))
            if edge not in self._places:
                return edge


def rmat_stream(source: np.ndarray, destination: np.ndarray, scale: int, seed: int = 1) -> EdgeStream:
    """Changes of the RMAT graph of a scale; fresh edges come from the same generator with other seeds."""
    edges = list(zip(source.tolist(), destination.tolist(), strict=True))
    return EdgeStream(edges, _fresh(scale), seed)


def _fresh(scale: int) -> Iterator[Edge]:
    seed = 2
    while True:
        drawn = graphs.rmat(scale, seed=seed)
        order = np.random.default_rng(seed).permutation(len(drawn[0]))
        yield from zip(drawn[0][order].tolist(), drawn[1][order].tolist(), strict=True)
        seed += 1
