"""Decimals as whole numbers against Python's integers: every width and scale, freed codes.

Columns are built and read as bytes, so that no cast of pyarrow's makes them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.values.collector import Collector
from lftj.values.dictionary import DecimalDomain
from lftj.values.unscaled import SCALES, Numbers, numbers_of

MAKERS: dict[int, tuple[Callable[[int, int], pa.DataType], int]] = {
    32: (pa.decimal32, 9),
    64: (pa.decimal64, 18),
    128: (pa.decimal128, 38),
    256: (pa.decimal256, 76),
}
NEAR = st.sampled_from([0, 2**31, 2**32, 2**62, 2**63, 2**64, 10**18, 10**19])
UNITS = st.builds(
    lambda near, off, sign: sign * (near + off), NEAR, st.integers(-3, 3), st.sampled_from([1, -1])
)
ANY_UNITS = st.one_of(UNITS, st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-(10**9), 10**9))


def column(units: list[int], arrow: pa.DataType) -> pa.Array:
    data = b"".join(number.to_bytes(arrow.bit_width // 8, "little", signed=True) for number in units)
    return pa.Array.from_buffers(arrow, len(units), [None, pa.py_buffer(data)])


def units_of(array: pa.Array) -> list[int]:
    width = array.type.bit_width // 8
    data = array.buffers()[1].to_pybytes()[array.offset * width :]
    return [
        int.from_bytes(data[place : place + width], "little", signed=True)
        for place in range(0, width * len(array), width)
    ]


@given(
    st.sampled_from([32, 64, 128, 256]),
    st.integers(1, 76),
    st.integers(-21, 40),
    st.lists(ANY_UNITS, max_size=8),
)
def test_numbers_are_those_of_python(width: int, precision: int, scale: int, units: list[int]) -> None:
    make, most = MAKERS[width]
    arrow = make(min(precision, most), scale)
    limit = min(10**arrow.precision, 10 ** (38 + scale), 2 ** (width - 1))
    units = [number for number in units if abs(number) < limit]
    decimal = DecimalDomain(Collector())
    if scale > 38:
        return
    codes = decimal.encode(column(units, arrow))
    assert units_of(decimal.decode(codes, arrow)) == units
    found = decimal.unscaled(codes, scale)
    if found is None:
        assert scale not in SCALES or any(abs(number) >= 2**63 - 1 for number in units)
        return
    assert found.values.tolist() == units
    assert (found.least, found.most) == (min(units, default=0), max(units, default=0))
    assert decimal.encode_unscaled(found).tolist() == codes.tolist()
    other = DecimalDomain(Collector())
    assert units_of(other.decode(other.encode_unscaled(found), arrow)) == units


def test_a_value_with_more_digits_behind_the_point_has_no_number() -> None:
    decimal = DecimalDomain(Collector())
    codes = decimal.encode(column([15, 20], pa.decimal128(9, 1)))
    assert decimal.unscaled(codes, 0) is None
    assert decimal.unscaled(codes[1:], 0).values.tolist() == [2]  # type: ignore[union-attr]
    assert decimal.unscaled(np.array([-(2**63)]), 0) is None  # NULL
    with pytest.raises(IndexError):
        decimal.unscaled(np.array([99]), 0)


def test_a_code_that_is_given_again_has_the_number_of_its_new_value() -> None:
    decimal = DecimalDomain(Collector())
    arrow = pa.decimal128(9, 2)
    kept, gone = decimal.encode(column([100, 200], arrow)).tolist()
    assert decimal.unscaled(np.array([kept, gone]), 2).values.tolist() == [100, 200]  # type: ignore[union-attr]
    decimal.begin()
    decimal.keep(np.array([kept]), 0, 1)
    decimal.end()
    again = decimal.encode(column([300], arrow))
    assert again.tolist() == [gone]
    assert decimal.unscaled(np.array([kept, gone]), 2).values.tolist() == [100, 300]  # type: ignore[union-attr]


BOUNDED = st.lists(
    st.one_of(UNITS, st.integers(-99, 99)).filter(lambda n: abs(n) < 2**63), min_size=1, max_size=3
)


@given(BOUNDED, BOUNDED, st.integers(0, 4), st.integers(0, 4))
def test_operations_are_exact_or_give_nothing(
    lefts: list[int], rights: list[int], scale: int, other: int
) -> None:
    n = min(len(lefts), len(rights))
    lefts, rights = lefts[:n], rights[:n]
    left, right = numbers_of(np.array(lefts), scale), numbers_of(np.array(rights), other)
    most = max(scale, other)
    pairs = [(a * 10 ** (most - scale), b * 10 ** (most - other)) for a, b in zip(lefts, rights, strict=True)]
    products = [a * b for a, b in zip(lefts, rights, strict=True)]
    for found, exact, its_scale in (
        (left.plus(right), [a + b for a, b in pairs], most),
        (left.plus(right, -1), [a - b for a, b in pairs], most),
        (left.times(right), products, scale + other),
        (left.negated(), [-a for a in lefts], scale),
        (left.at_scale(scale + 2), [100 * a for a in lefts], scale + 2),
    ):
        if found is not None:
            assert _is(found, exact, its_scale)
    small = [abs(n) < 10**6 for n in (*lefts, *rights)]
    assert not all(small) or left.times(right) is not None


def _is(found: Numbers, exact: list[int], scale: int) -> bool:
    within = all(found.least <= number <= found.most for number in exact)
    return found.values.tolist() == exact and found.scale == scale and within
