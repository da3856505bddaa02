"""The memory budget of sensitivity records (ENGINE.md section 4)."""

from __future__ import annotations

from collections.abc import Sequence

from indices.sensitivity import SensitivityIndex


def keep_within(budget: int, indices: Sequence[SensitivityIndex]) -> None:
    """Shrink the indices, each in proportion to its size, until they take at most ``budget`` bytes together.

    Where one record per node takes more than that, they stay there: every record is needed.
    """
    total = sum(index.nbytes for index in indices)
    if total <= budget:
        return
    for index in indices:
        index.shrink(index.nbytes * budget // total)
