"""Addresses of arrays, which each commit asks for some of."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import tracemalloc

import numpy as np

from indices.record_run import RunImage
from lftj.memory import address

MANY = 200_000  # more than Python's table of interned strings has room for before it is written anew
array = np.arange(3)
run = RunImage.of([], np.array([1]), np.array([5]), []).written()
ask = {"of an array": lambda: address(array), "of a run": lambda: run.address}[sys.argv[1]]
expected = ask()
tracemalloc.start()
before, _ = tracemalloc.get_traced_memory()
tracemalloc.reset_peak()
for _ in range(MANY):
    found = ask()
_, most = tracemalloc.get_traced_memory()
assert found == expected
print(most - before)
"""


@pytest.mark.in_turns
@pytest.mark.parametrize("asked", ["of an array", "of a run"])
def test_to_ask_for_an_address_leaves_nothing_behind(asked: str) -> None:
    """However often it was asked for, no call takes more memory than the first.

    In a process of its own: other threads, Spark's among them, allocate too.
    """
    command = [sys.executable, "-c", SCRIPT, asked]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert int(done.stdout) < 1 << 14
