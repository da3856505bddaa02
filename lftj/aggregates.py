"""Aggregates over a rule's assignments: count, sum, avg, min, max, concat.

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
4. ``min`` and ``max`` are in the order of values.  NaN is the largest float, as
   in DuckDB: ``max`` is NaN when one is there, ``min`` only when nothing else is.
5. ``concat`` joins one string per assignment, ordered by the order variables and
   then by the string itself.

Cost: one sort of the rows, O(n log n), then O(n) in whole-array operations and
the kernels of :mod:`lftj.superaccumulator`.  Averages of decimals beyond 53
bits take one Python division per group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.body import CheckedHead, ColumnType
from lftj.errors import RangeError
from lftj.kinds import plain_type
from lftj.syntax import Aggregate, Constant, Variable
from lftj.zset import Weighted

_STRING_BYTES = 2**31 - 1  # what the offsets of an Arrow string array can count
_EXACT_INTEGER = 2**53  # whole numbers up to here are doubles


class Aggregation:
    """A head's aggregate in the making: batches of assignments in, groups and values out.

    Memory follows the number of distinct rows of keys and arguments, not of assignments.

    >>> from lftj.body import Column, Schema
    >>> from lftj.domains import Domains
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
        self._call = head.value
        self._types = types
        self._arguments = _arguments(head.value)
        self._rows = Weighted(len(head.variables) + len(self._arguments))

    def add(self, columns: Mapping[str, np.ndarray], weights: np.ndarray) -> None:
        """Add rows: int64 codes of every variable of the head, one row per position.

        ``weights``: int64, the number of assignments behind each row.  The arrays may be written to
        again afterwards.  Raises :class:`~lftj.errors.RangeError` when there are more than ``2**63``
        assignments in all.  Amortised O(n log n).
        """
        names = (*self._head.variables, *self._arguments)
        try:
            self._rows.add([columns[name] for name in names], weights)
        except RangeError as error:
            raise RangeError(f"{self._head.relation} = {_spelled_call(self._call)}: {error}") from None

    def finish(self) -> tuple[list[np.ndarray], pa.Array]:
        """Code columns of the head's key variables, in the order of writing, and the values.

        Key rows are distinct and sorted; the values have the type that the head's last column declares.
        Raises :class:`~lftj.errors.RangeError`, naming head and group, when a result does not fit it,
        and ValueError when rows add up to a negative weight: there is no such multiset.  O(n log n).
        """
        groups = self._groups()
        declared = groups.declared
        if not len(groups.weights):
            return groups.keys, declared.domain.decode(np.empty(0, np.int64), declared.arrow)
        function = self._call.function
        if function == "count":
            return groups.keys, pa.array(groups.weights, declared.arrow)
        type_ = self._types[self._arguments[-1]]
        if function == "sum":
            values = _sum(groups, type_)
        elif function == "avg":
            values = _average(groups, type_)
        elif function == "concat":
            values = _concat(groups, _separator(self._call), type_)
        else:
            values = _extreme(groups, function, type_)
        return groups.keys, values

    def _groups(self) -> _Groups:
        columns, weights = self._rows.finish()
        n_keys = len(self._head.variables)
        if self._call.function in ("min", "max", "concat"):
            types = [self._types[name] for name in self._arguments]
            if not all(type_.domain.ordered for type_ in types):
                # Only now: a dictionary that grows between batches changes the places of its values.
                places = map(_places, columns[n_keys:], types)
                by_value = Weighted(len(columns))
                by_value.add([*columns[:n_keys], *places], weights)
                columns, weights = by_value.finish()
        if len(weights) and int(weights.min()) < 0:
            raise ValueError(f"{self._head.relation}: rows of negative weight can't be aggregated")
        starts = np.zeros(len(weights), dtype=bool)
        starts[:1] = True
        for column in columns[:n_keys]:
            starts[1:] |= column[1:] != column[:-1]
        first_rows = np.flatnonzero(starts)
        keys = [column[first_rows] for column in columns[:n_keys]]
        offsets = np.append(first_rows, len(weights))
        return _Groups(self._head, self._types, keys, offsets, columns[n_keys:], weights)


def aggregate(
    head: CheckedHead,
    columns: Mapping[str, np.ndarray],
    weights: np.ndarray,
    types: Mapping[str, ColumnType],
) -> tuple[list[np.ndarray], pa.Array]:
    """An :class:`Aggregation` of one batch."""
    aggregation = Aggregation(head, types)
    aggregation.add(columns, weights)
    return aggregation.finish()


def _arguments(call: Aggregate) -> list[str]:
    """The variables whose values matter, in the order to sort by: the last is the one aggregated."""
    if call.function == "count":
        return []
    names = [term.name for term in call.arguments if isinstance(term, Variable)]
    return [*names[1:], names[0]]  # concat(s, o1, o2) is ordered by o1, o2 and then s


def _separator(call: Aggregate) -> str:
    """The string constant of ``concat(s, ", ", o)``; a comma where none is written."""
    constants = [str(term.value) for term in call.arguments if isinstance(term, Constant)]
    return constants[0] if constants else ","


def _spelled_call(call: Aggregate) -> str:
    """The aggregate as it was written, without separator: ``sum(c)``."""
    return f"{call.function}({', '.join(term.name for term in call.arguments if isinstance(term, Variable))})"


@dataclass
class _Groups:
    """Net rows sorted by key and then by argument; group g is the rows ``[offsets[g], offsets[g + 1])``."""

    head: CheckedHead
    types: Mapping[str, ColumnType]
    keys: list[np.ndarray]  # one entry per group
    offsets: np.ndarray
    arguments: list[np.ndarray]  # one entry per row
    weights: np.ndarray  # per row, all > 0

    def counts(self) -> np.ndarray:
        """Assignments per group."""
        return np.add.reduceat(self.weights, self.offsets[:-1])

    @property
    def declared(self) -> ColumnType:
        """The type that the values come out as."""
        return self.head.schema.columns[-1].type

    def name(self, group: int) -> str:
        """The group as a rule would write it: ``total["ann", 2026-01-31]``."""
        values = [
            self.types[name].spelled(codes[group])
            for name, codes in zip(self.head.variables, self.keys, strict=True)
        ]
        return f"{self.head.relation}[{', '.join(values)}]"

    def call(self) -> str:
        assert isinstance(self.head.value, Aggregate)
        return _spelled_call(self.head.value)


# -- sum and avg ------------------------------------------------------------


def _sum(groups: _Groups, type_: ColumnType) -> pa.Array:
    from lftj.superaccumulator import sum_floats, sum_integers

    declared = groups.declared
    (codes,) = groups.arguments
    if type_.domain.name == "float":
        return pa.array(sum_floats(_floats(codes, type_), groups.weights, groups.offsets), declared.arrow)
    if type_.domain.name == "decimal":
        words, scale = _decimal_words(codes, type_)
        if scale != declared.arrow.scale:
            raise ValueError(f"a sum of decimals of scale {scale} was declared as {declared.arrow}")
        sums = sum_integers(words, groups.weights, groups.offsets)
        return _decimals_of_words(groups, sums, declared.arrow)
    sums = sum_integers(_words(codes), groups.weights, groups.offsets)
    _refuse_wide(groups, sums, 2, declared.arrow)
    return declared.domain.decode(_low_int64(sums), declared.arrow)


def _average(groups: _Groups, type_: ColumnType) -> pa.Array:
    from lftj.superaccumulator import average_floats, average_integers, sum_integers

    (codes,) = groups.arguments
    if type_.domain.name == "float":
        averages = average_floats(_floats(codes, type_), groups.weights, groups.offsets)
    elif type_.domain.name == "decimal":
        words, scale = _decimal_words(codes, type_)
        averages = _quotients(sum_integers(words, groups.weights, groups.offsets), groups.counts(), scale)
    else:
        averages = average_integers(_words(codes), groups.weights, groups.offsets)
    return pa.array(averages, pa.float64())


def _quotients(sums: np.ndarray, counts: np.ndarray, scale: int) -> np.ndarray:
    """Correctly rounded ``sum / (count * 10**scale)``.

    A division of two doubles is correctly rounded when both operands are exact; Python's division of
    integers always is.
    """
    numerator, denominator = 10 ** max(-scale, 0), 10 ** max(scale, 0)
    quotients = np.empty(len(sums))
    exact = np.zeros(len(sums), dtype=bool)
    if max(numerator, denominator) <= _EXACT_INTEGER:
        low = _low_int64(sums)
        limit = _EXACT_INTEGER // numerator
        exact = _fits(sums, 2) & (-limit <= low) & (low <= limit) & (counts <= _EXACT_INTEGER // denominator)
        quotients[exact] = (low[exact] * numerator) / (counts[exact] * denominator)
    for group in np.flatnonzero(~exact).tolist():
        quotients[group] = _integer(sums[group]) * numerator / (int(counts[group]) * denominator)
    return quotients


def _floats(codes: np.ndarray, type_: ColumnType) -> np.ndarray:
    return cast(np.ndarray, type_.domain.decode(codes, pa.float64()).to_numpy())


# -- integers as words: uint32, two's complement, lowest word first ---------


def _words(integers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(integers).view(np.uint32).reshape(len(integers), 2)


def _decimal_words(codes: np.ndarray, type_: ColumnType) -> tuple[np.ndarray, int]:
    """The decimals of ``codes`` as whole numbers of ``10**-scale``, and the scale."""
    arrow = plain_type(type_.arrow)
    array = type_.domain.decode(codes, arrow)
    n_words = arrow.bit_width // 32
    words = np.frombuffer(array.buffers()[1], np.uint32, len(array) * n_words, array.offset * n_words * 4)
    return words.reshape(len(array), n_words), arrow.scale


def _decimals_of_words(groups: _Groups, sums: np.ndarray, arrow: pa.DataType) -> pa.Array:
    n_words = arrow.bit_width // 32
    _refuse_wide(groups, sums, n_words, arrow)
    # All sums fit the type's bits; the few near its number of digits are looked at one by one.
    magnitudes = np.abs(_approximate(sums))
    for group in np.flatnonzero(magnitudes > 0.999 * 10.0**arrow.precision).tolist():
        if abs(_integer(sums[group])) >= 10**arrow.precision:
            raise _overflow(groups, group, sums, arrow)
    data = pa.py_buffer(np.ascontiguousarray(sums[:, :n_words]).tobytes())
    return pa.Array.from_buffers(arrow, len(sums), [None, data])


def _fits(sums: np.ndarray, n_words: int) -> np.ndarray:
    """Whether the words beyond the first ``n_words`` only repeat their sign."""
    extension = np.where(sums[:, n_words - 1] >> 31, np.uint32(2**32 - 1), np.uint32(0))
    return cast(np.ndarray, (sums[:, n_words:] == extension[:, np.newaxis]).all(axis=1))


def _approximate(sums: np.ndarray) -> np.ndarray:
    """The integers as doubles, with a relative error far below 0.001."""
    values = sums[:, -1].astype(np.int32).astype(np.float64)
    for word in reversed(range(sums.shape[1] - 1)):
        values = values * 2.0**32 + sums[:, word]
    return values


def _low_int64(sums: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(sums[:, :2]).view(np.int64)[:, 0]


def _integer(words: np.ndarray) -> int:
    return int.from_bytes(words.tobytes(), "little", signed=True)


def _refuse_wide(groups: _Groups, sums: np.ndarray, n_words: int, arrow: pa.DataType) -> None:
    wide = ~_fits(sums, n_words)
    if wide.any():
        raise _overflow(groups, int(wide.argmax()), sums, arrow)


def _overflow(groups: _Groups, group: int, sums: np.ndarray, arrow: pa.DataType) -> RangeError:
    shown, way_out = str(_integer(sums[group])), ""
    if pa.types.is_decimal(arrow):
        shown, way_out = f"{Decimal(f'{shown}e{-arrow.scale}'):f}", "a column of float64"
    elif pa.types.is_integer(arrow):
        way_out = "a column of decimal128(38, 0) or float64"
    message = f"{groups.name(group)} = {groups.call()} is {shown}, which does not fit {arrow}"
    return RangeError(f"{message}; {way_out} can have larger sums" if way_out else message)


# -- min and max ------------------------------------------------------------


def _extreme(groups: _Groups, function: str, type_: ColumnType) -> pa.Array:
    """Groups are sorted by the argument's place in the order of values: take each one's first or last row."""
    rows = groups.offsets[:-1] if function == "min" else groups.offsets[1:] - 1
    codes = _codes_in_order(groups.arguments[0][rows], type_)
    declared = groups.declared
    return declared.domain.decode(codes, declared.arrow)


def _places(codes: np.ndarray, type_: ColumnType) -> np.ndarray:
    """Numbers that are in the order of the codes' values."""
    return codes if type_.domain.ordered else type_.domain.ranks()[codes]


def _codes_in_order(places: np.ndarray, type_: ColumnType) -> np.ndarray:
    """Inverse of :func:`_places`."""
    if type_.domain.ordered:
        return places
    ranks = type_.domain.ranks()
    code_of_rank = np.empty(len(ranks), np.int64)
    code_of_rank[ranks] = np.arange(len(ranks))
    return code_of_rank[places]


# -- concat -----------------------------------------------------------------


def _concat(groups: _Groups, separator: str, type_: ColumnType) -> pa.Array:
    """Groups are sorted by the order variables' places and then by the string's."""
    codes = _codes_in_order(groups.arguments[-1], type_)
    strings = type_.domain.decode(codes, pa.large_string())
    counts = groups.counts()
    _refuse_long(groups, strings, len(separator.encode()), counts)
    if int(counts.sum()) > len(strings):
        strings = strings.take(pa.array(np.repeat(np.arange(len(strings)), groups.weights)))
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int64())
    lists = pa.LargeListArray.from_arrays(offsets, strings.cast(pa.string()))
    return pc.binary_join(lists, separator).cast(groups.declared.arrow)


def _refuse_long(groups: _Groups, strings: pa.Array, separator_bytes: int, counts: np.ndarray) -> None:
    """An Arrow array of strings holds 2 GiB: refuse more before any of it is made."""
    lengths = pc.binary_length(strings).to_numpy().astype(np.float64) * groups.weights
    sizes = np.add.reduceat(lengths, groups.offsets[:-1]) + separator_bytes * (counts - 1.0)
    sizes = np.maximum(sizes, counts)  # empty strings take memory on the way too
    if sizes.sum() > _STRING_BYTES:
        group = int(sizes.argmax())
        raise RangeError(
            f"the values of {groups.head.relation} = {groups.call()} take {sizes.sum():.0f} bytes, more than"
            f" the 2 GiB that a column of strings holds; the largest, {groups.name(group)},"
            f" takes {sizes[group]:.0f}"
        )
