"""PostgreSQL's types as Arrow's, and texts of theirs as values.

| PostgreSQL                               | Arrow                                                   |
|------------------------------------------|---------------------------------------------------------|
| boolean, smallint, integer, bigint       | bool, int16, int32, int64                               |
| real, double precision                   | float, double                                           |
| numeric(p, s), p up to 38                | decimal128(p, s)                                        |
| text, varchar, char, name, uuid, json, jsonb, enumerations | string                                |
| date, timestamp, timestamptz             | date32, timestamp[us], timestamp[us, UTC]               |
| bytea                                    | binary                                                  |

All else is refused by name, numeric without digits too; ``types=`` says what it is to be read as.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from maintenance.sources.typed_text import Reader, each, reader

_PLAIN = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "bytea": pa.binary(),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "json", "jsonb"), pa.string()),
}
"""By ``typname``."""

MOST_DIGITS = 38


def arrow_type(name: str, kind: str, modifier: int) -> pa.DataType | None:
    """The type of values, by ``typname``, ``typtype`` and ``atttypmod``; None for what there is none for.

    >>> arrow_type("numeric", "b", ((12 << 16) | 2) + 4), arrow_type("point", "b", -1)
    (Decimal128Type(decimal128(12, 2)), None)
    """
    if kind == "e":
        return pa.string()
    if name == "numeric" and modifier >= 4:
        digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        return pa.decimal128(digits, scale) if scale <= digits <= MOST_DIGITS else None
    return _PLAIN.get(name)


def reader_of(wanted: pa.DataType) -> Reader:
    """What reads texts as the server writes them, with its dates in ISO form and its times in UTC."""
    if pa.types.is_boolean(wanted):
        return _flags
    if pa.types.is_binary(wanted) or pa.types.is_large_binary(wanted):
        return partial(each, wanted=wanted, value_of=lambda text: bytes.fromhex(text.removeprefix("\\x")))
    return reader(wanted)


def _flags(texts: pa.Array) -> pa.Array:
    flags = pc.equal(texts, "t")
    if pc.any(pc.and_(pc.invert(flags), pc.not_equal(texts, "f"))).as_py():
        raise pa.ArrowInvalid("neither t nor f")
    return flags
