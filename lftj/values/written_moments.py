"""Dates and timestamps as they are written in rules: read, and refused, alike by every version of Python.

Python's own reading takes the hour 24 from one version on, and says what is wrong in other words from version
to version.
"""

from __future__ import annotations

import calendar
import datetime
import re

_CLOCK = (("hour", 23), ("minute", 59), ("second", 59))


def read_date(text: str) -> datetime.date:
    """``2026-01-31``.  Raises ValueError.

    >>> read_date("2026-02-30")
    Traceback (most recent call last):
    ValueError: day is out of range for month
    """
    _refuse_missing(text)
    return datetime.date.fromisoformat(text)


def read_timestamp(text: str) -> datetime.datetime:
    """``2026-01-31T10:00:00.5``, with a zone or without.  Raises ValueError.

    >>> read_timestamp("2026-01-31T24:00:00")
    Traceback (most recent call last):
    ValueError: hour must be in 0..23
    """
    _refuse_missing(text)
    return datetime.datetime.fromisoformat(text)


def _refuse_missing(text: str) -> None:
    year, month, day, *clock = (int(digits) for digits in re.findall(r"\d+", text)[:6])
    if not year:
        raise ValueError("year 0 is out of range")
    if not 1 <= month <= 12:
        raise ValueError("month must be in 1..12")
    if not 1 <= day <= calendar.monthrange(year, month)[1]:
        raise ValueError("day is out of range for month")
    for (name, largest), value in zip(_CLOCK, clock, strict=False):
        if value > largest:
            raise ValueError(f"{name} must be in 0..{largest}")
