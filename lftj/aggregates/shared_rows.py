"""Rows of assignments that several aggregate heads read: they are searched for once.

A search gives rows of all variables that any of the heads reads, each weighted by the
assignments behind it.  Projected to a head's own variables, and added up there, they are that
head's Z-set::

    Aggregation(head, rows) = Aggregation(head, net rows of any variables that include the head's)

Counts, sums and averages of whole numbers and decimals need no net rows: they are added up as rows come
(:mod:`lftj.aggregates.running_sums`), for all heads of the same keys together; and so are the least and the
greatest value of what has codes in its order.  A decimal counts units of its last digit; where a batch has
one of more than 64 bits, each 32 bits of its decimals are summed apart.

Invariants

1. Heads of the same variables in the same order read the same net rows, or the same sums.
2. Rows are kept of *widest* variables only: where one head's include another's, the other is
   fed from the net rows of the first, when these are there.
3. A head's groups and values are those that :class:`~lftj.aggregates.whole.Aggregation` gives for it
   alone; an error of the rows themselves names the first head, one of a value its own.

Cost: of running sums O(1) per row.  Of the others that of :class:`~lftj.storage.zset.Weighted` once for each
set of widest variables; of every further one a sort of net rows, which is one comparison of neighbours where
one head's variables begin the other's.  Memory follows the groups, or the distinct rows of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.aggregates.group_names import GroupNames
from lftj.aggregates.running_sums import RunningSums
from lftj.aggregates.sum_values import (
    decimal_scale,
    n_summand_words,
    quotients,
    values_of_floats,
    values_of_sums,
    words,
)
from lftj.aggregates.whole import aggregated, argument_names, grouped, of_head, row_variables
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate
from lftj.storage.zset import Run, Weighted
from lftj.values.row_values import RowValues, numbers_of_codes
from lftj.values.schema import ColumnType

_WORD = (1 << 32) - 1


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
        self._running: dict[tuple[str, ...], _Running] = {}
        for head in heads:
            if _is_running(head, types):
                self._running.setdefault(head.variables, _Running(types)).feed(head)
        self._sources: dict[tuple[str, ...], tuple[str, ...] | None] = {}
        others = [head for head in heads if not _is_running(head, types)]
        for names in sorted(map(row_variables, others), key=lambda names: -len(set(names))):
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
            for keys, running in self._running.items():
                running.add(keys, columns, weights)
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
            if _is_running(head, self._types):
                yield self._running[head.variables].aggregated(head)
            else:
                yield aggregated(grouped(head, self._types, *net[row_variables(head)]))


def keeps_no_rows(heads: Sequence[CheckedHead], types: Mapping[str, ColumnType]) -> bool:
    """Whether the heads are all found as rows come; others need distinct rows."""
    return all(isinstance(head.value, Aggregate) and _is_running(head, types) for head in heads)


class _Running:
    """Sums and extremes by the same keys: of which variables, once each, in their order."""

    def __init__(self, types: Mapping[str, ColumnType]) -> None:
        self._types = types
        self.summed: dict[str, None] = {}
        self._words: dict[tuple[str, int], int] = {}  # the sums of words beyond the first, by their numbers
        self.compared: dict[tuple[str, str], None] = {}  # the function, and of what
        self._sums: RunningSums | None = None
        self._found: tuple[list[np.ndarray], np.ndarray, list[np.ndarray], list[np.ndarray]] | None = None

    def feed(self, head: CheckedHead) -> None:
        """A head takes its values from here."""
        if head.extremum:
            (name,) = _arguments(head)
            self.compared[head.extremum, name] = None
        else:
            self.summed.update(_arguments(head))

    def _none(self, n_keys: int) -> RunningSums:
        """Of no rows."""
        return RunningSums(n_keys, len(self.summed), [function == "max" for function, _ in self.compared])

    def add(self, keys: tuple[str, ...], columns: Mapping[str, np.ndarray], weights: np.ndarray) -> None:
        if self._sums is None:
            self._sums = self._none(len(keys))
        self._sums.add(
            [columns[name] for name in keys],
            self._summands(columns),
            [columns[name] for _, name in self.compared],
            weights,
        )

    def _summands(self, columns: Mapping[str, np.ndarray]) -> list[np.ndarray | None]:
        found: list[np.ndarray | None] = [None] * (len(self.summed) + len(self._words))
        for place, name in enumerate(self.summed):
            type_ = self._types[name]
            if type_.domain.name != "decimal":
                found[place] = columns[name]
                continue
            if isinstance(columns, RowValues):
                numbers = columns.numbers(name)
            else:
                numbers = numbers_of_codes(type_, columns[name])
            if numbers is not None:
                found[place] = numbers.values
                continue
            every = words(columns[name], type_)
            for number in range(every.shape[1]):
                is_top = number == every.shape[1] - 1
                column = every[:, number].view(np.int32) if is_top else every[:, number]
                at = place if number == 0 else self._words.setdefault((name, number), len(found))
                found += [None] * (at + 1 - len(found))
                found[at] = column.astype(np.int64)
        return found

    def _words_of_sums(self, name: str, sums: list[np.ndarray], declared: ColumnType) -> np.ndarray:
        """As :func:`~lftj.aggregates.sum_values.values_of_sums` has them, in no less words than declared."""
        place = list(self.summed).index(name)
        others = {number: sums[at] for (of, number), at in self._words.items() if of == name}
        first, n_words = sums[place].view(np.uint32), n_summand_words(declared)
        if not others and n_words <= first.shape[1]:
            return first
        total = np.zeros((len(first), max(n_words, n_summand_words(self._types[name]) + 4)), np.int64)
        for number, sum_ in {0: sums[place], **others}.items():
            four = sum_.view(np.uint32)
            total[:, number : number + 4] += four
            total[:, number + 4 :] += np.where(four[:, 3:] >> 31, _WORD, 0)
        for number in range(1, total.shape[1]):
            total[:, number] += total[:, number - 1] >> 32
        return total.astype(np.uint32)

    def aggregated(self, head: CheckedHead) -> tuple[list[np.ndarray], pa.Array]:
        """A head's keys and values, as :func:`lftj.aggregates.whole.aggregated` gives them."""
        if self._found is None:
            self._found, self._sums = (self._sums or self._none(len(head.variables))).finish(), None
        keys, counts, sums, extremes = self._found
        groups = GroupNames(head, self._types, keys)
        if not len(counts):
            return keys, groups.declared.domain.decode(counts, groups.declared.arrow)
        call = head.value
        assert isinstance(call, Aggregate)
        if call.function == "count":
            return keys, pa.array(counts, groups.declared.arrow)
        (name,) = _arguments(head)
        if head.extremum:
            codes = extremes[list(self.compared).index((head.extremum, name))]
            return keys, groups.declared.domain.decode(codes, groups.declared.arrow)
        exact, type_ = self._words_of_sums(name, sums, groups.declared), self._types[name]
        if call.function == "sum":
            return keys, values_of_sums(groups, exact, type_)
        scale = decimal_scale(type_)
        return keys, values_of_floats(groups, quotients(exact, counts, scale))


def _arguments(head: CheckedHead) -> dict[str, None]:
    assert isinstance(head.value, Aggregate)
    return dict.fromkeys(argument_names(head.value))


def _is_running(head: CheckedHead, types: Mapping[str, ColumnType]) -> bool:
    """Whether a head counts, sums whole numbers or decimals, or takes the least of codes."""
    assert isinstance(head.value, Aggregate)
    if head.extremum:
        return all(types[name].domain.ordered for name in _arguments(head))
    if head.value.function not in ("count", "sum", "avg"):
        return False
    return all(types[name].domain.name != "float" for name in _arguments(head))
