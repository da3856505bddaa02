"""Aggregate heads of every function over every type, and rows for them, for what cells do apart."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from support.aggregate_heads import CASES, GROUP, GROUPS, Made, made, row_order

MAX = 1.7976931348623157e308
TINY = 5e-324

FLOATS = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, MAX, -MAX, 1e308, -1e308, TINY, -TINY, 2.0**-1022, 1e16, 1.0, 1.1e31]),
    st.sampled_from([math.inf, -math.inf, math.nan]),
)
INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**63 - 1, -(2**63), 2**32, -(2**31)]))
DURATIONS = st.integers(-(10**6), 10**6).map(lambda n: datetime.timedelta(milliseconds=n))


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**digits - 1
    units = st.one_of(st.integers(-300, 300), st.sampled_from([largest, -largest, largest // 2]))
    return units.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


Case = tuple[str, tuple[tuple[pa.DataType, st.SearchStrategy[Any]], ...], pa.DataType | None]

# Function, types and values of its arguments, declared type; None: that of support/aggregate_heads.py.
SUMS: dict[str, Case] = {
    "count": ("count", (), pa.int64()),
    "sum int64": ("sum", ((pa.int64(), INTEGERS),), pa.int64()),
    "avg int64": ("avg", ((pa.int64(), INTEGERS),), pa.float64()),
    "sum uint8": ("sum", ((pa.uint8(), st.integers(0, 255)),), pa.int64()),
    "sum duration": ("sum", ((pa.duration("ms"), DURATIONS),), pa.duration("ms")),
    "sum float": ("sum", ((pa.float64(), FLOATS),), pa.float64()),
    "avg float": ("avg", ((pa.float64(), FLOATS),), pa.float64()),
    "sum float32": ("sum", ((pa.float32(), st.floats(width=32)),), pa.float64()),
    **{
        f"{function} {type_}": (function, ((type_, decimals(digits, type_.scale)),), result or pa.float64())
        for type_, digits, wide in (
            (pa.decimal128(6, 2), 6, pa.decimal128(38, 2)),
            (pa.decimal128(38, 38), 38, pa.decimal128(38, 38)),
            (pa.decimal128(3, -2), 3, pa.decimal128(38, -2)),
            (pa.decimal256(76, 38), 76, pa.decimal256(76, 38)),
        )
        for function, result in (("sum", wide), ("avg", None))
    },
}
ORDERED: dict[str, Case] = {name: (function, kinds, None) for name, (function, kinds) in CASES.items()}
ALL = {**SUMS, **ORDERED}


def head_of(case: Case, groups: tuple[pa.DataType, ...] = GROUPS, seed: int = 0) -> Made:
    """The head, with dictionaries of its own, in which ``seed`` values stand already."""
    function, kinds, result = case
    arrows = [arrow for arrow, _ in kinds]
    it = made(function, arrows or [pa.int64()], groups)
    if result is not None:
        domains = Domains()
        names = [*(f"g{n}" for n in range(len(groups))), *(f"a{n}" for n in range(len(arrows)))]
        it.types = {
            name: ColumnType(domains.of(arrow), arrow)
            for name, arrow in zip(names, [*groups, *arrows], strict=True)
        }
        value = Column("value", ColumnType(domains.of(result), result))
        schema = Schema((*(Column(n, it.types[n]) for n in names[: len(groups)]), value), functional=True)
        call = it.head.value if arrows else replace(it.head.value, arguments=())
        it = Made(replace(it.head, value=call, schema=schema), it.types, names)
    string = next((t.domain for t in it.types.values() if t.domain.name == "string"), None)
    if string is not None:
        string.encode(pa.array([f"{n * 7 % 10}" for n in range(seed)] + ["y", "b"][:seed], pa.string()))
    return it


def row_strategy(case: Case, with_groups: bool) -> st.SearchStrategy[tuple[Any, ...]]:
    """Group values, then arguments in the order of the head's columns."""
    function, kinds, _ = case
    arguments = st.tuples(*(values for _, values in row_order(function, kinds)))
    return st.tuples(GROUP if with_groups else st.just(()), arguments).map(lambda parts: parts[0] + parts[1])
