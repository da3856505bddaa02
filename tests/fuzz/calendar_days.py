"""Plays functions of days and moments over the whole range of their types: right, or refused.

The calendar is the Gregorian one, counted on to both sides; its arithmetic here is of whole numbers, from the
400 years after which it repeats.
"""

from __future__ import annotations

import bisect

import lftj
from fuzz.case import Case, Table
from fuzz.difference import Difference
from lftj import errors

PER_DAY = {"[day]": 1, "[s]": 86_400, "[ms]": 86_400 * 10**3, "[us]": 86_400 * 10**6, "[ns]": 86_400 * 10**9}
CYCLE = 146_097
"""Days of 400 years, from the first of January of a year that 400 divides."""

EPOCH = 719_528
"""Days from 0000-01-01 to 1970-01-01."""


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


_STARTS = [0]
for _year in range(400):
    _STARTS.append(_STARTS[-1] + 365 + _leap(_year))


def _months(year: int) -> list[int]:
    """The day of the year, from 0, with which each month begins."""
    starts = [0]
    for days in (31, 28 + _leap(year % 400), 31, 30, 31, 30, 31, 31, 30, 31, 30):
        starts.append(starts[-1] + days)
    return starts


def start_of(year: int) -> int:
    """The first of January, in days since 1970."""
    return year // 400 * CYCLE + _STARTS[year % 400] - EPOCH


def year_of(day: int) -> int:
    cycles, rest = divmod(day + EPOCH, CYCLE)
    return cycles * 400 + bisect.bisect_right(_STARTS, rest) - 1


def part_of(day: int, what: str) -> int:
    """A part of a day since 1970, as SQL names it; Sunday is 0, weeks are those of ISO 8601."""
    year = year_of(day)
    of_year = day - start_of(year)
    month = bisect.bisect_right(_months(year), of_year)
    if what == "week":
        thursday = day - (day + 3) % 7 + 3
        return (thursday - start_of(year_of(thursday))) // 7 + 1
    return {
        "year": year,
        "quarter": (month - 1) // 3 + 1,
        "month": month,
        "day": of_year - _months(year)[month - 1] + 1,
        "dayofweek": (day + 4) % 7,
        "dayofyear": of_year + 1,
    }[what]


def truncated(day: int, unit: str) -> int:
    """The first day of the unit that the day is in."""
    if unit == "day":
        return day
    if unit == "week":
        return day - (day + 3) % 7
    year = year_of(day)
    months = {"year": 1, "quarter": (part_of(day, "quarter") - 1) * 3 + 1, "month": part_of(day, "month")}
    return start_of(year) + _months(year)[months[unit] - 1]


def play_calendar(case: Case) -> None:
    (table,) = case.tables
    assert isinstance(table, Table)
    what = case.options["what"]
    function, _, unit = what.partition(" ")
    call = f'{function}("{unit}", t)' if unit else f"{function}(t)"
    database = lftj.Database()
    database.load("r", table.arrow())
    scale = PER_DAY["[" + table.types[1].partition("[")[2]]
    rule = f"h(i, y) <- r(i, t), y = {call}."
    try:
        found = database.query(rule, order_by="i")
    except errors.LftjError:
        return
    values = found["y"].cast("int64" if scale > 1 or not unit else "int32").to_pylist()
    for (_, moment), value in zip(table.rows, values, strict=True):
        day = moment // scale
        right = truncated(day, unit) * scale if unit else part_of(day, what)
        if value != right:
            raise Difference(f"calendar {what}: of {moment} {table.types[1]} {value}, not {right}")
