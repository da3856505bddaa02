"""The memory budgets of sensitivity records (docs/design/engine.md section 4), and of views.

Cost: of a budget that is kept to, one look at the size of each index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from indices.sensitivity import SensitivityIndex
from lftj.errors import ViewBudgetError
from lftj.language.several_aggregates import shown_name
from lftj.rewriting.shared_views import is_view
from maintenance.heads.head import MaintainedHead
from maintenance.heads.strategies import VIEWS
from maintenance.strategies.range_sums import RangeSums
from maintenance.strategies.strategy import Versions


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


GROUP_BYTES = 32
"""Of a group, beside its key and its value: how many assignments it has, where it stands, and its sum."""


def view_bytes(heads: Mapping[str, MaintainedHead], versions: Versions, readers: Collection[str]) -> int:
    """Memory of the views that some heads read, also by other views: of rows, groups, sums and scan trees."""
    read = set(readers)
    for name in reversed(list(heads)):
        if name in read:
            read |= {other for other in heads[name].reads if is_view(other)}
    views = [versions[name] for name in read if is_view(name)]
    trees = [
        search.nbytes for name in read for search in heads[name].searches if isinstance(search, RangeSums)
    ]
    rows = [view.nbytes + view.n_rows * (8 * len(view.schema.columns) + GROUP_BYTES) for view in views]
    return sum(rows) + sum(trees)


def refuse_large_views(heads: Mapping[str, MaintainedHead], versions: Versions, limit: int | None) -> None:
    """Raise ViewBudgetError where the views of heads that are to have them take more than the limit."""
    if limit is None:
        return
    readers = [name for name, head in heads.items() if head.strategy == VIEWS]
    taken = view_bytes(heads, versions, readers)
    if taken > limit:
        shown = ", ".join(dict.fromkeys(shown_name(name) for name in readers))
        raise ViewBudgetError(
            f"the views of {shown} would take {taken:,} bytes, more than view_bytes={limit:,}:"
            " keep them by another strategy, or allow more"
        )


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
