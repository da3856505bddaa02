"""Dates and timestamps moved by an interval, the steps between two of them, and dates made of numbers.

Names and results are DuckDB's.  An interval's months come first, and are clipped at the end of a month that
is shorter; then its days, and then its microseconds.

Cost: whole-array operations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Refused
from lftj.values.calendar import int32s, per_second
from lftj.values.moments import add_months
from lftj.values.zones import DAY_SECONDS

_SECOND = 10**6


def add_interval(
    moments: pa.Array, months: pa.Array, days: pa.Array, microseconds: pa.Array | None = None
) -> pa.Array:
    """Dates, or timestamps of microseconds or finer without a zone, later by an interval.

    Without ``microseconds`` there are none.  Raises ``pa.ArrowInvalid`` beyond the type.

    >>> import datetime
    >>> moved = add_interval(pa.array([datetime.date(2024, 1, 31)]), pa.array([1]), pa.array([1]))
    >>> moved.to_pylist()
    [datetime.date(2024, 3, 1)]
    """
    moved = add_months(moments, months)
    if pa.types.is_date(moved.type):
        return pc.add_checked(moved.cast(pa.int32()).cast(pa.int64()), days).cast(pa.int32()).cast(moved.type)
    units = moved.cast(pa.int64())
    second = per_second(moved.type)
    units = pc.add_checked(units, pc.multiply_checked(days, DAY_SECONDS * second))
    if microseconds is not None:
        units = pc.add_checked(units, pc.multiply_checked(microseconds, second // _SECOND))
    return units.cast(moved.type)


def difference(unit: str, first: pa.Array, last: pa.Array) -> pa.Array:
    """How many units begin between two timestamps of microseconds; of weeks, how many times seven days.

    >>> import datetime
    >>> times = datetime.datetime(2024, 1, 31, 23), datetime.datetime(2024, 2, 1, 1)
    >>> moments = [pa.array([time], pa.timestamp("us")) for time in times]
    >>> [difference(unit, *moments).to_pylist() for unit in ("month", "day", "hour", "week")]
    [[1], [1], [2], [0]]
    """
    number = UNITS[unit]
    sides = [number(side.cast(pa.int64()).to_numpy()) for side in (first, last)]
    steps = pc.subtract_checked(pa.array(sides[1]), pa.array(sides[0])).to_numpy()
    return pa.array(np.sign(steps) * (np.abs(steps) // 7) if unit == "week" else steps)


def _by_calendar(months: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda units: units.astype("M8[us]").astype("M8[M]").astype(np.int64) // months


def _by_clock(microseconds: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda units: units // microseconds


UNITS = {
    "year": _by_calendar(12),
    "quarter": _by_calendar(3),
    "month": _by_calendar(1),
    "week": _by_clock(DAY_SECONDS * _SECOND),
    "day": _by_clock(DAY_SECONDS * _SECOND),
    "hour": _by_clock(3600 * _SECOND),
    "minute": _by_clock(60 * _SECOND),
    "second": _by_clock(_SECOND),
    "millisecond": _by_clock(1000),
    "microsecond": _by_clock(1),
}
"""The number of the unit, from 1970, in which microseconds since then are; of weeks, that of the day."""


def last_days(dates: pa.Array) -> pa.Array:
    """The last days of the months of dates.  Raises ``pa.ArrowInvalid`` beyond ``date32``."""
    months = dates.cast(pa.int32()).to_numpy().astype("M8[D]").astype("M8[M]")
    return int32s((months + 1).astype("M8[D]").astype(np.int64) - 1).cast(pa.date32())


def make_dates(years: pa.Array, months: pa.Array, days: pa.Array) -> pa.Array:
    """Raises :class:`Refused` where there is no such date."""
    year, month, day = (side.to_numpy() for side in (years, months, days))
    if ((np.abs(year) > 10**7) | (month < 1) | (month > 12) | (day < 1)).any():
        raise Refused("no such date")
    first = ((year - 1970) * 12 + month - 1).astype("M8[M]")
    lengths = ((first + 1).astype("M8[D]") - first.astype("M8[D]")).astype(np.int64)
    if (day > lengths).any():
        raise Refused("no such date")
    return int32s(first.astype("M8[D]").astype(np.int64) + day - 1).cast(pa.date32())
