"""A replicated document's edits: rules for its text are in :mod:`bench.joins.recursion`.

A position is a pair, counter and node.  ``insert`` says after which other it was put in, ``remove`` which
are gone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

COLUMNS = {
    "insert": ("id_counter", "id_node", "parent_counter", "parent_node"),
    "remove": ("id_counter", "id_node"),
}


def random_edits(positions: int, seed: int = 1) -> dict[str, pa.Table]:
    """Runs of typing by three, each after a place that is there; every third position is gone.

    >>> edits = random_edits(100)
    >>> edits["insert"].num_rows, edits["remove"].num_rows
    (100, 33)
    """
    generator = np.random.default_rng(seed)
    counter = np.arange(1, positions + 1)
    node = np.concatenate([[0], generator.integers(0, 3, positions)])
    jumps = generator.random(positions) < 0.1
    parent = np.where(jumps, generator.integers(0, counter), counter - 1)
    gone = np.sort(1 + generator.permutation(positions)[: positions // 3])
    columns = {
        "insert": (counter, node[counter], parent, node[parent]),
        "remove": (gone, node[gone]),
    }
    return {name: pa.table(dict(zip(names, columns[name], strict=True))) for name, names in COLUMNS.items()}
