"""Addresses of arrays, which each commit asks for some of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from indices.record_run import RunImage
from lftj.memory import address
from support.peak_memory import least_peak

MANY = 200_000
"""More than Python's table of interned strings has room for before it is written anew, megabytes of it."""


def array_address() -> Callable[[], int]:
    array = np.arange(3)
    return lambda: address(array)


def run_address() -> Callable[[], int]:
    run = RunImage.of([], np.array([1]), np.array([5]), []).written()
    return lambda: run.address


@pytest.mark.parametrize("asked", [array_address, run_address])
def test_to_ask_for_an_address_leaves_nothing_behind(asked: Callable[[], Callable[[], int]]) -> None:
    """However often it was asked for, no call takes more memory than the first."""
    ask = asked()
    expected = ask()

    def often() -> None:
        for _ in range(MANY):
            assert ask() == expected

    assert least_peak(often) < 1 << 14
