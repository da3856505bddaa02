"""laws: imports go one way, and importing the package stays cheap.

    indices -> lftj -> maintenance -> spark_bridge        (an arrow: is used by)

The order is read from the syntax trees of all files, so that an import inside
a function counts too.  Only ``spark_bridge`` imports pyspark; ``tests`` and
``bench`` are imported by none.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

LAYERS = ("indices", "lftj", "maintenance", "spark_bridge")
OUTSIDE = ("tests", "bench")
FILES = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]
LAZY = ("numba", "lark", "rich", "pandas", "duckdb", "polars", "matplotlib", "pyspark", "pyarrow.parquet")


def imported_modules(path: Path) -> list[str]:
    """Full names of the modules that the file's import statements name, relative ones resolved."""
    package = path.relative_to(ROOT).parent.parts
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            names.append(".".join((*above, *([node.module] if node.module else []))))
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    return names


def test_there_are_files_to_read() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0]
    forbidden = (*LAYERS[LAYERS.index(layer) + 1 :], *OUTSIDE)
    if layer != "spark_bridge":
        forbidden += ("pyspark",)
    backwards = [name for name in imported_modules(path) if name.split(".")[0] in forbidden]
    assert not backwards, f"{path.relative_to(ROOT)} imports {backwards}"


def run_fresh(code: str) -> str:
    """Standard output of the code in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_leaves_heavy_modules_alone() -> None:
    loaded = run_fresh("import sys, lftj; print(*sys.modules)").split()
    # Arrow imports pandas by itself when asked about types; nothing here may ask while importing.
    assert [name for name in LAZY if name in loaded] == []


def test_importing_is_quick() -> None:
    code = "import time; start = time.process_time(); import lftj; print(time.process_time() - start)"
    assert min(float(run_fresh(code)) for _ in range(3)) < 0.5
