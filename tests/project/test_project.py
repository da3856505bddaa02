"""What pyproject.toml, the changelog and the code have to agree on."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import runpy
import tomllib
from typing import Any

import pytest

import lftj
from support.paths import ROOT, TESTS


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_one_version_number(pyproject: dict[str, Any]) -> None:
    assert lftj.__version__ == pyproject["project"]["version"]
    assert f"## {lftj.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_package_is_distributed(pyproject: dict[str, Any]) -> None:
    inside = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} - {"tests", "bench"}
    assert set(pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == inside


def test_every_package_says_that_it_has_types(pyproject: dict[str, Any]) -> None:
    """A file in one package speaks for that package alone."""
    for package in pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert (ROOT / package / "py.typed").exists(), package


def test_no_two_files_of_tests_have_one_name() -> None:
    """Pytest imports them by that, but for those in packages."""
    files = [path for path in TESTS.rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    names = [path.name for path in files]
    assert sorted(names) == sorted(set(names))


def test_what_the_sdist_takes_is_there(pyproject: dict[str, Any]) -> None:
    for pattern in pyproject["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert list(ROOT.glob(pattern.lstrip("/"))), pattern


def test_the_citation_has_the_version(pyproject: dict[str, Any]) -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {lftj.__version__}" in citation
    assert f"license: {pyproject['project']['license']}" in citation


def test_the_changelog_is_cut_at_the_version() -> None:
    """What comes next stands above it; a release has its day."""
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(lftj.__version__)} - \d{{4}}-\d\d-\d\d", sections[1])


def test_the_conda_recipe_says_what_pyproject_does(pyproject: dict[str, Any]) -> None:
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    project, packages = (
        pyproject["project"],
        pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
    )

    def listed(key: str) -> set[str]:
        (items,) = re.findall(rf"^ +{key}:\n((?: +- .*\n)+)", recipe, re.MULTILINE)
        return {item.replace(" ", "") for item in re.findall(r"- (.*)", items)}

    python = f"python{project['requires-python']}"
    assert listed("run") == {python, *project["dependencies"]}
    assert listed("host") == {python, "pip", *pyproject["build-system"]["requires"]}
    assert listed("imports") == set(packages)
    assert listed("entry_points") == {f"{name}={place}" for name, place in project["scripts"].items()}
    assert f'version: "{project["version"]}"' in recipe
    assert f"license: {project['license']}" in recipe and f'summary: "{project["description"]}"' in recipe


def test_a_typed_script_runs_as_its_types_say() -> None:
    """``make lint`` checks its types by all that ``mypy --strict`` asks for; here it runs."""
    runpy.run_path(str(TESTS / "project" / "user_script.py"), run_name="__main__")


def test_everything_public_is_found_from_the_package() -> None:
    """What is imported when it is asked for too: listed, there, and typed by the stub."""
    stub = ast.parse((ROOT / "lftj" / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {
        alias.asname
        for statement in stub.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for alias in statement.names
    } - {None} | {
        target.id
        for statement in stub.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    } - {"__all__"}
    of_ipython = {"load_ipython_extension", "unload_ipython_extension"}
    public = {name for name in dir(lftj) if not name.startswith("_")} - of_ipython
    assert typed == public == {*lftj.__all__, "spark"} - {"__version__"}
    assert {"Workspace", "Transaction", "Snapshot", "aggregate"} <= public
    for name in public:
        assert getattr(lftj, name) is not None
    maintained = importlib.import_module("maintenance")
    assert all(getattr(lftj, name) is getattr(maintained, name) for name in maintained.__all__)


def test_the_console_script_is_there(pyproject: dict[str, Any]) -> None:
    module, _, function = pyproject["project"]["scripts"]["lftj"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_readme_is_short_and_the_long_description_leads_nowhere_in_the_tree() -> None:
    """The latter is what the installed package says; links into the tree would be dead where it is shown."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 100 and readme.count("![") == 2
    description = importlib.metadata.metadata("lftj").get_payload()
    assert readme.splitlines()[0] in description and "Licence: Apache-2.0." in description
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert links and all(link.startswith("https://") for link in links)
