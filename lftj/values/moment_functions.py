"""The functions of dates and timestamps, and casts: of which arguments, with what type of result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from lftj.errors import TypeClashError
from lftj.values import calendar, moments, spans, time_windows
from lftj.values.arithmetic import Kernel
from lftj.values.binding import Argument, Bound, Function, by_options, string_type
from lftj.values.casts import cast_kernel, named_type
from lftj.values.kinds import finer_unit, kind, plain_type
from lftj.values.sql_casts import sql_kernel, tried


def _part(name: str, arguments: Sequence[Argument]) -> Bound:
    kernel = calendar.part_kernel(name, arguments[0].type)
    return Bound((0,), (_moment_type(arguments[0].type),), pa.int64(), kernel)


def _moment_type(type_: pa.DataType) -> pa.DataType:
    return pa.date32() if kind(type_) == "date" else plain_type(type_)


def _date_trunc(arguments: Sequence[Argument]) -> Bound:
    unit, moment = arguments
    result, kernel = calendar.truncation(unit.value if unit.fixed else None, moment.type)
    return Bound((1,), (result,), result, kernel)


def _add_months(arguments: Sequence[Argument]) -> Bound:
    moment, number = arguments
    _local("add_months", moment.type)
    if kind(number.type) != "integer":
        raise TypeClashError(f"add_months takes whole months, not type {plain_type(number.type)}")
    type_ = _moment_type(moment.type)
    return Bound((0, 1), (type_, pa.int64()), type_, moments.add_months)


def _integers(name: str, arguments: Sequence[Argument]) -> None:
    for argument in arguments:
        if kind(argument.type) != "integer":
            raise TypeClashError(f"{name} takes whole numbers, not type {plain_type(argument.type)}")


def _local(name: str, type_: pa.DataType) -> None:
    """Refuse what is no date, nor a timestamp without a zone."""
    if kind(type_) not in ("date", "timestamp") or getattr(plain_type(type_), "tz", None) is not None:
        way = ': cast(x, "timestamp") is the local time' if kind(type_) == "timestamp" else ""
        raise TypeClashError(f"there is no {name} for type {plain_type(type_)}{way}")


def _add_interval(arguments: Sequence[Argument]) -> Bound:
    """A date stays one where the microseconds are a literal 0."""
    moment, *numbers = arguments
    _local("add_interval", moment.type)
    _integers("add_interval", numbers)
    int64, microseconds = pa.int64(), numbers[2]
    if kind(moment.type) == "date" and microseconds.fixed and microseconds.value == 0:
        return Bound((0, 1, 2), (pa.date32(), int64, int64), pa.date32(), spans.add_interval)
    unit = "us" if kind(moment.type) == "date" else finer_unit("us", plain_type(moment.type).unit)
    type_ = pa.timestamp(unit)
    return Bound((0, 1, 2, 3), (type_, int64, int64, int64), type_, spans.add_interval)


def _date_diff(arguments: Sequence[Argument]) -> Bound:
    unit, *moments = arguments
    name = unit.value if unit.fixed else None
    if name not in spans.UNITS:
        raise TypeClashError(f"date_diff takes a unit first, one of {', '.join(spans.UNITS)}")
    for moment in moments:
        _local("date_diff", moment.type)
    type_ = pa.timestamp("us")
    coarse = [cast_kernel(_moment_type(moment.type), type_) for moment in moments]

    def kernel(*sides: pa.Array) -> pa.Array:
        return spans.difference(str(name), *(make(side) for make, side in zip(coarse, sides, strict=True)))

    return Bound((1, 2), tuple(_moment_type(moment.type) for moment in moments), pa.int64(), kernel)


def _last_day(arguments: Sequence[Argument]) -> Bound:
    type_ = _moment_type(arguments[0].type)
    _local("last_day", type_)
    to_date = cast_kernel(type_, pa.date32())
    return Bound((0,), (type_,), pa.date32(), lambda moments: spans.last_days(to_date(moments)))


def _make_date(arguments: Sequence[Argument]) -> Bound:
    _integers("make_date", arguments)
    return Bound((0, 1, 2), (pa.int64(),) * 3, pa.date32(), spans.make_dates)


def _epoch(arguments: Sequence[Argument]) -> Bound:
    type_ = _moment_type(arguments[0].type)
    if kind(type_) not in ("date", "timestamp"):
        raise TypeClashError(f"there is no epoch for type {type_}")
    return Bound((0,), (type_,), pa.float64(), calendar.epoch)


def _epoch_units(unit: str, arguments: Sequence[Argument]) -> Bound:
    type_ = _moment_type(arguments[0].type)
    if kind(type_) not in ("date", "timestamp", "duration"):
        raise TypeClashError(f"there is no epoch_{unit} for type {type_}")
    return Bound((0,), (type_,), pa.int64(), partial(calendar.epoch_units, unit))


def _strftime(arguments: Sequence[Argument]) -> Bound:
    moment = arguments[0]
    if kind(moment.type) not in ("date", "timestamp"):
        raise TypeClashError(f"there is no strftime for type {plain_type(moment.type)}")
    return by_options("strftime", moments.formatting, "s", pa.string(), arguments, _moment_type(moment.type))


def _cast(
    called: str, kernel: Callable[[pa.DataType, pa.DataType], Kernel], arguments: Sequence[Argument]
) -> Bound:
    value, name = arguments
    if not name.fixed or not isinstance(name.value, str):
        raise TypeClashError(f'{called} takes a type second, as in {called}(x, "int64")')
    wanted = named_type(name.value)
    if value.type == pa.null():
        return Bound((0,), (value.type,), wanted, lambda nulls: nulls.cast(wanted))
    source = plain_type(value.type)
    if kind(source) == "string":
        source = string_type(source)
    return Bound((0,), (source,), wanted, kernel(source, wanted))


def _tried_kernel(source: pa.DataType, wanted: pa.DataType) -> Kernel:
    return partial(tried, sql_kernel(source, wanted), wanted)


TABLE: dict[str, Function] = {
    **{name: Function(1, 1, partial(_part, name)) for name in calendar.PARTS},
    "date_trunc": Function(2, 2, _date_trunc),
    "epoch": Function(1, 1, _epoch),
    **{f"epoch_{unit}": Function(1, 1, partial(_epoch_units, unit)) for unit in ("ms", "us", "ns")},
    "tumble": Function(2, 3, time_windows.bind_tumble),
    "hop": Function(3, 4, time_windows.bind_hop),
    "add_months": Function(2, 2, _add_months),
    "add_interval": Function(4, 4, _add_interval),
    "date_diff": Function(3, 3, _date_diff),
    "last_day": Function(1, 1, _last_day),
    "make_date": Function(3, 3, _make_date),
    "strftime": Function(2, 2, _strftime),
    "cast": Function(2, 2, partial(_cast, "cast", cast_kernel)),
    "sql_cast": Function(2, 2, partial(_cast, "sql_cast", sql_kernel)),
    "try_cast": Function(2, 2, partial(_cast, "try_cast", _tried_kernel)),
}
"""By name."""
