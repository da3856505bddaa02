"""Windows of equal length: where those begin that a time falls into.

A window holds its beginning and not its end.  Windows of timestamps and dates lie so that one begins on
2000-01-03, a Monday, at midnight, in UTC where there is a zone: as DuckDB's ``time_bucket`` has them.  Of
lengths that divide a day one begins at each midnight, of a week on Mondays.  Those of integers begin at 0.

Cost: whole-array operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import TypeClashError
from lftj.values.arithmetic import Refused
from lftj.values.binding import Argument, Bound
from lftj.values.calendar import per_second
from lftj.values.kinds import finer_unit, kind, plain_type
from lftj.values.zones import DAY_SECONDS

_ORIGIN_DAYS = 10_959
"""2000-01-03, from 1970 on."""

_MOST = 2**31 - 1


def bind_tumble(arguments: Sequence[Argument]) -> Bound:
    """``tumble(t, length)`` and ``tumble(t, length, offset)``: the beginning of t's window."""
    types, origin = _signature("tumble", arguments)
    return Bound(tuple(range(len(arguments))), types, types[0], partial(begins, origin))


def bind_hop(arguments: Sequence[Argument]) -> Bound:
    """``hop(t, length, step)`` and ``hop(t, length, step, offset)``: a list of beginnings."""
    types, origin = _signature("hop", arguments)
    return Bound(tuple(range(len(arguments))), types, pa.list_(types[0]), partial(overlapping, origin))


def _signature(name: str, arguments: Sequence[Argument]) -> tuple[tuple[pa.DataType, ...], int]:
    """Types, and the origin in units: of integers, or of times with durations.

    Of a date the length is of whole days, an integer or a duration.
    """
    moment, *spans = (plain_type(argument.type) for argument in arguments)
    of, others = kind(moment), {kind(span) for span in spans}
    if of == "integer" and others == {"integer"}:
        types, origin = (pa.int64(),) * len(arguments), 0
    elif of == "date" and others <= {"integer", "duration"}:
        days = (pa.int64() if kind(span) == "integer" else pa.duration("s") for span in spans)
        types, origin = (pa.date32(), *days), _ORIGIN_DAYS
    elif of == "timestamp" and others == {"duration"}:
        unit = reduce(finer_unit, (span.unit for span in spans), moment.unit)
        types = (pa.timestamp(unit, moment.tz), *[pa.duration(unit)] * len(spans))
        origin = _ORIGIN_DAYS * DAY_SECONDS * per_second(types[0])
    else:
        shown = ", ".join(map(str, (moment, *spans)))
        way = "it takes a time and durations, or integers"
        raise TypeClashError(f"there is no {name} for types {shown}: {way}")
    return types, origin


def begins(origin: int, moments: pa.Array, lengths: pa.Array, offsets: pa.Array | None = None) -> pa.Array:
    """The beginnings of the windows that hold moments; one begins ``offsets`` behind ``origin``.

    All in one unit, but of dates durations are in seconds.  Raises ``pa.ArrowInvalid`` beyond the type, and
    :class:`Refused` for a length that is not above 0, or of no whole days.

    >>> numbers = pa.array([-1, 0, 14])
    >>> begins(0, numbers, pa.array([10] * 3)).to_pylist()
    [-10, 0, 10]
    >>> begins(0, numbers, pa.array([10] * 3), pa.array([5] * 3)).to_pylist()
    [-5, -5, 5]
    """
    is_date = pa.types.is_date(moments.type)
    whole = _numbers(moments)
    length = _units(lengths, is_date)
    if (length <= 0).any():
        raise Refused("a window without a length")
    # Each difference is of two remainders, so that none overflows.
    rest = (whole.to_numpy() % length - origin % length) % length
    if offsets is not None:
        rest = (rest - _units(offsets, is_date) % length) % length
    return _moments(pc.subtract_checked(whole, pa.array(rest)), moments.type)


def overlapping(
    origin: int, moments: pa.Array, lengths: pa.Array, steps: pa.Array, offsets: pa.Array | None = None
) -> pa.Array:
    """The beginnings of all windows that hold moments, ascending; one begins every step.

    As :func:`begins`, whose ``offsets`` these are.

    >>> overlapping(0, pa.array([7]), pa.array([10]), pa.array([4])).to_pylist()
    [[0, 4]]
    """
    last = _numbers(begins(origin, moments, steps, offsets))
    length, step = (_units(spans, pa.types.is_date(moments.type)) for spans in (lengths, steps))
    if (length <= 0).any():
        raise Refused("a window without a length")
    past = pc.subtract(_numbers(moments), last).to_numpy()
    # Rounded up: how many steps it takes from the last beginning to one that is too early.
    n_windows = np.maximum(0, -((past - length) // step))
    ends = np.cumsum(n_windows)
    if len(ends) and (n_windows.max() > _MOST or ends[-1] > _MOST):
        raise Refused("more windows than a list holds")
    back = np.repeat(ends, n_windows) - np.arange(ends[-1] if len(ends) else 0) - 1
    early = pa.array(back * np.repeat(step, n_windows))
    found = _moments(pc.subtract_checked(last.take(_rows(n_windows)), early), moments.type)
    return pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), found)


def _rows(counts: np.ndarray) -> pa.Array:
    return pa.array(np.repeat(np.arange(len(counts)), counts))


def _numbers(moments: pa.Array) -> pa.Array:
    return (moments.cast(pa.int32()) if pa.types.is_date(moments.type) else moments).cast(pa.int64())


def _moments(numbers: pa.Array, wanted: pa.DataType) -> pa.Array:
    return (numbers.cast(pa.int32()) if pa.types.is_date(wanted) else numbers).cast(wanted)


def _units(spans: pa.Array, is_date: bool) -> np.ndarray:
    numbers: np.ndarray = spans.cast(pa.int64()).to_numpy()
    if not (is_date and pa.types.is_duration(spans.type)):
        return numbers
    days, rest = np.divmod(numbers, DAY_SECONDS)
    if rest.any():
        raise Refused("a window of dates that is of no whole days")
    return days
