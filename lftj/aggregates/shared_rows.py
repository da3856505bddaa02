"""Rows of assignments that several aggregate heads read: they are searched for once.

A search gives rows of all variables that any of the heads reads, each weighted by the
assignments behind it.  Projected to a head's own variables, and added up there, they are that
head's Z-set::

    Aggregation(head, rows) = Aggregation(head, net rows of any variables that include the head's)

Invariants

1. Heads of the same variables in the same order read the same net rows.
2. Rows are kept of *widest* variables only: where one head's include another's, the other is
   fed from the net rows of the first, when these are there.
3. A head's groups and values are those that :class:`~lftj.aggregates.whole.Aggregation` gives for it
   alone; an error of the rows themselves names the first head, one of a value its own.

Cost: of :class:`~lftj.storage.zset.Weighted` once for each set of widest variables; of every further one
a sort of net rows, which is one comparison of neighbours where one head's variables begin
the other's.  Memory follows the distinct rows of each, as for heads that are evaluated apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.aggregates.whole import aggregated, grouped, of_head, row_variables
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.storage.zset import Run, Weighted
from lftj.values.schema import ColumnType


class SharedRows:
    """The aggregates of several heads in the making: batches of assignments in, groups and values out.

    >>> from lftj.language.syntax import Aggregate, Variable
    >>> from lftj.values.domains import Domains
    >>> from lftj.values.schema import Column, Schema
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("p", integer), Column("c", integer)), functional=True)
    >>> calls = Aggregate("count", ()), Aggregate("sum", (Variable("c"),))
    >>> heads = [CheckedHead(call.function, ("p",), call, schema, (0, 0)) for call in calls]
    >>> rows = SharedRows(heads, {"p": integer, "c": integer})
    >>> rows.add({"p": np.array([1, 2]), "c": np.array([10, 20])}, np.array([3, 1]))
    >>> [(keys[0].tolist(), values.to_pylist()) for keys, values in rows.finish()]
    [([1, 2], [3, 1]), ([1, 2], [30, 20])]
    """

    def __init__(self, heads: Sequence[CheckedHead], types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that a head has as a key or an argument."""
        self._heads = heads
        self._types = types
        self._sources: dict[tuple[str, ...], tuple[str, ...] | None] = {}
        for names in sorted(map(row_variables, heads), key=lambda names: -len(set(names))):
            wider = next((other for other in self._sources if set(names) <= set(other)), None)
            self._sources.setdefault(names, wider)
        self._rows = {n: Weighted(len(n)) for n, source in self._sources.items() if source is None}

    def add(self, columns: Mapping[str, np.ndarray], weights: np.ndarray) -> None:
        """Add rows: int64 codes of every variable that a head reads, one row per position.

        ``weights``: int64, above 0, the number of assignments behind each row.  The arrays may be written
        to again afterwards.  Raises :class:`~lftj.errors.RangeError` when there are more than ``2**63``
        assignments in all.  Amortised O(n log n).
        """
        try:
            for names, rows in self._rows.items():
                rows.add([columns[name] for name in names], weights)
        except RangeError as error:
            raise of_head(self._heads[0], error) from None

    def finish(self) -> Iterator[tuple[list[np.ndarray], pa.Array]]:
        """For each head in turn what :meth:`lftj.aggregates.whole.Aggregation.finish` gives and raises."""
        net: dict[tuple[str, ...], Run] = {}
        for names, source in self._sources.items():
            rows = self._rows.pop(names, None)
            if rows is None:
                assert source is not None
                columns, weights = net[source]
                rows = Weighted(len(names))
                rows.add([columns[source.index(name)] for name in names], weights)
            net[names] = rows.finish()
        for head in self._heads:
            yield aggregated(grouped(head, self._types, *net[row_variables(head)]))
