"""Types of windows: what they take, and what they give."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lftj.errors import TypeClashError
from lftj.language.aggregate_types import aggregate_type
from lftj.language.syntax import Constant, Variable, Window
from lftj.values.domains import Domains
from lftj.values.kinds import kind, literal_type, plain_type
from lftj.values.literals import NULL
from lftj.values.names import NUMBERING, SHARES
from lftj.values.schema import ColumnType

_RANGES = ("integer", "float", "decimal", "date")
"""Kinds of values between which a range counts."""


def window_type(window: Window, types: Mapping[str, ColumnType], domains: Domains) -> ColumnType:
    """The type of a window's values over variables of some types.  Raises TypeClashError."""
    frame, function = window.frame, window.function
    if frame is not None and frame.unit == "range" and (frame.first or frame.last):
        (order,) = window.by
        of = kind(types[order.variable.name].arrow)
        if of not in _RANGES:
            message = (
                f"a range of numbers is of numbers and dates, and '{order.variable.name}' is of type {of}"
            )
            raise TypeClashError(f"{message}: take rows: or groups:", order.variable.span)
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
