"""Parts of dates and times, and their truncation.

Names and numbers are DuckDB's: weeks begin on Monday and are numbered as ISO 8601 says, ``dayofweek`` is 0 on
Sunday.  Timestamps with a zone are taken at their local time.  A truncated date is a date, a
truncated timestamp one of the same type.

Cost: whole-array operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import TypeClashError
from lftj.values.arithmetic import Kernel
from lftj.values.kinds import kind, plain_type

_DAYS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dayofweek": partial(pc.day_of_week, count_from_zero=True, week_start=7),
    "dayofyear": pc.day_of_year,
}
_CLOCK: dict[str, Callable[[pa.Array], pa.Array]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
PARTS = (*_DAYS, *_CLOCK)
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def part_kernel(part: str, source: pa.DataType) -> Kernel:
    """What gives a part of dates or times as ``int64``.  Raises :class:`~lftj.errors.TypeClashError`.

    >>> part_kernel("hour", pa.timestamp("s"))(pa.array([7200], pa.timestamp("s"))).to_pylist()
    [2]
    """
    kinds = ("date", "timestamp") if part in _DAYS else ("timestamp", "time")
    if kind(source) not in kinds:
        raise TypeClashError(f"there is no {part} for type {plain_type(source)}")
    taken = _DAYS.get(part) or _CLOCK[part]
    return lambda moments: taken(moments).cast(pa.int64())


def truncation(unit: object, source: pa.DataType) -> tuple[pa.DataType, Kernel]:
    """The type of dates or timestamps truncated to a unit, and what truncates them.

    Raises :class:`~lftj.errors.TypeClashError`.

    >>> type_, kernel = truncation("month", pa.date32())
    >>> str(kernel(pa.array([45], pa.int32()).cast(type_))[0])
    '1970-02-01'
    """
    if unit not in _UNITS:
        raise TypeClashError(f"date_trunc takes a unit first, one of {', '.join(_UNITS)}")
    name = kind(source)
    if name not in ("date", "timestamp") or (name == "date" and unit in _CLOCK):
        raise TypeClashError(f'there is no date_trunc("{unit}", ...) for type {plain_type(source)}')
    wanted = pa.date32() if name == "date" else plain_type(source)
    return wanted, lambda moments: pc.floor_temporal(moments, unit=unit)
