"""Parts of dates and times, their truncation, and their text.

Names and numbers are DuckDB's: weeks begin on Monday and are numbered as ISO 8601 says, ``dayofweek`` is 0 on
Sunday.  Years are those of the proleptic Gregorian calendar, with a year 0.  Timestamps with a zone are taken
at their local time.  A truncated date is a date, a truncated timestamp one of the same type.

pyarrow's functions count years in 16 bits.  They are given the moment of the same name in the 400 years from
1970 on, after which the calendar repeats; what they say holds for all years.

Cost: whole-array operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import TypeClashError
from lftj.values.arithmetic import Kernel
from lftj.values.kinds import NANOSECONDS, kind, plain_type
from lftj.values.zones import CYCLE_DAYS, CYCLE_SECONDS, DAY_SECONDS, instants_of, offsets

_DAYS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dayofweek": partial(pc.day_of_week, count_from_zero=True, week_start=7),
    "dayofyear": pc.day_of_year,
    "isodow": partial(pc.day_of_week, count_from_zero=False),
}
_CLOCK: dict[str, Callable[[pa.Array], pa.Array]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
_FRACTIONS = {"millisecond": 10**3, "microsecond": 10**6}
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_CYCLE_YEARS = 400
_IS_FAR = r"^([0-9]{5,}(-[0-9]{2}){2}|[0-9]{4}(-[0-9]{2}){2} \(BC\))"
_FAR = r"(?s)^(?P<year>[0-9]{4,})(?P<days>-[0-9]{2}-[0-9]{2})(?P<era> \(BC\))?(?P<clock>.*)$"


class Anchored(NamedTuple):
    """Moments in the 400 years from 1970 on: dates as ``date32``, timestamps as local ``timestamp[s]``.

    ``cycles``: how many times 400 years later they are; ``rest``: what their seconds leave, in their own
    unit; ``ahead``: of timestamps with a zone, seconds that local time is ahead.
    """

    moments: pa.Array
    cycles: np.ndarray
    rest: np.ndarray | int = 0
    ahead: np.ndarray | int = 0

    @property
    def years(self) -> np.ndarray:
        """int64."""
        years: np.ndarray = pc.year(self.moments).to_numpy()
        return years + _CYCLE_YEARS * self.cycles


def _centuries(its: Anchored) -> np.ndarray:
    years = its.years
    return np.where(years > 0, (years - 1) // 100 + 1, -(-years // 100) - 1)


def _iso_years(its: Anchored) -> np.ndarray:
    moved: np.ndarray = pc.subtract(pc.iso_year(its.moments), pc.year(its.moments)).to_numpy()
    return its.years + moved


_OF_YEARS: dict[str, Callable[[Anchored], np.ndarray]] = {
    "year": lambda its: its.years,
    "isoyear": _iso_years,
    "decade": lambda its: np.sign(its.years) * (np.abs(its.years) // 10),
    "century": _centuries,
}
PARTS = (*_OF_YEARS, *_DAYS, *_CLOCK, *_FRACTIONS)


def anchored(moments: pa.Array) -> Anchored:
    """Of ``date32`` or timestamps."""
    if pa.types.is_date(moments.type):
        cycles, days = np.divmod(moments.cast(pa.int32()).to_numpy().astype(np.int64), CYCLE_DAYS)
        return Anchored(int32s(days).cast(pa.date32()), cycles)
    seconds, rest = np.divmod(moments.cast(pa.int64()).to_numpy(), per_second(moments.type))
    cycles, seconds = np.divmod(seconds, CYCLE_SECONDS)
    ahead: np.ndarray | int = 0
    if moments.type.tz is not None:
        ahead = offsets(cycles, seconds, moments.type.tz)
        more, seconds = np.divmod(seconds + ahead, CYCLE_SECONDS)
        cycles += more
    return Anchored(pa.array(seconds).cast(pa.timestamp("s")), cycles, rest, ahead)


def per_second(type_: pa.DataType) -> int:
    return 10**9 // NANOSECONDS[type_.unit]


def int32s(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers).cast(pa.int32())


def part_kernel(part: str, source: pa.DataType) -> Kernel:
    """What gives a part of dates or times as ``int64``.  Raises :class:`~lftj.errors.TypeClashError`.

    >>> part_kernel("hour", pa.timestamp("s"))(pa.array([7200], pa.timestamp("s"))).to_pylist()
    [2]
    """
    kinds = ("date", "timestamp") if part in _DAYS or part in _OF_YEARS else ("timestamp", "time")
    if kind(source) not in kinds:
        raise TypeClashError(f"there is no {part} for type {plain_type(source)}")
    if part in _OF_YEARS:
        return lambda moments: pa.array(_OF_YEARS[part](anchored(moments)))
    if part in _FRACTIONS:
        return partial(_of_minute, _FRACTIONS[part])
    taken = _DAYS.get(part) or _CLOCK[part]
    if kind(source) == "time":
        return lambda times: taken(times).cast(pa.int64())
    return lambda moments: taken(anchored(moments).moments).cast(pa.int64())


def epoch(moments: pa.Array) -> pa.Array:
    """Seconds since 1970 of dates or timestamps, with their fraction.

    >>> epoch(pa.array([1500], pa.timestamp("ms"))).to_pylist()
    [1.5]
    """
    if pa.types.is_date(moments.type):
        return pc.multiply(moments.cast(pa.int32()).cast(pa.float64()), float(DAY_SECONDS))
    return pa.array(moments.cast(pa.int64()).to_numpy() / per_second(moments.type))


def epoch_units(unit: str, moments: pa.Array) -> pa.Array:
    """Whole milliseconds, microseconds or nanoseconds since 1970 of dates or timestamps, or in durations.

    Those of a finer unit are rounded, a half away from zero.  Raises ``pa.ArrowInvalid`` beyond 64 bits.

    >>> epoch_units("ms", pa.array([-1500, 1499, 1500], pa.timestamp("us"))).to_pylist()
    [-2, 1, 2]
    """
    is_date = pa.types.is_date(moments.type)
    whole = moments.cast(pa.int32()).cast(pa.int64()) if is_date else moments.cast(pa.int64())
    its = DAY_SECONDS * 10**9 if is_date else NANOSECONDS[moments.type.unit]
    if its < NANOSECONDS[unit]:
        return pa.array(nearest(whole.to_numpy(), NANOSECONDS[unit] // its))
    return pc.multiply_checked(whole, its // NANOSECONDS[unit])


def nearest(units: np.ndarray, step: int) -> np.ndarray:
    """Units in steps of so many, a half away from zero.

    >>> nearest(np.array([-5, 4, 5]), 10).tolist()
    [-1, 0, 1]
    """
    whole, rest = np.divmod(np.abs(units), step)
    rounded: np.ndarray = np.sign(units) * (whole + (2 * rest >= step))
    return rounded


def _of_minute(per: int, moments: pa.Array) -> pa.Array:
    """What of a minute has passed, ``per`` to a second."""
    second = per_second(moments.type)
    units = moments.cast(pa.int32() if moments.type.bit_width == 32 else pa.int64()).to_numpy()
    return pa.array(units.astype(np.int64) % (60 * second) * 10**6 // second // (10**6 // per))


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
    return wanted, partial(_truncated, unit)


def _truncated(unit: object, moments: pa.Array) -> pa.Array:
    """Less what is beyond the unit; the difference is small, so that only a result out of range overflows."""
    its = anchored(moments)
    floors = pc.floor_temporal(its.moments, unit=unit)
    if pa.types.is_date(moments.type):
        beyond = pc.subtract(its.moments.cast(pa.int32()), floors.cast(pa.int32()))
        return pc.subtract_checked(moments.cast(pa.int32()), beyond).cast(moments.type)
    local = its.moments.cast(pa.int64()).to_numpy()
    floor = floors.cast(pa.int64()).to_numpy()
    if moments.type.tz is not None:
        local, floor = local - its.ahead, instants_of(its.cycles, floor, moments.type.tz)
    beyond = pa.array((local - floor) * per_second(moments.type) + its.rest)
    return pc.subtract_checked(moments.cast(pa.int64()), beyond).cast(moments.type)


# -- casts --------------------------------------------------------------------------------


def dates_of(moments: pa.Array) -> pa.Array:
    """The local dates of timestamps.  Raises ``pa.ArrowInvalid`` beyond ``date32``.

    >>> dates_of(pa.array([-1], pa.timestamp("ns"))).to_pylist()
    [datetime.date(1969, 12, 31)]
    """
    its = anchored(moments)
    days = its.moments.cast(pa.int64()).to_numpy() // DAY_SECONDS + CYCLE_DAYS * its.cycles
    return int32s(days).cast(pa.date32())


def local_times(moments: pa.Array) -> pa.Array:
    """Timestamps without a zone: those that have one at their local time.

    Raises ``pa.ArrowInvalid`` beyond 64 bits.

    >>> local_times(pa.array([0], pa.timestamp("s", "+05:30"))).to_pylist()
    [datetime.datetime(1970, 1, 1, 5, 30)]
    """
    if moments.type.tz is None:
        return moments
    ahead = pa.array(np.asarray(anchored(moments).ahead) * per_second(moments.type))
    return pc.add_checked(moments.cast(pa.int64()), ahead).cast(pa.timestamp(moments.type.unit))


def written(moments: pa.Array) -> pa.Array:
    """Dates or timestamps as text, as Arrow writes them: years with all digits, before year 1 as DuckDB does.

    >>> written(pa.array([20_000_000, -719_529], pa.int32()).cast(pa.date32())).to_pylist()
    ['56728-02-22', '0002-12-31 (BC)']
    """
    its = anchored(moments)
    years = its.years
    text = its.moments.cast(pa.string())
    numbers = pa.array(np.where(years > 0, years, 1 - years)).cast(pa.string())
    era = pc.if_else(pa.array(years > 0), "", " (BC)")
    days = pc.utf8_slice_codeunits(text, 4, 10)  # the anchor's year has four digits
    parts = [pc.utf8_lpad(numbers, 4, "0"), days, era, pc.utf8_slice_codeunits(text, 10)]
    if pa.types.is_timestamp(moments.type):
        width = len(str(per_second(moments.type))) - 1
        if width:
            parts += [".", pc.utf8_lpad(pa.array(its.rest).cast(pa.string()), width, "0")]
        parts += _zones(moments.type.tz, its.ahead)
    return pc.binary_join_element_wise(*parts, "")


def read_text(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """``date32`` or timestamps from their text.  Raises ``pa.ArrowInvalid``.

    >>> read_text(pa.array(["56728-02-22", "0002-12-31 (BC)"]), pa.date32()).cast(pa.int32()).to_pylist()
    [20000000, -719529]
    """
    is_far = pc.match_substring_regex(texts, _IS_FAR)
    if not pc.any(is_far).as_py():
        return texts.cast(wanted)
    far = pc.extract_regex(texts.filter(is_far), _FAR)
    numbers = pc.struct_field(far, "year").cast(pa.int64()).to_numpy()
    is_before = pc.equal(pc.struct_field(far, "era"), " (BC)").to_numpy(zero_copy_only=False)
    if (is_before & (numbers == 0)).any():
        raise pa.ArrowInvalid("there is no year 0 before Christ")
    cycles, years = np.divmod(np.where(is_before, 1 - numbers, numbers), _CYCLE_YEARS)
    anchors = pc.add(pa.array(years), 2000).cast(texts.type)
    near = pc.binary_join_element_wise(
        anchors, pc.struct_field(far, "days"), pc.struct_field(far, "clock"), ""
    )
    length = CYCLE_DAYS if wanted == pa.date32() else CYCLE_SECONDS * per_second(wanted)
    number = pa.int32() if wanted == pa.date32() else pa.int64()
    moments = near.cast(wanted).cast(number).cast(pa.int64())
    cycles = cycles - 2000 // _CYCLE_YEARS
    first = np.clip(cycles, -2, 2)  # then the moments have the sign of the rest: no step goes too far
    for step in (first, cycles - first):
        moments = pc.add_checked(moments, pc.multiply_checked(pa.array(step), length))
    rest = pc.if_else(is_far, None, texts).cast(wanted)
    return pc.replace_with_mask(rest, is_far, moments.cast(number).cast(wanted))


def _zones(zone: str | None, ahead: np.ndarray | int) -> list[pa.Array | str]:
    """What stands behind local times: ``Z``, or hours and minutes that they are ahead."""
    if zone is None:
        return []
    if zone == "UTC":
        return ["Z"]
    distinct, places = np.unique(np.asarray(ahead), return_inverse=True)
    texts = [f"{'-' if n < 0 else '+'}{abs(n) // 3600:02}{abs(n) // 60 % 60:02}" for n in distinct.tolist()]
    return [pa.array(texts, pa.string()).take(pa.array(places))]
