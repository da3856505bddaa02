"""One value per key, after each change: of functional heads, and of relations that are read as functions.

Only keys that got a tuple are looked at: the version after the change tells by two
look-ups how many tuples are below a key.  So erasing ``(k, v)`` and inserting ``(k, w)``
in one transaction is no conflict, in whatever order they are staged.

Cost: O(inserted tuples * log n); where there is a conflict O(n), for its message.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel
from lftj.storage.net_weights import net_weights
from lftj.storage.relation_version import RelationVersion, levels_of
from lftj.storage.signed_rows import Columns, table_of
from lftj.values.functional import refuse_conflicts


def refuse_head_conflict(version: RelationVersion, columns: Columns, weights: np.ndarray, text: str) -> None:
    """Raise FunctionalConflictError where a change gave a key of a functional head a second value.

    ``version``: after the change; ``text``: the head's rules.
    """
    row = _crowded_key(version, columns, weights)
    if row is not None:
        every = version.columns()
        here = np.ones(len(every[0]), dtype=bool)
        for column, keys in zip(every[:-1], columns, strict=False):
            here &= column == keys[row]
        order = np.argsort(every[-1][here])
        rows = [column[here][order] for column in every]
        refuse_conflicts(version.name, version.schema, rows, text)


def refuse_relation_conflict(version: RelationVersion, columns: Columns, weights: np.ndarray) -> None:
    """The same for a relation that rules read as a function of all columns but the last."""
    if _crowded_key(version, columns, weights) is not None:
        version.relation().check_functional()


def _crowded_key(version: RelationVersion, columns: Columns, weights: np.ndarray) -> int | None:
    """The first changed tuple that came to a key which holds more than one now."""
    declared, identity = version.schema.declared, version.schema.identity
    if len(declared) == 1:
        return 0 if version.n_rows > 1 else None
    levels = levels_of(declared, (), identity)
    rows = table_of([columns[column] for column in levels], len(weights))
    row = int(crowded(version.index(declared).memory, rows, len(declared) - 2, weights > 0))
    return row if row >= 0 else None


@kernel(makes_arrays=True)
def crowded(memory, rows, last_key, came):
    """The first inserted tuple whose keys have more than one tuple; -1: none.

    memory: that of the version after the change; rows: int64 (levels, n); last_key: the level of the last
    key; came: bool (n,), the inserted ones.
    """
    below = np.empty(rows.shape, dtype=np.int64)
    net_weights(memory.ctypes.data, rows, below)
    for row in range(rows.shape[1]):
        if came[row] and below[last_key, row] > 1:
            return row
    return -1
