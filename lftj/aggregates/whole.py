"""Aggregates over a rule's assignments: count, sums, extremes, ranks, quantiles, texts, lists, one's own.

The input is a Z-set: each row is an assignment of the group's key variables and
of the aggregate's arguments, its weight the number of assignments of *all* body
variables that look so.  Rows may come in any order and repeat; they are added
up first.

What comes out

1. Groups are the key rows of the net Z-set, in lexicographic order of their
   codes.  A group without rows does not exist: a global aggregate over nothing
   gives no row, also ``count``.
2. ``count``, sums of integers, durations and decimals are exact, or an error
   names the group: never a wrap, never a rounding.
3. ``sum`` of floats is the exact sum rounded once; ``avg`` is the exact quotient
   rounded once, of integers and decimals too.  float32 values are summed as the
   doubles they stand for.
4. ``min``, ``max``, ranks and quantiles are in the order of values.  NaN is the largest float, as
   in DuckDB: ``max`` is NaN when one is there, ``min`` only when nothing else is.
5. ``concat`` joins one string per assignment, and ``list`` lists one value, ordered by the order variables
   and then by the string or value itself, NULL last; a user's aggregate (:mod:`lftj.values.semigroup`) folds
   its values in that order.

Cost: one sort of the rows, O(n log n), then O(n) in whole-array operations and
the kernels of :mod:`lftj.aggregates.superaccumulator`; what sums become is in
:mod:`lftj.aggregates.sum_values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.aggregates.group_names import GroupNames, spelled_call
from lftj.aggregates.quantiles import checked_amounts, skipped
from lftj.aggregates.sum_values import (
    decimal_scale,
    doubles,
    quotients,
    values_of_floats,
    values_of_sums,
    words,
)
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate, Constant, Variable, rank_of
from lftj.storage.sorting import first_rows_of_equal
from lftj.storage.zset import Weighted
from lftj.values.domain import NULL_CODE
from lftj.values.lists import array_of_lists
from lftj.values.names import DISTINCT_COUNT, QUANTILES, RANKED, REACHED, VARIANCES
from lftj.values.schema import ColumnType

_STRING_BYTES = 2**31 - 1  # what the offsets of an Arrow string array can count


class Aggregation:
    """A head's aggregate in the making: batches of assignments in, groups and values out.

    Memory follows the number of distinct rows of keys and arguments, not of assignments.

    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("p", integer), Column("c", integer)), functional=True)
    >>> head = CheckedHead("total", ("p",), Aggregate("sum", (Variable("c"),)), schema, (0, 0))
    >>> total = Aggregation(head, {"p": integer, "c": integer})
    >>> total.add({"p": np.array([1, 2]), "c": np.array([10, 20])}, np.array([1, 1]))
    >>> total.add({"p": np.array([1]), "c": np.array([30])}, np.array([2]))
    >>> keys, values = total.finish()
    >>> keys[0].tolist(), values.to_pylist()
    ([1, 2], [70, 20])
    """

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head has as a key or an argument."""
        if not isinstance(head.value, Aggregate):
            raise ValueError(f"head {head.relation} has no aggregate")
        self._head = head
        self._types = types
        self._variables = row_variables(head)
        self._rows = Weighted(len(self._variables))

    def add(self, columns: Mapping[str, np.ndarray], weights: np.ndarray) -> None:
        """Add rows: int64 codes of every variable of the head, one row per position.

        ``weights``: int64, the number of assignments behind each row.  The arrays may be written to
        again afterwards.  Raises :class:`~lftj.errors.RangeError` when there are more than ``2**63``
        assignments in all.  Amortised O(n log n).
        """
        try:
            self._rows.add([columns[name] for name in self._variables], weights)
        except RangeError as error:
            raise of_head(self._head, error) from None

    def finish(self) -> tuple[list[np.ndarray], pa.Array]:
        """Code columns of the head's key variables, in the order of writing, and the values.

        Key rows are distinct and sorted; the values have the type that the head's last column declares.
        Raises :class:`~lftj.errors.RangeError`, naming head and group, when a result does not fit it,
        and ValueError when rows add up to a negative weight: there is no such multiset.  O(n log n).
        """
        return aggregated(self.groups())

    def net_rows(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The distinct rows, sorted by codes, and their weights: columns of :func:`row_variables`.

        Raises ValueError as :meth:`finish` does.
        """
        columns, weights = self._rows.finish()
        if len(weights) and int(weights.min()) < 0:
            raise ValueError(f"{self._head.relation}: rows of negative weight can't be aggregated")
        return columns, weights

    def groups(self) -> Groups:
        """The distinct rows by group.  Raises ValueError as :meth:`finish` does."""
        return grouped(self._head, self._types, *self.net_rows())


def row_variables(head: CheckedHead) -> tuple[str, ...]:
    """What an aggregate head's rows hold: its key variables, then its arguments in the order to sort by."""
    assert isinstance(head.value, Aggregate)
    return (*head.variables, *argument_names(head.value))


def grouped(
    head: CheckedHead, types: Mapping[str, ColumnType], columns: list[np.ndarray], weights: np.ndarray
) -> Groups:
    """The groups of net rows: ``columns`` of :func:`row_variables`, distinct and sorted by codes.

    The columns are not written to.  O(n), and a sort where codes are not in the order of their values.
    """
    assert isinstance(head.value, Aggregate)
    n_keys = len(head.variables)
    columns = list(columns)
    if head.value.function not in ("count", "sum", "avg", DISTINCT_COUNT):
        arguments = [types[name] for name in argument_names(head.value)]
        if not all(type_.domain.ordered for type_ in arguments):
            # Only now: a dictionary that grows between batches changes the places of its values.
            places = [_places(codes, type_) for codes, type_ in zip(columns[n_keys:], arguments, strict=True)]
            by_value = Weighted(len(columns))
            by_value.add([*columns[:n_keys], *(column for column, _ in places)], weights)
            columns, weights = by_value.finish()
            for place, (_, codes) in enumerate(places, n_keys):
                columns[place] = columns[place] if codes is None else codes[columns[place]]
    first_rows = first_rows_of_equal(columns[:n_keys], len(weights))
    keys = [column[first_rows] for column in columns[:n_keys]]
    return Groups(head, types, keys, np.append(first_rows, len(weights)), columns[n_keys:], weights)


def aggregated(groups: Groups) -> tuple[list[np.ndarray], pa.Array]:
    """The keys of the groups and their values, as :meth:`Aggregation.finish` gives them."""
    call, declared = groups.head.value, groups.declared
    assert isinstance(call, Aggregate)
    if not len(groups.weights):
        return groups.keys, declared.domain.decode(np.empty(0, np.int64), declared.arrow)
    function = call.function
    if function == "count":
        return groups.keys, pa.array(groups.counts(), declared.arrow)
    if function == DISTINCT_COUNT:
        return groups.keys, pa.array(groups.known_rows(), declared.arrow)
    type_ = groups.types[argument_names(call)[-1]]
    if function == "sum":
        values = _sum(groups, type_)
    elif function == "avg":
        values = _average(groups, type_)
    elif function == "concat":
        values = _concat(groups, _separator(call), type_)
    elif function == "list":
        values = _lists(groups, type_)
    elif function in ("min", "max"):
        values = declared.domain.decode(extreme_codes(groups, function), declared.arrow)
    elif function in REACHED:
        values = declared.domain.decode(reached_codes(groups, function), declared.arrow)
    elif function in VARIANCES:
        values = _variance(groups)
    elif function in RANKED:
        values = declared.domain.decode(ranked_codes(groups, call), declared.arrow)
    elif function in QUANTILES:
        values = declared.domain.decode(quantile_codes(groups, call), declared.arrow)
    else:
        values = _folded(groups, function, type_)
    return groups.keys, values


def argument_names(call: Aggregate) -> list[str]:
    """The variables whose values matter, in the order to sort by: the last is the one aggregated.

    Of quantiles it is the first, before its weight.
    """
    if call.function == "count":
        return []
    names = [term.name for term in call.arguments if isinstance(term, Variable)]
    if call.function in QUANTILES or not names:
        return names
    return [*names[1:], names[0]]  # concat(s, o1, o2) is ordered by o1, o2 and then s


def of_head(head: CheckedHead, error: RangeError) -> RangeError:
    """The error with the head's name and aggregate before its message."""
    assert isinstance(head.value, Aggregate)
    return RangeError(f"{shown_name(head.relation)} = {spelled_call(head.value)}: {error}")


def _separator(call: Aggregate) -> str:
    """The string constant of ``concat(s, ", ", o)``; a comma where none is written."""
    constants = [str(term.value) for term in call.arguments if isinstance(term, Constant)]
    return constants[0] if constants else ","


@dataclass(frozen=True)
class Groups(GroupNames):
    """Net rows sorted by key, then by the arguments' values; group g is ``[offsets[g], offsets[g + 1])``."""

    offsets: np.ndarray
    arguments: list[np.ndarray]  # one entry per row
    weights: np.ndarray  # per row, all > 0

    def counts(self) -> np.ndarray:
        """Assignments per group."""
        return np.add.reduceat(self.weights, self.offsets[:-1])

    def known_rows(self) -> np.ndarray:
        """Distinct rows per group in which no argument is NULL."""
        assert isinstance(self.head.value, Aggregate)
        known = np.ones(len(self.weights), np.int64)
        for name, codes in zip(argument_names(self.head.value), self.arguments, strict=True):
            if self.types[name].domain.keeps_null:
                known &= codes != NULL_CODE
        return np.add.reduceat(known, self.offsets[:-1])


# -- sum and avg ------------------------------------------------------------


def _sum(groups: Groups, type_: ColumnType) -> pa.Array:
    from lftj.aggregates.superaccumulator import sum_floats, sum_integers

    (codes,) = groups.arguments
    if type_.domain.name == "float":
        return values_of_floats(groups, sum_floats(doubles(codes, type_), groups.weights, groups.offsets))
    sums = sum_integers(words(codes, type_), groups.weights, groups.offsets)
    return values_of_sums(groups, sums, type_)


def _average(groups: Groups, type_: ColumnType) -> pa.Array:
    from lftj.aggregates.superaccumulator import average_floats, sum_integers

    (codes,) = groups.arguments
    if type_.domain.name == "float":
        averages = average_floats(doubles(codes, type_), groups.weights, groups.offsets)
    else:
        sums = sum_integers(words(codes, type_), groups.weights, groups.offsets)
        scale = decimal_scale(type_)
        averages = quotients(sums, groups.counts(), scale)
    return values_of_floats(groups, averages)


def _variance(groups: Groups) -> pa.Array:
    from lftj.aggregates.exact_variances import ExactVariances
    from lftj.aggregates.limb_pool import LimbPool

    exact, slots = ExactVariances(groups.head, groups.types), np.arange(len(groups.offsets) - 1)
    (codes,), specials = groups.arguments, np.zeros((len(slots), 3), np.int64)
    numbers = exact.added((LimbPool(), LimbPool()), slots, codes, groups.weights, groups.offsets, specials)
    return exact.values(groups, numbers, specials, groups.counts())


# -- min, max, ranks and quantiles ------------------------------------------


def extreme_codes(groups: Groups, function: str) -> np.ndarray:
    """Groups are sorted by the argument's place in the order of values: take each one's first or last row."""
    rows = groups.offsets[:-1] if function == "min" else groups.offsets[1:] - 1
    return groups.arguments[0][rows]


def reached_codes(groups: Groups, function: str) -> np.ndarray:
    """Each group's least value where what it is chosen by is least, or greatest.

    Groups are sorted by that, and then by the value.
    """
    by, values = groups.arguments
    if function == "arg_min":
        return values[groups.offsets[:-1]]
    last = groups.offsets[1:] - 1
    begins = np.append(True, by[1:] != by[:-1])  # a run of rows with one value of it
    begins[groups.offsets[:-1]] = True
    return values[np.maximum.accumulate(np.where(begins, np.arange(len(by)), 0))[last]]


def ranked_codes(groups: Groups, call: Aggregate) -> np.ndarray:
    """Each group's value of the call's rank, an assignment a place; the last of a group that has fewer."""
    ends = np.cumsum(groups.weights)
    last = ends[groups.offsets[1:] - 1]  # places up to the end of each group
    first = last - groups.counts()
    steps = np.minimum(rank_of(call), last - first)
    places = first + steps - 1 if call.function == "kth_smallest" else last - steps
    return groups.arguments[0][np.searchsorted(ends, places, side="right")]


def quantile_codes(groups: Groups, call: Aggregate) -> np.ndarray:
    """Each group's value at the call's share of its weight: the rows are sorted by their values."""
    codes, *weight = groups.arguments

    def name(row: int) -> str:
        return f"{groups.name(int(np.searchsorted(groups.offsets, row, 'right')) - 1)} = {groups.call()}"

    amounts, _ = checked_amounts(groups.weights, weight[0] if weight else None, name)
    ends = np.cumsum(amounts)
    last = ends[groups.offsets[1:] - 1]
    first = np.append(0, last[:-1])
    rows = np.searchsorted(ends, first + skipped(call, last - first), side="right")
    weightless = groups.offsets[:-1] if call.function == "quantile" else groups.offsets[1:] - 1
    return codes[np.where(last > first, rows, weightless)]


def _places(codes: np.ndarray, type_: ColumnType) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers in the order of the codes' values, and the code of each; None where they are the codes.

    NULL, where there is any, comes first.
    """
    if type_.domain.ordered:
        return codes, None
    known = codes != NULL_CODE
    if known.all():
        return type_.domain.places(codes)
    places = np.full(len(codes), -1)  # and so the last code
    places[known], code_of_place = type_.domain.places(codes[known])
    return places, np.append(code_of_place, NULL_CODE)


# -- a user's aggregate -----------------------------------------------------


def _folded(groups: Groups, function: str, type_: ColumnType) -> pa.Array:
    """Groups are sorted by the order variables' places and then by the value."""
    from lftj.values.semigroup import semigroup

    codes = groups.arguments[-1]
    values = doubles(codes, type_) if type_.domain.name == "float" else codes
    operation = semigroup(function).operation(values.dtype)
    folded = operation.fold(
        values, groups.weights, groups.offsets, lambda group: f"{groups.name(group)} = {groups.call()}"
    )
    return pa.array(folded, groups.declared.arrow)


# -- concat and list --------------------------------------------------------


def _concat(groups: Groups, separator: str, type_: ColumnType) -> pa.Array:
    """Groups are sorted by the order variables' places and then by the string's."""
    strings = type_.domain.decode(groups.arguments[-1], pa.large_string())
    counts = groups.counts()
    _refuse_long(groups, strings, len(separator.encode()), counts)
    if int(counts.sum()) > len(strings):
        strings = strings.take(pa.array(np.repeat(np.arange(len(strings)), groups.weights)))
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int64())
    lists = pa.LargeListArray.from_arrays(offsets, strings.cast(pa.string()))
    return pc.binary_join(lists, separator).cast(groups.declared.arrow)


def _lists(groups: Groups, type_: ColumnType) -> pa.Array:
    """Groups are sorted by the order variables' places and then by the value's, in which NULL is first."""
    codes, weights, arrow = groups.arguments[-1], groups.weights, groups.declared.arrow
    if type_.nullable:
        group = np.repeat(np.arange(len(groups.offsets) - 1), np.diff(groups.offsets))
        order = np.lexsort((codes == NULL_CODE, *groups.arguments[-2::-1], group))
        codes, weights = codes[order], weights[order]
    elements = type_.domain.decode(np.repeat(codes, weights), arrow.value_type)
    try:
        return array_of_lists(np.append(0, np.cumsum(groups.counts())), elements, arrow)
    except pa.ArrowInvalid as error:
        raise RangeError(
            f"the lists of {shown_name(groups.head.relation)} = {groups.call()}: {error}"
        ) from None


def _refuse_long(groups: Groups, strings: pa.Array, separator_bytes: int, counts: np.ndarray) -> None:
    """An Arrow array of strings holds 2 GiB: refuse more before any of it is made."""
    lengths = pc.binary_length(strings).to_numpy().astype(np.float64) * groups.weights
    sizes = np.add.reduceat(lengths, groups.offsets[:-1]) + separator_bytes * (counts - 1.0)
    sizes = np.maximum(sizes, counts)  # empty strings take memory on the way too
    if sizes.sum() > _STRING_BYTES:
        group = int(sizes.argmax())
        raise RangeError(
            f"the values of {shown_name(groups.head.relation)} = {groups.call()} take"
            f" {sizes.sum():.0f} bytes, more than the 2 GiB that a column of strings holds; the largest,"
            f" {groups.name(group)}, takes {sizes[group]:.0f}"
        )
