"""Kinds of values for random data: per domain of the engine, its Arrow types and a small pool of values.

Columns of one kind may meet in a join whatever their Arrow type; columns of
different kinds never do in the random rules.  The pools are small so that
joins hit, and hold the values on which encodings go wrong: the empty string,
quotes, text beyond ASCII, both zeros, the ends of int64.
"""

from __future__ import annotations

import datetime
import functools
import itertools
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa


class Listed(tuple[Any, ...]):
    """A list, in the order of lists: an end comes before all elements, and NULL behind them."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"Listed({tuple(self)!r})"

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        for left, right in zip(self, other, strict=False):
            if left != right:
                return left is not None and (right is None or bool(left < right))
        return len(self) < len(other)

    def __gt__(self, other: tuple[Any, ...]) -> bool:
        return self != other and not self < other

    def __le__(self, other: tuple[Any, ...]) -> bool:
        return self == other or self < other

    def __ge__(self, other: tuple[Any, ...]) -> bool:
        return not self < other


@dataclass(frozen=True)
class Kind:
    """``literals``: constants to meet it.  ``affine``: ``x < y + 3`` works.  ``number``: has sums.

    ``element``: the kind of what is in its lists.
    """

    name: str
    types: tuple[pa.DataType, ...]
    pool: tuple[Any, ...]
    literals: tuple[Any, ...] = ()
    affine: bool = False
    number: bool = False
    element: Kind | None = None

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def values(self, arrow: pa.DataType) -> tuple[Any, ...]:
        """The pool's values that a column of this type can hold."""
        if pa.types.is_fixed_size_binary(arrow):
            return tuple(v for v in self.pool if len(v) == arrow.byte_width)
        return self.pool


def _moments(zone: ZoneInfo | None) -> tuple[datetime.datetime, ...]:
    return (
        datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=zone),
        datetime.datetime(2026, 1, 31, 10, 0, 0, tzinfo=zone),
        datetime.datetime(2026, 1, 31, 10, 0, 0, 250000, tzinfo=zone),
        datetime.datetime(2026, 7, 1, 0, 0, 0, tzinfo=zone),
    )


_UTC = ZoneInfo("UTC")
_SIGNED = (pa.int64(), pa.int8(), pa.int16(), pa.int32())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_HALVES = tuple(Decimal(text) for text in ("0.5", "0.0", "1.5", "-1.5", "2.0"))
_DAYS = tuple(datetime.date(*day) for day in ((2026, 1, 31), (1969, 12, 31), (2000, 2, 29), (1900, 1, 1)))
_WORDS = ("a", "b", "", "aa", "B", "é", 'say "\\"', "two\nlines", "\N{GRINNING FACE}", "ﬀ")
_BYTES = (b"a\x00", b"\x00\xff", b"", b"a", b"\xff\xfe")

INTEGER = Kind(
    "integer",
    (pa.int64(), *_SIGNED, *_UNSIGNED),
    tuple(range(6)),
    (*range(6), -1, Decimal("2.5")),
    True,
    True,
)
SIGNED = Kind("signed", _SIGNED, (0, 1, -1, 2, -2, -3), (0, 1, -1, -2, 7, Decimal("-0.5")), True, True)
WIDE = Kind("wide", (pa.int64(),), (0, 2**63 - 1, -(2**63), 2**40, -1), (0, 2**63 - 1, -(2**63), 2**40))
BOOLEAN = Kind("boolean", (pa.bool_(),), (False, True), (False, True))
FLOAT = Kind(
    "float",
    (pa.float64(), pa.float32()),
    (0.5, 0.0, -0.0, 1.5, -1.5, 1024.0),
    (Decimal("0.5"), 1.5, -1.5, 0, 1024.0, Decimal("0.1")),
    number=True,
)
EXTREME = Kind(
    "extreme",
    (pa.float64(),),
    (0.1, 5e-324, 1.7e308, -1.7e308, float("inf"), float("-inf")),
    (0.1, 1.7e308),
    number=True,
)
DATE = Kind("date", (pa.date32(), pa.date64()), _DAYS, _DAYS[:3])
MOMENT = Kind("timestamp", (pa.timestamp("us"),), _moments(None), _moments(None))
COARSE = Kind("coarse timestamp", (pa.timestamp("s"),), _moments(None)[:2], _moments(None))
ZONED = Kind(
    "zoned timestamp",
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")),
    _moments(_UTC),
    tuple(m.astimezone(datetime.UTC) for m in _moments(_UTC)),
)
TIME = Kind("time", (pa.time64("us"),), (datetime.time(0), datetime.time(10, 0, 0, 1), datetime.time(23, 59)))
_SPANS = tuple(datetime.timedelta(hours=h) for h in (0, -1, 25))
DURATION = Kind("duration", (pa.duration("ms"),), _SPANS, (*_SPANS, datetime.timedelta(milliseconds=-1500)))
FINE_DURATION = Kind("fine duration", (pa.duration("us"),), _SPANS, _SPANS)
COARSE_DURATION = Kind("coarse duration", (pa.duration("s"),), _SPANS, _SPANS)
DECIMAL = Kind(
    "decimal",
    (pa.decimal128(6, 2), pa.decimal128(10, 1), pa.decimal256(20, 3), pa.decimal128(6, 2)),
    _HALVES,
    (*_HALVES, Decimal("1.50"), Decimal("0.1"), 2),
    number=True,
)
STRING = Kind(
    "string",
    (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())),
    _WORDS,
    (*_WORDS[:8], "absent", "zzz"),
)
BINARY = Kind(
    "binary", (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)), _BYTES, (*_BYTES, b"absent")
)

KINDS = (
    INTEGER,
    SIGNED,
    STRING,
    FLOAT,
    DECIMAL,
    DATE,
    MOMENT,
    ZONED,
    BINARY,
    BOOLEAN,
    WIDE,
    EXTREME,
    COARSE,
    TIME,
    DURATION,
)


@functools.cache
def list_of(kind: Kind) -> Kind:
    """The kind of lists whose elements are of one; those of integers and of texts are columns', too."""
    few = (None, *kind.pool[:3])
    pool = tuple(Listed(some) for n in range(3) for some in itertools.product(few, repeat=n))
    types = {
        "integer": (pa.list_(pa.int64()), pa.list_(pa.int8()), pa.large_list(pa.int32())),
        "string": (pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_(pa.string_view())),
    }
    return Kind(f"list of {kind.name}", types.get(kind.name, ()), pool, element=kind)


LISTS = (list_of(INTEGER), list_of(STRING))
