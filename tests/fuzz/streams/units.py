"""Times as whole numbers of their column's unit, in rows and in rules.

Cases have times so, whatever the type of the column; the engine gets them as that type, and what it gives is
read back.  Lengths of time are constants in rules: whole numbers beside integers and dates, else timedeltas.
"""

from __future__ import annotations

import datetime
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa

from fuzz.case import TYPES
from support.reference import Row
from support.rules import Arithmetic, Call, Comparison, Constant, Either, Literal, Program

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MONDAY = (datetime.date(2000, 1, 3) - datetime.date(1970, 1, 1)).days
"""Windows begin then."""


def unit(type_name: str) -> str | None:
    """Of a timestamp's type the name of its unit."""
    type_ = TYPES[type_name]
    return type_.unit if pa.types.is_timestamp(type_) else None


def is_date(type_name: str) -> bool:
    return pa.types.is_date(TYPES[type_name])


def constant(type_name: str, units: int) -> Constant:
    """A length of time in a rule."""
    of = unit(type_name)
    return Constant(units) if of is None else Constant(_span(units, of))


def back(type_name: str, units: int) -> Constant:
    """A length of time behind ``now() -``."""
    return Constant(datetime.timedelta(days=units)) if is_date(type_name) else constant(type_name, units)


def _span(units: int, of: str) -> datetime.timedelta:
    microseconds, rest = divmod(units * 10**6, PER_SECOND[of])
    assert not rest
    return datetime.timedelta(microseconds=microseconds)


def spelled(type_name: str, units: int) -> str:
    """A length of time as a declaration has it."""
    if is_date(type_name):
        return f"{units}d"
    of = unit(type_name)
    return str(units) if of is None else f"{_span(units, of) // datetime.timedelta(microseconds=1)}us"


def given(type_name: str, units: int | None) -> Any:
    """The same as ``load`` takes it."""
    return (
        units
        if units is None or (unit(type_name) is None and not is_date(type_name))
        else spelled(type_name, units)
    )


def value(type_name: str, time: int) -> Any:
    """A time, as ``advance`` takes it."""
    scalar = pa.scalar(time, TYPES[type_name])
    return scalar.as_py() if unit(type_name) is None else scalar


def units_of(type_name: str, moment: Any) -> int | None:
    """The inverse."""
    return None if moment is None else _whole(pa.array([moment], TYPES[type_name])).to_pylist()[0]


def _whole(column: Any) -> Any:
    type_ = column.type
    if pa.types.is_date32(type_):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_temporal(type_) else column


def rows_in_units(table: pa.Table) -> list[Row]:
    """A table's rows, with times and durations as whole numbers."""
    return list(zip(*(_whole(column).to_pylist() for column in table.columns), strict=True))


# -- rules over whole numbers ------------------------------------------------------------------------


def in_units(program: Program, type_name: str, now: int | None) -> Program:
    """The program over times that are whole numbers, when the clock is there.

    Without a clock everything is recent.
    """
    return tuple(replace(rule, body=_body(rule.body, type_name, now)) for rule in program)


def _body(body: tuple[Literal, ...], type_name: str, now: int | None) -> tuple[Literal, ...]:
    left: list[Literal] = []
    for literal in body:
        if isinstance(literal, Either):
            parts = tuple(_body(part, type_name, now) for part in literal.alternatives)
            left.append(Either(parts))
        elif not (isinstance(literal, Comparison) and now is None and asks_for_now(literal)):
            left.append(_node(literal, type_name, now))
    return tuple(left)


def asks_for_now(node: Any) -> bool:
    if isinstance(node, Comparison | Arithmetic):
        return asks_for_now(node.left) or asks_for_now(node.right)
    return isinstance(node, Call) and node.function == "now"


def _node(node: Any, type_name: str, now: int | None) -> Any:
    if isinstance(node, Call) and node.function == "now":
        return Constant(now)
    if isinstance(node, Call) and node.function in ("tumble", "hop"):
        lengths = 1 if node.function == "tumble" else 2
        moment, *spans = (_node(argument, type_name, now) for argument in node.arguments)
        offset = spans[lengths].value if len(spans) > lengths else 0
        return Call(node.function, (moment, *spans[:lengths], Constant(offset + origin(type_name))))
    if isinstance(node, Constant) and isinstance(node.value, datetime.timedelta):
        per = PER_SECOND[unit(type_name) or "s"]
        units = node.value // datetime.timedelta(microseconds=1) * per // 10**6
        return Constant(units // 86_400 if is_date(type_name) else units)
    if isinstance(node, tuple):
        return tuple(_node(part, type_name, now) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: _node(getattr(node, f.name), type_name, now) for f in fields(node)})
    return node


def origin(type_name: str) -> int:
    """Where one of the windows begins."""
    of = unit(type_name)
    return MONDAY * 86_400 * PER_SECOND[of] if of else MONDAY if is_date(type_name) else 0
