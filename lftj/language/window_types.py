"""Types of windows: what they take, and what they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from lftj.errors import TypeClashError
from lftj.language.aggregate_types import aggregate_type
from lftj.language.syntax import Constant, Variable, Window
from lftj.values.calendar import per_second
from lftj.values.domains import Domains
from lftj.values.kinds import kind, literal_type, plain_type
from lftj.values.literals import NULL
from lftj.values.names import NUMBERING, SHARES
from lftj.values.schema import ColumnType

_NUMBERS, _MOMENTS = ("integer", "float", "decimal"), ("date", "timestamp", "duration")
"""Kinds of values in which a range counts numbers, and those in which it counts durations."""


def window_type(window: Window, types: Mapping[str, ColumnType], domains: Domains) -> ColumnType:
    """The type of a window's values over variables of some types.  Raises TypeClashError."""
    in_units(window, types)
    frame, function = window.frame, window.function
    if function in SHARES:
        return ColumnType(domains.of(pa.float64()), pa.float64())
    if function in (*NUMBERING, "count"):
        return ColumnType(domains.of(pa.int64()), pa.int64())
    argument, *more = window.arguments
    assert isinstance(argument, Variable)
    read = types[argument.name]
    arrow = aggregate_type(function, read.arrow) if function in ("sum", "avg") else read.arrow
    if arrow is None:
        message = f"'{function}' takes numbers, and '{argument.name}' is of type {plain_type(read.arrow)}"
        raise TypeClashError(message, argument.span)
    always = frame is None and function not in ("lag", "lead", "nth")
    nullable = read.nullable or not always
    for default in more[1:]:
        nullable = _default_may_be_null(window, default, read, types) or read.nullable
    return ColumnType(domains.of(arrow), arrow, nullable)


def in_units(window: Window, types: Mapping[str, ColumnType]) -> Window:
    """The window, a range of whose moments is in units of their column.  Raises TypeClashError.

    >>> from lftj.language.syntax import Frame, SortKey
    >>> by = (SortKey(Variable("t")),)
    >>> window = Window("count", (), (), by, Frame("range", -2_000_000, 0, in_time=True))
    >>> milliseconds = pa.timestamp("ms")
    >>> in_units(window, {"t": ColumnType(Domains().of(milliseconds), milliseconds)}).frame
    Frame(unit='range', first=Fraction(-2000, 1), last=Fraction(0, 1), in_time=False)
    """
    frame = window.frame
    if frame is None or frame.unit != "range" or not (frame.first or frame.last):
        return window
    (order,) = window.by
    name, type_ = order.variable.name, types[order.variable.name].arrow
    of = kind(type_)
    if of not in (*_NUMBERS, *_MOMENTS):
        message = f"'{name}' is of type {plain_type(type_)}, without distances: take rows: or groups:"
        raise TypeClashError(message, order.variable.span)
    if frame.in_time and of in _NUMBERS:
        message = f"'{name}' is of type {of}: give its range in numbers"
        raise TypeClashError(message, order.variable.span)
    if not frame.in_time:
        if of in ("timestamp", "duration"):
            message = f"'{name}' is a {of}: give its range in durations, as in range: (-10m, 0)"
            raise TypeClashError(message, order.variable.span)
        return window
    per_microsecond = Fraction(1, 86_400 * 10**6) if of == "date" else Fraction(per_second(type_), 10**6)
    first, last = (
        None if end is None else Fraction(end) * per_microsecond for end in (frame.first, frame.last)
    )
    return replace(window, frame=replace(frame, first=first, last=last, in_time=False))


def _default_may_be_null(
    window: Window, default: Variable | Constant, read: ColumnType, types: Mapping[str, ColumnType]
) -> bool:
    """Of ``lag`` and ``lead``: what stands where there is no row has the type of the value."""
    if isinstance(default, Variable):
        fits, null = types[default.name].domain is read.domain, types[default.name].nullable
    else:
        null = default.value is NULL
        fits = null or kind(literal_type(default.value)) == kind(read.arrow)
    if not fits:
        message = f"the default of '{window.function}' is of another type than its value, {read.arrow}"
        raise TypeClashError(message, default.span)
    return null
