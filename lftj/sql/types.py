"""SQL's types, by DuckDB's names: which of them rules take for one kind, and how they are written.

>>> kind("DECIMAL(12,2)"), kind("VARCHAR"), kind("BIGINT[]")
('decimal', 'text', 'list')
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal

from lftj.sql.nodes import Constant

_TYPES = {
    "TINYINT": ("integer", "int8"),
    "SMALLINT": ("integer", "int16"),
    "INTEGER": ("integer", "int32"),
    "BIGINT": ("integer", "int64"),
    "HUGEINT": ("integer", "int64"),
    "UTINYINT": ("integer", "uint8"),
    "USMALLINT": ("integer", "uint16"),
    "UINTEGER": ("integer", "uint32"),
    "UBIGINT": ("integer", "uint64"),
    "UHUGEINT": ("integer", "int64"),
    "FLOAT": ("float", "float32"),
    "DOUBLE": ("float", "float64"),
    "VARCHAR": ("text", "string"),
    "CHAR": ("text", "string"),
    "BOOLEAN": ("boolean", "bool"),
    "DATE": ("date", "date"),
    "TIME": ("time", None),
    "TIMESTAMP": ("timestamp", "timestamp"),
    "TIMESTAMP_S": ("timestamp", "timestamp[s]"),
    "TIMESTAMP_MS": ("timestamp", "timestamp[ms]"),
    "TIMESTAMP_NS": ("timestamp", "timestamp[ns]"),
    "TIMESTAMP WITH TIME ZONE": ("zoned", None),
    "INTERVAL": ("interval", None),
    "BLOB": ("binary", None),
    "NULL": ("null", "int64"),  # of what is NULL and nothing else
}
"""The kind of each type, and what it is in a cast of a rule; None: rules can't write it."""

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")

_EXACT = Context(prec=76)


def kind(type_: str) -> str:
    """What a value is, whatever its width."""
    if type_.endswith("]"):
        return "list"
    return "decimal" if type_.startswith("DECIMAL") else _TYPES.get(type_, ("other",))[0]


def digits(type_: str) -> tuple[int, int]:
    """Width and scale of a decimal.

    >>> digits("DECIMAL(12,2)")
    (12, 2)
    """
    width, _, scale = type_[len("DECIMAL(") : -1].partition(",")
    return int(width), int(scale)


def holds(wide: str, narrow: str) -> bool:
    """Whether the engine's values of one type are those of the other, as they are."""
    if kind(wide) == "decimal":
        (w, s), (n, its) = digits(wide), digits(narrow)
        return s >= its and (w - s >= n - its or w == 38)
    if wide in _INTEGERS and narrow in _INTEGERS:
        return _INTEGERS.index(wide) >= _INTEGERS.index(narrow)
    if kind(wide) == "integer":
        return wide in ("BIGINT", "HUGEINT") and narrow != "UBIGINT"
    return wide != "FLOAT" if kind(wide) == "float" else kind(wide) in ("text", "boolean", "date")


def scaled(value: Decimal | int, type_: str) -> Decimal:
    """A number with the digits behind the point that a decimal type has.

    >>> scaled(5, "DECIMAL(38,30)")
    Decimal('5.000000000000000000000000000000')
    """
    return Decimal(value).quantize(Decimal(1).scaleb(-digits(type_)[1]), context=_EXACT)


def written(type_: str) -> str | None:
    """A type as rules write it in a cast; None: they can't.

    >>> written("DECIMAL(12,2)"), written("INTEGER"), written("HUGEINT"), written("INTERVAL")
    ('decimal(12, 2)', 'int32', 'int64', None)
    """
    if kind(type_) == "decimal":
        return "decimal({}, {})".format(*digits(type_))
    return _TYPES.get(type_, (None, None))[1]


def exactly(of: Constant, type_: str) -> Constant | None:
    """A constant as one of another type, where that rounds nothing and can't fail; None: it may.

    >>> exactly(Constant(3, "INTEGER"), "DECIMAL(4,2)").value, exactly(Constant(300, "INTEGER"), "TINYINT")
    (Decimal('3.00'), None)
    """
    value, source, to = of.value, kind(of.type), kind(type_)
    if value is None or of.type == type_:
        return replace(of, type=type_)
    if source == to == "integer":
        bits = int(str(written(type_)).lstrip("uint"))
        fits = abs(value) < 2 ** (bits - 1) and (value >= 0 or not type_.startswith("U"))
        return replace(of, type=type_) if fits else None
    if source == "integer" and to == "float":
        fits = abs(value) < 2 ** (24 if type_ == "FLOAT" else 53)
        return replace(of, value=float(value), type=type_) if fits else None
    if source in ("integer", "decimal") and to == "decimal":
        width, scale = digits(type_)
        if abs(value) < 10 ** (width - scale):
            shown = scaled(value, type_)
            return replace(of, value=shown, type=type_) if shown == value else None
    return None
