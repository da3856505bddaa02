"""Values as a rule's text can write them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import pyarrow as pa

Value = int | float | Decimal | str | bytes | bool | datetime.date | datetime.datetime | datetime.timedelta
"""A literal's Python value.  ``1.2`` is a Decimal: the domain it meets decides what it becomes."""


class _Null(Enum):
    NULL = "null"

    def __str__(self) -> str:
        return self.value


NULL: Any = _Null.NULL
"""The literal ``null``, of no type; what ``x is null`` compares x with."""


@dataclass(frozen=True)
class TypedValue:
    """A value of an Arrow type; no program can write that."""

    value: Value
    arrow: pa.DataType

    def __str__(self) -> str:
        return str(self.value)


def literal_kind(value: Value) -> str:
    """What to call a rule's literal in a message.

    >>> literal_kind("x"), literal_kind(True), literal_kind(3)
    ('string', 'boolean', 'number')
    """
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bytes):
        return "binary string"
    if isinstance(value, datetime.timedelta):
        return "duration"
    if isinstance(value, datetime.datetime):
        return "timestamp without zone" if value.tzinfo is None else "timestamp with zone"
    return "date"
