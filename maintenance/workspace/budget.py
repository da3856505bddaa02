"""The memory budget of sensitivity records (ENGINE.md section 4)."""

from __future__ import annotations

from collections.abc import Sequence

from indices.sensitivity import SensitivityIndex


class Budget:
    """At most ``limit`` bytes for the records of some indices together.

    When they take more, each is shrunk in proportion to its size.  Where one record per node takes more
    than that, they stay there, for every record is needed; shrinking is tried again when they have grown
    by an eighth.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._least = 0  # bytes that the last shrinking left

    def enforce(self, indices: Sequence[SensitivityIndex]) -> None:
        """Shrink the indices if they take too much."""
        total = sum(index.nbytes for index in indices)
        if total <= max(self.limit, self._least + self._least // 8):
            return
        target = self.limit - self.limit // 8  # so that not every commit has to shrink
        for index in indices:
            index.shrink(index.nbytes * target // total)
        self._least = sum(index.nbytes for index in indices)
