"""Every example of README and docs is run, from top to bottom of its page.

- ``python``: executed; with ``>>>``, the printed results must be those shown.
- ``console``: commands behind ``$``; what they print must be what is shown.  README's run the installed
  ``lftj``, those of other pages forks of one process that has loaded it.
- ``datalog``, ``sql``: must parse.

The blocks of one page share a namespace and an empty working folder.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from support.paths import ROOT
from support.sharing import needs_java

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SECONDS = 1800
"""For a command that hangs: on a loaded machine one that compiles all kernels takes minutes."""

PROMPT = re.compile(r"^\$ ", re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    content = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(content):
        text = textwrap.dedent(match[3]) if match[1] else match[3]  # of a tab
        yield Block(match[2], text, content.count("\n", 0, match.start()) + 2)


def run_python(block: Block, page: Path, names: dict[str, object]) -> None:
    if ">>>" not in block.text:
        source = "\n" * (block.line - 1) + block.text
        exec(compile(source, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line - 1)
    test.globs = names  # the parser copies them, and the page's blocks are to share them
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert runner.failures == 0, "".join(report)


def run_console(block: Block, page: Path, folder: Path, scripts: Path) -> None:
    before, *sessions = PROMPT.split(block.text)
    assert not before, f"{page.name}:{block.line}: a console block starts with '$ '"
    assert (scripts / "lftj").exists(), "the console script is not installed: make test does that"
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    for session in sessions:
        lines = session.splitlines()
        n_command_lines = 1 + next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        command = "\n".join(lines[:n_command_lines])
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        shown = "\n".join(lines[n_command_lines:])
        assert done.stdout.rstrip() == shown.rstrip(), f"{page.name}:{block.line}: {command}"


@pytest.fixture(scope="module")
def forking_scripts(forked_lftj: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an ``lftj`` that imports nothing."""
    folder = tmp_path_factory.mktemp("scripts")
    script = folder / "lftj"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(forked_lftj)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return folder


@pytest.mark.usefixtures("warmed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_do_what_they_show(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    from lftj.language.parser import parse

    if any("pyspark" in block.text for block in blocks(page) if block.language == "python"):
        assert needs_java(request.node.nodeid), f"{page.name} belongs into support/sharing.py"
        request.getfixturevalue("spark")  # what asks for a session then gets that of the tests
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    installed = Path(sys.executable).parent
    scripts = installed if page.name == "README.md" else request.getfixturevalue("forking_scripts")
    for block in blocks(page):
        if block.language == "python":
            run_python(block, page, names)
        elif block.language == "console":
            run_console(block, page, tmp_path, scripts)
        elif block.language == "datalog":
            parse(block.text)
        elif block.language == "sql":
            assert duckdb.extract_statements(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_fence_is_an_example(page: Path) -> None:
    """Nothing looks like an example and is not run, but pictures in text and what installs or serves."""
    opened = re.findall(r"^[ >]*(?:```|~~~)+ *(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)[::2]
    found = [block.language for block in blocks(page)]
    assert [language for language in opened if language] == found
    assert set(found) <= {"python", "console", "datalog", "sql", "sh"}
    commands = "".join(block.text for block in blocks(page) if block.language == "sh").replace("\\\n", "")
    assert (
        re.sub(r"^(pip install|lftj warm-up|lftj serve|uvicorn|make) ?.*\n", "", commands, flags=re.MULTILINE)
        == ""
    )
