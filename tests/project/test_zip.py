"""laws: the packages run from a zip file, as ``spark-submit --py-files`` gives them to executors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from support.paths import ROOT

PACKAGES = ("indices", "lftj", "maintenance", "spark_bridge")

MAINTAINED = """
import lftj, spark_bridge.stages.worker
from indices.kernel_cache import KernelCache
from maintenance import Workspace

def refuse(self, signature, result):
    raise AssertionError(f"{self._name} was compiled")

KernelCache.save_overload = refuse
workspace = Workspace()
workspace.load("e", [(1, 2), (2, 3), (1, 3)], columns=["a", "b"])
workspace.install("tri(a, b, c) <- e(a, b), e(b, c), e(a, c).")
with workspace.transaction() as transaction:
    transaction.insert("e", [(3, 4), (2, 4)])
print(lftj.__file__)
print(sorted(workspace.snapshot()["tri"].to_arrow().to_pylist(), key=str))
"""

COMPILED = """
import lftj, numpy
from indices.monoid import SUM
SUM.operation(numpy.int64)
print(lftj.__file__)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of the packages: what is in the wheel, without its metadata."""
    place = tmp_path_factory.mktemp("zip") / "lftj.zip"
    with ZipFile(place, "w") as archive:
        for package in PACKAGES:
            for path in sorted((ROOT / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(ROOT))
    return place


def run(code: str, archive: Path, folder: Path, cache: Path) -> list[str]:
    """Lines of standard output of the code, of a process that finds the packages in the zip file."""
    environment = {**os.environ, "PYTHONPATH": str(archive), "LFTJ_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    file, *lines = done.stdout.splitlines()
    assert file.startswith(str(archive))
    return lines


@pytest.mark.in_turns
@pytest.mark.compiled
def test_a_rule_is_maintained_and_takes_the_kernels_that_are_there(
    archive: Path, tmp_path: Path, warmed: Path | None
) -> None:
    """Kernels that were compiled from a checkout or a wheel serve a zip file of the same sources."""
    pytest.importorskip("pyspark")
    assert warmed is not None
    lines = run(MAINTAINED, archive, tmp_path, warmed.parent)
    rows = [{"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 3, "c": 4}]
    assert lines == [str(sorted(rows, key=str))]


@pytest.mark.compiled
def test_kernels_are_compiled_into_the_folder_that_is_set(archive: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(COMPILED, archive, tmp_path, cache)
    compiled = {file: file.stat().st_mtime_ns for file in cache.rglob("*.kernel")}
    assert compiled
    run(COMPILED, archive, tmp_path, cache)
    assert {file: file.stat().st_mtime_ns for file in cache.rglob("*.kernel")} == compiled
