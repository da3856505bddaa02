"""SQL's types, by DuckDB's names: which of them rules take for one kind, and how they are written.

>>> kind("DECIMAL(12,2)"), kind("VARCHAR"), kind("BIGINT[]")
('decimal', 'text', 'list')
"""

from __future__ import annotations

_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    **dict.fromkeys(("VARCHAR", "CHAR"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "timestamp"),
    "TIMESTAMP WITH TIME ZONE": "zoned",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIME": "time",
    "BLOB": "binary",
    "INTERVAL": "interval",
    "NULL": "null",
}

_WRITTEN = {
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "FLOAT": "float32",
    "TIMESTAMP_S": "timestamp[s]",
    "TIMESTAMP_MS": "timestamp[ms]",
    "TIMESTAMP_NS": "timestamp[ns]",
    "NULL": "int64",  # of what is NULL and nothing else
}
_OF_KIND = {
    "integer": "int64",
    "float": "float64",
    "text": "string",
    "date": "date",
    "timestamp": "timestamp",
    "boolean": "bool",
}


def kind(type_: str) -> str:
    """What a value is, whatever its width."""
    if type_.endswith("]"):
        return "list"
    return "decimal" if type_.startswith("DECIMAL") else _KINDS.get(type_, "other")


def digits(type_: str) -> tuple[int, int]:
    """Width and scale of a decimal.

    >>> digits("DECIMAL(12,2)")
    (12, 2)
    """
    width, _, scale = type_[len("DECIMAL(") : -1].partition(",")
    return int(width), int(scale)


def written(type_: str) -> str | None:
    """A type as rules write it in a cast; None: they can't.

    >>> written("DECIMAL(12,2)"), written("INTEGER"), written("HUGEINT"), written("INTERVAL")
    ('decimal(12, 2)', 'int32', 'int64', None)
    """
    if kind(type_) == "decimal":
        return "decimal({}, {})".format(*digits(type_))
    return _WRITTEN.get(type_) or _OF_KIND.get(kind(type_))
