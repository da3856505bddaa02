"""Heads with an ordered aggregate, rows for them, and what comes out by ``functools.reduce``."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import lftj.values.semigroup
from lftj.aggregates.whole import Aggregation
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Constant, Variable
from lftj.values.domains import Domains
from lftj.values.names import QUANTILES
from lftj.values.schema import Column, ColumnType, Schema

POISON = 13
RANK = 3
SHARE = 0.3


@numba.njit
def gcd(left, right):  # type: ignore[no-untyped-def]
    while right:
        left, right = right, left % right
    return abs(left)


@numba.njit
def last(left, right):  # type: ignore[no-untyped-def]
    return right


@numba.njit
def compose(left, right):  # type: ignore[no-untyped-def]
    """First ``x -> a*x + b`` of ``left``, then that of ``right``, modulo 251; a map is ``256*a + b``."""
    slope = (left // 256) * (right // 256) % 251
    return slope * 256 + ((right // 256) * (left % 256) + right % 256) % 251


@numba.njit
def careful(left, right):  # type: ignore[no-untyped-def]
    if left == 13 or right == 13:
        raise ValueError("that number again")
    return max(left, right)


@numba.njit
def within(left, right):  # type: ignore[no-untyped-def]
    """The greater of two values of one thousand."""
    if left // 1000 != right // 1000:
        raise IndexError("values of two groups")
    return max(left, right)


@numba.njit
def product(left, right):  # type: ignore[no-untyped-def]
    if abs(left * right) > 10**6:
        raise OverflowError("too large")
    return left * right


FUNCTIONS = {
    "gcd": gcd,
    "last": last,
    "compose": compose,
    "careful": careful,
    "within": within,
    "product": product,
}

INTEGERS = (pa.int64(), st.integers(-6, 6))
FLOATS = (pa.float64(), st.sampled_from([0.5, -0.0, 0.0, 7.0, math.inf, -math.inf, math.nan]))
STRINGS = (pa.string(), st.text("abé", max_size=3))
DECIMALS = (pa.decimal128(6, 2), st.integers(-9, 9).map(lambda n: Decimal(n).scaleb(-1)))
MOMENTS = (pa.timestamp("us"), st.datetimes(datetime.datetime(1969, 12, 30), datetime.datetime(1970, 1, 3)))
MAPS = (
    pa.int32(),
    st.tuples(st.integers(1, 250), st.integers(0, 250)).map(lambda pair: 256 * pair[0] + pair[1]),
)
COUNTS = (pa.int64(), st.sampled_from([1, 2, 3, POISON]))

WEIGHTS = (pa.int32(), st.integers(0, 3))

# What is aggregated, and what it is ordered by.
CASES: dict[str, tuple[str, tuple[Any, ...]]] = {
    **{
        f"{function} of {name}": (function, (kind,))
        for function in ("min", "max")
        for name, kind in {
            "int": INTEGERS,
            "float": FLOATS,
            "string": STRINGS,
            "decimal": DECIMALS,
            "timestamp": MOMENTS,
        }.items()
    },
    "kth_largest of float": ("kth_largest", (FLOATS,)),
    "kth_smallest of string": ("kth_smallest", (STRINGS,)),
    "quantile of float": ("quantile", (FLOATS,)),
    "quantile of int by weight": ("quantile", (INTEGERS, WEIGHTS)),
    "upper_quantile of decimal": ("upper_quantile", (DECIMALS,)),
    "upper_quantile of string by weight": ("upper_quantile", (STRINGS, WEIGHTS)),
    "concat": ("concat", (STRINGS,)),
    "concat by float": ("concat", (STRINGS, FLOATS)),
    "concat by decimal and string": ("concat", (STRINGS, DECIMALS, STRINGS)),
    "gcd": ("gcd", (INTEGERS,)),
    "last float": ("last", (FLOATS,)),
    "last float by string": ("last", (FLOATS, STRINGS)),
    "last float by two strings": ("last", (FLOATS, STRINGS, STRINGS)),
    "compose by timestamp": ("compose", (MAPS, MOMENTS)),
    "compose by decimal and string": ("compose", (MAPS, DECIMALS, STRINGS)),
    "careful": ("careful", (COUNTS,)),
}

GROUPS = (INTEGERS[0], STRINGS[0])
GROUP = st.tuples(st.integers(0, 2), st.sampled_from(["x", "y"]))


def in_order(value: Any) -> Any:
    """A key in the order of values: NaN last, strings by their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def same(value: Any) -> Any:
    """Values that are one in a column are one here: both zeros, every NaN."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


@dataclass
class Made:
    """A head, and how its rows become codes and back."""

    head: CheckedHead
    types: dict[str, ColumnType]
    columns: list[str]

    def encoded(self, rows: list[tuple[Any, ...]], columns: list[str] | None = None) -> list[np.ndarray]:
        names = self.columns if columns is None else columns
        return [
            self.types[name].domain.encode(pa.array([row[place] for row in rows], self.types[name].arrow))
            for place, name in enumerate(names)
        ]

    def decoded(self, codes: np.ndarray) -> list[Any]:
        declared = self.head.schema.columns[-1].type
        return declared.domain.decode(codes, declared.arrow).to_pylist()


def row_order(function: str, arguments: Sequence[Any]) -> list[Any]:
    """What is said of arguments in the order of a row's columns: the value stands last, but of quantiles."""
    return list(arguments) if function in QUANTILES else [*arguments[1:], *arguments[:1]]


def made(function: str, arrows: list[pa.DataType], groups: tuple[pa.DataType, ...] = GROUPS) -> Made:
    """``h[g0, g1] = function(a0, a1, ...)``; a0 is aggregated, the others are order variables or a weight."""
    domains = Domains()
    group_names, names = [f"g{n}" for n in range(len(groups))], [f"a{n}" for n in range(len(arrows))]
    all_arrows = dict(zip([*group_names, *names], [*groups, *arrows], strict=True))
    types = {name: ColumnType(domains.of(arrow), arrow) for name, arrow in all_arrows.items()}
    result = types["a0"].arrow
    if function in FUNCTIONS:
        lftj.values.semigroup.register(function, FUNCTIONS[function])
        result = pa.float64() if pa.types.is_floating(result) else pa.int64()
    terms: list[Variable | Constant] = [Variable(name) for name in names]
    if function == "concat":
        terms.insert(1, Constant("; "))
    if function in ("kth_largest", "kth_smallest"):
        terms.append(Constant(RANK))
    if function in QUANTILES:
        terms.insert(1, Constant(SHARE))
    value = Column("value", ColumnType(domains.of(result), result))
    schema = Schema((*(Column(name, types[name]) for name in group_names), value), functional=True)
    head = CheckedHead("h", tuple(group_names), Aggregate(function, tuple(terms)), schema, (0, 0))
    return Made(head, types, [*group_names, *row_order(function, names)])


def value_of(function: str, multiset: list[tuple[tuple[Any, ...], int]]) -> Any:
    """The aggregate of (order..., value) tuples, or (value, weight), with their multiplicities."""
    if function in QUANTILES:
        return share_reached(function, [row for row, count in multiset for _ in range(count)])
    ordered = sorted(multiset, key=lambda item: [in_order(part) for part in item[0]])
    values = [row[-1] for row, count in ordered for _ in range(count)]
    if function == "concat":
        return "; ".join(values)
    if function in ("kth_largest", "kth_smallest"):
        return (values if function == "kth_smallest" else values[::-1])[:RANK][-1]
    if function in ("min", "max"):
        return values[0] if function == "min" else values[-1]
    plain: Callable[[Any, Any], Any] = getattr(FUNCTIONS[function], "py_func", FUNCTIONS[function])
    return functools.reduce(plain, values)


def share_reached(function: str, rows: list[tuple[Any, ...]]) -> Any:
    """The first value, from below or above, with which the share of all weights is reached."""
    weighed = [(row[0], row[1] if len(row) > 1 else 1) for row in rows]
    wanted, reached = Fraction(str(SHARE)) * sum(weight for _, weight in weighed), 0
    for value, weight in sorted(
        weighed, key=lambda row: in_order(row[0]), reverse=function == "upper_quantile"
    ):
        reached += weight
        if reached >= wanted:
            return value
    raise AssertionError("all of them reach any share")


def aggregate(
    head: CheckedHead,
    columns: Mapping[str, np.ndarray],
    weights: np.ndarray,
    types: Mapping[str, ColumnType],
) -> tuple[list[np.ndarray], pa.Array]:
    """An :class:`Aggregation` of one batch."""
    aggregation = Aggregation(head, types)
    aggregation.add(columns, weights)
    return aggregation.finish()
