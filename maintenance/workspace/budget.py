"""The memory budgets of sensitivity records (ENGINE.md section 4).

Cost: of a budget that is kept to, one look at the size of each index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from indices.sensitivity import SensitivityIndex
from lftj.language.several_aggregates import shown_name
from maintenance.heads.head import MaintainedHead


class Budget:
    """At most ``limit`` bytes for the records of some indices together.

    When they take more, each is shrunk in proportion to its size.  Where one record per node takes more
    than that, they stay there, for every record is needed; shrinking is tried again when they have grown
    by an eighth, or by a full tail of each where that is more.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._tolerated = 0  # bytes up to which there is no use in shrinking again

    def enforce(self, indices: Sequence[SensitivityIndex]) -> None:
        """Shrink the indices if they take too much."""
        total = sum(index.nbytes for index in indices)
        if total <= max(self.limit, self._tolerated):
            return
        target = self.limit - self.limit // 8  # so that not every commit has to shrink
        for index in indices:
            index.shrink(index.nbytes * target // total)
        left = sum(index.nbytes for index in indices)
        most_tails = sum(index.tail_bytes for index in indices)
        self._tolerated = 0 if left <= target else left + max(left // 8, most_tails)


Budgets = Mapping[str | None, Budget]
"""By the name that the user gave a head; None: of all heads together."""


def enforce_budgets(budgets: Budgets, heads: Iterable[MaintainedHead]) -> None:
    """Keep the records of heads within the budgets, that of all together last."""
    if not budgets:
        return
    heads = list(heads)
    for name in sorted(budgets, key=lambda name: name is None):
        about = [head for head in heads if name is None or shown_name(head.name) == name]
        budgets[name].enforce(
            [index for head in about for search in head.searches for index in search.sensitivity]
        )
