"""Values as a rule's text would write them, for messages.

:func:`spelled` takes a value of any Arrow type that can be loaded.  It never
goes by way of Python's dates and times, which end with the year 9999 and know
no nanoseconds.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.values.kinds import kind, plain_array

DURATIONS = {
    "d": datetime.timedelta(days=1),
    "h": datetime.timedelta(hours=1),
    "m": datetime.timedelta(minutes=1),
    "s": datetime.timedelta(seconds=1),
    "ms": datetime.timedelta(milliseconds=1),
    "us": datetime.timedelta(microseconds=1),
}
"""What stands behind the number of a duration."""

_FIRST = -(2**63)  # what numpy's dates and times use for "no time"


def literal(value: Any) -> str:
    """A Python value as the literal of a rule, or nearly so.

    >>> print(literal("say \\"hi\\""), literal(b"\\x00\\xff"), literal(True), literal(2.5))
    "say \\"hi\\"" x"00ff" true 2.5
    >>> literal(datetime.timedelta(minutes=90)), literal(datetime.timedelta(seconds=-1.5))
    ('90m', '-1500ms')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    if isinstance(value, bytes):
        return f'x"{value.hex()}"'
    if isinstance(value, datetime.timedelta):
        unit = next(unit for unit, length in DURATIONS.items() if not value % length) if value else "s"
        return f"{value // DURATIONS[unit]}{unit}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(value)


def spelled(value: pa.Array) -> str:
    """The value of an array of one row as the literal of a rule, or nearly so.

    A timestamp with a zone is written in UTC, a duration as its number of units.

    >>> print(spelled(pa.array([2**31 - 1], pa.int32()).cast(pa.date32())), spelled(pa.array(["tea"])))
    5881580-07-11 "tea"
    >>> spelled(pa.array([["tea", None]]))
    '["tea", NULL]'
    >>> spelled(pa.array([10**18 + 1]).cast(pa.timestamp("ns", "Asia/Tokyo")))
    '2001-09-09T01:46:40.000000001Z'
    """
    value = plain_array(value)
    if value.null_count:
        return "NULL"
    arrow, name = value.type, kind(value.type)
    if name == "date":
        days = value.cast(pa.int32() if pa.types.is_date32(arrow) else pa.int64())[0].as_py()
        return _moment(days if pa.types.is_date32(arrow) else days // 86_400_000, "D")
    if name == "timestamp":
        text = _moment(value.cast(pa.int64())[0].as_py(), arrow.unit)
        return text if arrow.tz is None else f"{text}Z"
    if name == "list":
        elements = value.flatten()
        return f"[{', '.join(spelled(elements[place : place + 1]) for place in range(len(elements)))}]"
    if name in ("time", "duration"):
        return str(value.cast(pa.string())[0].as_py())
    return literal(value[0].as_py())


def _moment(number: int, unit: str) -> str:
    """``number`` units since 1970-01-01, in ISO 8601."""
    if number == _FIRST:
        return f"{number} {unit} since 1970-01-01"
    return str(np.array([number], dtype=np.int64).view(f"M8[{unit}]")[0])
