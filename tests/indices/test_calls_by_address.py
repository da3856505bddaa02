"""Kernels that call others by their address: results, errors and references as if these were compiled in."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config, int64
from numba.core.runtime import _nrt_python as nrt

from indices.calls_by_address import caller_of, code_address
from indices.compiled import kernel

pytestmark = pytest.mark.kernel

ARGUMENTS = (int64[:, ::1], int64)


@kernel(makes_arrays=True)
def leading(rows, n):  # type: ignore[no-untyped-def]
    """The first rows, and their sum."""
    if n > len(rows):
        raise IndexError("so many rows are not there")
    return rows[:n].copy(), rows[:n].sum()


leading_at = caller_of(leading, ARGUMENTS)


@kernel(makes_arrays=True)
def sums(where, rows, n):  # type: ignore[no-untyped-def]
    """Of the first rows, of the first two, and so on, twice each."""
    found = np.zeros(n, np.int64)
    for last in range(n):
        its, total = leading_at(where, rows, last + 1)
        found[last] = its.sum() + total
    return found


def test_what_is_called_gives_what_it_gives() -> None:
    rows = np.arange(12).reshape(4, 3)
    expected = [2 * rows[: last + 1].sum() for last in range(4)]
    assert sums(code_address(leading, ARGUMENTS), rows, 4).tolist() == expected


def test_what_it_raises_comes_through() -> None:
    with pytest.raises(IndexError, match="so many rows are not there"):
        sums(code_address(leading, ARGUMENTS), np.zeros((2, 2), np.int64), 3)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is counted")
def test_what_it_makes_is_freed() -> None:
    where, rows = code_address(leading, ARGUMENTS), np.ones((4, 3), np.int64)
    sums(where, rows, 4)
    nrt.memsys_enable_stats()
    try:
        made, freed = nrt.memsys_get_stats_alloc(), nrt.memsys_get_stats_free()
        for _ in range(100):
            sums(where, rows, 4)
        made, freed = nrt.memsys_get_stats_alloc() - made, nrt.memsys_get_stats_free() - freed
    finally:
        nrt.memsys_disable_stats()
    assert made == freed >= 400
