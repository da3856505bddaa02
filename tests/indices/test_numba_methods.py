"""A numba without the methods that are replaced here compiles kernels in its own way, and that is said."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import numba
import pytest
from packaging.requirements import Requirement

from indices import numba_methods
from support.paths import ROOT, child_environment

WITHOUT = """
import warnings
from indices import numba_methods
from lftj.errors import NumbaWarning

numba_methods.NEEDED = (*numba_methods.NEEDED, "numba.core.compiler:Compiler.of_tomorrow")
numba_methods.missing.__defaults__ = (numba_methods.NEEDED,)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    from indices import compiled
assert [one.category for one in told] == [NumbaWarning], told
assert "of_tomorrow" in str(told[0].message) and "in each process" in str(told[0].message)

import numpy as np
from indices.monoid import SUM
from indices.scan_tree import ScanTree
from lftj.storage.seek import gallop
from lftj.storage.trie import Trie

@compiled.kernel
def place_of(keys, key):
    return gallop(keys, 0, len(keys), key)

assert place_of(np.array([1, 3, 5]), 4) == 2 and place_of(np.array([1, 3, 5]), np.int64(6)) == 3
assert compiled.all_are_compiled() is False
compiled.load_kernels(lambda name: True)
trie = Trie.from_sorted([np.array([1, 1, 4]), np.array([3, 5, 2])])
trie.check_invariants()
double = compiled.callback(lambda x: 2 * x, "int64(int64)")
assert double.ctypes(4) == 8
assert not any(hasattr(one._cache, "is_compiled") for one in compiled.kernels)
"""


def test_without_the_methods_kernels_are_compiled_by_numba_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=ROOT,
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_numba_that_is_installed_has_them_and_is_one_that_is_asked_for() -> None:
    assert numba_methods.missing() == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (asked,) = [one for text in project["dependencies"] if (one := Requirement(text)).name == "numba"]
    assert numba.__version__ in asked.specifier
    assert any(bound.operator == "<" for bound in asked.specifier), "the next version is not tested"


@pytest.mark.parametrize("name", ["numba.tomorrow:Compiler", "numba.core.compiler:Compiler.of_tomorrow"])
def test_what_is_missing_is_named(name: str) -> None:
    assert numba_methods.missing(("numba.core.compiler:Compiler", name)) == [name]
