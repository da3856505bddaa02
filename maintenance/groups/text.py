"""`GroupText`: the ordered intermediate of ``concat`` and ``list``, maintained under signed rows.

The multiplicities of (groups..., arguments...) and nothing else: a group's text or list
is as long as the group, so a tree of them would save nothing.  A group that is
asked for is read from the runs, ordered and joined by :mod:`lftj.aggregates.whole`,
which the evaluation of all assignments uses too.

Invariants

1. The support counts are the sum of the signed rows; none is negative.
2. Between ``stage`` and ``keep`` or ``drop`` the counts of before are there too.

Cost: ``stage`` O(m log m) for m rows and O(log n) amortised for each; ``values`` O(log n) per
group and O(s log s) for the s tuples of the groups asked for.

Source: ILFTJ 2.3.3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lftj.aggregates.whole import Aggregation, argument_names
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate
from lftj.storage.signed_rows import Columns, table_of
from lftj.storage.sorting import first_of_equal
from lftj.values.names import ORDERED
from lftj.values.schema import ColumnType
from maintenance.groups.boundaries import group_boundaries
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport


class GroupText(Staged):
    """The texts of a head's groups, or their lists.

    >>> import pyarrow as pa
    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import Variable
    >>> domains = Domains()
    >>> string, integer = (ColumnType(domains.of(arrow), arrow) for arrow in (pa.string(), pa.int64()))
    >>> schema = Schema((Column("k", integer), Column("s", string)), functional=True)
    >>> head = CheckedHead("names", ("k",), Aggregate("concat", (Variable("s"),)), schema, (0, 0))
    >>> text = GroupText(head, {"k": integer, "s": string}, 1)
    >>> strings = string.domain.encode(pa.array(["b", "a", "c"]))
    >>> text.stage([np.array([7, 7, 8]), strings], np.array([1, 2, 1]))
    >>> string.domain.decode(text.values([np.array([8, 7])]), pa.string()).to_pylist()
    ['c', 'a,a,b']
    """

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType], group_columns: int) -> None:
        """``types``: of the head's variables; ``group_columns``: how many of the rows' columns are the group,
        those of the head's variables in their order."""
        if not isinstance(head.value, Aggregate) or head.value.function not in ORDERED:
            raise ValueError(f"head {head.relation} is no text or list")
        if group_columns != len(head.variables):
            raise ValueError(f"the texts of {head.relation} are of {len(head.variables)} group columns")
        self._head = head
        self._types = types
        self._names = (*head.variables, *argument_names(head.value))
        self._support = StagedSupport(
            len(self._names), {number: types[name] for number, name in enumerate(self._names)}
        )

    @property
    def parts(self) -> tuple[Staged, ...]:
        return (self._support,)

    def stage(self, columns: Columns, weights: np.ndarray) -> None:
        """Add signed rows: group columns, then arguments, the aggregated one last; any order, may repeat."""
        self._support.staged = self._support.newest.added(columns, weights)[0]

    def values(self, keys: Columns) -> np.ndarray:
        """The code of each group's text or list; 0 for a group without rows.

        ``keys``: a column per group column.  Raises RangeError when the texts take more than 2 GiB.
        """
        if len(keys) != len(self._head.variables):
            raise ValueError(f"the texts of {self._head.relation} are of whole groups")
        distinct, places = _distinct(keys)
        n_groups = int(places.max(initial=-1)) + 1
        rows, columns, supports = self._support.newest.below(distinct, n_groups)
        aggregation = Aggregation(self._head, self._types)
        aggregation.add(dict(zip(self._names, columns, strict=True)), supports)
        _, texts = aggregation.finish()
        codes = np.zeros(n_groups, np.int64)
        # Both are in the order of the groups' codes.
        codes[rows[first_of_equal([rows])]] = self._head.schema.columns[-1].type.domain.encode(texts)
        return codes[places]

    @property
    def nbytes(self) -> int:
        return self._support.newest.nbytes

    @property
    def n_records(self) -> int:
        """Tuples in all runs."""
        return sum(run.n_tuples for run in self._support.newest.runs)


def _distinct(keys: Columns) -> tuple[list[np.ndarray], np.ndarray]:
    """The distinct rows of the keys, sorted, and the place of each row among them."""
    if not keys:
        return [], np.zeros(1, np.int64)
    order = np.lexsort(list(keys)[::-1])
    places = np.empty(len(order), np.int64)
    if not len(order):
        return list(keys), places
    distinct, offsets = group_boundaries(table_of(keys, len(order)).take(order, axis=1), len(keys))
    places[order] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return list(distinct), places
