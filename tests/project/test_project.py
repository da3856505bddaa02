"""What pyproject.toml, the changelog and the code have to agree on."""

from __future__ import annotations

import importlib
import tomllib
from typing import Any

import pytest

import lftj
from support.paths import ROOT


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_one_version_number(pyproject: dict[str, Any]) -> None:
    assert lftj.__version__ == pyproject["project"]["version"]
    assert f"## {lftj.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_package_is_distributed(pyproject: dict[str, Any]) -> None:
    inside = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} - {"tests", "bench"}
    assert set(pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == inside


def test_the_console_script_is_there(pyproject: dict[str, Any]) -> None:
    module, _, function = pyproject["project"]["scripts"]["lftj"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
