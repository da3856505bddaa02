"""laws: the built-in monoids at their edges, and what is refused as a monoid."""

from __future__ import annotations

import math
import sys
from types import CodeType

import numba
import numpy as np
import pytest
from numba import config

from indices.compiled import kernel
from indices.errors import MonoidError
from indices.monoid import MAX, MIN, SUM, Monoid, monoid
from indices.scan_tree import ScanTree

pytestmark = pytest.mark.kernel

INT64 = np.iinfo(np.int64)


@numba.njit
def last(left, right):  # type: ignore[no-untyped-def]
    return right


@pytest.mark.parametrize("operation", [MIN, MAX])
@pytest.mark.parametrize("place", range(3))
def test_least_and_greatest_keep_nan(operation: Monoid, place: int) -> None:
    values = np.array([1.0, -math.inf, math.inf])
    values[place] = math.nan
    assert math.isnan(ScanTree.from_sorted([1, 2, 3], values, operation).query(1, 3))


def test_infinite_identities_over_integers_are_the_ends_of_the_range() -> None:
    tree = ScanTree.from_sorted([1, 2], [INT64.min, INT64.min], MAX)
    assert tree.query(1, 2) == tree.query(5, 6) == INT64.min


@pytest.mark.compiled
def test_a_plain_function_is_no_operation() -> None:
    with pytest.raises(MonoidError, match=r"plain Python function.*decorate it with numba\.njit"):
        monoid("mine", lambda left, right: left, 0)


@pytest.mark.compiled
def test_an_operation_that_returns_another_type() -> None:
    halves = monoid("halves", numba.njit(lambda left, right: (left + right) / 2), 0)
    with pytest.raises(MonoidError, match="halves: its operation returns float64 over int64"):
        ScanTree(halves)
    with pytest.raises(MonoidError, match="strings: its operation can't be compiled over int64"):
        ScanTree(monoid("strings", numba.njit(lambda left, right: left + right.upper()), 0))


def test_identities_that_are_none() -> None:
    with pytest.raises(MonoidError, match="less: 5 is no identity, combined with itself it is 0"):
        ScanTree(monoid("less", numba.njit(lambda left, right: left - right), 5))
    with pytest.raises(MonoidError, match="its identity 'a' is no number"):
        monoid("mine", last, "a")  # type: ignore[arg-type]
    with pytest.raises(MonoidError, match=r"int64 can't hold its identity 0\.5; use float64"):
        ScanTree(monoid("mine", last, 0.5))
    with pytest.raises(MonoidError, match="beyond 64 bits"):
        ScanTree(monoid("mine", last, 2**64))
    with pytest.raises(MonoidError, match="no function but int"):
        monoid("mine", 3, 0)  # type: ignore[arg-type]


@kernel
def _combined(combine, number):  # type: ignore[no-untyped-def]
    return combine(number, number)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the operation is a function of Python then")
@pytest.mark.parametrize("number", [np.int64(3), np.float64(1.5)])
def test_a_kernel_gets_an_operation_without_a_call_of_python(number: np.int64 | np.float64) -> None:
    operation = SUM.operation(number.dtype)
    assert _combined(operation, number) == 2 * number
    calls: list[CodeType] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code) if event == "call" else None)
    try:
        found = _combined(operation, number)
    finally:
        sys.setprofile(None)
    assert found == 2 * number
    assert calls == [_combined.py_func.__code__], "the kernel's own"
