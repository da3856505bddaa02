"""Windows: a value of each row among the rows of its partition, in their order.

The input is a Z-set of rows, as that of aggregates: a row counts as often as it stands for assignments.

What comes out

1. Partitions are rows with equal values of ``per:``, NULL among them.  In a partition rows are ordered by the
   values of ``by:``, and where these are equal by those of all other variables of the row: the order is
   total, and what comes out depends on nothing but the rows.  *Peers* are equal in ``by:``.
2. ``row_number``, ``rank`` and ``dense_rank`` as SQL has them; ``top`` is ``row_number`` up to its number.
3. A frame is SQL's ``rows``, ``range`` or ``groups between``; without one it goes from the first row of the
   partition to the last peer, and without an order over the whole partition.
4. ``sum`` and ``avg`` are exact and rounded once, as aggregates are; all but ``first`` and ``last`` pass over
   NULL; of no value they are NULL, ``count`` is 0.

Cost: a sort, O(n log n), then O(n) in whole-array operations; sums of floats and decimals, and of integers
beyond 64 bits, take Python's integers, some microseconds a row; extremes of frames O(n log n).

Source: SQL:2003, 4.14.9.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.aggregates.sum_values import decimal_scale, doubles
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Constant, Frame, Variable, Window
from lftj.storage.sorting import sorted_order
from lftj.values.domain import NULL_CODE
from lftj.values.literals import NULL
from lftj.values.names import NUMBERING, SHARES
from lftj.values.schema import ColumnType

Types = Mapping[str, ColumnType]

_BEFORE_ALL, _BEHIND_ALL = -(2**63), 2**63 - 1
EXACT = Context(prec=100)


def row_names(head: CheckedHead) -> tuple[str, ...]:
    """What the rows of a head's windows hold: partition, order, then all else that it reads."""
    first = head.windows[0]
    read = [variable.name for window in head.windows for variable in window.variables]
    by = [one.variable.name for one in first.by]
    return tuple(dict.fromkeys([*(one.name for one in first.per), *by, *head.variables, *read]))


def windowed(
    head: CheckedHead,
    types: Types,
    columns: Sequence[np.ndarray],
    weights: np.ndarray,
    left_out: tuple[int, int] = (0, 0),
) -> list[np.ndarray]:
    """The tuples of a head with windows, one for each row; where only some are kept, for these.

    ``columns``: int64 codes of :func:`row_names`; rows are distinct, their weights above 0.  ``left_out``: so
    many rows at the beginning and at the end have no tuple.
    Raises RangeError where a sum does not fit its type.

    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> from lftj.language.syntax import SortKey
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("v", integer), Column("rank", integer)))
    >>> rank = Window("rank", (), (), (SortKey(Variable("v"), descending=True),))
    >>> head = CheckedHead("h", ("v",), None, schema, (0, 0), (rank,))
    >>> [column.tolist() for column in windowed(head, {"v": integer}, [np.array([5, 7])], np.array([1, 2]))]
    [[7, 7, 5], [1, 1, 3]]
    """
    names = row_names(head)
    found = dict(zip(names, columns, strict=True))
    if int(weights.max(initial=1)) > 1:
        rows = np.repeat(np.arange(len(weights)), weights)
        found = {name: column[rows] for name, column in found.items()}
    ordered = _Ordered.of(head, types, found)
    kept = [ordered.codes[name] for name in head.variables]
    for window, column in zip(head.windows, head.schema.columns[len(head.variables) :], strict=True):
        codes = _values(window, ordered, column.type)
        if column.type.nullable and (codes == NULL_CODE).any():
            column.type.domain.keep_null()
        kept.append(codes)
    first, last = left_out
    kept = [column[first : len(ordered) - last] for column in kept]
    most = [window.most for window in head.windows if window.most is not None]
    if most:
        fits = ordered.numbers <= min(most)
        kept = [column[fits] for column in kept]
    return kept


@dataclass(frozen=True)
class _Ordered:
    """Rows in the order of partitions, and in each of ``by:``; all arrays have a row each, int64."""

    head: CheckedHead
    types: Types
    codes: dict[str, np.ndarray]
    starts: np.ndarray  # of the partition
    ends: np.ndarray
    peer_starts: np.ndarray
    peer_ends: np.ndarray

    @classmethod
    def of(cls, head: CheckedHead, types: Types, codes: Mapping[str, np.ndarray]) -> _Ordered:
        first = head.windows[0]
        n = len(next(iter(codes.values())))
        per = [codes[variable.name] for variable in first.per]
        by = [
            order_keys(codes[one.variable.name], types[one.variable.name], one.descending, one.nulls_first)
            for one in first.by
        ]
        ordering = {variable.name for variable in (*first.per, *(one.variable for one in first.by))}
        rest = [order_keys(codes[name], types[name]) for name in codes if name not in ordering]
        order = sorted_order([*per, *by, *rest])
        starts, ends = _runs([column[order] for column in per], n)
        peer_starts, peer_ends = _runs([column[order] for column in (*per, *by)], n)
        sorted_codes = {name: column[order] for name, column in codes.items()}
        return cls(head, types, sorted_codes, starts, ends, peer_starts, peer_ends)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def numbers(self) -> np.ndarray:
        """Of each row in its partition, from 1."""
        return np.arange(1, len(self) + 1) - self.starts

    @property
    def peer_numbers(self) -> np.ndarray:
        """Of each row's peers among the groups of peers, over all partitions, from 0."""
        first = self.peer_starts == np.arange(len(self))
        return np.cumsum(first) - 1


def order_keys(
    codes: np.ndarray, type_: ColumnType, descending: bool = False, nulls_first: bool = False
) -> np.ndarray:
    """Numbers in the order of the codes' values, that of NULL before or behind all."""
    missing = codes == NULL_CODE if type_.nullable else np.zeros(len(codes), bool)
    keys = codes
    if not type_.domain.ordered:
        keys = np.zeros(len(codes), np.int64)
        keys[~missing], _ = type_.domain.places(codes[~missing])
    keys = ~keys if descending else keys.copy()
    keys[missing] = _BEFORE_ALL if nulls_first else _BEHIND_ALL
    return keys


def order_codes(
    keys: np.ndarray, type_: ColumnType, descending: bool = False, nulls_first: bool = False
) -> np.ndarray:
    """The codes that :func:`order_keys` made keys of, in an ordered domain."""
    codes = ~keys if descending else keys
    if not type_.nullable:
        return codes
    return np.where(keys == (_BEFORE_ALL if nulls_first else _BEHIND_ALL), NULL_CODE, codes)


def _runs(columns: Sequence[np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the run of equal rows begins in which each row stands, and where it ends."""
    begins = np.zeros(n, bool)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    firsts = np.flatnonzero(begins)
    lengths = np.diff(np.append(firsts, n))
    return np.repeat(firsts, lengths), np.repeat(firsts + lengths, lengths)


def _values(window: Window, rows: _Ordered, declared: ColumnType) -> np.ndarray:
    """The codes of a window's values."""
    function = window.function
    if function == "rank":
        return rows.peer_starts - rows.starts + 1
    if function == "dense_rank":
        groups = rows.peer_numbers
        return groups - groups[rows.starts] + 1
    if function == "ntile":
        return _parts(window, rows)
    if function in SHARES:
        return declared.encode(pa.array(_shares(function, rows)))
    if function in NUMBERING:
        return rows.numbers
    if function in ("lag", "lead"):
        return _shifted(window, rows, declared)
    first, last = _frames(window, rows)
    if not window.arguments:
        return last - first
    argument, *number = window.arguments
    assert isinstance(argument, Variable)
    codes, type_ = rows.codes[argument.name], rows.types[argument.name]
    if function in ("first", "last"):
        place = first if function == "first" else last - 1
        return _taken(codes, np.where(last > first, place, -1))
    if function == "nth":
        assert isinstance(number[0], Constant) and isinstance(number[0].value, int)
        place = first + number[0].value - 1
        return _taken(codes, np.where(place < last, place, -1))
    known = codes != NULL_CODE if type_.nullable else np.ones(len(codes), bool)
    counts = _added(known.astype(np.int64), first, last)
    if function == "count":
        return counts
    if function in ("min", "max"):
        keys = order_keys(codes, type_, descending=function == "max")
        places = _least_places(keys, first, last)
        return _taken(codes, np.where(counts > 0, places, -1))
    return _sums(window, codes, known, (type_, declared), first, last, counts)


def _parts(window: Window, rows: _Ordered) -> np.ndarray:
    """``ntile``: the first parts have a row more where the rows can't be shared out evenly."""
    (number,) = window.arguments
    assert isinstance(number, Constant) and isinstance(number.value, int)
    each, more = np.divmod(rows.ends - rows.starts, number.value)
    place = rows.numbers - 1
    in_larger = more * (each + 1)
    behind = more + (place - in_larger) // np.maximum(each, 1)
    return np.where(place < in_larger, place // (each + 1), behind) + 1


def _shares(function: str, rows: _Ordered) -> np.ndarray:
    """Of the rows of the partition: those before the row, of all others; those up to its peers, of all."""
    sizes = rows.ends - rows.starts
    if function == "cume_dist":
        return (rows.peer_ends - rows.starts) / sizes
    return (rows.peer_starts - rows.starts) / np.maximum(sizes - 1, 1)


def _shifted(window: Window, rows: _Ordered, declared: ColumnType) -> np.ndarray:
    argument, *more = window.arguments
    assert isinstance(argument, Variable)
    away: Any = more[0].value if more and isinstance(more[0], Constant) else 1
    places = np.arange(len(rows)) + (away if window.function == "lead" else -away)
    inside = (places >= rows.starts) & (places < rows.ends)
    found = _taken(rows.codes[argument.name], np.where(inside, places, -1))
    if len(more) < 2:
        return found
    default = more[1]
    if isinstance(default, Variable):
        return np.where(inside, found, rows.codes[default.name])
    value = None if default.value is NULL else default.value
    return np.where(inside, found, declared.encode(pa.array([value], declared.arrow)))


def _taken(codes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The codes at places, NULL at -1."""
    if not len(codes):
        return codes
    return np.where(places >= 0, codes[np.maximum(places, 0)], NULL_CODE)


# -- frames -------------------------------------------------------------------------


def _frames(window: Window, rows: _Ordered) -> tuple[np.ndarray, np.ndarray]:
    """The half-open range of rows that each row's frame holds."""
    frame = window.frame
    if frame is None:
        return rows.starts, rows.peer_ends if window.by else rows.ends
    at = np.arange(len(rows))
    if frame.unit == "rows":
        first = rows.starts if frame.first is None else at + int(frame.first)
        last = rows.ends if frame.last is None else at + int(frame.last) + 1
    elif frame.unit == "groups":
        first, last = _of_groups(frame, rows)
    else:
        first, last = _of_range(frame, window, rows)
    first, last = np.clip(first, rows.starts, rows.ends), np.clip(last, rows.starts, rows.ends)
    return first, np.maximum(first, last)


def _of_groups(frame: Frame, rows: _Ordered) -> tuple[np.ndarray, np.ndarray]:
    groups, n = rows.peer_numbers, len(rows)
    begins = np.append(np.flatnonzero(rows.peer_starts == np.arange(n)), n)

    def start(number: np.ndarray) -> np.ndarray:
        return begins[np.clip(number, 0, len(begins) - 1)]

    first = rows.starts if frame.first is None else start(groups + int(frame.first))
    last = rows.ends if frame.last is None else start(groups + int(frame.last) + 1)
    return first, last


def _of_range(frame: Frame, window: Window, rows: _Ordered) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose order value is within a distance; of a NULL its peers are, and what an open end adds."""
    first = rows.starts if frame.first is None else rows.peer_starts
    last = rows.ends if frame.last is None else rows.peer_ends
    if not frame.first and not frame.last:
        return first, last
    (order,) = window.by
    name = order.variable.name
    codes, type_ = rows.codes[name], rows.types[name]
    values = _exact_numbers(codes, type_)
    if order.descending:
        values = [None if value is None else -value for value in values]
    first, last = first.copy(), last.copy()
    begin, n = 0, len(rows)
    while begin < n:
        end = int(rows.ends[begin])
        known = [row for row in range(begin, end) if values[row] is not None]
        for end_of, offset in ((first, frame.first), (last, frame.last)):
            if offset and known:
                _move(end_of, values, known, Fraction(offset), behind=end_of is last)
        begin = end
    return first, last


def _exact_numbers(codes: np.ndarray, type_: ColumnType) -> list[Fraction | None]:
    """The values of codes as exact numbers; None for NULL, NaN and infinities."""
    if type_.domain.name not in ("float", "decimal"):  # codes count units
        return [None if type_.nullable and code == NULL_CODE else Fraction(code) for code in codes.tolist()]
    values = type_.domain.decode(codes, type_.arrow).to_pylist()
    return [None if one is None or not math.isfinite(one) else Fraction(one) for one in values]


def _move(
    ends: np.ndarray, values: list[Fraction | None], known: list[int], offset: Fraction, behind: bool
) -> None:
    """Set the frame's end of every row to where its value and the offset come to; values ascend."""
    place, stop = known[0], known[-1] + 1
    for row in known:
        wanted = values[row] + offset  # type: ignore[operator]
        while place < stop and (values[place] < wanted or (behind and values[place] == wanted)):  # type: ignore[operator]
            place += 1
        ends[row] = place


def _least_places(keys: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Where the least key of each range stands, the first of equal ones; of an empty range any place.

    By a table of the least of all stretches of 1, 2, 4, ... rows.
    """
    n = len(keys)
    if not n:
        return first
    levels = [np.arange(n)]
    length = 1
    longest = int((last - first).max(initial=1))
    while 2 * length <= longest:
        known = levels[-1]
        left, right = known[: n - 2 * length + 1], known[length : n - length + 1]
        levels.append(np.where(keys[right] < keys[left], right, left))
        length *= 2
    lengths = np.maximum(last - first, 1)
    level = np.frexp(lengths.astype(np.float64))[1] - 1
    found = np.zeros(n, np.int64)
    for number, known in enumerate(levels):
        rows = np.flatnonzero((level == number) & (last > first))
        left, right = known[first[rows]], known[last[rows] - (1 << number)]
        found[rows] = np.where(keys[right] < keys[left], right, left)
    return found


# -- sums ---------------------------------------------------------------------------


def _added(numbers: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The sum of the numbers of each range; of any type with exact sums."""
    sums = np.zeros(len(numbers) + 1, numbers.dtype)
    np.cumsum(numbers, out=sums[1:])
    return sums[last] - sums[first]


def _sums(
    window: Window,
    codes: np.ndarray,
    known: np.ndarray,
    types: tuple[ColumnType, ColumnType],
    first: np.ndarray,
    last: np.ndarray,
    counts: np.ndarray,
) -> np.ndarray:
    """``sum`` and ``avg``; ``types``: of the argument and of the result."""
    type_, declared = types
    name = type_.domain.name
    specials = np.zeros(len(codes))
    unit = 1  # of a value there are so many whole numbers
    if name == "float":
        values = np.where(known, doubles(np.where(known, codes, 0), type_), 0.0)
        finite = np.isfinite(values)
        if not finite.all():
            specials = _special_sums(values, first, last)
        unit = _FLOAT_UNIT
        numbers = _objects([_in_float_units(value) for value in np.where(finite, values, 0.0).tolist()])
    elif name == "decimal":
        digits = decimal_scale(type_)
        unit = 10**digits
        decimals = type_.domain.decode(codes, type_.arrow).to_pylist()
        numbers = _objects([0 if one is None else int(one.scaleb(digits, EXACT)) for one in decimals])
    else:
        numbers = np.where(known, codes, 0)
        if np.abs(numbers.astype(np.float64)).sum() >= _SAFE_SUM:
            numbers = numbers.astype(object)
    parts = zip(_added(numbers, first, last).tolist(), counts.tolist(), specials.tolist(), strict=True)
    if window.function == "avg" or name == "float":
        by_count = window.function == "avg"
        doubled = [
            special + _quotient(total, unit * (n if by_count else 1)) if n else None
            for total, n, special in parts
        ]
        return declared.encode(pa.array(doubled, pa.float64()))
    totals = [total if n else None for total, n, _ in parts]
    try:
        if name == "decimal":
            whole = [None if one is None else Decimal(one).scaleb(-digits, EXACT) for one in totals]
            return declared.encode(pa.array(whole, declared.arrow))
        return declared.encode(pa.array(totals, pa.int64()).cast(declared.arrow))
    except (pa.ArrowInvalid, OverflowError):
        call = f"{window.function}({window.arguments[0].name})"  # type: ignore[union-attr]
        raise RangeError(f"{call} of a frame does not fit type {declared.arrow}") from None


_FLOAT_UNIT = 2**1074
_SAFE_SUM = 2.0**62


def _in_float_units(value: float) -> int:
    """A float as a whole number of the least float above 0."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_FLOAT_UNIT // denominator)


def _quotient(dividend: int, divisor: int) -> float:
    """Rounded once; beyond all floats infinite."""
    try:
        return dividend / divisor
    except OverflowError:
        return math.copysign(math.inf, dividend)


def _special_sums(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Of each range what NaN and infinities in it add up to, 0 without any."""
    sums = np.zeros(len(values))
    for special in (np.inf, -np.inf):
        there = _added((values == special).astype(np.int64), first, last) > 0
        sums[there] += special
    sums[_added(np.isnan(values).astype(np.int64), first, last) > 0] = np.nan
    return sums


def _objects(numbers: list[int]) -> np.ndarray:
    found = np.empty(len(numbers), object)
    found[:] = numbers
    return found
