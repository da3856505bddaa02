"""Calendar functions over the whole range of dates and timestamps: unit and oracle tests.

The oracles count days with Python's integers, ask DuckDB where it has the date, and :mod:`zoneinfo` for local
times.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from lftj.values.moments import formatting
from support import peer

MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DATE_PARTS = ("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear")
CLOCK_PARTS = ("hour", "minute", "second")
TRUNCATED = ("year", "quarter", "month", "week", "day")

# -- the oracle ------------------------------------------------------------------------------


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_before(year: int) -> int:
    """Days from 1970-01-01 to the year's first."""
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400 - 719_162


def day_number(year: int, month: int, day: int) -> int:
    leap = is_leap(year) and month > 2
    return days_before(year) + sum(MONTHS[: month - 1]) + leap + day - 1


def year_of(days: int) -> int:
    year = 1970 + days * 400 // 146_097  # nearly
    while days_before(year + 1) <= days:
        year += 1
    while days_before(year) > days:
        year -= 1
    return year


def parts_of(days: int) -> dict[str, int]:
    year = year_of(days)
    rest = days - days_before(year)
    month = 1
    while rest >= MONTHS[month - 1] + (month == 2 and is_leap(year)):
        rest -= MONTHS[month - 1] + (month == 2 and is_leap(year))
        month += 1
    thursday = days - (days - 4) % 7 + 3  # 1970-01-05 was a Monday
    return {
        "year": year,
        "quarter": (month + 2) // 3,
        "month": month,
        "week": (thursday - days_before(year_of(thursday))) // 7 + 1,
        "day": rest + 1,
        "dayofweek": (days + 4) % 7,
        "dayofyear": days - days_before(year) + 1,
    }


def truncated(unit: str, days: int) -> int:
    its = parts_of(days)
    if unit == "week":
        return days - (days - 4) % 7
    month = {"year": 1, "quarter": 3 * its["quarter"] - 2}.get(unit, its["month"])
    return days if unit == "day" else day_number(its["year"], month, 1)


def text_of(days: int) -> str:
    its = parts_of(days)
    year = its["year"]
    text = f"{year if year > 0 else 1 - year:04}-{its['month']:02}-{its['day']:02}"
    return text if year > 0 else text + " (BC)"


YEARS = (-32769, -32768, -32767, -9999, -401, -400, -100, -4, -1, 0, 1, 4, 1582, 1600, 1900, 1970, 1999, 2000)
YEARS += (2024, 2037, 2038, 9999, 10000, 32767, 32768, 32769, 65536, 99999, 100000, 1_000_000)
DAYS = sorted(
    {day_number(year, *day) for year in YEARS for day in ((1, 1), (2, 28), (3, 1), (12, 31), (8, 15))}
    | {day_number(year, 2, 29) for year in YEARS if is_leap(year)}
    | {day_number(2021, 1, 3), -1, 0, 1}
)
LEAST, MOST = -(2**31), 2**31 - 1


def test_the_oracle_counts_as_python_does() -> None:
    for days in range(-719_162, 2_932_897, 997):
        date = datetime.date(1970, 1, 1) + datetime.timedelta(days)
        its = parts_of(days)
        assert (its["year"], its["month"], its["day"]) == (date.year, date.month, date.day)
        assert (its["week"], its["dayofweek"]) == (date.isocalendar().week, date.isoweekday() % 7)


# -- what the engine says ----------------------------------------------------------------------


def dates(days: Iterable[int]) -> pa.Array:
    return pa.array(days, pa.int32()).cast(pa.date32())


def moments(counts: Iterable[int], unit: str, zone: str | None = None) -> pa.Array:
    return pa.array(counts, pa.int64()).cast(pa.timestamp(unit, zone))


def asked(column: pa.Array, expressions: Iterable[str]) -> list[list[Any]]:
    """Per expression over ``t`` its values, in the order of the column: of dates and times their numbers."""
    database = lftj.Database()
    database.load("r", pa.table({"i": range(len(column)), "t": column}))
    texts = {f"v{number}": text for number, text in enumerate(expressions)}
    body = ", ".join(f"{name} = {text}" for name, text in texts.items())
    table = database.query(f"h(i, {', '.join(texts)}) <- r(i, t), {body}.", order_by="i")
    found = []
    for values in table.columns[1:]:
        if pa.types.is_temporal(values.type):
            values = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
        found.append(values.to_pylist())
    return found


def refused(column: pa.Array, expression: str) -> str:
    with pytest.raises(errors.LftjError) as caught:
        asked(column, [expression])
    assert isinstance(caught.value, errors.RangeError | errors.EvaluationError)
    return str(caught.value)


def test_parts_of_dates() -> None:
    days = [LEAST, *DAYS, MOST]
    for part, found in zip(
        DATE_PARTS, asked(dates(days), [f"{part}(t)" for part in DATE_PARTS]), strict=True
    ):
        assert found == [parts_of(day)[part] for day in days], part


@pytest.mark.parametrize("unit", UNITS)
def test_parts_of_timestamps(unit: str) -> None:
    per_second = UNITS[unit]
    clock = 10 * 3600 + 59 * 60 + 58
    counts = [(day * 86_400 + clock) * per_second + per_second // 3 for day in DAYS]
    counts = [-(2**63), -(2**62), *counts, 2**62, 2**63 - 1]
    counts = [count for count in counts if count in range(-(2**63), 2**63)]
    found = asked(moments(counts, unit), [f"{part}(t)" for part in (*DATE_PARTS, *CLOCK_PARTS)])
    for part, values in zip(DATE_PARTS, found, strict=False):
        assert values == [parts_of(count // per_second // 86_400)[part] for count in counts], part
    seconds = [count // per_second % 86_400 for count in counts]
    hours, minutes, rest = found[len(DATE_PARTS) :]
    assert list(zip(hours, minutes, rest, strict=True)) == [
        (s // 3600, s // 60 % 60, s % 60) for s in seconds
    ]


def test_truncated_dates() -> None:
    days = [LEAST + 400, *DAYS, MOST]
    expressions = [f'date_trunc("{unit}", t)' for unit in TRUNCATED]
    for unit, found in zip(TRUNCATED, asked(dates(days), expressions), strict=True):
        assert found == [truncated(unit, day) for day in days], unit


@pytest.mark.parametrize("unit", UNITS)
def test_truncated_timestamps(unit: str) -> None:
    per_day = 86_400 * UNITS[unit]
    counts = [day * per_day + per_day // 3 + 1 for day in DAYS]
    counts = [-(2**63) + 400 * per_day, *counts, 2**63 - 1]
    counts = [count for count in counts if count in range(-(2**63), 2**63)]
    expressions = [f'date_trunc("{by}", t)' for by in TRUNCATED]
    for by, found in zip(TRUNCATED, asked(moments(counts, unit), expressions), strict=True):
        assert found == [truncated(by, count // per_day) * per_day for count in counts], by
    sizes = {"hour": 3600, "minute": 60, "second": 1}
    for by, found in zip(
        sizes, asked(moments(counts, unit), [f'date_trunc("{by}", t)' for by in sizes]), strict=True
    ):
        size = sizes[by] * UNITS[unit]
        assert found == [count // size * size for count in counts], by


def test_what_is_before_the_first_date_is_refused() -> None:
    assert "date_trunc" in refused(dates([0, LEAST]), 'date_trunc("week", t)')
    for unit in UNITS:
        message = refused(moments([0, -(2**63)], unit), 'date_trunc("year", t)')
        assert 'date_trunc("year", t)' in message and "where t = -" in message


def test_text() -> None:
    days = [LEAST, *DAYS, MOST]
    written, again = asked(dates(days), ['cast(t, "string")', 'cast(cast(t, "string"), "date")'])
    assert written == [text_of(day) for day in days]
    assert again == days


@pytest.mark.parametrize("unit", UNITS)
def test_text_of_timestamps(unit: str) -> None:
    per_second = UNITS[unit]
    counts = [(day * 86_400 + 4 * 3600 + 5 * 60 + 6) * per_second + per_second // 3 for day in DAYS]
    counts = [-(2**63) + 2 * 86_400 * per_second, *counts, 2**63 - 1]
    counts = [count for count in counts if count in range(-(2**63), 2**63)]
    back = "timestamp" if unit == "us" else f"timestamp[{unit}]"
    written, again = asked(moments(counts, unit), ['cast(t, "string")', f'cast(cast(t, "string"), "{back}")'])
    expected = []
    for count in counts:
        seconds, rest = divmod(count, per_second)
        days, clock = divmod(seconds, 86_400)
        fraction = "" if unit == "s" else f".{rest:0{len(str(per_second)) - 1}}"
        expected.append(f"{text_of(days)} {clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}{fraction}")
    assert written == expected
    assert again == counts


@pytest.mark.parametrize(
    "text",
    ["12345-13-01", "12345-02-29", "5881580-07-12", "99999999999999999999-01-01", "0000-01-01 (BC)", "9-1-1"],
)
def test_text_that_is_no_date(text: str) -> None:
    column = pa.array(["2026-01-31", text])
    message = refused(column, 'cast(t, "date")')
    assert message.startswith(f'cast(t, "date") does not fit type date32[day] where t = "{text}"')


def test_casts_between_dates_and_timestamps() -> None:
    for unit, per_second in UNITS.items():
        per_day = 86_400 * per_second
        days = [day for day in (LEAST, *DAYS, MOST) if day * per_day in range(-(2**63), 2**63)]
        name = "timestamp" if unit == "us" else f"timestamp[{unit}]"
        (found,) = asked(dates(days), [f'cast(t, "{name}")'])
        assert found == [day * per_day for day in days]
        counts = [day * per_day + per_day // 2 for day in days[1:-1]]
        (found,) = asked(moments(counts, unit), ['cast(t, "date")'])
        assert found == days[1:-1]
        for day, count in ((MOST, 2**63 - 1), (LEAST, -(2**63))):
            if count // per_day not in range(LEAST, MOST + 1):
                assert "where t = " in refused(moments([0, count], unit), 'cast(t, "date")')
            if day * per_day not in range(-(2**63), 2**63):
                assert "where t = " in refused(dates([0, day]), f'cast(t, "{name}")')


# -- arithmetic -------------------------------------------------------------------------------


def test_arithmetic_at_the_ends() -> None:
    assert asked(dates([LEAST, 0, MOST]), ["t - 1970-01-01"]) == [[LEAST, 0, MOST]]
    assert asked(dates([LEAST, MOST - 5]), ["t + 5"]) == [[LEAST + 5, MOST]]
    assert "t + 5" in refused(dates([0, MOST - 4]), "t + 5")
    assert "t - 1" in refused(dates([0, LEAST]), "t - 1")
    assert "t + " in refused(dates([0, 1]), "t + 9223372036854775807")
    ends = pa.array([0, -(2**63)])
    for unit in UNITS:
        assert "-t does not fit" in refused(ends.cast(pa.duration(unit)), "-t")
        assert "t * 2" in refused(ends.cast(pa.duration(unit)), "t * 2")
        assert "t + t" in refused(ends.cast(pa.duration(unit)), "t + t")
        assert "t - 1970-01-01T00:00:01" in refused(ends.cast(pa.timestamp(unit)), "t - 1970-01-01T00:00:01")


# -- beside DuckDB ----------------------------------------------------------------------------


def both(column: pa.Array, rules: dict[str, str]) -> None:
    connection = peer.connection()
    connection.register("r", pa.table({"i": range(len(column)), "t": column}))
    for expression, found in zip(rules, asked(column, rules), strict=True):
        sql = rules[expression] or expression
        values = connection.execute(f"select ({sql})::varchar from r order by i").fetchall()
        assert [str(value) for value in found] == [value for (value,) in values], expression


def test_dates_as_duckdb_has_them() -> None:
    rules = {f"{part}(t)": "" for part in DATE_PARTS}
    rules['cast(t, "string")'] = "t::varchar"
    both(dates([*DAYS, 2**31 - 2]), rules)
    rules = {
        f'cast(date_trunc("{unit}", t), "string")': f"date_trunc('{unit}', t)::date::varchar"
        for unit in TRUNCATED
    }
    both(dates([day for day in DAYS if abs(day) < 10**8]), rules)  # DuckDB's go by way of a timestamp


def test_timestamps_as_duckdb_has_them() -> None:
    counts = [(day * 86_400 + 86_399) * 10**6 + 5 for day in DAYS]
    counts = [count for count in counts if abs(count) < 2**63 - 86_400 * 800 * 10**6]
    rules = {f"{part}(t)": "" for part in (*DATE_PARTS, *CLOCK_PARTS)}
    rules['cast(t, "string")'] = "t::varchar"
    rules |= {
        f'cast(date_trunc("{unit}", t), "date")': f"date_trunc('{unit}', t)::date - date '1970-01-01'"
        for unit in (*TRUNCATED, "hour")
    }
    both(moments(counts, "us"), rules)


# -- zones ------------------------------------------------------------------------------------

ZONES = (
    "UTC",
    "+05:30",
    "-03:00",
    "Europe/Berlin",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
)


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_in_all_years(zone: str) -> None:
    """pyarrow's own go wrong behind 2037: in summer, by an hour."""
    rules: datetime.tzinfo
    if zone[0] in "+-":
        ahead = datetime.timedelta(hours=int(zone[:3]), minutes=int(zone[4:]))
        rules = datetime.timezone(ahead)
    else:
        rules = ZoneInfo(zone)
    utc = [
        datetime.datetime(year, month, 2, 11, 59, 30, tzinfo=datetime.UTC)
        for year in (2, 1583, 1850, 1911, 1945, 1969, 1970, 1985, 2025, 2036, 2037, 2038, 2050, 2400, 9998)
        for month in (1, 4, 7, 10, 12)
    ]
    local = [moment.astimezone(rules) for moment in utc]
    counts = [(moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) for moment in utc]
    column = moments([delta // datetime.timedelta(seconds=1) for delta in counts], "s", zone)
    parts: dict[str, Callable[[datetime.datetime], Any]] = {
        "year(t)": lambda t: t.year,
        "day(t)": lambda t: t.day,
        "hour(t)": lambda t: t.hour,
        "minute(t)": lambda t: t.minute,
        "second(t)": lambda t: t.second,
        'cast(cast(t, "timestamp[s]"), "string")': lambda t: (
            t.strftime("%Y").zfill(4) + t.strftime("-%m-%d %H:%M:%S")
        ),
        'cast(t, "date")': lambda t: (t.date() - datetime.date(1970, 1, 1)).days,
        'cast(t, "string")': lambda t: _with_offset(t, zone),
        'date_trunc("day", t)': lambda t: _seconds(t.replace(hour=0, minute=0, second=0)),
        'date_trunc("hour", t)': lambda t: _seconds(t.replace(minute=0, second=0)),
        'date_trunc("year", t)': lambda t: _seconds(t.replace(month=1, day=1, hour=0, minute=0, second=0)),
    }
    for (expression, expected), found in zip(parts.items(), asked(column, parts), strict=True):
        assert found == [expected(moment) for moment in local], expression


def _seconds(moment: datetime.datetime) -> int:
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(seconds=1)


def _with_offset(moment: datetime.datetime, zone: str) -> str:
    ahead = moment.utcoffset() or datetime.timedelta(0)
    minutes = abs(ahead) // datetime.timedelta(minutes=1)
    sign = "-" if ahead < datetime.timedelta(0) else "+"
    shown = "Z" if zone == "UTC" else f"{sign}{minutes // 60:02}{minutes % 60:02}"
    return f"{moment.year:04}-{moment:%m-%d %H:%M:%S}{shown}"


def test_local_times_beyond_the_year_9999() -> None:
    """The clocks are those of 400 years before."""
    near = [_seconds(datetime.datetime(2405, month, 15, 22, 30, tzinfo=datetime.UTC)) for month in (1, 7)]
    cycle = 146_097 * 86_400
    parts = [f"{part}(t)" for part in ("year", "day", "hour", "dayofweek", "week")]
    expected = asked(moments(near, "s", "Europe/Berlin"), parts)
    for cycles in (100, 700_000_000):
        far = moments([second + cycles * cycle for second in near], "s", "Europe/Berlin")
        found = asked(far, parts)
        assert found[0] == [year + 400 * cycles for year in expected[0]]
        assert found[1:] == expected[1:]


@pytest.mark.parametrize(
    ("zone", "moment", "unit", "how"),
    [
        ("Europe/Berlin", (2025, 10, 26, 0, 30), "hour", "twice"),
        ("Europe/Berlin", (2045, 10, 29, 1, 30), "hour", "twice"),
        ("America/Sao_Paulo", (2017, 10, 15, 12), "day", "not at all"),
        ("America/Havana", (2024, 11, 3, 15), "day", "twice"),
    ],
)
def test_a_beginning_that_is_no_single_instant_is_refused(
    zone: str, moment: tuple[int, ...], unit: str, how: str
) -> None:
    count = _seconds(datetime.datetime(*moment, tzinfo=datetime.UTC))  # type: ignore[arg-type, misc]
    message = refused(moments([0, count], "s", zone), f'date_trunc("{unit}", t)')
    assert message.startswith(f"a local time that comes {how} in the time zone '{zone}' in date_trunc")
    assert f"where t = {moment[0]}-" in message


def test_local_times_beyond_64_bits_are_refused() -> None:
    for unit in UNITS:
        name = "timestamp" if unit == "us" else f"timestamp[{unit}]"
        assert "where t = " in refused(moments([0, 2**63 - 1], unit, "+05:30"), f'cast(t, "{name}")')
        assert "where t = " in refused(moments([0, -(2**63)], unit, "-03:00"), f'cast(t, "{name}")')


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "pattern",
    ["%Y-%m-%d", "%j %a %U", "%H o'clock", "%I %p", "%H:%M", "%M", "%c", "%S.%f", "%-d %B", "at"],
)
def test_moments_that_are_written_alike_are_written_as_each_alone(unit: str, pattern: str) -> None:
    """What comes often is written once for the begun day, hour, minute or second that matters."""
    days = [0, 1, -1, 7_000, 20_513]
    within = [0, 1, 59, 60, 3_599, 3_600, 43_199, 43_200, 86_399]
    counts = [(86_400 * day + second) * UNITS[unit] for day in days for second in within]
    counts += [count + UNITS[unit] - 1 for count in counts]
    write = formatting(pattern)
    alone = [write(pa.array([count], pa.timestamp(unit)))[0].as_py() for count in counts]
    assert write(pa.array(counts * 9, pa.timestamp(unit))).to_pylist() == alone * 9


def test_dates_and_the_first_moments_that_come_often_are_written() -> None:
    write = formatting("%d")
    dates = pa.array([3, 4] * 9, pa.date32())
    assert write(dates).to_pylist() == ["04", "05"] * 9
    first = pa.array([-(2**63) + 1] * 9, pa.timestamp("ns"))
    assert write(first).to_pylist() == ["21"] * 9  # of September 1677
