"""Where groups begin in sorted rows."""

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part


@kernel(makes_arrays=True)
def group_boundaries(rows, n_keys):  # type: ignore[no-untyped-def]
    """The distinct keys of sorted rows, int64 (n_keys, groups), and where each group starts, the end behind.

    rows: int64 (columns, n), n > 0; the first ``n_keys`` columns are the keys.
    """
    return find_groups(rows, n_keys)


@part(makes_arrays=True)
def find_groups(rows, n_keys):  # type: ignore[no-untyped-def]
    """See :func:`group_boundaries`."""
    n = rows.shape[1]
    offsets = np.zeros(n + 1, np.int64)
    groups = 1
    for row in range(1, n):
        for column in range(n_keys):
            if rows[column, row] != rows[column, row - 1]:
                offsets[groups] = row
                groups += 1
                break
    offsets[groups] = n
    keys = np.empty((n_keys, groups), np.int64)
    for column in range(n_keys):
        for group in range(groups):
            keys[column, group] = rows[column, offsets[group]]
    return keys, offsets[: groups + 1]
