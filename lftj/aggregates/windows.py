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

A *state* is what a window whose frames begin with the partition has to know of the rows before a place: with
it the rows from there on have the values that they have among all (:class:`Known`).  Equal states are equal
in Python.  Of numbering it is a number, of sums the exact number, of extremes a code.

Cost: that of the order and the frames (:mod:`lftj.aggregates.window_frames`) and of sums
(:mod:`lftj.aggregates.window_sums`).

Source: SQL:2003, 4.14.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.aggregates.window_frames import OrderedRows, Types, frames, least_places, order_keys
from lftj.aggregates.window_sums import Spans, Sums
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Constant, Variable, Window
from lftj.values.domain import NULL_CODE
from lftj.values.literals import NULL
from lftj.values.names import NUMBERING, SHARES
from lftj.values.schema import ColumnType

States = tuple[Any, ...]
"""The state of each window of a head; None of those that have none."""


@dataclass(frozen=True)
class Known:
    """What is known of rows of partitions that are not there, by number of the partition."""

    before: Sequence[States]
    """Of the rows before the first."""
    totals: Sequence[States]
    """Of all rows of the partition, as far as windows read these (:func:`is_total`)."""


def is_carried(window: Window) -> bool:
    """Whether its frames begin with the partition: so its value needs no more of what is before than a state.

    >>> from lftj.language.syntax import Frame, SortKey
    >>> by = (SortKey(Variable("v")),)
    >>> is_carried(Window("rank", (), (), by)), is_carried(Window("count", (), (), by, Frame("rows", -1, 0)))
    (True, False)
    """
    if window.function in ("lag", "lead"):
        return False
    return window.function in NUMBERING or window.frame is None or window.frame.first is None


def is_total(window: Window) -> bool:
    """Whether its value needs the state behind the last row of the partition.

    >>> is_total(Window("sum", (Variable("v"),), (), ()))
    True
    """
    if window.function in NUMBERING:
        return window.function in ("ntile", *SHARES)
    last = (
        None if window.frame is None and not window.by else 0 if window.frame is None else window.frame.last
    )
    return is_carried(window) and last is None


def windowed(
    head: CheckedHead, types: Types, columns: Sequence[np.ndarray], weights: np.ndarray
) -> list[np.ndarray]:
    """The tuples of a head with windows, one for each row; where only some are kept, for these.

    ``columns``: int64 codes of :func:`~lftj.aggregates.window_frames.row_names`; rows are distinct, their
    weights above 0.
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
    return tuples_of(head, OrderedRows.of(head, types, columns, weights))


def tuples_of(
    head: CheckedHead, rows: OrderedRows, known: Known | None = None, kept: np.ndarray | None = None
) -> list[np.ndarray]:
    """The tuples of ``kept`` rows, all where nothing is said; see :func:`windowed`."""
    fits = np.ones(len(rows), bool) if kept is None else kept.copy()
    found = [rows.codes[name] for name in head.variables]
    declared = [column.type for column in head.schema.columns[len(head.variables) :]]
    for number, (window, type_) in enumerate(zip(head.windows, declared, strict=True)):
        codes = _values(
            window, rows, type_, _framed(number, window, rows, known), _sizes(number, window, rows, known)
        )
        if window.most is not None:
            fits &= codes <= window.most
        found.append(codes)
    if not fits.all():
        found = [column[fits] for column in found]
    for type_, codes in zip(declared, found[len(head.variables) :], strict=True):
        if type_.nullable and (codes == NULL_CODE).any():
            type_.domain.keep_null()
    return found


def states_of(
    head: CheckedHead,
    rows: OrderedRows,
    spans: tuple[np.ndarray, np.ndarray, np.ndarray],
    before: Sequence[States] | None = None,
) -> list[States]:
    """The states behind some spans of rows.

    ``spans``: int64, where each begins, which is where a partition does, where it ends, and the number of the
    partition.  ``before``: the states before each partition; nothing is before them if None.

    >>> from lftj.values.schema import Column, Schema
    >>> from lftj.values.domains import Domains
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> windows = Window("max", (Variable("v"),), (), ()), Window("count", (), (), ())
    >>> head = CheckedHead("h", (), None, Schema(()), (0, 0), windows)
    >>> rows = OrderedRows.of(head, {"v": integer}, [np.array([5, 7])], np.array([1, 2]))
    >>> states_of(head, rows, (np.zeros(3, int), np.array([0, 1, 3]), np.zeros(3, int)))
    [(None, 0), (5, 1), (7, 3)]
    """
    first, last, parts = spans
    found: list[Sequence[Any]] = []
    for number, window in enumerate(head.windows):
        carried = None if before is None else [states[number] for states in before]
        if is_carried(window):
            found.append(_states(window, rows, Spans(first, last, parts, carried)))
        else:
            found.append([None] * len(first))
    return list(zip(*found, strict=True))


def _base(spans: Spans) -> Any:
    """The number that the state before each span is."""
    return 0 if spans.carried is None else np.array(spans.carried, np.int64)[spans.parts]


def _framed(number: int, window: Window, rows: OrderedRows, known: Known | None) -> Spans:
    """The frame of each row."""
    if known is not None and is_total(window) and window.function not in NUMBERING:
        return Spans(rows.starts, rows.starts, rows.parts, [states[number] for states in known.totals])
    carried = None
    if known is not None and is_carried(window):
        carried = [states[number] for states in known.before]
    if window.function in (*NUMBERING, "lag", "lead"):
        return Spans(rows.starts, np.arange(len(rows)), rows.parts, carried)
    return Spans(*frames(window, rows), rows.parts, carried)


def _sizes(number: int, window: Window, rows: OrderedRows, known: Known | None) -> np.ndarray:
    """How many rows the partition of each row has, where a window numbers rows by that."""
    if known is None or not (window.function in NUMBERING and is_total(window)):
        return rows.ends - rows.starts
    return np.array([states[number] for states in known.totals], np.int64)[rows.parts]


def _values(
    window: Window, rows: OrderedRows, declared: ColumnType, spans: Spans, sizes: np.ndarray
) -> np.ndarray:
    """The codes of a window's values."""
    function = window.function
    if function in NUMBERING:
        place = spans.lengths + _base(spans)
        peers = rows.peer_starts - np.arange(len(rows)), rows.peer_ends - np.arange(len(rows))
        if function == "rank":
            return place + peers[0] + 1
        if function == "dense_rank":
            return _n_groups(rows, spans.first, spans.last + 1) + _base(spans)
        if function == "ntile":
            return _parts(window, place, sizes)
        if function == "percent_rank":
            return declared.encode(pa.array((place + peers[0]) / np.maximum(sizes - 1, 1)))
        if function == "cume_dist":
            return declared.encode(pa.array((place + peers[1]) / sizes))
        return place + 1
    if function in ("lag", "lead"):
        return _shifted(window, rows, declared)
    if function == "count":
        return _count(window, rows, spans)
    if function in ("sum", "avg"):
        return _sums(window, rows, spans, declared)
    codes, there = _picked(window, rows, spans)
    return np.where(there, codes, NULL_CODE)


def _states(window: Window, rows: OrderedRows, spans: Spans) -> list[Any]:
    """The state behind each span."""
    function = window.function
    if function == "dense_rank":
        return (_n_groups(rows, spans.first, spans.last) + _base(spans)).tolist()
    if function in NUMBERING:
        return (spans.lengths + _base(spans)).tolist()
    if function == "count":
        return _count(window, rows, spans).tolist()
    if function in ("sum", "avg"):
        return Sums.of(*_argument(window, rows), spans).states(function == "avg")
    codes, there = _picked(window, rows, spans)
    picked = [
        code if is_there else None for code, is_there in zip(codes.tolist(), there.tolist(), strict=True)
    ]
    if function != "nth":
        return picked
    passed = np.minimum(spans.lengths + _passed(spans), _nth_of(window)).tolist()
    return list(zip(passed, picked, strict=True))


def _n_groups(rows: OrderedRows, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """How many groups of peers each span has."""
    if not len(rows):
        return np.zeros(len(first), np.int64)
    groups = rows.peer_numbers
    at = np.minimum(first, len(groups) - 1)
    return np.where(last > first, groups[last - 1] - groups[at] + 1, 0)


def _parts(window: Window, place: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """``ntile``: the first parts have a row more where the rows can't be shared out evenly."""
    (number,) = window.arguments
    assert isinstance(number, Constant) and isinstance(number.value, int)
    each, more = np.divmod(sizes, number.value)
    in_larger = more * (each + 1)
    behind = more + (place - in_larger) // np.maximum(each, 1)
    return np.where(place < in_larger, place // (each + 1), behind) + 1


def _shifted(window: Window, rows: OrderedRows, declared: ColumnType) -> np.ndarray:
    argument, *more = window.arguments
    assert isinstance(argument, Variable)
    away: Any = more[0].value if more and isinstance(more[0], Constant) else 1
    places = np.arange(len(rows)) + (away if window.function == "lead" else -away)
    inside = (places >= rows.starts) & (places < rows.ends)
    found = np.where(inside, _taken(rows.codes[argument.name], places), NULL_CODE)
    if len(more) < 2:
        return found
    default = more[1]
    if isinstance(default, Variable):
        return np.where(inside, found, rows.codes[default.name])
    value = None if default.value is NULL else default.value
    return np.where(inside, found, declared.encode(pa.array([value], declared.arrow)))


def _taken(codes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The codes at places; beyond all rows any."""
    if not len(codes):
        return np.full(len(places), NULL_CODE)
    return codes[np.clip(places, 0, len(codes) - 1)]


def _argument(window: Window, rows: OrderedRows) -> tuple[np.ndarray, np.ndarray, ColumnType]:
    """The codes of what a window reads, which are no NULL, and their type."""
    argument = window.arguments[0]
    assert isinstance(argument, Variable)
    codes, type_ = rows.codes[argument.name], rows.types[argument.name]
    return codes, codes != NULL_CODE if type_.nullable else np.ones(len(codes), bool), type_


def _count(window: Window, rows: OrderedRows, spans: Spans) -> np.ndarray:
    if not window.arguments:
        return spans.lengths + _base(spans)
    _, known, _ = _argument(window, rows)
    return spans.added(known.astype(np.int64)) + _base(spans)


# -- one value of a frame -----------------------------------------------------------


def _nth_of(window: Window) -> int:
    number = window.arguments[1]
    assert isinstance(number, Constant) and isinstance(number.value, int)
    return number.value


def _passed(spans: Spans) -> Any:
    """Of ``nth``: how many rows are before the spans, as far as they are counted."""
    return 0 if spans.carried is None else np.array([one[0] for one in spans.carried], np.int64)[spans.parts]


def _picked(window: Window, rows: OrderedRows, spans: Spans) -> tuple[np.ndarray, np.ndarray]:
    """``first``, ``last``, ``nth``, ``min`` and ``max``: the codes, and whether there is such a row."""
    function = window.function
    codes, known, type_ = _argument(window, rows)
    there = spans.last > spans.first
    if function in ("min", "max"):
        keys = order_keys(codes, type_, descending=function == "max")
        there = spans.added(known.astype(np.int64)) > 0
        places = least_places(keys, spans.first, spans.last)
    elif function == "nth":
        places = spans.first + _nth_of(window) - 1 - _passed(spans)
        there = (places >= spans.first) & (places < spans.last)
    else:
        places = spans.first if function == "first" else spans.last - 1
    found = _taken(codes, places)
    if spans.carried is None:
        return found, there
    carried = [one[1] if function == "nth" else one for one in spans.carried]
    before = np.array([NULL_CODE if one is None else one for one in carried], np.int64)[spans.parts]
    was_there = np.array([one is not None for one in carried])[spans.parts]
    if function in ("first", "nth"):
        taken = was_there
    elif function == "last":
        taken = was_there & ~there
    else:
        taken = was_there & ~there
        both = np.flatnonzero(was_there & there)
        keys = order_keys(np.append(before[both], found[both]), type_, descending=function == "max")
        taken[both] = keys[: len(both)] <= keys[len(both) :]
    return np.where(taken, before, found), there | was_there


# -- sums ---------------------------------------------------------------------------


def _sums(window: Window, rows: OrderedRows, spans: Spans, declared: ColumnType) -> np.ndarray:
    """``sum`` and ``avg``."""
    codes, known, type_ = _argument(window, rows)
    sums = Sums.of(codes, known, type_, spans)
    if window.function == "avg" or type_.domain.name == "float":
        return declared.encode(sums.doubles(window.function == "avg"))
    try:
        if type_.domain.name == "decimal":
            return declared.encode(sums.decimals(declared.arrow))
        return declared.encode(sums.whole().cast(declared.arrow))
    except (pa.ArrowInvalid, OverflowError):
        call = f"{window.function}({window.arguments[0].name})"  # type: ignore[union-attr]
        raise RangeError(f"{call} of a frame does not fit type {declared.arrow}") from None
