"""Where the repository and its tests are, and the environment of processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"


def child_environment(**settings: str) -> dict[str, str]:
    """This process's variables for one that imports the packages and ``support``, whatever its folder is."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}", **settings}
