"""The functions of rules over Python values, for the reference: nothing of the engine, nothing of Arrow."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from support.kinds import Listed

EXACT = Context(prec=200)
INT64 = range(-(2**63), 2**63)
TESTS = ("in", "like", "starts_with", "ends_with", "contains", "regexp_matches")
"""What stands in a body by itself."""


class Overflow(Exception):
    """A number left the range of its type."""


class DivisionByZero(Exception):
    """A binding divides by zero."""


class BadCast(Exception):
    """A value does not become the type that it is cast to."""


def in_range(value: Any) -> Any:
    if type(value) is int and value not in INT64:
        raise Overflow
    return value


def moved(left: Any, right: Any, operator: str) -> Any:
    """The sum or difference of two dates, times or durations; None where it is of others.

    A date is moved by whole days, and is its midnight beside a duration.
    """
    sides = [left, right]
    if not any(isinstance(side, datetime.date | datetime.timedelta) for side in sides):
        return None
    spans = any(isinstance(side, datetime.timedelta) for side in sides)
    for place, side in enumerate(sides):
        if type(side) is int:
            sides[place] = datetime.timedelta(days=side)
        elif spans and type(side) is datetime.date:
            sides[place] = datetime.datetime(side.year, side.month, side.day)
    found = sides[0] + sides[1] if operator == "+" else sides[0] - sides[1]
    return found.days if type(left) is type(right) is datetime.date else found


def tumble(moment: Any, length: Any, offset: Any = None) -> Any:
    """Where the window begins that holds a moment, one of those that begin with 2000-01-03, or with 0."""
    if type(moment) is int:
        return moment - (moment - (offset or 0)) % length
    if type(moment) is datetime.date:
        days = [one.days if isinstance(one, datetime.timedelta) else one or 0 for one in (length, offset)]
        past = moment.toordinal() - datetime.date(2000, 1, 3).toordinal()
        return moment - datetime.timedelta(days=(past - days[1]) % days[0])
    begin = datetime.datetime(2000, 1, 3, tzinfo=moment.tzinfo and datetime.UTC)
    return moment - (moment - begin - (offset or datetime.timedelta(0))) % length


def hop(moment: Any, length: Any, step: Any, offset: Any = None) -> Listed:
    """Where the windows begin that hold a moment."""
    found, begin = [], tumble(moment, step, offset)
    while moment - begin < (length if type(moment) is int else time_of(length)):
        found.append(begin)
        begin -= step if type(moment) is int else time_of(step)
    return Listed(reversed(found))


def time_of(span: Any) -> datetime.timedelta:
    return datetime.timedelta(days=span) if type(span) is int else span


def truncated(left: Any, right: Any) -> Any:
    if right == 0:
        raise DivisionByZero
    return in_range(math.trunc(Fraction(left) / Fraction(right)))


def remainder(left: Any, right: Any) -> Any:
    """Of the division that is truncated towards zero."""
    if right == 0:
        raise DivisionByZero
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return EXACT.remainder(Decimal(left), Decimal(right))
    return left - right * math.trunc(Fraction(left, right))


def rounded(value: Any) -> Any:
    """Half away from zero."""
    if isinstance(value, float):
        return float(Decimal(value).to_integral_value(ROUND_HALF_UP)) if math.isfinite(value) else value
    return value if isinstance(value, int) else value.to_integral_value(ROUND_HALF_UP)


def whole(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    def applied(value: Any) -> Any:
        return value if isinstance(value, int) else type(value)(function(value))

    return applied


def same_width(changed: Callable[[str], str]) -> Callable[[str], str]:
    """Each character by one: those whose other case is longer stay."""
    return lambda text: "".join(new if len(new := changed(old)) == 1 else old for old in text)


def substring(text: str, start: int, length: int | None = None) -> str:
    """As a window over places that go on to both sides of the text."""
    first = start if start >= 0 else len(text) + start + 1
    last = len(text) if length is None else first + length - 1
    return "".join(character for place, character in enumerate(text, 1) if first <= place <= last)


def like(text: str, pattern: str, escape: str | None = None) -> bool:
    """By trying every split at each ``%``."""
    if not pattern:
        return not text
    if pattern[0] == escape:
        return text[:1] == pattern[1] and like(text[1:], pattern[2:], escape)
    if pattern[0] == "%":
        return any(like(text[cut:], pattern[1:], escape) for cut in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(text[1:], pattern[1:], escape)


def split_part(text: str, separator: str, number: int) -> str:
    parts = text.split(separator) if separator else list(text)
    numbered = dict(enumerate(parts, 1)) | {place - len(parts): part for place, part in enumerate(parts)}
    return numbered.get(number, "")


def regexp_extract(text: str, pattern: str, group: int = 0) -> str:
    found = re.search(pattern, text)
    return (found.group(group) or "") if found else ""


def regexp_replace(text: str, pattern: str, replacement: str, which: str = "") -> str:
    named = re.sub(r"\\(\d)", r"\\g<\1>", replacement)
    return re.sub(pattern, named, text, count=0 if which == "g" else 1)


def date_trunc(unit: str, moment: Any) -> Any:
    day = datetime.date(moment.year, moment.month, moment.day)
    if unit == "week":
        day -= datetime.timedelta(days=day.weekday())
    elif unit in ("year", "quarter", "month"):
        month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1, "month": day.month}[unit]
        day = day.replace(month=month, day=1)
    if not isinstance(moment, datetime.datetime):
        return day
    fields = {"hour": moment.hour, "minute": moment.minute, "second": moment.second}
    kept = {"hour": 1, "minute": 2, "second": 3}.get(unit, 0)
    clock = {name: value if place < kept else 0 for place, (name, value) in enumerate(fields.items())}
    return moment.replace(year=day.year, month=day.month, day=day.day, microsecond=0, **clock)


def cast(value: Any, type_: str) -> Any:
    if type_ == "string":
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)
    if type_ == "date":
        return datetime.date(value.year, value.month, value.day)
    if type_ == "float64":
        return float(value)
    bits = re.fullmatch(r"int(\d+)", type_)
    assert bits, type_
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        raise BadCast from None
    if number != math.trunc(number) or not -(2 ** (int(bits[1]) - 1)) <= number < 2 ** (int(bits[1]) - 1):
        raise BadCast
    return int(number)


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, Decimal):
        return left == float(right)
    return bool(left == right)


def list_extract(values: tuple[Any, ...], place: int) -> Any:
    """NULL where there is none."""
    return values[place - (place > 0)] if place and -len(values) <= place <= len(values) else None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda value: in_range(abs(value)),
    "div": truncated,
    "least": lambda *values: min(values),
    "greatest": lambda *values: max(values),
    "floor": whole(math.floor),
    "ceil": whole(math.ceil),
    "trunc": whole(math.trunc),
    "round": rounded,
    "lower": same_width(str.lower),
    "upper": same_width(str.upper),
    "length": len,
    "len": len,
    "list_extract": list_extract,
    "list_contains": lambda values, one: any(value is not None and equal(value, one) for value in values),
    "substring": substring,
    "||": str.__add__,
    "trim": lambda text, characters=" ": text.strip(characters) if characters else text,
    "ltrim": lambda text, characters=" ": text.lstrip(characters) if characters else text,
    "rtrim": lambda text, characters=" ": text.rstrip(characters) if characters else text,
    "position": lambda text, part: text.find(part) + 1,
    "replace": lambda text, part, other: text.replace(part, other) if part else text,
    "split_part": split_part,
    "regexp_matches": lambda text, pattern: re.search(pattern, text) is not None,
    "regexp_extract": regexp_extract,
    "regexp_replace": regexp_replace,
    "sqrt": math.sqrt,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": str.__contains__,
    "like": like,
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar().week,
    "day": lambda moment: moment.day,
    "dayofweek": lambda moment: moment.isoweekday() % 7,
    "dayofyear": lambda moment: moment.timetuple().tm_yday,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
    "date_trunc": date_trunc,
    "tumble": tumble,
    "hop": hop,
    "cast": cast,
    "in": lambda value, *items: any(equal(value, item) for item in items),
}
