"""Generated graphs: the same edges on every machine, from a seed.

Invariants

1. Every function but ``arrivals`` and ``pairs`` returns the columns of a *set* of
   edges: rows distinct and in lexicographic order.  All columns are int64.
2. ``rmat(17)`` has 971,356 edges and 8,797,688 triangles.

Source of RMAT: Chakrabarti, Zhan, Faloutsos, *R-MAT: A Recursive Model for
Graph Mining* (SDM 2004), with the Graph500 probabilities .57 .19 .19 .05.
"""

from __future__ import annotations

import numpy as np

Edges = tuple[np.ndarray, np.ndarray]
"""Two int64 columns of one length: source, destination."""


def distinct(source: np.ndarray, destination: np.ndarray) -> Edges:
    """The distinct edges in lexicographic order.  Ends must be in 0 .. 2**31 - 1.

    >>> distinct(np.array([3, 1, 3]), np.array([4, 2, 4]))
    (array([1, 3]), array([2, 4]))
    """
    words = sorted_words((source << 32) | destination)
    return words >> 32, words & 0xFFFFFFFF


def sorted_words(words: np.ndarray) -> np.ndarray:
    """The distinct words, ascending.  ``np.unique`` hashes them, which takes seconds where they end in zeros.

    >>> sorted_words(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(words)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def oriented(source: np.ndarray, destination: np.ndarray) -> Edges:
    """The undirected edges, each once as (smaller end, larger end); self-loops dropped.

    A triangle of the undirected graph is then exactly one (a, b, c) with a < b < c.

    >>> oriented(np.array([2, 1, 5]), np.array([1, 2, 5]))
    (array([1]), array([2]))
    """
    proper = source != destination
    source, destination = source[proper], destination[proper]
    return distinct(np.minimum(source, destination), np.maximum(source, destination))


def rmat(scale: int, edge_factor: int = 8, seed: int = 1) -> Edges:
    """An RMAT graph of ``2**scale`` vertices from ``edge_factor * 2**scale`` draws, oriented.

    Self-loops and repeated edges are dropped, so it has fewer edges than draws.

    >>> source, destination = rmat(10)
    >>> len(source), bool((source < destination).all())
    (6052, True)
    """
    generator = np.random.default_rng(seed)
    draws = edge_factor << scale
    source = np.zeros(draws, np.int64)
    destination = np.zeros(draws, np.int64)
    for _ in range(scale):  # one bit of both ends: which quadrant of the adjacency matrix
        quadrant = generator.random(draws)
        source = (source << 1) | (quadrant >= 0.76)
        destination = (destination << 1) | (((quadrant >= 0.57) & (quadrant < 0.76)) | (quadrant >= 0.95))
    return oriented(source, destination)


def power_law(vertices: int, edges: int, exponent: float = 0.77, offset: int = 11, seed: int = 1) -> Edges:
    """``edges`` edges whose ends are drawn by weights ``(rank + offset) ** -exponent``, oriented at random.

    Source: Chung and Lu, *Connected components in random graphs with given expected degree sequences* (2002).
    With 50,000 vertices and 200,000 edges the largest degree is 1,208, and there are 63,785 triangles.

    >>> source, destination = power_law(500, 2_000)
    >>> len(source), bool((source < destination).all())
    (2000, True)
    """
    generator = np.random.default_rng(seed)
    weights = (np.arange(vertices) + offset) ** -exponent
    labels = generator.permutation(vertices)
    drawn = generator.choice(vertices, size=(2, edges + edges // 2), p=weights / weights.sum())
    source, destination = oriented(*labels[drawn])
    kept = np.sort(generator.permutation(len(source))[:edges])
    return source[kept], destination[kept]


def arrivals(scale: int, seed: int = 1) -> Edges:
    """A stream of edges among ``2**scale`` vertices, 16 to a vertex: some come again, some are loops.

    >>> source, destination = arrivals(5)
    >>> len(source), len(distinct(source, destination)[0]) < len(source)
    (512, True)
    """
    generator = np.random.default_rng(seed)
    ends = generator.random((2, 16 << scale)) ** 2 * (1 << scale)
    source, destination = ends.astype(np.int64)
    return source, destination


def star(spokes: int) -> Edges:
    """``{(0, i)} + {(i, 0)}`` for i < spokes: the hub joins to ``spokes**2`` pairs.

    With R = S = T = star(n) the triangle join has ``3n - 2`` results, while
    every join of two of the three has about ``n**2``.

    >>> star(3)
    (array([0, 0, 0, 1, 2]), array([0, 1, 2, 0, 0]))
    """
    ends = np.arange(spokes, dtype=np.int64)
    hub = np.zeros(spokes, np.int64)
    return distinct(np.concatenate([hub, ends]), np.concatenate([ends, hub]))


def upward(nodes: int, edges: int, seed: int = 1) -> Edges:
    """A random graph without cycles: edges lead to larger numbers, by at most a fifteenth of the nodes."""
    generator = np.random.default_rng(seed)
    source = generator.integers(0, nodes, 2 * edges)
    destination = source + generator.integers(1, nodes // 15 + 1, 2 * edges)
    source, destination = distinct(*(column[destination < nodes] for column in (source, destination)))
    kept = np.sort(generator.permutation(len(source))[:edges])
    return source[kept], destination[kept]


def tree(nodes: int) -> Edges:
    """Parent and child of each node but the root of a tree that is filled level by level, three below each.

    >>> tree(6)
    (array([0, 0, 0, 1, 1]), array([1, 2, 3, 4, 5]))
    """
    child = np.arange(1, nodes)
    return (child - 1) // 3, child


def pairs(rows: int, seed: int = 1, bits: int = 32) -> Edges:
    """``rows`` pairs in random order, both columns uniform below ``2**bits``; not made distinct.

    This is input for loading, so it is neither sorted nor free of duplicates
    (of which there is next to none).

    >>> [column.shape for column in pairs(4)]
    [(4,), (4,)]
    """
    generator = np.random.default_rng(seed)
    first, second = generator.integers(0, 1 << bits, size=(2, rows), dtype=np.int64)
    return first, second
