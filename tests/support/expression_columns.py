"""Columns of every type, for expressions and comparisons, and numbers near the ends of ranges."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from lftj.language.parser import parse
from lftj.language.syntax import Comparison


def comparison(text: str) -> Comparison:
    (literal,) = parse(f"h(x) <- {text}.").rules[0].body
    assert isinstance(literal, Comparison)
    return literal


def days(*numbers: int) -> pa.Array:
    return pa.array(numbers, pa.int32()).cast(pa.date32())


COLUMNS = {
    "i": pa.array([1, 2**53 + 1, -3]),
    "i8": pa.array([127, -128, 0], pa.int8()),
    "u": pa.array([0, 1, 2**63 - 1], pa.uint64()),
    "f": pa.array([1.5, 2.5, 0.25]),
    "f4": pa.array([1.5, 2.5, 0.25], pa.float32()),
    "p": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("-3.00")], pa.decimal128(8, 2)),
    "q": pa.array([Decimal("1E+2")] * 3, pa.decimal128(5, -2)),
    "big": pa.array([Decimal(10**37)] * 3, pa.decimal128(38, 0)),
    "huge": pa.array([Decimal(10**70)] * 3, pa.decimal256(76, 0)),
    "d": days(0, 1, 2),
    "d8": days(0, 1, 2).cast(pa.date64()),
    "ts": pa.array([0, 1, 2], pa.timestamp("s")),
    "tm": pa.array([5, 6, 7], pa.timestamp("ms")),
    "tz": pa.array([0, 1, 2], pa.timestamp("ns", "UTC")),
    "du": pa.array([1, 2, 3], pa.duration("ms")),
    "s": pa.array(["a", "b", "a"]).dictionary_encode(),
    "b": pa.array([True, False, True]),
}

TYPES = {name: column.type for name, column in COLUMNS.items()}
INT64 = st.integers(-(2**63), 2**63 - 1)
NEAR = st.one_of(INT64, st.integers(-100, 100), st.sampled_from([2**62, 2**53 + 1, -(2**63), 2**63 - 1]))
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=5)
