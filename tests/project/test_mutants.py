"""The faults of ``tests/mutants`` can be put in: their lines are still there, and so are the tests."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from support.paths import ROOT, TESTS

_LISTS = runpy.run_path(str(TESTS / "mutants" / "faults.py"))
FAULTS = [*_LISTS["FAULTS"], *_LISTS["FUZZED"]]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_fits_the_source(fault: Any) -> None:
    source = (ROOT / fault.path).read_text(encoding="utf-8")
    assert fault.applied(source) != source
    assert all((TESTS / test).is_file() for test in fault.tests)
