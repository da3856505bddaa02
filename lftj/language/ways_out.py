"""What to write instead, where a rule says what is said otherwise elsewhere: the last part of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from lftj.language.diagnostics import suggestion
from lftj.values.casts import type_name_reached
from lftj.values.kinds import kind

_ELSEWHERE = {
    "mean": "avg",
    "average": "avg",
    "std": "stddev",
    "var": "variance",
    "size": "count()",
    "len": "count()",
    "nunique": "count(distinct x)",
    "count_distinct": "count(distinct x)",
    "distinct": "count(distinct x)",
    "group_concat": "string_agg",
    "listagg": "string_agg",
    "array_agg": "list",
    "collect_list": "list",
    "argmax": "arg_max",
    "argmin": "arg_min",
    "any": "bool_or",
    "all": "bool_and",
    "first": "any_value",
}
"""What pandas, SQL and Spark call aggregates, and what rules do."""

_WRITTEN = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\d([T ].*)?"),
    "integer": re.compile(r"-?\d+"),
    "float": re.compile(r"-?\d+(\.\d+)?"),
    "decimal": re.compile(r"-?\d+(\.\d+)?"),
}
"""Texts that are meant as literals of a kind."""


def other_aggregate(name: str, known: Iterable[str]) -> str:
    """Behind an unknown aggregate.

    >>> other_aggregate("mean", ["avg", "median"]), other_aggregate("sun", ["sum"])
    ("; it is called 'avg'", "; did you mean 'sum'?")
    """
    there = _ELSEWHERE.get(name.lower())
    if there is not None:
        return f"; it is called '{there}'" if there.isidentifier() else f"; write {there}"
    return suggestion(name, known)


def as_literal(value: object, column: pa.DataType) -> str:
    """Behind a literal that can't be compared with values of the column.

    >>> as_literal("2026-01-31", pa.date32()), as_literal(5, pa.string())
    ('; a date is written without quotes: 2026-01-31', '; a string stands in double quotes: "5"')
    """
    wanted = kind(column)
    if isinstance(value, str) and wanted in _WRITTEN:
        article = "an" if wanted == "integer" else "a"
        if _WRITTEN[wanted].fullmatch(value):
            return f"; {article} {wanted} is written without quotes: {value.replace(' ', 'T')}"
    if wanted == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'; a string stands in double quotes: "{value}"'
    return ""


def as_joined(name: str, known: pa.DataType, column: pa.DataType) -> str:
    """Behind a variable that has one type already, where a column of another one is read.

    >>> as_joined("a", pa.int64(), pa.string())
    '; call it a2 here, and write a2 = cast(a, "string") beside it'
    >>> as_joined("t", pa.timestamp("us"), pa.timestamp("us", "UTC"))
    '; call it t2 here, and write t = cast(t2, "timestamp[us]") beside it'
    """
    second = f"{name}2"
    casts = [
        (column, type_name_reached(known, column), f"{second} = cast({name}"),
        (known, type_name_reached(column, known), f"{name} = cast({second}"),
    ]
    possible = [(kind(type_) == "string", named, call) for type_, named, call in casts if named]
    possible.sort(key=lambda one: not one[0])  # a string can be made of everything
    if not possible:
        return ""
    _, named, call = possible[0]
    return f'; call it {second} here, and write {call}, "{named}") beside it'
