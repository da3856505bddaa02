"""The recipe of an image: what its commands, paths and options name is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from indices import cache_folder
from maintenance.shell.pipeline_file import read_pipeline
from maintenance.shell.pipeline_watch import watched
from maintenance.shell.shell import cli
from support.paths import ROOT

PAGE = (ROOT / "docs" / "container.md").read_text(encoding="utf-8")


RECIPE, PIPELINE, COMMANDS = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """Names and arguments, in their order."""
    lines = RECIPE.replace("\\\n", " ").splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def of(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [said for each, said in instructions if each == name]


def test_its_python_and_its_extras_are_the_package_s(instructions: list[tuple[str, str]]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (image,) = of(instructions, "FROM")
    version = re.fullmatch(r"docker\.io/library/python:(3\.\d+)-slim", image)
    assert version and f"Programming Language :: Python :: {version[1]}" in project["classifiers"]
    (extras,) = re.findall(r"'/src\[([\w,]+)\]'", " ".join(of(instructions, "RUN")))
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_kernels_are_compiled_by_the_user_who_runs(instructions: list[tuple[str, str]]) -> None:
    names = [name for name, _ in instructions]
    (user,) = of(instructions, "USER")
    assert (
        user != "root" and f"useradd --system --uid 10001 --create-home {user} " in of(instructions, "RUN")[0]
    )
    warm_up = instructions.index(("RUN", "lftj warm-up"))
    assert names.index("ENV") < names.index("USER") < warm_up
    variables = dict(pair.split("=") for pair in of(instructions, "ENV")[0].split())
    assert "LFTJ_CACHE_DIR" in Path(cache_folder.__file__).read_text(encoding="utf-8")
    made = re.findall(rf"install -d -o {user} (.*)", of(instructions, "RUN")[0])[0].split()
    for folder in (variables["LFTJ_CACHE_DIR"], *of(instructions, "VOLUME"), *of(instructions, "WORKDIR")):
        assert folder in made


def test_its_commands_are_there(instructions: list[tuple[str, str]], tmp_path: Path) -> None:
    assert json.loads(of(instructions, "ENTRYPOINT")[0]) == ["lftj"]
    command, file = json.loads(of(instructions, "CMD")[0])
    assert {command, "warm-up", "serve"} <= cli.commands.keys()
    options = {option for each in cli.commands["serve"].params for option in each.opts}
    (serve,) = re.findall(r"`lftj serve (.*?)`", PAGE)
    assert {word for word in shlex.split(serve) if word.startswith("--")} <= options
    assert Path(file).parent == Path("/etc/lftj") and f":{Path(file).parent}:ro" in COMMANDS


def test_its_pipeline_is_one_and_its_health_check_tells(
    instructions: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views/revenue.sql").write_text("SELECT 1 AS one FROM orders")
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    monkeypatch.setenv("DB_PASSWORD", "open sesame")
    found = read_pipeline(str(tmp_path / "pipeline.toml"))
    (port,) = of(instructions, "EXPOSE")
    assert found.settings.listen == ("0.0.0.0", int(port)) and f":{port}:{port}" in COMMANDS
    assert found.folder.parent == Path(of(instructions, "VOLUME")[0])
    assert "sesame" not in repr(found) + repr(found.parts)
    program, *arguments = json.loads(re.findall(r"CMD (\[.*\])", of(instructions, "HEALTHCHECK")[0])[0])
    assert program == "python"
    for is_up in (True, False):
        health = lambda is_up=is_up: (is_up, {})  # noqa: E731
        with watched(("127.0.0.1", 0), lambda: "", health) as url:
            assert url is not None
            asked = [word.replace(f"http://127.0.0.1:{port}", url) for word in arguments]
            assert asked != arguments
            done = subprocess.run([sys.executable, *asked], check=False, capture_output=True)
            assert (done.returncode == 0) == is_up
