"""Constants: their values in a plan, and what DuckDB makes of functions and casts of them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from lftj.errors import UnsupportedSqlError
from lftj.sql.nodes import Call, Constant, Expression, Place
from lftj.sql.types import digits, exactly, kind, scaled
from lftj.statements.binder import BEYOND, Binder, quoted

_EPOCH = datetime.datetime(1970, 1, 1)
MOST_ROWS = 1000
"""Of a series by intervals that is read as VALUES."""
_OF_PARTS = ("STRUCT", "TUPLE", "MAP", "UNION", "VARIANT", "ENUM", "ARRAY")
_PER_SECOND = {"TIMESTAMP_S": 1, "TIMESTAMP_MS": 1000, "TIMESTAMP_NS": 10**9}


def type_name(written: Mapping[str, Any]) -> str:
    """A type of a plan.

    >>> type_name({"id": "DECIMAL", "type_info": {"width": 12, "scale": 2}})
    'DECIMAL(12,2)'
    """
    info = written.get("type_info", {})
    if written["id"] == "DECIMAL":
        return f"DECIMAL({info.get('width', 18)},{info.get('scale', 0)})"
    if written["id"] == "LIST":
        return f"{type_name(info['child_type'])}[]"
    return "NULL" if written["id"] == "SQLNULL" else str(written["id"])


def has_parts(written: Mapping[str, Any]) -> bool:
    """Whether a type of a plan is one of several values, an aggregate's state, or a list of such.

    >>> has_parts({"id": "LIST", "type_info": {"child_type": {"id": "STRUCT"}}}), has_parts({"id": "DATE"})
    (True, False)
    """
    info, name = written.get("type_info", {}), written.get("id")
    if name == "LIST":
        return has_parts(info["child_type"])
    return info.get("alias") == "AGGREGATE_STATE" or name in _OF_PARTS


def read(value: Mapping[str, Any], place: Place | None) -> Constant | Call:
    """A constant of a plan; a list as the call that makes it."""
    type_ = type_name(value["type"])
    if value.get("is_null"):
        return Constant(None, type_, place=place)
    if kind(type_) == "list":
        of = value["type"]["type_info"]["child_type"]
        elements = (read({"type": of, **one}, place) for one in value["value"].get("children", ()))
        return Call("list_value", tuple(elements), type_, place=place)
    if kind(type_) in ("zoned", "time", "other"):
        raise UnsupportedSqlError(f"a constant of type {type_} is not taken")
    try:
        return Constant(_value(value.get("value"), type_), type_, place=place)
    except OverflowError:
        raise UnsupportedSqlError(BEYOND) from None


def _value(found: Any, type_: str) -> Any:
    of = kind(type_)
    if isinstance(found, dict) and of in ("integer", "decimal"):  # of 128 bits
        found = found["upper"] * 2**64 + found["lower"]
    if of == "date":
        return (_EPOCH + datetime.timedelta(days=found)).date()
    if of == "decimal":
        return scaled(Decimal(f"{found}e-{digits(type_)[1]}"), type_)
    if of == "timestamp":
        return _EPOCH + datetime.timedelta(microseconds=found * 10**6 // _PER_SECOND.get(type_, 10**6))
    if of == "interval":
        return tuple(found.get(unit, 0) for unit in ("months", "days", "micros"))
    if of == "float":
        return float(found)
    return found


def computed(binder: Binder, function: str, arguments: Sequence[Constant], type_: str) -> Constant | Call:
    """What DuckDB says of a function of constants."""
    shown = ", ".join(map(_written, arguments))
    return _found(binder, f"{quoted(function)}({shown})", type_)


def series(binder: Binder, function: str, arguments: tuple[Expression, ...], type_: str) -> Call:
    """A list of equal steps; by intervals the one that DuckDB makes of constants, up to :data:`MOST_ROWS`."""
    constants = [one for one in arguments if isinstance(one, Constant)]
    if len(constants) == len(arguments) and kind(arguments[-1].type) == "interval":
        rows = f"(from {function}({', '.join(map(_written, constants))}) limit {MOST_ROWS + 1})"
        found = binder.value(f"list(x) from {rows} rows(x)") or ()
        if len(found) <= MOST_ROWS:
            arguments = tuple(Constant(value, type_[:-2]) for value in found)
            function = "list_value"
    return Call(function, arguments, type_)


def converted(binder: Binder, constant: Constant, type_: str, fails: bool) -> Constant | Call:
    """What DuckDB says of a cast of a constant."""
    known = exactly(constant, type_)
    if known is not None:
        return known
    cast, to = "cast" if fails else "try_cast", "INTEGER" if type_ == "NULL" else type_
    return _found(binder, f"{cast}({_written(constant)} as {to})", type_, constant.place)


def _found(binder: Binder, of: str, type_: str, place: Place | None = None) -> Constant | Call:
    if type_ == "INTERVAL":  # a value of Python has no months
        time = f"3600000000 * hour({of}) + 60000000 * minute({of}) + microsecond({of})"
        parts = binder.value(f"[12 * year({of}) + month({of}), day({of}), {time}]")
        return Constant(None if None in parts else tuple(parts), type_, place=place)
    return _constant(binder.value(of), type_, place)


def _constant(value: Any, type_: str, place: Place | None = None) -> Constant | Call:
    """Of a value of Python; a list as the call that makes it."""
    if isinstance(value, list):
        parts = tuple(_constant(one, type_[:-2], place) for one in value)
        return Call("list_value", parts, type_, place=place)
    if kind(type_) == "decimal" and value is not None:
        value = scaled(value, type_)
    return Constant(value, type_, place=place)


def _written(constant: Constant) -> str:
    """As SQL.

    >>> _written(Constant(Decimal("1.50"), "DECIMAL(3,2)"))
    "cast('1.50' as DECIMAL(3,2))"
    """
    value = constant.value
    if value is None:
        return "null" if "NULL" in constant.type else f"cast(null as {constant.type})"
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    text = "{} months {} days {} microseconds".format(*value) if isinstance(value, tuple) else str(value)
    return "cast('{}' as {})".format(text.replace("'", "''"), constant.type)
