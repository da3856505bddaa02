"""Random cases of values: what is inserted into a column of another type is taken as it is, or refused."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from fuzz.case import Case, Commit, Table
from support.rules import Atom, Head, Rule, Variable

_UTC = ZoneInfo("UTC")
_WHOLE: tuple[Any, ...] = (0, 1, -1, 100, 127, 128, 255, 2**31, 2**53 + 1, 2**63 - 1, -(2**63) + 1)
_FLOATS: tuple[Any, ...] = (0.0, 1.0, 0.5, 0.1, 2.0**60, 1e300, float("inf"), 16777217.0)
_DECIMALS: tuple[Any, ...] = tuple(map(Decimal, ("0", "1", "1.5", "1.25", "1.234", "9999.99", "123456.7")))
_DAYS: tuple[Any, ...] = tuple(
    datetime.date(*d) for d in ((1970, 1, 1), (2026, 1, 2), (1, 1, 1), (9999, 12, 31))
)
_MOMENTS: tuple[Any, ...] = tuple(
    datetime.datetime(*d)
    for d in ((2026, 1, 2), (2026, 1, 2, 13, 5), (2026, 1, 2, 13, 5, 0, 1), (1969, 7, 20, 23))
)
_TIMES: tuple[Any, ...] = (datetime.time(0), datetime.time(13, 5), datetime.time(13, 5, 0, 1))
_SPANS: tuple[Any, ...] = tuple(
    datetime.timedelta(**d) for d in ({"hours": 1}, {"milliseconds": 1}, {"days": -3})
)
_WORDS: tuple[Any, ...] = ("", "a", "1", "2026-01-02", "é")
_BYTES: tuple[Any, ...] = (b"", b"a", b"ab", b"\xff\x00")

OF_TYPE: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), _WHOLE),
    **dict.fromkeys(("float", "double"), _FLOATS),
    **dict.fromkeys(("decimal128(6, 2)", "decimal128(10, 1)", "decimal256(20, 3)"), _DECIMALS),
    **dict.fromkeys(("date32[day]", "date64[ms]"), _DAYS),
    **dict.fromkeys(("timestamp[s]", "timestamp[us]"), _MOMENTS),
    **dict.fromkeys(
        ("timestamp[us, tz=UTC]", "timestamp[us, tz=Europe/Berlin]"),
        tuple(moment.replace(tzinfo=_UTC) for moment in _MOMENTS),
    ),
    "time64[us]": _TIMES,
    "duration[ms]": _SPANS,
    "bool": (True, False),
    **dict.fromkeys(
        ("string", "large_string", "dictionary<values=string, indices=int32, ordered=0>"), _WORDS
    ),
    **dict.fromkeys(("binary", "large_binary"), _BYTES),
}
"""Values to try in a column, by its type; not all of them fit."""


def values(r: random.Random) -> Case:
    """One column of a type, and values of another, inserted by tables or by tuples."""
    base, other = r.choice(list(OF_TYPE)), r.choice(list(OF_TYPE))
    if r.random() < 0.5:  # of one family
        family = OF_TYPE[base][0].__class__
        other = r.choice([name for name, values in OF_TYPE.items() if isinstance(values[0], family)])
    new = tuple((value,) for value in r.sample(OF_TYPE[other], r.choice((1, 1, 2))))
    rule = Rule((Head("h", (Variable("x"),)),), (Atom("r", (Variable("x"),)),))
    first = ((r.choice(OF_TYPE[base]),),)
    steps = (Commit(tuple(("r", row, 1) for row in new), r.choice(("tables", "apply", "rows"))),)
    return Case("values", (Table("r", (base,), first), Table("new", (other,), new)), (rule,), steps)


PARTS = ("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear")
UNITS = ("year", "quarter", "month", "week", "day")


def calendar(r: random.Random) -> Case:
    """Days and moments over the whole range of their types, as integers, and a function of them."""
    unit = r.choice(("date32[day]", "timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]"))
    bits = 31 if unit == "date32[day]" else 63
    ends = (
        0,
        -1,
        2**bits - 1,
        -(2**bits) + 1,
        -719_162,
        -719_529,
        11_248_737,
        11_248_738,
        2_932_896,
        2_932_897,
    )
    scale = 1 if bits == 31 else 86_400 * {"[s]": 1, "[ms]": 10**3, "[us]": 10**6, "[ns]": 10**9}[unit[9:]]
    moments = []
    for _ in range(r.choice((1, 3, 8))):
        day = r.choice(
            (r.choice(ends), r.randint(-800_000, 3_000_000), r.randint(-(2**bits) + 1, 2**bits - 1))
        )
        moment = day * scale + r.choice((0, r.randrange(scale)))
        moments.append(moment if abs(moment) < 2**bits else day % 2**bits)
    what = r.choice((*PARTS, *(f"date_trunc {one}" for one in UNITS)))
    rows = tuple((n, moment) for n, moment in enumerate(moments))
    return Case("calendar", (Table("r", ("int64", unit), rows),), (), options={"what": what})
