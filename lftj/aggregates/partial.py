"""Aggregates of assignments that are found in several places, each in one of them.

    Aggregation(rows of all places) = FinalAggregation(PartialAggregation(rows of each place))

bit for bit.  A place makes *partials*, a table with a row per group, or per
distinct row where the aggregate needs them all; partials of all places together,
in any order, give the groups and values.  Places may be processes: a partial
holds values, never codes, which mean something in one process only.

What a partial holds of a group, beside its key columns ``key#0``, ``key#1``, ...

    count             count#                                    assignments
    sum, avg          count#, sum#                              and the exact sum (``number_columns``)
      of floats       + nan#, infinity#, minus_infinity#        how many of the assignments have these
    min, max          value#                                    the place's own least or greatest value
    all others        argument#0, ..., weight#                  the place's distinct rows: the arguments in
                                                                the order to sort by, the aggregated one last

Invariants

1. Nothing is rounded before the last partial is in.
2. What comes out does not depend on how assignments are spread, on the order of tables
   or of their rows, or on the codes of either side.
3. A sum's summands and weights number less than ``2**63`` assignments, or
   :class:`~lftj.errors.RangeError` says so; numbers are wider than any sum of those.
4. A group without assignments has no partial, so a global aggregate over nothing gives no row.

Cost: of a partial that of :class:`~lftj.aggregates.whole.Aggregation` without its
values; of the rest a sort of the partials and O(their limbs).  Memory follows the
distinct rows in the first case and twice the groups in the second, except
where all rows travel.

Source: ILFTJ 2.3.4 for exact sums, 2.3.3 for folds in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lftj.aggregates.exact_sums import ExactSums
from lftj.aggregates.group_names import GroupNames
from lftj.aggregates.limb_numbers import Numbers
from lftj.aggregates.limb_pool import LimbPool
from lftj.aggregates.number_columns import columns_of, joined_numbers, numbers_of, sums_of, taken
from lftj.aggregates.whole import Aggregation, Groups, argument_names, extreme_codes, of_head
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate
from lftj.storage.sorting import first_rows_of_equal
from lftj.storage.zset import BUFFER_ROWS, guarded_total
from lftj.values.schema import ColumnType

Columns = list[np.ndarray]

_COUNT, _SUM, _VALUE, _WEIGHT = "count#", "sum#", "value#", "weight#"
_SPECIALS = ("nan#", "infinity#", "minus_infinity#")


def key_names(head: CheckedHead) -> list[str]:
    """The columns of partials that hold the group: what partials are spread by; none for one group."""
    return [f"key#{place}" for place in range(len(head.variables))]


def partial_schema(head: CheckedHead, types: Mapping[str, ColumnType]) -> pa.Schema:
    """The columns of a head's partials.  ``types``: of its variables.

    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import Variable
    >>> float_ = ColumnType(Domains().of(pa.float32()), pa.float32())
    >>> schema = Schema((Column("p", float_), Column("c", float_)), functional=True)
    >>> head = CheckedHead("most", ("p",), Aggregate("max", (Variable("c"),)), schema, (0, 0))
    >>> partial_schema(head, {"p": float_, "c": float_})
    key#0: float
    value#: float
    """
    fields = [(name, types[key].arrow) for name, key in zip(key_names(head), head.variables, strict=True)]
    arguments = argument_names(_call(head))
    function = _call(head).function
    if function in ("count", "sum", "avg"):
        fields.append((_COUNT, pa.int64()))
        if function != "count":
            fields.append((_SUM, pa.binary()))
            if ExactSums(head, types).has_specials:
                fields += [(name, pa.int64()) for name in _SPECIALS]
    elif function in ("min", "max"):
        fields.append((_VALUE, types[arguments[0]].arrow))
    else:
        fields += [(f"argument#{place}", types[name].arrow) for place, name in enumerate(arguments)]
        fields.append((_WEIGHT, pa.int64()))
    return pa.schema(fields)


class PartialAggregation:
    """One place's share of a head's aggregate: batches of assignments in, partials out.

    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import Variable
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("p", integer), Column("c", integer)), functional=True)
    >>> head = CheckedHead("most", ("p",), Aggregate("max", (Variable("c"),)), schema, (0, 0))
    >>> types, final = {"p": integer, "c": integer}, FinalAggregation(head, {"p": integer, "c": integer})
    >>> for values in ([10, 20], [15, 30]):
    ...     place = PartialAggregation(head, types)
    ...     place.add({"p": np.array([1, 2]), "c": np.array(values)}, np.array([1, 1]))
    ...     final.add(place.finish())
    >>> keys, values = final.finish()
    >>> keys[0].tolist(), values.to_pylist()
    ([1, 2], [15, 30])
    """

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of every variable that the head has as a key or an argument."""
        self._head = head
        self._types = types
        self._rows = Aggregation(head, types)

    def add(self, columns: Mapping[str, np.ndarray], weights: np.ndarray) -> None:
        """Add rows, as :meth:`lftj.aggregates.whole.Aggregation.add` takes them; raises as it does."""
        self._rows.add(columns, weights)

    def finish(self) -> pa.Table:
        """The partials: columns of :func:`partial_schema`.

        Raises ValueError when rows add up to a negative weight: there is no such multiset.  O(n log n).
        """
        function = _call(self._head).function
        schema = partial_schema(self._head, self._types)
        if function in ("count", "sum", "avg", "min", "max"):
            groups = self._rows.groups()
            keys, own = groups.keys, self._of_groups(groups)
        else:
            columns, weights = self._rows.net_rows()
            n_keys = len(self._head.variables)
            keys, own = columns[:n_keys], self._decoded(columns[n_keys:], argument_names(_call(self._head)))
            own.append(_int64s(weights))
        return pa.Table.from_arrays([*self._decoded(keys, self._head.variables), *own], schema=schema)

    def _of_groups(self, groups: Groups) -> list[pa.ChunkedArray]:
        """The columns behind the keys, a row per group."""
        call = _call(self._head)
        if call.function in ("min", "max"):
            return self._decoded([extreme_codes(groups, call.function)], argument_names(call))
        n_groups = len(groups.offsets) - 1
        counts = [_int64s(groups.counts() if n_groups else np.empty(0, np.int64))]
        if call.function == "count":
            return counts
        sums, specials = ExactSums(self._head, self._types), np.zeros((n_groups, 3), np.int64)
        (codes,) = groups.arguments
        slots = np.arange(n_groups)
        (numbers,) = sums.added([LimbPool()], slots, codes, groups.weights, groups.offsets, specials)
        special_columns = [_int64s(column) for column in specials.T] if sums.has_specials else []
        return [*counts, columns_of(numbers), *special_columns]

    def _decoded(self, columns: Columns, names: tuple[str, ...] | list[str]) -> list[pa.ChunkedArray]:
        types = [self._types[name] for name in names]
        return [
            type_.domain.decode_chunked(codes, type_.arrow)
            for codes, type_ in zip(columns, types, strict=True)
        ]


class FinalAggregation:
    """A head's groups and values from the partials of all places; see :class:`PartialAggregation`."""

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        """``types``: of the head's variables, of the same Arrow types as where the partials were made."""
        self._head = head
        self._types = types
        self._names = [field.name for field in partial_schema(head, types)]
        summed = _call(head).function in ("sum", "avg")
        # Of all others a partial is a row of assignments itself, or as good as one.
        self._rows: Aggregation | PartialSums = (
            PartialSums(head, types) if summed else Aggregation(head, types)
        )

    def add(self, partials: pa.Table | pa.RecordBatch) -> None:
        """Add a table of partials, columns by name.

        Raises ValueError for a table of other columns, and :class:`~lftj.errors.RangeError` when there are
        more than ``2**63`` assignments in all; of ``min`` and ``max`` nobody counts them.
        """
        if partials.schema.names != self._names:
            raise ValueError(
                f"partials of {shown_name(self._head.relation)} have the columns {', '.join(self._names)},"
                f" these {', '.join(partials.schema.names)}"
            )
        keys = {
            name: self._types[name].encode(partials.column(column))
            for name, column in zip(self._head.variables, key_names(self._head), strict=True)
        }
        if isinstance(self._rows, PartialSums):
            self._rows.add([keys[name] for name in self._head.variables], partials)
            return
        function, arguments = _call(self._head).function, argument_names(_call(self._head))
        columns = [_VALUE] if function in ("min", "max") else [f"argument#{i}" for i in range(len(arguments))]
        rows = {
            name: self._types[name].encode(partials.column(column))
            for name, column in zip(arguments, columns, strict=True)
        }
        if function in ("min", "max"):
            weights = np.ones(len(partials), np.int64)
        else:
            weights = _numpy(partials.column(_COUNT if function == "count" else _WEIGHT))
        self._rows.add({**keys, **rows}, weights)

    def finish(self) -> tuple[Columns, pa.Array]:
        """What :meth:`lftj.aggregates.whole.Aggregation.finish` gives for all assignments; raises as it does.

        Which group an error names, of several that it could, depends on the codes here as it does there.
        """
        return self._rows.finish()


class _Summed(NamedTuple):
    """Counts and exact sums by key; ``specials``: (rows, 3), NaN, +inf, -inf."""

    keys: Columns
    counts: np.ndarray
    specials: np.ndarray
    numbers: Numbers


class PartialSums:
    """The partials of a ``sum`` or ``avg`` head in the making: tables in, groups and values out."""

    def __init__(self, head: CheckedHead, types: Mapping[str, ColumnType]) -> None:
        self._head = head
        self._types = types
        self._sums = ExactSums(head, types)
        self._n_assignments = 0
        none = np.empty(0, np.int64)
        # The first part has a row per key, sorted; the others are as they came.
        self._parts = [_Summed([none for _ in head.variables], none, none.reshape(0, 3), joined_numbers([]))]

    def add(self, keys: Columns, partials: pa.Table | pa.RecordBatch) -> None:
        """Add partials; ``keys``: their codes.  Raises :class:`~lftj.errors.RangeError`."""
        counts = _numpy(partials.column(_COUNT))
        numbers = numbers_of(partials.column(_SUM))
        try:
            self._n_assignments = guarded_total(self._n_assignments, counts)
        except RangeError as error:
            raise of_head(self._head, error) from None
        specials = np.zeros((len(counts), 3), np.int64)
        if self._sums.has_specials:
            specials = np.stack([_numpy(partials.column(name)) for name in _SPECIALS], axis=1)
        self._parts.append(_Summed(keys, counts, specials, numbers))
        n_waiting = sum(len(part.counts) for part in self._parts[1:])
        if n_waiting >= max(BUFFER_ROWS, len(self._parts[0].counts)):
            self._parts = [_added_up(self._parts)]

    def finish(self) -> tuple[Columns, pa.Array]:
        """As :meth:`FinalAggregation.finish`."""
        self._parts = [_added_up(self._parts)]
        (part,) = self._parts
        groups = GroupNames(self._head, self._types, part.keys)
        if not len(part.counts):
            declared = groups.declared
            return part.keys, declared.domain.decode(np.empty(0, np.int64), declared.arrow)
        return part.keys, self._sums.values(groups, [part.numbers], part.specials, part.counts)


def _added_up(parts: list[_Summed]) -> _Summed:
    """One row per key, sorted."""
    keys = [np.concatenate(columns) for columns in zip(*(part.keys for part in parts), strict=True)]
    counts = np.concatenate([part.counts for part in parts])
    if not len(counts):
        return parts[0]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(counts))
    keys = [column[order] for column in keys]
    first_rows = first_rows_of_equal(keys, len(counts))
    specials = np.concatenate([part.specials for part in parts])[order]
    numbers = taken(joined_numbers([part.numbers for part in parts]), order)
    return _Summed(
        [column[first_rows] for column in keys],
        np.add.reduceat(counts[order], first_rows),
        np.add.reduceat(specials, first_rows),
        sums_of(numbers, np.append(first_rows, len(counts))),
    )


def _call(head: CheckedHead) -> Aggregate:
    if not isinstance(head.value, Aggregate):
        raise ValueError(f"head {head.relation} has no aggregate")
    return head.value


def _int64s(values: np.ndarray) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.int64())])


def _numpy(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """An int64 column without NULL, in an array that kernels take."""
    return np.array(column, np.int64)
