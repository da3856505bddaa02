"""A user's own module beside the script, named as one of the packages, is named by the error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import child_environment


def error_of(folder: Path, shadow: str, code: str) -> str:
    """The last line of stderr of a script in ``folder``, beside a module of the user's."""
    (folder / f"{shadow}.py").write_text("mine = 1\n", encoding="utf-8")
    (folder / "script.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(folder / "script.py")],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


@pytest.mark.parametrize(
    ("shadow", "code"),
    [
        ("indices", "import lftj"),
        ("indices", "from maintenance import Workspace"),
        ("indices", "import indices, lftj"),
        ("lftj", "from maintenance import Workspace"),
        ("lftj", "from maintenance.shell.shell import main"),
        ("lftj", "import spark_bridge"),
        ("maintenance", "import spark_bridge"),
        ("maintenance", "import lftj; lftj.warm_up()"),
        ("maintenance", "import lftj; lftj.Workspace"),
        ("spark_bridge", "import lftj; lftj.spark"),
    ],
)
def test_the_error_names_the_file_and_the_way_out(tmp_path: Path, shadow: str, code: str) -> None:
    error = error_of(tmp_path, shadow, code)
    assert error.startswith("ImportError: ")
    assert f"{tmp_path / shadow}.py stands in the way of the package '{shadow}'" in error
    assert "rename it" in error


def test_what_is_not_needed_may_have_any_name(tmp_path: Path) -> None:
    assert error_of(tmp_path, "maintenance", "import lftj; lftj.Database()") == ""


def test_a_folder_without_modules_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "indices").mkdir()
    assert error_of(tmp_path, "other", "import lftj") == ""
