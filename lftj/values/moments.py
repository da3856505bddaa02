"""Dates and timestamps moved by months, and written by a format.

Names and results are DuckDB's: the 31st of January a month on is the last day of February.  Timestamps with a
zone are written at their local time.

Cost: whole-array operations.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, Refused
from lftj.values.calendar import anchored, int32s, per_second
from lftj.values.zones import DAY_SECONDS

_FURTHEST = 1 << 40
"""Months from 1970 beyond which no type of Arrow reaches."""


def add_months(moments: pa.Array, numbers: pa.Array) -> pa.Array:
    """Dates, or timestamps without a zone, so many months on; at the end of a month that is shorter.

    Raises ``pa.ArrowInvalid`` beyond the type.

    >>> import datetime
    >>> january = pa.array([datetime.date(2024, 1, 31)])
    >>> add_months(january, pa.array([1]))[0].as_py(), add_months(january, pa.array([-2]))[0].as_py()
    (datetime.date(2024, 2, 29), datetime.date(2023, 11, 30))
    """
    is_date = pa.types.is_date(moments.type)
    units = moments.cast(pa.int32() if is_date else pa.int64()).to_numpy().astype(np.int64)
    per_day = 1 if is_date else DAY_SECONDS * per_second(moments.type)
    days, rest = np.divmod(units, per_day)
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    months_on = pc.add_checked(pa.array(months), numbers).to_numpy()
    if (np.abs(months_on) > _FURTHEST).any():
        raise pa.ArrowInvalid("out of range")
    first, following = _first_days(months_on), _first_days(months_on + 1)
    moved = first + np.minimum(days - _first_days(months), following - first - 1)
    if is_date:
        return int32s(moved).cast(moments.type)
    midnights = pc.multiply_checked(pa.array(moved), per_day)
    return pc.add_checked(midnights, pa.array(rest)).cast(moments.type)


def _first_days(months: np.ndarray) -> np.ndarray:
    """The first days of months since 1970, as days since then."""
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


# -- text ---------------------------------------------------------------------------------

_DIRECTIVE = re.compile("%(-?)(.?)", re.DOTALL)
_SHORT = {"%c": "%Y-%m-%d %H:%M:%S", "%x": "%Y-%m-%d", "%X": "%H:%M:%S", "%h": "%b", "%z": "+00", "%Z": ""}
"""Directives that stand for others; moments are in UTC."""


def formatting(pattern: str) -> Kernel:
    """What writes dates or timestamps by a format.  Raises :class:`Refused`.

    >>> import datetime
    >>> formatting("%-d %b %Y, %H:%M")(pa.array([datetime.datetime(2026, 2, 1, 7, 30)])).to_pylist()
    ['1 Feb 2026, 07:30']
    """
    pattern = _DIRECTIVE.sub(lambda found: _SHORT.get(found[0], found[0]), pattern)
    pieces: list[str | Callable[[_Written], pa.Array]] = []
    end = 0
    for directive in _DIRECTIVE.finditer(pattern):
        pieces.append(pattern[end : directive.start()])
        end = directive.end()
        unpadded, letter = directive.groups()
        if letter == "%" and not unpadded:
            pieces.append("%")
            continue
        if letter not in _OF_YEARS and (letter not in _PLAIN or (unpadded and letter not in _NUMBERS)):
            raise Refused(f"there is no {directive[0]} in a format")
        write = _OF_YEARS.get(letter) or partial(_plain, f"%{letter}")
        pieces.append(partial(_unpadded, write) if unpadded else write)
    pieces.append(pattern[end:])
    letters = {found[2] for found in _DIRECTIVE.finditer(pattern)}
    seconds = next((length for of, length in _FINEST.items() if not letters.isdisjoint(of)), DAY_SECONDS)

    def written(moments: pa.Array) -> pa.Array:
        its = _Written(moments)
        parts = [piece if isinstance(piece, str) else piece(its) for piece in pieces]
        columns = [pa.repeat(part, len(moments)) if isinstance(part, str) else part for part in parts]
        return pc.binary_join_element_wise(*columns, "")

    return lambda moments: _of_few(written, moments, seconds)


def _of_few(written: Kernel, moments: pa.Array, seconds: int) -> pa.Array:
    """What depends on the begun ``seconds`` alone, of 0 on the moment: once for those that come often."""
    if len(moments) < _OFTEN:
        return written(moments)
    if pa.types.is_timestamp(moments.type) and seconds and moments.type.tz is None:
        length = seconds * per_second(moments.type)
        numbers = moments.cast(pa.int64()).to_numpy()
        if numbers.min() < length - (1 << 63):
            return written(moments)  # the beginning is beyond the type
        moments = pa.array(numbers // length * length).cast(moments.type)
    encoded = moments.dictionary_encode()
    if _OFTEN * len(encoded.dictionary) > len(moments):
        return written(moments)
    return written(encoded.dictionary).take(encoded.indices)


class _Written:
    """Moments that are written: in the 400 years from 1970 on as timestamps, and what is beyond."""

    def __init__(self, moments: pa.Array) -> None:
        self.its = anchored(moments)
        self.seconds = self.its.moments.cast(pa.timestamp("s"))
        self.per_second = 1 if pa.types.is_date(moments.type) else per_second(moments.type)


def _plain(directive: str, moments: _Written) -> pa.Array:
    return pc.strftime(moments.seconds, format=directive, locale="C")


def _unpadded(write: Callable[[_Written], pa.Array], moments: _Written) -> pa.Array:
    return pc.replace_substring_regex(write(moments), pattern="^0+([0-9])", replacement=r"\1")


def _year(moments: _Written) -> pa.Array:
    return _four_digits(moments.its.years)


def _iso_year(moments: _Written) -> pa.Array:
    return _four_digits(pc.iso_year(moments.seconds).to_numpy() - pc.year(moments.seconds).to_numpy()
                        + moments.its.years)  # fmt: skip


def _four_digits(years: np.ndarray) -> pa.Array:
    if (years < 0).any():
        raise Refused("a year before the year 0")
    return pc.utf8_lpad(pa.array(years).cast(pa.string()), 4, "0")


def _fraction(digits: int, moments: _Written) -> pa.Array:
    """Digits of a second, those behind them cut off."""
    rest = np.broadcast_to(np.asarray(moments.its.rest, np.int64), len(moments.seconds))
    fraction = rest * (10**9 // moments.per_second) // 10 ** (9 - digits)
    return pc.utf8_lpad(pa.array(fraction).cast(pa.string()), digits, "0")


_NUMBERS = "dmHIMSyj"
"""Of the plain ones those that may be without padding."""

_FINEST = {"fgn": 0, "SXc": 1, "M": 60, "HIp": 3600}
"""By directives, the seconds on whose beginning they depend; others depend on that of a day."""

_OFTEN = 4
"""Moments that are written alike, on average, where each is written once."""

_PLAIN = (*_NUMBERS, *"aAbBpwuUWV")
"""Directives that do not depend on the cycle of 400 years."""

_OF_YEARS: dict[str, Callable[[_Written], pa.Array]] = {
    "Y": _year,
    "G": _iso_year,
    "f": partial(_fraction, 6),
    "g": partial(_fraction, 3),
    "n": partial(_fraction, 9),
}
"""Those that do, and fractions of a second."""
