"""`EdgeBatches`: batches of changes of a graph, half of each erasing and half inserting."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench import graphs


class EdgeBatches:
    """The same batches each time; they are drawn one after the other.

    What is erased is drawn from all edges there are, what is inserted as an RMAT graph's edges are,
    among those that are not there.

    Invariants: every change of a batch is one indeed, of an edge of its own; ``words`` holds the edges that
    are there after the last batch, each as ``src << 32 | dst``, ascending.

    >>> edge = pa.table({"src": [0, 1, 2], "dst": [1, 2, 3]})
    >>> batches = EdgeBatches(edge, seed=1)
    >>> batch = batches.draw(4)
    >>> batch["weight"].to_pylist(), batches.table().num_rows
    ([-1, -1, 1, 1], 3)
    """

    def __init__(self, edge: pa.Table, seed: int) -> None:
        source, destination = (column.to_numpy() for column in edge.columns)
        self.words = graphs.sorted_words((source << 32) | destination)
        self._scale = int(destination.max()).bit_length()
        self._seed = seed
        self._generator = np.random.default_rng(seed)

    def draw(self, size: int) -> pa.Table:
        """The next batch, of ``size`` changes: ``src``, ``dst``, ``weight``."""
        erased = self._generator.choice(self.words, size // 2, replace=False)
        inserted = self._fresh(size - size // 2)
        left = np.delete(self.words, np.searchsorted(self.words, erased))
        self.words = np.sort(np.concatenate([left, inserted]))
        words = np.concatenate([erased, inserted])
        weights = np.repeat(np.array([-1, 1]), [len(erased), len(inserted)])
        return pa.table({**_columns(words), "weight": weights})

    def _fresh(self, count: int) -> np.ndarray:
        found = np.empty(0, np.int64)
        while len(found) < count:
            self._seed += 1
            factor = 1 + (4 * count >> self._scale)
            source, destination = graphs.rmat(self._scale, factor, self._seed)
            drawn = (source << 32) | destination
            places = np.searchsorted(self.words, drawn).clip(max=len(self.words) - 1)
            drawn = self._generator.permutation(drawn[self.words[places] != drawn])[:count]
            found = graphs.sorted_words(np.concatenate([found, drawn]))
        return self._generator.permutation(found)[:count]

    def table(self) -> pa.Table:
        """The edges there are now."""
        return pa.table(_columns(self.words))


def _columns(words: np.ndarray) -> dict[str, np.ndarray]:
    return {"src": words >> 32, "dst": words & 0xFFFFFFFF}
