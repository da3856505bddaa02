"""Rows in the order of windows, and the frames around them.

A *span* is a half-open range of rows of one partition, by their places; a frame is one.

Cost: a sort, O(n log n), then O(n) in whole-array operations; ranges of floats and decimals take Python's
fractions, some microseconds a row; the least of each span O(n log n).

Source: SQL:2003, 4.14.9 and 7.11.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.language.body import CheckedHead
from lftj.language.syntax import Frame, Window
from lftj.storage.sorting import sorted_order
from lftj.values.domain import NULL_CODE
from lftj.values.schema import ColumnType

Types = Mapping[str, ColumnType]


def row_names(head: CheckedHead) -> tuple[str, ...]:
    """What the rows of a head's windows hold: partition, order, then all else that it reads."""
    first = head.windows[0]
    read = [variable.name for window in head.windows for variable in window.variables]
    by = [one.variable.name for one in first.by]
    return tuple(dict.fromkeys([*(one.name for one in first.per), *by, *head.variables, *read]))


@dataclass(frozen=True)
class OrderedRows:
    """Rows in the order of partitions, and in each of ``by:``; all arrays have a row each, int64."""

    types: Types
    codes: dict[str, np.ndarray]
    source: np.ndarray
    """Which of the rows that were given each one is; a row of weight 2 is there twice."""
    parts: np.ndarray
    """The number of the partition."""
    starts: np.ndarray  # of the partition
    ends: np.ndarray
    peer_starts: np.ndarray
    peer_ends: np.ndarray

    @classmethod
    def of(
        cls,
        head: CheckedHead,
        types: Types,
        columns: Sequence[np.ndarray],
        weights: np.ndarray,
        parts: np.ndarray | None = None,
        any_order: bool = False,
    ) -> OrderedRows:
        """``columns``: int64 codes of :func:`row_names`; ``weights``: above 0.

        ``parts``: the partitions' numbers, ascending, instead of those that ``per:`` makes.  ``any_order``:
        rows stay as they come, partition by partition; there is no ``by:``.
        """
        names = row_names(head)
        codes = dict(zip(names, columns, strict=True))
        source = np.arange(len(weights))
        if int(weights.max(initial=1)) > 1:
            source = np.repeat(source, weights)
        first = head.windows[0]
        n = len(source)
        per = [codes[variable.name] for variable in first.per] if parts is None else [parts]
        by = [
            order_keys(codes[one.variable.name], types[one.variable.name], one.descending, one.nulls_first)
            for one in first.by
        ]
        if not any_order:
            ordering = {variable.name for variable in (*first.per, *(one.variable for one in first.by))}
            rest = [order_keys(codes[name], types[name]) for name in names if name not in ordering]
            source = source[sorted_order([column[source] for column in (*per, *by, *rest)])]
        per, by = [column[source] for column in per], [column[source] for column in by]
        starts, ends = _runs(per, n)
        peer_starts, peer_ends = _runs([*per, *by], n)
        numbers = np.cumsum(starts == np.arange(n)) - 1 if parts is None else per[0]
        return cls(
            types=types,
            codes={name: column[source] for name, column in codes.items()},
            source=source,
            parts=numbers,
            starts=starts,
            ends=ends,
            peer_starts=peer_starts,
            peer_ends=peer_ends,
        )

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
    """Numbers in the order of the codes' values, that of NULL before or behind all, which no value has.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64(), nullable=True)
    >>> codes = np.array([NULL_CODE, 5, 2**63 - 1])
    >>> order_keys(codes, integer).argsort().tolist()
    [1, 2, 0]
    >>> order_codes(order_keys(codes, integer), integer).tolist() == codes.tolist()
    True
    """
    keys = codes
    if not type_.domain.ordered:
        missing = codes == NULL_CODE if type_.nullable else np.zeros(len(codes), bool)
        keys = np.full(len(codes), NULL_CODE)
        keys[~missing], _ = type_.domain.places(codes[~missing])
    keys = ~keys if descending else keys
    return keys + _null_shift(type_, descending, nulls_first)


def order_codes(
    keys: np.ndarray, type_: ColumnType, descending: bool = False, nulls_first: bool = False
) -> np.ndarray:
    """The codes that :func:`order_keys` made keys of, in an ordered domain."""
    keys = keys - _null_shift(type_, descending, nulls_first)
    return ~keys if descending else keys


def _null_shift(type_: ColumnType, descending: bool, nulls_first: bool) -> np.int64:
    """What brings the least of all codes, or the greatest of all numbers, to the other end, around it.

    That of NULL is the least: in ascending order before all, in descending order behind all.
    """
    if not type_.nullable or nulls_first != descending:
        return np.int64(0)
    return np.int64(1 if descending else -1)


def _runs(columns: Sequence[np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the run of equal rows begins in which each row stands, and where it ends."""
    begins = np.zeros(n, bool)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    firsts = np.flatnonzero(begins)
    lengths = np.diff(np.append(firsts, n))
    return np.repeat(firsts, lengths), np.repeat(firsts + lengths, lengths)


# -- frames -------------------------------------------------------------------------


def frames(window: Window, rows: OrderedRows) -> tuple[np.ndarray, np.ndarray]:
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


def _of_groups(frame: Frame, rows: OrderedRows) -> tuple[np.ndarray, np.ndarray]:
    groups, n = rows.peer_numbers, len(rows)
    begins = np.append(np.flatnonzero(rows.peer_starts == np.arange(n)), n)

    def start(number: np.ndarray) -> np.ndarray:
        return begins[np.clip(number, 0, len(begins) - 1)]

    first = rows.starts if frame.first is None else start(groups + int(frame.first))
    last = rows.ends if frame.last is None else start(groups + int(frame.last) + 1)
    return first, last


def _of_range(frame: Frame, window: Window, rows: OrderedRows) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose order value is within a distance; of a NULL its peers are, and what an open end adds."""
    first = rows.starts if frame.first is None else rows.peer_starts
    last = rows.ends if frame.last is None else rows.peer_ends
    if not frame.first and not frame.last:
        return first, last
    (order,) = window.by
    codes, type_ = rows.codes[order.variable.name], rows.types[order.variable.name]
    keys = order_keys(codes, type_, order.descending, order.nulls_first)
    inexact = type_.domain.name in ("float", "decimal")
    values = _exact_numbers(codes, type_, order.descending) if inexact else []
    known = np.ones(len(codes), bool) if inexact or not type_.nullable else codes != NULL_CODE
    first, last = first.copy(), last.copy()
    for begin, end in zip(*(np.unique(one).tolist() for one in (rows.starts, rows.ends)), strict=True):
        there = begin + np.flatnonzero(known[begin:end])
        counted = [row for row in range(begin, end) if values[row] is not None] if inexact else []
        for ends, offset in ((first, frame.first), (last, frame.last)):
            if offset and counted:
                _move(ends, values, counted, Fraction(offset), behind=ends is last)
            elif offset and not inexact and len(there):
                whole = math.floor(offset) if ends is last else math.ceil(offset)
                ends[there] = there[0] + _moved(keys[there], whole, behind=ends is last)
    return first, last


def _moved(keys: np.ndarray, offset: int, behind: bool) -> np.ndarray:
    """Of each of ascending numbers, where it and the offset would stand among them."""
    beyond = keys > KEY_MAX - offset if offset > 0 else keys < KEY_MIN - offset
    wanted = np.where(beyond, 0, keys) + np.where(beyond, 0, offset)
    places = np.searchsorted(keys, wanted, side="right" if behind else "left")
    return np.where(beyond, len(keys) if offset > 0 else 0, places)


def _exact_numbers(codes: np.ndarray, type_: ColumnType, negative: bool) -> list[Fraction | None]:
    """The values of codes as exact numbers, or their opposites; None for NULL, NaN and infinities."""
    values = type_.domain.decode(codes, type_.arrow).to_pylist()
    known = [None if one is None or not math.isfinite(one) else Fraction(one) for one in values]
    return [None if one is None else -one for one in known] if negative else known


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


def least_places(keys: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
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
    found = np.zeros(len(first), np.int64)
    for number, known in enumerate(levels):
        rows = np.flatnonzero((level == number) & (last > first))
        left, right = known[first[rows]], known[last[rows] - (1 << number)]
        found[rows] = np.where(keys[right] < keys[left], right, left)
    return found
