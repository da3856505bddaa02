"""What makes a relation a stream: the column that has a row's time, and how late and how long rows may be.

All spans are whole numbers of the column's unit: of a timestamp's own, days of a date, of an integer itself.
What becomes of rows by them: :mod:`maintenance.event_time`.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lftj.errors import StreamError
from lftj.values.kinds import NANOSECONDS, kind, plain_type
from lftj.values.spelling import DURATIONS, literal

Span = int | str | datetime.timedelta
"""A length of time: units of the column, ``"10s"`` as a rule's text has it, or a timedelta."""

Times = TypeVar("Times", int, np.ndarray)

BUCKETS = 64
"""Rows leave by so many parts of what a stream keeps."""

EARLIEST = -(2**63) + 1
"""The least time that a row may have: the whole number before is the code of NULL."""

_TEXT = re.compile(r"([0-9]+)(d|h|m|s|ms|us)")
_DAY = datetime.timedelta(days=1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def earlier(time: Times, span: int | Times) -> Times:
    """The time so much before another one; where there is none, the earliest of all.

    >>> earlier(7, 5), earlier(EARLIEST + 4, 5) == EARLIEST
    (2, True)
    """
    if isinstance(time, np.ndarray):
        return np.where(time < EARLIEST + span, EARLIEST, time - span)
    return max(time - span, EARLIEST)


@dataclass(frozen=True)
class Stream:
    """``time``: the column.  ``lateness``: what a row may be behind the latest.

    ``keep``: what it may be behind the clock, None: anything.  ``ahead``: what it may be before the latest of
    the transactions before, None: anything.
    """

    time: str
    lateness: int = 0
    keep: int | None = None
    ahead: int | None = None

    def kept_from(self, now: Times) -> Times:
        """The time from which rows are kept, the beginning of a bucket; of a stream that does not keep all.

        >>> Stream("t", keep=640).kept_from(1_000), Stream("t", keep=7).kept_from(10)
        (360, 3)
        """
        assert self.keep is not None
        width = max(self.keep // BUCKETS, 1)
        kept = earlier(now, self.keep)
        return earlier(kept, kept % width)


def stream_of(
    relation: str,
    time: str,
    arrow_type: pa.DataType,
    lateness: Span = 0,
    keep: Span | None = None,
    ahead: Span | None = None,
) -> Stream:
    """A stream with a time of this type.  Raises StreamError for what it can't be.

    >>> stream_of("trade", "t", pa.timestamp("ms"), "5s", "2h")
    Stream(time='t', lateness=5000, keep=7200000, ahead=None)
    >>> stream_of("trade", "t", pa.int64(), 5, 3)
    Traceback (most recent call last):
    lftj.errors.StreamError: stream 'trade': keep=3 is shorter than lateness=5, so a row that comes \
late would leave at once: keep rows for 5 at least
    """
    plain = plain_type(arrow_type)
    if kind(plain) not in ("integer", "date", "timestamp"):
        raise StreamError(
            f"stream {relation!r}: column {time!r} is of type {arrow_type}, and the time of a stream is a"
            " timestamp, a date or an integer: cast it, or name another column"
        )
    spans = {"lateness": lateness, "keep": keep, "ahead": ahead}
    units = {
        name: None if span is None else units_of(f"stream {relation!r}: {name}=", time, span, plain)
        for name, span in spans.items()
    }
    stream = Stream(time, units["lateness"] or 0, units["keep"], units["ahead"])
    if stream.keep is not None and stream.keep < stream.lateness:
        raise StreamError(
            f"stream {relation!r}: keep={_shown(keep)} is shorter than lateness={_shown(lateness)}, so a row"
            f" that comes late would leave at once: keep rows for {_shown(lateness)} at least"
        )
    return stream


def _shown(span: Span | None) -> str:
    return literal(span) if isinstance(span, datetime.timedelta) else str(span)


def units_of(what: str, time: str, span: Span, arrow_type: pa.DataType) -> int:
    """A span in units of a column of times.  ``what``: it is.  Raises StreamError."""
    plain, given = plain_type(arrow_type), f"{what}{_shown(span)}"
    if isinstance(span, int) and not isinstance(span, bool) and (kind(plain) == "integer" or not span):
        units = span
    elif kind(plain) == "integer":
        raise StreamError(f"{given}: column {time!r} has integers, so give a whole number of their unit")
    else:
        length = _length(span)
        if length is None:
            raise StreamError(f"{given}: column {time!r} is of type {plain}, so give a duration, such as 10s")
        is_date = kind(plain) == "date"
        unit = _DAY // _MICROSECOND * 1000 if is_date else NANOSECONDS[plain.unit]
        units, rest = divmod(length // _MICROSECOND * 1000, unit)
        if rest:
            whole = "days" if is_date else plain.unit
            raise StreamError(f"{given}: column {time!r} is of type {plain}, so give whole {whole}")
    if not 0 <= units < 1 << 60:
        raise StreamError(f"{given}: give a length from 0 to 2**60 units")
    return units


def span_text(units: int, arrow_type: pa.DataType) -> str:
    """A span of so many units of a column of times, as a rule's text has it.

    >>> span_text(7_200_000, pa.timestamp("ms")), span_text(2, pa.date32()), span_text(5, pa.int64())
    ('2h', '2d', '5')
    """
    plain = plain_type(arrow_type)
    if kind(plain) == "integer":
        return str(units)
    if kind(plain) == "date":
        return f"{units}d"
    return literal(datetime.timedelta(microseconds=units * NANOSECONDS[plain.unit] / 1000))


def _length(span: Span) -> datetime.timedelta | None:
    if isinstance(span, datetime.timedelta):
        return span
    if isinstance(span, str) and (found := _TEXT.fullmatch(span)) and len(found[1]) < 20:
        return int(found[1]) * DURATIONS[found[2]]
    return None
